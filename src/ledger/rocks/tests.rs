//! The ledger on disk keeps the trait's promises, and finds every damage that can be planted.
//!
//! A crash is a copy of the directory of a ledger that is still open: all that was synced is in
//! it, and nothing that closing would add.

use std::fs;

use super::super::samples::append_to;
use super::super::{Put, link};
use super::*;

fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory").map(|e| e.expect("an entry")) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a copy");
        }
    }
}

/// A crashed ledger.
struct Crashed {
    base: tempfile::TempDir,
    copies: std::cell::Cell<u32>,
}

impl Crashed {
    /// Crashes after `count` appends of one short record each; `between` runs before each.
    fn after(count: u64, between: impl Fn(&RocksLedger, u64)) -> Self {
        let base = temporary();
        let ledger = RocksLedger::create(&base.path().join("live")).expect("a new ledger");
        for n in 1..=count {
            between(&ledger, n);
            ledger.append(&short_append(&ledger)).expect("an append");
        }
        copy(&base.path().join("live"), &base.path().join("0"));
        Self { base, copies: 0.into() }
    }

    /// Another copy, whose durable mark says `synced`.
    fn copy(&self, synced: u64) -> PathBuf {
        self.copies.set(self.copies.get() + 1);
        let dir = self.base.path().join(self.copies.get().to_string());
        copy(&self.base.path().join("0"), &dir);
        set_mark(&dir, synced);
        dir
    }
}

/// One record of few bytes, so that a test can visit each byte of it.
fn short_append(ledger: &RocksLedger) -> Append {
    let head = ledger.head();
    let sequence = head.sequence.next();
    let bytes: Box<[u8]> = sequence.to_string().into_bytes().into();
    let record = Stored { sequence, hash: link(&head.hash, &bytes), bytes };
    Append { expected_head: head.sequence, records: vec![record], puts: vec![] }
}

fn set_mark(dir: &Path, synced: u64) {
    let (mut mark, _) = Mark::open(dir, true, true).expect("a mark");
    mark.write(Sequence(synced)).expect("a mark can be written");
}

/// The log files of a database, in order.
fn logs(dir: &Path) -> Vec<PathBuf> {
    files(dir, |name| name.ends_with(".log"))
}

fn files(dir: &Path, is_wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir.join(ROCKS_DIR)).expect("a database");
    let paths = entries.map(|e| e.expect("an entry").path());
    let name = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let mut found: Vec<_> = paths.filter(|p| name(p).is_some_and(|n| is_wanted(&n))).collect();
    found.sort();
    found
}

/// Where each record of a log of short records begins, and where the last one ends.
fn bounds(log: &[u8]) -> Vec<usize> {
    let mut bounds = vec![0];
    let mut at = 0;
    while at < log.len() {
        at += 7 + usize::from(u16::from_le_bytes([log[at + 4], log[at + 5]]));
        bounds.push(at);
    }
    bounds
}

/// What opening would do, found out without changing anything.
fn judged(dir: &Path, synced: u64) -> Result<(Verdict, u64), LedgerError> {
    let plan = Plan { synced: Some(Sequence(synced)), accept_loss_after: None };
    let logs = Logs::survey(&dir.join(ROCKS_DIR))?;
    let verdict = recovery::judge(plan, &logs, |mode| look(dir, mode))?;
    Ok((verdict, look(dir, Mode::PointInTime)?.sequence.0))
}

fn open(dir: &Path) -> Result<(RocksLedger, Opened), LedgerError> {
    RocksLedger::open(dir, OpenOptions::default())
}

/// Why opening is refused.
fn refusal(dir: &Path) -> LedgerError {
    match open(dir) {
        Ok((ledger, opened)) => panic!("opened up to {:?}: {opened:?}", ledger.head()),
        Err(error) => error,
    }
}

fn assert_corrupt(dir: &Path, fact: &str) {
    let before = contents(dir);
    match refusal(dir) {
        LedgerError::Corrupt { what } => assert!(what.contains(fact), "{what} should say {fact}"),
        error => panic!("{error}"),
    }
    assert!(contents(dir) == before, "a refusal changes nothing");
}

fn contents(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let all = files(dir, |name| name != "LOCK");
    all.into_iter().map(|path| (path.clone(), fs::read(path).expect("a file"))).collect()
}

