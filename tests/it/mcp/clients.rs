//! The protocol's own SDKs, each over each transport, through the whole workflow.

use std::process::Command;

use crate::outside::{node_script, python_script, succeed};
use crate::support::Server;

const SECONDS_MAX: u32 = 120;

fn prepare(server: &Server, command: &mut Command) {
    command.env("MCP_URL", format!("{}/mcp", server.url()));
    command.env("PEARING_URL", server.url());
    command.env("PEARING_CLI", env!("CARGO_BIN_EXE_pearing-cli"));
    command.env("HOME", server.home());
    command.env("CLAUDE_TOKEN", server.client("claude").token());
    command.env("CODEX_TOKEN", server.client("codex").token());
}

#[test]
fn the_sdk_for_typescript_goes_through_the_workflow() {
    let server = Server::start();
    for (sdk, options) in [("v1", "{}"), ("v2", r#"{"versionNegotiation":{"mode":"auto"}}"#)] {
        for transport in ["http", "stdio"] {
            let mut command = node_script("mcp_agent.cjs");
            prepare(&server, command.arg(transport));
            command.env("MCP_SDK", sdk).env("MCP_OPTIONS", options);
            println!("{}", succeed(&command, SECONDS_MAX));
        }
    }
}

#[test]
fn the_sdk_for_python_goes_through_the_workflow() {
    let server = Server::start();
    for mode in ["auto", "legacy"] {
        for transport in ["http", "stdio"] {
            let mut command = python_script("mcp_agent.py");
            prepare(&server, command.args([transport, mode]));
            println!("{}", succeed(&command, SECONDS_MAX));
        }
    }
}
