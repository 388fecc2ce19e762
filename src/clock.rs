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

/// The monotonic clock, as request rates read it.
#[cfg(feature = "server")]
#[derive(Debug, Clone, Copy)]
pub struct RateClock;

#[cfg(feature = "server")]
impl governor::clock::Clock for RateClock {
    type Instant = Instant;

    fn now(&self) -> Instant {
        monotonic()
    }
}

/// How long ago an instant was.
pub fn elapsed(since: Instant) -> Duration {
    monotonic().duration_since(since)
}

/// A client's clock: time since the machine started, suspend included.
///
/// A lease runs on while a laptop sleeps, so its holder must count that time as well. It can't be
/// set, and no other machine's clock is compared with it.
#[cfg(feature = "client")]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct BootTime(Duration);

#[cfg(feature = "client")]
impl BootTime {
    /// Now, by `CLOCK_BOOTTIME`.
    pub fn now() -> Self {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        // Neither is negative: the clock starts at 0 and never goes back.
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        Self(Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0)))
    }

    /// Later by `millis` milliseconds.
    #[must_use]
    pub fn plus_millis(self, millis: u64) -> Self {
        self.plus(Duration::from_millis(millis))
    }

    /// Later by `length`.
    #[must_use]
    pub fn plus(self, length: Duration) -> Self {
        Self(self.0.saturating_add(length))
    }

    /// Earlier by `length`; the machine's start if that would be before it.
    #[must_use]
    pub fn minus(self, length: Duration) -> Self {
        Self(self.0.saturating_sub(length))
    }

    /// From this instant until `later`; zero if that is not later.
    pub fn until(self, later: Self) -> Duration {
        later.0.saturating_sub(self.0)
    }
}

#[cfg(all(test, feature = "client"))]
mod tests {
    use super::*;

    #[test]
    fn the_clients_clock_never_goes_back() {
        let before = BootTime::now();
        assert!(BootTime::now() >= before);
        let later = before.plus_millis(1500);
        assert_eq!(before.until(later), Duration::from_millis(1500));
        assert_eq!(later.until(before), Duration::ZERO);
        assert_eq!(later.minus(Duration::from_millis(1500)), before);
        assert_eq!(before.minus(Duration::MAX).until(before), before.0, "it has a beginning");
    }
}
