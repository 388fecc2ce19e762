//! The lengths that a lease and a wait may have, as the JSON of a request says them.

use std::fmt::Debug;

use pearing::domain::time::{LeaseSeconds, WaitSeconds};
use serde::de::DeserializeOwned;

/// What is no whole number of seconds, however it is written.
const NO_SECONDS: [&str; 14] = [
    "-1",
    "-0.5",
    "5.5",
    "60.0",
    "6e1",
    "1e9",
    "1e308",
    "\"60\"",
    "null",
    "true",
    "[60]",
    "{}",
    "18446744073709551616",
    "NaN",
];

fn refused<T: DeserializeOwned + Debug>(texts: &[&str]) {
    for text in texts {
        let read = serde_json::from_str::<T>(text);
        assert!(read.is_err(), "{text} was read as {read:?}");
    }
}

#[test]
fn a_lease_is_a_whole_number_from_5_to_300() {
    refused::<LeaseSeconds>(&NO_SECONDS);
    refused::<LeaseSeconds>(&["0", "4", "301", "4294967301", "18446744073709551615"]);
    for seconds in 5..=300_u32 {
        let read: Option<LeaseSeconds> = serde_json::from_str(&seconds.to_string()).ok();
        assert_eq!(read.map(LeaseSeconds::get), Some(seconds));
    }
    assert_eq!(LeaseSeconds::default().get(), 60);
}

#[test]
fn a_wait_is_a_whole_number_from_0_to_3600() {
    refused::<WaitSeconds>(&NO_SECONDS);
    refused::<WaitSeconds>(&["3601", "4294967296", "18446744073709551615"]);
    for seconds in 0..=3600_u32 {
        let read: Option<WaitSeconds> = serde_json::from_str(&seconds.to_string()).ok();
        assert_eq!(read.map(WaitSeconds::get), Some(seconds));
    }
    assert_eq!(WaitSeconds::default().get(), 0);
}
