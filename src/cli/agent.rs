//! The commands that agents and jobs work with, each in a file of its own.

use super::args::AgentCommand;
use super::connection::Said;
use super::group::Before;
use super::output::Output;
use super::{Ended, doctor, group, guard, hook, mcp, respond, vendor, watch, with_lock};

/// Runs one of them.
pub(super) async fn run(said: Said<'_>, output: &mut Output, command: &AgentCommand) -> Ended {
    match command {
        AgentCommand::Mcp => mcp::mcp(&said.connection()?).await,
        AgentCommand::Guard(command) => guard::run(said, output, command).await,
        AgentCommand::WithLock(args) => Ok(with_lock::run(said, output, args).await),
        AgentCommand::Respond(args) => respond::run(said, output, args).await,
        AgentCommand::ExecChild { parent, takes_terminal, waits, command } => {
            let before = Before { parent: *parent, takes_terminal: *takes_terminal, waits: *waits };
            let (code, why) = group::become_command(before, command);
            output.message(&format!("pearing-cli: {why}"));
            Ok(code)
        }
        AgentCommand::Setup(args) => vendor::setup(said, output, args).await,
        AgentCommand::Hook(args) => hook::run(said, output, args).await,
        AgentCommand::WatchTicket { ticket } => watch::watch(said, output, ticket).await,
        AgentCommand::Doctor => doctor::run(said, output).await,
    }
}
