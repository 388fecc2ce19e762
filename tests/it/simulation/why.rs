//! Why each ticket of random ledgers went as it did: every ticket that ever was has a story, what
//! it names as evidence is there and bears on it, and nobody is shown an event that it may not see.

use std::collections::{BTreeMap, BTreeSet};

use pearing::audit::why::{Asker, Found, read, why};
use pearing::domain::State;
use pearing::domain::event::{Event, Record, Subject};
use pearing::domain::id::{Sequence, TicketId};
use pearing::domain::name::{Actor, UserName};
use pearing::domain::scope::LockKey;
use pearing::feed::filter::may_see;
use pearing::ledger::memory::MemoryLedger;
use pearing::ledger::{Append, Ledger};
use pearing::projection;
use pearing::wire::why::Why;

use super::run::Run;

const SEEDS: u64 = 60;
const STEPS_PER_SEED: u64 = 500;
const PAST_SEEDS: u64 = 24;

fn played(seed: u64) -> Run {
    let mut run = Run::new(seed);
    run.play(STEPS_PER_SEED).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
    run
}

fn records(ledger: &dyn Ledger) -> BTreeMap<Sequence, Record> {
    let stored = ledger.records(Sequence::ZERO, usize::MAX).expect("it can be read");
    let decoded = stored.iter().map(|stored| stored.decode().expect("it was written here"));
    decoded.map(|record| (record.sequence, record)).collect()
}

/// Every ticket that ever was, with its lock.
fn tickets<'a>(records: impl Iterator<Item = &'a Record>) -> BTreeMap<TicketId, LockKey> {
    records
        .filter_map(|record| record.event.lock_and_ticket())
        .map(|(lock, id)| (id, lock))
        .collect()
}

/// The numbers that stand in parentheses.
fn shown(text: &str) -> BTreeSet<Sequence> {
    let parts = text.split('(').skip(1).filter_map(|part| part.split_once(')'));
    parts.filter_map(|(number, _)| number.parse().ok().map(Sequence)).collect()
}

/// Whether an event can bear on a ticket of a lock at all.
fn can_bear(event: &Event, lock: &LockKey) -> bool {
    let is_access = matches!(
        event,
        Event::UserDisabled(_)
            | Event::TeamMemberAdded(_)
            | Event::TeamMemberRemoved(_)
            | Event::AccessGranted(_)
            | Event::AccessRevoked(_)
    );
    is_access
        || event.concerns() == Subject::Ledger
        || event.lock_and_ticket().is_some_and(|(of, _)| of == *lock)
}

fn check(why: &Why, lock: &LockKey, records: &BTreeMap<Sequence, Record>) {
    let tell = || format!("{} {lock:?}:\n{why}", why.ticket_id);
    let mut last = Sequence::ZERO;
    assert!(why.summary.ends_with('.'), "{}", tell());
    for step in &why.steps {
        assert!(step.text.ends_with('.') && !step.text.contains("  "), "{}", tell());
        assert!(last <= step.sequence, "the steps are in no order: {}", tell());
        last = step.sequence;
        let evidence: BTreeSet<Sequence> = step.evidence.iter().copied().collect();
        assert!(evidence.contains(&step.sequence), "{}", tell());
        assert!(shown(&step.text).is_subset(&evidence), "{}", tell());
        assert_eq!(step.time, records[&step.sequence].time, "{}", tell());
        for sequence in evidence {
            let event = &records.get(&sequence).unwrap_or_else(|| panic!("{}", tell())).event;
            // The circle of a deadlock is about other locks, and a live ticket ends with the head.
            let is_apart = why.drawing.is_some() || sequence == why.sequence;
            assert!(is_apart || can_bear(event, lock), "{sequence} {event:?}: {}", tell());
        }
    }
}

#[test]
fn every_ticket_that_ever_was_has_a_story_with_evidence() {
    let (mut stories, mut states) = (0, BTreeMap::new());
    for seed in 0..SEEDS {
        let run = played(seed);
        let records = records(&run.ledger);
        for (id, lock) in tickets(records.values()) {
            let told = why(&run.ledger, &run.live, id).expect("it can be read");
            let told = told.unwrap_or_else(|| panic!("seed {seed}: {id} has no story"));
            check(&told, &lock, &records);
            assert_eq!((told.ticket_id, told.sequence), (id, run.live.head()));
            *states.entry(told.state.as_str()).or_insert(0) += 1;
            stories += 1;
        }
    }
    println!("{stories} stories: {states:?}");
    assert_eq!(states.len(), 9, "each state is told of: {states:?}");
}

/// The ledger and the state up to a sequence, made anew.
fn beginning(records: &[Record], of: &dyn Ledger) -> (MemoryLedger, State) {
    let (ledger, mut state) = (MemoryLedger::default(), State::default());
    let stored = of.records(Sequence::ZERO, records.len()).expect("it can be read");
    let mut puts = Vec::new();
    for record in records {
        let ended = state.apply(record);
        puts.extend(projection::puts(record, ended.as_ref()));
    }
    let append = Append { expected_head: Sequence::ZERO, records: stored, puts };
    ledger.append(&append).expect("the memory doesn't fail");
    (ledger, state)
}

