//! The hash chain: each record's hash covers its bytes and, through the hash before, all others.
//!
//! SHA-256 over 32 bytes of hash and then the stored bytes, so that an auditor can check a ledger
//! with standard tools. Deliberately absent: a secret. The chain shows damage and rewriting to
//! whoever has kept a later hash; it doesn't prove who wrote.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

use crate::domain::hex;

/// SHA-256 over a ledger up to one of its records.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// What stands before the first record.
    pub const ZERO: Self = Self([0; 32]);
}

/// The hash of a record that is stored as `bytes` after a record that has the hash `previous`.
pub fn link(previous: &Hash, bytes: &[u8]) -> Hash {
    Hash(Sha256::new().chain_update(previous.0).chain_update(bytes).finalize().into())
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex::write(f, &self.0)
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is no hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}", hex::HASH_RULE)]
pub struct InvalidHash;

impl FromStr for Hash {
    type Err = InvalidHash;

    fn from_str(text: &str) -> Result<Self, InvalidHash> {
        hex::hash(text).map(Self).ok_or(InvalidHash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checked against `(head -c 32 /dev/zero; printf '{"a":1}') | sha256sum`, and again with the
    /// digest in place of the zero bytes for the second record.
    #[test]
    fn the_chain_is_what_standard_tools_compute() {
        let first = link(&Hash::ZERO, br#"{"a":1}"#);
        assert_eq!(
            first.to_string(),
            "b06a229070741292512e8760f470dd7a4c46ccfdf253df781d88dabe58c1ccb1"
        );
        assert_eq!(
            link(&first, br#"{"a":2}"#).to_string(),
            "a1d14784ae595e5334415f1ab3f83e6dd035dd72252a25352a9d3bfe1e7d08ba"
        );
    }

    #[test]
    fn a_hash_reads_back_as_it_was_written() {
        let hash = link(&Hash::ZERO, b"x");
        assert_eq!(hash.to_string().parse(), Ok(hash));
        for bad in ["", "0", &"g".repeat(64), &"A".repeat(64), &"0".repeat(65), &"ä".repeat(32)] {
            assert_eq!(bad.parse::<Hash>(), Err(InvalidHash), "{bad:?}");
        }
    }
}
