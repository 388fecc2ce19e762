//! A ledger on disk that is only read: by the tools of an auditor, on a data directory that no
//! server holds, or on a backup. Nothing in the directory changes, not even a file's time.

use std::path::Path;

use rocksdb::DB;

use super::super::{Head, LedgerError};
use super::mark::Mark;
use super::reads::{ReadOnly, Reads, View};
use super::recovery::{self, Logs, Mode, Plan, Verdict};
use super::{ROCKS_DIR, look, open_to_read};

/// A ledger that is open for reading. While it is, no server can open it for writing.
pub struct RocksReader {
    db: DB,
    head: Head,
    _lock: Mark,
}

/// What reading a directory found before the first record was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Nothing is missing.
    Whole,
    /// The log ends in a write that a crash had cut off. A start will drop it; nothing that is
    /// known to be synced is gone.
    TornTail,
    /// Synced records are lost: why, and what can be done. What can be read yet is here.
    Damaged(LedgerError),
}

impl RocksReader {
    /// Opens the ledger in `dir` to read it, as far as it can be read.
    ///
    /// # Errors
    /// [`LedgerError::Missing`], [`LedgerError::InUse`], [`LedgerError::Corrupt`] if nothing can
    /// be read at all, [`LedgerError::Failed`] if the disk can't be read.
    pub fn open(dir: &Path) -> Result<(Self, Condition), LedgerError> {
        let has_database = dir.join(ROCKS_DIR).join("CURRENT").exists();
        let (lock, synced) = Mark::open_to_read(dir, has_database)?;
        if !has_database {
            let what = format!("{} has no {ROCKS_DIR}/CURRENT", dir.display());
            return Err(LedgerError::Corrupt { what });
        }
        let logs = Logs::survey(&dir.join(ROCKS_DIR))?;
        let plan = Plan { synced, accept_loss_after: None };
        let condition = match recovery::judge(plan, &logs, |mode| look(dir, mode)) {
            Ok(Verdict::Whole) => Condition::Whole,
            Ok(Verdict::TornTail) => Condition::TornTail,
            Ok(Verdict::LossAccepted) => unreachable!("no loss is accepted"),
            // A file that RocksDB can't be let read stops here, and so does what can't be opened.
            Err(error) if logs.have_trap() => return Err(error),
            Err(error @ LedgerError::Corrupt { .. }) => Condition::Damaged(error),
            Err(error) => return Err(error),
        };
        let mode = if condition == Condition::Whole { Mode::Absolute } else { Mode::PointInTime };
        let opened = open_to_read(dir, mode);
        let db = match (opened, &condition) {
            (Ok(db), _) => db,
            (Err(_), Condition::Damaged(error)) => return Err(error.clone()),
            (Err(error), Condition::Whole | Condition::TornTail) => return Err(error),
        };
        let head = Reads::of(&db).head()?;
        Ok((Self { db, head, _lock: lock }, condition))
    }
}

impl ReadOnly for RocksReader {
    fn view(&self) -> View<'_> {
        View { reads: Reads::of(&self.db), head: self.head }
    }
}
