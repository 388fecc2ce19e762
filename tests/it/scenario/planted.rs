//! That the scenarios find each known fault of the core when it is switched on.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pearing::domain::planted::{Planted, plant};

use super::{FILES, parse, run, text_of};

#[test]
fn each_planted_fault_fails_a_scenario() {
    for fault in Planted::ALL {
        let mut failed = Vec::new();
        for name in FILES {
            let script = parse::script(name, &text_of(name)).expect("the file can be read");
            for scenario in &script.scenarios {
                plant(Some(fault));
                // The core itself stops at a broken rule, which is a find as well.
                let played = catch_unwind(AssertUnwindSafe(|| run::play(scenario).is_ok()));
                plant(None);
                if !matches!(played, Ok(true)) {
                    failed.push(format!("{name}: {}", scenario.title));
                }
            }
        }
        assert!(!failed.is_empty(), "no scenario finds {fault:?}");
        println!("{fault:?}: {} scenarios, such as {:?}", failed.len(), failed[0]);
    }
}
