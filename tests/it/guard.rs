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

use std::fs;
use std::path::Path;

use crate::support::pearing_cli;

/// A guard, as a user gets it.
fn printed(home: &Path, target: &str) -> String {
    let output = pearing_cli(home).args(["print-guard", target]).output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("it is text")
}

/// The lines of the README's example that begins with this one, as they are typed.
#[track_caller]
fn example(first: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = fs::read_to_string(path).expect("the README is there");
    let lines = readme.lines().map(|line| line.strip_prefix("    "));
    let from = lines.skip_while(|line| line.is_none_or(|line| !line.starts_with(first)));
    let lines: Vec<&str> = from.map_while(|line| line).collect();
    assert!(!lines.is_empty(), "the README has no example that begins with {first}");
    lines.join("\n")
}

/// What the README's table of resets says of a target.
#[track_caller]
fn reset(target: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = fs::read_to_string(path).expect("the README is there");
    let table = readme.lines().skip_while(|line| *line != "| target | how to reset |");
    let row = table.into_iter().find(|line| line.starts_with(&format!("| {target} |")));
    row.expect("it is in the table").split('`').nth(1).expect("it is typed").to_owned()
}
