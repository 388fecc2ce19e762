//! What an answer shows, taken from one state.
//!
//! Access is judged here only where an answer holds more than the caller's own ticket: the holder
//! of a lock, and the cycle of a deadlock, are shown as far as the asker may read their scopes.

use crate::domain::id::TicketId;
use crate::domain::name::UserName;
use crate::domain::ticket::{End, Phase, Ticket};
use crate::domain::{Lock, State};
use crate::wire::view::{CycleEdgeView, HolderView, TicketAnswer, TicketView};

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
        ticket: TicketView::of(state, ticket),
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
