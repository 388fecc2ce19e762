//! What the command line prints: results on stdout, messages on stderr.
//!
//! Text that comes from elsewhere can't reach a terminal with control characters in it: they are
//! replaced in text, and escaped in JSON. A reader that has gone away is no error: the command has
//! had its effect, and its exit code says so.

use std::io::{self, Write};

use crate::domain::id::RequestUuid;
use crate::random;

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// For people.
    Text,
    /// The response's JSON, on one line.
    Json,
}

/// Where results and messages go.
pub(super) struct Output {
    format: Format,
    out: Box<dyn Write>,
    err: Box<dyn Write>,
    is_closed: bool,
}

impl Output {
    /// Prints to the process's stdout and stderr.
    pub(super) fn new(format: Format) -> Self {
        Self::to(format, Box::new(io::stdout()), Box::new(io::stderr()))
    }

    /// Prints to these.
    pub(super) fn to(format: Format, out: Box<dyn Write>, err: Box<dyn Write>) -> Self {
        Self { format, out, err, is_closed: false }
    }

    /// How results are printed.
    pub(super) fn format(&self) -> Format {
        self.format
    }

    /// Whether nobody reads stdout any more.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Prints a result: its JSON, or the lines that `text` makes for people.
    ///
    /// # Errors
    /// The lines can't be written, and not because their reader has gone away.
    pub(super) fn result(&mut self, json: &str, text: impl FnOnce() -> String) -> io::Result<()> {
        match self.format {
            Format::Json => self.write_out(&one_line(json)),
            Format::Text => self.write_out(&visible(text().trim_end_matches('\n'))),
        }
    }

    /// Prints a message for people. One that can't be written is dropped: there is nowhere else
    /// to say so.
    pub(super) fn message(&mut self, text: &str) {
        let _ = writeln!(self.err, "{}", visible(text)).and_then(|()| self.err.flush());
    }

    /// Prints what is made for a program to read, as it is.
    ///
    /// # Errors
    /// As for a result.
    pub(super) fn verbatim(&mut self, text: &str) -> io::Result<()> {
        match self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_closed = true;
                Ok(())
            }
            other => other,
        }
    }

    fn write_out(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.verbatim(&format!("{text}\n"))
    }
}

/// The request UUID that was given, or a new one, which is printed: so it is known before anything
/// is sent under it.
pub(super) fn name_request(output: &mut Output, given: Option<RequestUuid>) -> RequestUuid {
    given.unwrap_or_else(|| {
        let made = RequestUuid(random::uuid());
        output.message(&format!("request_uuid {made}"));
        made
    })
}

/// Characters that steer a terminal, or turn the direction of what follows.
pub(super) fn is_steering(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Replaces what would steer a terminal. Our own line ends stay.
pub(super) fn visible(text: &str) -> String {
    text.chars().map(|c| if c != '\n' && is_steering(c) { '\u{fffd}' } else { c }).collect()
}

/// JSON on one line. Between the values white space is free; within a text, what would steer a
/// terminal is written as an escape, which means the same.
pub(super) fn one_line(json: &str) -> String {
    use std::fmt::Write as _;

    let mut line = String::with_capacity(json.len());
    for c in json.trim().chars() {
        if matches!(c, '\n' | '\r' | '\t') {
            line.push(' ');
        } else if is_steering(c) {
            let _ = write!(line, "\\u{:04x}", u32::from(c));
        } else {
            line.push(c);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Gone(io::ErrorKind);

    impl Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn nothing_printed_can_steer_a_terminal() {
        let bad = "a\u{1b}[31mb\u{7}\u{9b}c\r\u{202e}\nd";
        assert_eq!(visible(bad), "a\u{fffd}[31mb\u{fffd}\u{fffd}c\u{fffd}\u{fffd}\nd");
        let json = one_line("{\n\t\"a\": \"\u{9b}\u{202e}é\"\n}\n");
        assert_eq!(json, "{  \"a\": \"\\u009b\\u202eé\" }");
        let value: serde_json::Value = serde_json::from_str(&json).expect("still JSON");
        assert_eq!(value["a"], "\u{9b}\u{202e}é");
    }

    #[test]
    fn a_reader_that_went_away_is_no_error_and_a_full_disk_is() {
        let to = |kind| Output::to(Format::Json, Box::new(Gone(kind)), Box::new(io::sink()));
        let mut output = to(io::ErrorKind::BrokenPipe);
        output.result("{}", String::new).expect("its reader is gone, which is its reader's affair");
        assert!(output.is_closed());
        assert!(to(io::ErrorKind::StorageFull).result("{}", String::new).is_err());
    }
}
