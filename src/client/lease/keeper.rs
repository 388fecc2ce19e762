//! Decides when a lease is heartbeaten, and what may be said of it. Pure: no clock, no IO, no task.
//!
//! Whoever drives it asks [`Keeper::next`] what to do, does that, and tells [`Keeper::hear`] what
//! came of it. Its deadline is counted from when a request was SENT, so it is never later than the
//! server's: what is said to be held here is held there. One failed heartbeat is no loss; time
//! that has run out is, and so is a refusal.
//! Deliberately absent: a lost lease that comes back, whatever answer arrives late.

use std::time::Duration;

use crate::clock::BootTime;
use crate::wire::problem::Code;

/// How long one heartbeat may take, at most half of what is left: a further one must fit in.
const PATIENCE_MAX: Duration = Duration::from_secs(10);
/// What a heartbeat gets all the same when nearly nothing is left.
const PATIENCE_LEAST: Duration = Duration::from_millis(100);
/// The pause after a heartbeat that failed; each further one in a row doubles it.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
/// The longest pause, unless the server asks for a longer one.
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// The shortest pause between two heartbeats, however little is left.
const PAUSE_LEAST: Duration = Duration::from_millis(50);

/// What a holder may believe of its lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseState {
    /// The last heartbeat was answered: it is held until then, at least.
    Held {
        /// On the client's own clock.
        deadline: BootTime,
    },
    /// A heartbeat was due, and got no answer that says anything. It is held until the deadline
    /// all the same; heartbeats go on.
    InDoubt {
        /// On the client's own clock.
        deadline: BootTime,
        /// What came instead of an answer, for people.
        why: String,
    },
    /// It can't be relied on any more, and never again.
    Lost(Lost),
}

/// Why a lease is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// The server refused a heartbeat: the ticket isn't held any more.
    #[error("the server refused the heartbeat: {0}")]
    Refused(Code),
    /// Its time ran out before a heartbeat was answered.
    #[error("the lease ran out before a heartbeat was answered")]
    Deadline,
    /// Its own holder let go of it.
    #[error("it was let go")]
    LetGo,
}

impl LeaseState {
    /// When it is lost if nothing more is heard, on the client's own clock; `None` if it is lost.
    pub fn deadline(&self) -> Option<BootTime> {
        match self {
            Self::Held { deadline } | Self::InDoubt { deadline, .. } => Some(*deadline),
            Self::Lost(_) => None,
        }
    }

    /// Judges it at `now`: a deadline that has come is a loss.
    pub(super) fn judge(&mut self, now: BootTime) {
        if self.deadline().is_some_and(|deadline| now >= deadline) {
            *self = Self::Lost(Lost::Deadline);
        }
    }
}

/// What came of a heartbeat, or of the holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Heard {
    /// At `as_of` at the earliest, `remaining` was left.
    Held { as_of: BootTime, remaining: Duration },
    /// The server's no.
    Refused(Code),
    /// Nothing that says yes or no.
    Nothing { why: String, retry_after: Option<Duration> },
    /// The holder lets go.
    LetGo,
}

/// What to do next. No time that it names is later than the deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Heartbeat, and wait for the answer until then.
    Beat { until: BootTime },
    /// Nothing until then.
    Wait { until: BootTime },
    /// Nothing ever: it is lost.
    End,
}

/// The keeper of one lease.
#[derive(Debug)]
pub(super) struct Keeper {
    state: LeaseState,
    /// When the newest answer was true.
    as_of: BootTime,
    /// When the next heartbeat is due.
    due: BootTime,
    /// The longest time between two heartbeats.
    every: Duration,
    /// Heartbeats in a row that failed.
    failures: u32,
    /// From 0 to 1, drawn once for a lease: how much is taken off its pauses, so that not all
    /// holders come back to a server in one instant.
    spread: f64,
}

impl Keeper {
    /// Of a lease of which `remaining` was left at `as_of`.
    pub(super) fn new(as_of: BootTime, remaining: Duration, every: Duration, spread: f64) -> Self {
        let state = LeaseState::Held { deadline: as_of.plus(remaining) };
        let due = as_of.plus(every.min(remaining / 3));
        Self { state, as_of, due, every, failures: 0, spread }
    }

    pub(super) fn state(&self) -> &LeaseState {
        &self.state
    }

    /// What to do at `now`.
    pub(super) fn next(&mut self, now: BootTime) -> Next {
        let Some(deadline) = self.deadline(now) else { return Next::End };
        if now < self.due {
            return Next::Wait { until: self.due.min(deadline) };
        }
        let patience = (now.until(deadline) / 2).clamp(PATIENCE_LEAST, PATIENCE_MAX);
        Next::Beat { until: now.plus(patience).min(deadline) }
    }

    /// Takes in what was heard at `now`.
    pub(super) fn hear(&mut self, heard: Heard, now: BootTime) {
        let Some(deadline) = self.deadline(now) else { return };
        match heard {
            // Older than what was heard already: it tells nothing new.
            Heard::Held { as_of, .. } if as_of < self.as_of => {}
            // The server's way to say that it is over, and not just at `as_of` but by then.
            Heard::Held { remaining: Duration::ZERO, .. } => {
                self.state = LeaseState::Lost(Lost::Deadline);
            }
            Heard::Held { as_of, remaining } => {
                let due = as_of.plus(self.every.min(remaining / 3));
                (self.as_of, self.failures) = (as_of, 0);
                self.due = due.max(now.plus(PAUSE_LEAST));
                // The server only ever moves a deadline later, so the later of two is true.
                self.state = LeaseState::Held { deadline: deadline.max(as_of.plus(remaining)) };
            }
            Heard::Refused(code) => self.state = LeaseState::Lost(Lost::Refused(code)),
            Heard::Nothing { why, retry_after } => {
                self.due = now.plus(self.pause(retry_after, now.until(deadline)));
                self.failures = self.failures.saturating_add(1);
                self.state = LeaseState::InDoubt { deadline, why };
            }
            Heard::LetGo => self.state = LeaseState::Lost(Lost::LetGo),
        }
    }

    /// The deadline, if it has not passed. Whoever asks has it judged first, so nothing that comes
    /// at or after it can count.
    fn deadline(&mut self, now: BootTime) -> Option<BootTime> {
        self.state.judge(now);
        self.state.deadline()
    }

    /// How long to wait after a heartbeat that failed: less when less is left. A server that asks
    /// for time gets it, as far as there is time to give: half of what is left.
    fn pause(&self, retry_after: Option<Duration>, left: Duration) -> Duration {
        let pause = (PAUSE_FIRST * 2_u32.pow(self.failures.min(8))).min(PAUSE_MAX);
        let pause = pause.mul_f64(1.0 - self.spread / 2.0).min(left / 4);
        pause.max(retry_after.unwrap_or_default().min(left / 2)).max(PAUSE_LEAST)
    }
}

#[cfg(test)]
#[path = "keeper_tests.rs"]
mod tests;
