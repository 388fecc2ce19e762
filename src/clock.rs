//! The only reader of clocks.

use std::time::{Duration, Instant, SystemTime};

use crate::domain::time::Time;

/// Ledger time of a running server: anchored once, then counted by the monotonic clock, so a jump
/// of the wall clock changes no lease.
#[derive(Debug, Clone, Copy)]
pub struct LedgerClock {
    anchor: Time,
    started: Instant,
}

impl LedgerClock {
    /// Anchors ledger time at the later of the wall clock and `last`, the time of the last event:
    /// it never runs backwards, over restarts too.
    pub fn anchored_after(last: Time) -> Self {
        Self { anchor: wall().max(last), started: monotonic() }
    }

    /// Ledger time now, in whole milliseconds.
    pub fn now(&self) -> Time {
        let elapsed = monotonic().duration_since(self.started).as_millis();
        let elapsed =
            i64::try_from(elapsed).expect("a server runs for less than 292 million years");
        Time::from_millis(self.anchor.as_millis() + elapsed)
    }
}

/// The wall clock. Used for anchoring only.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
pub fn wall() -> Time {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Time::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// The monotonic clock, for how long something took. Stops while the host is suspended.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the monotonic clock")]
pub fn monotonic() -> Instant {
    Instant::now()
}

/// How long ago an instant was.
pub fn elapsed(since: Instant) -> Duration {
    monotonic().duration_since(since)
}
