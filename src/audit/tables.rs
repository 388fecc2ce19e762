//! Compares the tables beside the records with what the records make.
//!
//! Each row is compared when its record is passed, so nothing is kept but the rows that a later
//! record may replace, those of threads. At the end the rows are counted: one too many has no
//! record that made it.

use std::collections::BTreeMap;

use super::check::Good;
use super::fault::{AuditError, Fault, FaultKind};
use crate::domain::State;
use crate::domain::id::Sequence;
use crate::ledger::{Head, Ledger, LedgerError, Put, Table};
use crate::projection::{self, snapshot};

/// How many rows are read at once.
const ROWS_MAX: usize = 1000;

/// The comparison of a ledger's tables.
pub(super) struct Tables<'a> {
    ledger: &'a dyn Ledger,
    snapshot: Option<(State, Head)>,
    counts: BTreeMap<&'static str, u64>,
    /// The rows that may yet be replaced, and the record that wrote each.
    replaced: BTreeMap<Vec<u8>, (Vec<u8>, Sequence)>,
}

impl<'a> Tables<'a> {
    pub(super) fn of(ledger: &'a dyn Ledger) -> Result<Self, AuditError> {
        if !snapshot::is_sound(ledger)? {
            return Err(table_fault("the stored snapshot can't be read".to_owned()));
        }
        let snapshot = snapshot::read(ledger)?;
        Ok(Self { ledger, snapshot, counts: BTreeMap::new(), replaced: BTreeMap::new() })
    }

    /// Compares what a record made.
    pub(super) fn pass(&mut self, good: &Good, state: &State) -> Result<(), AuditError> {
        for put in projection::puts(&good.record, good.ended.as_ref()) {
            if put.table == Table::Threads {
                self.replaced.insert(put.key, (put.value, good.record.sequence));
                continue;
            }
            self.compare(&put, good.record.sequence)?;
            *self.counts.entry(put.table.name()).or_default() += 1;
        }
        match self.snapshot.take_if(|(_, head)| head.sequence == good.record.sequence) {
            Some((stored, head)) if stored != *state || head != good.stored.head() => {
                let what = "the snapshot that stands on it is not the state that it makes";
                Err(AuditError::Fault(Fault::of(head.sequence, FaultKind::Table, what)))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Compares what is left when all records are passed.
    pub(super) fn end(mut self) -> Result<(), AuditError> {
        for (key, (value, sequence)) in std::mem::take(&mut self.replaced) {
            self.compare(&Put { table: Table::Threads, key, value }, sequence)?;
            *self.counts.entry(Table::Threads.name()).or_default() += 1;
        }
        for table in Table::ALL.into_iter().filter(|table| *table != Table::Meta) {
            let made = self.counts.get(table.name()).copied().unwrap_or(0);
            let found = rows(self.ledger, table)?;
            if found != made {
                let name = table.name();
                let what = format!("the table {name} has {found} rows, its records make {made}");
                return Err(table_fault(what));
            }
        }
        match self.snapshot {
            None => Ok(()),
            Some((_, head)) => Err(table_fault(format!(
                "the snapshot stands on record {}, which isn't there",
                head.sequence
            ))),
        }
    }

    fn compare(&self, put: &Put, sequence: Sequence) -> Result<(), AuditError> {
        let what = match self.ledger.get(put.table, &put.key)? {
            Some(value) if value == put.value => return Ok(()),
            Some(_) => "has another row for it than it makes",
            None => "has no row for it",
        };
        let what = format!("the table {} {what}", put.table.name());
        Err(AuditError::Fault(Fault::of(sequence, FaultKind::Table, what)))
    }
}

fn table_fault(what: String) -> AuditError {
    AuditError::Fault(Fault { kind: FaultKind::Table, sequence: None, what })
}

fn rows(ledger: &dyn Ledger, table: Table) -> Result<u64, LedgerError> {
    let (mut count, mut after) = (0, Vec::new());
    loop {
        let page = ledger.scan(table, b"", &after, ROWS_MAX)?;
        let Some((last, _)) = page.last() else { return Ok(count) };
        after.clone_from(last);
        count += page.len() as u64;
    }
}
