//! Identifiers. All of them come in from outside the core, which makes none.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::time::Time;

/// A UUID as it is shown: hyphenated, in lower case. Asked with, it may be in any case.
fn uuid_schema(generator: &mut SchemaGenerator) -> Schema {
    let digit = if generator.contract().is_serialize() { "[0-9a-f]" } else { "[0-9a-fA-F]" };
    json_schema!({
        "type": "string",
        "format": "uuid",
        "pattern": format!("^{digit}{{8}}-({digit}{{4}}-){{3}}{digit}{{12}}$"),
    })
}

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
        )]
        #[serde(transparent)]
        #[schemars(inline, schema_with = "uuid_schema")]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, uuid::Error> {
                text.parse().map(Self)
            }
        }
    };
}

uuid_id! {
    /// One acquisition by one identity.
    TicketId
}
uuid_id! {
    /// The caller's name for one request, so that a retry of it is known as such. Compared as a
    /// value: any UUID version, any letter case.
    RequestUuid
}
uuid_id! {
    /// A reply in a thread.
    ReplyId
}
uuid_id! {
    /// The public part of a token.
    TokenId
}
uuid_id! {
    /// Names a ledger for ever, through backups and restores.
    LedgerId
}

/// An event's place in the ledger, from 1. Stays below 2^53, so JSON numbers hold it exactly.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Sequence(pub u64);

impl Sequence {
    /// The sequence that stands before the first event.
    pub const ZERO: Self = Self(0);

    /// The one that follows.
    #[must_use]
    pub fn next(self) -> Self {
        self.plus(1)
    }

    /// The one `count` places further on.
    #[must_use]
    pub fn plus(self, count: u64) -> Self {
        Self(self.0 + count)
    }

    /// That of `ledger.restored` at `time`, after the last one that is left: above all that a
    /// lost part of the ledger can have used, which would have had to issue 2^20 a second ever
    /// since 1970. It stays below 2^53 until 2242.
    #[must_use]
    pub fn after_restore(self, time: Time) -> Self {
        let seconds = u64::try_from(time.as_millis() / 1000).unwrap_or(0);
        self.next().max(Self(seconds << 20))
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Orders holds over all locks: the sequence of the event that began the hold. A target that
/// refuses every fence token lower than the highest it has seen refuses every stale holder.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
#[schemars(inline)]
pub struct FenceToken(pub Sequence);

impl fmt::Display for FenceToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
