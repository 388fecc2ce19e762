//! The commands that agents and jobs work with: they run something, or stand between an agent and
//! the server.

use std::ffi::OsString;

use clap::Subcommand;

use super::GuardCommand;
use super::TicketArgs;
use super::vendor::{HookArgs, SetupArgs};
use super::work::{RespondArgs, WithLockArgs};

/// A command for agents and jobs.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum AgentCommand {
    /// Serve an agent over stdin and stdout, by the Model Context Protocol
    ///
    /// It is started by the agent, and ends with it.
    Mcp,
    /// Run a command under a lock, which is kept while it runs
    WithLock(WithLockArgs),
    /// Run a command for each event of a repository's threads, under a lock derived from it
    Respond(RespondArgs),
    /// Fence guards.
    #[command(flatten)]
    Guard(GuardCommand),
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
    /// Tie Claude Code or Codex to the server, with an identity of its own
    ///
    /// Makes an agent of yours, keeps its token in a profile, and writes the entries that start
    /// `pearing-cli mcp` with that profile. With --lock, Claude Code changes nothing unless it
    /// holds that lock. Run again, it changes only what isn't as it would be written now.
    Setup(SetupArgs),
    /// What an agent program runs before and after its tools; reads what happens from stdin
    Hook(HookArgs),
    /// Watch a ticket of yours without keeping it alive; exits with 5 when it is lost
    WatchTicket {
        #[command(flatten)]
        ticket: TicketArgs,
    },
    /// Check the server, the token, the clock, MCP, and the configuration of Claude Code and Codex
    Doctor,
}
