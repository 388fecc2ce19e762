//! JSON that somebody wrote on one line, which the editor of JSON would spread over several.

/// What stands where in the white space of a text on one line.
#[derive(Clone, Copy)]
struct Spacing {
    after_comma: &'static str,
    after_colon: &'static str,
    in_braces: &'static str,
}

impl Spacing {
    fn of(text: &str) -> Self {
        let space = |pattern: &str| if text.contains(pattern) { " " } else { "" };
        Self {
            after_comma: space("\", \"").max(space("}, \"")).max(space("], \"")),
            after_colon: space("\": "),
            in_braces: space("{ \""),
        }
    }

    fn between(self, before: char, after: Option<char>, now: &str) -> &str {
        match (before, after) {
            (_, None) => now,
            (',', _) => self.after_comma,
            (':', _) => self.after_colon,
            ('[', _) | (_, Some(']')) => "",
            ('{', _) | (_, Some('}')) => self.in_braces,
            _ => now,
        }
    }

    /// The text with this white space between its parts.
    fn apply(self, text: &str) -> String {
        let mut left = String::with_capacity(text.len());
        let (mut before, mut is_in_string, mut is_escaped) = ('{', false, false);
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let space = rest.len() - rest.trim_start().len();
            if !is_in_string && space > 0 {
                let (now, more) = rest.split_at(space);
                left.push_str(self.between(before, more.chars().next(), now));
                rest = more;
                continue;
            }
            if c == '"' && !is_escaped {
                is_in_string = !is_in_string;
            }
            is_escaped = is_in_string && c == '\\' && !is_escaped;
            left.push(c);
            before = c;
            rest = &rest[c.len_utf8()..];
        }
        left
    }
}

/// Brings an edited text back onto one line, spaced as it was, if it was on one and spaced evenly.
/// Any other comes back as it is.
pub(super) fn as_it_was(text: &str, edited: String) -> String {
    let is_on_one_line = !text.trim_end().contains('\n') && text.contains(':');
    // In a comment a quote would be taken for the beginning of a string.
    if !is_on_one_line || text.contains("/*") {
        return edited;
    }
    let spacing = Spacing::of(text);
    if spacing.apply(text) == text { spacing.apply(&edited) } else { edited }
}
