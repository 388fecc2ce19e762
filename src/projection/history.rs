//! Reads which events each lock has had, so that its story and its past need no walk of the
//! ledger.
//!
//! A row is a key alone: the event lies in the ledger, once. The ledger's own events bear on
//! every lock, and have rows of their own.

use crate::domain::id::Sequence;
use crate::domain::scope::{LockKey, Scope};
use crate::ledger::{Ledger, LedgerError, Stored, Table, keys};

/// How many rows are read at once.
const ROWS_MAX: usize = 1000;

/// Whose rows are meant.
#[derive(Debug, Clone, Copy)]
pub enum Rows<'a> {
    /// Those of one lock.
    Lock(&'a LockKey),
    /// Those of all locks of a scope.
    Scope(&'a Scope),
    /// Those that bear on every lock.
    Ledger,
}

impl Rows<'_> {
    fn prefix(self) -> Vec<u8> {
        match self {
            Self::Lock(lock) => keys::history_prefix_of_lock(lock),
            Self::Scope(scope) => keys::history_prefix_of_scope(scope),
            Self::Ledger => keys::history_prefix_of_ledger(),
        }
    }
}

/// The events of a lock after `after`, up to `most` of them, in order.
///
/// # Errors
/// If the ledger can't be read.
pub fn of_lock(
    ledger: &dyn Ledger,
    lock: &LockKey,
    after: Sequence,
    most: usize,
) -> Result<Vec<Stored>, LedgerError> {
    let prefix = keys::history_prefix_of_lock(lock);
    let rows = ledger.scan(Table::History, &prefix, &keys::history(lock, after), most)?;
    rows.iter().map(|(key, _)| record(ledger, sequence_of(key)?)).collect()
}

/// The sequences of all rows up to `last`, in order.
///
/// # Errors
/// If the ledger can't be read.
pub fn sequences(
    ledger: &dyn Ledger,
    rows: Rows<'_>,
    last: Sequence,
) -> Result<Vec<Sequence>, LedgerError> {
    let prefix = rows.prefix();
    let (mut sequences, mut after) = (Vec::new(), Vec::new());
    loop {
        let page = ledger.scan(Table::History, &prefix, &after, ROWS_MAX)?;
        for (key, _) in &page {
            sequences.extend(Some(sequence_of(key)?).filter(|sequence| *sequence <= last));
        }
        match page.into_iter().next_back() {
            Some((key, _)) => after = key,
            None => break,
        }
    }
    // Within a scope the rows are in the order of the locks.
    sequences.sort_unstable();
    Ok(sequences)
}

/// The record with this sequence, which a row has named.
///
/// # Errors
/// If the ledger can't be read, or has no such record: rows and records are written by one append.
pub fn record(ledger: &dyn Ledger, sequence: Sequence) -> Result<Stored, LedgerError> {
    let before = Sequence(sequence.0.saturating_sub(1));
    let record = ledger.records(before, 1)?.pop().filter(|found| found.sequence == sequence);
    record.ok_or_else(|| LedgerError::Corrupt {
        what: format!("the history names record {sequence}, which is not there"),
    })
}

/// The sequence at the end of a row's key.
fn sequence_of(key: &[u8]) -> Result<Sequence, LedgerError> {
    keys::history_sequence(key).ok_or_else(|| LedgerError::Corrupt {
        what: "a key of the history has no sequence".to_owned(),
    })
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
