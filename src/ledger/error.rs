//! What can go wrong with a ledger: the machine's business, never a caller's.

use std::path::PathBuf;

use crate::domain::id::Sequence;

/// Why a ledger can't be opened, read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// Somebody else has appended: the writer's state is old. Nothing was written.
    #[error("the ledger's head is {actual}, not {expected}: another writer has appended")]
    HeadMoved {
        /// The head that the writer decided on.
        expected: Sequence,
        /// The head that the ledger has.
        actual: Sequence,
    },
    /// There is no ledger, or only a part of one. Nothing was made in its place.
    #[error("{path} holds no ledger; pearing init makes one, in an empty or missing directory")]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// A new ledger can't be made here: there is something already. Nothing was touched.
    #[error("{path} is not empty; a new ledger is made only in an empty or new directory")]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// Another process, or this one, has the ledger open.
    #[error("{path} is in use: another server or tool has it open")]
    InUse {
        /// The data directory.
        path: PathBuf,
    },
    /// Something that writes the whole ledger was begun in the directory, and is not done.
    #[error("the ledger is not whole: {what}; run the same command again, and it goes on")]
    Unfinished {
        /// What.
        what: &'static str,
    },
    /// What is stored is not what was written.
    #[error("the ledger is damaged: {what}")]
    Corrupt {
        /// What, where, and what can be done.
        what: String,
    },
    /// The machine failed to read or write. After an append: whether it was written is unknown.
    #[error("the ledger's storage failed: {what}")]
    Failed {
        /// What the storage said.
        what: String,
    },
    /// An earlier append failed, so nothing is written any more.
    #[error("the ledger has stopped after a failed append")]
    Stopped,
}
