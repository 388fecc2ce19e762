//! What users say they are doing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::id::RequestUuid;
use super::super::name::UserName;
use super::super::text::ActivityText;

data! {
    /// `activity.updated`
    ActivityUpdated {
        /// The user.
        user: UserName,
        /// What it is doing.
        activity: ActivityText,
        /// The caller's name for the request, if it gave one.
        request_uuid: Option<RequestUuid>,
    }
}
data! {
    /// `activity.cleared`
    ActivityCleared {
        /// The user.
        user: UserName,
    }
}
