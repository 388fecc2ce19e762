//! What the service counts, and what it reads off itself when somebody asks for the metrics.
//!
//! How long somebody waited or held is the difference of ledger times: no other clock is asked.

use std::fs;
use std::time::Duration;

use super::batch::Closed;
use super::queue::Lane;
use super::{Service, Shared};
use crate::clock;
use crate::domain::State;
use crate::domain::event::Event;
use crate::domain::id::TicketId;
use crate::domain::ticket::Ticket;
use crate::domain::time::Time;
use crate::ledger::{Ledger, LedgerError};
use crate::metrics::{self, Metrics};
use crate::projection::request;

impl Shared {
    /// Notes an append of events that took so long.
    pub(super) fn note_append(&self, closed: &Closed, took: Duration) {
        let metrics = &self.metrics;
        metrics.append.observe(took.as_secs_f64());
        if let Some(sync) = self.ledger.last_sync() {
            metrics.sync.observe(sync.as_secs_f64());
        }
        metrics.batch_events.observe(closed.records.len() as f64);
    }
}

/// Counts what happened in an append, after which the state is `state`.
pub(super) fn count(
    metrics: &Metrics,
    ledger: &dyn Ledger,
    state: &State,
    closed: &Closed,
) -> Result<(), LedgerError> {
    for record in &closed.records {
        let at = Moment { metrics, ledger, state, closed, time: record.time };
        match &record.event {
            Event::LockPromoted(e) => {
                metrics.promoted.inc();
                at.stopped_waiting(e.ticket_id);
            }
            Event::LockDeadlockRejected(_) => drop(metrics.deadlocks.inc()),
            Event::LockWaitTimedOut(_) => drop(metrics.wait_timed_out.inc()),
            Event::LockReleased(e) => at.ended(e.ticket_id, e.depth)?,
            Event::LockBroken(e) => at.ended(e.ticket_id, e.depth)?,
            Event::LockExpired(e) => {
                metrics.expired.inc();
                at.ended(e.ticket_id, e.depth)?;
            }
            Event::LedgerOpened(_)
            | Event::LedgerRecovered(_)
            | Event::LedgerRestored(_)
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
            | Event::LockAcquired(_)
            | Event::LockQueued(_)
            | Event::LockContended(_)
            | Event::LockHeartbeat(_)
            | Event::LockWaitCancelled(_)
            | Event::ActivityUpdated(_)
            | Event::ActivityCleared(_)
            | Event::ThreadCreated(_)
            | Event::ThreadReplied(_)
            | Event::ThreadClosed(_)
            | Event::ThreadReopened(_) => {}
        }
    }
    Ok(())
}

/// The moment of an event.
struct Moment<'a> {
    metrics: &'a Metrics,
    ledger: &'a dyn Ledger,
    state: &'a State,
    closed: &'a Closed,
    time: Time,
}

impl Moment<'_> {
    fn ticket(&self, id: TicketId) -> &Ticket {
        let ticket = self.state.ticket(id).or_else(|| self.closed.ended.get(&id));
        ticket.expect("a ticket of an append lives after it, or ended in it")
    }

    fn stopped_waiting(&self, id: TicketId) {
        self.metrics.wait.observe(self.seconds_since(self.ticket(id).created_at));
    }

    /// Notes the end of a held ticket, and if none is left, that of its hold.
    fn ended(&self, id: TicketId, depth: u32) -> Result<(), LedgerError> {
        if depth == 0 {
            let began = self.began(self.ticket(id))?;
            self.metrics.hold.observe(self.seconds_since(began));
        }
        Ok(())
    }

    /// When the hold of an ended ticket began: at the event whose sequence is its fence token.
    fn began(&self, ticket: &Ticket) -> Result<Time, LedgerError> {
        let (fence, held_at) = (ticket.fence_token, ticket.held_at);
        let (fence, held_at) = fence.zip(held_at).expect("it was held");
        // A ticket that was made before the hold, or by its first event, was there from the start:
        // whoever holds the lock doesn't wait for it. So only a ticket that joined later needs a
        // look back.
        if ticket.made_at <= fence.0 {
            return Ok(held_at);
        }
        match self.closed.record(fence.0) {
            Some(first) => Ok(first.time),
            None => Ok(request::record(self.ledger, fence.0)?.time),
        }
    }

    fn seconds_since(&self, earlier: Time) -> f64 {
        Duration::from_millis(earlier.millis_until(self.time)).as_secs_f64()
    }
}

impl Service {
    /// What is counted.
    pub fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// All metrics as text.
    pub fn metrics_text(&self) -> String {
        let metrics = &self.0.metrics;
        let (locks, held, waiting, head) = self.read(|state| {
            let (held, waiting) = (state.held_tickets_len(), state.waiting_tickets_len());
            (state.locks_len(), held, waiting, state.head())
        });
        metrics.held_locks.set(gauge(locks));
        metrics.held_tickets.set(gauge(held));
        metrics.waiting_tickets.set(gauge(waiting));
        metrics.head_sequence.set(i64::try_from(head.0).expect("a sequence is below 2^53"));
        for (name, lane) in [("holders", Lane::Holders), ("others", Lane::Others)] {
            let depth = metrics.queue_depth.get_or_create_owned(&metrics::Lane { lane: name });
            depth.set(gauge(self.0.queue.depth(lane)));
        }
        let (readers, slowest) = self.0.readers.look();
        metrics.feed_readers.set(gauge(readers));
        let lag = slowest.map_or(0, |cursor| head.0.saturating_sub(cursor.0));
        metrics.feed_lag.set(i64::try_from(lag).expect("a sequence is below 2^53"));
        metrics.uptime.set(clock::elapsed(self.0.began).as_secs_f64());
        metrics.resident_memory.set(resident_bytes());
        metrics.to_text()
    }
}

fn gauge(count: usize) -> i64 {
    i64::try_from(count).expect("what is in memory can be counted")
}

/// The memory of this process that is in RAM; 0 where the system doesn't say.
fn resident_bytes() -> i64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kibibytes = status.lines().find_map(|line| {
        line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse::<i64>().ok()
    });
    kibibytes.map_or(0, |kibibytes| kibibytes.saturating_mul(1024))
}

#[cfg(test)]
#[path = "measure_tests.rs"]
mod tests;
