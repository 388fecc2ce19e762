//! Simulated identities doing everything at once, in simulated time.
//!
//! The core and a [`naive`] second model get the same commands, and must agree on every answer
//! and every event; what must never be seen in a ledger is checked after every event. Crashes and
//! failing appends are part of the play. Everything follows from a seed, which a failure names.

mod auditor;
mod coverage;
mod judge;
mod lawful;
mod naive;
mod notes;
mod notes_world;
mod past;
#[cfg(feature = "planted-bugs")]
mod planted;
mod restart;
pub(crate) mod rng;
mod run;
mod timeline;
mod translate;
mod why;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use pearing::ledger::Hash;

use coverage::Coverage;
use run::Run;

const SEEDS: u64 = 2_000;
const STEPS_PER_SEED: u64 = 500;
const THREADS: usize = 2;

/// Plays a seed. The error tells what is wrong and what led to it.
fn play(seed: u64, steps: u64) -> Result<(Coverage, Hash), String> {
    let mut run = Run::new(seed);
    // The core asserts its invariants itself; such a failure must name the seed too.
    let played = catch_unwind(AssertUnwindSafe(|| run.play(steps))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(format!("panicked: {}", text.unwrap_or_default()))
    });
    match played {
        Ok(()) => {
            let hash = run.hash();
            Ok((run.into_coverage(), hash))
        }
        Err(wrong) => Err(format!("seed {seed}: {wrong}\nthe last steps:\n{}", run.tell())),
    }
}

#[test]
fn both_models_agree_and_all_invariants_hold() {
    let next_seed = AtomicU64::new(0);
    let play_all = || -> Result<Coverage, String> {
        let mut coverage = Coverage::default();
        loop {
            let seed = next_seed.fetch_add(1, Ordering::Relaxed);
            if seed >= SEEDS {
                return Ok(coverage);
            }
            coverage.add(play(seed, STEPS_PER_SEED)?.0);
        }
    };
    let mut coverage = Coverage::default();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(play_all)).collect();
        for thread in threads {
            let played = thread.join().expect("panics are caught and told");
            coverage.add(played.unwrap_or_else(|wrong| panic!("{wrong}")));
        }
    });
    println!("{coverage}");
    assert!(coverage.steps >= SEEDS * STEPS_PER_SEED, "{} steps", coverage.steps);
    assert_eq!(coverage.missing(), Vec::<String>::new(), "never occurred");
}

#[test]
fn the_same_seed_makes_the_same_bytes() {
    for seed in [1, 7, 42, 1_000_003, u64::MAX] {
        let hash = |seed| play(seed, 2_000).unwrap_or_else(|wrong| panic!("{wrong}")).1;
        assert_eq!(hash(seed), hash(seed), "seed {seed}");
    }
}
