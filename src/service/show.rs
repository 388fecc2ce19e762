//! What an answer shows, taken from one state.
//!
//! Access is judged here only where an answer holds more than the caller's own ticket: the holder
//! of a lock, and the cycle of a deadlock, are shown as far as the asker may read their scopes.

use crate::domain::id::{Sequence, TicketId};
use crate::domain::name::UserName;
use crate::domain::scope::LockKey;
use crate::domain::ticket::{End, Phase, Ticket};
use crate::domain::{Lock, State};
use crate::wire::view::{
    ActivityView, CycleEdgeView, HolderView, LockView, TicketAnswer, TicketView,
};

/// A ticket, with what only the state around it knows.
pub(crate) fn ticket_view(state: &State, ticket: &Ticket) -> TicketView {
    TicketView {
        depth: state.depth(ticket),
        queue_position: state.queue_position(ticket),
        ticket: ticket.clone(),
    }
}

/// What a user says it is doing, and whether it holds anything.
pub(crate) fn activity_view(state: &State, user: &UserName) -> ActivityView {
    ActivityView {
        user: user.clone(),
        activity: state.activity(user).cloned(),
        has_holds: state.is_holder(user),
    }
}

/// The answer to a call about one ticket. `find` looks up the tickets of a cycle, live or ended.
pub(crate) fn ticket_answer(
    state: &State,
    asker: &UserName,
    ticket: &Ticket,
    is_replay: bool,
    find: impl Fn(TicketId) -> Option<Ticket>,
) -> TicketAnswer {
    let is_kept_out = match &ticket.phase {
        Phase::Waiting { .. } | Phase::Ended { end: End::Contended, .. } => true,
        Phase::Held { .. } | Phase::Ended { .. } => false,
    };
    let can_read = state.access().can_read(asker, &ticket.input.scope);
    let lock = state.lock(&ticket.lock()).filter(|_| is_kept_out && can_read);
    TicketAnswer {
        holder: lock.map(|lock| holder_view(state, lock)),
        cycle: cycle_view(state, asker, ticket, find),
        ticket: ticket_view(state, ticket),
        is_replay,
        sequence: state.head(),
    }
}

fn holder_view(state: &State, lock: &Lock) -> HolderView {
    let first = lock.hold.tickets.first().and_then(|id| state.ticket(*id));
    HolderView {
        owner: lock.hold.owner.clone(),
        fence_token: lock.hold.fence_token,
        note: first.and_then(|ticket| ticket.input.note.clone()),
        lease_expires_at: state.hold_deadline(&lock.hold),
    }
}

/// The cycle of a rejected deadlock, from the rejected owner back to it.
fn cycle_view(
    state: &State,
    asker: &UserName,
    ticket: &Ticket,
    find: impl Fn(TicketId) -> Option<Ticket>,
) -> Vec<CycleEdgeView> {
    let Phase::Ended { cycle, .. } = &ticket.phase else { return Vec::new() };
    let find = |id| if id == ticket.id { Some(ticket.clone()) } else { find(id) };
    let tickets: Vec<Option<Ticket>> = cycle.iter().copied().map(find).collect();
    let is_shown = |ticket: &Ticket| {
        ticket.owner == *asker || state.access().can_read(asker, &ticket.input.scope)
    };
    let edge = |(at, waiting): (usize, &Option<Ticket>)| {
        let next = tickets[(at + 1) % tickets.len()].as_ref();
        let shown = waiting.as_ref().filter(|ticket| is_shown(ticket));
        CycleEdgeView {
            owner: shown.map(|ticket| ticket.owner.clone()),
            waits_for: next.filter(|next| is_shown(next)).map(|next| next.owner.clone()),
            scope: shown.map(|ticket| ticket.input.scope.clone()),
            lock_name: shown.map(|ticket| ticket.input.lock_name.clone()),
            ticket_id: shown.map(|ticket| ticket.id),
        }
    };
    tickets.iter().enumerate().map(edge).collect()
}

/// A lock; a free one has no holds and no queue. `sequence` is the state that it is taken from.
pub(crate) fn lock_view(state: &State, key: &LockKey, sequence: Sequence) -> LockView {
    let view = |id: TicketId| state.ticket(id).map(|ticket| ticket_view(state, ticket));
    let lock = state.lock(key);
    let held = lock.into_iter().flat_map(|lock| lock.hold.tickets.iter().copied());
    let mut queue = Vec::new();
    // Positions are counted here: to ask for each one's would walk the queue again and again.
    for (position, place) in (1..).zip(lock.into_iter().flat_map(Lock::places)) {
        for ticket in place.tickets.iter().filter_map(|id| state.ticket(*id)) {
            let queue_position = Some(position);
            queue.push(TicketView { ticket: ticket.clone(), depth: 0, queue_position });
        }
    }
    LockView { lock: key.clone(), holds: held.filter_map(view).collect(), queue, sequence }
}
