//! Random numbers that depend on the seed alone, so that a seed is a whole story.

use uuid::{Builder, Uuid};

/// xoshiro256** with its state filled by splitmix64, as its authors advise.
#[derive(Debug, Clone)]
pub(crate) struct Rng([u64; 4]);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        let mut state = seed;
        let mut splitmix64 = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = state;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        };
        Self([splitmix64(), splitmix64(), splitmix64(), splitmix64()])
    }

    fn next(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.0;
        let drawn = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        drawn
    }

    /// A number from 0 to `end` - 1. Small ends only: the bias of the remainder is ignored.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// True in `percent` of 100 cases.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of the items, each as likely as the other.
    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.index(items.len())]
    }

    /// An index into something of `length`.
    pub(crate) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).expect("less than a usize")
    }

    /// A span of less than `end_ms` milliseconds.
    pub(crate) fn span_ms(&mut self, end_ms: u64) -> i64 {
        i64::try_from(self.below(end_ms)).expect("a short span")
    }

    pub(crate) fn uuid(&mut self) -> Uuid {
        let halves = [self.next().to_be_bytes(), self.next().to_be_bytes()];
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&halves[0]);
        bytes[8..].copy_from_slice(&halves[1]);
        Builder::from_random_bytes(bytes).into_uuid()
    }
}
