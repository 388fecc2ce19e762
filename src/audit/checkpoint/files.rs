//! Files of keys and notes, which lie outside of what they vouch for.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::Note;
use crate::audit::fault::AuditError;

/// More than any key or note has.
const BYTES_MAX: u64 = 64 * 1024;

/// Refuses a path in the data directory, whatever links lead there: what a ledger is proved with
/// must not be lost, copied or replaced together with it.
///
/// # Errors
/// [`AuditError::Asked`], and [`AuditError::Io`] if it can't be told.
pub fn require_outside(path: &Path, data: &Path) -> Result<(), AuditError> {
    let failed = |path: &Path| AuditError::io(path.display().to_string());
    let is_inside =
        real(path).map_err(failed(path))?.starts_with(real(data).map_err(failed(data))?);
    if is_inside {
        return Err(asked(path, "must lie outside the data directory"));
    }
    Ok(())
}

/// A path without links. The last part of it need not be there.
fn real(path: &Path) -> io::Result<PathBuf> {
    match (fs::canonicalize(path), path.file_name()) {
        (Err(error), Some(name)) if error.kind() == io::ErrorKind::NotFound => {
            Ok(fs::canonicalize(folder_of(path))?.join(name))
        }
        (real, _) => real,
    }
}

/// The folder that a path lies in.
pub(in crate::audit) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The path of a file with this name and more behind it.
pub(in crate::audit) fn beside(path: &Path, more: impl AsRef<OsStr>) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(more);
    PathBuf::from(name)
}

pub(super) fn asked(path: &Path, why: &str) -> AuditError {
    AuditError::Asked(format!("{}: {why}", path.display()))
}

/// Reads a short text.
pub(super) fn read_text(file: File, path: &Path) -> Result<String, AuditError> {
    let mut text = String::new();
    let read = file.take(BYTES_MAX).read_to_string(&mut text);
    read.map_err(AuditError::io(path.display().to_string()))?;
    Ok(text)
}

/// Opens a file to read it.
pub(super) fn open(path: &Path) -> Result<File, AuditError> {
    File::open(path).map_err(AuditError::io(path.display().to_string()))
}

/// Writes a note to a new file: one that is there may be the only proof of something else.
///
/// # Errors
/// [`AuditError::Io`]
pub fn write_note(path: &Path, note: &Note) -> Result<(), AuditError> {
    write_new(path, &note.to_string(), 0o644)
}

/// Writes a text to a new file, as a whole or not at all.
pub(super) fn write_new(path: &Path, text: &str, mode: u32) -> Result<(), AuditError> {
    let failed = || AuditError::io(path.display().to_string());
    let opened = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    let mut file = opened.map_err(failed())?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    let written = written.and_then(|()| File::open(folder_of(path))?.sync_all());
    written.map_err(failed()).inspect_err(|_| {
        // It is ours, and of no use. If it stays, it is no whole note and no whole key.
        let _ = fs::remove_file(path);
    })
}
