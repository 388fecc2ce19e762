//! The only place that draws random numbers: ids and secrets, from the operating system.
//!
//! Deliberately absent: a generator of our own, and any fallback. Without good random numbers
//! tokens could be guessed, so a machine that has none is a bug here and stops the process.

use uuid::Uuid;

/// A new id of 122 random bits (UUID version 4).
#[expect(clippy::disallowed_methods, reason = "this is the one place that draws ids")]
pub fn uuid() -> Uuid {
    Uuid::new_v4()
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
    fn two_draws_differ() {
        assert_ne!(uuid(), uuid());
        let (mut one, mut other) = ([0; 32], [0; 32]);
        fill(&mut one);
        fill(&mut other);
        assert_ne!(one, other);
    }
}
