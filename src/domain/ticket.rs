//! A ticket: one acquisition by one identity, made once and ended once.

use serde::{Deserialize, Serialize};

use super::id::{FenceToken, RequestUuid, Sequence, TicketId};
use super::name::{LockName, UserName};
use super::scope::{LockKey, Scope};
use super::text::ShortText;
use super::time::{LeaseSeconds, Time, WaitSeconds};

/// What an acquire asked for, with defaults filled in. A retry must ask for the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketInput {
    /// Where the lock lives.
    pub scope: Scope,
    /// The lock's name there.
    pub lock_name: LockName,
    /// The caller's name for the request.
    pub request_uuid: RequestUuid,
    /// The lease, in seconds. Heartbeats don't change it.
    pub lease_seconds: LeaseSeconds,
    /// How long it may wait, in seconds.
    pub wait_seconds: WaitSeconds,
    /// Why, shown to those who contend or wait.
    pub note: Option<ShortText>,
    /// Whether it may join a hold of its own identity.
    pub reentrant: bool,
}

impl TicketInput {
    /// The lock that is asked for.
    pub fn lock(&self) -> LockKey {
        LockKey { scope: self.scope.clone(), lock_name: self.lock_name.clone() }
    }

    /// What a recovery grace at `time` makes of a deadline: at least `time` + min(the lease, the
    /// grace). Whether the grace is due is asked before.
    pub fn deadline_after_grace(&self, deadline: Time, time: Time, grace_seconds: u32) -> Time {
        deadline.max(time.plus_seconds(self.lease_seconds.get().min(grace_seconds)))
    }
}

/// A ticket as its events made it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// Its id.
    pub id: TicketId,
    /// The identity that it belongs to.
    pub owner: UserName,
    /// What was asked for.
    pub input: TicketInput,
    /// The event that made it, which orders tickets.
    pub made_at: Sequence,
    /// When it was made.
    pub created_at: Time,
    /// When it was first held.
    pub held_at: Option<Time>,
    /// The fence token of its hold. Stays after the end.
    pub fence_token: Option<FenceToken>,
    /// Its last event.
    pub sequence: Sequence,
    /// Where it stands.
    pub phase: Phase,
}

/// Where a ticket stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Part of the current hold.
    Held {
        /// When it expires if no heartbeat comes.
        lease_expires_at: Time,
        /// Whether it was acquired, promoted or heartbeaten since its last recovery grace.
        is_grace_due: bool,
    },
    /// In the queue.
    Waiting {
        /// When it times out.
        wait_expires_at: Time,
    },
    /// Over.
    Ended {
        /// How.
        end: End,
        /// When.
        at: Time,
        /// `access-revoked`, `user-disabled`, or the breaker's reason.
        reason: Option<ShortText>,
        /// The deadline that it had when it ended: of its lease if it was held, else of its wait.
        deadline: Option<Time>,
        /// The tickets of the cycle that it would have closed, its own first.
        cycle: Vec<TicketId>,
    },
}

/// How a ticket ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Its owner let go.
    Released,
    /// Its lease ran out.
    Expired,
    /// An administrator broke the hold.
    Broken,
    /// Its wait was given up, or its identity lost access.
    Cancelled,
    /// Its wait ran out.
    TimedOut,
    /// The lock was taken, and it didn't wait.
    Contended,
    /// Waiting would have closed a cycle.
    DeadlockRejected,
}

impl Ticket {
    /// The lock that it is for.
    pub fn lock(&self) -> LockKey {
        self.input.lock()
    }

    /// Whether it is part of the current hold.
    pub fn is_held(&self) -> bool {
        self.lease_deadline().is_some()
    }

    /// Whether it is in the queue.
    pub fn is_waiting(&self) -> bool {
        self.wait_deadline().is_some()
    }

    /// When its lease ends, if it is held.
    pub fn lease_deadline(&self) -> Option<Time> {
        match self.phase {
            Phase::Held { lease_expires_at, .. } => Some(lease_expires_at),
            Phase::Waiting { .. } | Phase::Ended { .. } => None,
        }
    }

    /// When its wait ends, if it waits.
    pub fn wait_deadline(&self) -> Option<Time> {
        match self.phase {
            Phase::Waiting { wait_expires_at } => Some(wait_expires_at),
            Phase::Held { .. } | Phase::Ended { .. } => None,
        }
    }
}
