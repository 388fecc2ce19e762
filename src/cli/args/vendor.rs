//! The commands that tie Claude Code and Codex to a server.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use crate::cli::profiles::ProfileName;
use crate::domain::name::LockName;
use crate::domain::scope::LockKey;
use crate::domain::time::LeaseSeconds;
use crate::flags::{ScopeIfAny, named};

use super::value::lease;

/// A program that runs agents, and has a configuration of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Vendor {
    /// Claude Code
    ClaudeCode,
    /// Codex
    Codex,
}

/// A program that runs commands of ours at certain moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum HookVendor {
    /// Claude Code
    ClaudeCode,
}

/// The lock that matters, if one is named.
#[derive(Debug, Args)]
pub(in crate::cli) struct GateArgs {
    /// The lock that must be held before a tool changes anything; its scope is given beside it
    #[arg(long, value_name = "NAME", value_parser = named::<LockName>("lock_name"))]
    lock: Option<LockName>,
    #[command(flatten)]
    scope: ScopeIfAny,
}

impl GateArgs {
    /// The lock, unless none is named.
    ///
    /// # Errors
    /// Only one half of it is named.
    pub(in crate::cli) fn lock(&self) -> Result<Option<LockKey>, &'static str> {
        match (self.scope.scope(), self.lock.clone()) {
            (Some(scope), Some(lock_name)) => Ok(Some(LockKey { scope, lock_name })),
            (None, None) => Ok(None),
            (Some(_), None) => Err("--lock is missing: which lock of that scope"),
            (None, Some(_)) => Err("--repo, --team or --user is missing: where that lock is"),
        }
    }
}

/// What setup does.
#[derive(Debug, Args)]
pub(in crate::cli) struct SetupArgs {
    /// Whose configuration
    pub(in crate::cli) vendor: Vendor,
    /// Show what would be written and where; ask no server and change nothing
    #[arg(long, conflicts_with = "remove")]
    pub(in crate::cli) print: bool,
    /// Take our entries out again and forget the profile
    #[arg(long)]
    pub(in crate::cli) remove: bool,
    /// The agent's own name, and the profile that keeps its token [default: claude-code or codex]
    #[arg(long, value_name = "NAME", value_parser = named::<ProfileName>("agent"))]
    pub(in crate::cli) agent: Option<ProfileName>,
    /// Only for the project in this folder, and not for all
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(in crate::cli) project: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) gate: GateArgs,
}

/// What a hook is told.
#[derive(Debug, Args)]
pub(in crate::cli) struct HookArgs {
    /// Whose hook
    pub(in crate::cli) vendor: HookVendor,
    /// The lease that a heartbeat asks for, 5 to 300 seconds: a tool call that takes longer loses
    /// the lock [default: 300]
    #[arg(long, value_name = "SECONDS", value_parser = lease)]
    pub(in crate::cli) lease_seconds: Option<LeaseSeconds>,
    #[command(flatten)]
    pub(in crate::cli) gate: GateArgs,
}
