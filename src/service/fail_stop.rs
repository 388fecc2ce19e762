//! A ledger whose first failure is the end of the service, whoever met it.
//!
//! A read that finds damage has no right answer, and neither has any that comes after it: what is
//! damaged may be what a decision rests on. So the process ends, and a start tells what is wrong.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::domain::id::Sequence;
use crate::ledger::{Append, Head, Ledger, LedgerError, Pair, Stored, Table};

/// Passes everything on to a ledger, and tells the first failure.
pub(super) struct FailStop {
    ledger: Arc<dyn Ledger>,
    failed: Mutex<Option<oneshot::Sender<LedgerError>>>,
}

impl FailStop {
    /// The ledger, and where its first failure will be told.
    pub(super) fn new(ledger: Arc<dyn Ledger>) -> (Self, oneshot::Receiver<LedgerError>) {
        let (failed, told) = oneshot::channel();
        (Self { ledger, failed: Mutex::new(Some(failed)) }, told)
    }

    /// Tells of a failure.
    pub(super) fn fail(&self, error: LedgerError) {
        let _: Result<(), LedgerError> = self.seen(Err(error));
    }

    fn seen<T>(&self, outcome: Result<T, LedgerError>) -> Result<T, LedgerError> {
        if let Err(error) = &outcome
            && let Some(failed) = self.failed.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            // Nobody listens once the server ends anyway.
            let _ = failed.send(error.clone());
        }
        outcome
    }
}

impl Ledger for FailStop {
    fn head(&self) -> Head {
        self.ledger.head()
    }

    fn append(&self, append: &Append) -> Result<(), LedgerError> {
        self.seen(self.ledger.append(append))
    }

    fn frozen(&self) -> Result<Box<dyn Ledger + '_>, LedgerError> {
        self.seen(self.ledger.frozen())
    }

    fn last_sync(&self) -> Option<Duration> {
        self.ledger.last_sync()
    }

    fn records_within(
        &self,
        after: Sequence,
        most: usize,
        bytes: usize,
    ) -> Result<Vec<Stored>, LedgerError> {
        self.seen(self.ledger.records_within(after, most, bytes))
    }

    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, LedgerError> {
        self.seen(self.ledger.get(table, key))
    }

    fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        after: &[u8],
        most: usize,
    ) -> Result<Vec<Pair>, LedgerError> {
        self.seen(self.ledger.scan(table, prefix, after, most))
    }
}
