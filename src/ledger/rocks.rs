//! The ledger on disk: RocksDB in `DIR/rocks`, the durable mark beside it.
//!
//! A record's key is its sequence, its value the 32 bytes of its hash and then its line of JSON.
//! One append is one write batch, synced, over all column families. Opening a ledger looks at it
//! without touching it, judges what it sees (`recovery`), and only then opens it for writing.
//!
//! Nothing else names RocksDB. Deliberately absent: comparators, merge operators and compaction
//! filters in Rust (a panic would cross into C++), and any retry of a failed write.

mod mark;
mod reader;
mod reads;
mod recovery;
mod sync_time;
mod wal;

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, RwLock};
use std::time::Duration;

use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamilyDescriptor, DB, DBCompressionType, DBRawIterator,
    DBRecoveryMode, ErrorKind, InfoLogger, LogLevel, Options, WriteBatch, WriteOptions, properties,
};

use self::mark::{Mark, MarkKeeper};
pub use self::reader::{Condition, RocksReader};
use self::reads::{Frozen, Reads};
use self::recovery::{Logs, Mode, Plan, Verdict};
use self::sync_time::SyncTime;
use super::{Append, Hash, Head, Ledger, LedgerError, Pair, Put, Stored, Table};
use crate::domain::id::Sequence;

const RECORDS: &str = "records";
const ROCKS_DIR: &str = "rocks";
const HASH_BYTES: usize = 32;

/// Of all tables together. With it goes the time that a start takes to read the log again.
const MEMTABLES_BYTES_MAX: usize = 32 << 20;
const MEMTABLE_BYTES_MAX: usize = 16 << 20;
const WAL_BYTES_MAX: u64 = 64 << 20;
const BLOCK_CACHE_BYTES: usize = 32 << 20;
/// RocksDB's own diary, which else grows without bound.
const INFO_LOG_BYTES_MAX: usize = 4 << 20;
const INFO_LOGS_MAX: usize = 4;
/// About one needless read of a block in a hundred.
const BLOOM_BITS_PER_KEY: f64 = 10.0;

/// No name has such bytes, and no number so many of them.
const AFTER_EVERY_KEY: [u8; 64] = [u8::MAX; 64];

/// How to open a ledger.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Opens a damaged ledger although synced records are lost, if it can be read up to this
    /// sequence at least.
    pub accept_loss_after: Option<Sequence>,
}

/// What opening a ledger took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Opened {
    /// The log ended in a write that a crash had cut off. It was dropped; nothing that was known
    /// to be synced is gone.
    pub dropped_tail: bool,
    /// Synced records are lost, as [`OpenOptions::accept_loss_after`] allowed.
    pub accepted_loss: bool,
}

/// A ledger on disk. Dropping it closes it, and moves the durable mark to its head.
pub struct RocksLedger {
    db: DB,
    head: RwLock<Head>,
    /// Whether an append has failed; held during an append, which keeps appends apart.
    is_stopped: Mutex<bool>,
    /// How long the last append wrote and synced the log, in nanoseconds.
    last_sync: AtomicU64,
    mark: MarkKeeper,
}

impl RocksLedger {
    /// Makes an empty ledger in `dir`, which must be empty, or missing, or be one whose making was
    /// cut off.
    ///
    /// # Errors
    /// [`LedgerError::NotEmpty`] if something is there, [`LedgerError::Failed`] if the directory
    /// can't be made or written.
    pub fn create(dir: &Path) -> Result<Self, LedgerError> {
        let failed = |error| LedgerError::Failed { what: format!("{}: {error}", dir.display()) };
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
        // The mark comes first: it holds the lock on the directory.
        let mark = match dir.read_dir().map_err(failed)?.next() {
            None => Mark::create(dir)?,
            Some(_) => half_made(dir)?,
        };
        let mut settings = settings(Mode::Absolute);
        settings.create_if_missing(true);
        settings.create_missing_column_families(true);
        settings.set_error_if_exists(true);
        let db = DB::open_cf_descriptors(&settings, dir.join(ROCKS_DIR), families())
            .map_err(|error| ledger_error(dir, &error))?;
        Self::new(db, mark)
    }

