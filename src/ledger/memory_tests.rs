//! The memory ledger keeps the trait's promises, and fails as it is told.

use super::super::samples::append_to;
use super::super::{Hash, Put, keys};
use super::*;

fn put(table: Table, key: &[u8], value: &[u8]) -> Put {
    Put { table, key: key.to_vec(), value: value.to_vec() }
}

fn sequences(ledger: &dyn Ledger, after: u64, most: usize) -> Vec<u64> {
    let records = ledger.records(Sequence(after), most).expect("memory can be read");
    records.iter().map(|r| r.sequence.0).collect()
}

#[test]
fn what_was_appended_is_read_back() {
    let ledger = MemoryLedger::default();
    assert_eq!(ledger.head(), Head { sequence: Sequence::ZERO, hash: Hash::ZERO });
    let append = append_to(&ledger, 5, vec![]);
    ledger.append(&append).expect("the head is right");
    assert_eq!(ledger.head(), append.records[4].head());
    assert_eq!(ledger.records(Sequence::ZERO, 9), Ok(append.records));
    assert_eq!(sequences(&ledger, 2, 2), [3, 4]);
    assert_eq!(sequences(&ledger, 5, 2), [0_u64; 0]);
}

#[test]
fn an_append_to_another_head_writes_nothing() {
    let ledger = MemoryLedger::default();
    let mut append = append_to(&ledger, 2, vec![]);
    append.puts = vec![put(Table::Meta, b"k", b"v")];
    append.expected_head = Sequence(1);
    let moved = LedgerError::HeadMoved { expected: Sequence(1), actual: Sequence::ZERO };
    assert_eq!(ledger.append(&append), Err(moved));
    assert_eq!(ledger.head(), Head::default());
    assert_eq!(ledger.get(Table::Meta, b"k"), Ok(None));
    append.expected_head = Sequence::ZERO;
    ledger.append(&append).expect("a refused append doesn't stop the ledger");
}

#[test]
#[should_panic(expected = "record 2 must not follow record 2")]
fn a_sequence_that_does_not_rise_is_a_bug() {
    let ledger = MemoryLedger::default();
    let mut append = append_to(&ledger, 2, vec![]);
    append.records.push(append.records[1].clone());
    ledger.append(&append).expect("unreachable");
}

#[test]
fn a_sequence_may_jump() {
    let ledger = MemoryLedger::default();
    let mut append = append_to(&ledger, 2, vec![]);
    append.records[1].sequence = Sequence(1 << 40);
    ledger.append(&append).expect("ledger.restored jumps");
    assert_eq!(sequences(&ledger, 0, 9), [1, 1 << 40]);
}

#[test]
fn a_scan_stays_within_its_prefix_and_goes_on_after_a_key() {
    let ledger = MemoryLedger::default();
    let keys: [&[u8]; 6] = [b"", b"a", b"b1", b"b2", b"b3", b"c"];
    let puts = keys.iter().map(|key| put(Table::History, key, b"v")).collect();
    ledger
        .append(&Append { expected_head: Sequence::ZERO, records: vec![], puts })
        .expect("puts alone are an append too");
    let scan = |prefix: &[u8], after: &[u8], most| -> Vec<Vec<u8>> {
        let found = ledger.scan(Table::History, prefix, after, most).expect("memory can be read");
        found.into_iter().map(|(key, _)| key).collect()
    };
    assert_eq!(scan(b"", b"", 9), keys);
    assert_eq!(scan(b"b", b"", 9), [b"b1", b"b2", b"b3"]);
    assert_eq!(scan(b"b", b"b1", 1), [b"b2"]);
    assert_eq!(scan(b"b", b"a", 1), [b"b1"]);
    assert!(scan(b"b", b"b3", 9).is_empty());
    assert!(scan(b"b", b"c", 9).is_empty());
    assert_eq!(ledger.scan(Table::Meta, b"", b"", 9), Ok(vec![]));
}

#[test]
fn a_failed_append_stops_the_ledger_and_shows_after_a_crash_whether_it_took_effect() {
    for (fault, head_after) in [(Fault::Lost, 2), (Fault::Uncertain, 4)] {
        let ledger = MemoryLedger::default();
        ledger.fail_append(2, fault);
        ledger.append(&append_to(&ledger, 2, vec![])).expect("the first append");
        let mut append = append_to(&ledger, 2, vec![]);
        append.puts = vec![put(Table::Meta, &keys::meta("k"), b"v")];
        assert!(matches!(ledger.append(&append), Err(LedgerError::Failed { .. })));
        assert_eq!(ledger.append(&append), Err(LedgerError::Stopped));
        assert_eq!(ledger.head().sequence, Sequence(2), "nothing unsure is seen");

        let after = ledger.crash();
        assert_eq!(after.head().sequence, Sequence(head_after));
        let value = after.get(Table::Meta, &keys::meta("k")).expect("memory can be read");
        assert_eq!(value.is_some(), fault == Fault::Uncertain, "all of it, or nothing");
        after.append(&append_to(&after, 1, vec![])).expect("a restart heals");
        assert_eq!(ledger.crash().head().sequence, Sequence(head_after), "a crash is a copy");
    }
}
