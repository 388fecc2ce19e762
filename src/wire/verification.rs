//! What a verification found.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::id::{LedgerId, Sequence};
use crate::domain::time::Time;

/// What kind of fault it is, which says what can be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The storage can't be read there.
    Storage,
    /// A line or record that is none, or of a version that this program doesn't know.
    Record,
    /// Records are missing, repeated or in another order, or time goes back.
    Order,
    /// A record's hash is not that of its bytes and of what comes before it.
    Chain,
    /// The chain fits, but the rules don't make this event of the state before it.
    Rule,
    /// A table, or the stored snapshot, is not what the records make: rebuild mends it.
    Table,
    /// A checkpoint's signature, ledger, sequence or hash doesn't fit.
    Checkpoint,
}

impl FaultKind {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Storage => "storage",
            Self::Record => "record",
            Self::Order => "order",
            Self::Chain => "chain",
            Self::Rule => "rule",
            Self::Table => "table",
            Self::Checkpoint => "checkpoint",
        }
    }
}

/// The first thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fault {
    /// Its kind.
    pub kind: FaultKind,
    /// The record that it is about, or that is missing; null if it is about none.
    pub sequence: Option<Sequence>,
    /// What is wrong, in words.
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sequence {
            Some(sequence) => write!(f, "record {sequence}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// What was verified, how far it is good, and the first fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verification {
    /// Whether nothing is wrong.
    pub is_good: bool,
    /// The ledger; null if it has no good first record.
    pub ledger_id: Option<LedgerId>,
    /// How many records are good, from the first one on.
    pub records: u64,
    /// The last good record.
    pub sequence: Sequence,
    /// Its hash, which stands for all of them.
    #[schemars(extend("pattern" = crate::domain::hex::HASH_PATTERN))]
    pub hash: String,
    /// Its time.
    pub time: Time,
    /// Whether tables and the snapshot were compared too. An exported file has none.
    pub has_tables: bool,
    /// The first fault; null if there is none.
    pub fault: Option<Fault>,
}

impl fmt::Display for Verification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { records, sequence, hash, time, fault, has_tables, .. } = self;
        match fault {
            None => f.write_str("good: ")?,
            Some(fault) => write!(f, "NOT good ({}): ", fault.kind.as_str())?,
        }
        match records {
            0 => f.write_str("no record is good"),
            _ => write!(
                f,
                "{records} records are good, up to {sequence} at {time} with the hash {hash}"
            ),
        }?;
        if fault.is_none() && *has_tables { f.write_str(", and so are the tables") } else { Ok(()) }
    }
}

/// How far a verification of the server's own ledger is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerificationStatus {
    /// Whether it goes on.
    pub is_running: bool,
    /// When it began.
    pub began_at: Time,
    /// When it ended; null while it goes on.
    pub ended_at: Option<Time>,
    /// The last record that it has passed.
    pub reached: Sequence,
    /// The last record of the ledger when it began: it goes no further.
    pub head: Sequence,
    /// What it found; null while it goes on, and if it could not be done.
    pub result: Option<Verification>,
    /// Why it could not be done.
    pub error: Option<String>,
}

/// How far a backup of the server's own ledger is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BackupStatus {
    /// The name of its directory, which is there once the backup is verified.
    pub name: String,
    /// Whether it goes on.
    pub is_running: bool,
    /// When it began.
    pub began_at: Time,
    /// When it ended; null while it goes on.
    pub ended_at: Option<Time>,
    /// The last record that was copied.
    pub reached: Sequence,
    /// The last record of the ledger when it began: it has no later one.
    pub head: Sequence,
    /// The hash of that record; null until the backup is verified.
    pub hash: Option<String>,
    /// Why there is no backup.
    pub error: Option<String>,
}
