//! Who held a lock at a moment, who waited, and by which events.
//!
//! The events of that lock are folded by the rules that made them, as for `as_of`.

use std::collections::BTreeMap;

use super::fault::AuditError;
use super::replay;
use crate::domain::State;
use crate::domain::event::{Event, Record};
use crate::domain::id::{Sequence, TicketId};
use crate::domain::scope::LockKey;
use crate::domain::ticket::Ticket;
use crate::domain::time::Time;
use crate::ledger::Ledger;
use crate::projection::as_of::{self, AsOf};
use crate::projection::history::Rows;
use crate::wire::ticket::State as TicketState;
use crate::wire::view::{LockView, TicketView};
use crate::wire::who::{Standing, Who};

/// The lock at a moment; at the end of the ledger if none is asked for.
///
/// # Errors
/// [`AuditError::Asked`] for a moment that is beyond the end; else what reading fails with.
pub fn who(ledger: &dyn Ledger, lock: &LockKey, moment: Option<AsOf>) -> Result<Who, AuditError> {
    let moment = replay::moment(ledger, moment)?;
    let mut trails = BTreeMap::new();
    let rows = Rows::Lock(lock);
    let state = as_of::fold_with(ledger, rows, moment.sequence, |state, record| {
        follow(&mut trails, state, record);
    })?;
    let view = LockView::of(&state, lock, moment.sequence);
    let standing = |view: &TicketView| standing(&trails, view);
    let first = view.holds.first();
    Ok(Who {
        scope: lock.scope.clone(),
        lock_name: lock.lock_name.clone(),
        sequence: moment.sequence,
        time: moment.time,
        owner: first.map(|first| first.ticket.owner.clone()),
        fence_token: first.and_then(|first| first.ticket.fence_token),
        depth: first.map_or(0, |first| first.depth),
        holds: view.holds.iter().map(standing).collect(),
        queue: view.queue.iter().map(standing).collect(),
    })
}

/// The events that made a live ticket stand as it does.
#[derive(Debug, Default)]
struct Trail {
    /// The acquire and the promotion.
    begun: Vec<Sequence>,
    /// What moved its deadline last.
    moved: Option<Sequence>,
    deadline: Option<Time>,
}

/// Keeps the trails of the live tickets, after a record was folded in.
fn follow(trails: &mut BTreeMap<TicketId, Trail>, state: &State, record: &Record) {
    let has_begun = matches!(
        &record.event,
        Event::LockAcquired(_) | Event::LockQueued(_) | Event::LockPromoted(_)
    );
    let of_ticket = record.event.lock_and_ticket().map(|(_, ticket)| ticket);
    if let Some(id) = of_ticket.filter(|id| state.ticket(*id).is_none()) {
        trails.remove(&id);
    }
    if let Some(ticket) = of_ticket.and_then(|id| state.ticket(id)) {
        let trail = trails.entry(ticket.id).or_default();
        if has_begun {
            trail.begun.push(record.sequence);
        }
        trail.see(ticket, record.sequence, has_begun);
    } else if let Event::LedgerRecovered(_) = &record.event {
        for (id, trail) in trails {
            state.ticket(*id).into_iter().for_each(|t| trail.see(t, record.sequence, false));
        }
    }
}

impl Trail {
    /// Remembers what moved the deadline, unless that is the event that began it.
    fn see(&mut self, ticket: &Ticket, sequence: Sequence, has_begun: bool) {
        let deadline = ticket.lease_deadline();
        if has_begun {
            self.moved = None;
        } else if deadline != self.deadline {
            self.moved = Some(sequence);
        }
        self.deadline = deadline;
    }
}

fn standing(trails: &BTreeMap<TicketId, Trail>, view: &TicketView) -> Standing {
    let ticket = &view.ticket;
    let trail = trails.get(&ticket.id);
    let begun = trail.map(|trail| trail.begun.clone()).unwrap_or_default();
    let until = ticket.lease_deadline().or(ticket.wait_deadline());
    Standing {
        ticket_id: ticket.id,
        owner: ticket.owner.clone(),
        state: TicketState::of(&ticket.phase),
        queue_position: view.queue_position,
        note: ticket.input.note.clone(),
        since: ticket.held_at.unwrap_or(ticket.created_at),
        until: until.unwrap_or(ticket.created_at),
        evidence: begun.into_iter().chain(trail.and_then(|trail| trail.moved)).collect(),
    }
}
