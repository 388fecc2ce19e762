//! What is found, and that damage is told instead of taken for a bug.

use super::*;
use crate::ledger::memory::MemoryLedger;
use crate::ledger::{Append, Put};

fn lock(name: &str) -> LockKey {
    let scope = "users/ana".parse().expect("a scope");
    LockKey { scope, lock_name: name.parse().expect("a lock's name") }
}

/// A ledger with these rows, and no record.
fn rows(keys: &[Vec<u8>]) -> MemoryLedger {
    let ledger = MemoryLedger::default();
    let put = |key: &Vec<u8>| Put { table: Table::History, key: key.clone(), value: Vec::new() };
    let puts = keys.iter().map(put).collect();
    let append = Append { expected_head: Sequence::ZERO, records: Vec::new(), puts };
    ledger.append(&append).expect("the memory doesn't fail");
    ledger
}

#[test]
fn a_row_without_a_record_is_damage_and_no_panic() {
    for sequence in [Sequence(0), Sequence(5), Sequence(u64::MAX)] {
        let ledger = rows(&[keys::history(&lock("x"), sequence)]);
        let told = record(&ledger, sequence);
        assert!(matches!(told, Err(LedgerError::Corrupt { .. })), "{sequence}: {told:?}");
    }
    let ledger = rows(&[keys::history(&lock("x"), Sequence(5))]);
    let told = of_lock(&ledger, &lock("x"), Sequence::ZERO, 10);
    assert!(matches!(told, Err(LedgerError::Corrupt { .. })), "{told:?}");
}
