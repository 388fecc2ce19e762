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

/// How far a record may lie from the one before to be read in one go with it: the records between
/// them, which are read in vain, cost less than another seek.
const RUN_STEP_MAX: u64 = 8;

/// How many records are read in one go.
const RUN_SPAN_MAX: u64 = 256;

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
    let sequences = of_lock_after(ledger, lock, after, most)?;
    let mut records = Vec::with_capacity(sequences.len());
    each_record(ledger, &sequences, |record| {
        records.push(record);
        Ok(())
    })?;
    Ok(records)
}

/// The sequences of a lock's events after `after`, up to `most` of them, in order.
///
/// # Errors
/// If the ledger can't be read.
pub fn of_lock_after(
    ledger: &dyn Ledger,
    lock: &LockKey,
    after: Sequence,
    most: usize,
) -> Result<Vec<Sequence>, LedgerError> {
    let prefix = keys::history_prefix_of_lock(lock);
    let rows = ledger.scan(Table::History, &prefix, &keys::history(lock, after), most)?;
    rows.iter().map(|(key, _)| sequence_of(key)).collect()
}

/// The sequences of the ledger's own events after `after`, up to `most` of them, in order.
///
/// # Errors
/// If the ledger can't be read.
pub fn of_ledger_after(
    ledger: &dyn Ledger,
    after: Sequence,
    most: usize,
) -> Result<Vec<Sequence>, LedgerError> {
    let prefix = keys::history_prefix_of_ledger();
    let rows = ledger.scan(Table::History, &prefix, &keys::history_of_ledger(after), most)?;
    rows.iter().map(|(key, _)| sequence_of(key)).collect()
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
        let Some((key, _)) = page.into_iter().next_back() else { break };
        // Of a lock whose rows have come past `last`, the others are passed over.
        after = if sequence_of(&key)? > last { end_of_rows(key) } else { key };
    }
    // Within a scope the rows are in the order of the locks.
    sequences.sort_unstable();
    Ok(sequences)
}

/// Hands on the records that rows have named, by rising sequence. Those that lie close together
/// are read in one go.
///
/// # Errors
/// If the ledger can't be read, or has no such record: rows and records are written by one append.
/// And what `take` fails with.
pub fn each_record(
    ledger: &dyn Ledger,
    sequences: &[Sequence],
    mut take: impl FnMut(Stored) -> Result<(), LedgerError>,
) -> Result<(), LedgerError> {
    let mut rest = sequences;
    while let [first, ..] = rest {
        let (run, later) = rest.split_at(run_len(rest));
        rest = later;
        let span = run.last().map_or(1, |last| last.0 - first.0 + 1);
        let span = usize::try_from(span).expect("a run is short");
        let mut found = ledger.records(Sequence(first.0.saturating_sub(1)), span)?.into_iter();
        for sequence in run {
            let record = found.by_ref().find(|found| found.sequence == *sequence);
            take(record.ok_or_else(|| LedgerError::Corrupt {
                what: format!("the history names record {sequence}, which is not there"),
            })?)?;
        }
    }
    Ok(())
}

/// How many of the first sequences are read in one go.
fn run_len(sequences: &[Sequence]) -> usize {
    let goes_on = |pair: &&[Sequence]| {
        pair[1].0 - pair[0].0 <= RUN_STEP_MAX && pair[1].0 - sequences[0].0 < RUN_SPAN_MAX
    };
    1 + sequences.windows(2).take_while(goes_on).count()
}

/// The end of the rows to which this one belongs, those of one lock or of the ledger.
fn end_of_rows(mut key: Vec<u8>) -> Vec<u8> {
    if let Some(sequence) = key.last_chunk_mut() {
        *sequence = u64::MAX.to_be_bytes();
    }
    key
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
