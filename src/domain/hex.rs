//! Bytes as lower-case hex digits: how hashes and tokens are written.

use std::fmt;

/// What the text of a hash breaks, fit for "field RULE".
pub(crate) const HASH_RULE: &str = "must be 64 lower-case hex digits";

/// The same as a pattern of a JSON Schema.
pub(crate) const HASH_PATTERN: &str = "^[0-9a-f]{64}$";

/// Writes the digits.
pub(crate) fn write(to: &mut impl fmt::Write, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(to, "{byte:02x}"))
}

/// Reads the digits of a hash; `None` for anything else.
pub(crate) fn hash(text: &str) -> Option<[u8; 32]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    if text.len() != 64 {
        return None;
    }
    let mut hash = [0; 32];
    for (byte, pair) in hash.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(hash)
}
