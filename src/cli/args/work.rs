//! The command line of what runs a command under a lock.

use std::ffi::OsString;

use clap::{Args, ValueEnum};

use super::value::{lease, short_text, wait};
use crate::domain::text::ShortText;
use crate::domain::time::{LeaseSeconds, WaitSeconds};
use crate::flags::{LockArgs, invalid};

/// What with-lock does.
#[derive(Debug, Args)]
pub(in crate::cli) struct WithLockArgs {
    #[command(flatten)]
    pub(in crate::cli) lock: LockArgs,
    /// The lease, 5 to 300 seconds, kept by heartbeats while the command runs [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = lease)]
    pub(in crate::cli) lease_seconds: Option<LeaseSeconds>,
    /// How long to wait in the queue, 0 to 3600 seconds [default: 0]
    #[arg(long, value_name = "SECONDS", value_parser = wait)]
    pub(in crate::cli) wait_seconds: Option<WaitSeconds>,
    /// Why, shown to those who contend or wait
    #[arg(long, value_parser = short_text("note"))]
    pub(in crate::cli) note: Option<ShortText>,
    /// What it means that somebody else has the lock: fail is exit code 124, skip is 0
    #[arg(long, value_name = "WHAT", default_value = "fail")]
    pub(in crate::cli) on_conflict: OnConflict,
    #[command(flatten)]
    pub(in crate::cli) grace: GraceArgs,
    /// The command, after --
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(in crate::cli) command: Vec<OsString>,
}

/// How a command is made to end.
#[derive(Debug, Args)]
pub(in crate::cli) struct GraceArgs {
    /// How long the command has to end after SIGTERM, when the lock is lost or will be, in whole
    /// seconds [default and most: a third of the lease]
    #[arg(long = "grace", value_name = "SECONDS", value_parser = grace)]
    pub(in crate::cli) seconds: Option<u32>,
}

/// What it means that somebody else has the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum OnConflict {
    /// A failure.
    Fail,
    /// Somebody else does it.
    Skip,
}

fn grace(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| invalid("grace", "must be a whole number of seconds"))
}
