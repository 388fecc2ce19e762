//! The command line: commands, flags, and what their values must be.
//!
//! A value is parsed into the type that can't be wrong, so a wrong one ends here with exit code 2
//! and nothing is sent. Deliberately absent: a flag for the token, which every process list shows.

mod activity;
mod admin;
mod agent;
mod guard;
mod ledger;
mod setup;
mod thread;
mod timeline;
mod value;
mod vendor;
mod work;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueHint};

use super::profiles::ProfileName;
use crate::client::ServerUrl;
use crate::domain::id::{FenceToken, RequestUuid, Sequence, TicketId};
use crate::domain::name::LockName;
use crate::domain::scope::LockKey;
use crate::domain::text::ShortText;
use crate::domain::time::{LeaseSeconds, WaitSeconds};
pub(super) use crate::flags::{LockArgs, ScopeArgs, ScopeIfAny};
use crate::flags::{named, uuid};
pub(super) use activity::ActivityCommand;
pub(super) use admin::{AccessCommand, IdentityCommand};
pub(super) use agent::AgentCommand;
pub(super) use guard::{GitPushArgs, GuardCommand, advised};
pub(super) use ledger::LedgerCommand;
pub(super) use setup::SetupCommand;
pub(super) use thread::{BodyArgs, TermsArgs, ThreadCommand, Under};
pub(super) use timeline::TimelineArgs;
use value::{fence_token, lease, limit, sequence, server_url, short_text, wait};
pub(super) use vendor::{HookArgs, SetupArgs, Vendor};
pub(super) use work::{OnConflict, RespondArgs, WithLockArgs};

const AFTER_HELP: &str = "\
Environment:
  PEARING_URL          where the server is, as --url
  PEARING_TOKEN        the token, unless --token-file or --profile is given
  PEARING_PROFILE      which profile, as --profile; its token only if PEARING_TOKEN isn't set
  PEARING_CONFIG       the file of profiles, as --config
  XDG_CONFIG_HOME      where that file is without PEARING_CONFIG: pearing/config.toml below it
  XDG_STATE_HOME       where respond keeps how far it has come: pearing/ below it
  PEARING_OUTPUT       json is the same as --json; text is the default
  PEARING_LOCK_NAME    with PEARING_FENCE_TOKEN: the hold that a thread is written under, or that
  PEARING_FENCE_TOKEN    git-push is done under, as --fence-lock and --fence-token
  PEARING_SCOPE        where that lock is; in another scope than the thread's it doesn't count
  CLAUDE_CONFIG_DIR    where Claude Code has its configuration, for setup and doctor
  CODEX_HOME           the same of Codex

Exit codes:
  0   done; of acquire-lock: the lock is HELD
  10  waiting          3  contended            4  deadlock rejected
  9   wait ended       5  ownership lost       6  not found
  7   not authenticated or not allowed         2  usage or invalid argument
  8   unreachable or busy: retry with the same request UUID
  1   any other error
with-lock ends with its command's exit code, or with 124 (not acquired) or 125 (lock lost, or
failed), and says on stderr whose it is.

Results go to stdout, messages to stderr. What is refused prints nothing on stdout, unless --json \
is given: then it prints the problem (RFC 9457), with the ticket if one was recorded.";

/// Take, keep and release lease locks of a Pearing server, say what you are doing, and leave word
/// in threads.
#[derive(Debug, Parser)]
#[command(name = "pearing-cli", version, after_help = AFTER_HELP)]
pub(super) struct Cli {
    /// What holds for every command.
    #[command(flatten)]
    pub(super) global: Global,
    /// The command.
    #[command(subcommand)]
    pub(super) command: Command,
}

