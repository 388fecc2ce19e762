//! A folder of notes, one for each record that was vouched for: `SEQUENCE.checkpoint`.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::files::asked;
use super::{Note, require_outside};
use crate::audit::fault::AuditError;

/// A folder of notes.
#[derive(Debug, Clone)]
pub struct Folder(PathBuf);

impl Folder {
    /// A folder, which must be there, and outside of the data directory.
    ///
    /// # Errors
    /// [`AuditError`]
    pub fn open(path: &Path, data: &Path) -> Result<Self, AuditError> {
        require_outside(path, data)?;
        if !path.is_dir() {
            return Err(asked(path, "is no folder: make it first"));
        }
        Ok(Self(path.to_owned()))
    }

    /// Writes a note, if it isn't there yet. After a crash there is all of it or nothing.
    ///
    /// # Errors
    /// [`AuditError::Asked`] if there is another note of that record, which is not touched, and
    /// [`AuditError::Io`].
    pub fn keep(&self, note: &Note) -> Result<(), AuditError> {
        let path = self.0.join(format!("{}.checkpoint", note.checkpoint.sequence));
        let (text, failed) = (note.to_string(), || AuditError::io(path.display().to_string()));
        match fs::read(&path) {
            Ok(known) if known == text.as_bytes() => return Ok(()),
            Ok(_) => {
                let why = "is there, and another: of another key or ledger, or of a history that \
                           was rewritten";
                return Err(asked(&path, why));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed()(error)),
        }
        let new = path.with_extension("checkpoint.new");
        let write = || {
            // One that was left half written is of no use.
            let mut file = File::create(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, &path)?;
            File::open(&self.0)?.sync_all()
        };
        write().map_err(failed())
    }
}
