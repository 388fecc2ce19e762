//! What happened: the vocabulary of the ledger, and its stored form.
//!
//! Each event carries all that a fold needs, so that [`State::apply`] looks nothing up outside the
//! state. A change of a shape is a new version, with an upcast in the ledger's codec.
//!
//! [`State::apply`]: super::State::apply

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use super::access::{Role, TokenHash};
use super::id::{FenceToken, LedgerId, RequestUuid, Sequence, TicketId, TokenId};
use super::name::{Actor, LockName, TeamName, UserName};
use super::scope::Scope;
use super::text::ShortText;
use super::ticket::TicketInput;
use super::time::{LeaseSeconds, Time, WaitSeconds};

/// An event in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its place in the ledger.
    pub sequence: Sequence,
    /// The ledger time of its append.
    pub time: Time,
    /// Who caused it.
    pub actor: Actor,
    /// What happened.
    pub event: Event,
}

/// Who held a lock when a ticket met it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HolderThen {
    /// The holder.
    pub owner: UserName,
    /// The hold's fence token.
    pub fence_token: FenceToken,
}

macro_rules! data {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $ty:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $ty,)*
        }
    };
}

/// A lock event that begins a ticket.
macro_rules! beginning {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $ty:ty,)* }) => {
        data! {
            $(#[$doc])*
            $name {
                /// The ticket.
                ticket_id: TicketId,
                /// Where the lock lives.
                scope: Scope,
                /// The lock.
                lock_name: LockName,
                /// The identity that asked.
                owner: UserName,
                /// The caller's name for the request.
                request_uuid: RequestUuid,
                /// The lease asked for, in seconds.
                lease_seconds: LeaseSeconds,
                /// The wait asked for, in seconds.
                wait_seconds: WaitSeconds,
                /// Why.
                note: Option<ShortText>,
                /// Whether it might join a hold of its own identity.
                reentrant: bool,
                $($(#[$field_doc])* $field: $ty,)*
            }
        }

        impl $name {
            /// What was asked for.
            pub fn input(&self) -> TicketInput {
                TicketInput {
                    scope: self.scope.clone(),
                    lock_name: self.lock_name.clone(),
                    request_uuid: self.request_uuid,
                    lease_seconds: self.lease_seconds,
                    wait_seconds: self.wait_seconds,
                    note: self.note.clone(),
                    reentrant: self.reentrant,
                }
            }
        }
    };
}

/// A lock event in the life of a ticket that exists.
macro_rules! step {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $ty:ty,)* }) => {
        data! {
            $(#[$doc])*
            $name {
                /// The ticket.
                ticket_id: TicketId,
                /// Where the lock lives.
                scope: Scope,
                /// The lock.
                lock_name: LockName,
                /// The ticket's identity.
                owner: UserName,
                $($(#[$field_doc])* $field: $ty,)*
            }
        }
    };
}

data! {
    /// `ledger.opened`: the first event.
    LedgerOpened {
        /// The ledger's name for ever.
        ledger_id: LedgerId,
    }
}
data! {
    /// `ledger.recovered`: a start with live holds. Deadlines follow by rule.
    LedgerRecovered {
        /// The most that a lease is lifted by, in seconds.
        grace_seconds: u32,
    }
}
data! {
    /// `ledger.restored`: sequences jump, since events after `last_sequence` may be lost.
    LedgerRestored {
        /// The last sequence before the gap.
        last_sequence: Sequence,
        /// Why: `restored`, `imported`, `loss-accepted` or `torn-tail-dropped`.
        reason: ShortText,
    }
}
data! {
    /// `user.created`
    UserCreated {
        /// The user.
        user: UserName,
        /// Whether it administers the server.
        admin: bool,
        /// Of an agent: whose it is. Null for everyone else.
        person: Option<UserName>,
    }
}
data! {
    /// `user.disabled` and `user.enabled`
    UserChanged {
        /// The user.
        user: UserName,
    }
}
data! {
    /// `token.issued`
    TokenIssued {
        /// The public part.
        token_id: TokenId,
        /// The user.
        user: UserName,
        /// SHA-256 of the token.
        sha256: TokenHash,
        /// What it is for.
        label: Option<ShortText>,
        /// When it stops working; never if null.
        expires_at: Option<Time>,
    }
}
data! {
    /// `token.revoked`
    TokenRevoked {
        /// The token.
        token_id: TokenId,
        /// Its user.
        user: UserName,
    }
}
data! {
    /// `team.created`
    TeamCreated {
        /// The team.
        team: TeamName,
    }
}
data! {
    /// `team.member_added`: also a change of role.
    TeamMemberAdded {
        /// The team.
        team: TeamName,
        /// The user.
        user: UserName,
        /// The role from now on.
        role: Role,
    }
}
data! {
    /// `team.member_removed`
    TeamMemberRemoved {
        /// The team.
        team: TeamName,
        /// The user.
        user: UserName,
    }
}
data! {
    /// `repo.created`
    RepoCreated {
        /// The repository's scope.
        #[schemars(transform = Scope::repo_only)]
        repo: Scope,
    }
}
data! {
    /// `access.granted`: also a change of role.
    AccessGranted {
        /// The scope.
        scope: Scope,
        /// The user.
        user: UserName,
        /// The role from now on.
        role: Role,
    }
}
data! {
    /// `access.revoked`
    AccessRevoked {
        /// The scope.
        scope: Scope,
        /// The user.
        user: UserName,
    }
}
beginning! {
    /// `lock.acquired`: held at once, alone or as a re-entry (depth > 1).
    LockAcquired {
        /// The hold's fence token.
        fence_token: FenceToken,
        /// Held tickets of the hold after this.
        depth: u32,
        /// When the lease ends.
        lease_expires_at: Time,
    }
}
beginning! {
    /// `lock.queued`: waits.
    LockQueued {
        /// The place of its identity, from 1.
        queue_position: u32,
        /// When the wait ends.
        wait_expires_at: Time,
        /// Who held the lock then.
        holder: HolderThen,
    }
}
beginning! {
    /// `lock.contended`: ended at once, since the lock was taken.
    LockContended {
        /// Who held the lock then.
        holder: HolderThen,
    }
}
beginning! {
    /// `lock.deadlock_rejected`: ended at once, since waiting would have closed a cycle.
    LockDeadlockRejected {
        /// The waiting tickets of the cycle, the rejected one first. Ids only: the names of
        /// other scopes don't leak.
        cycle: Vec<TicketId>,
        /// Who held the lock then.
        holder: HolderThen,
    }
}
step! {
    /// `lock.heartbeat`: also one that moves nothing.
    LockHeartbeat {
        /// The hold's fence token.
        fence_token: FenceToken,
        /// Held tickets of the hold.
        depth: u32,
        /// The lease asked for, in seconds from the event.
        lease_seconds: LeaseSeconds,
        /// When the lease ends now.
        lease_expires_at: Time,
    }
}
step! {
    /// `lock.promoted`: from waiting to held.
    LockPromoted {
        /// The hold's fence token: the sequence of its first promotion.
        fence_token: FenceToken,
        /// Held tickets of the hold after this.
        depth: u32,
        /// When the lease ends.
        lease_expires_at: Time,
    }
}
step! {
    /// `lock.released`
    LockReleased {
        /// The hold's fence token.
        fence_token: FenceToken,
        /// Held tickets of the hold after this.
        depth: u32,
    }
}
step! {
    /// `lock.expired`
    LockExpired {
        /// The hold's fence token.
        fence_token: FenceToken,
        /// Held tickets of the hold after this.
        depth: u32,
        /// The deadline that passed.
        lease_expires_at: Time,
    }
}
step! {
    /// `lock.broken`: one for each held ticket of the hold.
    LockBroken {
        /// The hold's fence token.
        fence_token: FenceToken,
        /// Held tickets of the hold after this.
        depth: u32,
        /// The breaker's reason.
        reason: ShortText,
    }
}
step! {
    /// `lock.wait_cancelled`
    LockWaitCancelled {
        /// `access-revoked` or `user-disabled`; null if its owner gave up.
        reason: Option<ShortText>,
    }
}
step! {
    /// `lock.wait_timed_out`
    LockWaitTimedOut {
        /// The deadline that passed.
        wait_expires_at: Time,
    }
}
mod activity;
mod subject;
mod thread;

pub use activity::{ActivityCleared, ActivityUpdated};
pub use subject::Subject;
pub use thread::{ThreadCreated, ThreadReplied, ThreadStateChanged};

/// How the `data` of one version of a type is described.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// The type on the wire, without the prefix `pearing.`.
    pub type_name: &'static str,
    /// Its version.
    pub version: u32,
    /// Its JSON Schema.
    pub schema: fn(&mut SchemaGenerator) -> Schema,
}

impl Shape {
    /// The shape of a version that is read into `T`.
    pub const fn new<T: JsonSchema>(type_name: &'static str, version: u32) -> Self {
        Self { type_name, version, schema: SchemaGenerator::subschema_for::<T> }
    }
}

/// Declares the events once: variant, data, type on the wire, version.
macro_rules! events {
    ($($variant:ident($data:ident) = $type:literal, $version:literal;)*) => {
        /// What happened.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Event {
            $(#[doc = concat!("`", $type, "`")] $variant($data),)*
        }

        impl Event {
            /// Every type that the ledger knows, with its newest version.
            pub const TYPES: &[(&str, u32)] = &[$(($type, $version),)*];

            /// The shape of the `data` of every type, in its newest version.
            pub const SHAPES: &[Shape] =
                &[$(Shape::new::<$data>($type, $version),)*];

            /// The type on the wire, without the prefix `pearing.`.
            pub fn type_name(&self) -> &'static str {
                match self { $(Self::$variant(_) => $type,)* }
            }

            /// The version of the shape of `data`.
            pub fn version(&self) -> u32 {
                match self { $(Self::$variant(_) => $version,)* }
            }

            /// Reads the `data` of a type in its newest version; `None` for an unknown type.
            pub fn from_data(type_name: &str, data: &str) -> Option<serde_json::Result<Self>> {
                match type_name {
                    $($type => Some(serde_json::from_str(data).map(Self::$variant)),)*
                    _ => None,
                }
            }
        }

        impl Serialize for Event {
            /// Writes the `data`, without the type.
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                match self { $(Self::$variant(data) => data.serialize(to),)* }
            }
        }
    };
}

