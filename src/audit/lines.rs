//! Reads an exported ledger, line by line: in its text form, or as CloudEvents.
//!
//! In the text form a line is a record's hash in lower-case hex, one space, and the stored bytes.
//! A CloudEvent has the same in other places: the stored bytes are put together again from it, and
//! its hash tells whether that went well.

use std::io::{BufRead, Read as _};

use super::fault::{AuditError, Fault, FaultKind};
use crate::domain::id::Sequence;
use crate::ledger::Hash;
use crate::wire::cloud_event::CloudEvent;

/// More than any record takes: a file without newlines must not fill the memory.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// A record as a line has it.
pub struct Line {
    /// Its hash.
    pub hash: Hash,
    /// Its stored bytes.
    pub bytes: Box<[u8]>,
}

/// The lines of an input.
pub struct Lines<R> {
    input: R,
    line: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    /// Of an input.
    pub fn of(input: R) -> Self {
        Self { input, line: Vec::new() }
    }

    /// The next line, which is to follow on the record `last`; `None` at the end.
    ///
    /// # Errors
    /// [`AuditError::Io`], and [`AuditError::Fault`] for a line that is none.
    pub fn read(&mut self, last: Sequence) -> Result<Option<Line>, AuditError> {
        self.line.clear();
        let mut limited = self.input.by_ref().take(LINE_BYTES_MAX);
        let read = limited.read_until(b'\n', &mut self.line);
        if read.map_err(AuditError::io("reading the ledger"))? == 0 {
            return Ok(None);
        }
        self.line.pop_if(|last| *last == b'\n');
        let fault = |what: String| {
            let what = format!("its line {what}");
            AuditError::Fault(Fault::of(last.next(), FaultKind::Record, what))
        };
        if self.line.len() as u64 == LINE_BYTES_MAX {
            return Err(fault(format!("has more than {LINE_BYTES_MAX} bytes")));
        }
        parse(&self.line).map(Some).map_err(fault)
    }
}

fn parse(line: &[u8]) -> Result<Line, String> {
    if line.first() == Some(&b'{') {
        let event: CloudEvent<'_> =
            serde_json::from_slice(line).map_err(|error| format!("is no CloudEvent: {error}"))?;
        let (hash, bytes) = event.to_stored()?;
        return Ok(Line { hash, bytes });
    }
    const FORM: &str = "is not a hash of 64 lower-case hex digits, a space and a record";
    let (hash, bytes) = line.split_at_checked(64).ok_or(FORM)?;
    let hash = std::str::from_utf8(hash).ok().and_then(|hash| hash.parse().ok());
    match (hash, bytes.split_first()) {
        (Some(hash), Some((b' ', bytes))) => Ok(Line { hash, bytes: bytes.into() }),
        (_, _) => Err(FORM.to_owned()),
    }
}
