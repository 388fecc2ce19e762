//! Verifies a whole ledger, from its first record on, and writes nothing.
//!
//! What was found first is told, and how far everything is good: that much can be kept.

use std::io::BufRead;

use super::check::Checker;
use super::fault::{AuditError, Fault, FaultKind};
use super::lines::{Line, Lines};
use super::progress::Progress;
use super::source::{BYTES_MAX, RECORDS_MAX};
use super::tables::Tables;
use crate::ledger::{Ledger, LedgerError};
use crate::wire::verification::Verification;

/// Verifies a ledger and its tables. Nothing may be appended to it meanwhile: let it be frozen.
///
/// `see` is shown each point of the ledger that is good.
///
/// # Errors
/// [`AuditError`] if the storage fails, or it is cancelled; what is damaged is a fault, and no
/// error.
pub fn ledger(
    ledger: &dyn Ledger,
    progress: &mut dyn Progress,
    mut see: impl FnMut(&Checker) -> Result<(), Fault>,
) -> Result<Verification, AuditError> {
    let mut checker = Checker::default();
    let outcome = follow(ledger, &mut checker, progress, &mut see);
    let fault = match outcome {
        Ok(()) => None,
        Err(AuditError::Fault(fault)) => Some(fault),
        Err(AuditError::Ledger(LedgerError::Corrupt { what })) => {
            let next = checker.head().sequence.next();
            Some(Fault::of(next, FaultKind::Storage, format!("it can't be read: {what}")))
        }
        Err(error) => return Err(error),
    };
    Ok(verification(&checker, true, fault))
}

fn follow(
    ledger: &dyn Ledger,
    checker: &mut Checker,
    progress: &mut dyn Progress,
    see: &mut dyn FnMut(&Checker) -> Result<(), Fault>,
) -> Result<(), AuditError> {
    let mut tables = Tables::of(ledger)?;
    progress.begin(Some(ledger.head().sequence));
    loop {
        let batch = ledger.records_within(checker.head().sequence, RECORDS_MAX, BYTES_MAX)?;
        if batch.is_empty() {
            break;
        }
        for stored in batch {
            let place = stored.sequence;
            let good = checker.pass(stored.hash, stored.bytes).map_err(AuditError::Fault)?;
            let sequence = good.record.sequence;
            if sequence != place {
                let what = format!("it lies at the place of record {place}");
                return Err(AuditError::Fault(Fault::of(sequence, FaultKind::Order, what)));
            }
            tables.pass(&good, checker.state())?;
            see(checker).map_err(AuditError::Fault)?;
        }
        progress.reach(checker.head().sequence);
        if progress.is_cancelled() {
            return Err(AuditError::Cancelled);
        }
    }
    checker.end().map_err(AuditError::Fault)?;
    tables.end()
}

/// Verifies an exported ledger.
///
/// # Errors
/// [`AuditError::Io`] if it can't be read; what is damaged is a fault, and no error.
pub fn text(
    input: impl BufRead,
    progress: &mut dyn Progress,
    mut see: impl FnMut(&Checker) -> Result<(), Fault>,
) -> Result<Verification, AuditError> {
    let mut checker = Checker::default();
    let mut lines = Lines::of(input);
    progress.begin(None);
    let fault = loop {
        match lines.read(checker.head().sequence) {
            Ok(Some(Line { hash, bytes })) => {
                let passed = checker.pass(hash, bytes).and_then(|_| see(&checker));
                if let Err(fault) = passed {
                    break Some(fault);
                }
            }
            Ok(None) => break checker.end().err(),
            Err(AuditError::Fault(fault)) => break Some(fault),
            Err(error) => return Err(error),
        }
        progress.reach(checker.head().sequence);
    };
    Ok(verification(&checker, false, fault))
}

fn verification(checker: &Checker, has_tables: bool, fault: Option<Fault>) -> Verification {
    Verification {
        is_good: fault.is_none(),
        ledger_id: checker.state().ledger_id(),
        records: checker.records(),
        sequence: checker.head().sequence,
        hash: checker.head().hash.to_string(),
        time: checker.state().time(),
        has_tables,
        fault,
    }
}
