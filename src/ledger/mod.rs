//! The ledger: every event in its order, the only truth. All else is worked out from it.
//!
//! A record is stored as one line of JSON ([`codec`]), tied to all before it by a hash
//! ([`chain`]). Projections lie in [`Table`]s beside the records and are written by the same
//! [`Append`], so that they can't part ways with them.
//! There are two ledgers: `rocks`, on disk, and [`memory`], for tests and the simulator.
//! Deliberately absent: rules. Whoever appends has decided.

pub mod chain;
pub mod codec;
mod error;
pub mod keys;
pub mod memory;
pub mod pending;
mod record;
#[cfg(feature = "server")]
pub mod rocks;
#[cfg(test)]
pub(crate) mod samples;

use std::time::Duration;

use crate::domain::id::Sequence;

pub use chain::{Hash, link};
pub use error::LedgerError;
pub use record::{Head, Stored};

/// Where something lies beside the records. Each table has keys of its own, see [`keys`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// Tickets that have ended, by id.
    Tickets,
    /// What was done under a request UUID.
    Requests,
    /// Which events each lock has had.
    History,
    /// What is known of each thread without reading it.
    Threads,
    /// Which events each thread has had.
    ThreadEvents,
    /// How deep each reply of a thread stands.
    Replies,
    /// Small facts: the newest snapshot.
    Meta,
}

impl Table {
    /// Every table, each at the index `table as usize`.
    pub const ALL: [Self; 7] = [
        Self::Tickets,
        Self::Requests,
        Self::History,
        Self::Threads,
        Self::ThreadEvents,
        Self::Replies,
        Self::Meta,
    ];

    /// The name that it is stored under.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tickets => "tickets",
            Self::Requests => "requests",
            Self::History => "history",
            Self::Threads => "threads",
            Self::ThreadEvents => "thread-events",
            Self::Replies => "replies",
            Self::Meta => "meta",
        }
    }
}

/// Sets one key of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Put {
    /// The table.
    pub table: Table,
    /// The key, from [`keys`].
    pub key: Vec<u8>,
    /// The value; an earlier one is gone.
    pub value: Vec<u8>,
}

/// A key and its value, as a table holds them.
pub type Pair = (Vec<u8>, Vec<u8>);

/// One atomic, synced write: all of it becomes durable, or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Append {
    /// The head that the writer decided on. With another head nothing is written.
    pub expected_head: Sequence,
    /// The records, in order. May be empty: then only the puts are written.
    pub records: Vec<Stored>,
    /// What goes with them into the tables. Of two puts to one key the later wins.
    pub puts: Vec<Put>,
}

impl Append {
    /// The head that it makes out of `head`.
    ///
    /// # Errors
    /// [`LedgerError::HeadMoved`] if the writer decided on another head.
    ///
    /// # Panics
    /// If the sequences don't rise: then the writer is wrong, and must not write on. That they
    /// have no gap is not judged here, since `ledger.restored` makes one on purpose.
    fn head_after(&self, head: Head) -> Result<Head, LedgerError> {
        if self.expected_head != head.sequence {
            let (expected, actual) = (self.expected_head, head.sequence);
            return Err(LedgerError::HeadMoved { expected, actual });
        }
        let mut head = head;
        for record in &self.records {
            assert!(
                head.sequence < record.sequence,
                "record {} must not follow record {}",
                record.sequence,
                head.sequence
            );
            head = record.head();
        }
        Ok(head)
    }
}

/// A ledger, as the writer and the readers see it.
///
/// One writer appends, many threads read. A read sees whole appends, and only durable ones.
pub trait Ledger: Send + Sync {
    /// The last record; [`Head::default`] if there is none.
    fn head(&self) -> Head;

    /// Writes, and comes back when all of it is durable.
    ///
    /// # Errors
    /// [`LedgerError::HeadMoved`]: nothing is written. After any other error it is unknown
    /// whether it was written; nothing may be acknowledged, and each later append fails with
    /// [`LedgerError::Stopped`], because a failed sync can't be tried again: the operating
    /// system may have dropped the data and would report success. Open the ledger anew.
    fn append(&self, append: &Append) -> Result<(), LedgerError>;

    /// The ledger as it is now, whatever is appended while it is looked at.
    ///
    /// # Errors
    /// As [`records`](Self::records).
    fn frozen(&self) -> Result<Box<dyn Ledger + '_>, LedgerError>;

    /// How long the last append wrote and synced its log; `None` for a ledger that has none.
    fn last_sync(&self) -> Option<Duration> {
        None
    }

    /// The first `most` records after `after`, in order.
    ///
    /// # Errors
    /// [`LedgerError::Failed`] or [`LedgerError::Corrupt`] if they can't be read.
    fn records(&self, after: Sequence, most: usize) -> Result<Vec<Stored>, LedgerError> {
        self.records_within(after, most, usize::MAX)
    }

    /// As [`records`](Self::records), but fewer where they are large: no more once they have
    /// `bytes`. None only where there are none.
    ///
    /// # Errors
    /// As [`records`](Self::records).
    fn records_within(
        &self,
        after: Sequence,
        most: usize,
        bytes: usize,
    ) -> Result<Vec<Stored>, LedgerError>;

    /// The value of a key.
    ///
    /// # Errors
    /// As [`records`](Self::records).
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, LedgerError>;

    /// The first `most` keys that begin with `prefix` and come after `after`, in order, with
    /// their values. An empty `after` is before every key.
    ///
    /// # Errors
    /// As [`records`](Self::records).
    fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        after: &[u8],
        most: usize,
    ) -> Result<Vec<Pair>, LedgerError>;
}
