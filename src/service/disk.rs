//! Keeps a reserve of free disk space, so that holders can go on when the disk fills up.
//!
//! Below the reserve new work is refused before it is decided. Heartbeats, releases and timers
//! need little, and make room for themselves from the reserve. Once there is space again, new
//! work is taken again: nothing needs a restart.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use crate::clock;

/// How old an answer may be. At full speed the ledger grows by some 20 MB in this time, which is
/// far less than the reserve.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Watches the free space of the data directory.
pub(super) struct Disk {
    path: Option<PathBuf>,
    reserve_bytes: u64,
    looked: Mutex<Option<(Instant, bool)>>,
}

impl Disk {
    /// Watches the file system of `path`; `None` for a ledger that is on no disk.
    pub(super) fn new(path: Option<PathBuf>, reserve_bytes: u64) -> Self {
        Self { path, reserve_bytes, looked: Mutex::new(None) }
    }

    /// Whether less than the reserve is free.
    pub(super) fn is_nearly_full(&self) -> bool {
        let Some(path) = &self.path else { return false };
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, answer)) = *looked
            && clock::elapsed(at) < LOOK_EVERY
        {
            return answer;
        }
        // Where the free space can't be read, a write will tell.
        let answer = rustix::fs::statvfs(path)
            .is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < self.reserve_bytes);
        *looked = Some((clock::monotonic(), answer));
        answer
    }
}
