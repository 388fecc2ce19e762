//! The simulator is itself tested: it must find every fault that can be planted in the core.

use pearing::domain::planted::{Planted, plant};

use super::play;

/// More seeds than any of the faults needs.
const SEEDS: u64 = 200;
const STEPS_PER_SEED: u64 = 500;

/// The first failure of the simulator with a fault planted in this thread.
fn first_failure(fault: Option<Planted>) -> Option<String> {
    plant(fault);
    let failure = (0..SEEDS).find_map(|seed| play(seed, STEPS_PER_SEED).err());
    plant(None);
    failure
}

#[test]
fn every_planted_fault_is_found() {
    for fault in Planted::ALL {
        let failure = first_failure(Some(fault));
        let failure = failure.unwrap_or_else(|| panic!("{fault:?} was not found"));
        println!("{fault:?}: {}", failure.lines().take(3).collect::<Vec<_>>().join(" | "));
    }
}

#[test]
fn without_a_planted_fault_nothing_is_found() {
    assert_eq!(first_failure(None), None);
}
