//! Signs what the ledger is: for an administrator who asks, and now and then into a folder.
//!
//! What is signed is the last published record, which is durable: a signature can't be taken back.

use std::sync::{Mutex, PoisonError};

use super::{Service, ServiceError, query};
use crate::audit::AuditError;
use crate::audit::checkpoint::{Checkpoint, Folder, Key, Note};
use crate::domain::id::{Sequence, TokenId};
use crate::domain::refusal::Refusal;
use crate::ledger::LedgerError;
use crate::wire::checkpoint::SignedCheckpoint;

/// What a service signs with, and where it keeps what it signs by itself.
#[derive(Debug, Clone)]
pub struct Checkpoints {
    /// The key.
    pub key: Key,
    /// The folder; `None` if it signs only when it is asked.
    pub folder: Option<Folder>,
}

/// What was signed last by itself.
#[derive(Debug)]
pub(super) struct Signing {
    with: Option<Checkpoints>,
    /// Held while a note is written.
    saved: Mutex<Sequence>,
}

impl Signing {
    pub(super) fn new(with: Option<Checkpoints>) -> Self {
        Self { with, saved: Mutex::new(Sequence::ZERO) }
    }
}

impl Service {
    /// Signs the last record. For the server's administrators.
    ///
    /// # Errors
    /// [`ServiceError`]
    pub fn checkpoint(&self, caller: TokenId) -> Result<SignedCheckpoint, ServiceError> {
        let head = self.look(caller, |state, user| {
            query::require_server_admin(state, user)?;
            Ok(state.head())
        })?;
        let Some(Checkpoints { key, .. }) = &self.0.signing.with else {
            let what = "checkpoint key: the server was started without --checkpoint-key";
            return Err(query::refused(Refusal::NotFound(what), head));
        };
        let note = self.sign(key).map_err(query::stopped)?;
        let Checkpoint { ledger_id, sequence, hash, time } = note.checkpoint;
        let (hash, note) = (hash.to_string(), note.to_string());
        Ok(SignedCheckpoint { ledger_id, sequence, hash, time, note })
    }

    /// Signs the last record and keeps the note in the folder, if there is one and the last one
    /// isn't kept yet. It is told if that fails, and tried again the next time.
    pub fn save_checkpoint(&self) {
        let Some(Checkpoints { key, folder: Some(folder) }) = &self.0.signing.with else { return };
        let mut saved = self.0.signing.saved.lock().unwrap_or_else(PoisonError::into_inner);
        if *saved == self.read(|state| state.head()) {
            return;
        }
        let note = self.sign(key).map_err(AuditError::Ledger);
        match note.and_then(|note| folder.keep(&note).map(|()| note.checkpoint.sequence)) {
            Ok(sequence) => {
                *saved = sequence;
                let sequence = i64::try_from(sequence.0).expect("a sequence is below 2^53");
                self.0.metrics.checkpoint_sequence.set(sequence);
            }
            Err(error) => {
                self.0.metrics.checkpoint_failures.inc();
                tracing::error!(%error, "no checkpoint could be kept");
            }
        }
    }

    fn sign(&self, key: &Key) -> Result<Note, LedgerError> {
        let (ledger_id, sequence, time) =
            self.read(|state| (state.ledger_id(), state.head(), state.time()));
        let ledger_id = ledger_id.expect("a ledger that is served was opened");
        let stored = self.ledger().records(Sequence(sequence.0 - 1), 1)?.pop();
        let missing = || LedgerError::Corrupt { what: format!("record {sequence} is missing") };
        let stored = stored.filter(|stored| stored.sequence == sequence).ok_or_else(missing)?;
        Ok(key.sign(Checkpoint { ledger_id, sequence, hash: stored.hash, time }))
    }
}

#[cfg(test)]
#[path = "checkpoint_tests.rs"]
mod tests;