/// What holds for every command. What the environment says besides is not asked for here: a value
/// from there would be shown in the usage line, and it doesn't say where it came from.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "For every command")]
pub(super) struct Global {
    /// Where the server is [default: PEARING_URL, the profile's, or http://127.0.0.1:7420]
    #[arg(long, global = true, value_parser = server_url, value_hint = ValueHint::Url)]
    pub(super) url: Option<ServerUrl>,
    /// A file that holds the token and that nobody else can read; wins over all other tokens
    #[arg(long, global = true, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(super) token_file: Option<PathBuf>,
    /// Whose token and server, of those logged in [default: PEARING_PROFILE, or default]
    #[arg(long, global = true, value_name = "NAME", value_parser = named::<ProfileName>("profile"))]
    pub(super) profile: Option<ProfileName>,
    /// The file of profiles [default: PEARING_CONFIG, or ~/.config/pearing/config.toml]
    #[arg(long, global = true, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(super) config: Option<PathBuf>,
    /// Print the response's JSON on one line, also that of a refusal
    #[arg(long, global = true)]
    pub(super) json: bool,
}

/// A ticket: its lock and its id.
#[derive(Debug, Clone, Args)]
pub(super) struct TicketArgs {
    /// The lock's name, like thread-work.42
    #[arg(value_name = "NAME", value_parser = named::<LockName>("lock_name"))]
    lock_name: LockName,
    /// The ticket's id, as acquire-lock answered it
    #[arg(value_name = "TICKET", value_parser = uuid::<TicketId>("ticket_id"))]
    pub(super) ticket_id: TicketId,
    #[command(flatten)]
    scope: ScopeArgs,
}

impl TicketArgs {
    /// The lock.
    pub(super) fn lock(&self) -> LockKey {
        LockKey { scope: self.scope.scope(), lock_name: self.lock_name.clone() }
    }
}

/// Which part of a list.
#[derive(Debug, Clone, Args)]
pub(super) struct PageArgs {
    /// Go on after the page before: its `next`
    #[arg(long, value_name = "NEXT")]
    pub(super) cursor: Option<String>,
    /// The most items to answer, 1 to 1000 [default: 100]
    #[arg(long, value_name = "COUNT", value_parser = limit)]
    pub(super) limit: Option<u32>,
}

/// What acquire-lock asks for.
#[derive(Debug, Args)]
pub(super) struct AcquireArgs {
    #[command(flatten)]
    pub(super) lock: LockArgs,
    /// Names this request, so that a retry of it is known as such; made and printed if left out
    #[arg(long, value_name = "UUID", value_parser = uuid::<RequestUuid>("request_uuid"))]
    pub(super) request_uuid: Option<RequestUuid>,
    /// The lease, 5 to 300 seconds [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = lease)]
    pub(super) lease_seconds: Option<LeaseSeconds>,
    /// How long to wait in the queue, 0 to 3600 seconds [default: 0]
    #[arg(long, value_name = "SECONDS", value_parser = wait)]
    pub(super) wait_seconds: Option<WaitSeconds>,
    /// Why, shown to those who contend or wait
    #[arg(long, value_parser = short_text("note"))]
    pub(super) note: Option<ShortText>,
    /// Don't join a hold of the same user: contend with it
    #[arg(long)]
    pub(super) no_reentrant: bool,
    /// Don't return before the ticket has stopped waiting; a signal meanwhile gives it up
    #[arg(long)]
    pub(super) block: bool,
}

/// Which events.
#[derive(Debug, Args)]
pub(super) struct FilterArgs {
    #[command(flatten)]
    pub(super) scope: ScopeIfAny,
    /// Only about the lock of this name
    #[arg(long, value_name = "NAME", value_parser = named::<LockName>("lock"))]
    pub(super) lock: Option<LockName>,
    /// Only of these types, like lock.*; can be given more than once
    #[arg(long = "type", value_name = "GLOB", value_delimiter = ',')]
    pub(super) types: Vec<String>,
    /// Not of these types; can be given more than once
    #[arg(long = "exclude-type", value_name = "GLOB", value_delimiter = ',')]
    pub(super) exclude_types: Vec<String>,
    /// Only caused by this user, or by ledger
    #[arg(long, value_name = "USER")]
    pub(super) actor: Option<String>,
}