    /// Opens the ledger in `dir`. Never makes one.
    ///
    /// # Errors
    /// [`LedgerError::Missing`], [`LedgerError::InUse`], or [`LedgerError::Corrupt`] if synced
    /// records are lost, with what can be read and how to accept the loss. Nothing is changed
    /// then. [`LedgerError::Failed`] if the disk can't be read or written.
    pub fn open(dir: &Path, options: OpenOptions) -> Result<(Self, Opened), LedgerError> {
        let has_database = dir.join(ROCKS_DIR).join("CURRENT").exists();
        let (mark, synced) = Mark::open(dir, has_database, options.accept_loss_after.is_some())?;
        if !has_database {
            let what = format!("{} has no {ROCKS_DIR}/CURRENT", dir.display());
            return Err(LedgerError::Corrupt { what });
        }
        let plan = Plan { synced, accept_loss_after: options.accept_loss_after };
        let logs = Logs::survey(&dir.join(ROCKS_DIR))?;
        let verdict = recovery::judge(plan, &logs, |mode| look(dir, mode))?;
        let (mode, opened) = match verdict {
            Verdict::Whole => (Mode::Absolute, Opened::default()),
            Verdict::TornTail => {
                (Mode::PointInTime, Opened { dropped_tail: true, accepted_loss: false })
            }
            Verdict::LossAccepted => {
                (Mode::PointInTime, Opened { dropped_tail: false, accepted_loss: true })
            }
        };
        // Opening writes what the log held into synced table files, so the uncertain end of the
        // log is durable, by a sync of our own, before anything is acknowledged.
        let mut settings = settings(mode);
        // An older version wrote fewer tables.
        settings.create_missing_column_families(true);
        let db = DB::open_cf_descriptors(&settings, dir.join(ROCKS_DIR), families())
            .map_err(|error| ledger_error(dir, &error))?;
        Ok((Self::new(db, mark)?, opened))
    }

    fn new(db: DB, mut mark: Mark) -> Result<Self, LedgerError> {
        let head = Reads::of(&db).head()?;
        mark.write(head.sequence)?;
        let mark = MarkKeeper::start(mark)?;
        let (head, is_stopped) = (RwLock::new(head), Mutex::new(false));
        Ok(Self { db, head, is_stopped, last_sync: AtomicU64::new(0), mark })
    }

    fn write(&self, append: &Append) -> Result<(), LedgerError> {
        let mut batch = WriteBatch::default();
        let records = family(&self.db, RECORDS);
        for record in &append.records {
            let mut value = Vec::with_capacity(HASH_BYTES + record.bytes.len());
            value.extend_from_slice(&record.hash.0);
            value.extend_from_slice(&record.bytes);
            batch.put_cf(records, record.sequence.0.to_be_bytes(), value);
        }
        for put in &append.puts {
            batch.put_cf(family(&self.db, put.table.name()), &put.key, &put.value);
        }
        let mut options = WriteOptions::default();
        options.set_sync(true);
        options.disable_wal(false);
        let sync_time = SyncTime::begin();
        let written = self.db.write_opt(batch, &options);
        self.last_sync.store(sync_time.end(), Ordering::Relaxed);
        written.map_err(|error| storage_error(&error))?;
        // A flush or compaction that failed in the background is told nowhere else.
        let errors = self.db.property_int_value(properties::BACKGROUND_ERRORS);
        match errors.map_err(|error| storage_error(&error))? {
            Some(0) => Ok(()),
            count => {
                let what = format!("RocksDB reports background errors: {count:?}");
                Err(LedgerError::Failed { what })
            }
        }
    }
}

impl RocksLedger {
    /// Empties every table that is worked out from the records, and writes `put` in the same step.
    ///
    /// # Errors
    /// [`LedgerError`]: then nothing is emptied, or all is.
    pub fn clear_tables(&self, put: &Put) -> Result<(), LedgerError> {
        let mut batch = WriteBatch::default();
        for table in Table::ALL {
            batch.delete_range_cf(family(&self.db, table.name()), &[][..], &AFTER_EVERY_KEY[..]);
        }
        batch.put_cf(family(&self.db, put.table.name()), &put.key, &put.value);
        let mut options = WriteOptions::default();
        options.set_sync(true);
        self.db.write_opt(batch, &options).map_err(|error| storage_error(&error))
    }
}

