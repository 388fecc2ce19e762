//! Folds an event into the state. It can't fail and can't decide: the event says what happened,
//! with every number that follows from it.

use super::{Hold, Lock, Place, State};
use crate::domain::activity::Activity;
use crate::domain::event::{Event, LockPromoted, LockQueued, Record};
use crate::domain::id::{FenceToken, Sequence, TicketId};
use crate::domain::name::UserName;
use crate::domain::text::ShortText;
use crate::domain::ticket::{End, Phase, Ticket, TicketInput};
use crate::domain::time::Time;

use std::collections::BTreeMap;

impl State {
    /// Folds one record in. Returns the ticket that it ended, which is no longer in the state.
    pub fn apply(&mut self, record: &Record) -> Option<Ticket> {
        self.head = record.sequence;
        self.time = record.time;
        self.access.apply(record.time, &record.event);
        self.apply_event(record.sequence, record.time, &record.event)
    }

    fn apply_event(&mut self, sequence: Sequence, time: Time, event: &Event) -> Option<Ticket> {
        match event {
            Event::LedgerOpened(e) => self.ledger_id = Some(e.ledger_id),
            Event::LedgerRecovered(e) => self.grant_grace(time, e.grace_seconds),
            Event::LockAcquired(e) => {
                let mut ticket = begin(sequence, time, e.ticket_id, &e.owner, e.input());
                ticket.held_at = Some(time);
                self.count_in_scope(&e.scope);
                self.hold(ticket, e.fence_token, e.lease_expires_at);
            }
            Event::LockQueued(e) => self.queue(sequence, time, e),
            Event::LockContended(e) => {
                let ticket = begin(sequence, time, e.ticket_id, &e.owner, e.input());
                return Some(ended(ticket, End::Contended, sequence, time, None));
            }
            Event::LockDeadlockRejected(e) => {
                let ticket = begin(sequence, time, e.ticket_id, &e.owner, e.input());
                let mut ticket = ended(ticket, End::DeadlockRejected, sequence, time, None);
                if let Phase::Ended { cycle, .. } = &mut ticket.phase {
                    cycle.clone_from(&e.cycle);
                }
                return Some(ticket);
            }
            Event::LockHeartbeat(e) => self.extend(sequence, e.ticket_id, e.lease_expires_at),
            Event::LockPromoted(e) => self.promote(sequence, time, e),
            Event::LockReleased(e) => {
                return Some(self.end_held(sequence, time, e.ticket_id, End::Released, None));
            }
            Event::LockExpired(e) => {
                return Some(self.end_held(sequence, time, e.ticket_id, End::Expired, None));
            }
            Event::LockBroken(e) => {
                let reason = Some(e.reason.clone());
                return Some(self.end_held(sequence, time, e.ticket_id, End::Broken, reason));
            }
            Event::LockWaitCancelled(e) => {
                let reason = e.reason.clone();
                return Some(self.end_wait(sequence, time, e.ticket_id, End::Cancelled, reason));
            }
            Event::LockWaitTimedOut(e) => {
                return Some(self.end_wait(sequence, time, e.ticket_id, End::TimedOut, None));
            }
            Event::LedgerRestored(_)
            | Event::UserCreated(_)
            | Event::UserDisabled(_)
            | Event::UserEnabled(_)
            | Event::TokenIssued(_)
            | Event::TokenRevoked(_)
            | Event::TeamCreated(_)
            | Event::TeamMemberAdded(_)
            | Event::TeamMemberRemoved(_)
            | Event::RepoCreated(_)
            | Event::AccessGranted(_)
            | Event::AccessRevoked(_)
            | Event::ThreadReplied(_)
            | Event::ThreadClosed(_)
            | Event::ThreadReopened(_) => {}
            Event::ActivityUpdated(e) => {
                let activity = Activity { text: e.activity.clone(), set_at: time, sequence };
                self.activities.insert(e.user.clone(), activity);
            }
            Event::ActivityCleared(e) => {
                self.activities.remove(&e.user);
            }
            Event::ThreadCreated(e) => {
                let newest = self.newest_threads.entry(e.scope.clone()).or_insert(e.number);
                *newest = e.number.max(*newest);
            }
        }
        None
    }

