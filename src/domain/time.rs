//! Ledger time and the lengths that leases and waits may have.
//!
//! Deliberately absent: a clock. The core is told the time.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a time is written, as a pattern of a JSON Schema.
const TIME_PATTERN: &str = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z$";

/// An instant of ledger time, in whole milliseconds since 1970-01-01T00:00:00Z.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(
    inline,
    description = "An instant: RFC 3339 in UTC with milliseconds.",
    extend("format" = "date-time", "pattern" = TIME_PATTERN)
)]
pub struct Time(i64);

/// A text that is no time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be an RFC 3339 time in UTC with milliseconds, like 2026-01-31T12:00:00.000Z")]
pub struct InvalidTime;

impl Time {
    /// From milliseconds since 1970.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since 1970.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Later by `seconds`.
    #[must_use]
    pub const fn plus_seconds(self, seconds: u32) -> Self {
        Self(self.0 + seconds as i64 * 1000)
    }

    /// Milliseconds from this instant until `later`; 0 if that is not later.
    pub fn millis_until(self, later: Self) -> u64 {
        u64::try_from(later.0 - self.0).unwrap_or(0)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(stamp) => write!(f, "{stamp:.3}"),
            Err(_) => write!(f, "{}ms", self.0),
        }
    }
}

impl FromStr for Time {
    type Err = InvalidTime;

    fn from_str(text: &str) -> Result<Self, InvalidTime> {
        let stamp: jiff::Timestamp = text.parse().map_err(|_| InvalidTime)?;
        Ok(Self(stamp.as_millisecond()))
    }
}

impl TryFrom<String> for Time {
    type Error = InvalidTime;

    fn try_from(text: String) -> Result<Self, InvalidTime> {
        text.parse()
    }
}

impl From<Time> for String {
    fn from(time: Time) -> String {
        time.to_string()
    }
}

macro_rules! seconds {
    (
        $(#[$doc:meta])*
        $name:ident, $least:literal, $most:literal, $default:literal, $rule:literal
    ) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
        )]
        #[serde(try_from = "u64", into = "u64")]
        #[schemars(inline, extend("minimum" = $least, "maximum" = $most))]
        pub struct $name(u32);

        impl $name {
            /// The fewest seconds allowed.
            pub const LEAST: u32 = $least;
            /// The most seconds allowed.
            pub const MOST: u32 = $most;
            /// The rule, fit for "field RULE".
            pub const RULE: &str = $rule;

            /// In seconds.
            pub const fn get(self) -> u32 {
                self.0
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self($default)
            }
        }

        impl TryFrom<u64> for $name {
            type Error = &'static str;

            fn try_from(seconds: u64) -> Result<Self, &'static str> {
                match u32::try_from(seconds) {
                    Ok(seconds) if ($least..=$most).contains(&seconds) => Ok(Self(seconds)),
                    _ => Err(Self::RULE),
                }
            }
        }

        impl From<$name> for u64 {
            fn from(seconds: $name) -> u64 {
                seconds.0.into()
            }
        }
    };
}

seconds! {
    /// How long a hold lasts without a heartbeat: 5 to 300 seconds, 60 if not said.
    LeaseSeconds, 5, 300, 60, "must be a whole number from 5 to 300"
}
seconds! {
    /// How long a ticket may wait in the queue: 0 to 3600 seconds, 0 if not said.
    WaitSeconds, 0, 3600, 0, "must be a whole number from 0 to 3600"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_reads_back_as_it_was_written() {
        let time = Time::from_millis(1_764_431_695_007);
        assert_eq!(time.to_string(), "2025-11-29T15:54:55.007Z");
        assert_eq!(time.to_string().parse(), Ok(time));
    }

    #[test]
    fn lengths_outside_their_range_are_refused() {
        for seconds in [0, 4, 301, u64::from(u32::MAX) + 60, u64::MAX] {
            assert_eq!(LeaseSeconds::try_from(seconds), Err(LeaseSeconds::RULE));
        }
        assert!(WaitSeconds::try_from(3601).is_err());
        assert_eq!(LeaseSeconds::try_from(5).map(LeaseSeconds::get), Ok(5));
        assert_eq!(LeaseSeconds::try_from(300).map(LeaseSeconds::get), Ok(300));
    }
}
