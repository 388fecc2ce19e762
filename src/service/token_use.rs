//! When each token was last used, to the hour.
//!
//! It tells an administrator which tokens nobody needs any more, and nothing rests on it. So it is
//! kept beside the ledger and not in it: an event for each request would cost more than most
//! requests, and no replay needs it. It is saved now and then, without a sync. What a crash loses,
//! or a file that can't be read, only makes a token look unused until it is used again.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

use crate::domain::id::TokenId;
use crate::domain::time::Time;

/// The file in the data directory: a line for each token, `TOKEN_ID TIME`.
const FILE: &str = "token-use";
/// Where the file is written, before it takes the place of the one before.
const NEW_FILE: &str = "token-use.new";

const HOUR_MILLIS: i64 = 3_600_000;

/// When each token was last used.
pub(super) struct TokenUse {
    /// In whole hours since 1970.
    hours: RwLock<HashMap<TokenId, i64>>,
    /// Whether the file is behind.
    has_changed: AtomicBool,
    /// The data directory, held while the file is written. None for a ledger that is on no disk.
    data: Mutex<Option<PathBuf>>,
}

impl TokenUse {
    /// What was saved in the data directory, as far as it can be read.
    pub(super) fn open(data: Option<PathBuf>) -> Self {
        let saved = data.as_ref().and_then(|data| fs::read(data.join(FILE)).ok());
        let saved = String::from_utf8_lossy(saved.as_deref().unwrap_or_default()).into_owned();
        Self {
            hours: RwLock::new(saved.lines().filter_map(read_line).collect()),
            has_changed: AtomicBool::new(false),
            data: Mutex::new(data),
        }
    }

    /// Notes that a token is used. Changes nothing for the rest of the hour.
    pub(super) fn note(&self, token_id: TokenId, now: Time) {
        let hour = hour_of(now);
        if self.hour(token_id) < Some(hour) {
            self.hours.write().unwrap_or_else(PoisonError::into_inner).insert(token_id, hour);
            self.has_changed.store(true, Ordering::Release);
        }
    }

    /// The beginning of the hour in which a token was last used, if that is known.
    pub(super) fn last(&self, token_id: TokenId) -> Option<Time> {
        self.hour(token_id).map(time_of)
    }

    fn hour(&self, token_id: TokenId) -> Option<i64> {
        self.hours.read().unwrap_or_else(PoisonError::into_inner).get(&token_id).copied()
    }

    /// Writes the file, if it is behind.
    pub(super) fn save(&self) -> io::Result<()> {
        let data = self.data.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(data) = &*data else { return Ok(()) };
        // Before the hours are read: what is noted meanwhile is written now or the next time.
        if !self.has_changed.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let new = data.join(NEW_FILE);
        let write = || {
            let mut options = OpenOptions::new();
            let mut file =
                options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
            file.write_all(self.lines().as_bytes())?;
            fs::rename(&new, data.join(FILE))
        };
        write().inspect_err(|_| self.has_changed.store(true, Ordering::Release))
    }

    fn lines(&self) -> String {
        // Copied, so that nobody who brings a token waits for its writing down.
        let hours = self.hours.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut lines = String::new();
        for (token_id, hour) in hours {
            let _ = writeln!(lines, "{token_id} {}", time_of(hour));
        }
        lines
    }
}

fn hour_of(time: Time) -> i64 {
    time.as_millis().div_euclid(HOUR_MILLIS)
}

fn time_of(hour: i64) -> Time {
    Time::from_millis(hour * HOUR_MILLIS)
}

fn read_line(line: &str) -> Option<(TokenId, i64)> {
    let (token_id, time) = line.split_once(' ')?;
    Some((token_id.parse().ok()?, hour_of(time.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Time {
        text.parse().expect("a time")
    }

    fn token(n: u128) -> TokenId {
        TokenId(uuid::Uuid::from_u128(n))
    }

    #[test]
    fn a_use_is_known_to_the_hour_and_never_goes_back() {
        let uses = TokenUse::open(None);
        assert_eq!(uses.last(token(1)), None);
        for (now, last) in [
            ("2026-01-31T12:34:56.789Z", "2026-01-31T12:00:00.000Z"),
            ("2026-01-31T12:59:59.999Z", "2026-01-31T12:00:00.000Z"),
            ("2026-01-31T13:00:00.000Z", "2026-01-31T13:00:00.000Z"),
            ("2026-01-31T12:34:56.789Z", "2026-01-31T13:00:00.000Z"),
        ] {
            uses.note(token(1), time(now));
            assert_eq!(uses.last(token(1)), Some(time(last)), "{now}");
        }
        assert_eq!(uses.last(token(2)), None);
        uses.save().expect("there is nowhere to save it");
    }

    #[test]
    fn it_is_saved_when_it_has_changed_and_read_again() {
        let dir = tempfile::tempdir().expect("there can be a temporary directory");
        let open = || TokenUse::open(Some(dir.path().to_owned()));
        let uses = open();
        uses.save().expect("it can be written");
        assert!(!dir.path().join(FILE).exists(), "there is nothing to save");
        let noon = time("2026-01-31T12:00:00.000Z");
        uses.note(token(1), noon);
        uses.note(token(2), noon.plus_seconds(7200));
        uses.save().expect("it can be written");
        let names: Vec<_> = fs::read_dir(dir.path())
            .expect("a directory")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        assert_eq!(names, [FILE], "nothing else is left");
        let again = open();
        assert_eq!(again.last(token(1)), Some(noon));
        assert_eq!(again.last(token(2)), Some(noon.plus_seconds(7200)));
        fs::remove_file(dir.path().join(FILE)).expect("it is there");
        uses.note(token(1), noon.plus_seconds(3599));
        uses.save().expect("it can be written");
        assert!(!dir.path().join(FILE).exists(), "the same hour changes nothing");
    }

    #[test]
    fn what_could_not_be_saved_is_saved_the_next_time() {
        let dir = tempfile::tempdir().expect("there can be a temporary directory");
        let data = dir.path().join("data");
        let uses = TokenUse::open(Some(data.clone()));
        uses.note(token(1), time("2026-01-31T12:00:00.000Z"));
        uses.save().expect_err("the directory is missing");
        fs::create_dir(&data).expect("the parent is there");
        uses.save().expect("now it isn't");
        assert!(data.join(FILE).exists());
    }

    #[test]
    fn a_damaged_file_only_forgets() {
        let dir = tempfile::tempdir().expect("there can be a temporary directory");
        let kept = format!("{} 2026-01-31T12:00:00.000Z\n", token(1));
        let lines = ["\n", "x\n", "\u{0}\n", " \n", "x 2026-01-31T12:00:00.000Z\n"].concat();
        let half = format!("{} 2026-01-31T1", token(2));
        let bytes = [lines.as_bytes(), b"\xff\xfe\n", kept.as_bytes(), half.as_bytes()].concat();
        fs::write(dir.path().join(FILE), bytes).expect("the directory is ours");
        let uses = TokenUse::open(Some(dir.path().to_owned()));
        assert_eq!(uses.last(token(1)), Some(time("2026-01-31T12:00:00.000Z")));
        assert_eq!(uses.last(token(2)), None);
    }
}
