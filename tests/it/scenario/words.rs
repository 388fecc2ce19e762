//! Cuts a line of a scenario into words, and hands them out one at a time.
//!
//! Strict on purpose: what nobody asked for is an error with its file and line, so that a slip of
//! the pen can't turn an assertion into a comment.

use std::fmt::Display;
use std::str::FromStr;

/// A place in a scenario file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The file.
    pub(super) file: String,
    /// The line, from 1.
    pub(super) line: usize,
}

impl Place {
    /// A failure at this place.
    pub(super) fn fails(&self, why: impl Display) -> String {
        format!("{}:{}: {why}", self.file, self.line)
    }
}

/// The words of one line that are still to be read.
#[derive(Debug, Clone)]
pub(super) struct Words {
    /// Where they stand.
    pub(super) place: Place,
    words: Vec<String>,
    next: usize,
}

impl Words {
    /// Cuts `text` at spaces. `;` and `,` stand alone, `"…"` is one word, `#` begins a comment.
    pub(super) fn cut(place: &Place, text: &str) -> Result<Self, String> {
        let mut words = Vec::new();
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let length = match first {
                '#' => break,
                ';' | ',' => 1,
                '"' => match rest[1..].find('"') {
                    Some(end) => end + 2,
                    None => return Err(place.fails("a quoted text doesn't end on its line")),
                },
                _ => rest.find([' ', '\t', ';', ',', '"']).unwrap_or(rest.len()),
            };
            words.push(rest[..length].to_owned());
            rest = rest[length..].trim_start();
        }
        Ok(Self { place: place.clone(), words, next: 0 })
    }

    /// Splits at a separator into lists of words, none of which may be empty.
    pub(super) fn split(&self, separator: &str) -> Result<Vec<Self>, String> {
        let parts = self.words[self.next..].split(|word| word == separator);
        parts
            .map(|part| {
                if part.is_empty() {
                    return Err(self.fails(format!("nothing stands beside {separator:?}")));
                }
                Ok(Self { place: self.place.clone(), words: part.to_vec(), next: 0 })
            })
            .collect()
    }

    /// The words before `->`, and those after it.
    pub(super) fn split_at_arrow(&self) -> (Self, Option<Self>) {
        let words = &self.words[self.next..];
        let part =
            |words: &[String]| Self { place: self.place.clone(), words: words.to_vec(), next: 0 };
        match words.iter().position(|word| word == "->") {
            Some(arrow) => (part(&words[..arrow]), Some(part(&words[arrow + 1..]))),
            None => (part(words), None),
        }
    }

    /// Whether all have been read.
    pub(super) fn is_empty(&self) -> bool {
        self.next == self.words.len()
    }

    /// The next word, left in its place.
    pub(super) fn peek(&self) -> Option<&str> {
        self.words.get(self.next).map(String::as_str)
    }

    /// The next word, or an error that names what should have stood here.
    pub(super) fn take(&mut self, what: &str) -> Result<String, String> {
        let Some(word) = self.words.get(self.next) else {
            return Err(self.fails(format!("{what} is missing")));
        };
        self.next += 1;
        Ok(word.clone())
    }

    /// Reads `word` if it comes next.
    pub(super) fn take_if(&mut self, word: &str) -> bool {
        let is_next = self.peek() == Some(word);
        self.next += usize::from(is_next);
        is_next
    }

    /// Reads `word`, which must come next.
    pub(super) fn take_exactly(&mut self, word: &str) -> Result<(), String> {
        match self.take(word)? {
            found if found == word => Ok(()),
            found => Err(self.fails(format!("{word:?} should stand here, not {found:?}"))),
        }
    }

    /// The next word as a value.
    pub(super) fn take_as<T: FromStr>(&mut self, what: &str) -> Result<T, String> {
        let word = self.take(what)?;
        word.parse().map_err(|_| self.fails(format!("{word:?} is no {what}")))
    }

    /// A quoted text, without its quotes.
    pub(super) fn take_text(&mut self, what: &str) -> Result<String, String> {
        let word = self.take(what)?;
        let inner = word.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        inner.map(str::to_owned).ok_or_else(|| self.fails(format!("{what} stands in quotes")))
    }

    /// A time of the scenario, as milliseconds after its start: `12s`, `4.999s`.
    pub(super) fn take_millis(&mut self) -> Result<i64, String> {
        let word = self.take("a time")?;
        let millis = word.strip_suffix('s').and_then(|seconds| {
            let (whole, part) = seconds.split_once('.').unwrap_or((seconds, "0"));
            let is_plain = part.len() <= 3 && part.bytes().all(|b| b.is_ascii_digit());
            let part: i64 = format!("{part:0<3}").parse().ok().filter(|_| is_plain)?;
            Some(whole.parse::<u32>().ok().map(i64::from)? * 1000 + part)
        });
        millis.ok_or_else(|| self.fails(format!("{word:?} is no time like 12s or 4.999s")))
    }

    /// Leaves out what is left, since it has been read elsewhere.
    pub(super) fn skip_all(&mut self) {
        self.next = self.words.len();
    }

    /// Fails if a word is left over.
    pub(super) fn end(&self) -> Result<(), String> {
        match self.peek() {
            Some(word) => Err(self.fails(format!("unknown word {word:?}"))),
            None => Ok(()),
        }
    }

    /// A failure on this line.
    pub(super) fn fails(&self, why: impl Display) -> String {
        self.place.fails(why)
    }
}
