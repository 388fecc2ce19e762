//! What stands for a token where a browser follows the feed: its `EventSource` can send a cookie,
//! but no header.
//!
//! A session is the token's id, which isn't secret, and a keyed hash of it. So there is nothing to
//! remember of it, and it ends with its token. The key is random and lies in a file of its own,
//! so that browsers stay connected over a restart; it isn't made from anything in the ledger,
//! where administrators read the hash of each token. A key that was lost, damaged, or open for
//! others to read is made anew: all sessions end, and pages ask for another one.
//! Deliberately absent: an end of one session alone. Who revokes the token ends its sessions.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use uuid::Uuid;

use super::{Identity, Service};
use crate::domain::hex;
use crate::domain::id::TokenId;
use crate::random;

/// The file in the data directory: the key's 32 bytes.
const FILE: &str = "feed-session-key";
/// Where the file is written, before it takes its place.
const NEW_FILE: &str = "feed-session-key.new";

const KEY_BYTES: usize = 32;

/// What the hash is for, so that it is none of anything else under the same key.
const PURPOSE: &[u8] = b"pearing feed session, version 1\n";

/// Makes sessions, and knows its own.
pub(super) struct FeedSessions {
    key: [u8; KEY_BYTES],
}

impl FeedSessions {
    /// With the key in the data directory, or a new one; without a directory it lasts as long as
    /// this process.
    ///
    /// # Errors
    /// The file can't be read or written.
    pub(super) fn open(data: Option<&Path>) -> io::Result<Self> {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{FILE}: {error}"));
        let key = match data {
            Some(data) => match read(data).map_err(named)? {
                Some(key) => key,
                None => write(data, new_key()).map_err(named)?,
            },
            None => new_key(),
        };
        Ok(Self { key })
    }

    /// The session of a token: letters, digits and `_`. It is a secret.
    pub(super) fn session(&self, token_id: TokenId) -> String {
        let hash: [u8; 32] = self.hasher(token_id).finalize().into_bytes().into();
        let mut text = format!("{}_", token_id.0.simple());
        hex::write(&mut text, &hash).expect("a text takes whatever is written");
        text
    }

    /// The token that a session stands for; `None` if it is none of ours. Takes as long for a
    /// hash that is wrong from the start as for one that is nearly right.
    pub(super) fn token_id(&self, session: &str) -> Option<TokenId> {
        let (id, hash) = session.split_once('_')?;
        let token_id = TokenId(Uuid::try_parse(id).ok()?);
        let hash = hex::hash(hash)?;
        self.hasher(token_id).verify_slice(&hash).is_ok().then_some(token_id)
    }

    fn hasher(&self, token_id: TokenId) -> Hmac<Sha256> {
        let hasher =
            Hmac::<Sha256>::new_from_slice(&self.key).expect("a key of any length will do");
        hasher.chain_update(PURPOSE).chain_update(token_id.0.as_bytes())
    }
}

impl Service {
    /// What stands for a token where a feed is asked for. It is a secret, and ends with the token.
    pub fn feed_session(&self, token_id: TokenId) -> String {
        self.0.feed_sessions.session(token_id)
    }

    /// Who a feed session stands for; `None` if it is none of ours, its token doesn't work any
    /// more, or the user is out of service. Notes that the token is used.
    pub fn authenticate_feed(&self, session: &str) -> Option<Identity> {
        let token_id = self.0.feed_sessions.token_id(session)?;
        let now = self.now();
        let identity = self.read(|state| {
            let token = state.access().token(token_id).filter(|token| token.is_live(now))?;
            let is_in_service = state.access().is_in_service(&token.user);
            is_in_service.then(|| Identity { token_id, user: token.user.clone() })
        })?;
        self.0.token_use.note(token_id, now);
        Some(identity)
    }
}

fn new_key() -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    random::fill(&mut key);
    key
}

