//! What an audit finds, and why it can't go on.

use std::io;

use crate::domain::id::Sequence;
use crate::ledger::LedgerError;
pub use crate::wire::verification::{Fault, FaultKind};

impl Fault {
    /// A fault of a record, or of the place where it ought to be.
    pub(super) fn of(sequence: Sequence, kind: FaultKind, what: impl Into<String>) -> Self {
        Self { kind, sequence: Some(sequence), what: what.into() }
    }
}

/// Why a tool has no result.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The ledger can't be opened, read or written.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// It can be read, and isn't what a ledger must be.
    #[error("{0}")]
    Fault(Fault),
    /// A file, or the output, can't be used.
    #[error("{what}: {error}")]
    Io {
        /// Which.
        what: String,
        /// Why not.
        error: io::Error,
    },
    /// It was ended before it was done.
    #[error("it was ended before it was done")]
    Cancelled,
    /// What was asked for doesn't fit this ledger.
    #[error("{0}")]
    Asked(String),
}

impl AuditError {
    /// For `map_err`.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |error| Self::Io { what, error }
    }
}
