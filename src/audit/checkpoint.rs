//! Signed checkpoints: what was true of a ledger, in a note that only a key's owner can write.
//!
//! Whoever can write a ledger's files can compute its chain anew, and a ledger whose end was cut
//! off is a whole one. A note that is kept elsewhere shows both: today's ledger extends what the
//! note says, or it doesn't. A note is text, one fact a line, and last an Ed25519 signature over
//! exactly the bytes before its own line, so that other programs can check it too.
//!
//! Deliberately absent: when it was signed. The time is that of the record, so that one record and
//! one key make one note, whoever asks and however often.

pub(super) mod files;
mod folder;
mod key;
mod proof;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use base64ct::{Base64, Encoding as _};

use crate::domain::id::{LedgerId, Sequence};
use crate::domain::time::Time;
use crate::ledger::Hash;
use crate::wire::verification::Verification;

pub use files::{require_outside, write_note};
pub use folder::Folder;
pub use key::{Key, PublicKey};
pub use proof::Proof;

/// What a checkpoint says. As text it is what is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpoint {
    /// The ledger.
    pub ledger_id: LedgerId,
    /// The record that it is about.
    pub sequence: Sequence,
    /// The record's hash, which stands for all of them up to it.
    pub hash: Hash,
    /// The record's time.
    pub time: Time,
}

impl Checkpoint {
    /// Of a ledger's last record; `None` if the ledger isn't good.
    pub fn of(verification: &Verification) -> Option<Self> {
        let Verification { is_good, ledger_id, sequence, hash, time, .. } = verification;
        let hash = hash.parse().expect("it was written from a hash");
        let ledger_id = ledger_id.filter(|_| *is_good)?;
        Some(Self { ledger_id, sequence: *sequence, hash, time: *time })
    }
}

impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ledger_id, sequence, hash, time } = self;
        writeln!(f, "pearing checkpoint 1")?;
        writeln!(f, "ledger {ledger_id}")?;
        writeln!(f, "sequence {sequence}")?;
        writeln!(f, "hash {hash}")?;
        writeln!(f, "time {time}")
    }
}

/// A checkpoint with a signature, whose it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note {
    /// What it says.
    pub checkpoint: Checkpoint,
    signature: [u8; 64],
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}signature {}", self.checkpoint, Base64::encode_string(&self.signature))
    }
}

/// A text that is no note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is no checkpoint")]
pub struct InvalidNote;

impl FromStr for Note {
    type Err = InvalidNote;

    fn from_str(text: &str) -> Result<Self, InvalidNote> {
        // What is read must be written in the very same way: a note has one form.
        parse(text).filter(|note| note.to_string() == text).ok_or(InvalidNote)
    }
}

fn parse(text: &str) -> Option<Note> {
    let rest = text.strip_prefix("pearing checkpoint 1\nledger ")?;
    let (ledger_id, rest) = rest.split_once("\nsequence ")?;
    let (sequence, rest) = rest.split_once("\nhash ")?;
    let (hash, rest) = rest.split_once("\ntime ")?;
    let (time, signature) = rest.split_once("\nsignature ")?;
    let checkpoint = Checkpoint {
        ledger_id: ledger_id.parse().ok()?,
        sequence: Sequence(sequence.parse().ok()?),
        hash: hash.parse().ok()?,
        time: time.parse().ok()?,
    };
    let signature = Base64::decode_vec(signature.trim_end()).ok()?.try_into().ok()?;
    Some(Note { checkpoint, signature })
}