fn chain_of(ledger: &RocksLedger) -> Vec<u64> {
    let records = ledger.records(Sequence::ZERO, usize::MAX).expect("a readable ledger");
    let mut hash = Hash::ZERO;
    for record in &records {
        hash = link(&hash, &record.bytes);
        assert_eq!(record.hash, hash, "record {} continues the chain", record.sequence);
    }
    records.iter().map(|r| r.sequence.0).collect()
}

#[test]
fn what_was_appended_is_read_back_also_after_a_restart() {
    let base = temporary();
    let dir = base.path().join("data");
    let ledger = RocksLedger::create(&dir).expect("a new ledger");
    assert_eq!(ledger.head(), Head::default());
    let keys: [&[u8]; 4] = [b"a", b"b1", b"b2", b"c"];
    let put = |key: &&[u8]| Put { table: Table::History, key: key.to_vec(), value: b"v".to_vec() };
    let append = append_to(&ledger, 5, keys.iter().map(put).collect());
    ledger.append(&append).expect("the head is right");

    let check = |ledger: &RocksLedger| {
        assert_eq!(ledger.head(), append.records[4].head());
        assert_eq!(ledger.records(Sequence::ZERO, 9).as_ref(), Ok(&append.records));
        assert_eq!(ledger.records(Sequence(2), 2).as_deref(), Ok(&append.records[2..4]));
        // No more once they are large enough together, but always one.
        for (bytes, len) in [(1, 1), (append.records[0].bytes.len() + 64, 2), (usize::MAX, 9)] {
            let found = ledger.records_within(Sequence::ZERO, 9, bytes);
            assert_eq!(found.as_deref(), Ok(&append.records[..len.min(append.records.len())]));
        }
        assert_eq!(ledger.records(Sequence(u64::MAX), 2), Ok(vec![]));
        assert_eq!(ledger.get(Table::History, b"b1"), Ok(Some(b"v".to_vec())));
        assert_eq!(ledger.get(Table::Tickets, b"b1"), Ok(None), "each table has its own keys");
        let scan = |prefix: &[u8], after: &[u8], most| -> Vec<Vec<u8>> {
            let found = ledger.scan(Table::History, prefix, after, most).expect("a scan");
            found.into_iter().map(|(key, _)| key).collect()
        };
        assert_eq!(scan(b"", b"", 9), keys);
        assert_eq!(scan(b"b", b"", 9), keys[1..3]);
        assert_eq!(scan(b"b", b"a", 1), keys[1..2]);
        assert_eq!(scan(b"b", b"b1", 9), keys[2..3]);
        assert!(scan(b"b", b"c", 9).is_empty());
    };
    check(&ledger);
    drop(ledger);
    let (ledger, opened) = open(&dir).expect("a ledger that was closed");
    assert_eq!(opened, Opened::default());
    check(&ledger);
}

#[test]
fn an_append_to_another_head_writes_nothing() {
    let base = temporary();
    let ledger = RocksLedger::create(&base.path().join("data")).expect("a new ledger");
    let first = append_to(&ledger, 1, vec![]);
    ledger.append(&first).expect("the head is right");
    let moved = LedgerError::HeadMoved { expected: Sequence::ZERO, actual: Sequence(1) };
    assert_eq!(ledger.append(&first), Err(moved));
    ledger.append(&append_to(&ledger, 1, vec![])).expect("that doesn't stop the ledger");
    assert_eq!(chain_of(&ledger), [1, 2]);
}

#[test]
fn a_ledger_is_made_only_where_nothing_is_and_opened_only_where_one_is() {
    let base = temporary();
    let dir = base.path().join("data");
    assert_eq!(refusal(&dir), LedgerError::Missing { path: dir.clone() });
    assert!(!dir.exists(), "a mistyped path makes nothing");

    drop(RocksLedger::create(&dir).expect("a new ledger"));
    let not_empty = Some(LedgerError::NotEmpty { path: dir.clone() });
    assert_eq!(RocksLedger::create(&dir).err(), not_empty);
    assert_eq!(open(&dir).expect("the ledger").1, Opened::default());
}

