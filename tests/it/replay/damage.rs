//! Damage to a data directory: `verify` finds it and writes nothing, and `rebuild` mends what can
//! be worked out anew.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use pearing::domain::State;
use pearing::domain::id::Sequence;
use pearing::ledger::rocks::{OpenOptions, RocksLedger};
use pearing::ledger::{Append, Hash, Ledger, Put, Stored, Table, keys, link};
use pearing::projection::{self, snapshot};
use serde_json::Value;

use super::copies::{import, open};
use super::{ledger_of, records_of, shown, text_of};
use crate::support::{Server, pearing};

/// Bytes that are changed in each file, spread over it.
const BYTES_PER_FILE: usize = 24;

/// What a tool did: exit code, what it printed, what it complained of.
pub(super) struct Ran {
    pub(super) code: Option<i32>,
    pub(super) out: String,
    pub(super) said: String,
}

/// Runs the program to its end, which is forced after two minutes (exit code 124): a server that
/// should have refused to start would go on for ever.
pub(super) fn run(words: &[&str]) -> Ran {
    let tool = pearing(words.iter().copied());
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", "120"]).arg(tool.get_program()).args(tool.get_args());
    for (name, value) in tool.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let output = command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ran { code: output.status.code(), out: text(&output.stdout), said: text(&output.stderr) }
}

pub(super) fn text(path: &Path) -> &str {
    path.to_str().expect("our paths are text")
}

/// Every file below a folder: its bytes, and when it was last written.
fn everything(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder can be read") {
            let path = entry.expect("an entry can be read").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let written = path.metadata().and_then(|metadata| metadata.modified());
            let bytes = fs::read(&path).expect("a file can be read");
            found.insert(path, (bytes, written.expect("files have times")));
        }
    }
    found
}

/// Verifies a directory, and wants every file as it was.
fn verify(data: &Path) -> (Ran, Value) {
    let before = everything(data);
    let ran = run(&["verify", text(data), "--json"]);
    assert!(everything(data) == before, "verifying {} wrote something", data.display());
    let result = serde_json::from_str(ran.out.trim()).unwrap_or(Value::Null);
    (ran, result)
}

/// The fault that must be found, as kind, sequence and words.
#[track_caller]
fn fault(data: &Path) -> (String, Value, String) {
    let (ran, result) = verify(data);
    assert_eq!(ran.code, Some(5), "{}{}", ran.out, ran.said);
    let fault = &result["fault"];
    assert!(ran.said.contains(fault["what"].as_str().expect("words")), "{}", ran.said);
    let word = |field: &str| fault[field].as_str().unwrap_or_default().to_owned();
    (word("kind"), fault["sequence"].clone(), word("what"))
}

#[track_caller]
fn assert_good(data: &Path) {
    let (ran, result) = verify(data);
    assert_eq!((ran.code, &result["is_good"]), (Some(0), &Value::Bool(true)), "{}", ran.said);
}

#[track_caller]
fn rebuild(data: &Path) {
    let ran = run(&["rebuild", "--data", text(data)]);
    assert_eq!(ran.code, Some(0), "{}", ran.said);
    assert_good(data);
}

fn files(data: &Path, extension: &str) -> Vec<PathBuf> {
    let is_wanted = |path: &PathBuf| path.extension().is_some_and(|found| found == extension);
    let mut found: Vec<_> = everything(data).into_keys().filter(is_wanted).collect();
    found.sort();
    found
}

/// Changes bytes all over some files, one at a time. Returns how many were found, of how many.
fn change_bytes(data: &Path, files: &[PathBuf], whole: &str) -> (usize, usize) {
    let (mut found, mut all) = (0, 0);
    for file in files {
        let good = fs::read(file).expect("a file can be read");
        for at in (0..good.len()).step_by((good.len() / BYTES_PER_FILE).max(1)) {
            let mut bad = good.clone();
            bad[at] ^= 0xff;
            fs::write(file, &bad).expect("the disk isn't full");
            let (ran, result) = verify(data);
            let place = format!("{} at {at} of {}", file.display(), good.len());
            match ran.code {
                Some(5) => found += 1,
                // A byte that nothing depends on: then everything is there all the same.
                Some(0) => {
                    assert_eq!(result["is_good"], Value::Bool(true), "{place}");
                    assert!(run(&["export", text(data)]).out == whole, "{place}");
                }
                code => panic!("{place}: {code:?} {}", ran.said),
            }
            all += 1;
        }
        fs::write(file, &good).expect("the disk isn't full");
    }
    assert_good(data);
    (found, all)
}

#[test]
fn a_changed_byte_in_a_file_of_the_database_is_found() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let data = home.path().join("data");
    let whole = String::from_utf8(text_of("herd")).expect("JSON is UTF-8");
    import(whole.as_bytes(), &data);
    let log = change_bytes(&data, &files(&data, "log"), &whole);
    // An open writes what the log has into tables.
    drop(RocksLedger::open(&data, OpenOptions::default()).expect("it is whole"));
    let tables = change_bytes(&data, &files(&data, "sst"), &whole);
    println!("found: {log:?} in the log, {tables:?} in tables");
    assert!(log.0 > 20 && log.0 * 10 >= log.1 * 9, "{log:?}");
    assert!(tables.0 > 60 && tables.0 * 3 >= tables.1 * 2, "{tables:?}");
}

