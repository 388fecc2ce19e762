//! Pictures of random ledgers: each can be drawn, of any part, and shows every hold once.

use std::collections::BTreeMap;

use pearing::audit::timeline::{Colours, Range, Timeline, svg, terminal};
use pearing::domain::event::Event;
use pearing::domain::id::Sequence;
use pearing::domain::name::LockName;
use pearing::domain::scope::Scope;
use pearing::ledger::Ledger as _;
use pearing::projection::as_of::AsOf;

use super::run::Run;

const SEEDS: u64 = 12;
const STEPS_PER_SEED: u64 = 400;

/// More than any of these ledgers has.
const TICKETS_MAX: usize = 100_000;

fn picture(
    run: &Run,
    scope: &Scope,
    lock_name: Option<&LockName>,
    range: Range,
    most: usize,
) -> String {
    let until = (run.ledger.head().sequence, run.now);
    let timeline = Timeline::read(&run.ledger, scope, lock_name, range, until, most)
        .unwrap_or_else(|unread| panic!("{scope} {lock_name:?} {range:?}: {unread}"));
    for width in [40, 100] {
        let text = terminal(&timeline, width, Colours::Plain);
        assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
    }
    svg(&timeline)
}

/// The fence tokens of the bars in the lanes, by lock.
fn lanes(picture: &str) -> BTreeMap<String, Vec<u64>> {
    let document = roxmltree::Document::parse(picture)
        .unwrap_or_else(|error| panic!("it is not well-formed: {error}: {picture}"));
    let mut lanes: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for node in document.descendants() {
        let Some(fence) = node.attribute("data-fence") else { continue };
        let lock = node.ancestors().find_map(|node| node.attribute("data-lock"));
        let lock = lock.expect("a lane is of a lock").to_owned();
        lanes.entry(lock).or_default().push(fence.parse().expect("it is a number"));
    }
    lanes
}

/// The holds of a scope's locks, by their fence tokens, as the events have them.
fn holds(run: &Run, scope: &Scope) -> BTreeMap<String, Vec<u64>> {
    let mut holds: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for stored in run.ledger.records(Sequence::ZERO, usize::MAX).expect("it can be read") {
        let record = stored.decode().expect("it was written here");
        let (lock, fence) = match &record.event {
            Event::LockAcquired(e) => (&e.lock_name, e.fence_token),
            Event::LockPromoted(e) => (&e.lock_name, e.fence_token),
            _ => continue,
        };
        let (of, _) = record.event.lock_and_ticket().expect("it is about a ticket");
        if of.scope == *scope && fence.0 == record.sequence {
            holds.entry(lock.to_string()).or_default().push(fence.0.0);
        }
    }
    holds
}

#[test]
fn every_hold_of_a_random_ledger_has_one_bar_with_its_fence() {
    let (mut drawn, mut bars) = (0, 0);
    for seed in 0..SEEDS {
        println!("seed {seed}");
        let mut run = Run::new(seed);
        run.play(STEPS_PER_SEED).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        let scopes = run.world.scopes.clone();
        for scope in &scopes {
            let expected = holds(&run, scope);
            let all = picture(&run, scope, None, Range::default(), TICKETS_MAX);
            assert_eq!(lanes(&all), expected, "{scope}");
            bars += expected.values().map(Vec::len).sum::<usize>();
            for lock_name in run.world.lock_names.clone() {
                let one = picture(&run, scope, Some(&lock_name), Range::default(), TICKETS_MAX);
                let expected = expected.get(lock_name.as_str()).cloned().unwrap_or_default();
                let found = lanes(&one).remove(lock_name.as_str()).unwrap_or_default();
                assert_eq!(found, expected, "{lock_name} in {scope}");
            }
            // Of any part, and of less than there is, there is a picture too.
            for _ in 0..5 {
                let head = run.ledger.head().sequence.0;
                let mut ends = [run.rng.below(head + 1), run.rng.below(head + 1)];
                ends.sort_unstable();
                let [from, to] = ends.map(|end| Some(AsOf::Sequence(Sequence(end))));
                let most = 1 + run.rng.index(30);
                lanes(&picture(&run, scope, None, Range { from, to }, most));
                drawn += 1;
            }
        }
    }
    println!("{drawn} parts, {bars} holds");
    assert!(bars > 300 && drawn > 100, "{drawn} parts, {bars} holds");
}
