//! What an event means to those who hold a lock, or wait for it.

use crate::domain::access::Role;
use crate::domain::event::{
    Event, LedgerRecovered, LedgerRestored, LockAcquired, LockContended, LockDeadlockRejected,
    LockHeartbeat, LockPromoted, LockQueued,
};
use crate::domain::id::TicketId;
use crate::domain::name::{TeamName, UserName};
use crate::domain::scope::Scope;
use crate::domain::text::ShortText;
use crate::domain::time::Time;

/// What an event means to them.
pub(super) enum Bearing<'a> {
    /// A ticket is held at once.
    Taken(&'a LockAcquired),
    /// A ticket waits.
    Queued(&'a LockQueued),
    /// A ticket is over at once, since the lock was taken.
    Contended(&'a LockContended),
    /// A ticket is over at once, since its wait would have closed a cycle.
    Rejected(&'a LockDeadlockRejected),
    /// A waiting ticket is held.
    Promoted(&'a LockPromoted),
    /// A lease is extended.
    Beaten(&'a LockHeartbeat),
    /// A held ticket is over.
    Over(Over<'a>),
    /// A waiting ticket is over.
    Left(Left<'a>),
    /// Holders get their grace.
    Recovered(&'a LedgerRecovered),
    /// Events may be lost.
    Restored(&'a LedgerRestored),
    /// A role is given, changed or taken, or a user disabled.
    Access(Access<'a>),
    /// Nothing.
    Nothing,
}

/// What may take an access away.
pub(super) enum Access<'a> {
    Disabled(&'a UserName),
    /// A role in a team from now on, or none.
    Member(&'a TeamName, &'a UserName, Option<Role>),
    /// A direct grant from now on, or none.
    Grant(&'a Scope, &'a UserName, Option<Role>),
}

/// The end of a held ticket.
pub(super) struct Over<'a> {
    pub(super) owner: &'a UserName,
    pub(super) how: Ended<'a>,
    /// How many tickets of its hold are left.
    pub(super) depth: u32,
}

/// How a held ticket ends.
pub(super) enum Ended<'a> {
    Released,
    /// With the deadline that passed.
    Expired(Time),
    /// With the reason.
    Broken(&'a ShortText),
}

/// The end of a waiting ticket.
pub(super) struct Left<'a> {
    pub(super) ticket_id: TicketId,
    pub(super) owner: &'a UserName,
    pub(super) how: Gone,
}

/// How a waiting ticket ends.
pub(super) enum Gone {
    GaveUp,
    /// With the deadline that passed.
    TimedOut(Time),
    LostAccess,
}

pub(super) fn bearing(event: &Event) -> Bearing<'_> {
    match event {
        Event::LockAcquired(e) => Bearing::Taken(e),
        Event::LockQueued(e) => Bearing::Queued(e),
        Event::LockContended(e) => Bearing::Contended(e),
        Event::LockDeadlockRejected(e) => Bearing::Rejected(e),
        Event::LockPromoted(e) => Bearing::Promoted(e),
        Event::LockHeartbeat(e) => Bearing::Beaten(e),
        Event::LockReleased(e) => {
            Bearing::Over(Over { owner: &e.owner, how: Ended::Released, depth: e.depth })
        }
        Event::LockExpired(e) => {
            let how = Ended::Expired(e.lease_expires_at);
            Bearing::Over(Over { owner: &e.owner, how, depth: e.depth })
        }
        Event::LockBroken(e) => {
            let how = Ended::Broken(&e.reason);
            Bearing::Over(Over { owner: &e.owner, how, depth: e.depth })
        }
        Event::LockWaitCancelled(e) => {
            let how = if e.reason.is_some() { Gone::LostAccess } else { Gone::GaveUp };
            Bearing::Left(Left { ticket_id: e.ticket_id, owner: &e.owner, how })
        }
        Event::LockWaitTimedOut(e) => {
            let how = Gone::TimedOut(e.wait_expires_at);
            Bearing::Left(Left { ticket_id: e.ticket_id, owner: &e.owner, how })
        }
        Event::LedgerRecovered(e) => Bearing::Recovered(e),
        Event::LedgerRestored(e) => Bearing::Restored(e),
        Event::UserDisabled(e) => Bearing::Access(Access::Disabled(&e.user)),
        Event::TeamMemberAdded(e) => {
            Bearing::Access(Access::Member(&e.team, &e.user, Some(e.role)))
        }
        Event::TeamMemberRemoved(e) => Bearing::Access(Access::Member(&e.team, &e.user, None)),
        Event::AccessGranted(e) => Bearing::Access(Access::Grant(&e.scope, &e.user, Some(e.role))),
        Event::AccessRevoked(e) => Bearing::Access(Access::Grant(&e.scope, &e.user, None)),
        Event::LedgerOpened(_)
        | Event::UserCreated(_)
        | Event::UserEnabled(_)
        | Event::TokenIssued(_)
        | Event::TokenRevoked(_)
        | Event::TeamCreated(_)
        | Event::RepoCreated(_)
        | Event::ActivityUpdated(_)
        | Event::ActivityCleared(_)
        | Event::ThreadCreated(_)
        | Event::ThreadReplied(_)
        | Event::ThreadClosed(_)
        | Event::ThreadReopened(_) => Bearing::Nothing,
    }
}
