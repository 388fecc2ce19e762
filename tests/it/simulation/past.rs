//! The past, at every sequence of random ledgers: what `as_of` finds is what a fresh replay of
//! the ledger up to there makes.

use pearing::domain::State;
use pearing::domain::event::{Event, Record};
use pearing::domain::id::Sequence;
use pearing::domain::scope::{LockKey, Scope};
use pearing::domain::thread::{Thread, ThreadKey, ThreadState};
use pearing::domain::ticket::Ticket;
use pearing::domain::time::Time;
use pearing::ledger::Ledger;
use pearing::projection::as_of::{AsOf, fold, resolve};
use pearing::projection::history::Rows;
use pearing::projection::thread;

use super::auditor::Auditor;
use super::run::Run;

const SEEDS: u64 = 12;
const STEPS_PER_SEED: u64 = 500;

/// The ledger after one of its records.
struct Point {
    record: Record,
    state: State,
    /// Whether an append can end here, by what is seen in the events alone.
    is_at_rest: bool,
}

/// Every point of a ledger, by a replay from its first record.
fn points(ledger: &dyn Ledger) -> Vec<Point> {
    let (mut state, mut auditor) = (State::default(), Auditor::default());
    let stored = ledger.records(Sequence::ZERO, usize::MAX).expect("it can be read");
    let records = stored.iter().map(|stored| stored.decode().expect("it was written here"));
    let point = |record: Record| {
        state.apply(&record);
        auditor.see(&record).expect("the ledger is sound");
        Point { state: state.clone(), is_at_rest: auditor.check_rest().is_ok(), record }
    };
    records.map(point).collect()
}

/// Whether a record was decided together with the one before it though the invariants hold
/// between the two.
fn belongs_to_the_one_before(record: &Record) -> bool {
    match &record.event {
        Event::LockWaitCancelled(cancelled) => cancelled.reason.is_some(),
        Event::LockBroken(_) | Event::LedgerRecovered(_) | Event::LockPromoted(_) => true,
        _ => false,
    }
}

/// A lock with its tickets, those that hold and those that wait.
fn lock(state: &State, key: &LockKey) -> Option<(Vec<Ticket>, Vec<Ticket>)> {
    let lock = state.lock(key)?;
    let ticket = |id| state.ticket(id).expect("a lock's tickets are alive").clone();
    let holds = lock.hold.tickets.iter().copied().map(ticket).collect();
    Some((holds, lock.queue().map(ticket).collect()))
}

fn check_locks(run: &Run, state: &State, last: Sequence) {
    let told = |scope: &Scope, found: &State| {
        let keys = found.locks_in(scope).map(|(key, _)| key.clone());
        keys.map(|key| (lock(found, &key), key)).collect::<Vec<_>>()
    };
    for scope in &run.world.scopes {
        let found = fold(&run.ledger, Rows::Scope(scope), last).expect("it can be read");
        assert_eq!(told(scope, &found), told(scope, state), "{scope} at {last}");
        for lock_name in &run.world.lock_names {
            let key = LockKey { scope: scope.clone(), lock_name: lock_name.clone() };
            let found = fold(&run.ledger, Rows::Lock(&key), last).expect("it can be read");
            assert_eq!(lock(&found, &key), lock(state, &key), "{key:?} at {last}");
        }
    }
}

fn check_threads(run: &Run, points: &[Point], last: Sequence) {
    let events = points.iter().map(|point| &point.record).filter(|record| record.sequence <= last);
    let mut keys: Vec<ThreadKey> =
        points.iter().filter_map(|point| point.record.event.thread()).collect();
    keys.sort();
    keys.dedup();
    for key in keys {
        let mut replayed: Option<Thread> = None;
        for record in events.clone().filter(|record| record.event.thread().as_ref() == Some(&key)) {
            Thread::apply(&mut replayed, record.clone());
        }
        let row = thread::row_at(&run.ledger, &key, last).expect("it can be read");
        let of_row = row.map(|(row, _)| (row.state, row.replies_count as usize, row.updated_at));
        let of_thread = |thread: &Thread| -> (ThreadState, usize, Time) {
            (thread.state, thread.replies.len(), thread.updated_at)
        };
        assert_eq!(of_row, replayed.as_ref().map(of_thread), "{key:?} at {last}");
        let read = thread::read(&run.ledger, &key, last).expect("it can be read");
        assert_eq!(read, replayed, "{key:?} at {last}");
    }
}

/// Where the group ends that the record at `index` stands in: an append can end there, and
/// nowhere before.
fn check_moment(points: &[Point], index: usize, end: Sequence) -> usize {
    let asked = points[index].record.sequence;
    let found = points.iter().position(|point| point.record.sequence == end);
    let found = found.unwrap_or_else(|| panic!("as_of {asked} says {end}, which there isn't"));
    assert!(found >= index && points[found].is_at_rest, "as_of {asked} says {end}");
    for at in index..found {
        let goes_on = belongs_to_the_one_before(&points[at + 1].record);
        assert!(!points[at].is_at_rest || goes_on, "as_of {asked} says {end}, which is too late");
    }
    found
}

#[test]
fn the_past_at_each_sequence_is_what_a_fresh_replay_to_it_makes() {
    let (mut moments, mut inside) = (0, 0);
    for seed in 0..SEEDS {
        println!("seed {seed}");
        let mut run = Run::new(seed);
        run.play(STEPS_PER_SEED).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        let points = points(&run.ledger);
        let (head, now) = (run.ledger.head().sequence, run.now);
        let moment = |as_of| {
            let moment = resolve(&run.ledger, as_of, head, now).expect("it can be read");
            moment.expect("it is not after the head").sequence
        };
        for (index, point) in points.iter().enumerate() {
            let asked = point.record.sequence;
            let end = moment(AsOf::Sequence(asked));
            let found = check_moment(&points, index, end);
            (moments, inside) = (moments + 1, inside + u64::from(found > index));
            check_locks(&run, &points[found].state, end);
            check_threads(&run, &points, end);
            // By the time of the last record of that time it is the same moment.
            let next = points.get(index + 1);
            if next.is_none_or(|next| next.record.time > point.record.time) {
                assert_eq!(moment(AsOf::Time(point.record.time)), end, "as_of a time");
            }
        }
        assert_eq!(moment(AsOf::Sequence(Sequence::ZERO)), Sequence::ZERO);
    }
    println!("{moments} moments, {inside} of them inside of an append");
    assert!(moments > 1_000 && inside > 50, "{moments} moments, {inside} inside");
}
