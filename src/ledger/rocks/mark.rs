//! The durable mark: the last sequence that is known to be synced, in a small file of its own.
//!
//! It lets a start tell a torn write, which was never acknowledged, from the loss of synced
//! records. It may lag behind the ledger (then a loss within the lag goes unnoticed), but is
//! never ahead of it. It is written at most every 100 ms and when the ledger is closed.
//!
//! Two slots are written in turn, in different blocks of the disk, each with a checksum. A write
//! that is cut off spoils one slot, and the other still has the mark before it. Two bad slots or
//! a missing file are damage: the ledger is refused unless a loss is accepted.
//! The file also carries the lock that keeps a second process out.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::super::LedgerError;
use crate::domain::id::Sequence;

pub(super) const FILE_NAME: &str = "durable-mark";
const MAGIC: [u8; 8] = *b"pearing1";
/// Magic, turn, sequence, checksum.
const SLOT_BYTES: usize = 32;
/// One block of any disk in use, so that no torn block can hold both slots.
const SLOT_DISTANCE: u64 = 4096;
const INTERVAL: Duration = Duration::from_millis(100);

/// The mark's file, locked.
#[derive(Debug)]
pub(super) struct Mark {
    file: File,
    /// Counts the writes; the slot with the higher turn is the newer one, and an accepted loss
    /// moves the sequence back.
    turn: u64,
}

impl Mark {
    /// Makes the mark of an empty ledger.
    pub(super) fn create(dir: &Path) -> Result<Self, LedgerError> {
        let path = dir.join(FILE_NAME);
        let file = open_options().create_new(true).open(&path).map_err(|e| failed(&path, &e))?;
        let mut mark = Self::locked(file, dir)?;
        mark.write(Sequence::ZERO)?;
        mark.write(Sequence::ZERO)?;
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(|e| failed(dir, &e))?;
        Ok(mark)
    }

