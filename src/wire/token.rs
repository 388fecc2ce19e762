//! The text of a token: `pearing_` + its id + `_` + its secret + `_` + a checksum, in hex.
//!
//! The prefix lets secret scanners find one that leaked; the checksum tells a mistyped token from
//! a wrong one without asking the ledger. The ledger knows the SHA-256 of the whole text only.
//! A token has 256 random bits, so one round of SHA-256 is enough: there is nothing to guess.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::domain::access::TokenHash;
use crate::domain::hex;
use crate::domain::id::TokenId;

const PREFIX: &str = "pearing_";
const ID_DIGITS: usize = 32;
const SECRET_DIGITS: usize = 64;
const CHECKSUM_DIGITS: usize = 8;

/// What a token looks like, as a pattern of a JSON Schema.
pub const PATTERN: &str = "^pearing_[0-9a-f]{32}_[0-9a-f]{64}_[0-9a-f]{8}$";

/// How many characters a token has.
pub const LENGTH: usize = PREFIX.len() + ID_DIGITS + 1 + SECRET_DIGITS + 1 + CHECKSUM_DIGITS;

/// A token's text, which is a secret.
pub fn format(token_id: TokenId, secret: &[u8; 32]) -> String {
    let mut text = String::with_capacity(LENGTH);
    text.push_str(PREFIX);
    let _ = write!(text, "{}_", token_id.0.simple());
    let _ = hex::write(&mut text, secret);
    let checksum = checksum(&text);
    text.push('_');
    text.push_str(&checksum);
    text
}

/// The id in a token's text; `None` if this is no token, or a mistyped one.
pub fn parse(text: &str) -> Option<TokenId> {
    if text.len() != LENGTH || !text.is_ascii() {
        return None;
    }
    let (body, checksum_digits) = text.rsplit_once('_')?;
    let (id, secret) = body.strip_prefix(PREFIX)?.split_once('_')?;
    let is_shaped = id.len() == ID_DIGITS
        && secret.len() == SECRET_DIGITS
        && id.bytes().chain(secret.bytes()).all(|d| matches!(d, b'0'..=b'9' | b'a'..=b'f'));
    if !is_shaped || checksum(body) != checksum_digits {
        return None;
    }
    Uuid::try_parse(id).ok().map(TokenId)
}

/// The SHA-256 of the whole text: all that the ledger may know.
pub fn hash(text: &str) -> TokenHash {
    TokenHash(Sha256::digest(text.as_bytes()).into())
}

fn checksum(body: &str) -> String {
    let digest: [u8; 32] = Sha256::digest(body.as_bytes()).into();
    let mut digits = String::with_capacity(CHECKSUM_DIGITS);
    let _ = hex::write(&mut digits, &digest[..CHECKSUM_DIGITS / 2]);
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> String {
        let id = TokenId(Uuid::from_u128(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef));
        format(id, &[0x5a; 32])
    }

    #[test]
    fn a_token_reads_back_as_its_id() {
        let id = TokenId(Uuid::from_u128(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef));
        let expected = concat!(
            "pearing_0123456789abcdef0123456789abcdef_",
            "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a_"
        );
        assert!(token().starts_with(expected), "{}", token());
        assert_eq!(token().len(), LENGTH);
        assert_eq!(parse(&token()), Some(id));
    }

    #[test]
    fn a_token_with_any_one_character_changed_is_none() {
        let good = token();
        for at in 0..good.len() {
            let mut bad = good.clone().into_bytes();
            bad[at] = if bad[at] == b'0' { b'1' } else { b'0' };
            let bad = String::from_utf8(bad).expect("ASCII stays ASCII");
            assert_eq!(parse(&bad), None, "{bad}");
        }
        for bad in ["", "pearing_", &good[1..], &good.to_uppercase(), &format!("{good} ")] {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn the_hash_covers_the_secret_and_not_only_the_id() {
        let id = TokenId(Uuid::nil());
        assert_ne!(hash(&format(id, &[1; 32])), hash(&format(id, &[2; 32])));
    }
}
