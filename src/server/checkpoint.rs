//! The commands that make keys and sign checkpoints, and what a server signs them with.

use std::io::{self, Write as _};
use std::path::Path;

use super::ServerError;
use super::audit::{Verified, say, verified};
use crate::audit::AuditError;
use crate::audit::checkpoint::{Checkpoint, Folder, Key, Proof, require_outside, write_note};
use crate::config::ServeOptions;
use crate::random;
use crate::service::Checkpoints;

/// Makes a pair of keys.
pub(super) fn make_key(out: &Path) -> Result<(), ServerError> {
    let mut bytes = [0; 32];
    random::fill(&mut bytes);
    let public = Key::from_random(&bytes).write_pair(out)?;
    say(&format!(
        "made: {}, which signs, keep it secret; and {}, which proves",
        out.display(),
        public.display()
    ))
}

/// Verifies a ledger and signs what it is, if it is good.
pub(super) fn sign(path: &Path, key: &Path, out: Option<&Path>) -> Result<(), ServerError> {
    let signer = Key::read(key)?;
    if path.is_dir() {
        for file in [Some(key), out].into_iter().flatten() {
            require_outside(file, path)?;
        }
    }
    let Verified { verification, whole, .. } = verified(path, Proof::default())?;
    whole?;
    let checkpoint = Checkpoint::of(&verification);
    if let Some(fault) = verification.fault {
        return Err(AuditError::Fault(fault).into());
    }
    let note = signer.sign(checkpoint.expect("a good ledger has a first record"));
    match out {
        Some(out) => {
            write_note(out, &note)?;
            let (sequence, hash) = (note.checkpoint.sequence, note.checkpoint.hash);
            say(&format!("signed: record {sequence} with the hash {hash}; {}", out.display()))
        }
        None => write!(io::stdout(), "{note}").map_err(ServerError::io("printing the checkpoint")),
    }
}

/// What a server signs with, if it is told to.
pub(super) fn open(
    data: &Path,
    options: &ServeOptions,
) -> Result<Option<Checkpoints>, ServerError> {
    let Some(path) = &options.checkpoint_key else { return Ok(None) };
    require_outside(path, data)?;
    let folder = options.checkpoint_dir.as_deref().map(|dir| Folder::open(dir, data));
    Ok(Some(Checkpoints { key: Key::read(path)?, folder: folder.transpose()? }))
}