#[test]
fn a_second_open_finds_the_ledger_in_use() {
    let base = temporary();
    let dir = base.path().join("data");
    let ledger = RocksLedger::create(&dir).expect("a new ledger");
    let in_use = LedgerError::InUse { path: dir.clone() };
    assert_eq!(refusal(&dir), in_use);
    // Where the mark was replaced, RocksDB's own lock still holds.
    fs::remove_file(dir.join("durable-mark")).expect("the mark");
    Mark::create(&dir).expect("a new mark");
    assert_eq!(refusal(&dir), in_use);
    drop(ledger);
    open(&dir).expect("nobody has it open");
}

#[test]
fn after_a_failed_append_the_ledger_writes_no_more() {
    let base = temporary();
    let dir = base.path().join("data");
    let ledger = RocksLedger::create(&dir).expect("a new ledger");
    ledger.append(&short_append(&ledger)).expect("an append");
    ledger.mark.fail("a disk that is gone");
    let failed = LedgerError::Failed { what: "a disk that is gone".to_owned() };
    assert_eq!(ledger.append(&short_append(&ledger)), Err(failed));
    assert_eq!(ledger.append(&short_append(&ledger)), Err(LedgerError::Stopped));
    assert_eq!(ledger.head().sequence, Sequence(1), "what is unsure is no head");
}

#[test]
fn a_log_cut_anywhere_gives_the_whole_records_before_the_cut() {
    let crashed = Crashed::after(6, |_, _| {});
    let dir = crashed.copy(3);
    let log = logs(&dir).remove(0);
    let whole = fs::read(&log).expect("the log");
    let bounds = bounds(&whole);
    assert_eq!(bounds.len(), 7, "one append is one record of the log");
    for cut in bounds[3]..=whole.len() {
        fs::write(&log, &whole[..cut]).expect("the log can be cut");
        let kept = bounds.iter().filter(|end| **end <= cut).count() as u64 - 1;
        let is_between = bounds.contains(&cut);
        let verdict = if is_between { Verdict::Whole } else { Verdict::TornTail };
        assert_eq!(judged(&dir, 3), Ok((verdict, kept)), "cut at {cut}");
    }
    fs::write(&log, &whole[..bounds[5] + 1]).expect("the log can be cut");
    set_mark(&dir, 6);
    assert_corrupt(&dir, "record 6 was synced, 5 is the last readable one");
    fs::write(&log, &whole[..bounds[5]]).expect("the log can be cut");
    assert_corrupt(&dir, "record 6 was synced, 5 is the last readable one");
}

#[test]
fn a_dropped_tail_is_reported_once_and_the_ledger_goes_on() {
    let crashed = Crashed::after(6, |_, _| {});
    for cut_off in [1, 20, 40] {
        let dir = crashed.copy(5);
        let log = logs(&dir).remove(0);
        let mut bytes = fs::read(&log).expect("the log");
        bytes.truncate(bytes.len() - cut_off);
        fs::write(&log, bytes).expect("the log can be cut");
        let (ledger, opened) = open(&dir).expect("a torn tail is no damage");
        assert_eq!(opened, Opened { dropped_tail: true, accepted_loss: false });
        assert_eq!(chain_of(&ledger), [1, 2, 3, 4, 5]);
        ledger.append(&short_append(&ledger)).expect("an append");
        drop(ledger);
        let (ledger, opened) = open(&dir).expect("a ledger that was closed");
        assert_eq!(opened, Opened::default());
        assert_eq!(chain_of(&ledger), [1, 2, 3, 4, 5, 6]);
    }
}

#[test]
fn a_flipped_bit_gives_a_prefix_with_all_that_was_synced_or_a_refusal() {
    let crashed = Crashed::after(6, |_, _| {});
    let dir = crashed.copy(3);
    let log = logs(&dir).remove(0);
    let whole = fs::read(&log).expect("the log");
    let bounds = bounds(&whole);
    // Every header, where the traps are, and a sample of the rest.
    let is_header = |at: usize| bounds.iter().any(|b| (*b..b + 7).contains(&at));
    let mut refused = 0;
    for at in (0..whole.len()).filter(|at| is_header(*at) || at % 11 == 0) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << if is_header(at) { 2 } else { at % 8 };
        fs::write(&log, bytes).expect("the log can be written");
        let record = bounds.iter().filter(|b| **b <= at).count() as u64;
        match judged(&dir, 3) {
            Ok((verdict, kept)) => {
                assert_eq!((verdict, kept), (Verdict::TornTail, record - 1), "flip at {at}");
                assert!(kept >= 3, "flip at {at}");
            }
            Err(LedgerError::Corrupt { what }) => {
                let place = format!("{} at byte {}", log.display(), bounds[record as usize - 1]);
                assert!(what.contains(&place), "{what} should say {place}");
                refused += 1;
            }
            Err(error) => panic!("flip at {at}: {error}"),
        }
    }
    assert!(refused > 20, "what was synced is refused: {refused}");
}

