//! The command line: commands, flags, and what their values must be.
//!
//! A value is parsed into the type that can't be wrong, so a wrong one ends here with exit code 2
//! and nothing is sent. Deliberately absent: a flag for the token, which every process list shows.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use super::note_args::NoteCommand;
use crate::domain::access::Role;
use crate::domain::id::{FenceToken, RequestUuid, Sequence, TicketId, TokenId};
use crate::domain::name::{LockName, TeamName, UserName};
use crate::domain::scope::{LockKey, Scope, ScopeKind};
use crate::domain::text::ShortText;
use crate::domain::time::{LeaseSeconds, WaitSeconds};

const AFTER_HELP: &str = "\
Environment:
  PEARING_URL     where the server is (default http://127.0.0.1:7420)
  PEARING_TOKEN   the token, unless --token-file is given
  PEARING_OUTPUT  json is the same as --json; text is the default

Exit codes:
  0   done; of acquire-lock: the lock is HELD
  10  waiting          3  contended            4  deadlock rejected
  9   wait ended       5  ownership lost       6  not found
  7   not authenticated or not allowed         2  usage or invalid argument
  8   unreachable or busy: retry with the same request UUID
  1   any other error

Results go to stdout, messages to stderr. A failed acquire-lock prints nothing on stdout, unless \
--json is given: then it prints the ticket that was recorded.";

/// Take, keep and release lease locks of a Pearing server.
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

/// What holds for every command.
#[derive(Debug, Args)]
pub(super) struct Global {
    /// Where the server is
    #[arg(long, global = true, env = "PEARING_URL", default_value = "http://127.0.0.1:7420")]
    pub(super) url: String,
    /// A file that holds the token and that nobody else can read; wins over PEARING_TOKEN
    #[arg(long, global = true, value_name = "PATH")]
    pub(super) token_file: Option<PathBuf>,
    /// Print the response's JSON on one line
    #[arg(long, global = true)]
    pub(super) json: bool,
}

/// The scope, by exactly one of three flags.
#[derive(Debug, Clone, Args)]
#[group(required = true, multiple = false)]
pub(super) struct ScopeArgs {
    /// A repository, like teams/platform/website or users/ana/notes
    #[arg(long, value_parser = repo, value_name = "REPO")]
    repo: Option<Scope>,
    /// A team, like platform
    #[arg(long, value_parser = named::<TeamName>("team"), value_name = "TEAM")]
    team: Option<TeamName>,
    /// A user, like ana
    #[arg(long, value_parser = named::<UserName>("user"), value_name = "USER")]
    user: Option<UserName>,
}

/// The scope, by at most one of three flags.
#[derive(Debug, Clone, Args)]
#[group(required = false, multiple = false)]
pub(super) struct ScopeIfAny {
    /// Only of a repository, like teams/platform/website
    #[arg(long, value_parser = repo, value_name = "REPO")]
    repo: Option<Scope>,
    /// Only of a team's own scope, like platform
    #[arg(long, value_parser = named::<TeamName>("team"), value_name = "TEAM")]
    team: Option<TeamName>,
    /// Only of a user's own scope, like ana
    #[arg(long, value_parser = named::<UserName>("user"), value_name = "USER")]
    user: Option<UserName>,
}

fn scope_of(
    repo: &Option<Scope>,
    team: &Option<TeamName>,
    user: &Option<UserName>,
) -> Option<Scope> {
    repo.clone()
        .or_else(|| team.as_ref().map(Scope::team))
        .or_else(|| user.as_ref().map(Scope::user))
}

impl ScopeArgs {
    /// The scope.
    pub(super) fn scope(&self) -> Scope {
        scope_of(&self.repo, &self.team, &self.user).expect("the flags' group is required")
    }
}

impl ScopeIfAny {
    /// The scope, if one is given.
    pub(super) fn scope(&self) -> Option<Scope> {
        scope_of(&self.repo, &self.team, &self.user)
    }
}

/// A lock: its name and its scope.
#[derive(Debug, Clone, Args)]
pub(super) struct LockArgs {
    /// The lock's name, like thread-work.42
    #[arg(value_name = "NAME", value_parser = named::<LockName>("lock_name"))]
    lock_name: LockName,
    #[command(flatten)]
    scope: ScopeArgs,
}

impl LockArgs {
    /// The lock.
    pub(super) fn lock(&self) -> LockKey {
        LockKey { scope: self.scope.scope(), lock_name: self.lock_name.clone() }
    }
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
    /// The most items to answer
    #[arg(long, value_name = "COUNT")]
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
    /// Take a lock, or wait for it; answers at once, unless told to --block
    AcquireLock(AcquireArgs),
    /// Read a ticket
    GetLockTicket {
        #[command(flatten)]
        ticket: TicketArgs,
        /// Exit with the code of the ticket's state
        #[arg(long)]
        exit_status: bool,
        /// Wait until the ticket has stopped waiting, but no longer than this
        #[arg(long, value_name = "SECONDS", default_value_t = 0)]
        wait: u32,
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
    /// Threads and activity.
    #[command(flatten)]
    Note(NoteCommand),
    /// Show who the token stands for
    Whoami,
    /// Identities.
    #[command(flatten)]
    Identity(IdentityCommand),
    /// Scopes and access.
    #[command(flatten)]
    Access(AccessCommand),
}

/// A command about users and their tokens.
#[derive(Debug, Subcommand)]
pub(super) enum IdentityCommand {
    /// Make a user (server's administrators)
    CreateUser {
        #[arg(value_parser = named::<UserName>("user"))]
        user: UserName,
        /// It administers the server
        #[arg(long)]
        admin: bool,
    },
    /// Take a user out of service
    DisableUser {
        #[arg(value_parser = named::<UserName>("user"))]
        user: UserName,
    },
    /// Put a disabled user back into service
    EnableUser {
        #[arg(value_parser = named::<UserName>("user"))]
        user: UserName,
    },
    /// List the users
    ListUsers(PageArgs),
    /// Make a token for a user, and print it this once, alone
    CreateToken {
        #[arg(value_parser = named::<UserName>("user"))]
        user: UserName,
        /// What it is for
        #[arg(long, value_parser = short_text("label"))]
        label: Option<ShortText>,
        /// When it stops working; never if left out
        #[arg(long, value_name = "DAYS")]
        expires_in_days: Option<u32>,
    },
    /// End a token
    RevokeToken {
        #[arg(value_name = "TOKEN_ID", value_parser = uuid::<TokenId>("token_id"))]
        token_id: TokenId,
    },
    /// List the tokens, without their secrets
    ListTokens(PageArgs),
    /// Make an identity for an agent of yours, or another token for it, and print the token this
    /// once, alone
    CreateAgent {
        /// The agent's own name: it becomes the user YOU.NAME
        name: String,
        /// What the token is for
        #[arg(long, value_parser = short_text("label"))]
        label: Option<ShortText>,
        /// When the token stops working; never if left out
        #[arg(long, value_name = "DAYS")]
        expires_in_days: Option<u32>,
    },
    /// List your agents
    ListAgents(PageArgs),
    /// End all tokens of an agent of yours
    RevokeAgentTokens {
        /// The agent's own name
        name: String,
    },
}

/// A command about teams, repositories and access.
#[derive(Debug, Subcommand)]
pub(super) enum AccessCommand {
    /// Make a team
    CreateTeam {
        #[arg(value_parser = named::<TeamName>("team"))]
        team: TeamName,
    },
    /// List the teams
    ListTeams(PageArgs),
    /// Add a user to a team, or change its role there
    SetTeamMember {
        #[arg(value_parser = named::<TeamName>("team"))]
        team: TeamName,
        #[arg(value_parser = named::<UserName>("user"))]
        user: UserName,
        /// read, write or admin; holds in the team's repositories too
        #[arg(long, value_parser = named::<Role>("role"))]
        role: Role,
    },
    /// Take a user out of a team
    RemoveTeamMember {
        #[arg(value_parser = named::<TeamName>("team"))]
        team: TeamName,
        #[arg(value_parser = named::<UserName>("user"))]
        user: UserName,
    },
    /// List a team's members
    ListTeamMembers {
        #[arg(value_parser = named::<TeamName>("team"))]
        team: TeamName,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Make a repository, like teams/platform/website
    CreateRepo {
        #[arg(value_parser = repo)]
        repo: Scope,
    },
    /// List the repositories
    ListRepos(PageArgs),
    /// Give a user a role in a scope, or change it
    GrantAccess {
        /// Who gets it; the scope is given by a flag
        #[arg(value_name = "GRANTEE", id = "grantee", value_parser = named::<UserName>("user"))]
        grantee: UserName,
        /// read, write or admin
        #[arg(long, value_parser = named::<Role>("role"))]
        role: Role,
        #[command(flatten)]
        scope: ScopeArgs,
    },
    /// Take a user's direct grant in a scope away
    RevokeAccess {
        /// Whose it is; the scope is given by a flag
        #[arg(value_name = "GRANTEE", id = "grantee", value_parser = named::<UserName>("user"))]
        grantee: UserName,
        #[command(flatten)]
        scope: ScopeArgs,
    },
    /// List the direct grants in a scope
    ListAccess {
        #[command(flatten)]
        scope: ScopeArgs,
        #[command(flatten)]
        page: PageArgs,
    },
}

/// What is said of a wrong value: the same words as the server's.
fn invalid(field: &str, rule: impl std::fmt::Display) -> String {
    format!("invalid-argument: {field} {rule}")
}

pub(super) type Parsed<T> = Result<T, String>;

pub(super) fn named<T>(
    field: &'static str,
) -> impl Fn(&str) -> Parsed<T> + Clone + Send + Sync + 'static
where
    T: std::str::FromStr<Err: std::fmt::Display>,
{
    move |text| text.parse().map_err(|rule| invalid(field, rule))
}

pub(super) fn uuid<T: std::str::FromStr>(
    field: &'static str,
) -> impl Fn(&str) -> Parsed<T> + Clone + Send + Sync + 'static {
    move |text| text.parse().map_err(|_| invalid(field, "must be a UUID"))
}

pub(super) fn short_text(
    field: &'static str,
) -> impl Fn(&str) -> Parsed<ShortText> + Clone + Send + Sync + 'static {
    move |text| ShortText::try_from(text.to_owned()).map_err(|rule| invalid(field, rule))
}

pub(super) fn repo(text: &str) -> Parsed<Scope> {
    let scope: Scope = text.parse().map_err(|_| invalid("repo", Scope::REPO_RULE))?;
    match scope.kind() {
        ScopeKind::Repo(_) => Ok(scope),
        ScopeKind::Team(_) | ScopeKind::User(_) => Err(invalid("repo", Scope::REPO_RULE)),
    }
}

fn lease(text: &str) -> Parsed<LeaseSeconds> {
    let rule = || invalid("lease_seconds", LeaseSeconds::RULE);
    let seconds: u64 = text.parse().map_err(|_| rule())?;
    LeaseSeconds::try_from(seconds).map_err(|_| rule())
}

fn wait(text: &str) -> Parsed<WaitSeconds> {
    let rule = || invalid("wait_seconds", WaitSeconds::RULE);
    let seconds: u64 = text.parse().map_err(|_| rule())?;
    WaitSeconds::try_from(seconds).map_err(|_| rule())
}

fn sequence(text: &str) -> Parsed<Sequence> {
    text.parse().map(Sequence).map_err(|_| invalid("after", "must be a sequence"))
}

fn fence_token(text: &str) -> Parsed<FenceToken> {
    text.parse()
        .map(|fence| FenceToken(Sequence(fence)))
        .map_err(|_| invalid("fence_token", "must be a whole number"))
}

#[cfg(test)]
#[path = "args_tests.rs"]
mod tests;
