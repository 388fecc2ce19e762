//! A page of a list.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::id::Sequence;

/// A page: its items, the cursor of the next page, and the state that it shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "{T}List")]
pub struct List<T> {
    /// The items, in the list's order.
    pub items: Vec<T>,
    /// What to send as `cursor` to get the next page, as it stands; null at the end.
    pub next: Option<String>,
    /// The state that this shows.
    pub sequence: Sequence,
}
