//! Ends what is due, before any command is decided: so a late timer never lets a stale command
//! through.
//!
//! Every wait that is due ends before any lease that is due: so no ticket is promoted at or after
//! its wait deadline. Within each, the order is (deadline, event that made the ticket).

use super::promote::promote;
use crate::domain::decide::At;
use crate::domain::event::{Event, LockExpired, LockWaitTimedOut};
use crate::domain::state::State;
use crate::domain::ticket::Ticket;

/// What comes due next at `at.time`: one timeout, or one expiry and the promotion that belongs to
/// it; `None` when nothing is due. The events are applied before it is called again: one that is
/// due may depend on the one before.
pub fn settle(state: &State, at: At) -> Option<Vec<Event>> {
    let time = at.time;
    #[cfg(feature = "planted-bugs")]
    let time = crate::domain::planted::time_to_settle(time);
    if let Some(ticket) = state.due_wait(time) {
        return Some(vec![timed_out(ticket)]);
    }
    state.due_lease(time).map(|ticket| expired(state, at, ticket))
}

fn timed_out(ticket: &Ticket) -> Event {
    Event::LockWaitTimedOut(LockWaitTimedOut {
        ticket_id: ticket.id,
        scope: ticket.input.scope.clone(),
        lock_name: ticket.input.lock_name.clone(),
        owner: ticket.owner.clone(),
        wait_expires_at: ticket.wait_deadline().expect("a due wait is a wait"),
    })
}

fn expired(state: &State, at: At, ticket: &Ticket) -> Vec<Event> {
    let lock = state.lock(&ticket.lock()).expect("a held ticket's lock is held");
    let depth = lock.hold.depth() - 1;
    let mut events = vec![Event::LockExpired(LockExpired {
        ticket_id: ticket.id,
        scope: ticket.input.scope.clone(),
        lock_name: ticket.input.lock_name.clone(),
        owner: ticket.owner.clone(),
        fence_token: lock.hold.fence_token,
        depth,
        lease_expires_at: ticket.lease_deadline().expect("a due lease is a lease"),
    })];
    if depth == 0 {
        events.extend(promote(state, lock, at.time, at.next_sequence.next()));
    }
    events
}
