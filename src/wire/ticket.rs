//! The ticket as JSON, and the answers that carry one.
//!
//! A client's deadline is (when it SENT the request) + `answered_after_ms` + `lease_remaining_ms`,
//! on a clock that counts suspend: both lengths are measured here, so no two clocks are compared.
//! A deadline is shown only while it counts: `lease_expires_at` and `lease_remaining_ms` of a held
//! ticket, `wait_expires_at` of a waiting one. So no answer shows an expiry that has been settled,
//! and nobody takes the old deadline of a released or broken ticket for time that is left.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::problem::Code;
use super::view::{CycleEdgeView, HolderView, TicketAnswer, TicketView};
use crate::domain::id::{FenceToken, RequestUuid, Sequence, TicketId};
use crate::domain::name::{LockName, UserName};
use crate::domain::scope::Scope;
use crate::domain::text::ShortText;
use crate::domain::ticket::{End, Phase};
use crate::domain::time::Time;

/// Where a ticket stands, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "TicketState")]
pub enum State {
    /// Part of the current hold.
    Held,
    /// In the queue.
    Waiting,
    /// Ended at once: the lock was taken.
    Contended,
    /// Ended at once: waiting would have closed a cycle.
    DeadlockRejected,
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
}

impl State {
    /// The state of a ticket in this phase.
    pub fn of(phase: &Phase) -> Self {
        match phase {
            Phase::Held { .. } => Self::Held,
            Phase::Waiting { .. } => Self::Waiting,
            Phase::Ended { end, .. } => match end {
                End::Released => Self::Released,
                End::Expired => Self::Expired,
                End::Broken => Self::Broken,
                End::Cancelled => Self::Cancelled,
                End::TimedOut => Self::TimedOut,
                End::Contended => Self::Contended,
                End::DeadlockRejected => Self::DeadlockRejected,
            },
        }
    }

    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Waiting => "waiting",
            Self::Contended => "contended",
            Self::DeadlockRejected => "deadlock_rejected",
            Self::Released => "released",
            Self::Expired => "expired",
            Self::Broken => "broken",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed_out",
        }
    }

    /// The problem with which an acquire answers that finds its ticket in this state; `None`
    /// while the ticket is alive.
    pub fn code(self) -> Option<Code> {
        match self {
            Self::Held | Self::Waiting => None,
            Self::Contended => Some(Code::LockContended),
            Self::DeadlockRejected => Some(Code::DeadlockRejected),
            Self::Cancelled | Self::TimedOut => Some(Code::WaitEnded),
            Self::Released | Self::Expired | Self::Broken => Some(Code::TicketEnded),
        }
    }
}

/// A ticket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ticket {
    /// Its id.
    pub ticket_id: TicketId,
    /// Where the lock lives.
    pub scope: Scope,
    /// The lock.
    pub lock_name: LockName,
    /// The identity that it belongs to.
    pub owner: UserName,
    /// The caller's name for the request that made it.
    pub request_uuid: RequestUuid,
    /// Where it stands.
    pub state: State,
    /// Why, as its owner said.
    pub note: Option<ShortText>,
    /// The fence token of its hold; null if it was never held. Stays after the end.
    pub fence_token: Option<FenceToken>,
    /// Held tickets of its hold now; 0 if it is not held.
    pub depth: u32,
    /// The place of its identity in the queue, 1 being next; null if it doesn't wait.
    pub queue_position: Option<u32>,
    /// The lease that it was made with, in seconds. Heartbeats don't change it.
    pub lease_seconds: u32,
    /// The wait that it was made with, in seconds.
    pub wait_seconds: u32,
    /// When the lease ends, by ledger time; null unless held.
    pub lease_expires_at: Option<Time>,
    /// What is left of the lease, in milliseconds; null unless held. 0 means lost.
    pub lease_remaining_ms: Option<u64>,
    /// When the wait ends, by ledger time; null unless waiting.
    pub wait_expires_at: Option<Time>,
    /// How often to heartbeat, in seconds: a third of the lease.
    pub heartbeat_every_seconds: u32,
    /// When it was made.
    pub created_at: Time,
    /// When it was first held.
    pub held_at: Option<Time>,
    /// When it ended.
    pub ended_at: Option<Time>,
    /// `access-revoked`, `user-disabled`, or the breaker's reason.
    pub end_reason: Option<ShortText>,
    /// Its last event.
    pub sequence: Sequence,
}

/// How often to heartbeat a lease: a third of it, so that two may get lost.
fn heartbeat_every_seconds(lease_seconds: u32) -> u32 {
    (lease_seconds / 3).max(1)
}