impl Ledger for RocksLedger {
    fn head(&self) -> Head {
        *self.head.read().expect("the head is only copied under its lock")
    }

    fn append(&self, append: &Append) -> Result<(), LedgerError> {
        let mut is_stopped = self.is_stopped.lock().expect("the writer doesn't break its rules");
        if *is_stopped {
            return Err(LedgerError::Stopped);
        }
        let head = append.head_after(self.head())?;
        let written = self.write(append).and_then(|()| self.mark.move_to(head.sequence));
        if written.is_err() {
            *is_stopped = true;
            return written;
        }
        *self.head.write().expect("the head is only copied under its lock") = head;
        Ok(())
    }

    fn last_sync(&self) -> Option<Duration> {
        Some(Duration::from_nanos(self.last_sync.load(Ordering::Relaxed)))
    }

    fn records_within(
        &self,
        after: Sequence,
        most: usize,
        bytes: usize,
    ) -> Result<Vec<Stored>, LedgerError> {
        Reads::of(&self.db).records(after, (most, bytes))
    }

    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, LedgerError> {
        Reads::of(&self.db).get(table, key)
    }

    fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        after: &[u8],
        most: usize,
    ) -> Result<Vec<Pair>, LedgerError> {
        Reads::of(&self.db).range(table.name(), prefix, after, (most, usize::MAX))
    }

    fn frozen(&self) -> Result<Box<dyn Ledger + '_>, LedgerError> {
        Ok(Box::new(Frozen::new(&self.db)?))
    }
}

/// Takes over a directory whose making was cut off before anything could be written: it has a mark
/// of nothing, and the beginning of a database without a log. Of any other nothing is changed.
fn half_made(dir: &Path) -> Result<Mark, LedgerError> {
    let failed = |error| LedgerError::Failed { what: format!("{}: {error}", dir.display()) };
    let not_empty = || LedgerError::NotEmpty { path: dir.to_owned() };
    let rocks = dir.join(ROCKS_DIR);
    let is_kept =
        |name: &str| name == "CURRENT" || name.ends_with(".log") || name.ends_with(".sst");
    let has = |dir: &Path, wanted: &dyn Fn(&str) -> bool| -> std::io::Result<bool> {
        for entry in dir.read_dir()? {
            if entry?.file_name().to_str().is_none_or(wanted) {
                return Ok(true);
            }
        }
        Ok(false)
    };
    let has_rocks = rocks.exists();
    if has(dir, &|name| name != mark::FILE_NAME && name != ROCKS_DIR).map_err(failed)?
        || has_rocks && has(&rocks, &is_kept).map_err(failed)?
    {
        return Err(not_empty());
    }
    let (mark, synced) = Mark::open(dir, false, true).map_err(|error| match error {
        LedgerError::Missing { .. } => not_empty(),
        error => error,
    })?;
    if synced.is_some_and(|synced| synced > Sequence::ZERO) {
        return Err(not_empty());
    }
    if has_rocks {
        std::fs::remove_dir_all(&rocks).map_err(failed)?;
    }
    Ok(mark)
}

/// The head of a database, read without changing anything in it.
fn look(dir: &Path, mode: Mode) -> Result<Head, LedgerError> {
    Reads::of(&open_to_read(dir, mode)?).head()
}

/// Opens a database without changing anything in it.
fn open_to_read(dir: &Path, mode: Mode) -> Result<DB, LedgerError> {
    let mut settings = settings(mode);
    // Without a logger of ours RocksDB would write its own log into the directory.
    settings.set_info_logger(InfoLogger::new_callback_logger(LogLevel::Fatal, |_, _| {}));
    let path = dir.join(ROCKS_DIR);
    let failed = |error| ledger_error(dir, &error);
    let known = DB::list_cf(&settings, &path).map_err(failed)?;
    let mut families = families();
    families.retain(|family| known.iter().any(|name| name == family.name()));
    DB::open_cf_descriptors_read_only(&settings, path, families, false).map_err(failed)
}

