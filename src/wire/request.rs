//! Requests as JSON: what each call takes for a body.
//!
//! Unknown fields are refused, and null is taken only where a field says so.
//! Deliberately absent: how a body is read, and in which words a wrong one is answered.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

use crate::domain::access::Role;
use crate::domain::id::{FenceToken, ReplyId, RequestUuid};
use crate::domain::name::{TeamName, UserName};
use crate::domain::scope::Scope;
use crate::domain::text::{ActivityText, ReplyBody, ShortText, ThreadBody};
use crate::domain::thread::{Fence, Links, ReplyKind, ThreadNumber};
use crate::domain::time::{LeaseSeconds, WaitSeconds};

/// Acquires a lock.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{
    "request_uuid": "e41b7608-1fe8-4f54-a5f3-67e8605f480c",
    "lease_seconds": 60,
    "wait_seconds": 30,
    "note": "working on thread 42",
    "reentrant": true,
}]))]
pub struct AcquireLock {
    /// The caller's name for the request, new for each acquire. A retry has the same one.
    pub request_uuid: RequestUuid,
    /// How long the lease lasts without a heartbeat, in seconds.
    #[serde(default)]
    pub lease_seconds: LeaseSeconds,
    /// How long it may wait in the queue, in seconds.
    #[serde(default)]
    pub wait_seconds: WaitSeconds,
    /// Why, shown to those who contend or wait.
    pub note: Option<ShortText>,
    /// Whether it may join a hold of its own identity.
    #[serde(default = "is_reentrant")]
    pub reentrant: bool,
}

fn is_reentrant() -> bool {
    true
}

/// Extends the lease of a held ticket.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{ "lease_seconds": 60 }]))]
pub struct HeartbeatLockTicket {
    /// The lease from now, in seconds; the ticket's own if left out.
    #[serde(default, deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "LeaseSeconds")]
    pub lease_seconds: Option<LeaseSeconds>,
}

/// Ends somebody's hold.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{ "fence_token": 17, "reason": "its machine is gone" }]))]
pub struct BreakLock {
    /// The hold that is meant, so that no newer one is broken by mistake.
    pub fence_token: FenceToken,
    /// Why.
    pub reason: ShortText,
}

/// Says what the caller is doing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{ "activity": "Working on thread 42" }]))]
pub struct UpdateUserActivity {
    /// In its own words.
    pub activity: ActivityText,
    /// The caller's name for the request. A retry has the same one.
    pub request_uuid: Option<RequestUuid>,
}

/// Begins a thread.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{ "title": "Links in the footer", "body": "Two are dead." }]))]
pub struct CreateThread {
    /// What it is called.
    pub title: ShortText,
    /// What it is about.
    #[serde(default = "ThreadBody::empty")]
    pub body: ThreadBody,
    /// The number of a thread from elsewhere that it mirrors; the next one if left out or null.
    pub number: Option<ThreadNumber>,
    /// The caller's name for the request. A retry has the same one.
    pub request_uuid: Option<RequestUuid>,
    /// The hold that it is written under.
    pub fence: Option<Fence>,
}

/// Replies in a thread.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{
    "kind": "implementation",
    "body": "Pushed a first step.",
    "links": ["branch:codex/thread-42"],
}]))]
pub struct CreateReply {
    /// What kind it is.
    pub kind: ReplyKind,
    /// What it says.
    pub body: ReplyBody,
    /// What it points to; nothing if left out.
    #[serde(default, deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Links")]
    pub links: Option<Links>,
    /// The reply that it answers; the thread itself if left out or null.
    pub parent: Option<ReplyId>,
    /// The caller's name for the request. A retry has the same one.
    pub request_uuid: Option<RequestUuid>,
    /// The hold that it is written under.
    pub fence: Option<Fence>,
}

/// Closes a thread, or opens it again.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{}]))]
pub struct SetThreadState {
    /// The caller's name for the request. A retry has the same one.
    pub request_uuid: Option<RequestUuid>,
    /// The hold that it is done under.
    pub fence: Option<Fence>,
}

/// Makes an identity for an agent of the caller's, or another token for it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{ "name": "helper" }]))]
pub struct CreateAgent {
    /// The agent's own name: it becomes the user ME.NAME.
    #[schemars(schema_with = "agent_name")]
    pub name: String,
    /// What the token is for.
    pub label: Option<ShortText>,
    /// When the token stops working, in days from now; never if left out or null.
    pub expires_in_days: Option<Days>,
}

/// An agent's own name. What its person's name allows besides, only the server knows.
pub fn agent_name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "description": "An agent's own name: what its user's has after the person's and a dot.",
        "type": "string",
        "pattern": "^[a-z0-9][a-z0-9._-]{0,61}$",
        "maxLength": 62,
    })
}

/// How long a token works: at least a day, at most a hundred years.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(try_from = "u32")]
#[schemars(inline, extend("minimum" = 1, "maximum" = Self::MOST))]
pub struct Days(u32);

impl Days {
    const MOST: u32 = 36_500;
    /// The rule, fit for "expires_in_days RULE".
    pub const RULE: &str = "must be a whole number from 1 to 36500, or null for never";

    /// How many.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl TryFrom<u32> for Days {
    type Error = &'static str;

    fn try_from(days: u32) -> Result<Self, &'static str> {
        if (1..=Self::MOST).contains(&days) { Ok(Self(days)) } else { Err(Self::RULE) }
    }
}

/// Makes a user.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{ "user": "dee" }]))]
pub struct CreateUser {
    /// Its name.
    pub user: UserName,
    /// Whether it administers the server.
    #[serde(default)]
    pub admin: bool,
}

/// Makes a token for a user.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{ "user": "codex", "label": "laptop", "expires_in_days": 30 }]))]
pub struct CreateToken {
    /// The user that it stands for.
    pub user: UserName,
    /// What it is for.
    pub label: Option<ShortText>,
    /// When it stops working, in days from now; never if left out or null.
    pub expires_in_days: Option<Days>,
}

/// Makes a team.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{ "team": "core" }]))]
pub struct CreateTeam {
    /// Its name.
    pub team: TeamName,
}

/// Makes a repository.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{ "repo": "teams/platform/app" }]))]
pub struct CreateRepo {
    /// Its scope.
    #[schemars(transform = Scope::repo_only)]
    pub repo: Scope,
}

/// Gives a user a role.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{ "role": "write" }]))]
pub struct SetRole {
    /// What it may do.
    pub role: Role,
}

/// For an optional field that must not be null when it is there: serde's `Option` takes null for
/// a missing value, which would turn a caller's mistake into a default.
pub(crate) fn not_null<'de, T, D>(from: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    T::deserialize(from).map(Some)
}
