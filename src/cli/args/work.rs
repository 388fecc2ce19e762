//! The command line of what runs a command under a lock.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::value::{lease, sequence, short_text, wait};
use crate::cli::respond::{Template, event_glob};
use crate::domain::id::Sequence;
use crate::domain::scope::Scope;
use crate::domain::text::ShortText;
use crate::domain::time::{LeaseSeconds, WaitSeconds};
use crate::flags::{LockArgs, invalid, named, repo};

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

/// What respond does.
#[derive(Debug, Args)]
pub(in crate::cli) struct RespondArgs {
    /// The repository, like teams/platform/website
    #[arg(long, value_name = "REPO", value_parser = repo)]
    pub(in crate::cli) repo: Scope,
    /// To events of these types, like thread.replied; can be given more than once
    #[arg(long, value_name = "GLOB", value_parser = on, default_value = "thread.*")]
    pub(in crate::cli) on: Vec<String>,
    /// The name of the lock; {thread} in it stands for the number of the event's thread
    #[arg(long, value_name = "TEMPLATE", value_parser = named::<Template>("lock"))]
    pub(in crate::cli) lock: Template,
    /// The file that keeps how far it has come [default: one below ~/.local/state/pearing]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(in crate::cli) cursor: Option<PathBuf>,
    /// Where to begin if there is no such file yet: after this sequence, with 0 at the start
    /// [default: from now on]
    #[arg(long, value_name = "SEQUENCE", value_parser = sequence)]
    pub(in crate::cli) after: Option<Sequence>,
    /// How often the command may fail at one event before that is given up, 1 to 100
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=100),
        default_value = "3")]
    pub(in crate::cli) attempts: u32,
    /// End as soon as history has met the present: 0, or 1 if an event was given up
    #[arg(long)]
    pub(in crate::cli) until_caught_up: bool,
    /// The lease, 5 to 300 seconds, kept by heartbeats while the command runs [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = lease)]
    pub(in crate::cli) lease_seconds: Option<LeaseSeconds>,
    /// Why, shown to those who contend or wait
    #[arg(long, value_parser = short_text("note"))]
    pub(in crate::cli) note: Option<ShortText>,
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

fn on(text: &str) -> Result<String, String> {
    event_glob(text).map_err(|rule| invalid("on", rule))
}
