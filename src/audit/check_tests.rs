//! Whatever is done to a ledger is found, and told by the right sequence: on each of the ledgers
//! that are kept for ever, every byte and every record.

use std::fs;

use super::super::fault::AuditError;
use super::super::lines::Lines;
use super::super::progress::Silent;
use super::super::verify;
use super::*;

/// One bit, the case of a letter, no ASCII any more, and every bit.
const MASKS: [u8; 4] = [0x01, 0x20, 0x80, 0xff];

/// How far apart the bytes are that the whole tool is tried on, which reads from the start.
const TRIED_EVERY: usize = 97;

/// Each ledger by its name, as text.
fn fixtures() -> Vec<(String, Vec<u8>)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/replay-fixtures");
    let files = fs::read_dir(folder).expect("the folder is there");
    let paths = files.map(|file| file.expect("it can be listed").path());
    let ledgers = paths.filter(|path| path.extension().is_some_and(|found| found == "ledger"));
    let read = |path: std::path::PathBuf| {
        (path.display().to_string(), fs::read(&path).expect("a file can be read"))
    };
    let found: Vec<_> = ledgers.map(read).collect();
    assert!(found.len() >= 12, "{} ledgers are kept for ever", found.len());
    found
}

fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

/// Goes past the first line of `text`. What is refused leaves the checker as it was.
fn pass(checker: &mut Checker, text: &[u8]) -> Result<Record, Fault> {
    let read = Lines::of(text).read(checker.head().sequence);
    let line = read.map_err(|error| match error {
        AuditError::Fault(fault) => fault,
        error => panic!("{error}"),
    })?;
    let line = line.expect("there is a line");
    checker.pass(line.hash, line.bytes).map(|good| good.record)
}

/// How many records the tool finds good, and the sequence that its fault is told by.
fn verified(text: &[u8]) -> (u64, Option<Sequence>) {
    let found = verify::text(text, &mut Silent, |_| Ok(())).expect("it is in memory");
    assert_eq!(found.is_good, found.fault.is_none());
    (found.records, found.fault.map(|fault| fault.sequence.expect("a record is at fault")))
}

#[test]
fn a_change_of_any_byte_is_found_and_told_by_its_record() {
    let mut changes = 0;
    for (name, text) in fixtures() {
        let (mut checker, mut begin) = (Checker::default(), 0);
        for line in lines(&text) {
            let next = checker.head().sequence.next();
            let of_line = decode(&line[65..line.len() - 1]).expect("a fixture is good").sequence;
            // What comes before says where the record belongs, if that isn't right after the last.
            let reason = line.windows(10).position(|part| part == b",\"reason\":").unwrap_or(0);
            // A changed end of line takes the next line along.
            let rest = &text[begin + line.len()..];
            let two = line.len() + lines(rest).first().map_or(0, |next| next.len());
            let mut changed = text[begin..begin + two].to_vec();
            for at in 0..line.len() {
                for mask in MASKS {
                    changed[at] ^= mask;
                    let fault = pass(&mut checker, &changed).map(|record| record.sequence);
                    let told = fault.expect_err("a changed byte").sequence;
                    let is_after_gap = of_line != next && told == Some(next) && at < reason;
                    let place = format!("{name}, record {of_line}, byte {at} ^ {mask:#x}");
                    assert!(told == Some(of_line) || is_after_gap, "{place}: {told:?}");
                    if (begin + at).is_multiple_of(TRIED_EVERY) {
                        let mut all = text.clone();
                        all[begin + at] ^= mask;
                        assert_eq!(verified(&all), (checker.records(), told), "{place}");
                    }
                    changed[at] ^= mask;
                    changes += 1;
                }
            }
            pass(&mut checker, &changed).expect("nothing is changed any more");
            begin += line.len();
        }
        checker.end().expect("a fixture is good");
    }
    assert!(changes > 500_000, "{changes} changes");
}

