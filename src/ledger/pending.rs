//! What a data directory needs before it may be served, kept in the directory itself.
//!
//! A copy that isn't whole must not be served at all. A whole one must first say, by
//! `ledger.restored`, that events may have been lost: else it would give out fence tokens that
//! were given out before.

use serde::{Deserialize, Serialize};

use super::{Ledger, LedgerError, Put, Table, keys};

const KEY: &str = "pending";

/// Why the ledger may have lost events that were acknowledged or seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gap {
    /// A record that was being written when the machine stopped was dropped.
    TornTailDropped,
    /// The operator accepted the loss of what comes after a sequence.
    LossAccepted,
    /// It was restored from a backup.
    Restored,
    /// It was imported.
    Imported,
}

impl Gap {
    /// The reason in `ledger.restored`.
    pub fn reason(self) -> &'static str {
        match self {
            Self::TornTailDropped => "torn-tail-dropped",
            Self::LossAccepted => "loss-accepted",
            Self::Restored => "restored",
            Self::Imported => "imported",
        }
    }
}

/// What was begun and is not done. Asked for again, it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unfinished {
    /// Records are being copied into it.
    Copy,
    /// Its tables are being written anew.
    Rebuild,
}

/// What is pending.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pending {
    /// What is not done.
    pub unfinished: Option<Unfinished>,
    /// Why the first append must be `ledger.restored`.
    pub gap: Option<Gap>,
}

impl Pending {
    /// Reads what is pending.
    ///
    /// # Errors
    /// [`LedgerError`] if it can't be read.
    pub fn read(ledger: &dyn Ledger) -> Result<Self, LedgerError> {
        let Some(value) = ledger.get(Table::Meta, &keys::meta(KEY))? else {
            return Ok(Self::default());
        };
        let corrupt = |error| LedgerError::Corrupt { what: format!("what is pending: {error}") };
        serde_json::from_slice(&value).map_err(corrupt)
    }

    /// Records it.
    pub fn put(self) -> Put {
        let value = serde_json::to_vec(&self).expect("its keys are names of fields");
        Put { table: Table::Meta, key: keys::meta(KEY), value }
    }

    /// Refuses what is not done.
    ///
    /// # Errors
    /// [`LedgerError::Unfinished`]
    pub fn require_finished(self) -> Result<(), LedgerError> {
        let what = match self.unfinished {
            None => return Ok(()),
            Some(Unfinished::Copy) => "an import, restore or backup into it was cut off",
            Some(Unfinished::Rebuild) => "a rebuild of its tables was cut off",
        };
        Err(LedgerError::Unfinished { what })
    }
}
