//! A record as it is stored: its bytes, and the hash that ties it to all before it.

use super::chain::{Hash, link};
use super::codec::{CodecError, decode, encode};
use super::error::LedgerError;
use crate::domain::event::Record;
use crate::domain::id::Sequence;

/// A stored record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Its place.
    pub sequence: Sequence,
    /// Over all records up to this one.
    pub hash: Hash,
    /// One line of JSON, without a newline.
    pub bytes: Box<[u8]>,
}

/// Where a ledger ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Head {
    /// The last record.
    pub sequence: Sequence,
    /// Its hash, which stands for the whole ledger.
    pub hash: Hash,
}

impl Stored {
    /// The form in which `record` is stored after a record that has the hash `previous`.
    pub fn new(previous: &Hash, record: &Record) -> Self {
        let bytes = encode(record);
        Self { sequence: record.sequence, hash: link(previous, &bytes), bytes }
    }

    /// The record itself.
    ///
    /// # Errors
    /// [`CodecError`] if the bytes are no record that this version knows, or one of another
    /// place.
    pub fn decode(&self) -> Result<Record, CodecError> {
        let record = decode(&self.bytes)?;
        if record.sequence != self.sequence {
            let (place, stored) = (self.sequence, record.sequence);
            return Err(CodecError::WrongPlace { place, stored });
        }
        Ok(record)
    }

    /// The record itself, of a ledger in which nothing else may lie.
    ///
    /// # Errors
    /// [`LedgerError::Corrupt`], as of [`decode`](Self::decode).
    pub fn record(&self) -> Result<Record, LedgerError> {
        self.decode().map_err(|error| LedgerError::Corrupt { what: error.to_string() })
    }

    /// The head of a ledger that ends with this record.
    pub fn head(&self) -> Head {
        Head { sequence: self.sequence, hash: self.hash }
    }
}
