//! The newest published records, in memory, for the readers that have caught up.
//!
//! Whoever follows the present takes them from here: a record is decoded once and its frame is
//! written once, by the first reader that needs it, and shared by all. The writer only puts in
//! what it has made durable; it encodes nothing and waits for nobody's reading.
//!
//! What is kept is the end of the ledger without a hole: each append goes on where the one before
//! ended, and only the oldest are let go. So a reader whose cursor isn't before it finds here
//! everything after its cursor, and one whose cursor is before it is told to read the ledger.
//! Deliberately absent: any trace of the readers. A slow one falls out at the old end.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use bytes::Bytes;

use crate::domain::event::Record;
use crate::domain::id::{LedgerId, Sequence};
use crate::ledger::{Append, Stored};
use crate::wire::sse;

/// How many records are kept. A few appends have as many at most, so whoever is woken by one still
/// finds it.
pub(super) const RECORDS_MAX: usize = 4096;

/// How large their stored lines are together, but for the newest. Decoded and framed they take
/// about four times as much.
const BYTES_MAX: usize = 4 << 20;

/// How many records a reader takes at once. It holds them while it waits for its connection.
const TAKEN_RECORDS_MAX: usize = 64;

/// How large they are together: none are taken beyond so many bytes.
const TAKEN_BYTES_MAX: usize = 32 * 1024;

/// A record, as all of its readers share it.
#[derive(Debug)]
pub struct Entry {
    stored: Stored,
    record: OnceLock<Option<Record>>,
    frame: OnceLock<Option<Bytes>>,
}

impl Entry {
    /// A stored record that nobody has looked into.
    pub fn new(stored: Stored) -> Self {
        Self { stored, record: OnceLock::new(), frame: OnceLock::new() }
    }

    /// Its place.
    pub fn sequence(&self) -> Sequence {
        self.stored.sequence
    }

    /// The record; `None` if it can't be read, which ends the feed of whoever would need it.
    pub fn record(&self) -> Option<&Record> {
        let decode = || self.stored.decode().inspect_err(|e| self.tell(e)).ok();
        self.record.get_or_init(decode).as_ref()
    }

    /// Its frame in the feed of this ledger; `None` if it can't be written.
    pub fn frame(&self, ledger_id: LedgerId) -> Option<Bytes> {
        let encode = || sse::event(&self.stored, ledger_id).inspect_err(|e| self.tell(e)).ok();
        self.frame.get_or_init(encode).clone()
    }

    fn tell(&self, error: &dyn std::fmt::Display) {
        tracing::error!(sequence = self.stored.sequence.0, %error, "a feed can't read a record");
    }
}

/// The end of the ledger.
#[derive(Debug)]
pub struct Live(RwLock<Window>);

#[derive(Debug)]
struct Window {
    /// The sequence before the first of the entries: of all after it none is missing.
    before: Sequence,
    /// That of the last of them.
    last: Sequence,
    entries: VecDeque<Arc<Entry>>,
    /// How large their stored lines are together.
    bytes: usize,
}

impl Live {
    /// Nothing of a ledger that ends here.
    pub fn new(head: Sequence) -> Self {
        let (entries, bytes) = (VecDeque::new(), 0);
        Self(RwLock::new(Window { before: head, last: head, entries, bytes }))
    }

    /// Takes in what was appended. Not before it is durable and its state readable, and before
    /// anybody is woken for it.
    ///
    /// # Panics
    /// If it doesn't go on where the append before ended.
    pub fn publish(&self, append: Append) {
        // Made before the readers have to wait.
        let entries: Vec<_> = append.records.into_iter().map(|s| Arc::new(Entry::new(s))).collect();
        let mut window = self.0.write().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(append.expected_head, window.last, "an append is left out of the feed");
        for entry in entries {
            window.push(entry);
        }
    }

    /// The records after a cursor, none of them after `published`, and not too many at once; none
    /// only if there are none. `None` if some of them were let go already.
    pub fn after(&self, cursor: Sequence, published: Sequence) -> Option<Vec<Arc<Entry>>> {
        let window = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if cursor < window.before {
            return None;
        }
        let first = window.entries.partition_point(|entry| entry.sequence() <= cursor);
        let rest = window.entries.range(first..).take(TAKEN_RECORDS_MAX);
        let mut bytes = 0;
        let taken = rest.take_while(|entry| {
            let is_full = bytes >= TAKEN_BYTES_MAX;
            bytes += entry.stored.bytes.len();
            !is_full && entry.sequence() <= published
        });
        Some(taken.cloned().collect())
    }
}

impl Window {
    fn push(&mut self, entry: Arc<Entry>) {
        self.last = entry.sequence();
        self.bytes += entry.stored.bytes.len();
        self.entries.push_back(entry);
        while self.entries.len() > RECORDS_MAX || (self.bytes > BYTES_MAX && self.entries.len() > 1)
        {
            let oldest = self.entries.pop_front().expect("there is more than one");
            self.bytes -= oldest.stored.bytes.len();
            self.before = oldest.sequence();
        }
    }
}

#[cfg(test)]
#[path = "live_tests.rs"]
mod tests;