    /// Adds a ticket to a hold, which it begins if the lock has none.
    fn hold(&mut self, mut ticket: Ticket, fence_token: FenceToken, lease_expires_at: Time) {
        let (id, sequence, lock) = (ticket.id, ticket.sequence, ticket.lock());
        let entry = self.locks.entry(lock.clone()).or_insert_with(|| Lock {
            hold: Hold { owner: ticket.owner.clone(), fence_token, tickets: Vec::new() },
            sequence,
            places: BTreeMap::new(),
            place_of: BTreeMap::new(),
        });
        if entry.hold.tickets.is_empty() {
            entry.hold.owner = ticket.owner.clone();
            entry.hold.fence_token = fence_token;
            self.holding.entry(ticket.owner.clone()).or_default().insert(lock);
        }
        entry.hold.tickets.push(id);
        entry.sequence = sequence;
        self.newest_fence = self.newest_fence.max(Some(fence_token));
        self.lease_deadlines.insert((lease_expires_at, ticket.made_at, id));
        self.by_owner.entry(ticket.owner.clone()).or_default().insert((ticket.made_at, id));
        ticket.fence_token = Some(fence_token);
        ticket.phase = Phase::Held { lease_expires_at, is_grace_due: true };
        self.tickets.insert(id, ticket);
    }

    /// Takes a place at the tail of the queue, or shares the one that the identity has.
    fn queue(&mut self, sequence: Sequence, time: Time, e: &LockQueued) {
        let mut ticket = begin(sequence, time, e.ticket_id, &e.owner, e.input());
        ticket.phase = Phase::Waiting { wait_expires_at: e.wait_expires_at };
        let key = ticket.lock();
        let lock = self.locks.get_mut(&key).expect("only a held lock has a queue");
        lock.sequence = sequence;
        let place = *lock.place_of.entry(e.owner.clone()).or_insert(sequence);
        let new_place = || Place { owner: e.owner.clone(), tickets: Vec::new() };
        lock.places.entry(place).or_insert_with(new_place).tickets.push(e.ticket_id);
        self.queueing.entry(e.owner.clone()).or_default().insert(key);
        self.count_in_scope(&e.scope);
        self.wait_deadlines.insert((e.wait_expires_at, sequence, e.ticket_id));
        self.by_owner.entry(e.owner.clone()).or_default().insert((sequence, e.ticket_id));
        self.tickets.insert(e.ticket_id, ticket);
    }

    fn promote(&mut self, sequence: Sequence, time: Time, e: &LockPromoted) {
        let mut ticket = self.leave_queue(sequence, e.ticket_id);
        ticket.held_at = Some(time);
        ticket.sequence = sequence;
        self.hold(ticket, e.fence_token, e.lease_expires_at);
    }

    fn extend(&mut self, sequence: Sequence, id: TicketId, lease_expires_at: Time) {
        let ticket = self.tickets.get_mut(&id).expect("a heartbeat is for a live ticket");
        let before = ticket.lease_deadline().expect("a heartbeat is for a held ticket");
        ticket.phase = Phase::Held { lease_expires_at, is_grace_due: true };
        ticket.sequence = sequence;
        let (made_at, lock) = (ticket.made_at, ticket.lock());
        self.lease_deadlines.remove(&(before, made_at, id));
        self.lease_deadlines.insert((lease_expires_at, made_at, id));
        self.locks.get_mut(&lock).expect("a held ticket's lock is held").sequence = sequence;
    }

    /// Takes a held ticket out. The lock stays until its queue is empty too: the promotion that
    /// belongs to the end of the hold is the next event.
    fn end_held(
        &mut self,
        sequence: Sequence,
        time: Time,
        id: TicketId,
        end: End,
        reason: Option<ShortText>,
    ) -> Ticket {
        let ticket = self.tickets.remove(&id).expect("only a live ticket ends");
        let deadline = ticket.lease_deadline().expect("it was held");
        self.lease_deadlines.remove(&(deadline, ticket.made_at, id));
        self.forget_owned(&ticket);
        let key = ticket.lock();
        let lock = self.locks.get_mut(&key).expect("a held ticket's lock is held");
        lock.hold.tickets.retain(|held| *held != id);
        lock.sequence = sequence;
        if lock.hold.tickets.is_empty() {
            if lock.places.is_empty() {
                self.locks.remove(&key);
            }
            remove_key(&mut self.holding, &ticket.owner, &key);
        }
        ended(ticket, end, sequence, time, reason)
    }