#[test]
fn a_loss_is_accepted_only_as_far_as_it_was_said() {
    let crashed = Crashed::after(6, |_, _| {});
    let dir = crashed.copy(6);
    let log = logs(&dir).remove(0);
    let mut bytes = fs::read(&log).expect("the log");
    let middle = bounds(&bytes)[4] + 20;
    bytes[middle] ^= 1;
    fs::write(&log, bytes).expect("the log can be written");
    assert_corrupt(&dir, "--accept-loss-after 4");
    let accept = |sequence| OpenOptions { accept_loss_after: Some(Sequence(sequence)) };
    assert!(matches!(RocksLedger::open(&dir, accept(5)), Err(LedgerError::Corrupt { .. })));
    let (ledger, opened) = RocksLedger::open(&dir, accept(4)).expect("an accepted loss");
    assert_eq!(opened, Opened { dropped_tail: false, accepted_loss: true });
    assert_eq!(chain_of(&ledger), [1, 2, 3, 4]);
    drop(ledger);
    assert_eq!(open(&dir).expect("a ledger that was closed").1, Opened::default());
}

#[test]
fn damage_in_an_older_log_is_refused_wherever_the_mark_stands() {
    // The flush of one family begins a new log, while the old one still has the others' data.
    let crashed = Crashed::after(6, |ledger, n| {
        let put = Put { table: Table::Meta, key: vec![1], value: vec![1] };
        let puts = Append { expected_head: Sequence(n - 1), records: vec![], puts: vec![put] };
        ledger.append(&puts).expect("an append");
        if n == 4 {
            ledger.db.flush_cf(family(&ledger.db, Table::Meta.name())).expect("a flush");
        }
    });
    let dir = crashed.copy(2);
    let (older, newer) = match logs(&dir).as_slice() {
        [older, newer] => (older.clone(), newer.clone()),
        logs => panic!("{logs:?} should be two"),
    };
    let whole = fs::read(&older).expect("the log");
    let mut bytes = whole.clone();
    bytes[whole.len() - 1] ^= 1;
    fs::write(&older, bytes).expect("the log can be written");
    assert_corrupt(&dir, "at byte");
    fs::write(&older, &whole[..whole.len() - 1]).expect("the log can be cut");
    assert_corrupt(&dir, "at byte");
    fs::remove_file(&older).expect("the log");
    assert_corrupt(&dir, "");
    fs::write(&older, whole).expect("the log");
    fs::remove_file(newer).expect("the log");
    set_mark(&dir, 6);
    assert_corrupt(&dir, "record 6 was synced, ");
}

#[test]
fn a_missing_or_damaged_file_is_refused_and_nothing_is_made_over_it() {
    let crashed = Crashed::after(6, |ledger, n| {
        if n == 4 {
            ledger.db.flush_cf(family(&ledger.db, RECORDS)).expect("a flush");
        }
    });
    type Wanted = fn(&str) -> bool;
    let classes: [Wanted; 4] = [
        |name| name.ends_with(".log"),
        |name| name.ends_with(".sst"),
        |name| name == "CURRENT",
        |name| name.starts_with("MANIFEST"),
    ];
    for (n, class) in classes.iter().enumerate() {
        let dir = crashed.copy(6);
        let found = files(&dir, class);
        assert!(!found.is_empty(), "class {n} has files");
        found.iter().for_each(|path| fs::write(path, b"").expect("a file can be emptied"));
        assert_corrupt(&dir, "");
        found.iter().for_each(|path| fs::remove_file(path).expect("a file can be removed"));
        assert_corrupt(&dir, "");
        assert!(files(&dir, class).is_empty(), "class {n}");
    }
    let dir = crashed.copy(6);
    fs::remove_dir_all(dir.join(ROCKS_DIR)).expect("the database");
    assert!(matches!(refusal(&dir), LedgerError::Corrupt { .. }));
    assert!(!dir.join(ROCKS_DIR).exists());
}

