//! Chooses the next holder when a hold ends.
//!
//! Called by everything that ends a hold, inside the same append, so no reader ever sees a free
//! lock with a queue. Deliberately absent: access checks. A waiter that lost access was cancelled
//! when it lost it.

use crate::domain::event::{Event, LockPromoted};
use crate::domain::id::{FenceToken, Sequence};
use crate::domain::state::{Lock, State};
use crate::domain::time::Time;

/// Promotes the first place of the queue: all of its tickets join the new hold, in order, and
/// each lease runs from now. `first` is the sequence that the first promotion gets: it is the
/// hold's fence token.
pub(super) fn promote(state: &State, lock: &Lock, time: Time, first: Sequence) -> Vec<Event> {
    let Some(place) = lock.first_place() else { return Vec::new() };
    let promoted = |(depth, id)| {
        let ticket = state.ticket(id).expect("a place names live tickets");
        Event::LockPromoted(LockPromoted {
            ticket_id: id,
            scope: ticket.input.scope.clone(),
            lock_name: ticket.input.lock_name.clone(),
            owner: ticket.owner.clone(),
            fence_token: FenceToken(first),
            depth,
            lease_expires_at: time.plus_seconds(ticket.input.lease_seconds.get()),
        })
    };
    (1..).zip(place.tickets.iter().copied()).map(promoted).collect()
}
