//! The server asked by schemathesis, which makes up requests of every kind out of the written
//! contract and holds each answer against it.

use std::fs;
use std::process::Command;

use super::{file, python, succeed};
use crate::support::{Server, pearing};

/// How long all of it may take.
const SECONDS_MAX: u32 = 600;

/// Limits that no flood of made-up requests comes near: they are tested elsewhere.
const LIMITS: [&str; 10] = [
    "--requests-per-second-per-identity=1000000",
    "--requests-per-second-per-scope=1000000",
    "--live-tickets-per-identity=100000",
    "--live-tickets-per-scope=1000000",
    "--places-per-lock=100000",
    "--replies-per-thread=10000",
    "--agents-per-person=10000",
    "--feeds-per-identity=10000",
    "--log=warn,pearing::server=info",
    "--log-format=json",
];

#[test]
fn every_operation_keeps_its_contract_whatever_is_asked() {
    let mut server = Server::stopped();
    let mut command = pearing(["dev"]);
    command.args(LIMITS);
    let path = |name: &str| server.home().join(name);
    let (key, notes, backups) = (path("key"), path("notes"), path("backups"));
    for folder in [&notes, &backups] {
        fs::create_dir(folder).expect("the folder is ours");
    }
    let made = pearing(["checkpoint-key", "--out"]).arg(&key).status();
    assert!(made.expect("it runs").success());
    command.arg("--checkpoint-key").arg(&key).arg("--checkpoint-dir").arg(&notes);
    command.arg("--backup-dir").arg(&backups);
    server.run(command);
    let mut command = Command::new(python().with_file_name("schemathesis"));
    command.arg("--config-file").arg(file("schemathesis.toml")).arg("run");
    command.arg(format!("{}/openapi.json", server.url())).args(["--url", server.url()]);
    // What it writes, it writes beside the server's data.
    command.current_dir(server.home()).env("PYTHONPATH", file(""));
    command.env("URL", server.url()).env("TOKEN", server.client("admin").token());
    succeed(&command, SECONDS_MAX);
}
