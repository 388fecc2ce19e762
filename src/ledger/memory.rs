//! A ledger in memory, for tests and the simulator: it can fail and crash as told.
//!
//! What an append leaves behind is durable at once, so a crash loses nothing that was
//! acknowledged. An append can be made to fail, and then it shows only after the crash whether
//! it took effect: a client of a real disk doesn't know either.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard};

use super::{Append, Head, Ledger, LedgerError, Pair, Stored, Table};
use crate::domain::id::Sequence;

/// How an append fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing of it was written.
    Lost,
    /// All of it was written, but an error is reported.
    Uncertain,
}

/// A ledger in memory.
#[derive(Debug, Default)]
pub struct MemoryLedger {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    durable: Durable,
    /// The appends left until one fails, that one included, and how.
    fault: Option<(u64, Fault)>,
    /// What failed and was yet written: durable, but not seen before a crash.
    uncertain: Option<Append>,
    is_stopped: bool,
}

#[derive(Debug, Clone, Default)]
struct Durable {
    head: Head,
    records: BTreeMap<Sequence, Stored>,
    tables: [BTreeMap<Vec<u8>, Vec<u8>>; Table::ALL.len()],
}

impl MemoryLedger {
    /// Makes the `nth` append from now fail; 1 is the next. An earlier order is forgotten.
    pub fn fail_append(&self, nth: u64, fault: Fault) {
        assert!(nth > 0, "the appends are counted from 1");
        self.lock().fault = Some((nth, fault));
    }

    /// The ledger that a restart after a crash now would find. Nothing in it is set to fail.
    #[must_use]
    pub fn crash(&self) -> Self {
        let inner = self.lock();
        let mut durable = inner.durable.clone();
        if let Some(append) = &inner.uncertain {
            durable.write(append);
        }
        Self { inner: Mutex::new(Inner { durable, ..Inner::default() }) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("the ledger's writer doesn't break its rules")
    }
}

impl Inner {
    /// The fault of the append that is being made.
    fn next_fault(&mut self) -> Option<Fault> {
        let (left, fault) = self.fault.as_mut()?;
        *left -= 1;
        let fault = *fault;
        self.fault.take_if(|(left, _)| *left == 0).map(|_| fault)
    }
}

impl Durable {
    fn write(&mut self, append: &Append) {
        for record in &append.records {
            self.records.insert(record.sequence, record.clone());
            self.head = record.head();
        }
        for put in &append.puts {
            self.tables[put.table as usize].insert(put.key.clone(), put.value.clone());
        }
    }
}

impl Ledger for MemoryLedger {
    fn head(&self) -> Head {
        self.lock().durable.head
    }

    fn append(&self, append: &Append) -> Result<(), LedgerError> {
        let mut inner = self.lock();
        if inner.is_stopped {
            return Err(LedgerError::Stopped);
        }
        append.head_after(inner.durable.head)?;
        match inner.next_fault() {
            None => {
                inner.durable.write(append);
                return Ok(());
            }
            Some(Fault::Lost) => {}
            Some(Fault::Uncertain) => inner.uncertain = Some(append.clone()),
        }
        inner.is_stopped = true;
        Err(LedgerError::Failed { what: "a fault that was asked for".to_owned() })
    }

    fn records_within(
        &self,
        after: Sequence,
        most: usize,
        bytes: usize,
    ) -> Result<Vec<Stored>, LedgerError> {
        let (mut found, mut found_bytes) = (Vec::new(), 0);
        let range = (Bound::Excluded(after), Bound::Unbounded);
        for (_, record) in self.lock().durable.records.range(range).take(most) {
            if found_bytes >= bytes {
                break;
            }
            found_bytes += record.bytes.len();
            found.push(record.clone());
        }
        Ok(found)
    }

    fn frozen(&self) -> Result<Box<dyn Ledger + '_>, LedgerError> {
        let durable = self.lock().durable.clone();
        Ok(Box::new(Self { inner: Mutex::new(Inner { durable, ..Inner::default() }) }))
    }

    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, LedgerError> {
        Ok(self.lock().durable.tables[table as usize].get(key).cloned())
    }

    fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        after: &[u8],
        most: usize,
    ) -> Result<Vec<Pair>, LedgerError> {
        let is_from_start = after.is_empty() || after < prefix;
        let start = if is_from_start { Bound::Included(prefix) } else { Bound::Excluded(after) };
        let inner = self.lock();
        let found = inner.durable.tables[table as usize]
            .range::<[u8], _>((start, Bound::Unbounded))
            .take_while(|(key, _)| key.starts_with(prefix))
            .take(most)
            .map(|(key, value)| (key.clone(), value.clone()));
        Ok(found.collect())
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
