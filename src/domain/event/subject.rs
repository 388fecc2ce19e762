//! What an event is about: whose business it is, its subject on the wire, its lock or thread.
//!
//! Who may see an event follows from this and from access as it is now; nothing is decided here.

use super::super::id::{TicketId, TokenId};
use super::super::name::{LockName, TeamName, UserName};
use super::super::scope::{LockKey, Scope};
use super::super::thread::{ThreadKey, ThreadNumber};
use super::Event;

/// Whose business an event is, as far as access to it and filters need to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// The ledger itself: everyone's business.
    Ledger,
    /// A user, or one of its tokens: that user's business, and the server administrators'.
    User(UserName),
    /// What a user is doing: also the business of whoever shares a team or repository with it.
    Activity(UserName),
    /// Something in a scope: the business of whoever can read the scope.
    Scope(Scope),
}

/// The thing that an event is about.
enum Thing<'a> {
    Ledger,
    User(&'a UserName),
    Token(&'a UserName, TokenId),
    Activity(&'a UserName),
    Team(&'a TeamName),
    Member(&'a TeamName, &'a UserName),
    Repo(&'a Scope),
    Access(&'a Scope, &'a UserName),
    Lock(&'a Scope, &'a LockName, TicketId),
    Thread(&'a Scope, ThreadNumber),
}

impl Event {
    fn thing(&self) -> Thing<'_> {
        macro_rules! lock {
            ($data:expr) => {
                Thing::Lock(&$data.scope, &$data.lock_name, $data.ticket_id)
            };
        }
        match self {
            Self::LedgerOpened(_) | Self::LedgerRecovered(_) | Self::LedgerRestored(_) => {
                Thing::Ledger
            }
            Self::UserCreated(data) => Thing::User(&data.user),
            Self::UserDisabled(data) | Self::UserEnabled(data) => Thing::User(&data.user),
            Self::TokenIssued(data) => Thing::Token(&data.user, data.token_id),
            Self::TokenRevoked(data) => Thing::Token(&data.user, data.token_id),
            Self::TeamCreated(data) => Thing::Team(&data.team),
            Self::TeamMemberAdded(data) => Thing::Member(&data.team, &data.user),
            Self::TeamMemberRemoved(data) => Thing::Member(&data.team, &data.user),
            Self::RepoCreated(data) => Thing::Repo(&data.repo),
            Self::AccessGranted(data) => Thing::Access(&data.scope, &data.user),
            Self::AccessRevoked(data) => Thing::Access(&data.scope, &data.user),
            Self::LockAcquired(data) => lock!(data),
            Self::LockQueued(data) => lock!(data),
            Self::LockContended(data) => lock!(data),
            Self::LockDeadlockRejected(data) => lock!(data),
            Self::LockHeartbeat(data) => lock!(data),
            Self::LockPromoted(data) => lock!(data),
            Self::LockReleased(data) => lock!(data),
            Self::LockExpired(data) => lock!(data),
            Self::LockBroken(data) => lock!(data),
            Self::LockWaitCancelled(data) => lock!(data),
            Self::LockWaitTimedOut(data) => lock!(data),
            Self::ActivityUpdated(data) => Thing::Activity(&data.user),
            Self::ActivityCleared(data) => Thing::Activity(&data.user),
            Self::ThreadCreated(data) => Thing::Thread(&data.scope, data.number),
            Self::ThreadReplied(data) => Thing::Thread(&data.scope, data.number),
            Self::ThreadClosed(data) | Self::ThreadReopened(data) => {
                Thing::Thread(&data.scope, data.number)
            }
        }
    }

    /// Whose business the event is.
    pub fn concerns(&self) -> Subject {
        match self.thing() {
            Thing::Ledger => Subject::Ledger,
            Thing::User(user) | Thing::Token(user, _) => Subject::User(user.clone()),
            Thing::Activity(user) => Subject::Activity(user.clone()),
            Thing::Team(team) | Thing::Member(team, _) => Subject::Scope(Scope::team(team)),
            Thing::Repo(scope)
            | Thing::Access(scope, _)
            | Thing::Lock(scope, ..)
            | Thing::Thread(scope, _) => Subject::Scope(scope.clone()),
        }
    }

    /// The subject on the wire: the scope, then what in it.
    pub fn subject(&self) -> String {
        match self.thing() {
            Thing::Ledger => "ledger".to_owned(),
            Thing::User(user) => format!("users/{user}"),
            Thing::Token(user, token_id) => format!("users/{user}/tokens/{token_id}"),
            Thing::Activity(user) => format!("users/{user}/activity"),
            Thing::Team(team) => format!("teams/{team}"),
            Thing::Member(team, user) => format!("teams/{team}/members/{user}"),
            Thing::Repo(scope) => scope.to_string(),
            Thing::Access(scope, user) => format!("{scope}/access/{user}"),
            Thing::Lock(scope, lock_name, _) => format!("{scope}/locks/{lock_name}"),
            Thing::Thread(scope, number) => format!("{scope}/threads/{number}"),
        }
    }

    /// The lock and the ticket of a `lock.*` event.
    pub fn lock_and_ticket(&self) -> Option<(LockKey, TicketId)> {
        let Thing::Lock(scope, lock_name, ticket_id) = self.thing() else { return None };
        Some((LockKey { scope: scope.clone(), lock_name: lock_name.clone() }, ticket_id))
    }

    /// The thread of a `thread.*` event.
    pub fn thread(&self) -> Option<ThreadKey> {
        let Thing::Thread(scope, number) = self.thing() else { return None };
        Some(ThreadKey { scope: scope.clone(), number })
    }
}
