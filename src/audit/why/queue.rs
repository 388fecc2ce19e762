//! Who stood in a lock's queue when a ticket came, worked out from the lock's own events.
//!
//! Nobody waits for longer than the longest wait, and a lock that is taken while it is free has no
//! queue. So the events from there on tell it all, however long the history is.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::bearing::{Bearing, bearing};
use super::read::Past;
use crate::domain::event::Record;
use crate::domain::id::{Sequence, TicketId};
use crate::domain::name::UserName;
use crate::domain::scope::LockKey;
use crate::domain::time::WaitSeconds;
use crate::ledger::LedgerError;

/// Waiting identities, in the order of their places.
#[derive(Debug, Clone, Default)]
pub(super) struct Queue {
    /// Places by the event that took them: the identity, and its waiting tickets by the events
    /// that made them.
    places: BTreeMap<Sequence, (UserName, BTreeMap<Sequence, TicketId>)>,
    place_of: BTreeMap<UserName, Sequence>,
    tickets: BTreeMap<TicketId, (UserName, Sequence)>,
}

/// Who waits, and since which event.
pub(super) type Waiter = (UserName, Sequence);

impl Queue {
    /// Whether an identity has a place.
    pub(super) fn has(&self, owner: &UserName) -> bool {
        self.place_of.contains_key(owner)
    }

    /// Adds a ticket that was made at `at`, at its identity's place, or else at the tail.
    pub(super) fn join(&mut self, owner: &UserName, ticket: TicketId, at: Sequence) {
        let place = *self.place_of.entry(owner.clone()).or_insert(at);
        let new = || (owner.clone(), BTreeMap::new());
        self.places.entry(place).or_insert_with(new).1.insert(at, ticket);
        self.tickets.insert(ticket, (owner.clone(), at));
    }

    /// Takes a ticket out. Whether its identity has no place any more by that.
    pub(super) fn leave(&mut self, ticket: TicketId) -> bool {
        let Some((owner, at)) = self.tickets.remove(&ticket) else { return false };
        let place = self.place_of.get(&owner).copied();
        let waiting = place.and_then(|place| self.places.get_mut(&place));
        let is_empty = waiting.is_none_or(|(_, tickets)| {
            tickets.remove(&at);
            tickets.is_empty()
        });
        if is_empty {
            place.map(|place| self.places.remove(&place));
            self.place_of.remove(&owner);
        }
        is_empty
    }

    /// Those who wait, first one first.
    pub(super) fn waiters(&self) -> Vec<Waiter> {
        let first = |(owner, tickets): &(UserName, BTreeMap<Sequence, TicketId>)| {
            Some((owner.clone(), *tickets.first_key_value()?.0))
        };
        self.places.values().filter_map(first).collect()
    }

    /// The place of an identity, by its oldest ticket there.
    pub(super) fn of(&self, owner: &UserName) -> Option<Sequence> {
        let place = self.place_of.get(owner)?;
        self.places.get(place)?.1.first_key_value().map(|(at, _)| *at)
    }

    /// Those who stand before an identity; everyone, if it has no place.
    pub(super) fn ahead_of(mut self, owner: &UserName) -> Self {
        let Some(place) = self.place_of.get(owner).copied() else { return self };
        let behind: Vec<TicketId> = self
            .places
            .range(place..)
            .flat_map(|(_, (_, tickets))| tickets.values().copied())
            .collect();
        for ticket in behind {
            self.leave(ticket);
        }
        self
    }

    /// How many identities there are.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }
}

/// What an event did to the queue.
enum Change {
    Joined(UserName, TicketId, Sequence),
    Left(TicketId),
}

/// The queue of a lock before one of its events. It lacks someone if the history has too many
/// events for it.
pub(super) fn queue_before(
    past: &Past<'_>,
    lock: &LockKey,
    event: &Record,
) -> Result<Queue, LedgerError> {
    let longest_ms = u64::from(WaitSeconds::MOST) * 1000;
    let mut changes = Vec::new();
    past.walk_back(lock, event.sequence, |record| {
        if record.time.millis_until(event.time) > longest_ms {
            return ControlFlow::Break(());
        }
        match bearing(&record.event) {
            Bearing::Taken(e) if e.depth == 1 => return ControlFlow::Break(()),
            Bearing::Queued(e) => {
                changes.push(Change::Joined(e.owner.clone(), e.ticket_id, record.sequence));
            }
            Bearing::Promoted(e) => changes.push(Change::Left(e.ticket_id)),
            Bearing::Left(left) => changes.push(Change::Left(left.ticket_id)),
            _ => {}
        }
        ControlFlow::Continue(())
    })?;
    let mut queue = Queue::default();
    for change in changes.iter().rev() {
        match change {
            Change::Joined(owner, ticket, at) => queue.join(owner, *ticket, *at),
            Change::Left(ticket) => drop(queue.leave(*ticket)),
        }
    }
    Ok(queue)
}
