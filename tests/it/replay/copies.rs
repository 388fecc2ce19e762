//! A ledger that goes from one place to another is the same: to a data directory and back, in
//! either form, in one go or after it was cut off at any byte.

use std::fs;
use std::path::Path;

use pearing::audit::{
    AuditError, FaultKind, Form, Lines, Records, Silent, copy, export, export_to_file,
};
use pearing::domain::id::Sequence;
use pearing::domain::time::Time;
use pearing::ledger::Ledger;
use pearing::ledger::pending::Gap;
use pearing::ledger::rocks::{Condition, RocksReader};
use pearing::projection::snapshot;

use super::{FIXTURES, ledger_of, shown, text_of};

/// Later than every record.
const NOW: Time = Time::from_millis(4_000_000_000_000);

/// Reads an exported ledger into a data directory.
pub(super) fn import(text: &[u8], data: &Path) {
    let lines = Lines::of(Box::new(text) as Box<dyn std::io::BufRead + '_>);
    let copied = copy(Records::Text(lines), data, Gap::Imported, NOW, &mut Silent);
    copied.unwrap_or_else(|error| panic!("{error}"));
}

/// A data directory, as an auditor reads it.
pub(super) fn open(data: &Path) -> RocksReader {
    let (reader, condition) = RocksReader::open(data).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(condition, Condition::Whole);
    reader
}

fn exported(ledger: &dyn Ledger, form: Form) -> Vec<u8> {
    let mut text = Vec::new();
    export(ledger, form, Sequence::ZERO, &mut text, &mut Silent).expect("it can be read");
    text
}

#[test]
fn every_fixture_is_imported_with_the_same_hashes_and_tables() {
    let home = tempfile::tempdir().expect("a temporary directory");
    for (name, _, hash) in FIXTURES {
        let text = text_of(name);
        let in_memory = ledger_of(&text);
        let as_events = exported(&*in_memory, Form::CloudEvents);
        for (form, text_in) in [("text", &text), ("cloudevents", &as_events)] {
            let data = home.path().join(format!("{name}-{form}"));
            import(text_in, &data);
            let reader = open(&data);
            assert_eq!(reader.head().hash.to_string(), *hash, "{name}");
            assert!(exported(&reader, Form::Text) == text, "{name} from {form}");
            assert!(exported(&reader, Form::CloudEvents) == as_events, "{name} from {form}");
            let rows = shown::tables(&reader);
            let (rows, meta) = rows.split_once("meta\n").expect("it says what is pending");
            assert_eq!(rows, shown::tables(&*in_memory), "{name} from {form}");
            assert!(meta.contains("snapshot =") && meta.contains("pending ="), "{meta}");
            let (state, head) =
                snapshot::read(&reader).expect("it can be read").expect("it is new");
            assert_eq!(head, in_memory.head(), "{name} from {form}");
            assert_eq!(state.head(), head.sequence, "{name} from {form}");
            assert_eq!(shown::state(&reader), shown::state(&*in_memory), "{name} from {form}");
        }
    }
}

#[test]
fn an_export_that_was_cut_off_at_any_byte_is_gone_on_with() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let file = home.path().join("ledger");
    let ledger = ledger_of(&text_of("hand-over"));
    for form in [Form::Text, Form::CloudEvents] {
        let whole = exported(&*ledger, form);
        let ends = whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let ends: Vec<usize> = ends.map(|(at, _)| at + 1).collect();
        // Every byte of the last two lines, the end of each line, and its middle.
        let last_two = ends[ends.len() - 3]..=whole.len();
        let middles = ends.windows(2).map(|two| usize::midpoint(two[0], two[1]));
        for length in last_two.chain(middles).chain(ends.iter().copied()).chain([0]) {
            fs::write(&file, &whole[..length]).expect("the disk isn't full");
            let last = export_to_file(&*ledger, form, &file, &mut Silent)
                .unwrap_or_else(|error| panic!("{form:?} at {length}: {error}"));
            assert_eq!(last, ledger.head().sequence);
            assert!(fs::read(&file).expect("it is there") == whole, "{form:?} at {length}");
        }
    }
}

#[test]
fn an_export_is_not_written_into_what_is_no_beginning_of_it() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let file = home.path().join("ledger");
    let ledger = ledger_of(&text_of("hand-over"));
    let (text, events) = (exported(&*ledger, Form::Text), exported(&*ledger, Form::CloudEvents));
    let mut changed = text.clone();
    let last = changed.len() - 2;
    changed[last] ^= 1;
    for other in [&text_of("expiry")[..], &events, &changed, b"some notes", b"some\nnotes\n", b"\n"]
    {
        fs::write(&file, other).expect("the disk isn't full");
        let refused = export_to_file(&*ledger, Form::Text, &file, &mut Silent);
        assert!(matches!(refused, Err(AuditError::Asked(_))), "{refused:?}");
        assert!(fs::read(&file).expect("it is there") == other, "it was changed");
    }
}

#[test]
fn an_import_into_another_ledger_is_refused_and_changes_nothing() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let data = home.path().join("data");
    let text = text_of("hand-over");
    import(&text, &data);
    let other = text_of("expiry");
    let lines = Lines::of(Box::new(&other[..]) as Box<dyn std::io::BufRead + '_>);
    let refused = copy(Records::Text(lines), &data, Gap::Imported, NOW, &mut Silent);
    assert!(
        matches!(&refused, Err(AuditError::Fault(fault)) if fault.kind == FaultKind::Order),
        "{refused:?}"
    );
    assert!(exported(&open(&data), Form::Text) == text);
    // The same one again is done already, and a longer one of the same ledger goes on.
    import(&text, &data);
    let lines = text.split_inclusive(|byte| *byte == b'\n').count();
    let shorter = text.split_inclusive(|byte| *byte == b'\n').take(lines - 1).collect::<Vec<_>>();
    let data = home.path().join("shorter");
    import(&shorter.concat(), &data);
    import(&text, &data);
    assert!(exported(&open(&data), Form::Text) == text);
}

#[test]
fn an_import_writes_only_what_is_good() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let text = text_of("deadlock");
    let mut lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    lines.remove(30);
    let without = lines.concat();
    let data = home.path().join("data");
    let read = Lines::of(Box::new(&without[..]) as Box<dyn std::io::BufRead + '_>);
    let refused = copy(Records::Text(read), &data, Gap::Imported, NOW, &mut Silent);
    let Err(AuditError::Fault(fault)) = refused else { panic!("{refused:?}") };
    assert_eq!((fault.kind, fault.sequence), (FaultKind::Order, Some(Sequence(31))));
    // The whole ledger goes on from there.
    import(&text, &data);
    assert!(exported(&open(&data), Form::Text) == text);
}
