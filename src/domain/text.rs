//! Short free text: notes, reasons, labels. Length-limited and without control characters, so
//! that it can't break a line, a frame or a terminal.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A note, reason or label: 1 to 200 characters, none of them a control character.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ShortText(Arc<str>);

impl ShortText {
    /// The most characters allowed.
    pub const CHARACTERS_MAX: usize = 200;
    /// The rule, fit for "field RULE".
    pub const RULE: &str = "must be 1 to 200 characters, without control characters";

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ShortText {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        let is_valid = !text.is_empty()
            && text.chars().count() <= Self::CHARACTERS_MAX
            && !text.chars().any(is_control);
        if is_valid { Ok(Self(text.into())) } else { Err(Self::RULE) }
    }
}

/// Control characters, and the line separators and direction marks that act like them.
fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

impl From<ShortText> for String {
    fn from(text: ShortText) -> String {
        text.0.as_ref().to_owned()
    }
}

impl fmt::Display for ShortText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ShortText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
