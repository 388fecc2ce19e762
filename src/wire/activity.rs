//! What a user says it is doing, as JSON.
//!
//! An agent that died says what it said last. So each entry shows its age, and whether its user
//! holds anything now.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::view::ActivityView;
use crate::domain::name::UserName;
use crate::domain::text::ActivityText;
use crate::domain::time::Time;

/// What a user says it is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Activity {
    /// Who.
    pub user: UserName,
    /// In its own words; null if it says nothing.
    pub activity: Option<ActivityText>,
    /// When it said so.
    pub set_at: Option<Time>,
    /// How long ago that was, in milliseconds.
    pub age_ms: Option<u64>,
    /// Whether it holds any lock now.
    pub has_holds: bool,
}

impl Activity {
    /// The entry as it looks at `now`, in ledger time.
    pub fn new(view: &ActivityView, now: Time) -> Self {
        let activity = view.activity.as_ref();
        Self {
            user: view.user.clone(),
            activity: activity.map(|activity| activity.text.clone()),
            set_at: activity.map(|activity| activity.set_at),
            age_ms: activity.map(|activity| activity.set_at.millis_until(now)),
            has_holds: view.has_holds,
        }
    }
}
