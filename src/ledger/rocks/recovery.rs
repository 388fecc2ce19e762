//! Judges whether a database is whole, ends in a torn write, or is damaged.
//!
//! RocksDB itself can't tell a torn write from damage. Read strictly, it refuses what every power
//! cut leaves behind; read leniently, it drops all that follows a flipped bit, synced or not, and
//! says nothing. The durable mark tells them apart: what it covers was synced, so it must be
//! there. A log cut off between two records is no fault even to the strict reading; the mark
//! finds that one too.

use std::path::{Path, PathBuf};

use super::super::{Head, LedgerError};
use super::wal::{Fault, first_fault};
use crate::domain::id::Sequence;

/// How RocksDB reads its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// To the end, without a fault.
    Absolute,
    /// Up to the first fault.
    PointInTime,
}

/// What is known before the database is looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    /// The durable mark; `None` if it is unreadable, and a loss is accepted.
    pub(super) synced: Option<Sequence>,
    /// The loss that the operator accepts.
    pub(super) accept_loss_after: Option<Sequence>,
}

/// How the database may be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing is missing.
    Whole,
    /// The end of the newest log file is dropped, which was never known to be synced.
    TornTail,
    /// Synced records are dropped, and that was accepted.
    LossAccepted,
}

/// The log files of a database, and their damage.
#[derive(Debug, Default)]
pub(super) struct Logs {
    faults: Vec<(PathBuf, Fault)>,
    /// An empty file is left behind by a crash while a database was being opened, so it is not
    /// counted as the newest.
    newest_with_content: Option<PathBuf>,
}

/// Decides how to open the database whose head `look` reads. Changes nothing.
///
/// # Errors
/// [`LedgerError::Corrupt`] if synced records are lost and that was not accepted, or nothing can
/// be read at all.
pub(super) fn judge(
    plan: Plan,
    logs: &Logs,
    look: impl Fn(Mode) -> Result<Head, LedgerError>,
) -> Result<Verdict, LedgerError> {
    if let Some((path, fault)) = logs.faults.iter().find(|(_, fault)| fault.is_trap) {
        let what = format!(
            "{}. RocksDB can't be let read it. Restore a backup, or cut the file off there",
            place(path, *fault)
        );
        return Err(LedgerError::Corrupt { what });
    }
    let (head, fault) = match look(Mode::Absolute) {
        Ok(head) => (head, None),
        Err(LedgerError::Corrupt { what }) => match look(Mode::PointInTime) {
            Ok(head) => (head, Some(what)),
            Err(LedgerError::Corrupt { what }) => return Err(logs.unreadable(what)),
            Err(error) => return Err(error),
        },
        Err(error) => return Err(error),
    };
    if plan.synced.is_some_and(|synced| head.sequence >= synced) {
        if fault.is_none() && logs.faults.is_empty() {
            return Ok(Verdict::Whole);
        }
        if logs.are_damaged_only_in_newest() {
            return Ok(Verdict::TornTail);
        }
    }
    if plan.accept_loss_after.is_some_and(|least| head.sequence >= least) {
        return Ok(Verdict::LossAccepted);
    }
    Err(LedgerError::Corrupt { what: loss(plan, head.sequence, logs, fault) })
}

fn loss(plan: Plan, head: Sequence, logs: &Logs, fault: Option<String>) -> String {
    let mut what = match plan.synced {
        Some(synced) => format!("record {synced} was synced, {head} is the last readable one"),
        None => format!("the durable mark is unreadable, {head} is the last readable record"),
    };
    for fact in fault.into_iter().chain(logs.places()) {
        what = format!("{what}; {fact}");
    }
    format!(
        "{what}. Nothing was changed. Restore a backup, or give up what follows record {head} \
         with --accept-loss-after {head}"
    )
}

fn place(path: &Path, fault: Fault) -> String {
    format!("{} at byte {}: {}", path.display(), fault.offset, fault.what)
}

impl Logs {
    /// Looks through the log files in `path`.
    pub(super) fn survey(path: &Path) -> Result<Self, LedgerError> {
        let failed = |error| LedgerError::Failed { what: format!("{}: {error}", path.display()) };
        let mut logs = Self::default();
        for entry in path.read_dir().map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let path = entry.path();
            if path.extension().is_none_or(|extension| extension != "log") {
                continue;
            }
            if let Some(fault) = first_fault(&path).map_err(failed)? {
                logs.faults.push((path.clone(), fault));
            }
            if entry.metadata().map_err(failed)?.len() > 0 {
                // The numbers have a fixed width, so their order is that of the names.
                logs.newest_with_content = logs.newest_with_content.max(Some(path));
            }
        }
        Ok(logs)
    }

    /// Whether a file has damage that RocksDB can't be let read.
    pub(super) fn have_trap(&self) -> bool {
        self.faults.iter().any(|(_, fault)| fault.is_trap)
    }

    fn places(&self) -> impl Iterator<Item = String> {
        self.faults.iter().map(|(path, fault)| place(path, *fault))
    }

    /// The damage that not even a loss could be accepted for.
    fn unreadable(&self, what: String) -> LedgerError {
        let facts: Vec<_> = [what].into_iter().chain(self.places()).collect();
        let what = format!("{}. Nothing was changed. Restore a backup", facts.join("; "));
        LedgerError::Corrupt { what }
    }

    fn are_damaged_only_in_newest(&self) -> bool {
        // Without a known place the worst is assumed.
        !self.faults.is_empty()
            && self.faults.iter().all(|(path, _)| Some(path) == self.newest_with_content.as_ref())
    }
}
