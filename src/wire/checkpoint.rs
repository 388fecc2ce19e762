//! A signed checkpoint as JSON.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::hex;
use crate::domain::id::{LedgerId, Sequence};
use crate::domain::time::Time;

/// A signed checkpoint: a note of the ledger's last record. Whoever keeps the note, and has the
/// public key, can prove later that the ledger still has all that it had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SignedCheckpoint {
    /// The ledger.
    pub ledger_id: LedgerId,
    /// The record that it is about.
    pub sequence: Sequence,
    /// The record's hash, which stands for all of them up to it.
    #[schemars(extend("pattern" = hex::HASH_PATTERN))]
    pub hash: String,
    /// The record's time.
    pub time: Time,
    /// The note: all of this as text, with the signature. It is what is to be kept.
    pub note: String,
}
