//! Free text: notes, reasons, titles, what a user is doing, the bodies of threads and replies.
//! Length-limited and without control characters, so that it can't break a line, a frame or a
//! terminal. Only a body may have several lines.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Control characters, and the line separators and direction marks that act like them.
fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The same, but for what shapes a text of several lines.
fn is_control_in_lines(c: char) -> bool {
    is_control(c) && !matches!(c, '\n' | '\t')
}

/// The same as patterns of a JSON Schema, for a whole text.
const LINE_PATTERN: &str =
    concat!(r"^[^\u0000-\u001f\u007f-\u009f", r"\u200e\u200f\u2028-\u202e\u2066-\u2069]*$",);
const LINES_PATTERN: &str = concat!(
    r"^[^\u0000-\u0008\u000b-\u001f\u007f-\u009f",
    r"\u200e\u200f\u2028-\u202e\u2066-\u2069]*$",
);

macro_rules! text {
    (
        $(#[$doc:meta])*
        $name:ident, $least:literal..=$most:literal, $is_forbidden:ident, $pattern:ident,
        $rule:literal
    ) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "String", into = "String")]
        #[schemars(
            inline,
            extend("minLength" = $least, "maxLength" = $most, "pattern" = $pattern)
        )]
        pub struct $name(Arc<str>);

        impl $name {
            /// The most characters allowed.
            pub const CHARACTERS_MAX: usize = $most;
            /// The rule, fit for "field RULE".
            pub const RULE: &str = $rule;

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = &'static str;

            fn try_from(text: String) -> Result<Self, &'static str> {
                let is_valid = ($least..=$most).contains(&text.chars().count())
                    && !text.chars().any($is_forbidden);
                if is_valid { Ok(Self(text.into())) } else { Err(Self::RULE) }
            }
        }

        impl From<$name> for String {
            fn from(text: $name) -> String {
                text.0.as_ref().to_owned()
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

text! {
    /// A note, reason, label or title: 1 to 200 characters, none of them a control character.
    ShortText, 1..=200, is_control, LINE_PATTERN,
    "must be 1 to 200 characters, without control characters"
}
text! {
    /// What a user says it is doing: 1 to 500 characters, none of them a control character.
    ActivityText, 1..=500, is_control, LINE_PATTERN,
    "must be 1 to 500 characters, without control characters"
}
text! {
    /// What a thread is about: up to 16,384 characters in any number of lines.
    ThreadBody, 0..=16_384, is_control_in_lines, LINES_PATTERN,
    "must be at most 16384 characters, without control characters but tab and newline"
}
text! {
    /// What a reply says: 1 to 16,384 characters in any number of lines.
    ReplyBody, 1..=16_384, is_control_in_lines, LINES_PATTERN,
    "must be 1 to 16384 characters, without control characters but tab and newline"
}

impl ThreadBody {
    /// A body that says nothing.
    pub fn empty() -> Self {
        Self("".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_body_has_lines_and_no_text_steers_a_terminal() {
        let (line, body) = (
            |text: &str| ShortText::try_from(text.to_owned()),
            |text: &str| ReplyBody::try_from(text.to_owned()),
        );
        for bad in ["", "a\u{1b}[2J", "a\rb", "a\0", "a\u{202e}b", "a\u{2028}b", "a\u{7f}"] {
            assert!(line(bad).is_err() && body(bad).is_err(), "{bad:?}");
        }
        for text in ["a\nb", "a\tb"] {
            assert!(line(text).is_err() && body(text).is_ok(), "{text:?}");
        }
        assert_eq!(ThreadBody::try_from(String::new()), Ok(ThreadBody::empty()));
    }

    #[test]
    fn a_text_is_measured_in_characters() {
        let most = |n: usize| "ü".repeat(n);
        assert!(ShortText::try_from(most(200)).is_ok());
        assert!(ShortText::try_from(most(201)).is_err());
        assert!(ActivityText::try_from(most(500)).is_ok());
        assert!(ActivityText::try_from(most(501)).is_err());
        assert!(ThreadBody::try_from(most(16_384)).is_ok());
        assert!(ReplyBody::try_from(most(16_385)).is_err());
    }
}