    /// Opens the mark. It comes without a sequence only if it is unreadable and
    /// `is_loss_accepted`; the next write makes it whole again.
    pub(super) fn open(
        dir: &Path,
        has_database: bool,
        is_loss_accepted: bool,
    ) -> Result<(Self, Option<Sequence>), LedgerError> {
        let path = dir.join(FILE_NAME);
        let opened = open_options().create(has_database && is_loss_accepted).open(&path);
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed(&path, &error));
            }
            Err(_) if has_database => return Err(unreadable(&path)),
            Err(_) => return Err(LedgerError::Missing { path: dir.to_owned() }),
        };
        let mut mark = Self::locked(file, dir)?;
        match mark.newest().map_err(|e| failed(&path, &e))? {
            Some((turn, sequence)) => {
                mark.turn = turn;
                Ok((mark, Some(sequence)))
            }
            None if is_loss_accepted => Ok((mark, None)),
            None => Err(unreadable(&path)),
        }
    }

    /// Opens the mark to read it, and keeps writers out, though not other readers. It comes
    /// without a sequence if it is unreadable.
    pub(super) fn open_to_read(
        dir: &Path,
        has_database: bool,
    ) -> Result<(Self, Option<Sequence>), LedgerError> {
        let path = dir.join(FILE_NAME);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed(&path, &error));
            }
            Err(_) if has_database => return Err(unreadable(&path)),
            Err(_) => return Err(LedgerError::Missing { path: dir.to_owned() }),
        };
        let locked = file.try_lock_shared();
        let mark = Self::if_locked(locked, file, dir)?;
        let newest = mark.newest().map_err(|e| failed(&path, &e))?;
        Ok((mark, newest.map(|(_, sequence)| sequence)))
    }

    fn locked(file: File, dir: &Path) -> Result<Self, LedgerError> {
        let locked = file.try_lock();
        Self::if_locked(locked, file, dir)
    }

    fn if_locked(
        locked: Result<(), TryLockError>,
        file: File,
        dir: &Path,
    ) -> Result<Self, LedgerError> {
        match locked {
            Ok(()) => Ok(Self { file, turn: 0 }),
            Err(TryLockError::WouldBlock) => Err(LedgerError::InUse { path: dir.to_owned() }),
            Err(TryLockError::Error(error)) => Err(failed(dir, &error)),
        }
    }

    /// Says durably that all records up to `sequence` are synced.
    pub(super) fn write(&mut self, sequence: Sequence) -> Result<(), LedgerError> {
        let turn = self.turn + 1;
        let bytes = encode(turn, sequence);
        let written = self.file.write_all_at(&bytes, turn % 2 * SLOT_DISTANCE);
        let synced = written.and_then(|()| self.file.sync_data());
        synced.map_err(|e| failed(Path::new(FILE_NAME), &e))?;
        self.turn = turn;
        Ok(())
    }

    /// The newer slot; `None` if neither holds a mark.
    fn newest(&self) -> io::Result<Option<(u64, Sequence)>> {
        Ok(self.read(0)?.max(self.read(1)?))
    }

    /// Reads a slot; `None` if it holds no mark.
    fn read(&self, slot: u64) -> io::Result<Option<(u64, Sequence)>> {
        let mut bytes = [0; SLOT_BYTES];
        match self.file.read_exact_at(&mut bytes, slot * SLOT_DISTANCE) {
            Ok(()) => Ok(decode(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Mark {
    /// Lets go of the lock by name: a process that is just being started by another thread still
    /// has the file open, and would keep the lock for a moment longer.
    fn drop(&mut self) {
        // Closing the file lets go of it as well.
        let _ = self.file.unlock();
    }
}

fn open_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}

fn encode(turn: u64, sequence: Sequence) -> [u8; SLOT_BYTES] {
    let mut bytes = [0; SLOT_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..16].copy_from_slice(&turn.to_be_bytes());
    bytes[16..24].copy_from_slice(&sequence.0.to_be_bytes());
    let checksum = Sha256::digest(&bytes[..24]);
    bytes[24..].copy_from_slice(&checksum[..8]);
    bytes
}

fn decode(bytes: &[u8; SLOT_BYTES]) -> Option<(u64, Sequence)> {
    let number = |at: usize| bytes[at..].first_chunk().map(|b| u64::from_be_bytes(*b));
    let (turn, sequence) = (number(8)?, Sequence(number(16)?));
    (encode(turn, sequence) == *bytes).then_some((turn, sequence))
}

fn failed(path: &Path, error: &io::Error) -> LedgerError {
    LedgerError::Failed { what: format!("{}: {error}", path.display()) }
}

fn unreadable(path: &Path) -> LedgerError {
    let what = format!(
        "{} is missing or unreadable, so it is unknown which records were synced; \
         --accept-loss-after SEQUENCE opens the ledger if it can be read that far",
        path.display()
    );
    LedgerError::Corrupt { what }
}

/// Moves the mark behind the writer's back, so that no append waits for it.
#[derive(Debug)]
pub(super) struct MarkKeeper {
    wish: Arc<Wish>,
    thread: Option<JoinHandle<()>>,
}

/// What the keeper's thread is to do.
#[derive(Debug, Default)]
struct Wish {
    state: Mutex<WishState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct WishState {
    sequence: Option<Sequence>,
    is_closing: bool,
    failure: Option<LedgerError>,
}

impl MarkKeeper {
    /// Starts to keep a mark.
    pub(super) fn start(mark: Mark) -> Result<Self, LedgerError> {
        let wish = Arc::new(Wish::default());
        let thread = std::thread::Builder::new().name(FILE_NAME.to_owned()).spawn({
            let wish = Arc::clone(&wish);
            move || wish.keep(mark)
        });
        let thread = thread.map_err(|error| failed(Path::new(FILE_NAME), &error))?;
        Ok(Self { wish, thread: Some(thread) })
    }

    /// Has the mark moved to `sequence` soon.
    ///
    /// # Errors
    /// If an earlier move failed: the disk is not to be trusted with more.
    pub(super) fn move_to(&self, sequence: Sequence) -> Result<(), LedgerError> {
        let mut state = self.wish.lock();
        if let Some(failure) = &state.failure {
            return Err(failure.clone());
        }
        state.sequence = Some(sequence);
        self.wish.changed.notify_one();
        Ok(())
    }

    /// Makes the next move fail.
    #[cfg(test)]
    pub(super) fn fail(&self, what: &str) {
        self.wish.lock().failure = Some(LedgerError::Failed { what: what.to_owned() });
    }
}

impl Drop for MarkKeeper {
    /// Writes the last mark and lets go of the lock.
    fn drop(&mut self) {
        self.wish.lock().is_closing = true;
        self.wish.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // It can only fail by a bug of its own. The mark then lags behind, which is safe.
            let _ = thread.join();
        }
    }
}

impl Wish {
    fn lock(&self) -> MutexGuard<'_, WishState> {
        self.state.lock().expect("nothing under this lock can fail")
    }

    /// The keeper's thread: writes the newest wish, then rests, until it is closed.
    fn keep(&self, mut mark: Mark) {
        let rules = "nothing under this lock can fail";
        let mut state = self.lock();
        loop {
            let is_idle = |s: &mut WishState| s.sequence.is_none() && !s.is_closing;
            state = self.changed.wait_while(state, is_idle).expect(rules);
            let Some(sequence) = state.sequence.take() else { return };
            drop(state);
            let written = mark.write(sequence);
            state = self.lock();
            if let Err(failure) = written {
                state.failure = Some(failure);
                return;
            }
            let is_open = |s: &mut WishState| !s.is_closing;
            (state, _) = self.changed.wait_timeout_while(state, INTERVAL, is_open).expect(rules);
        }
    }
}

#[cfg(test)]
#[path = "mark_tests.rs"]
mod tests;