events! {
    LedgerOpened(LedgerOpened) = "ledger.opened", 1;
    LedgerRecovered(LedgerRecovered) = "ledger.recovered", 1;
    LedgerRestored(LedgerRestored) = "ledger.restored", 1;
    UserCreated(UserCreated) = "user.created", 2;
    UserDisabled(UserChanged) = "user.disabled", 1;
    UserEnabled(UserChanged) = "user.enabled", 1;
    TokenIssued(TokenIssued) = "token.issued", 1;
    TokenRevoked(TokenRevoked) = "token.revoked", 1;
    TeamCreated(TeamCreated) = "team.created", 1;
    TeamMemberAdded(TeamMemberAdded) = "team.member_added", 1;
    TeamMemberRemoved(TeamMemberRemoved) = "team.member_removed", 1;
    RepoCreated(RepoCreated) = "repo.created", 1;
    AccessGranted(AccessGranted) = "access.granted", 1;
    AccessRevoked(AccessRevoked) = "access.revoked", 1;
    LockAcquired(LockAcquired) = "lock.acquired", 1;
    LockQueued(LockQueued) = "lock.queued", 1;
    LockContended(LockContended) = "lock.contended", 1;
    LockDeadlockRejected(LockDeadlockRejected) = "lock.deadlock_rejected", 1;
    LockHeartbeat(LockHeartbeat) = "lock.heartbeat", 1;
    LockPromoted(LockPromoted) = "lock.promoted", 1;
    LockReleased(LockReleased) = "lock.released", 1;
    LockExpired(LockExpired) = "lock.expired", 1;
    LockBroken(LockBroken) = "lock.broken", 1;
    LockWaitCancelled(LockWaitCancelled) = "lock.wait_cancelled", 1;
    LockWaitTimedOut(LockWaitTimedOut) = "lock.wait_timed_out", 1;
    ActivityUpdated(ActivityUpdated) = "activity.updated", 1;
    ActivityCleared(ActivityCleared) = "activity.cleared", 1;
    ThreadCreated(ThreadCreated) = "thread.created", 1;
    ThreadReplied(ThreadReplied) = "thread.replied", 1;
    ThreadClosed(ThreadStateChanged) = "thread.closed", 1;
    ThreadReopened(ThreadStateChanged) = "thread.reopened", 1;
}
