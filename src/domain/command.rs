//! What callers may ask of the ledger. A command is a wish: [`decide`](super::decide) turns it
//! into events, or refuses it.

use super::id::{FenceToken, TicketId, TokenId};
use super::name::{TeamName, UserName};
use super::scope::{LockKey, Scope};
use super::text::ShortText;
use super::ticket::TicketInput;
use super::time::LeaseSeconds;

use super::access::{Role, TokenHash};

/// Who gives a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// The bearer of a token. The token is judged when the command is decided.
    Token(TokenId),
    /// The server itself, when it sets up a data directory.
    Ledger,
}

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Take a lock, join an own hold, or wait.
    AcquireLock {
        /// The id that the ticket gets if this is no retry.
        ticket_id: TicketId,
        /// What is asked for.
        input: TicketInput,
    },
    /// Extend the lease of a held ticket.
    HeartbeatTicket {
        /// The lock that the caller believes the ticket to be for.
        lock: LockKey,
        /// The ticket.
        ticket_id: TicketId,
        /// The new lease from now; the ticket's own if not given.
        lease: Option<LeaseSeconds>,
    },
    /// Let go of a held ticket, or give up a waiting one.
    ReleaseTicket {
        /// The lock that the caller believes the ticket to be for.
        lock: LockKey,
        /// The ticket.
        ticket_id: TicketId,
    },
    /// End somebody's hold.
    BreakLock {
        /// The lock.
        lock: LockKey,
        /// The hold that is meant, so that no newer one is broken.
        fence_token: FenceToken,
        /// Why.
        reason: ShortText,
    },
    /// Make a user.
    CreateUser {
        /// The name.
        user: UserName,
        /// Whether it administers the server.
        admin: bool,
    },
    /// Take a user out of service.
    DisableUser {
        /// The user.
        user: UserName,
    },
    /// Put a disabled user back into service.
    EnableUser {
        /// The user.
        user: UserName,
    },
    /// Record a token that was made for a user.
    IssueToken {
        /// Its public part.
        token_id: TokenId,
        /// The user.
        user: UserName,
        /// The SHA-256 of the token; the token itself is never recorded.
        sha256: TokenHash,
        /// What it is for.
        label: Option<ShortText>,
        /// Days until it expires; never if not given.
        expires_in_days: Option<u32>,
    },
    /// End a token.
    RevokeToken {
        /// The token.
        token_id: TokenId,
    },
    /// Make a team.
    CreateTeam {
        /// The name.
        team: TeamName,
    },
    /// Add a user to a team, or change its role there.
    SetTeamMember {
        /// The team.
        team: TeamName,
        /// The user.
        user: UserName,
        /// What it may do in the team and its repositories.
        role: Role,
    },
    /// Take a user out of a team.
    RemoveTeamMember {
        /// The team.
        team: TeamName,
        /// The user.
        user: UserName,
    },
    /// Make a repository.
    CreateRepo {
        /// Its scope.
        repo: Scope,
    },
    /// Give a user a role in a scope, or change it.
    GrantAccess {
        /// The scope.
        scope: Scope,
        /// The user.
        user: UserName,
        /// What it may do there.
        role: Role,
    },
    /// Take a direct grant away.
    RevokeAccess {
        /// The scope.
        scope: Scope,
        /// The user.
        user: UserName,
    },
}
