//! Reads along with the ledger, event by event, and knows by itself what may follow on what.
//!
//! It shares nothing with the core but the events: the life of each ticket, the order of places,
//! one ticket for each request, one fence token for each hold.

use std::collections::{BTreeMap, BTreeSet};

use pearing::domain::event::{Event, Record};
use pearing::domain::id::{FenceToken, TicketId};
use pearing::domain::scope::LockKey;
use pearing::domain::time::Time;
use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Waiting,
    Held,
    Ended,
}

/// What the events so far said.
#[derive(Debug, Default)]
pub(super) struct Audit {
    lives: BTreeMap<TicketId, Life>,
    requests: BTreeSet<(String, String)>,
    /// Waiting tickets in the order of their making, with their owners.
    queues: BTreeMap<LockKey, Vec<(String, TicketId)>>,
    /// Held tickets, their owner and their fence token.
    holds: BTreeMap<LockKey, (String, FenceToken, BTreeSet<TicketId>)>,
    newest_fence: Option<FenceToken>,
}

impl Audit {
    /// Reads one record.
    pub(super) fn read(&mut self, record: &Record) -> Result<(), String> {
        let Some((lock, ticket)) = record.event.lock_and_ticket() else { return Ok(()) };
        let data = serde_json::to_value(&record.event).map_err(|error| error.to_string())?;
        let owner = text(&data, "owner");
        let wrong = |what: &str| format!("record {}: {what}: {data}", record.sequence);
        let before = self.lives.get(&ticket).copied();
        let (must_be, becomes) = match &record.event {
            Event::LockAcquired(_) => (None, Life::Held),
            Event::LockQueued(_) => (None, Life::Waiting),
            Event::LockContended(_) | Event::LockDeadlockRejected(_) => (None, Life::Ended),
            Event::LockHeartbeat(_) => (Some(Life::Held), Life::Held),
            Event::LockPromoted(_) => (Some(Life::Waiting), Life::Held),
            Event::LockReleased(_) | Event::LockExpired(_) | Event::LockBroken(_) => {
                (Some(Life::Held), Life::Ended)
            }
            Event::LockWaitCancelled(_) | Event::LockWaitTimedOut(_) => {
                (Some(Life::Waiting), Life::Ended)
            }
            other => return Err(format!("an event with a ticket that nobody knows: {other:?}")),
        };
        if before != must_be {
            return Err(wrong(&format!("the ticket was {before:?} before")));
        }
        let request = (owner.clone(), text(&data, "request_uuid"));
        if before.is_none() && !self.requests.insert(request) {
            return Err(wrong("the request has a ticket already"));
        }
        if becomes == Life::Held {
            lease(record, &data).map_err(|why| wrong(&why))?;
        }
        self.lives.insert(ticket, becomes);
        self.leave_queue(&lock, &owner, ticket, record).map_err(|why| wrong(&why))?;
        self.hold(&lock, &owner, ticket, record, &data).map_err(|why| wrong(&why))
    }

    /// Keeps the queue, and the order of promotions.
    fn leave_queue(
        &mut self,
        lock: &LockKey,
        owner: &str,
        ticket: TicketId,
        record: &Record,
    ) -> Result<(), String> {
        let queue = self.queues.entry(lock.clone()).or_default();
        if let Event::LockQueued(_) = record.event {
            // Behind the last one of the same place, which is where the place stands.
            let own = queue.iter().rposition(|(other, _)| other == owner);
            let at = own.map_or(queue.len(), |own| own + 1);
            queue.insert(at, (owner.to_owned(), ticket));
        } else if let Some(at) = queue.iter().position(|(_, other)| *other == ticket) {
            if matches!(record.event, Event::LockPromoted(_)) && at != 0 {
                return Err("others stand before the ticket that was promoted".to_owned());
            }
            queue.remove(at);
        }
        Ok(())
    }

    /// Keeps the holds, their depths and their fence tokens.
    fn hold(
        &mut self,
        lock: &LockKey,
        owner: &str,
        ticket: TicketId,
        record: &Record,
        data: &Value,
    ) -> Result<(), String> {
        let fence = FenceToken(record.sequence);
        if matches!(record.event, Event::LockAcquired(_) | Event::LockPromoted(_)) {
            let is_new = !self.holds.contains_key(lock);
            if is_new && self.newest_fence >= Some(fence) {
                return Err("the fence token isn't newer than all before".to_owned());
            }
            let new = || (owner.to_owned(), fence, BTreeSet::new());
            let hold = self.holds.entry(lock.clone()).or_insert_with(new);
            if hold.0 != owner {
                return Err(format!("{} holds the lock", hold.0));
            }
            hold.2.insert(ticket);
            self.newest_fence = self.newest_fence.max(Some(hold.1));
        }
        let is_end = matches!(
            record.event,
            Event::LockReleased(_) | Event::LockExpired(_) | Event::LockBroken(_)
        );
        if is_end {
            let (_, fence, tickets) = self.holds.get_mut(lock).ok_or("nobody holds the lock")?;
            let fence = *fence;
            tickets.remove(&ticket);
            let depth = tickets.len();
            if depth == 0 {
                self.holds.remove(lock);
            }
            return same(data, fence, depth);
        }
        match self.holds.get(lock) {
            Some((_, fence, tickets)) if tickets.contains(&ticket) => {
                same(data, *fence, tickets.len())
            }
            Some(_) => Ok(()),
            None => Err("a lock that nobody holds was met as taken".to_owned()),
        }
    }

    /// Checks that no lock is free with a queue. True wherever an append ends.
    pub(super) fn end_of_append(&self) -> Result<(), String> {
        let free = self
            .queues
            .iter()
            .find(|(lock, queue)| !queue.is_empty() && !self.holds.contains_key(lock));
        match free {
            Some((lock, _)) => Err(format!("{lock:?} is free, and has a queue")),
            None => Ok(()),
        }
    }
}

/// Nothing is held without an end: 5 to 300 seconds from each acquire, promotion and heartbeat.
fn lease(record: &Record, data: &Value) -> Result<(), String> {
    let end: Time = text(data, "lease_expires_at").parse().map_err(|_| "the hold has no end")?;
    match record.time.millis_until(end) {
        5_000..=300_000 => Ok(()),
        millis => Err(format!("the lease ends in {millis} ms")),
    }
}

fn text(data: &Value, field: &str) -> String {
    data[field].as_str().unwrap_or_default().to_owned()
}

fn same(data: &Value, fence: FenceToken, depth: usize) -> Result<(), String> {
    let is_same = data["fence_token"] == fence.0.0 && data["depth"] == depth;
    if is_same { Ok(()) } else { Err(format!("the fence token is {fence}, the depth {depth}")) }
}
