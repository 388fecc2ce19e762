//! What callers may ask of the ledger. A command is a wish: [`decide`](super::decide) turns it
//! into events, or refuses it.

use super::id::{FenceToken, ReplyId, RequestUuid, TicketId, TokenId};
use super::name::{TeamName, UserName};
use super::scope::{LockKey, Scope};
use super::text::{ActivityText, ShortText, ThreadBody};
use super::thread::{ReplyInput, ThreadKey, ThreadNumber, WriteTerms};
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
    /// Make an identity for an agent of the caller's, if it has none of that name, and record a
    /// token that was made for it.
    CreateAgent {
        /// The user: the caller's name, a dot, and the agent's own name.
        agent: UserName,
        /// The token's public part.
        token_id: TokenId,
        /// The SHA-256 of the token; the token itself is never recorded.
        sha256: TokenHash,
        /// What it is for.
        label: Option<ShortText>,
        /// Days until it expires; never if not given.
        expires_in_days: Option<u32>,
    },
    /// End all tokens of an agent of the caller's.
    RevokeAgentTokens {
        /// The agent.
        agent: UserName,
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
    /// Say what the caller is doing.
    UpdateActivity {
        /// In its own words.
        activity: ActivityText,
        /// The caller's name for the request, if it gave one.
        request_uuid: Option<RequestUuid>,
    },
    /// Say that the caller is doing nothing.
    ClearActivity,
    /// Begin a thread.
    CreateThread {
        /// The repository.
        scope: Scope,
        /// The number that it mirrors; the next one if not given.
        number: Option<ThreadNumber>,
        /// What it is called.
        title: ShortText,
        /// What it is about.
        body: ThreadBody,
        /// What the write is tied to.
        terms: WriteTerms,
    },
    /// Reply to a thread, or to a reply in it.
    CreateReply {
        /// The thread.
        thread: ThreadKey,
        /// The id that the reply gets if this is no retry.
        reply_id: ReplyId,
        /// The reply.
        input: ReplyInput,
        /// What the write is tied to.
        terms: WriteTerms,
    },
    /// Say that a thread has no work left.
    CloseThread {
        /// The thread.
        thread: ThreadKey,
        /// What the write is tied to.
        terms: WriteTerms,
    },
    /// Say that a thread has work left after all.
    ReopenThread {
        /// The thread.
        thread: ThreadKey,
        /// What the write is tied to.
        terms: WriteTerms,
    },
}
