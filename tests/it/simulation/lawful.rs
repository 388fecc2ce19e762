//! What the pipeline wrote is what the rules make of it, event by event: whatever the seed, a
//! verification finds nothing wrong. And a ledger that was changed, with a chain that was made to
//! fit, is not lawful, wherever an event says something that was not decided.

use pearing::audit::{Fault, FaultKind, Silent, verify};
use pearing::domain::event::{Event, Record};
use pearing::domain::id::Sequence;
use pearing::ledger::codec::decode;
use pearing::ledger::{Hash, Ledger as _, Stored};

use super::run::Run;

const SEEDS: u64 = 120;
const STEPS_PER_SEED: u64 = 500;
const CHANGED_SEEDS: u64 = 12;

fn played(seed: u64) -> Run {
    let mut run = Run::new(seed);
    run.play(STEPS_PER_SEED).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
    run
}

#[test]
fn every_ledger_that_the_pipeline_writes_is_good() {
    let mut records = 0;
    for seed in 0..SEEDS {
        let run = played(seed);
        let found = verify::ledger(&run.ledger, &mut Silent, |_| Ok(())).expect("it can be read");
        assert_eq!(found.fault, None, "seed {seed}");
        assert_eq!(found.sequence, run.ledger.head().sequence, "seed {seed}");
        records += found.records;
    }
    println!("{records} records are lawful");
    assert!(records > 20_000, "{records}");
}

/// The records as text, with a chain that fits.
fn text(records: &[Record]) -> Vec<u8> {
    let (mut text, mut hash) = (Vec::new(), Hash::ZERO);
    for record in records {
        let stored = Stored::new(&hash, record);
        hash = stored.hash;
        text.extend_from_slice(format!("{hash} ").as_bytes());
        text.extend_from_slice(&stored.bytes);
        text.push(b'\n');
    }
    text
}

fn fault(records: &[Record]) -> Option<Fault> {
    let text = text(records);
    verify::text(&*text, &mut Silent, |_| Ok(())).expect("it is in memory").fault
}

/// Another record in its place that says something else, if one is made of it here.
fn changed(record: &Record) -> Option<Record> {
    let mut other = record.clone();
    match &mut other.event {
        Event::LockAcquired(e) => e.lease_expires_at = e.lease_expires_at.plus_seconds(1),
        Event::LockPromoted(e) => e.lease_expires_at = e.lease_expires_at.plus_seconds(1),
        Event::LockHeartbeat(e) => e.lease_expires_at = e.lease_expires_at.plus_seconds(1),
        Event::LockQueued(e) => e.queue_position += 1,
        Event::LockContended(e) => e.holder.fence_token.0 = e.holder.fence_token.0.next(),
        Event::LockReleased(e) => e.depth += 1,
        Event::LockExpired(e) => e.depth += 1,
        Event::LockBroken(e) => e.depth += 1,
        Event::LockDeadlockRejected(e) => e.cycle.reverse(),
        Event::LockWaitTimedOut(e) => e.wait_expires_at = e.wait_expires_at.plus_seconds(1),
        _ => return None,
    }
    (other != *record).then_some(other)
}

#[test]
fn an_event_that_was_not_decided_is_found_though_its_chain_fits() {
    let (mut changes, mut kinds) = (0, std::collections::BTreeSet::new());
    for seed in 0..CHANGED_SEEDS {
        let run = played(seed);
        let stored = run.ledger.records(Sequence::ZERO, usize::MAX).expect("it can be read");
        let records: Vec<Record> =
            stored.iter().map(|stored| decode(&stored.bytes).expect("it was written")).collect();
        assert_eq!(fault(&records), None, "seed {seed}");
        for (at, record) in records.iter().enumerate().step_by(7) {
            let Some(other) = changed(record) else { continue };
            let mut records = records.clone();
            records[at] = other;
            let found = fault(&records).unwrap_or_else(|| panic!("seed {seed}: {record:?}"));
            assert_eq!(found.kind, FaultKind::Rule, "seed {seed}: {found}");
            assert_eq!(found.sequence, Some(record.sequence), "seed {seed}: {found}");
            changes += 1;
            kinds.insert(record.event.type_name());
        }
    }
    println!("{changes} changes of {} kinds were found", kinds.len());
    assert!(changes > 200 && kinds.len() >= 8, "{changes} changes of {kinds:?}");
}
