//! What a user says it is doing. Only the present is kept here; the past is in the ledger.
//!
//! It says nothing about locks: an agent that died goes on saying what it said last. So each
//! answer shows how old it is, and whether its user holds anything now.

use serde::{Deserialize, Serialize};

use super::id::Sequence;
use super::text::ActivityText;
use super::time::Time;

/// What a user is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Activity {
    /// In its own words.
    pub text: ActivityText,
    /// When it said so.
    pub set_at: Time,
    /// The event that said so.
    pub sequence: Sequence,
}