/// Opens a directory as a server would, writes rows, and closes it.
fn put(data: &Path, puts: Vec<Put>) {
    let (ledger, _) = RocksLedger::open(data, OpenOptions::default()).expect("it is whole");
    let expected_head = ledger.head().sequence;
    ledger.append(&Append { expected_head, records: Vec::new(), puts }).expect("it is written");
}

const TABLES: [Table; 6] = [
    Table::Tickets,
    Table::Requests,
    Table::History,
    Table::Threads,
    Table::ThreadEvents,
    Table::Replies,
];

#[test]
fn a_changed_or_added_row_of_any_table_is_found_and_mended() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let data = home.path().join("data");
    import(&text_of("threads"), &data);
    let good = shown::tables(&open(&data));
    for table in TABLES {
        let rows = open(&data).scan(table, b"", b"", usize::MAX).expect("it can be read");
        let (key, value) = rows.last().expect("each table has rows").clone();
        let mut longer = value.clone();
        longer.push(b' ');
        put(&data, vec![Put { table, key: key.clone(), value: longer }]);
        let (kind, sequence, what) = fault(&data);
        assert_eq!(kind, "table", "{what}");
        assert!(what.contains(&format!("the table {} has another row", table.name())), "{what}");
        assert!(sequence.is_u64(), "the record that the row is of: {what}");
        rebuild(&data);
        let mut beyond = key;
        beyond.push(0);
        put(&data, vec![Put { table, key: beyond, value }]);
        let (kind, sequence, what) = fault(&data);
        let more = format!("has {} rows, its records make {}", rows.len() + 1, rows.len());
        assert_eq!((kind.as_str(), sequence), ("table", Value::Null), "{what}");
        assert!(what.contains(table.name()) && what.contains(&more), "{what}");
        rebuild(&data);
    }
    assert_eq!(shown::tables(&open(&data)), good);
}

/// Writes a ledger as it is, with the rows that `keep` leaves.
fn write(data: &Path, records: &[Stored], mut keep: impl FnMut(&Put) -> bool) {
    let ledger = RocksLedger::create(data).expect("a new directory");
    let (mut state, mut hash) = (State::default(), Hash::ZERO);
    for stored in records {
        let mut puts = Vec::new();
        // From a wrong record on there is nothing that rows could be made of.
        hash = link(&hash, &stored.bytes);
        if let Ok(record) = stored.decode()
            && hash == stored.hash
        {
            let ended = state.apply(&record);
            puts = projection::puts(&record, ended.as_ref());
            puts.retain(&mut keep);
        }
        let expected_head = ledger.head().sequence;
        let append = Append { expected_head, records: vec![stored.clone()], puts };
        ledger.append(&append).expect("the disk isn't full");
    }
}

#[test]
fn a_missing_row_of_any_table_is_found_and_mended() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let ledger = ledger_of(&text_of("threads"));
    let records = records_of(&*ledger);
    for table in TABLES {
        let data = home.path().join(table.name());
        let rows = ledger.scan(table, b"", b"", usize::MAX).expect("it is in memory");
        let (missing, _) = rows.last().expect("each table has rows");
        write(&data, &records, |put| put.table != table || put.key != *missing);
        let (kind, _, what) = fault(&data);
        assert_eq!(kind, "table", "{what}");
        assert!(what.contains(table.name()), "{what}");
        rebuild(&data);
        let rows = shown::tables(&open(&data));
        assert!(rows.starts_with(&shown::tables(&*ledger)), "{rows}");
    }
}