#[test]
fn a_flipped_bit_in_a_table_file_is_an_error_and_no_wrong_answer() {
    let crashed = Crashed::after(40, |ledger, n| {
        if n == 40 {
            ledger.db.flush_cf(family(&ledger.db, RECORDS)).expect("a flush");
        }
    });
    let dir = crashed.copy(40);
    let table = files(&dir, |name| name.ends_with(".sst")).remove(0);
    let mut bytes = fs::read(&table).expect("the table file");
    bytes[100] ^= 1;
    fs::write(&table, bytes).expect("the table file can be written");
    let found = open(&dir).and_then(|(ledger, _)| ledger.records(Sequence::ZERO, usize::MAX));
    assert!(matches!(found, Err(LedgerError::Corrupt { .. })), "{found:?}");
}

#[test]
fn a_database_whose_making_was_cut_off_between_two_families_has_no_record() {
    for count in 0..families().len() {
        let base = temporary();
        let dir = base.path().join("data");
        drop(RocksLedger::create(&dir).expect("a new ledger"));
        fs::remove_dir_all(dir.join(ROCKS_DIR)).expect("it is there");
        let mut settings = settings(Mode::Absolute);
        settings.create_if_missing(true);
        settings.create_missing_column_families(true);
        let made = families().into_iter().take(count);
        drop(DB::open_cf_descriptors(&settings, dir.join(ROCKS_DIR), made).expect("a database"));

        let (reader, condition) = RocksReader::open(&dir).expect("it can be read");
        assert_eq!((reader.head(), condition), (Head::default(), Condition::Whole), "{count}");
        assert_eq!(reader.records(Sequence::ZERO, usize::MAX), Ok(Vec::new()), "{count}");
        assert_eq!(reader.get(Table::Meta, b"x"), Ok(None), "{count}");
        drop(reader);
        let (ledger, _) = open(&dir).expect("it can be gone on with");
        ledger.append(&short_append(&ledger)).expect("an append");
    }
}

#[test]
fn a_making_that_was_cut_off_is_begun_again_and_nothing_else_is_written_over() {
    let base = temporary();
    let dir = base.path().join("data");
    let rocks = dir.join(ROCKS_DIR);
    let begin = || {
        fs::create_dir_all(&dir).expect("a directory");
        drop(Mark::create(&dir).expect("a mark"));
    };
    let stages: [&dyn Fn(); 4] = [
        &|| fs::write(dir.join(mark::FILE_NAME), b"").expect("a file"),
        &|| {},
        &|| fs::create_dir(&rocks).expect("a directory"),
        &|| {
            fs::create_dir(&rocks).expect("a directory");
            fs::write(rocks.join("MANIFEST-000001"), b"half").expect("a file");
        },
    ];
    for stage in stages {
        begin();
        stage();
        let ledger = RocksLedger::create(&dir).expect("its making is begun again");
        ledger.append(&short_append(&ledger)).expect("an append");
        drop(ledger);
        assert_eq!(open(&dir).expect("a ledger").0.head().sequence, Sequence(1));
        fs::remove_dir_all(&dir).expect("it is there");
    }
    for kept in ["notes", "rocks/CURRENT", "rocks/000004.log", "rocks/000009.sst"] {
        begin();
        fs::create_dir(&rocks).expect("a directory");
        fs::write(dir.join(kept), b"data").expect("a file");
        let refused = RocksLedger::create(&dir).err();
        assert_eq!(refused, Some(LedgerError::NotEmpty { path: dir.clone() }), "{kept}");
        assert_eq!(fs::read(dir.join(kept)).expect("it is still there"), b"data");
        fs::remove_dir_all(&dir).expect("it is there");
    }
    begin();
    set_mark(&dir, 1);
    let refused = RocksLedger::create(&dir).err();
    assert_eq!(refused, Some(LedgerError::NotEmpty { path: dir.clone() }), "it had a record");
    fs::remove_dir_all(&dir).expect("it is there");
    begin();
    let (_held, _) = Mark::open(&dir, false, false).expect("a mark");
    let refused = RocksLedger::create(&dir).err();
    assert_eq!(refused, Some(LedgerError::InUse { path: dir.clone() }), "somebody makes it");
}
