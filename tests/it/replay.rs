//! Ledgers that are kept for ever, in `replay-fixtures`: whatever the code becomes, it reads each
//! of them, and comes to the same hash, the same state and the same tables.

mod copies;
mod damage;
mod killed;
mod many;
mod outside;
mod restored;
mod same;
mod shown;
mod stories;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use pearing::audit::{Silent, Source, verify};
use pearing::ledger::codec::{decode, shapes};
use pearing::ledger::{Ledger, Stored};

/// Each ledger, how many records it has, and the hash of the last one, which stands for all of
/// them. Only ever added to: a line that must be changed is a ledger that can't be read any more.
const FIXTURES: &[(&str, u64, &str)] = &[
    ("hand-over", 21, "707b20b62f485a3e735847969195284dbc2aa2bf5f5ebcc60b623f5772880540"),
    ("deadlock", 55, "9e8ff5afe5e326b0f054b86b8de5b7fa072e17404630ca436027d65ef2584c42"),
    ("expiry", 30, "d16ed9170e3339d5e1b79e2207634fb03ae8e28e1036fc09162814532ead7aab"),
    ("access", 54, "3ec9e1f3d5453c740c5cb18c0878d273d1467ff325401f453c1c8bc2e3892535"),
    ("herd", 232, "5b44bb12d3448b161051d9f4d741a8edb576a5e7a05934fa2aff3abfdc6a153e"),
    ("re-entrancy", 30, "a211b7d78c19ab615a8e37a979d639edfcd71817571773e49d7d6e006a0a526e"),
    ("restart", 33, "7d57ff281a1593d9dc093fb974ce0edcbe4384a2fe5b0c0e7f9b5bf0ebc4e38c"),
    ("restore", 23, "413d71dfcc701718d47ba95368f20b6409d36499f47a446807e210ba0891d195"),
    ("breaking", 21, "ca507b4c24687011baf52f075e998a3f9ec1ce8232a45f2928882feefff87882"),
    ("retries", 24, "e029ddccb4711f14dd442f2a9582d3bdeab64374d04d608ae08b62c4ad8033bb"),
    ("threads", 32, "0cdef496469b76e9907c4436c6134a0374edce704c131a41b404a241e338456d"),
    ("first-shapes", 19, "19d1d2e329b2b61a7533c4d4742ff9364a4838fec40d89e3d71af018d370b5a2"),
];

/// The folder of the ledgers.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/replay-fixtures");

/// A file of a fixture.
fn path_of(name: &str, extension: &str) -> PathBuf {
    Path::new(FOLDER).join(format!("{name}.{extension}"))
}

/// A ledger as text.
fn text_of(name: &str) -> Vec<u8> {
    fs::read(path_of(name, "ledger")).expect("a fixture is never taken away")
}

/// A ledger with its tables, in memory.
fn ledger_of(text: &[u8]) -> Box<dyn Ledger> {
    let source = Source::Text(Box::new(std::io::Cursor::new(text.to_vec())));
    source.into_ledger(&mut Silent).unwrap_or_else(|error| panic!("{error}"))
}

fn records_of(ledger: &dyn Ledger) -> Vec<Stored> {
    ledger.records(pearing::domain::id::Sequence::ZERO, usize::MAX).expect("it is in memory")
}

fn names(extension: &str) -> BTreeSet<String> {
    let files = fs::read_dir(FOLDER).expect("the folder is there");
    let paths = files.map(|file| file.expect("it can be listed").path());
    let with_it = paths.filter(|path| path.extension().is_some_and(|found| found == extension));
    with_it.map(|path| path.file_stem().expect("it has a name").to_string_lossy().into()).collect()
}

#[test]
fn every_fixture_is_pinned_and_told_of() {
    let pinned: BTreeSet<String> = FIXTURES.iter().map(|(name, ..)| (*name).to_owned()).collect();
    assert_eq!(names("ledger"), pinned, "a fixture and its line come together");
    let readme = fs::read_to_string(Path::new(FOLDER).join("README.md")).expect("it is there");
    for (name, records, hash) in FIXTURES {
        let told = fs::read_to_string(path_of(name, "md")).expect("a fixture has a page");
        assert!(told.contains(&format!("{records} records, {hash}")), "{name}.md");
        assert!(readme.contains(&format!("[{name}]({name}.md)")), "README.md lists {name}");
    }
}

#[test]
fn every_fixture_is_good_and_comes_to_its_hash() {
    for (name, records, hash) in FIXTURES {
        let found = verify::text(&*text_of(name), &mut Silent, |_| Ok(())).expect("it is there");
        assert_eq!(found.fault, None, "{name}");
        assert_eq!((found.records, found.hash.as_str()), (*records, *hash), "{name}");
        let ledger = ledger_of(&text_of(name));
        let tables = verify::ledger(&*ledger, &mut Silent, |_| Ok(())).expect("it is in memory");
        assert_eq!(tables.fault, None, "{name}");
        assert_eq!((tables.hash.as_str(), tables.has_tables), (*hash, true), "{name}");
    }
}

#[test]
fn every_version_of_every_event_that_was_ever_written_is_in_a_fixture() {
    let mut written = BTreeSet::new();
    for (name, ..) in FIXTURES {
        for stored in records_of(&*ledger_of(&text_of(name))) {
            let line: serde_json::Value =
                serde_json::from_slice(&stored.bytes).expect("a record is JSON");
            let kind = line["type"].as_str().expect("a record has a type").to_owned();
            written.insert((kind, line["version"].as_u64().expect("a record has a version")));
            assert_eq!(decode(&stored.bytes).expect("it is read").sequence, stored.sequence);
        }
    }
    let known = shapes().map(|shape| (shape.type_name.to_owned(), u64::from(shape.version)));
    assert_eq!(written, known.collect());
}
