//! The command line of `pearing`. Each flag of the server is an environment variable too.

mod audit;
mod timeline;

use std::net::{Ipv6Addr, SocketAddr};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::TypedValueParser;
use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;

use crate::domain::Limits;
use crate::domain::name::UserName;

pub use audit::{AuditCommand, ExportForm, LedgerArgs, point};
pub use timeline::TimelineArgs;

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
    /// platform (claude and codex write), the repository teams/platform/website and its thread 42.
    /// Writes each token to DIR/tokens/NAME (mode 0600) and prints the lines to export.
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
    /// What proves and explains what happened.
    #[command(flatten)]
    Audit(AuditCommand),
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
    ("1", "any other error; of diff: there is a difference"),
    ("2", "usage"),
    ("3", "there is no ledger in the data directory"),
    ("4", "another process has the data directory open"),
    ("5", "the ledger is damaged or not whole, or a part of it is missing"),
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
    /// Held and waiting tickets that one scope may have, its repositories not counted.
    #[arg(
        long,
        env = "PEARING_LIVE_TICKETS_PER_SCOPE",
        value_name = "COUNT",
        default_value_t = 50_000,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    pub live_tickets_per_scope: u32,
    /// Identities that may wait for one lock.
    #[arg(
        long,
        env = "PEARING_PLACES_PER_LOCK",
        value_name = "COUNT",
        default_value_t = 10_000,
        value_parser = clap::value_parser!(u32).range(1..=100_000)
    )]
    pub places_per_lock: u32,
    /// Replies that one thread may have.
    #[arg(
        long,
        env = "PEARING_REPLIES_PER_THREAD",
        value_name = "COUNT",
        default_value_t = 1_000,
        value_parser = clap::value_parser!(u32).range(1..=10_000)
    )]
    pub replies_per_thread: u32,
    /// Agents that one person may have.
    #[arg(
        long,
        env = "PEARING_AGENTS_PER_PERSON",
        value_name = "COUNT",
        default_value_t = 100,
        value_parser = clap::value_parser!(u32).range(1..=10_000)
    )]
    pub agents_per_person: u32,
    /// Requests a second that one identity may make; as many at once. Heartbeats and releases are
    /// counted apart, and may be as many again.
    #[arg(
        long,
        env = "PEARING_REQUESTS_PER_SECOND_PER_IDENTITY",
        value_name = "COUNT",
        default_value = "10000",
        value_parser = rate()
    )]
    pub requests_per_second_per_identity: NonZeroU32,
    /// Requests a second that may name one scope, of all identities together; as many at once.
    /// Heartbeats and releases are not counted.
    #[arg(
        long,
        env = "PEARING_REQUESTS_PER_SECOND_PER_SCOPE",
        value_name = "COUNT",
        default_value = "50000",
        value_parser = rate()
    )]
    pub requests_per_second_per_scope: NonZeroU32,
    /// Feeds that one identity may have open.
    #[arg(
        long,
        env = "PEARING_FEEDS_PER_IDENTITY",
        value_name = "COUNT",
        default_value_t = 1_000,
        value_parser = clap::value_parser!(u32).range(1..=10_000)
    )]
    pub feeds_per_identity: u32,
    /// Where the server makes backups when it is asked to, each in a folder of its own. Best on
    /// another disk.
    #[arg(long, env = "PEARING_BACKUP_DIR", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub backup_dir: Option<PathBuf>,
    /// A key that signs checkpoints, made by `checkpoint-key`: its owner's alone, and outside of
    /// the data directory. Without it the server signs none.
    #[arg(
        long,
        env = "PEARING_CHECKPOINT_KEY",
        value_name = "FILE",
        value_hint = ValueHint::FilePath
    )]
    pub checkpoint_key: Option<PathBuf>,
    /// Where the server keeps checkpoints that it signs by itself, SEQUENCE.checkpoint each: a
    /// folder that is there, outside of the data directory. Without it the server signs only when
    /// it is asked.
    #[arg(
        long,
        env = "PEARING_CHECKPOINT_DIR",
        value_name = "DIR",
        value_hint = ValueHint::DirPath,
        requires = "checkpoint_key"
    )]
    pub checkpoint_dir: Option<PathBuf>,
    /// How often it does so, if something happened meanwhile. It does so too when it starts and
    /// when it ends.
    #[arg(
        long,
        env = "PEARING_CHECKPOINT_EVERY_MINUTES",
        value_name = "MINUTES",
        default_value_t = 60,
        value_parser = clap::value_parser!(u32).range(1..=10_080),
        requires = "checkpoint_dir"
    )]
    pub checkpoint_every_minutes: u32,
    /// A host that the server is known by, without a port; may be given more than once. On a
    /// loopback address it answers to `localhost`, `127.0.0.1` and `[::1]` besides; elsewhere it
    /// answers to any host if none is given.
    #[arg(
        long = "allowed-host",
        env = "PEARING_ALLOWED_HOSTS",
        value_name = "NAME",
        value_delimiter = ',',
        value_parser = host
    )]
    pub allowed_hosts: Vec<String>,
}

