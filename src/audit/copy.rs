//! Copies a ledger into a directory of its own, record by record: an import, a backup, a restore.
//!
//! Each record is checked before it is written, and the tables are written from it, so a copy owes
//! nothing to the files that it was made from. A copy that was cut off can be gone on with. Before
//! it is served it says, by `ledger.restored`, that events may have been lost.

use std::fs::{self, File};
use std::path::Path;

use super::check::Checker;
use super::checkpoint::files::{beside, folder_of};
use super::fault::AuditError;
use super::progress::Progress;
use super::source::{RECORDS_MAX, Records};
use super::verify;
use crate::domain::id::Sequence;
use crate::domain::time::Time;
use crate::ledger::pending::{Gap, Pending, Unfinished};
use crate::ledger::rocks::{Condition, OpenOptions, RocksLedger, RocksReader};
use crate::ledger::{Append, Head, Ledger, LedgerError, Put, Stored};
use crate::projection::{self, snapshot};

/// What was copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copied {
    /// How many records the copy has.
    pub records: u64,
    /// Its last record.
    pub head: Head,
    /// The time of that.
    pub time: Time,
}

/// Copies records to `data`, a new or empty directory, or one that the same copy was begun in.
/// `gap` is why a server that serves the copy must jump ahead.
///
/// # Errors
/// [`AuditError`]: what was copied so far stays, is not served, and can be gone on with.
pub fn copy(
    mut records: Records<'_>,
    data: &Path,
    gap: Gap,
    now: Time,
    progress: &mut dyn Progress,
) -> Result<Copied, AuditError> {
    let target = Target::open(data, gap)?;
    let mut checker = target.check()?;
    records.skip_to(checker.head())?;
    target.begin()?;
    progress.begin(records.last());
    loop {
        let expected_head = checker.head().sequence;
        let (mut stored, mut puts): (Vec<Stored>, Vec<Put>) = (Vec::new(), Vec::new());
        let mut outcome = Ok(());
        while stored.len() < RECORDS_MAX
            && let Some(line) = records.read(checker.head().sequence)?
        {
            match checker.pass(line.hash, line.bytes) {
                Ok(good) => {
                    puts.extend(projection::puts(&good.record, good.ended.as_ref()));
                    stored.push(good.stored);
                }
                Err(fault) => {
                    outcome = Err(AuditError::Fault(fault));
                    break;
                }
            }
        }
        if checker.state().time() > now {
            return Err(clock_behind(checker.state().time(), now));
        }
        let is_end = stored.is_empty();
        target.ledger.append(&Append { expected_head, records: stored, puts })?;
        outcome?;
        if is_end {
            break;
        }
        progress.reach(checker.head().sequence);
        if progress.is_cancelled() {
            return Err(AuditError::Cancelled);
        }
    }
    checker.end().map_err(AuditError::Fault)?;
    finish(&target.ledger, &checker, Some(gap))?;
    Ok(copied(&checker))
}

/// Copies records to `to`, which must not be there. It has another name until it is verified.
///
/// # Errors
/// [`AuditError`]: then there is no backup of that name.
pub fn backup(
    records: Records<'_>,
    to: &Path,
    now: Time,
    progress: &mut dyn Progress,
) -> Result<Copied, AuditError> {
    let failed = || AuditError::io(to.display().to_string());
    if to.symlink_metadata().is_ok() {
        return Err(LedgerError::NotEmpty { path: to.to_owned() }.into());
    }
    let part = &beside(to, ".part");
    let copied = copy(records, part, Gap::Restored, now, progress)?;
    let (reader, condition) = RocksReader::open(part)?;
    if let Condition::Damaged(error) = condition {
        return Err(error.into());
    }
    let verification = verify::ledger(&reader, progress, |_| Ok(()))?;
    drop(reader);
    if let Some(fault) = verification.fault {
        return Err(AuditError::Fault(fault));
    }
    fs::rename(part, to).map_err(failed())?;
    File::open(folder_of(to)).and_then(|folder| folder.sync_all()).map_err(failed())?;
    Ok(copied)
}

/// Ledger time never goes back, and leases are measured by it.
fn clock_behind(time: Time, now: Time) -> AuditError {
    AuditError::Asked(format!(
        "the clock of this machine says {now}, which is before {time}, the time of a record: set \
         it right first"
    ))
}

/// Stores the state, so that a start needn't replay all, and says that the ledger is whole.
pub(super) fn finish(
    ledger: &RocksLedger,
    checker: &Checker,
    gap: Option<Gap>,
) -> Result<(), LedgerError> {
    snapshot::save(ledger, checker.state())?;
    set_pending(ledger, Pending { unfinished: None, gap })
}

pub(super) fn copied(checker: &Checker) -> Copied {
    let (records, head) = (checker.records(), checker.head());
    Copied { records, head, time: checker.state().time() }
}

fn set_pending(ledger: &RocksLedger, pending: Pending) -> Result<(), LedgerError> {
    let expected_head = ledger.head().sequence;
    ledger.append(&Append { expected_head, records: Vec::new(), puts: vec![pending.put()] })
}

/// Where a copy is written.
struct Target {
    ledger: RocksLedger,
    /// What it says of itself until the copy is whole.
    begun: Pending,
}

impl Target {
    fn open(data: &Path, gap: Gap) -> Result<Self, AuditError> {
        let begun = Pending { unfinished: Some(Unfinished::Copy), gap: Some(gap) };
        let ledger = match RocksLedger::create(data) {
            Ok(ledger) => ledger,
            Err(not_empty @ LedgerError::NotEmpty { .. }) => {
                let ledger = match RocksLedger::open(data, OpenOptions::default()) {
                    Ok((ledger, _)) => ledger,
                    Err(LedgerError::Missing { .. }) => return Err(not_empty.into()),
                    Err(error) => return Err(error.into()),
                };
                let pending = Pending::read(&ledger)?;
                // Cut off between its making and its first write.
                let is_new = ledger.head() == Head::default() && pending == Pending::default();
                // Cut off when all was copied: a backup is yet to be verified then.
                let is_done = pending == Pending { unfinished: None, ..begun };
                if !(is_new || is_done || pending == begun) {
                    return Err(not_empty.into());
                }
                ledger
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Self { ledger, begun })
    }

    /// Says that it is not whole yet.
    fn begin(&self) -> Result<(), LedgerError> {
        set_pending(&self.ledger, self.begun)
    }

    /// Follows what was copied before.
    fn check(&self) -> Result<Checker, AuditError> {
        let mut checker = Checker::default();
        let mut records = Records::of(&self.ledger);
        while let Some(line) = records.read(Sequence::ZERO)? {
            checker.pass(line.hash, line.bytes).map_err(AuditError::Fault)?;
        }
        Ok(checker)
    }
}
