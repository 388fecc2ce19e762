//! Proves that a ledger extends checkpoints, while it is verified.
//!
//! What is wrong is told where it shows: at the record that a checkpoint is about, or where that
//! record ought to be. What is wrong with a checkpoint itself is told at the end, when nothing is
//! wrong with the ledger.

use std::path::{Path, PathBuf};

use super::files::{open, read_text};
use super::{Checkpoint, Note, PublicKey};
use crate::audit::check::Checker;
use crate::audit::fault::{AuditError, Fault, FaultKind};
use crate::domain::id::{LedgerId, Sequence};
use crate::ledger::Head;
use crate::wire::verification::Verification;

/// The proof, as far as it has come. Without checkpoints there is nothing to prove.
#[derive(Debug, Default)]
pub struct Proof {
    /// Those that come yet, the next one last.
    ahead: Vec<Signed>,
    /// What is wrong with one of them itself.
    unfit: Option<Fault>,
    /// The last record that was seen.
    last: Sequence,
}

/// What a file says that was signed as it should be.
#[derive(Debug)]
struct Signed {
    file: PathBuf,
    checkpoint: Checkpoint,
}

impl Proof {
    /// Reads the files of some notes, all signed with one key.
    ///
    /// # Errors
    /// [`AuditError::Io`]; what isn't a note, or not signed so, is a fault and no error.
    pub fn read(files: &[PathBuf], key: &PublicKey) -> Result<Self, AuditError> {
        let mut proof = Self::default();
        for file in files {
            let text = read_text(open(file)?, file)?;
            match text.parse::<Note>() {
                Ok(note) if key.has_signed(&note) => {
                    let (file, checkpoint) = (file.clone(), note.checkpoint);
                    proof.ahead.push(Signed { file, checkpoint });
                }
                Ok(_) => {
                    proof.add_unfit(file, "was not signed with this key, or was changed since")
                }
                Err(error) => proof.add_unfit(file, &error.to_string()),
            }
        }
        proof.ahead.sort_by_key(|signed| std::cmp::Reverse(signed.checkpoint.sequence));
        Ok(proof)
    }

    fn add_unfit(&mut self, file: &Path, what: &str) {
        self.unfit.get_or_insert(of_none(format!("{} {what}", file.display())));
    }

    /// Compares what is said of the last good record.
    ///
    /// # Errors
    /// What doesn't fit.
    pub fn see(&mut self, checker: &Checker) -> Result<(), Fault> {
        let (head, last) = (checker.head(), self.last);
        self.last = head.sequence;
        let is_reached = |signed: &mut Signed| signed.checkpoint.sequence <= head.sequence;
        while let Some(signed) = self.ahead.pop_if(is_reached) {
            signed.compare(checker, head, last)?;
        }
        Ok(())
    }

    /// What a verification has found, with what is wrong with the checkpoints.
    #[must_use]
    pub fn end(self, verification: Verification) -> Verification {
        if verification.fault.is_some() {
            return verification;
        }
        let beyond = self.ahead.last().map(|next| next.beyond(verification.ledger_id, self.last));
        let fault = self.unfit.or(beyond);
        Verification { is_good: fault.is_none(), fault, ..verification }
    }
}

impl Signed {
    /// Compares with the record `head`, which follows on `last` and is the first one that isn't
    /// before the one that this is about.
    fn compare(&self, checker: &Checker, head: Head, last: Sequence) -> Result<(), Fault> {
        let Checkpoint { sequence, hash, time, .. } = self.checkpoint;
        self.is_of(checker.state().ledger_id())?;
        let file = self.file.display();
        if sequence != head.sequence {
            return Err(self.fault(format!(
                "the checkpoint {file} is about it, and it is lost: after record {last} the ledger \
                 goes on with ledger.restored, record {}",
                head.sequence
            )));
        }
        if hash != head.hash {
            return Err(self.fault(format!(
                "it has another hash than the checkpoint {file} says: the history up to it was \
                 rewritten"
            )));
        }
        if time != checker.state().time() {
            return Err(self.fault(format!("it has another time than the checkpoint {file} says")));
        }
        Ok(())
    }

    /// What is wrong when a good ledger ends with `last`, before the record.
    fn beyond(&self, ledger_id: Option<LedgerId>, last: Sequence) -> Fault {
        let file = self.file.display();
        let cut_off = self.fault(format!(
            "the checkpoint {file} is about it, and the ledger ends with record {last}: its end \
             was cut off, or it is an older copy"
        ));
        self.is_of(ledger_id).err().unwrap_or(cut_off)
    }

    fn is_of(&self, ledger_id: Option<LedgerId>) -> Result<(), Fault> {
        let Self { file, checkpoint } = self;
        if ledger_id == Some(checkpoint.ledger_id) {
            return Ok(());
        }
        let (file, other) = (file.display(), checkpoint.ledger_id);
        Err(of_none(format!("the checkpoint {file} is about another ledger, {other}")))
    }

    fn fault(&self, what: String) -> Fault {
        Fault::of(self.checkpoint.sequence, FaultKind::Checkpoint, what)
    }
}

/// A fault that is about no record.
fn of_none(what: String) -> Fault {
    Fault { kind: FaultKind::Checkpoint, sequence: None, what }
}