/// A command.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// What asks the server.
    #[command(flatten)]
    Call(Call),
    /// What is set up on this machine.
    #[command(flatten)]
    Setup(SetupCommand),
    /// What agents and jobs work with.
    #[command(flatten)]
    Agent(AgentCommand),
}

/// A command that asks the server.
#[derive(Debug, Subcommand)]
pub(super) enum Call {
    /// Take a lock, or wait for it; answers at once, unless told to --block
    AcquireLock(AcquireArgs),
    /// Read a ticket
    GetLockTicket {
        #[command(flatten)]
        ticket: TicketArgs,
        /// Exit with the code of the ticket's state
        #[arg(long)]
        exit_status: bool,
        /// Wait until the ticket has stopped waiting, but no longer than this, 0 to 3600 seconds
        /// [default: 0]
        #[arg(long, value_name = "SECONDS", value_parser = wait)]
        wait: Option<WaitSeconds>,
    },
    /// Explain why a ticket went as it did, with the events that show it
    WhyLockTicket {
        #[command(flatten)]
        ticket: TicketArgs,
    },
    /// Extend the lease of a held ticket
    HeartbeatLockTicket {
        #[command(flatten)]
        ticket: TicketArgs,
        /// The lease from now, 5 to 300 seconds [default: the ticket's own]
        #[arg(long, value_name = "SECONDS", value_parser = lease)]
        lease_seconds: Option<LeaseSeconds>,
    },
    /// Let go of a held ticket, or give up a waiting one
    ReleaseLockTicket {
        #[command(flatten)]
        ticket: TicketArgs,
    },
    /// Read who holds a lock and who waits for it
    GetLock {
        #[command(flatten)]
        lock: LockArgs,
        /// As it was then: a sequence or a time
        #[arg(long, value_name = "SEQUENCE|TIME")]
        as_of: Option<String>,
    },
    /// List the held locks of a scope
    ListLocks {
        #[command(flatten)]
        scope: ScopeArgs,
        /// As they were then: a sequence or a time
        #[arg(long, value_name = "SEQUENCE|TIME")]
        as_of: Option<String>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// List one's own live tickets
    ListTickets {
        /// Only the tickets in this state
        #[arg(long, value_parser = ["held", "waiting"])]
        state: Option<String>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// List a lock's events
    LockHistory {
        #[command(flatten)]
        lock: LockArgs,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Draw what happened to a lock, or to all locks of a scope
    LockTimeline(TimelineArgs),
    /// End somebody's hold (administrators of the scope)
    BreakLock {
        #[command(flatten)]
        lock: LockArgs,
        /// The hold that is meant, so that no newer one is broken
        #[arg(long, value_name = "FENCE", value_parser = fence_token)]
        fence_token: FenceToken,
        /// Why
        #[arg(long, value_parser = short_text("reason"))]
        reason: ShortText,
    },
    /// Print events as they happen, one a line; reconnects by itself
    WatchEvents {
        #[command(flatten)]
        filter: FilterArgs,
        /// Begin after this sequence, with 0 at the start; from now on if left out
        #[arg(long, value_name = "SEQUENCE", value_parser = sequence)]
        after: Option<Sequence>,
    },
    /// List events, oldest first
    ListEvents {
        #[command(flatten)]
        filter: FilterArgs,
        /// Begin after this sequence; at the start if left out
        #[arg(long, value_name = "SEQUENCE", value_parser = sequence)]
        after: Option<Sequence>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Activity.
    #[command(flatten)]
    Activity(ActivityCommand),
    /// Threads.
    #[command(flatten)]
    Thread(ThreadCommand),
    /// Show who the token stands for
    Whoami,
    /// Identities.
    #[command(flatten)]
    Identity(IdentityCommand),
    /// Scopes and access.
    #[command(flatten)]
    Access(AccessCommand),
    /// The whole ledger.
    #[command(flatten)]
    Ledger(LedgerCommand),
}

#[cfg(test)]
mod tests;
