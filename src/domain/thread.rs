//! Threads: durable notes on a piece of work, where whoever takes it over learns what is left.
//!
//! A thread belongs to a repository and has a number there. What was written is never changed:
//! a thread is its events, read in order.

mod fold;

use std::fmt;
use std::str::FromStr;

pub use fold::{Reply, Thread};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::id::{FenceToken, ReplyId, RequestUuid, Sequence};
use super::name::{LockName, UserName};
use super::scope::Scope;
use super::text::ShortText;
use super::time::Time;

/// How many links a reply has at most.
pub const LINKS_MAX: usize = 20;

/// How deep replies nest at most: 1 for a reply to the thread itself.
pub const LEVEL_MAX: u32 = 32;

/// A thread's number in its repository: 1 to 1,000,000,000.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "u64", into = "u64")]
#[schemars(inline, extend("minimum" = 1, "maximum" = Self::MAX))]
pub struct ThreadNumber(u64);

impl ThreadNumber {
    /// The number of a repository's first thread, if it mirrors none from elsewhere.
    pub const FIRST: Self = Self(1);
    /// The greatest number.
    pub const MAX: u64 = 1_000_000_000;
    /// The rule, fit for "number RULE".
    pub const RULE: &str = "must be a whole number from 1 to 1000000000";

    /// The number.
    pub fn get(self) -> u64 {
        self.0
    }

    /// The one that follows, if there is one.
    pub fn next(self) -> Option<Self> {
        Self::try_from(self.0 + 1).ok()
    }
}

impl TryFrom<u64> for ThreadNumber {
    type Error = &'static str;

    fn try_from(number: u64) -> Result<Self, &'static str> {
        if (1..=Self::MAX).contains(&number) { Ok(Self(number)) } else { Err(Self::RULE) }
    }
}

impl From<ThreadNumber> for u64 {
    fn from(number: ThreadNumber) -> u64 {
        number.0
    }
}

impl FromStr for ThreadNumber {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let is_plain = !text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit());
        let number = text.parse::<u64>().ok().filter(|_| is_plain);
        number.map_or(Err(Self::RULE), Self::try_from)
    }
}

impl fmt::Display for ThreadNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A thread: its repository and its number there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadKey {
    /// The repository.
    pub scope: Scope,
    /// The number.
    pub number: ThreadNumber,
}

/// Whether there is work left, as far as the thread says.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ThreadState {
    /// There may be.
    Open,
    /// There is none.
    Closed,
}

impl ThreadState {
    /// The rule, fit for "state RULE".
    pub const RULE: &str = "must be open or closed";

    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
        }
    }
}

impl FromStr for ThreadState {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let states = [Self::Open, Self::Closed];
        states.into_iter().find(|state| state.as_str() == text).ok_or(Self::RULE)
    }
}

/// The hold that a write is made under: refused unless it is current and the writer's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fence {
    /// The lock, in the thread's repository.
    pub lock_name: LockName,
    /// The hold's fence token.
    pub fence_token: FenceToken,
}

/// What a write may be tied to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WriteTerms {
    /// The caller's name for the write, so that a retry of it writes nothing more.
    pub request_uuid: Option<RequestUuid>,
    /// The hold that it is made under.
    pub fence: Option<Fence>,
}

/// What is known of a thread without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadRow {
    /// What it is called.
    pub title: ShortText,
    /// Who began it.
    pub author: UserName,
    /// When.
    pub created_at: Time,
    /// Whether there is work left.
    pub state: ThreadState,
    /// How many replies it has.
    pub replies_count: u32,
    /// When it last changed.
    pub updated_at: Time,
    /// Its last event.
    pub sequence: Sequence,
}

/// What kind of reply it is: `[a-z][a-z0-9_-]{0,31}`, like `implementation` or `question`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline, extend("pattern" = KIND_PATTERN, "maxLength" = 32))]
pub struct ReplyKind(String);

