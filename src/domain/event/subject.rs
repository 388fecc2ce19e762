//! What an event is about: whose business it is, its subject on the wire, its lock and ticket.
//!
//! Who may see an event follows from this and from access as it is now; nothing is decided here.

use super::super::id::TicketId;
use super::super::name::UserName;
use super::super::scope::{LockKey, Scope};
use super::{
    AccessGranted, AccessRevoked, Event, RepoCreated, TeamCreated, TeamMemberAdded,
    TeamMemberRemoved, TokenIssued, TokenRevoked, UserChanged, UserCreated,
};

/// What an event is about, as far as access to it and filters need to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// The ledger itself: everyone's business.
    Ledger,
    /// A user, or one of its tokens: that user's business, and the server administrators'.
    User(UserName),
    /// Something in a scope: the business of whoever can read the scope.
    Scope(Scope),
}

impl Event {
    /// Whose business the event is.
    pub fn concerns(&self) -> Subject {
        match self {
            Self::LedgerOpened(_) | Self::LedgerRecovered(_) | Self::LedgerRestored(_) => {
                Subject::Ledger
            }
            Self::UserCreated(UserCreated { user, .. })
            | Self::UserDisabled(UserChanged { user })
            | Self::UserEnabled(UserChanged { user })
            | Self::TokenIssued(TokenIssued { user, .. })
            | Self::TokenRevoked(TokenRevoked { user, .. }) => Subject::User(user.clone()),
            Self::TeamCreated(TeamCreated { team })
            | Self::TeamMemberAdded(TeamMemberAdded { team, .. })
            | Self::TeamMemberRemoved(TeamMemberRemoved { team, .. }) => {
                Subject::Scope(Scope::team(team))
            }
            Self::RepoCreated(RepoCreated { repo }) => Subject::Scope(repo.clone()),
            Self::AccessGranted(AccessGranted { scope, .. })
            | Self::AccessRevoked(AccessRevoked { scope, .. }) => Subject::Scope(scope.clone()),
            Self::LockAcquired(_)
            | Self::LockQueued(_)
            | Self::LockContended(_)
            | Self::LockDeadlockRejected(_)
            | Self::LockHeartbeat(_)
            | Self::LockPromoted(_)
            | Self::LockReleased(_)
            | Self::LockExpired(_)
            | Self::LockBroken(_)
            | Self::LockWaitCancelled(_)
            | Self::LockWaitTimedOut(_) => {
                let (lock, _) = self.lock_and_ticket().expect("a lock event has a lock");
                Subject::Scope(lock.scope)
            }
        }
    }

    /// The subject on the wire: the scope, then what in it.
    pub fn subject(&self) -> String {
        match self {
            Self::LedgerOpened(_) | Self::LedgerRecovered(_) | Self::LedgerRestored(_) => {
                "ledger".to_owned()
            }
            Self::UserCreated(UserCreated { user, .. })
            | Self::UserDisabled(UserChanged { user })
            | Self::UserEnabled(UserChanged { user }) => format!("users/{user}"),
            Self::TokenIssued(TokenIssued { user, token_id, .. })
            | Self::TokenRevoked(TokenRevoked { user, token_id }) => {
                format!("users/{user}/tokens/{token_id}")
            }
            Self::TeamCreated(TeamCreated { team }) => format!("teams/{team}"),
            Self::TeamMemberAdded(TeamMemberAdded { team, user, .. })
            | Self::TeamMemberRemoved(TeamMemberRemoved { team, user }) => {
                format!("teams/{team}/members/{user}")
            }
            Self::RepoCreated(RepoCreated { repo }) => repo.to_string(),
            Self::AccessGranted(AccessGranted { scope, user, .. })
            | Self::AccessRevoked(AccessRevoked { scope, user }) => {
                format!("{scope}/access/{user}")
            }
            Self::LockAcquired(_)
            | Self::LockQueued(_)
            | Self::LockContended(_)
            | Self::LockDeadlockRejected(_)
            | Self::LockHeartbeat(_)
            | Self::LockPromoted(_)
            | Self::LockReleased(_)
            | Self::LockExpired(_)
            | Self::LockBroken(_)
            | Self::LockWaitCancelled(_)
            | Self::LockWaitTimedOut(_) => {
                let (lock, _) = self.lock_and_ticket().expect("a lock event has a lock");
                format!("{}/locks/{}", lock.scope, lock.lock_name)
            }
        }
    }

    /// The lock and the ticket of a `lock.*` event.
    pub fn lock_and_ticket(&self) -> Option<(LockKey, TicketId)> {
        macro_rules! of {
            ($data:expr) => {{
                let lock =
                    LockKey { scope: $data.scope.clone(), lock_name: $data.lock_name.clone() };
                Some((lock, $data.ticket_id))
            }};
        }
        match self {
            Self::LockAcquired(data) => of!(data),
            Self::LockQueued(data) => of!(data),
            Self::LockContended(data) => of!(data),
            Self::LockDeadlockRejected(data) => of!(data),
            Self::LockHeartbeat(data) => of!(data),
            Self::LockPromoted(data) => of!(data),
            Self::LockReleased(data) => of!(data),
            Self::LockExpired(data) => of!(data),
            Self::LockBroken(data) => of!(data),
            Self::LockWaitCancelled(data) => of!(data),
            Self::LockWaitTimedOut(data) => of!(data),
            Self::LedgerOpened(_)
            | Self::LedgerRecovered(_)
            | Self::LedgerRestored(_)
            | Self::UserCreated(_)
            | Self::UserDisabled(_)
            | Self::UserEnabled(_)
            | Self::TokenIssued(_)
            | Self::TokenRevoked(_)
            | Self::TeamCreated(_)
            | Self::TeamMemberAdded(_)
            | Self::TeamMemberRemoved(_)
            | Self::RepoCreated(_)
            | Self::AccessGranted(_)
            | Self::AccessRevoked(_) => None,
        }
    }
}
