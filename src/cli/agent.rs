//! The commands that agents and jobs work with, each in a file of its own.

use super::args::AgentCommand;
use super::connection::Said;
use super::output::Output;
use super::{Ended, group, mcp};

/// Runs one of them.
pub(super) async fn run(said: Said<'_>, output: &mut Output, command: &AgentCommand) -> Ended {
    match command {
        AgentCommand::Mcp => mcp::mcp(&said.connection()?).await,
        AgentCommand::ExecChild { parent, command } => {
            let (code, why) = group::become_command(*parent, command);
            output.message(&format!("pearing-cli: {why}"));
            Ok(code)
        }
    }
}
