//! What an audit reads: a data directory or a backup, or an exported file.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use super::check::Checker;
use super::fault::{AuditError, Fault, FaultKind};
use super::lines::{Line, Lines};
use super::progress::Progress;
use crate::domain::id::Sequence;
use crate::ledger::memory::MemoryLedger;
use crate::ledger::pending::Pending;
use crate::ledger::rocks::{Condition, RocksReader};
use crate::ledger::{Append, Head, Ledger, LedgerError};
use crate::projection;

/// How many records are read at once, and how many bytes of them.
pub(super) const RECORDS_MAX: usize = 1000;
pub(super) const BYTES_MAX: usize = 4 << 20;

/// Standard input, by its usual name.
const STDIN: &str = "-";

/// A ledger to be read.
pub enum Source {
    /// With its tables, and what opening it found.
    Directory(Box<RocksReader>, Condition),
    /// As text, from its first record on.
    Text(Box<dyn BufRead>),
}

impl Source {
    /// Opens a directory, a file, or `-` for standard input.
    ///
    /// # Errors
    /// [`AuditError`] if there is nothing that can be read.
    pub fn open(path: &Path) -> Result<Self, AuditError> {
        if path == Path::new(STDIN) {
            return Ok(Self::Text(Box::new(io::stdin().lock())));
        }
        if path.is_dir() {
            let (reader, condition) = RocksReader::open(path)?;
            return Ok(Self::Directory(Box::new(reader), condition));
        }
        let file = File::open(path).map_err(AuditError::io(path.display().to_string()))?;
        Ok(Self::Text(Box::new(BufReader::new(file))))
    }

    /// Refuses a directory that hasn't all that was synced, or in which something was begun that
    /// is not done.
    ///
    /// # Errors
    /// [`AuditError`]
    pub fn require_whole(&self) -> Result<(), AuditError> {
        match self {
            Self::Directory(_, Condition::Damaged(error)) => Err(error.clone().into()),
            Self::Directory(reader, Condition::Whole | Condition::TornTail) => {
                Pending::read(&**reader)?.require_finished()?;
                if reader.head() == Head::default() {
                    // Cut off between its making and its first write.
                    let what = "it has no first record".to_owned();
                    return Err(LedgerError::Corrupt { what }.into());
                }
                Ok(())
            }
            Self::Text(_) => Ok(()),
        }
    }

    /// As a ledger with its tables. One of text is read into memory, and has to be good; one of a
    /// directory has to be whole.
    ///
    /// # Errors
    /// [`AuditError`]
    pub fn into_ledger(self, progress: &mut dyn Progress) -> Result<Box<dyn Ledger>, AuditError> {
        self.require_whole()?;
        match self {
            Self::Directory(reader, _) => Ok(reader),
            Self::Text(input) => Ok(Box::new(load(input, progress)?)),
        }
    }
}

/// Reads an exported ledger into memory.
fn load(input: Box<dyn BufRead>, progress: &mut dyn Progress) -> Result<MemoryLedger, AuditError> {
    let ledger = MemoryLedger::default();
    let (mut checker, mut lines) = (Checker::default(), Lines::of(input));
    progress.begin(None);
    while let Some(Line { hash, bytes }) = lines.read(checker.head().sequence)? {
        let expected_head = checker.head().sequence;
        let good = checker.pass(hash, bytes).map_err(AuditError::Fault)?;
        let puts = projection::puts(&good.record, good.ended.as_ref());
        ledger.append(&Append { expected_head, records: vec![good.stored], puts })?;
        progress.reach(checker.head().sequence);
    }
    checker.end().map_err(AuditError::Fault)?;
    Ok(ledger)
}

/// The records of a ledger, one after another.
pub enum Records<'a> {
    /// Of one with tables.
    Ledger {
        /// The ledger.
        ledger: &'a dyn Ledger,
        /// What was read ahead.
        ahead: VecDeque<Line>,
        /// The last record that was read.
        last: Sequence,
    },
    /// Of an exported one.
    Text(Lines<Box<dyn BufRead + 'a>>),
}

impl<'a> Records<'a> {
    /// Of a ledger, from its first record on.
    pub fn of(ledger: &'a dyn Ledger) -> Self {
        Self::Ledger { ledger, ahead: VecDeque::new(), last: Sequence::ZERO }
    }

    /// Of a source, from its first record on.
    pub fn of_source(source: &'a mut Source) -> Self {
        match source {
            Source::Directory(reader, _) => Self::of(&**reader),
            Source::Text(input) => Self::Text(Lines::of(Box::new(input))),
        }
    }

    /// Its last record, if that is known.
    pub(super) fn last(&self) -> Option<Sequence> {
        match self {
            Self::Ledger { ledger, .. } => Some(ledger.head().sequence),
            Self::Text(_) => None,
        }
    }

    /// The next record, which is to follow on `after`.
    ///
    /// # Errors
    /// [`AuditError`]
    pub fn read(&mut self, after: Sequence) -> Result<Option<Line>, AuditError> {
        match self {
            Self::Text(lines) => lines.read(after),
            Self::Ledger { ledger, ahead, last } => {
                if ahead.is_empty() {
                    for stored in ledger.records_within(*last, RECORDS_MAX, BYTES_MAX)? {
                        *last = stored.sequence;
                        ahead.push_back(Line { hash: stored.hash, bytes: stored.bytes });
                    }
                }
                Ok(ahead.pop_front())
            }
        }
    }

    /// Goes past the records up to `head`.
    ///
    /// # Errors
    /// [`AuditError::Fault`] if `head` isn't among them, and what reading fails with.
    pub(super) fn skip_to(&mut self, head: Head) -> Result<(), AuditError> {
        if head == Head::default() {
            return Ok(());
        }
        // The hash stands for all that is before it.
        while let Some(line) = self.read(head.sequence)? {
            if line.hash == head.hash {
                return Ok(());
            }
        }
        let what = "it is not in what is copied: the directory has the beginning of another ledger";
        Err(AuditError::Fault(Fault::of(head.sequence, FaultKind::Order, what)))
    }
}
