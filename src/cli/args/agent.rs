//! The commands that agents and jobs work with: they run something, or stand between an agent and
//! the server.

use std::ffi::OsString;

use clap::Subcommand;

use super::work::WithLockArgs;

/// A command for agents and jobs.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum AgentCommand {
    /// Serve an agent over stdin and stdout, by the Model Context Protocol
    ///
    /// It is started by the agent, and ends with it.
    Mcp,
    /// Run a command under a lock, which is kept while it runs
    WithLock(WithLockArgs),
    /// Becomes a command that is killed when its parent dies; how this program starts a command
    #[command(hide = true)]
    ExecChild {
        /// The process id of the parent
        parent: i32,
        /// Take the terminal first
        #[arg(long)]
        takes_terminal: bool,
        /// Wait first for a byte on stdin
        #[arg(long)]
        waits: bool,
        /// The command
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
}
