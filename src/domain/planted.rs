//! Known faults, switched on one at a time, that the simulator must find.
//!
//! Compiled only with the feature `planted-bugs`: a product build has none of this.

use std::cell::Cell;

use super::id::{FenceToken, Sequence};
use super::ticket::{End, Phase, Ticket};
use super::time::Time;

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    /// A lock that comes back gets an old fence token.
    FenceResetWhenLockComesBack,
    /// What is due at the very time of a command is settled after it.
    TimerAfterCommandAtEqualTime,
    /// A waiter is taken to wait for the holder only.
    CycleEdgesWithoutQueueAhead,
    /// A heartbeat revives an expired ticket.
    HeartbeatOnExpiredTicket,
    /// A request UUID is looked up without its identity.
    RequestUuidWithoutIdentity,
    /// Who loses access leaves the queues, but its agents stay in them.
    RevokedAccessLeavesAgentsWaits,
    /// A write to a thread is accepted under a fence token of somebody else's hold.
    FenceOfAnotherIdentity,
    /// A retried update of an activity sets it again after it was cleared.
    ActivityRetryUndoesClear,
}

impl Planted {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::FenceResetWhenLockComesBack,
        Self::TimerAfterCommandAtEqualTime,
        Self::CycleEdgesWithoutQueueAhead,
        Self::HeartbeatOnExpiredTicket,
        Self::RequestUuidWithoutIdentity,
        Self::RevokedAccessLeavesAgentsWaits,
        Self::FenceOfAnotherIdentity,
        Self::ActivityRetryUndoesClear,
    ];
}

thread_local! {
    static PLANTED: Cell<Option<Planted>> = const { Cell::new(None) };
}

/// Switches a fault on for this thread, or all of them off.
pub fn plant(fault: Option<Planted>) {
    PLANTED.set(fault);
}

/// Whether a fault is on in this thread.
pub fn is_planted(fault: Planted) -> bool {
    PLANTED.get() == Some(fault)
}

pub(super) fn fence_of_new_hold(fence_token: FenceToken) -> FenceToken {
    if is_planted(Planted::FenceResetWhenLockComesBack) {
        FenceToken(Sequence(1))
    } else {
        fence_token
    }
}

pub(super) fn time_to_settle(time: Time) -> Time {
    if is_planted(Planted::TimerAfterCommandAtEqualTime) {
        Time::from_millis(time.as_millis() - 1)
    } else {
        time
    }
}

pub(super) fn are_waits_of_agents_lost() -> bool {
    !is_planted(Planted::RevokedAccessLeavesAgentsWaits)
}

pub(super) fn is_fence_of_anybody_accepted() -> bool {
    is_planted(Planted::FenceOfAnotherIdentity)
}

pub(super) fn is_cleared_activity_set_again() -> bool {
    is_planted(Planted::ActivityRetryUndoesClear)
}

pub(super) fn is_queue_ahead_an_edge() -> bool {
    !is_planted(Planted::CycleEdgesWithoutQueueAhead)
}

pub(super) fn deadline_of_expired(ticket: &Ticket) -> Option<Time> {
    match ticket.phase {
        Phase::Ended { end: End::Expired, deadline, .. }
            if is_planted(Planted::HeartbeatOnExpiredTicket) =>
        {
            deadline
        }
        Phase::Held { .. } | Phase::Waiting { .. } | Phase::Ended { .. } => None,
    }
}
