//! The only place that draws random numbers: ids and secrets, from the operating system.
//!
//! Deliberately absent: a generator of our own, and any fallback. Without good random numbers
//! tokens could be guessed, so a machine that has none is a bug here and stops the process.

use uuid::Uuid;

use crate::domain::time::Time;

/// A new id of 122 random bits (UUID version 4).
#[expect(clippy::disallowed_methods, reason = "this is the one place that draws ids")]
pub fn uuid() -> Uuid {
    Uuid::new_v4()
}

/// A new id that begins with a time, and so stands near those made just before it (UUID version
/// 7, 74 random bits): what is written in its order costs an ordered store less.
pub fn uuid_at(time: Time) -> Uuid {
    let mut bits = [0; 10];
    fill(&mut bits);
    let millis = u64::try_from(time.as_millis()).unwrap_or(0);
    uuid::Builder::from_unix_timestamp_millis(millis, &bits).into_uuid()
}

/// A number from 0 to 1, for pauses that are not to end all at once.
pub fn chance() -> f64 {
    let mut byte = [0];
    fill(&mut byte);
    f64::from(byte[0]) / 255.0
}

/// Fills `bytes` with random bits.
#[expect(clippy::disallowed_methods, reason = "this is the one place that draws secrets")]
pub fn fill(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("the operating system has random numbers");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_later_times_come_later() {
        let (one, other) = (Time::from_millis(1), Time::from_millis(1).plus_seconds(1));
        assert!(uuid_at(one) < uuid_at(other));
    }

    #[test]
    fn two_draws_differ() {
        assert_ne!(uuid(), uuid());
        assert_ne!(uuid_at(Time::default()), uuid_at(Time::default()));
        let (mut one, mut other) = ([0; 32], [0; 32]);
        fill(&mut one);
        fill(&mut other);
        assert_ne!(one, other);
    }
}
