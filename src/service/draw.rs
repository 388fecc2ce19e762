//! Draws new tokens.
//!
//! A token's text leaves the process once, to whoever asked for it; all that is kept is its
//! SHA-256.

use crate::domain::access::TokenHash;
use crate::domain::id::TokenId;
use crate::random;
use crate::wire::token;

/// A token that was just drawn.
pub struct Drawn {
    /// Its public part.
    pub token_id: TokenId,
    /// The token itself, which is a secret.
    pub text: String,
    /// All that the ledger may know.
    pub sha256: TokenHash,
}

impl Drawn {
    /// Draws a token.
    pub fn draw() -> Self {
        let token_id = TokenId(random::uuid());
        let mut secret = [0; 32];
        random::fill(&mut secret);
        let text = token::format(token_id, &secret);
        Self { token_id, sha256: token::hash(&text), text }
    }
}
