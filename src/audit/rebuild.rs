//! Writes the tables of a data directory anew, from its records.

use std::path::Path;

use super::check::Checker;
use super::copy::{Copied, copied, finish};
use super::fault::AuditError;
use super::progress::Progress;
use super::source::{RECORDS_MAX, Records};
use crate::ledger::pending::{Gap, Pending, Unfinished};
use crate::ledger::rocks::{OpenOptions, RocksLedger};
use crate::ledger::{Append, Ledger};
use crate::projection;

/// Drops every table and the snapshot, and writes them anew. The records are checked first: with
/// a fault in them nothing is dropped.
///
/// # Errors
/// [`AuditError`]; if the tables were dropped already, the directory is not served until this has
/// been done again.
pub fn rebuild(data: &Path, progress: &mut dyn Progress) -> Result<Copied, AuditError> {
    let (ledger, opened) = RocksLedger::open(data, OpenOptions::default())?;
    let pending = Pending::read(&ledger)?;
    if pending.unfinished == Some(Unfinished::Copy) {
        pending.require_finished()?;
    }
    let torn = opened.dropped_tail.then_some(Gap::TornTailDropped);
    let gap = pending.gap.or(torn);
    progress.begin(Some(ledger.head().sequence));
    follow(&ledger, |_| Ok(()))?.end().map_err(AuditError::Fault)?;
    ledger.clear_tables(&Pending { unfinished: Some(Unfinished::Rebuild), gap }.put())?;
    let expected_head = ledger.head().sequence;
    let mut puts = Vec::new();
    let write = |puts: &mut Vec<_>| {
        let puts = std::mem::take(puts);
        ledger.append(&Append { expected_head, records: Vec::new(), puts })
    };
    let checker = follow(&ledger, |good| {
        puts.extend(projection::puts(&good.record, good.ended.as_ref()));
        if puts.len() >= RECORDS_MAX {
            write(&mut puts)?;
            progress.reach(good.record.sequence);
        }
        Ok(())
    })?;
    write(&mut puts)?;
    finish(&ledger, &checker, gap)?;
    Ok(copied(&checker))
}

fn follow(
    ledger: &dyn Ledger,
    mut see: impl FnMut(super::check::Good) -> Result<(), AuditError>,
) -> Result<Checker, AuditError> {
    let (mut checker, mut records) = (Checker::default(), Records::of(ledger));
    while let Some(line) = records.read(checker.head().sequence)? {
        see(checker.pass(line.hash, line.bytes).map_err(AuditError::Fault)?)?;
    }
    Ok(checker)
}
