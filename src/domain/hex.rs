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
    bytes(text)?.try_into().ok()
}

/// Reads digits, two for each byte; `None` for anything else.
pub(crate) fn bytes(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let byte = |[high, low]: &[u8; 2]| Some(digit(*high)? << 4 | digit(*low)?);
    if rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
}