#[test]
fn a_snapshot_of_another_state_is_found_and_mended() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let text_of_it = text_of("expiry");
    let records = records_of(&*ledger_of(&text_of_it));
    let of = |name: &str, end: usize, change: &dyn Fn(&mut Value)| {
        let data = home.path().join(name);
        write(&data, &records[..end], |_| true);
        let (ledger, _) = RocksLedger::open(&data, OpenOptions::default()).expect("it is whole");
        let mut state = State::default();
        for stored in &records[..end] {
            state.apply(&stored.decode().expect("a fixture is good"));
        }
        snapshot::save(&ledger, &state).expect("the disk isn't full");
        let key = keys::meta("snapshot");
        let row = ledger.get(Table::Meta, &key).expect("it can be read").expect("it is new");
        let mut value = serde_json::from_slice(&row).expect("a snapshot is JSON");
        change(&mut value);
        let value = serde_json::to_vec(&value).expect("it was JSON");
        drop(ledger);
        put(&data, vec![Put { table: Table::Meta, key, value }]);
        data
    };
    let as_it_is = of("good", 20, &|_| {});
    assert_good(&as_it_is);

    let other = of("other", 20, &|snapshot| {
        let user = &mut snapshot["state"]["access"]["users"]["ana"];
        assert!(user.is_object(), "the snapshot has its users by name: {snapshot}");
        user["is_disabled"] = Value::Bool(true);
    });
    let (kind, sequence, what) = fault(&other);
    assert_eq!((kind.as_str(), sequence), ("table", Value::from(20)), "{what}");
    assert!(what.contains("snapshot"), "{what}");
    rebuild(&other);

    let hash = of("hash", 20, &|snapshot| snapshot["hash"] = Hash::ZERO.to_string().into());
    assert_eq!(fault(&hash).1, Value::from(20));
    rebuild(&hash);

    for garbage in ["state", "version"] {
        let data = of(garbage, 20, &|snapshot| snapshot[garbage] = "garbage".into());
        let (kind, _, what) = fault(&data);
        assert_eq!(kind, "table", "{what}");
        assert!(what.contains("the stored snapshot can't be read"), "{what}");
        rebuild(&data);
    }
    let older = of("older", 20, &|snapshot| snapshot["version"] = 1.into());
    assert_good(&older);

    // The end of the ledger is gone, and the snapshot that stood on it is still there.
    let cut = home.path().join("cut");
    write(&cut, &records[..18], |_| true);
    let beyond = open(&as_it_is).get(Table::Meta, &keys::meta("snapshot")).expect("it can be read");
    let value = beyond.expect("it is there");
    put(&cut, vec![Put { table: Table::Meta, key: keys::meta("snapshot"), value }]);
    let (kind, _, what) = fault(&cut);
    assert_eq!(kind, "table", "{what}");
    assert!(what.contains("the snapshot stands on record 20, which isn't there"), "{what}");
    let ran = run(&["serve", "--data", text(&cut), "--listen", "127.0.0.1:0"]);
    assert_eq!(ran.code, Some(5), "{}", ran.said);
    rebuild(&cut);
}

#[test]
fn a_changed_record_is_found_and_nothing_is_rebuilt_on_it() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let good = records_of(&*ledger_of(&text_of("deadlock")));
    for (name, kind, change) in [
        (
            "changed",
            "chain",
            (|records| {
                let text = String::from_utf8(records[29].bytes.to_vec()).expect("JSON is UTF-8");
                records[29].bytes =
                    text.replace("\"actor\":\"", "\"actor\":\"x").into_bytes().into();
            }) as fn(&mut Vec<Stored>),
        ),
        ("missing", "order", |records| drop(records.remove(29))),
        ("no record", "chain", |records| records[29].bytes = b"{}".to_vec().into()),
        ("misplaced", "order", |records| {
            let (bytes, hash) = (records[30].bytes.clone(), records[30].hash);
            (records[29].bytes, records[29].hash) = (bytes, hash);
        }),
    ] {
        let data = home.path().join(name);
        let mut records = good.clone();
        change(&mut records);
        write(&data, &records, |_| true);
        let (found, sequence, what) = fault(&data);
        assert_eq!((found.as_str(), sequence), (kind, Value::from(30)), "{name}: {what}");
        let rows = shown::tables(&open(&data));
        let ran = run(&["rebuild", "--data", text(&data)]);
        assert_eq!(ran.code, Some(5), "{name}: {}", ran.said);
        assert!(ran.said.contains("record 30"), "{name}: {}", ran.said);
        assert_eq!(shown::tables(&open(&data)), rows, "{name}: the tables are left as they are");
        assert_eq!(fault(&data).1, Value::from(30), "{name}");
    }
}

#[test]
fn a_directory_that_is_served_is_not_verified_from_outside() {
    let server = Server::start();
    let data = server.data();
    for words in [
        vec!["verify", text(&data)],
        vec!["replay", text(&data)],
        vec!["export", text(&data)],
        vec!["rebuild", "--data", text(&data)],
    ] {
        let ran = run(&words);
        assert_eq!((ran.code, ran.out.as_str()), (Some(4), ""), "{words:?}: {}", ran.said);
        assert!(ran.said.contains("is in use"), "{}", ran.said);
    }
}

#[test]
fn a_torn_end_of_the_log_is_told_and_left_as_it_is() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let data = home.path().join("data");
    import(&text_of("hand-over"), &data);
    let log = files(&data, "log").pop().expect("a log");
    let whole = fs::read(&log).expect("it can be read");
    // The beginning of a write: the first bytes of the log's own first one.
    let torn = [&whole[..], &whole[..20]].concat();
    fs::write(&log, &torn).expect("the disk isn't full");
    let (ran, result) = verify(&data);
    assert_eq!((ran.code, &result["sequence"]), (Some(0), &Value::from(21)), "{}", ran.said);
    let ran = run(&["verify", text(&data)]);
    assert_eq!(ran.code, Some(0), "{}", ran.said);
    assert!(ran.out.contains("a write that a crash cut off"), "{}", ran.out);
    // What is missing now was synced, and known to be.
    fs::write(&log, &whole[..whole.len() - 20]).expect("the disk isn't full");
    let (ran, _) = verify(&data);
    assert_eq!(ran.code, Some(5), "{}", ran.said);
    assert_eq!(Sequence(21), {
        fs::write(&log, &whole).expect("the disk isn't full");
        open(&data).head().sequence
    });
}