    fn end_wait(
        &mut self,
        sequence: Sequence,
        time: Time,
        id: TicketId,
        end: End,
        reason: Option<ShortText>,
    ) -> Ticket {
        let ticket = self.leave_queue(sequence, id);
        self.forget_owned(&ticket);
        ended(ticket, end, sequence, time, reason)
    }

    /// Takes a waiting ticket out of its queue and out of the state.
    fn leave_queue(&mut self, sequence: Sequence, id: TicketId) -> Ticket {
        let ticket = self.tickets.remove(&id).expect("only a live ticket leaves a queue");
        let deadline = ticket.wait_deadline().expect("it was waiting");
        self.wait_deadlines.remove(&(deadline, ticket.made_at, id));
        let key = ticket.lock();
        let lock = self.locks.get_mut(&key).expect("a lock with a queue is in the state");
        lock.sequence = sequence;
        let at = *lock.place_of.get(&ticket.owner).expect("a waiting ticket has a place");
        let place = lock.places.get_mut(&at).expect("the index of places is exact");
        place.tickets.retain(|waiting| *waiting != id);
        if place.tickets.is_empty() {
            lock.places.remove(&at);
            lock.place_of.remove(&ticket.owner);
            remove_key(&mut self.queueing, &ticket.owner, &key);
        }
        ticket
    }

    fn forget_owned(&mut self, ticket: &Ticket) {
        remove_key(&mut self.by_owner, &ticket.owner, &(ticket.made_at, ticket.id));
        let scope = &ticket.input.scope;
        let count = self.by_scope.get_mut(scope).expect("a live ticket is counted");
        *count -= 1;
        if *count == 0 {
            self.by_scope.remove(scope);
        }
    }

    /// The recovery grace lifts each lease that was taken or renewed since its last grace. Once
    /// per renewal, so restarts can't keep a dead holder alive.
    fn grant_grace(&mut self, time: Time, grace_seconds: u32) {
        for ticket in self.tickets.values_mut() {
            let Phase::Held { lease_expires_at, is_grace_due } = &mut ticket.phase else {
                continue;
            };
            if !std::mem::take(is_grace_due) {
                continue;
            }
            let before = *lease_expires_at;
            *lease_expires_at = ticket.input.deadline_after_grace(before, time, grace_seconds);
            self.lease_deadlines.remove(&(before, ticket.made_at, ticket.id));
            self.lease_deadlines.insert((*lease_expires_at, ticket.made_at, ticket.id));
        }
    }
}

/// A ticket at its making. The caller sets its phase: a ticket is never seen as it is here.
fn begin(
    sequence: Sequence,
    time: Time,
    id: TicketId,
    owner: &UserName,
    input: TicketInput,
) -> Ticket {
    Ticket {
        id,
        owner: owner.clone(),
        input,
        made_at: sequence,
        created_at: time,
        held_at: None,
        fence_token: None,
        sequence,
        phase: Phase::Waiting { wait_expires_at: time },
    }
}

fn ended(
    mut ticket: Ticket,
    end: End,
    sequence: Sequence,
    time: Time,
    reason: Option<ShortText>,
) -> Ticket {
    let deadline = match end {
        End::Contended | End::DeadlockRejected => None,
        End::Released | End::Expired | End::Broken | End::Cancelled | End::TimedOut => {
            ticket.lease_deadline().or(ticket.wait_deadline())
        }
    };
    ticket.phase = Phase::Ended { end, at: time, reason, deadline, cycle: Vec::new() };
    ticket.sequence = sequence;
    ticket
}

/// Removes a value from a set in an index, and the set when it was the last one.
fn remove_key<V: Ord>(
    index: &mut BTreeMap<UserName, std::collections::BTreeSet<V>>,
    owner: &UserName,
    value: &V,
) {
    if let Some(set) = index.get_mut(owner) {
        set.remove(value);
        if set.is_empty() {
            index.remove(owner);
        }
    }
}