#[test]
fn a_ledger_that_has_gone_on_tells_the_same_story_of_its_past() {
    let mut stories = 0;
    for seed in 0..PAST_SEEDS {
        let mut run = played(seed);
        let all: Vec<Record> = records(&run.ledger).into_values().collect();
        for _ in 0..3 {
            let len = 1 + run.rng.index(all.len());
            let (ledger, state) = beginning(&all[..len], &run.ledger);
            for id in tickets(all[..len].iter()).into_keys() {
                let then = why(&ledger, &state, id).expect("it can be read").expect("a story");
                let found = Found::live(&state, id).or_else(|| {
                    Found::ended(&run.ledger, state.head(), id).expect("it can be read")
                });
                let found = found.expect("it was there already");
                // A ticket that has ended since is live in no newer state.
                let live = |id| run.live.ticket(id).cloned();
                let now = read(&run.ledger, &live, found).expect("it can be read");
                assert_eq!(now.tell(Asker::EVERYTHING), then, "seed {seed}, {len} records");
                stories += 1;
            }
        }
    }
    println!("{stories} stories of the past");
    assert!(stories > 1000, "{stories}");
}

/// What an asker is told, if it may read the ticket at all.
fn told_to(run: &Run, user: &UserName, id: TicketId, lock: &LockKey) -> Option<Why> {
    let (state, access) = (&run.live, run.live.access());
    let found = Found::live(state, id)
        .or_else(|| Found::ended(&run.ledger, state.head(), id).expect("it can be read"))?;
    if found.ticket.owner != *user && !access.can_read(user, &lock.scope) {
        return None;
    }
    let life = read(&run.ledger, &|id| state.ticket(id).cloned(), found).expect("it can be read");
    let is_in_service = access.is_in_service(user);
    Some(life.tell(Asker {
        user: Some(user),
        reads: &|scope| access.can_read(user, scope),
        sees: &|event| is_in_service && may_see(access, user, event),
    }))
}

/// Whether an event is about a ticket of a user's own.
fn is_own(event: &Event, user: &UserName) -> bool {
    let data = serde_json::to_value(event).expect("its keys are names of fields");
    event.lock_and_ticket().is_some() && data["owner"] == user.as_str()
}

#[test]
fn nobody_is_shown_an_event_that_it_may_not_see() {
    let (mut full, mut less) = (0, 0);
    for seed in 0..SEEDS {
        let run = played(seed);
        let (access, records) = (run.live.access(), records(&run.ledger));
        for (id, lock) in tickets(records.values()) {
            let all = why(&run.ledger, &run.live, id).expect("it can be read").expect("a story");
            for user in &run.world.users {
                let Some(told) = told_to(&run, user, id, &lock) else { continue };
                check(&told, &lock, &records);
                for sequence in told.steps.iter().flat_map(|step| &step.evidence) {
                    let event = &records[sequence].event;
                    let is_seen = access.is_in_service(user) && may_see(access, user, event)
                        || is_own(event, user)
                        || event.concerns() == Subject::Ledger
                        || *sequence == told.sequence;
                    assert!(is_seen, "seed {seed}: {user} sees {sequence} {event:?} in\n{told}");
                }
                if access.can_read(user, &lock.scope) {
                    full += 1;
                } else {
                    // A circle, and what took the access away, are judged by themselves.
                    let may_name = |other: &UserName| {
                        let shown = told.steps.iter().flat_map(|step| &step.evidence);
                        let mut actors = shown.map(|sequence| &records[sequence].actor);
                        told.drawing.is_some() || actors.any(|by| *by == actor(other))
                    };
                    let others = run.world.users.iter().filter(|o| *o != user && !may_name(o));
                    let named: Vec<_> = others.filter(|other| names(&told, other)).collect();
                    assert_eq!(named, Vec::<&UserName>::new(), "seed {seed}: {user} reads\n{told}");
                    less += usize::from(told != all);
                }
            }
        }
    }
    println!("{full} stories told in full, {less} told with less");
    assert!(full > 1000 && less > 50, "{full} {less}");
}

fn actor(user: &UserName) -> Actor {
    Actor::User(user.clone())
}

/// Whether a story names a user as a word of its own.
fn names(why: &Why, user: &UserName) -> bool {
    let mut texts: Vec<&str> = why.steps.iter().map(|step| step.text.as_str()).collect();
    texts.extend([why.summary.as_str(), why.drawing.as_deref().unwrap_or_default()]);
    let is_part = |c: char| c.is_alphanumeric() || "._-/".contains(c);
    let mut words = texts.iter().flat_map(|text| text.split(|c: char| !is_part(c)));
    words.any(|word| word.trim_end_matches('.') == user.as_str())
}