/// The key; `None` if there is no file, or none to be trusted.
fn read(data: &Path) -> io::Result<Option<[u8; KEY_BYTES]>> {
    let file = match fs::File::open(data.join(FILE)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let is_private = file.metadata()?.mode() & 0o077 == 0;
    let mut bytes = Vec::new();
    // One more than there may be tells a longer file.
    file.take(KEY_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    let key = bytes.try_into().ok().filter(|_| is_private);
    if key.is_none() {
        tracing::warn!("{FILE} is damaged or open for others: all feed sessions end");
    }
    Ok(key)
}

fn write(data: &Path, key: [u8; KEY_BYTES]) -> io::Result<[u8; KEY_BYTES]> {
    let new = data.join(NEW_FILE);
    // One that was left half written may be open for others.
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    file.write_all(&key)?;
    file.sync_all()?;
    fs::rename(&new, data.join(FILE))?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn token(n: u128) -> TokenId {
        TokenId(Uuid::from_u128(n))
    }

    fn open(data: &Path) -> FeedSessions {
        FeedSessions::open(Some(data)).expect("the directory is ours")
    }

    #[test]
    fn a_session_stands_for_its_token_and_no_other() {
        let sessions = FeedSessions::open(None).expect("there is nothing to read");
        let session = sessions.session(token(1));
        assert_eq!(sessions.token_id(&session), Some(token(1)));
        let others = session.replace(&"0".repeat(31), &"1".repeat(31));
        assert_ne!(others, session);
        assert_eq!(sessions.token_id(&others), None);
        for at in 0..session.len() {
            let mut bad = session.clone().into_bytes();
            bad[at] = if bad[at] == b'0' { b'f' } else { b'0' };
            let bad = String::from_utf8(bad).expect("ASCII stays ASCII");
            assert_eq!(sessions.token_id(&bad), None, "{bad}");
        }
        for bad in ["", "_", &session[1..], &session[..session.len() - 1], &format!("{session}0")] {
            assert_eq!(sessions.token_id(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_session_outlives_a_restart_and_nobody_else_reads_the_key() {
        let dir = tempfile::tempdir().expect("there can be a temporary directory");
        let session = open(dir.path()).session(token(1));
        assert_eq!(open(dir.path()).token_id(&session), Some(token(1)));
        let mode = fs::metadata(dir.path().join(FILE)).expect("it is there").mode();
        assert_eq!(mode & 0o777, 0o600);
        let elsewhere = tempfile::tempdir().expect("there can be a temporary directory");
        assert_eq!(open(elsewhere.path()).token_id(&session), None);
    }

    #[test]
    fn a_key_that_is_damaged_or_known_to_others_is_made_anew() {
        let dir = tempfile::tempdir().expect("there can be a temporary directory");
        let file = dir.path().join(FILE);
        let damages: [fn(&Path); 4] = [
            |file| fs::write(file, []).expect("it is ours"),
            |file| fs::write(file, [0; KEY_BYTES - 1]).expect("it is ours"),
            |file| fs::write(file, [0; KEY_BYTES + 1]).expect("it is ours"),
            |file| {
                let mode = fs::Permissions::from_mode(0o640);
                fs::set_permissions(file, mode).expect("it is ours");
            },
        ];
        for damage in damages {
            let session = open(dir.path()).session(token(1));
            damage(&file);
            // Left by a start that was cut off.
            fs::write(dir.path().join(NEW_FILE), b"half").expect("the directory is ours");
            let again = open(dir.path());
            assert_eq!(again.token_id(&session), None);
            let session = again.session(token(1));
            assert_eq!(open(dir.path()).token_id(&session), Some(token(1)), "the new one is kept");
            assert!(!dir.path().join(NEW_FILE).exists());
        }
        fs::remove_file(&file).expect("it is there");
        fs::create_dir(&file).expect("the directory is ours");
        let error = FeedSessions::open(Some(dir.path())).err().expect("it can't be read");
        assert!(error.to_string().contains(FILE), "{error}");
    }
}
