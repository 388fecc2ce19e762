//! Programs that others wrote, each with the real server: they follow its feed, stand between it
//! and its clients, and read its contract.
//!
//! `scripts/setup tests` installs them at exact versions. One that is missing is a failure, never
//! a test less. Nothing here asks anything beyond this machine.

mod browser;
mod contract;
mod feeds;
mod nginx;
mod schemathesis;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A file of what runs outside of the tests' own program.
fn file(name: &str) -> PathBuf {
    top().join("tests/outside").join(name)
}

/// A folder that `scripts/setup tests` has filled, of the very versions that are asked for now.
fn tools(name: &str, versions: &str) -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let folder = cache.expect("HOME is set").join("pearing/tools").join(name);
    let installed = fs::read(folder.join("installed")).ok();
    let wanted = fs::read(file(versions)).expect("the versions are in the repository");
    assert!(
        installed.as_ref() == Some(&wanted),
        "{} is missing or has other versions; run: scripts/setup tests",
        folder.display(),
    );
    folder
}

/// The Python that has the packages of `requirements.txt`.
fn python() -> PathBuf {
    tools("python", "requirements.txt").join("bin/python")
}

/// A Python script.
pub(crate) fn python_script(name: &str) -> Command {
    let mut command = Command::new(python());
    command.arg(file(name));
    command
}

/// A script of Node, which finds the packages of `package.json`.
pub(crate) fn node_script(name: &str) -> Command {
    let mut command = Command::new("node");
    command.arg(file(name));
    command.env("NODE_PATH", tools("node", "package-lock.json").join("node_modules"));
    command
}

/// Runs a command to its end, which is forced after so many seconds. All that it printed.
#[track_caller]
pub(crate) fn succeed(command: &Command, seconds_max: u32) -> String {
    let mut bounded = Command::new("timeout");
    bounded.args(["--kill-after=5", &seconds_max.to_string()]).arg(command.get_program());
    bounded.args(command.get_args()).current_dir(command.get_current_dir().unwrap_or(top()));
    let set = command.get_envs().map(|(name, value)| (name, value.map(OsString::from)));
    bounded.envs(set.filter_map(|(name, value)| Some((name, value?))));
    // No compiled scripts in the repository.
    bounded.env("PYTHONDONTWRITEBYTECODE", "1");
    let output = bounded.output().expect("timeout is part of the system");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let said = text(&output.stdout) + &text(&output.stderr);
    // Without what is set for it: a token is nobody's business.
    let arguments: Vec<_> = command.get_args().collect();
    assert!(output.status.success(), "{arguments:?}: {}\n{said}", output.status);
    said
}
