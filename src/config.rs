//! The command line of `pearing`. Each flag is an environment variable too.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;

use crate::domain::Limits;
use crate::domain::name::UserName;

/// The lock service: an event-sourced ledger of who holds what, and until when.
#[derive(Debug, Parser)]
#[command(name = "pearing", version, propagate_version = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// How logs are written.
    #[command(flatten)]
    pub log: LogOptions,
}

/// What `pearing` can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve for a first try: makes a data directory with users, a team and a repository if there
    /// is none.
    ///
    /// Makes the data directory if there is none, with the users admin, claude and codex, the team
    /// platform (claude and codex write) and the repository teams/platform/website. Writes each
    /// token to DIR/tokens/NAME (mode 0600) and prints the lines to export.
    Dev {
        /// The data directory.
        #[arg(long, env = "PEARING_DATA", value_name = "DIR", default_value = ".pearing-dev")]
        data: PathBuf,
        /// How to serve.
        #[command(flatten)]
        serve: ServeOptions,
    },
    /// Make a data directory. Prints the administrator's token, once, alone, on stdout.
    Init {
        /// The data directory: a new or empty one.
        #[arg(long, env = "PEARING_DATA", value_name = "DIR")]
        data: PathBuf,
        /// The user that administers the server.
        #[arg(long, env = "PEARING_ADMIN", value_name = "NAME")]
        admin: UserName,
    },
    /// Serve an existing data directory.
    ///
    /// SIGTERM and SIGINT drain: no new acquires, what is in flight is answered, feeds end, exit
    /// code 0.
    Serve {
        /// The data directory, made by `init` or `dev`.
        #[arg(long, env = "PEARING_DATA", value_name = "DIR")]
        data: PathBuf,
        /// How to serve.
        #[command(flatten)]
        serve: ServeOptions,
        /// Open a damaged ledger although synced events are lost, if it can be read up to this
        /// sequence at least. Sequences then jump, and leases from the lost part may still run at
        /// their clients: only fences protect.
        #[arg(long, env = "PEARING_ACCEPT_LOSS_AFTER", value_name = "SEQUENCE")]
        accept_loss_after: Option<u64>,
    },
    /// Print a script that completes command lines in a shell.
    Completions {
        /// Whose script.
        shell: Shell,
    },
    /// Print the man page, or write a page for each command to a folder.
    Man {
        /// The folder; made if there is none.
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        out: Option<PathBuf>,
    },
}

impl Cli {
    /// The command line with all of its help.
    pub fn complete() -> clap::Command {
        Self::command().after_help(exit_codes_help())
    }
}

/// The exit codes of `pearing`, and what each means.
pub const EXIT_CODES: &[(&str, &str)] = &[
    ("0", "done; of serve and dev: stopped by a signal, after what was in flight was answered"),
    ("1", "any other error"),
    ("2", "usage"),
    ("3", "there is no ledger in the data directory"),
    ("4", "another process has the data directory open"),
    ("5", "the ledger is damaged, or a part of it is missing"),
    ("6", "the storage failed: nothing was acknowledged after that"),
    ("7", "the address can't be listened on"),
    ("70", "a bug: the writer stopped before it could do harm"),
];

/// The end of the help: what each exit code means.
fn exit_codes_help() -> String {
    let line = |(code, meaning): &(&str, &str)| format!("  {code:<3} {meaning}");
    let lines: Vec<String> = EXIT_CODES.iter().map(line).collect();
    format!("Exit codes:\n{}", lines.join("\n"))
}

/// How to serve.
#[derive(Debug, Clone, Args)]
pub struct ServeOptions {
    /// Where to listen. Port 0 takes a free one and says which.
    #[arg(long, env = "PEARING_LISTEN", value_name = "ADDR", default_value = "127.0.0.1:7420")]
    pub listen: SocketAddr,
    /// Free disk space, in MiB, below which new work is refused; heartbeats, releases and timers
    /// go on.
    #[arg(long, env = "PEARING_DISK_RESERVE_MIB", value_name = "MIB", default_value_t = 256)]
    pub disk_reserve_mib: u64,
    /// Held and waiting tickets that one identity may have.
    #[arg(
        long,
        env = "PEARING_LIVE_TICKETS_PER_IDENTITY",
        value_name = "COUNT",
        default_value_t = 10_000,
        value_parser = clap::value_parser!(u32).range(1..=100_000)
    )]
    pub live_tickets_per_identity: u32,
    /// Identities that may wait for one lock.
    #[arg(
        long,
        env = "PEARING_PLACES_PER_LOCK",
        value_name = "COUNT",
        default_value_t = 10_000,
        value_parser = clap::value_parser!(u32).range(1..=100_000)
    )]
    pub places_per_lock: u32,
}

impl ServeOptions {
    /// The limits of the core.
    pub fn limits(&self) -> Limits {
        Limits {
            live_tickets_per_identity: self.live_tickets_per_identity,
            places_per_lock: self.places_per_lock,
        }
    }
}

/// How logs are written. They go to stderr.
#[derive(Debug, Clone, Args)]
pub struct LogOptions {
    /// What is logged: a level, or a list of TARGET=LEVEL.
    #[arg(long, global = true, env = "PEARING_LOG", value_name = "FILTER", default_value = "info")]
    pub log: String,
    /// The form of a log line.
    #[arg(
        long,
        global = true,
        env = "PEARING_LOG_FORMAT",
        value_name = "FORMAT",
        default_value = "text"
    )]
    pub log_format: LogFormat,
}

/// The form of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}