fn last_record_of(mut iterator: DBRawIterator<'_>) -> Result<Head, LedgerError> {
    iterator.seek_to_last();
    let last = iterator.item().map(|(key, value)| stored(key, value));
    iterator.status().map_err(|error| storage_error(&error))?;
    Ok(last.transpose()?.map_or(Head::default(), |record| record.head()))
}

fn stored(key: &[u8], value: &[u8]) -> Result<Stored, LedgerError> {
    let sequence = key.try_into().map(|key| Sequence(u64::from_be_bytes(key)));
    match (sequence, value.split_first_chunk::<HASH_BYTES>()) {
        (Ok(sequence), Some((hash, bytes))) => {
            Ok(Stored { sequence, hash: Hash(*hash), bytes: bytes.into() })
        }
        (_, _) => {
            let what = format!("the key {key:?} has no record of {} bytes", value.len());
            Err(LedgerError::Corrupt { what })
        }
    }
}

fn family<'a>(db: &'a DB, name: &str) -> &'a rocksdb::ColumnFamily {
    db.cf_handle(name).expect("every family is opened with the database")
}

fn settings(mode: Mode) -> Options {
    let mut options = Options::default();
    options.set_wal_recovery_mode(match mode {
        Mode::Absolute => DBRecoveryMode::AbsoluteConsistency,
        Mode::PointInTime => DBRecoveryMode::PointInTime,
    });
    // Finds a log file that is missing between two others, which recovery would pass over.
    options.set_track_and_verify_wals_in_manifest(true);
    options.set_paranoid_checks(true);
    // What follows is RocksDB's default, said because each other value can lose synced data.
    options.set_manual_wal_flush(false);
    options.set_recycle_log_file_num(0);
    options.set_enable_pipelined_write(false);
    options.set_unordered_write(false);
    options.set_allow_mmap_writes(false);
    options.set_db_write_buffer_size(MEMTABLES_BYTES_MAX);
    options.set_max_total_wal_size(WAL_BYTES_MAX);
    options.set_max_log_file_size(INFO_LOG_BYTES_MAX);
    options.set_keep_log_file_num(INFO_LOGS_MAX);
    options
}

fn families() -> Vec<ColumnFamilyDescriptor> {
    let cache = Cache::new_lru_cache(BLOCK_CACHE_BYTES);
    let descriptor = |name, has_bloom| {
        let mut blocks = BlockBasedOptions::default();
        blocks.set_block_cache(&cache);
        blocks.set_cache_index_and_filter_blocks(true);
        if has_bloom {
            blocks.set_bloom_filter(BLOOM_BITS_PER_KEY, false);
        }
        let mut options = Options::default();
        options.set_block_based_table_factory(&blocks);
        options.set_write_buffer_size(MEMTABLE_BYTES_MAX);
        options.set_compression_type(DBCompressionType::Lz4);
        ColumnFamilyDescriptor::new(name, options)
    };
    let mut families = vec![descriptor(RECORDS, false)];
    families.extend(Table::ALL.into_iter().map(|table| match table {
        // Asked mostly for what isn't there: each new request UUID, and tickets still alive.
        Table::Tickets | Table::Requests => descriptor(table.name(), true),
        Table::History | Table::Threads | Table::ThreadEvents | Table::Replies | Table::Meta => {
            descriptor(table.name(), false)
        }
    }));
    families
}

/// An error of opening the database in `dir`.
fn ledger_error(dir: &Path, error: &rocksdb::Error) -> LedgerError {
    let message = error.as_ref();
    if message.starts_with("IO error") && message.contains("LOCK: ") {
        return LedgerError::InUse { path: PathBuf::from(dir) };
    }
    if message.contains("No such file or directory") {
        return LedgerError::Corrupt { what: format!("a file is missing: {message}") };
    }
    storage_error(error)
}

fn storage_error(error: &rocksdb::Error) -> LedgerError {
    let what = error.as_ref().to_owned();
    match error.kind() {
        ErrorKind::Corruption => LedgerError::Corrupt { what },
        _ => LedgerError::Failed { what },
    }
}

#[cfg(test)]
mod tests;
