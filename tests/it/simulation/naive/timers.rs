//! What time does: waits run out, leases run out, the queue moves up, a recovery gives grace.

use pearing::domain::scope::LockKey;
use pearing::domain::time::Time;

use super::{Ending, Event, Kind, LockEvent, Naive, Standing};

/// What a recovery lifts a lease by, at most.
pub(crate) const GRACE_SECONDS: u32 = 10;

impl Naive {
    /// The next thing that is due at `now`: one wait that times out, or one lease that expires,
    /// with the promotion that may follow. Every due wait comes before every due lease.
    pub(crate) fn settle_next(&mut self, now: Time) -> Option<Vec<Event>> {
        self.now = now;
        let next_due = |is_waiting: bool| {
            (0..self.tickets.len())
                .filter(|index| self.tickets[*index].is_waiting() == is_waiting)
                .filter_map(|index| Some((self.tickets[index].deadline()?, index)))
                .filter(|(deadline, _)| *deadline <= now)
                .min()
        };
        if let Some((deadline, index)) = next_due(true) {
            return Some(vec![self.time_out(index, deadline)]);
        }
        let (deadline, index) = next_due(false)?;
        let lock = self.tickets[index].input.lock();
        let mut events = vec![self.end_held(index, Ending::Expired, None, Some(deadline))];
        events.extend(self.promote_if_free(&lock));
        Some(events)
    }

    /// When the next wait or lease runs out.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        self.tickets.iter().filter_map(super::Ticket::deadline).min()
    }

    /// Events may be lost: the sequences jump above all that can have been given away.
    pub(crate) fn restore(&mut self, now: Time, reason: &str) -> Event {
        let last_sequence = self.sequence;
        let seconds = u64::try_from(now.as_millis() / 1000).expect("after 1970");
        self.sequence = (last_sequence + 1).max(seconds * (1 << 20));
        Event::Restored { last_sequence, reason: reason.to_owned() }
    }

    /// The first thing after a restart. Nothing, if nothing is held.
    pub(crate) fn recover(&mut self, now: Time) -> Option<Event> {
        self.now = now;
        if !self.tickets.iter().any(super::Ticket::is_held) {
            return None;
        }
        self.next_sequence();
        for ticket in &mut self.tickets {
            let lease_seconds = ticket.input.lease_seconds.get();
            if let Standing::Held { until, is_grace_due } = &mut ticket.standing
                && *is_grace_due
            {
                *until = now.plus_seconds(lease_seconds.min(GRACE_SECONDS)).max(*until);
                *is_grace_due = false;
            }
        }
        Some(Event::Recovered { grace_seconds: GRACE_SECONDS })
    }

    fn time_out(&mut self, index: usize, deadline: Time) -> Event {
        self.next_sequence();
        let now = self.now;
        let ticket = &mut self.tickets[index];
        ticket.end(Ending::TimedOut, now, None);
        let event = ticket.event(Kind::WaitTimedOut);
        Event::Lock(Box::new(LockEvent { until: Some(deadline), ..event }))
    }

    /// Ends one held ticket. What follows for the queue is the caller's next step.
    pub(super) fn end_held(
        &mut self,
        index: usize,
        ending: Ending,
        reason: Option<&str>,
        until: Option<Time>,
    ) -> Event {
        self.next_sequence();
        let kind = match ending {
            Ending::Released => Kind::Released,
            Ending::Expired => Kind::Expired,
            Ending::Broken => Kind::Broken,
            Ending::Cancelled | Ending::TimedOut | Ending::Contended | Ending::DeadlockRejected => {
                unreachable!("no hold ends like that")
            }
        };
        let now = self.now;
        self.tickets[index].end(ending, now, reason);
        let ticket = &self.tickets[index];
        Event::Lock(Box::new(LockEvent {
            fence: ticket.fence,
            depth: Some(self.depth(&ticket.input.lock())),
            until,
            reason: reason.map(str::to_owned),
            ..ticket.event(kind)
        }))
    }

    /// Where a hold has just ended, the first place of the queue gets the lock, with all of its
    /// tickets.
    pub(super) fn promote_if_free(&mut self, lock: &LockKey) -> Vec<Event> {
        let mut events = Vec::new();
        if self.holder(lock).is_some() {
            return events;
        }
        let Some(first) = self.queue(lock).into_iter().next() else {
            return events;
        };
        let fence = self.sequence + 1;
        for index in 0..self.tickets.len() {
            let ticket = &self.tickets[index];
            if !(ticket.is_waiting() && ticket.is_for(lock) && ticket.owner == first) {
                continue;
            }
            self.next_sequence();
            let until = self.now.plus_seconds(self.tickets[index].input.lease_seconds.get());
            self.tickets[index].fence = Some(fence);
            self.tickets[index].standing = Standing::Held { until, is_grace_due: true };
            events.push(Event::Lock(Box::new(LockEvent {
                fence: Some(fence),
                depth: Some(self.depth(lock)),
                until: Some(until),
                ..self.tickets[index].event(Kind::Promoted)
            })));
        }
        events
    }
}
