//! Names as types that can't be wrong: users, teams, repositories and locks.
//!
//! Only ASCII passes, so two spellings of one name can't look alike, and no name can hold a
//! separator of a path, a key or a terminal. A name is parsed once, at the edge.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a text is no name: the rule that it breaks, as a sentence without a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{rule}")]
pub struct InvalidName {
    /// The rule, fit for "lock_name RULE".
    pub rule: &'static str,
}

/// The name under which timers and start-up act. No user can have it.
pub const LEDGER_ACTOR: &str = "ledger";

/// The same rules as patterns of a JSON Schema.
pub(super) const PART_PATTERN: &str = "^[a-z0-9][a-z0-9._-]{0,63}$";
const LOCK_PATTERN: &str = "^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$";

const PART_RULE: &str = "must match [a-z0-9][a-z0-9._-]{0,63}";
const USER_RULE: &str = "must match [a-z0-9][a-z0-9._-]{0,63}, and not be the reserved name ledger";
const LOCK_RULE: &str = "must match [A-Za-z0-9][A-Za-z0-9._:-]{0,127}";

/// Whether `text` can be a path part of a scope.
pub(super) fn is_part(text: &str) -> bool {
    let byte_ok = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b);
    let first_ok = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    text.len() <= 64 && text.bytes().next().is_some_and(first_ok) && text.bytes().all(byte_ok)
}

fn is_user(text: &str) -> bool {
    is_part(text) && text != LEDGER_ACTOR
}

fn is_lock(text: &str) -> bool {
    let byte_ok = |b: u8| b.is_ascii_alphanumeric() || b"._:-".contains(&b);
    let first_ok = |b: u8| b.is_ascii_alphanumeric();
    text.len() <= 128 && text.bytes().next().is_some_and(first_ok) && text.bytes().all(byte_ok)
}

macro_rules! name {
    ($(#[$meta:meta])* $name:ident, $is_valid:ident, $rule:ident) => {
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        $(#[$meta])*
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// The rule, fit for "field RULE".
            pub const RULE: &str = $rule;

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidName;

            fn from_str(text: &str) -> Result<Self, InvalidName> {
                if $is_valid(text) {
                    Ok(Self(text.into()))
                } else {
                    Err(InvalidName { rule: $rule })
                }
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidName;

            fn try_from(text: String) -> Result<Self, InvalidName> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0.as_ref().to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name! {
    /// A user: `[a-z0-9][a-z0-9._-]{0,63}`, but not `ledger`, which is the actor of timers.
    #[schemars(
        inline,
        extend("pattern" = PART_PATTERN, "maxLength" = 64, "not" = { "const": LEDGER_ACTOR })
    )]
    UserName, is_user, USER_RULE
}
impl UserName {
    /// What the own name of an agent must be, fit for "name RULE".
    pub const AGENT_RULE: &str = "must match [a-z0-9][a-z0-9._-]{0,63}, without your own name \
         and a dot before it, and have with them at most 64 characters";

    /// The user that an agent of a person is.
    ///
    /// # Errors
    ///
    /// The rule that the agent's own name breaks, fit for "name RULE".
    pub fn agent_of(person: &Self, own_name: &str) -> Result<Self, &'static str> {
        let agent: Self = format!("{person}.{own_name}").parse().map_err(|_| Self::AGENT_RULE)?;
        if agent.is_agent_name_of(person) { Ok(agent) } else { Err(Self::AGENT_RULE) }
    }

    /// Whether this is the name of an agent of a person: the person's, a dot and the agent's own.
    /// Who gives an agent's whole name for its own would make another agent by mistake.
    pub fn is_agent_name_of(&self, person: &Self) -> bool {
        let own_name = self.own_name_as_agent_of(person);
        own_name.is_some_and(|own| is_part(own) && !own.starts_with(&format!("{person}.")))
    }

    /// What this name says beyond the person's and a dot.
    pub fn own_name_as_agent_of(&self, person: &Self) -> Option<&str> {
        self.0.strip_prefix(person.as_str())?.strip_prefix('.')
    }
}
name! {
    /// A team: `[a-z0-9][a-z0-9._-]{0,63}`.
    #[schemars(inline, extend("pattern" = PART_PATTERN, "maxLength" = 64))]
    TeamName, is_part, PART_RULE
}
name! {
    /// A lock: `[A-Za-z0-9][A-Za-z0-9._:-]{0,127}`. It is unique only within its scope.
    #[schemars(inline, extend("pattern" = LOCK_PATTERN, "maxLength" = 128))]
    LockName, is_lock, LOCK_RULE
}

/// Who caused an event: a user, or the ledger itself (timers, start-up).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline, extend("pattern" = PART_PATTERN, "maxLength" = 64))]
pub enum Actor {
    /// A deadline came due, or the server started.
    Ledger,
    /// A user's command.
    User(UserName),
}

impl TryFrom<String> for Actor {
    type Error = InvalidName;

    fn try_from(text: String) -> Result<Self, InvalidName> {
        if text == LEDGER_ACTOR { Ok(Self::Ledger) } else { text.parse().map(Self::User) }
    }
}

impl From<Actor> for String {
    fn from(actor: Actor) -> String {
        actor.to_string()
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ledger => f.write_str(LEDGER_ACTOR),
            Self::User(user) => user.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_holds_no_separator_and_no_look_alike() {
        for bad in ["", ".a", "-a", "a/b", "A", "a b", "a\0", "ä", "a\u{200b}", &"a".repeat(65)] {
            assert!(bad.parse::<UserName>().is_err(), "{bad:?}");
            assert!(bad.parse::<TeamName>().is_err(), "{bad:?}");
        }
        for bad in ["", "_a", ":a", "a/b", "../x", "a%2eb", "a\n", "a b", "é", &"a".repeat(129)] {
            assert!(bad.parse::<LockName>().is_err(), "{bad:?}");
        }
        for good in ["a", "0", "a.b_c-d", &"a".repeat(64)] {
            assert!(good.parse::<UserName>().is_ok(), "{good:?}");
        }
        for good in ["thread-work.42", "a:b", "a__b", "Z", &"a".repeat(128)] {
            assert!(good.parse::<LockName>().is_ok(), "{good:?}");
        }
    }

    #[test]
    fn no_user_can_be_called_ledger() {
        assert!("ledger".parse::<UserName>().is_err());
        assert_eq!(Actor::try_from("ledger".to_owned()), Ok(Actor::Ledger));
    }
}