#[test]
fn any_record_in_the_place_of_another_is_found_there() {
    for (name, text) in fixtures() {
        let lines = lines(&text);
        let mut checker = Checker::default();
        for place in 0..=lines.len() {
            let next = checker.head().sequence.next();
            // Also the one behind it, as if this one were missing, and the one before it again.
            for (other, line) in lines.iter().enumerate().filter(|(other, _)| *other != place) {
                let fault = pass(&mut checker, line).map(|record| record.sequence);
                let fault = fault.expect_err("another record");
                let told = (fault.kind, fault.sequence);
                assert_eq!(told, (FaultKind::Order, Some(next)), "{name}: {other} at {place}");
            }
            if let Some(line) = lines.get(place) {
                pass(&mut checker, line).expect("a fixture is good");
            }
        }
    }
}

#[test]
fn a_missing_repeated_or_swapped_record_is_found_by_the_whole_tool() {
    for (name, text) in fixtures() {
        let lines = lines(&text);
        let sequence_of = |at: usize| {
            let line = lines[at];
            decode(&line[65..line.len() - 1]).expect("a fixture is good").sequence
        };
        for at in 0..lines.len() {
            let next = if at == 0 { Sequence(1) } else { sequence_of(at - 1).next() };
            let mut repeated = lines.clone();
            repeated.insert(at, lines[at]);
            let expected = (at as u64 + 1, Some(sequence_of(at).next()));
            assert_eq!(verified(&repeated.concat()), expected, "{name}: {at} twice");
            if at + 1 < lines.len() {
                let mut missing = lines.clone();
                missing.remove(at);
                let expected = (at as u64, Some(next));
                assert_eq!(verified(&missing.concat()), expected, "{name}: without {at}");
                let mut swapped = lines.clone();
                swapped.swap(at, at + 1);
                assert_eq!(verified(&swapped.concat()), expected, "{name}: {at} after the next");
            }
        }
    }
}

/// Whether `record` was decided together with the one before it.
fn belongs_to(before: &Record, record: &Record) -> bool {
    let is_same = before.time == record.time && before.actor == record.actor;
    is_same
        && match (&before.event, &record.event) {
            (_, Event::LockPromoted(_)) => true,
            (_, Event::LockWaitCancelled(cancelled)) => cancelled.reason.is_some(),
            (Event::LockBroken(_), Event::LockBroken(broken)) => {
                broken.fence_token.0 < before.sequence
            }
            (Event::UserCreated(created), Event::TokenIssued(_)) => created.person.is_some(),
            (Event::TokenRevoked(one), Event::TokenRevoked(other)) => one.user == other.user,
            (Event::LedgerRestored(_), Event::LedgerRecovered(_)) => true,
            (_, _) => false,
        }
}

#[test]
fn a_cut_end_is_found_only_in_the_middle_of_what_was_decided_together() {
    let mut found = 0;
    for (name, text) in fixtures() {
        let (mut checker, mut before): (_, Option<Record>) = (Checker::default(), None);
        for line in lines(&text) {
            let next = checker.head().sequence.next();
            // In the middle of its line.
            for length in 1..line.len() - 1 {
                let fault = pass(&mut checker.clone(), &line[..length]).map(|r| r.sequence);
                assert!(fault.is_err(), "{name}: {length} bytes of record {next}");
            }
            let end = checker.end();
            let record = pass(&mut checker, &line[..line.len() - 1]).expect("all but the newline");
            if before.as_ref().is_some_and(|before| belongs_to(before, &record)) {
                let fault = end.expect_err("the rest of what was decided together");
                assert_eq!((fault.kind, fault.sequence), (FaultKind::Order, Some(next)), "{name}");
                found += 1;
            } else if before.is_some() {
                assert_eq!(end, Ok(()), "{name}: before record {}", record.sequence);
            }
            before = Some(record);
        }
    }
    assert!(found > 30, "{found} records are the rest of a decision");
    assert_eq!(verified(b""), (0, Some(Sequence(1))), "nothing is no ledger");
}
