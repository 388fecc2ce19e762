//! The fence guards against the real thing: PostgreSQL, Redis, Git, and an HTTP service.
//!
//! `scripts/setup tests` installs what runs there. One that is missing is a failure, never a test
//! less. Each runs in a folder of its own, on a socket in it, and ends with its test.

mod drill;
mod git;
mod http;
mod postgres;
mod redis;
mod zombie;

use std::path::Path;

use crate::support::pearing_cli;

/// A guard, as a user gets it.
fn printed(home: &Path, target: &str) -> String {
    let output = pearing_cli(home).args(["print-guard", target]).output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("it is text")
}
