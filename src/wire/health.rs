//! What an operator is told.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// In one word.
    pub status: HealthStatus,
}

/// How the server is, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HealthStatus {
    /// The process runs.
    Live,
    /// Requests are to be sent here.
    Ready,
}
