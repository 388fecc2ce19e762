//! Reads from an open database: as it is at each moment, or as it was when it was frozen.

use rocksdb::{ColumnFamily, DB, ReadOptions, SnapshotWithThreadMode};

use super::super::{Append, Head, Ledger, LedgerError, Pair, Stored, Table};
use super::{RECORDS, last_record_of, storage_error, stored};
use crate::domain::id::Sequence;

/// Reads from a database.
#[derive(Clone, Copy)]
pub(super) struct Reads<'a> {
    db: &'a DB,
    snapshot: Option<&'a SnapshotWithThreadMode<'a, DB>>,
}

impl<'a> Reads<'a> {
    /// From what is there at each moment.
    pub(super) fn of(db: &'a DB) -> Self {
        Self { db, snapshot: None }
    }

    fn options(self) -> ReadOptions {
        let mut options = ReadOptions::default();
        if let Some(snapshot) = self.snapshot {
            options.set_snapshot(snapshot);
        }
        options
    }

    /// What was opened to be read can lack a family, and has nothing in it then: an older version
    /// wrote fewer, and a crash can have cut off the making of a database between two.
    fn family(self, name: &str) -> Option<&'a ColumnFamily> {
        self.db.cf_handle(name)
    }

    pub(super) fn head(self) -> Result<Head, LedgerError> {
        let Some(records) = self.family(RECORDS) else { return Ok(Head::default()) };
        last_record_of(self.db.raw_iterator_cf_opt(records, self.options()))
    }

    /// The first records after `after`: as many, and no more once they have that many bytes.
    pub(super) fn records(
        self,
        after: Sequence,
        most: (usize, usize),
    ) -> Result<Vec<Stored>, LedgerError> {
        let found = self.range(RECORDS, b"", &after.0.to_be_bytes(), most)?;
        found.iter().map(|(key, value)| stored(key, value)).collect()
    }

    pub(super) fn get(self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, LedgerError> {
        let Some(family) = self.family(table.name()) else { return Ok(None) };
        let found = self.db.get_cf_opt(family, key, &self.options());
        found.map_err(|error| storage_error(&error))
    }

    /// The first `most` pairs of a family whose keys begin with `prefix` and come after `after`;
    /// no more once their values have `bytes`.
    pub(super) fn range(
        self,
        family_name: &str,
        prefix: &[u8],
        after: &[u8],
        (most, bytes): (usize, usize),
    ) -> Result<Vec<Pair>, LedgerError> {
        let is_from_start = after.is_empty() || after < prefix;
        let (mut found, mut found_bytes) = (Vec::new(), 0);
        let Some(family) = self.family(family_name) else { return Ok(found) };
        let mut iterator = self.db.raw_iterator_cf_opt(family, self.options());
        iterator.seek(if is_from_start { prefix } else { after });
        if !is_from_start && iterator.key() == Some(after) {
            iterator.next();
        }
        while found.len() < most
            && found_bytes < bytes
            && let Some((key, value)) = iterator.item()
            && key.starts_with(prefix)
        {
            found_bytes += value.len();
            found.push((key.to_vec(), value.to_vec()));
            iterator.next();
        }
        // An iterator that has met an error looks like one that is at the end.
        iterator.status().map_err(|error| storage_error(&error))?;
        Ok(found)
    }
}

/// A ledger as it was at one moment, whatever has been appended since. RocksDB keeps what was
/// overwritten meanwhile until this is dropped.
pub(super) struct Frozen<'a> {
    db: &'a DB,
    snapshot: SnapshotWithThreadMode<'a, DB>,
    head: Head,
}

impl<'a> Frozen<'a> {
    pub(super) fn new(db: &'a DB) -> Result<Self, LedgerError> {
        let snapshot = db.snapshot();
        let head = Reads { db, snapshot: Some(&snapshot) }.head()?;
        Ok(Self { db, snapshot, head })
    }

    fn reads(&self) -> Reads<'_> {
        Reads { db: self.db, snapshot: Some(&self.snapshot) }
    }
}

impl ReadOnly for Frozen<'_> {
    fn view(&self) -> View<'_> {
        View { reads: self.reads(), head: self.head }
    }
}

/// A database that nobody writes to as long as it is seen so.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) reads: Reads<'a>,
    pub(super) head: Head,
}

/// What is a ledger by what it shows.
pub(super) trait ReadOnly: Send + Sync {
    fn view(&self) -> View<'_>;
}

impl ReadOnly for View<'_> {
    fn view(&self) -> View<'_> {
        *self
    }
}

impl<T: ReadOnly> Ledger for T {
    fn head(&self) -> Head {
        self.view().head
    }

    /// # Panics
    /// Always: it is there to be read.
    fn append(&self, _: &Append) -> Result<(), LedgerError> {
        unreachable!("nobody appends to what is only read");
    }

    fn frozen(&self) -> Result<Box<dyn Ledger + '_>, LedgerError> {
        Ok(Box::new(self.view()))
    }

    fn records_within(
        &self,
        after: Sequence,
        most: usize,
        bytes: usize,
    ) -> Result<Vec<Stored>, LedgerError> {
        self.view().reads.records(after, (most, bytes))
    }

    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, LedgerError> {
        self.view().reads.get(table, key)
    }

    fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        after: &[u8],
        most: usize,
    ) -> Result<Vec<Pair>, LedgerError> {
        self.view().reads.range(table.name(), prefix, after, (most, usize::MAX))
    }
}
