//! Writes a ledger as text, one record a line: the hash, a space, the stored bytes. Or as
//! CloudEvents, one a line.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Read as _, Seek as _, SeekFrom, Write};
use std::path::Path;

use super::fault::AuditError;
use super::lines::Lines;
use super::progress::Progress;
use super::source::{BYTES_MAX, RECORDS_MAX};
use crate::domain::State;
use crate::domain::id::{LedgerId, Sequence};
use crate::ledger::codec::decode;
use crate::ledger::{Ledger, LedgerError, Stored};
use crate::wire::cloud_event::CloudEvent;

/// More than two lines take, at the end of a file.
const TAIL_BYTES: u64 = 4 << 20;

/// How a ledger is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The hash in lower-case hex, one space, the stored bytes.
    Text,
    /// A CloudEvents 1.0 JSON object.
    CloudEvents,
}

/// Writes records as lines.
#[derive(Debug, Clone, Copy)]
pub struct LineWriter {
    form: Form,
    ledger_id: LedgerId,
}

impl LineWriter {
    /// For the records of the ledger of this name.
    pub fn new(form: Form, ledger_id: LedgerId) -> Self {
        Self { form, ledger_id }
    }

    /// For the records of a ledger.
    ///
    /// # Errors
    /// [`LedgerError`] if the ledger has no first record, or it can't be read.
    fn of(ledger: &dyn Ledger, form: Form) -> Result<Self, LedgerError> {
        let corrupt = |what: String| LedgerError::Corrupt { what };
        let first = ledger.records(Sequence::ZERO, 1)?.pop();
        let first = first.ok_or_else(|| corrupt("it has no first record".to_owned()))?;
        let mut state = State::default();
        state.apply(&first.record()?);
        let none = || corrupt("its first record is not ledger.opened".to_owned());
        Ok(Self::new(form, state.ledger_id().ok_or_else(none)?))
    }

    /// Writes a record.
    ///
    /// # Errors
    /// What writing fails with, and [`io::ErrorKind::InvalidData`] for bytes that are no record.
    pub fn write(&self, stored: &Stored, out: &mut dyn Write) -> io::Result<()> {
        match self.form {
            Form::Text => {
                write!(out, "{} ", stored.hash)?;
                out.write_all(&stored.bytes)?;
            }
            Form::CloudEvents => {
                let event = CloudEvent::from_stored(&stored.bytes, &stored.hash, self.ledger_id);
                serde_json::to_writer(&mut *out, &event?)?;
            }
        }
        out.write_all(b"\n")
    }
}

/// Writes all records after `after`. Returns the last one.
///
/// # Errors
/// [`AuditError`]
pub fn export(
    ledger: &dyn Ledger,
    form: Form,
    after: Sequence,
    out: &mut dyn Write,
    progress: &mut dyn Progress,
) -> Result<Sequence, AuditError> {
    let writer = LineWriter::of(ledger, form)?;
    let (mut last, head) = (after, ledger.head().sequence);
    progress.begin(Some(head));
    while last < head {
        for stored in ledger.records_within(last, RECORDS_MAX, BYTES_MAX)? {
            last = stored.sequence;
            writer.write(&stored, out).map_err(AuditError::io("writing the export"))?;
        }
        progress.reach(last);
    }
    out.flush().map_err(AuditError::io("writing the export"))?;
    Ok(last)
}

/// Writes all records to a file. One that has the beginning already is gone on with.
///
/// # Errors
/// [`AuditError`]; what was written stays.
pub fn export_to_file(
    ledger: &dyn Ledger,
    form: Form,
    path: &Path,
    progress: &mut dyn Progress,
) -> Result<Sequence, AuditError> {
    let failed = || AuditError::io(path.display().to_string());
    let mut options = OpenOptions::new();
    let opened = options.read(true).write(true).create(true).truncate(false).open(path);
    let mut file = opened.map_err(failed())?;
    let (after, end) = last_in(ledger, form, &mut file).map_err(|error| match error {
        AuditError::Io { what, error } => AuditError::Io { what, error },
        error => AuditError::Asked(format!("{}: {error}", path.display())),
    })?;
    file.set_len(end).map_err(failed())?;
    file.seek(SeekFrom::Start(end)).map_err(failed())?;
    let mut out = BufWriter::new(file);
    let last = export(ledger, form, after, &mut out, progress)?;
    let file = out.into_inner().map_err(|error| error.into_error()).map_err(failed())?;
    file.sync_all().map_err(failed())?;
    Ok(last)
}

/// The last record that a file has whole, and where its line ends.
fn last_in(
    ledger: &dyn Ledger,
    form: Form,
    file: &mut File,
) -> Result<(Sequence, u64), AuditError> {
    let failed = || AuditError::io("reading what was exported before");
    let length = file.metadata().map_err(failed())?.len();
    let begin = length.saturating_sub(TAIL_BYTES);
    let mut tail = Vec::new();
    file.seek(SeekFrom::Start(begin)).map_err(failed())?;
    file.read_to_end(&mut tail).map_err(failed())?;
    // What stands after the last newline was cut off.
    let Some(end) = tail.iter().rposition(|byte| *byte == b'\n') else {
        return match length {
            0 => Ok((Sequence::ZERO, 0)),
            _ => Err(AuditError::Asked("it is not the beginning of an export".to_owned())),
        };
    };
    let start = tail[..end].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let other = || AuditError::Asked("it is not the beginning of this export".to_owned());
    let line = Lines::of(&tail[start..end]).read(Sequence::ZERO)?.ok_or_else(other)?;
    let is_of_form = (tail[start] == b'{') == (form == Form::CloudEvents);
    let sequence = decode(&line.bytes).map_err(|_| other())?.sequence;
    let found = ledger.records(Sequence(sequence.0.saturating_sub(1)), 1)?.pop();
    if !is_of_form || found.is_none_or(|found| found.hash != line.hash) {
        return Err(other());
    }
    Ok((sequence, begin + end as u64 + 1))
}
