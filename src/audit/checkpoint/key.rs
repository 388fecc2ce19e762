//! The keys: one signs and is secret, the other proves and is for everybody.
//!
//! Both are in the forms that other tools use: PKCS#8 and SPKI, in PEM. What is wrong with a
//! secret one is said without any of it.

use std::fmt;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{
    DecodePrivateKey as _, DecodePublicKey as _, EncodePrivateKey as _, EncodePublicKey as _,
    KeypairBytes,
};
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};

use super::files::{asked, beside, open, read_text, write_new};
use super::{Checkpoint, Note};
use crate::audit::fault::AuditError;

/// A key that signs.
#[derive(Clone)]
pub struct Key(SigningKey);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(secret)")
    }
}

impl Key {
    /// The key that is made of 32 random bytes.
    pub fn from_random(bytes: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(bytes))
    }

    /// Reads a key, which nobody but its owner may be able to read.
    ///
    /// # Errors
    /// [`AuditError`]
    pub fn read(path: &Path) -> Result<Self, AuditError> {
        let file = open(path)?;
        // Of the file that is open, so that it can't be exchanged in between.
        let metadata = file.metadata().map_err(AuditError::io(path.display().to_string()))?;
        if !metadata.is_file() {
            return Err(asked(path, "is no file"));
        }
        if metadata.permissions().mode() & 0o077 != 0 {
            return Err(asked(path, "others can read it: chmod 600 it first"));
        }
        let key = SigningKey::from_pkcs8_pem(&read_text(file, path)?);
        let none = "is no private Ed25519 key in PEM (PKCS#8), as checkpoint-key makes it";
        key.map(Self).map_err(|_| asked(path, none))
    }

    /// Writes the pair: this key, which only its owner can read, and beside it with `.pub` behind
    /// its name the public one. Returns where that is. No file is overwritten.
    ///
    /// # Errors
    /// [`AuditError`]
    pub fn write_pair(&self, path: &Path) -> Result<PathBuf, AuditError> {
        // Without the public key in it, which some programs can't read there.
        let bytes = KeypairBytes { secret_key: self.0.to_bytes(), public_key: None };
        let text = bytes.to_pkcs8_pem(LineEnding::LF).expect("a key can be written");
        let public = beside(path, ".pub");
        write_new(path, &text, 0o600)?;
        write_new(&public, &self.public().to_pem(), 0o644).inspect_err(|_| {
            // Made just now, and of no use.
            let _ = std::fs::remove_file(path);
        })?;
        Ok(public)
    }

    /// The key that proves what this one has signed.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// Signs a checkpoint.
    pub fn sign(&self, checkpoint: Checkpoint) -> Note {
        let signature = self.0.sign(checkpoint.to_string().as_bytes()).to_bytes();
        Note { checkpoint, signature }
    }
}

/// A key that proves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// Reads a key.
    ///
    /// # Errors
    /// [`AuditError`]
    pub fn read(path: &Path) -> Result<Self, AuditError> {
        let text = read_text(open(path)?, path)?;
        if text.contains("PRIVATE KEY") {
            return Err(asked(path, "is a private key; to prove something takes the public one"));
        }
        let key = VerifyingKey::from_public_key_pem(&text);
        let none = "is no public Ed25519 key in PEM (SPKI), as checkpoint-key makes it";
        key.map(Self).map_err(|_| asked(path, none))
    }

    /// Whether the key that belongs to this one has signed what a note says.
    pub fn has_signed(&self, note: &Note) -> bool {
        let signature = Signature::from_bytes(&note.signature);
        self.0.verify_strict(note.checkpoint.to_string().as_bytes(), &signature).is_ok()
    }

    fn to_pem(&self) -> String {
        self.0.to_public_key_pem(LineEnding::LF).expect("a key can be written")
    }
}