impl ReplyKind {
    /// The rule, fit for "kind RULE".
    pub const RULE: &str = "must match [a-z][a-z0-9_-]{0,31}";

    /// The kind as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The same rule as a pattern of a JSON Schema.
const KIND_PATTERN: &str = "^[a-z][a-z0-9_-]{0,31}$";

/// What a reply points to: `branch:NAME`, `commit:HEX`, `pull:NUMBER` or `url:ADDRESS`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline, schema_with = "link_schema")]
pub struct Link(String);

impl Link {
    /// The rule, fit for "link RULE".
    pub const RULE: &str = "must be branch:NAME, commit:HEX (7 to 64 digits), pull:NUMBER or \
         url:ADDRESS (http or https), at most 1000 characters, without spaces";
    const CHARACTERS_MAX: usize = 1000;

    /// The link as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Letters beyond ASCII that can be named in any dialect of regular expressions: of Latin, Greek,
/// Cyrillic, Chinese, Japanese and Korean. A link may have those of other scripts too.
const LETTERS: &str = concat!(
    r"\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af\u03a3-\u03f5\u0400-\u0481\u3041-\u3096",
    r"\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3",
);

/// A link as it is shown; asked with, only what is a link for certain.
fn link_schema(generator: &mut SchemaGenerator) -> Schema {
    let classes = if generator.contract().is_serialize() {
        ["~^:?*\\[\\\\/", "/", ""].map(|no| format!(r"[^\u0000-\u0020\u007f-\u00a0{no}]"))
    } else {
        [r"!-)+-.0-9;->@-Z\]_-}", "!-.0-~", "!-~"].map(|ascii| format!("[{ascii}{LETTERS}]"))
    };
    let [in_branch, no_slash, any] = classes;
    let pattern = format!(
        "^(branch:{in_branch}+(/{in_branch}+)*|commit:[0-9a-f]{{7,64}}\
         |pull:([1-9][0-9]{{0,8}}|1000000000)|url:https?://{no_slash}{any}*)$"
    );
    json_schema!({
        "type": "string",
        "pattern": pattern,
        "maxLength": Link::CHARACTERS_MAX,
        "not": { "pattern": r"^branch:(-|@$|.*(\.\.|@\{|\.$|\.lock(/|$))|(.*/)?\.)" },
    })
}

fn is_kind(text: &str) -> bool {
    let byte_ok = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-".contains(&b);
    text.len() <= 32
        && text.bytes().next().is_some_and(|b| b.is_ascii_lowercase())
        && text.bytes().all(byte_ok)
}

fn is_link(text: &str) -> bool {
    let char_ok = |c: char| c.is_ascii_graphic() || (c.is_alphanumeric() && !c.is_ascii());
    if text.chars().count() > Link::CHARACTERS_MAX || !text.chars().all(char_ok) {
        return false;
    }
    match text.split_once(':') {
        Some(("branch", name)) => is_branch(name),
        Some(("commit", hex)) => {
            (7..=64).contains(&hex.len())
                && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        }
        Some(("pull", number)) => number.parse::<ThreadNumber>().is_ok(),
        Some(("url", address)) => {
            let rest = address.strip_prefix("https://").or(address.strip_prefix("http://"));
            rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
        }
        Some(_) | None => false,
    }
}

/// What Git takes for the name of a branch, spaces and control characters aside.
fn is_branch(name: &str) -> bool {
    let part_ok =
        |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    !name.starts_with('-')
        && !name.ends_with('.')
        && name != "@"
        && !name.contains("..")
        && !name.contains("@{")
        && !name.contains(['~', '^', ':', '?', '*', '[', '\\'])
        && name.split('/').all(part_ok)
}

macro_rules! checked_text {
    ($name:ident, $is_valid:ident) => {
        impl FromStr for $name {
            type Err = &'static str;

            fn from_str(text: &str) -> Result<Self, &'static str> {
                if $is_valid(text) { Ok(Self(text.to_owned())) } else { Err(Self::RULE) }
            }
        }

        impl TryFrom<String> for $name {
            type Error = &'static str;

            fn try_from(text: String) -> Result<Self, &'static str> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> String {
                value.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

checked_text!(ReplyKind, is_kind);
checked_text!(Link, is_link);

/// The links of a reply: up to [`LINKS_MAX`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<Link>", into = "Vec<Link>")]
#[schemars(inline, extend("maxItems" = LINKS_MAX))]
pub struct Links(Vec<Link>);

impl Links {
    /// The rule, fit for "links RULE".
    pub const RULE: &str = "must be a list of at most 20 texts, each branch:NAME, commit:HEX \
         (7 to 64 digits), pull:NUMBER or url:ADDRESS (http or https)";

    /// The links, in the order in which they were given.
    pub fn as_slice(&self) -> &[Link] {
        &self.0
    }
}

impl TryFrom<Vec<Link>> for Links {
    type Error = &'static str;

    fn try_from(links: Vec<Link>) -> Result<Self, &'static str> {
        if links.len() <= LINKS_MAX { Ok(Self(links)) } else { Err(Self::RULE) }
    }
}

impl From<Links> for Vec<Link> {
    fn from(links: Links) -> Self {
        links.0
    }
}

/// A reply in the making.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplyInput {
    /// What kind it is.
    pub kind: ReplyKind,
    /// What it says.
    pub body: super::text::ReplyBody,
    /// What it points to.
    pub links: Links,
    /// The reply that it answers; the thread itself if `None`.
    pub parent: Option<ReplyId>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_says_what_it_points_to() {
        for good in [
            "branch:codex/thread-42",
            "branch:über",
            "commit:0123abc",
            "pull:7",
            "url:https://example.org/a?b#c",
            "url:http://[::1]:80/",
        ] {
            assert!(good.parse::<Link>().is_ok(), "{good:?}");
        }
        let long = format!("url:https://{}", "a".repeat(1000));
        for bad in [
            "",
            "branch",
            "branch:",
            "branch:a..b",
            "branch:-a",
            "branch:a b",
            "branch:/a",
            "branch:a/.b",
            "branch:a.lock",
            "branch:@",
            "branch:a\u{202e}",
            "commit:012345",
            "commit:0123ABC",
            "commit:xyzxyzx",
            "pull:0",
            "pull:07",
            "pull:-1",
            "pull:x",
            "url:ftp://a",
            "url:javascript:alert(1)",
            "url:https://",
            "url:https:///a",
            "Branch:a",
            "tree:a",
            &long,
        ] {
            assert!(bad.parse::<Link>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_kind_is_a_small_word() {
        for good in ["a", "implementation", "a-b_2", &"a".repeat(32)] {
            assert!(good.parse::<ReplyKind>().is_ok(), "{good:?}");
        }
        for bad in ["", "A", "2a", "-a", "a b", "ä", &"a".repeat(33)] {
            assert!(bad.parse::<ReplyKind>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_number_has_one_spelling_and_an_end() {
        for bad in ["", "0", "01", "+1", "-1", "1.0", "1e3", "1000000001", "99999999999999999999"] {
            assert!(bad.parse::<ThreadNumber>().is_err(), "{bad:?}");
        }
        let most: ThreadNumber = "1000000000".parse().expect("the greatest number");
        assert_eq!((most.get(), most.next()), (ThreadNumber::MAX, None));
        assert_eq!(ThreadNumber::FIRST.next().map(ThreadNumber::get), Some(2));
    }

    #[test]
    fn a_reply_has_few_links() {
        let links = |n| vec!["pull:1".parse::<Link>().expect("a link"); n];
        assert!(Links::try_from(links(LINKS_MAX)).is_ok());
        assert!(Links::try_from(links(LINKS_MAX + 1)).is_err());
    }
}