impl Ticket {
    /// The ticket as it looks at `now`, in ledger time.
    pub fn new(view: &TicketView, now: Time) -> Self {
        let ticket = &view.ticket;
        let input = &ticket.input;
        let lease_expires_at = ticket.lease_deadline();
        let (ended_at, end_reason) = match &ticket.phase {
            Phase::Ended { at, reason, .. } => (Some(*at), reason.clone()),
            Phase::Held { .. } | Phase::Waiting { .. } => (None, None),
        };
        Self {
            ticket_id: ticket.id,
            scope: input.scope.clone(),
            lock_name: input.lock_name.clone(),
            owner: ticket.owner.clone(),
            request_uuid: input.request_uuid,
            state: State::of(&ticket.phase),
            note: input.note.clone(),
            fence_token: ticket.fence_token,
            depth: view.depth,
            queue_position: view.queue_position,
            lease_seconds: input.lease_seconds.get(),
            wait_seconds: input.wait_seconds.get(),
            lease_expires_at,
            lease_remaining_ms: lease_expires_at.map(|deadline| now.millis_until(deadline)),
            wait_expires_at: ticket.wait_deadline(),
            heartbeat_every_seconds: heartbeat_every_seconds(input.lease_seconds.get()),
            created_at: ticket.created_at,
            held_at: ticket.held_at,
            ended_at,
            end_reason,
            sequence: ticket.sequence,
        }
    }
}

/// Who holds a lock now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Holder {
    /// The holder.
    pub owner: UserName,
    /// The hold's fence token: the holder's, never the asker's.
    pub fence_token: FenceToken,
    /// The note of the hold's first ticket.
    pub note: Option<ShortText>,
    /// Until the hold's latest deadline, in milliseconds.
    pub lease_remaining_ms: u64,
}

impl Holder {
    /// The holder as it looks at `now`, in ledger time.
    pub fn new(view: &HolderView, now: Time) -> Self {
        Self {
            owner: view.owner.clone(),
            fence_token: view.fence_token,
            note: view.note.clone(),
            lease_remaining_ms: now.millis_until(view.lease_expires_at),
        }
    }

    /// Until the hold's latest deadline, in seconds, rounded up; never 0, so that nobody who
    /// obeys it asks in a tight loop.
    pub fn retry_after_seconds(holder: Option<&Self>) -> u64 {
        holder.map_or(1, |holder| holder.lease_remaining_ms.div_ceil(1000)).max(1)
    }
}

/// One step of a deadlock's cycle, with null for what the asker may not read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CycleEdge {
    /// Who waits.
    pub owner: Option<UserName>,
    /// For whom.
    pub waits_for: Option<UserName>,
    /// Where the lock lives that it waits for.
    pub scope: Option<Scope>,
    /// The lock that it waits for.
    pub lock_name: Option<LockName>,
    /// The ticket that waits.
    pub ticket_id: Option<TicketId>,
}

impl From<&CycleEdgeView> for CycleEdge {
    fn from(view: &CycleEdgeView) -> Self {
        Self {
            owner: view.owner.clone(),
            waits_for: view.waits_for.clone(),
            scope: view.scope.clone(),
            lock_name: view.lock_name.clone(),
            ticket_id: view.ticket_id,
        }
    }
}

/// Tells a null from a field that isn't there: `Some(None)` is null.
pub(super) fn present<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(from).map(Some)
}

/// The answer to a call about one ticket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TicketAnswer")]
pub struct Answer {
    /// The ticket as it is now.
    pub ticket: Ticket,
    /// How long the server had the request, in milliseconds.
    pub answered_after_ms: u64,
    /// Only of a contended or waiting ticket: who holds the lock now; null if it is free, or if
    /// the asker may not read the scope.
    // `Some(None)` is null.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub holder: Option<Option<Holder>>,
    /// Only of a contended or waiting ticket: in how many seconds the hold ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub retry_after_seconds: Option<u64>,
    /// Only of a rejected deadlock: the cycle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<CycleEdge>")]
    pub cycle: Option<Vec<CycleEdge>>,
}

impl Answer {
    /// The answer as it looks at `now`, in ledger time.
    pub fn new(answer: &TicketAnswer, now: Time, answered_after_ms: u64) -> Self {
        let ticket = Ticket::new(&answer.ticket, now);
        let (mut holder, mut retry_after_seconds, mut cycle) = (None, None, None);
        match ticket.state {
            State::Contended | State::Waiting => {
                let now_holding = answer.holder.as_ref().map(|view| Holder::new(view, now));
                retry_after_seconds = Some(Holder::retry_after_seconds(now_holding.as_ref()));
                holder = Some(now_holding);
            }
            State::DeadlockRejected => {
                cycle = Some(answer.cycle.iter().map(CycleEdge::from).collect());
            }
            State::Held
            | State::Released
            | State::Expired
            | State::Broken
            | State::Cancelled
            | State::TimedOut => {}
        }
        Self { ticket, answered_after_ms, holder, retry_after_seconds, cycle }
    }
}

#[cfg(test)]
#[path = "ticket_tests.rs"]
pub(in crate::wire) mod tests;
