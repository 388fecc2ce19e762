//! What is found, and that damage is told instead of taken for a bug.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::domain::event::{Event, Record, TeamCreated};
use crate::domain::name::Actor;
use crate::domain::time::Time;
use crate::ledger::memory::MemoryLedger;
use crate::ledger::{Append, Hash, Head, Pair, Put};

/// A ledger that counts how often it is read.
#[derive(Default)]
struct Counting {
    ledger: MemoryLedger,
    reads: AtomicUsize,
}

impl Counting {
    fn over(ledger: MemoryLedger) -> Self {
        Self { ledger, reads: AtomicUsize::new(0) }
    }

    fn reads(&self) -> usize {
        self.reads.swap(0, Ordering::Relaxed)
    }
}

impl Ledger for Counting {
    fn head(&self) -> Head {
        self.ledger.head()
    }

    fn append(&self, append: &Append) -> Result<(), LedgerError> {
        self.ledger.append(append)
    }

    fn records_within(
        &self,
        after: Sequence,
        most: usize,
        bytes: usize,
    ) -> Result<Vec<Stored>, LedgerError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.ledger.records_within(after, most, bytes)
    }

    fn frozen(&self) -> Result<Box<dyn Ledger + '_>, LedgerError> {
        self.ledger.frozen()
    }

    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, LedgerError> {
        self.ledger.get(table, key)
    }

    fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        after: &[u8],
        most: usize,
    ) -> Result<Vec<Pair>, LedgerError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.ledger.scan(table, prefix, after, most)
    }
}

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
        let told = each_record(&ledger, &[sequence], |_| Ok(()));
        assert!(matches!(told, Err(LedgerError::Corrupt { .. })), "{sequence}: {told:?}");
    }
    let ledger = rows(&[keys::history(&lock("x"), Sequence(5))]);
    let told = of_lock(&ledger, &lock("x"), Sequence::ZERO, 10);
    assert!(matches!(told, Err(LedgerError::Corrupt { .. })), "{told:?}");
}

#[test]
fn rows_after_the_moment_are_not_paged_through() {
    let key = |name, sequence| keys::history(&lock(name), Sequence(sequence));
    // Two locks whose events take turns, and a third that has only late ones.
    let turns = (1..=4000).flat_map(|n| [key("x", 2 * n), key("y", 2 * n + 1)]);
    let late = (9000..9100).map(|n| key("z", n));
    let ledger = Counting::over(rows(&turns.chain(late).collect::<Vec<_>>()));
    let scope = lock("x").scope;
    let found = sequences(&ledger, Rows::Lock(&lock("x")), Sequence(5)).expect("it is readable");
    assert_eq!(found, [Sequence(2), Sequence(4)]);
    // The first page, and that there is none after it. All pages would be five.
    assert_eq!(ledger.reads(), 2);
    let found = sequences(&ledger, Rows::Scope(&scope), Sequence(5)).expect("it is readable");
    assert_eq!(found, [2, 3, 4, 5].map(Sequence));
    assert_eq!(ledger.reads(), 4);
    let found = sequences(&ledger, Rows::Scope(&scope), Sequence(9000)).expect("it is readable");
    let all: Vec<Sequence> = (2..=8001).chain([9000]).map(Sequence).collect();
    assert_eq!(found, all);
}

#[test]
fn records_that_lie_close_together_are_read_in_one_go() {
    let team = TeamCreated { team: "a".parse().expect("a team") };
    let (mut hash, mut records) = (Hash::ZERO, Vec::new());
    for sequence in (1..=1000).map(Sequence) {
        let (actor, event) = (Actor::Ledger, Event::TeamCreated(team.clone()));
        let record = Record { sequence, time: Time::default(), actor, event };
        let stored = Stored::new(&hash, &record);
        hash = stored.hash;
        records.push(stored);
    }
    let ledger = Counting::default();
    let append = Append { expected_head: Sequence::ZERO, records, puts: Vec::new() };
    ledger.append(&append).expect("the memory doesn't fail");
    let all: Vec<u64> = (1..=1000).collect();
    let every_third: Vec<u64> = (1..=300).step_by(3).collect();
    for (asked, reads) in [
        (all, 4),
        (every_third, 2),
        (vec![1, 2, 500, 501, 999, 1000], 3),
        (vec![7], 1),
        (vec![], 0),
    ] {
        let asked: Vec<Sequence> = asked.into_iter().map(Sequence).collect();
        let mut found = Vec::new();
        let told = each_record(&ledger, &asked, |record| {
            found.push(record.sequence);
            Ok(())
        });
        assert_eq!((told.is_ok(), found, ledger.reads()), (true, asked, reads));
    }
}