/// Reads a host: a name, an IPv4 address, or an IPv6 address in brackets.
fn host(text: &str) -> Result<String, &'static str> {
    let bracketed = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let is_host = match bracketed {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => {
            let byte_ok = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
            !text.is_empty() && text.bytes().all(byte_ok)
        }
    };
    if is_host {
        Ok(text.to_owned())
    } else {
        Err("must be a host without scheme and port: a name, an IPv4 address, or an IPv6 address \
             in brackets")
    }
}

/// Reads a rate.
fn rate() -> impl TypedValueParser<Value = NonZeroU32> {
    clap::value_parser!(u32).range(1..=1_000_000).try_map(NonZeroU32::try_from)
}

impl ServeOptions {
    /// How often a checkpoint is signed.
    pub fn checkpoint_every(&self) -> Duration {
        Duration::from_secs(60) * self.checkpoint_every_minutes
    }

    /// The limits of the core.
    pub fn limits(&self) -> Limits {
        Limits {
            live_tickets_per_identity: self.live_tickets_per_identity,
            live_tickets_per_scope: self.live_tickets_per_scope,
            places_per_lock: self.places_per_lock,
            replies_per_thread: self.replies_per_thread,
            agents_per_person: self.agents_per_person,
            ..Limits::default()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn options(flags: &[&str]) -> Option<ServeOptions> {
        let arguments = ["pearing", "serve", "--data", "x"].iter().chain(flags);
        match Cli::try_parse_from(arguments).ok()?.command {
            Command::Serve { serve, .. } => Some(serve),
            Command::Dev { .. }
            | Command::Init { .. }
            | Command::Audit(_)
            | Command::Completions { .. }
            | Command::Man { .. } => None,
        }
    }

    #[test]
    fn a_rate_is_never_none_and_never_without_bound() {
        for flag in ["--requests-per-second-per-identity", "--requests-per-second-per-scope"] {
            for bad in ["0", "1000001", "-1", "many"] {
                assert!(options(&[flag, bad]).is_none(), "{flag} {bad}");
            }
            assert!(options(&[flag, "1"]).is_some() && options(&[flag, "1000000"]).is_some());
        }
        let own =
            options(&["--requests-per-second-per-identity", "7", "--feeds-per-identity", "3"]);
        let own = own.expect("both are in range");
        assert_eq!(own.requests_per_second_per_identity.get(), 7);
        assert_eq!((own.requests_per_second_per_scope.get(), own.feeds_per_identity), (50_000, 3));
    }

    #[test]
    fn checkpoints_are_kept_only_where_there_is_a_key_and_are_neither_rare_nor_endless() {
        let (key, dir) = (["--checkpoint-key", "k"], ["--checkpoint-dir", "d"]);
        let every = |minutes| ["--checkpoint-every-minutes", minutes];
        let given = |flags: &[&[&str]]| options(&flags.concat());
        let own = given(&[&key, &dir, &every("5")]).expect("all is given");
        assert_eq!(own.checkpoint_every(), Duration::from_secs(300));
        let own = given(&[&key, &dir]).expect("the rest has a default");
        assert_eq!(own.checkpoint_every(), Duration::from_secs(3600));
        assert!(given(&[]).is_some() && given(&[&key]).is_some());
        assert!(given(&[&key, &dir, &every("10080")]).is_some());
        for bad in ["0", "10081", "-1", "often"] {
            assert!(given(&[&key, &dir, &every(bad)]).is_none(), "{bad}");
        }
        for bad in [&[&dir[..]][..], &[&every("5")], &[&key, &every("5")]] {
            assert!(given(bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn an_allowed_host_has_no_scheme_and_no_port() {
        let hosts = |flags: &[&str]| options(flags).map(|options| options.allowed_hosts);
        let given = hosts(&["--allowed-host", "a.example,[::1]", "--allowed-host", "192.0.2.1"]);
        assert_eq!(given, Some(["a.example", "[::1]", "192.0.2.1"].map(str::to_owned).to_vec()));
        for bad in ["", "http://a", "a:80", "::1", "[::1]:80", "a b", "a/", "a@b", "*"] {
            assert_eq!(hosts(&["--allowed-host", bad]), None, "{bad}");
        }
    }
}
