//! How far the open feeds have come. Each notes it in a number of its own, so that a feed which
//! its reader doesn't take from, and which does nothing any more, is seen to lag.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::domain::id::Sequence;

/// The open feeds.
#[derive(Debug, Clone, Default)]
pub(super) struct Readers(Arc<Mutex<Open>>);

#[derive(Debug, Default)]
struct Open {
    /// The last sequence that each has dealt with, by its number.
    cursors: BTreeMap<u64, Arc<AtomicU64>>,
    /// The number of the next one.
    next: u64,
}

/// The place of one feed. Dropping it says that the feed has ended.
#[derive(Debug)]
pub(super) struct Place {
    readers: Readers,
    number: u64,
    cursor: Arc<AtomicU64>,
}

impl Readers {
    /// A further feed, which begins after a sequence.
    pub(super) fn enter(&self, after: Sequence) -> Place {
        let cursor = Arc::new(AtomicU64::new(after.0));
        let mut open = self.lock();
        let number = open.next;
        open.next += 1;
        open.cursors.insert(number, Arc::clone(&cursor));
        Place { readers: self.clone(), number, cursor }
    }

    /// How many there are, and how far the last of them has come.
    pub(super) fn look(&self) -> (usize, Option<Sequence>) {
        let open = self.lock();
        let slowest = open.cursors.values().map(|cursor| cursor.load(Ordering::Relaxed)).min();
        (open.cursors.len(), slowest.map(Sequence))
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        // Each change leaves the map whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Notes that the feed has come to a sequence.
    pub(super) fn reached(&self, sequence: Sequence) {
        self.cursor.store(sequence.0, Ordering::Relaxed);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.readers.lock().cursors.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_feed_is_the_one_that_came_least_far_and_is_open() {
        let readers = Readers::default();
        assert_eq!(readers.look(), (0, None));
        let (slow, fast) = (readers.enter(Sequence(3)), readers.enter(Sequence(9)));
        slow.reached(Sequence(5));
        assert_eq!(readers.look(), (2, Some(Sequence(5))));
        drop(slow);
        assert_eq!(readers.look(), (1, Some(Sequence(9))));
        drop(fast);
        assert_eq!(readers.look(), (0, None));
    }
}
