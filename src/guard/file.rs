//! Keeps the newest fence tokens in a file: for a service whose state outlives its process, but
//! lies in no database.
//!
//! A line for each lock, `FENCE LOCK`. A claim replaces the whole file, which is synced before the
//! claim is answered; so after a crash there is the old file or the new one. One process at a time
//! has it. Deliberately absent: an end to old lines. A lock's newest fence token is for good.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rustix::fs::{FlockOperation, flock};

use super::lock_text;
use super::store::{FenceStore, StoreError};
use crate::domain::id::{FenceToken, Sequence};
use crate::domain::scope::LockKey;

/// The file, and what is in it.
#[derive(Debug)]
struct Kept {
    path: PathBuf,
    /// By the lock as text. Only what is synced.
    newest: BTreeMap<String, FenceToken>,
    /// Whether a replacement failed, so that what a crash would leave isn't known any more.
    is_broken: bool,
    /// Keeps other processes out while it is open.
    _lock: File,
}

/// Keeps the newest fence tokens in a file.
#[derive(Debug, Clone)]
pub struct FileStore(Arc<Mutex<Kept>>);

impl FileStore {
    /// Opens a file, which is made if it isn't there, or waits for nobody: another process that
    /// has it open is an error. Beside it lies a file `.lock`, and for moments one `.new`.
    ///
    /// # Errors
    /// It can't be read or locked, or isn't such a file.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        let mut options = OpenOptions::new();
        let lock = options.write(true).create(true).truncate(false).open(beside(&path, ".lock"))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            other => other?,
        };
        let newest = text.lines().map(line).collect::<Option<_>>();
        let newest = newest.ok_or_else(|| io::Error::other("it is no file of fence tokens"))?;
        Ok(Self(Arc::new(Mutex::new(Kept { path, newest, is_broken: false, _lock: lock }))))
    }
}

impl FenceStore for FileStore {
    async fn raise(&self, lock: &LockKey, fence: FenceToken) -> Result<FenceToken, StoreError> {
        let (kept, lock) = (Arc::clone(&self.0), lock_text(lock));
        let raised = tokio::task::spawn_blocking(move || {
            let mut kept = kept.lock().map_err(|_| io::Error::other("a claim panicked"))?;
            kept.raise(lock, fence)
        });
        Ok(raised.await.map_err(io::Error::other)??)
    }
}

impl Kept {
    fn raise(&mut self, lock: String, fence: FenceToken) -> io::Result<FenceToken> {
        if self.is_broken {
            return Err(io::Error::other("an earlier claim could not be written"));
        }
        if let Some(newest) = self.newest.get(&lock).filter(|newest| **newest >= fence) {
            return Ok(*newest);
        }
        self.newest.insert(lock, fence);
        self.is_broken = true;
        self.replace()?;
        self.is_broken = false;
        Ok(fence)
    }

    fn replace(&self) -> io::Result<()> {
        let new = beside(&self.path, ".new");
        let mut file = File::create(&new)?;
        for (lock, fence) in &self.newest {
            writeln!(file, "{fence} {lock}")?;
        }
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }
}

fn line(line: &str) -> Option<(String, FenceToken)> {
    let (fence, lock) = line.split_once(' ')?;
    Some((lock.to_owned(), FenceToken(Sequence(fence.parse().ok()?))))
}

fn beside(path: &Path, more: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(more);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(name: &str) -> LockKey {
        LockKey {
            scope: "users/ana".parse().expect("a scope"),
            lock_name: name.parse().expect("a name"),
        }
    }

    async fn raise(store: &FileStore, name: &str, fence: u64) -> u64 {
        let newest = store.raise(&lock(name), FenceToken(Sequence(fence))).await;
        newest.expect("it can be kept").0.0
    }

    #[tokio::test]
    async fn what_was_claimed_outlives_the_process_and_only_rises() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("fences");
        let store = FileStore::open(&path).expect("it can be made");
        assert_eq!(raise(&store, "a", 7).await, 7);
        assert_eq!(raise(&store, "a", 5).await, 7);
        assert_eq!(raise(&store, "b", 6).await, 6);
        assert!(FileStore::open(&path).is_err(), "one at a time has it");
        drop(store);
        let store = FileStore::open(&path).expect("nobody has it");
        assert_eq!(raise(&store, "a", 6).await, 7);
        assert_eq!(raise(&store, "a", 8).await, 8);
        let text = fs::read_to_string(&path).expect("a file");
        assert_eq!(text, "8 users/ana/locks/a\n6 users/ana/locks/b\n");
    }

    #[tokio::test]
    async fn a_claim_that_cannot_be_written_is_refused_and_so_is_what_comes_after_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = FileStore::open(folder.path().join("fences")).expect("it can be made");
        fs::create_dir(folder.path().join("fences.new")).expect("a folder in the way");
        for _ in 0..2 {
            let refused = store.raise(&lock("a"), FenceToken(Sequence(1))).await;
            assert!(refused.is_err());
            let _ = fs::remove_dir(folder.path().join("fences.new"));
        }
        fs::write(folder.path().join("other"), "text\n").expect("a file");
        assert!(FileStore::open(folder.path().join("other")).is_err());
    }
}
