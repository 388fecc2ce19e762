//! Claude Code and Codex at a server: what ties them to it, the gate before their tools, the eye on
//! a ticket, and the doctor. Their files are read as they would read them.

mod doctor;
mod hook;
mod setup;
mod watch;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Server, pearing_cli};

/// Somebody's home, with a login.
struct Home {
    folder: TempDir,
}

/// How a program ended, and what it printed.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    out: String,
    err: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("it prints UTF-8");
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

impl Ended {
    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|why| panic!("{why}: {self:?}"))
    }

    #[track_caller]
    fn done(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }
}

impl Home {
    /// The home of a user who is logged in.
    fn of(server: &Server, user: &str) -> Self {
        let home = Self::empty();
        let mut login = home.cli("login");
        login.args(["--url", server.url()]);
        home.run(&mut login, server.client(user).token()).done();
        home
    }

    fn empty() -> Self {
        Self { folder: tempfile::tempdir().expect("there can be a temporary folder") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|why| panic!("{name}: {why}"))
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("it is in a folder")).expect("it is ours");
        fs::write(path, text).expect("it is ours");
    }

    /// `pearing-cli` with nothing but this home, in it.
    fn cli(&self, line: &str) -> Command {
        let mut command = pearing_cli(self.folder.path());
        command.env_remove("XDG_CONFIG_HOME").env_remove("CODEX_HOME");
        command.env_remove("CLAUDE_CONFIG_DIR").current_dir(self.folder.path());
        command.args(line.split_whitespace());
        command
    }

    fn says(&self, line: &str) -> Ended {
        self.cli(line).output().expect("it runs").into()
    }

    /// Runs a command with this on its stdin.
    fn run(&self, command: &mut Command, input: &str) -> Ended {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it runs");
        // Whoever reads nothing closes it.
        let _ = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
        child.wait_with_output().expect("it ends").into()
    }

    /// The token that a profile keeps.
    fn token(&self, profile: &str) -> String {
        let text = self.read(".config/pearing/config.toml");
        let of = text.split_once(&format!("[profiles.{profile}]")).expect("it is kept").1;
        let token = of.split_once("token = \"").expect("it has one").1;
        token.split('"').next().expect("it ends").to_owned()
    }

    /// Every file of this home but that of the profiles, with its text.
    fn files(&self) -> Vec<(PathBuf, String)> {
        let mut files = Vec::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).expect("it is ours") {
                let path = entry.expect("it is ours").path();
                if path.is_dir() {
                    folders.push(path);
                } else if !is_profiles(&path) {
                    let text = fs::read_to_string(&path).expect("it is text");
                    files.push((path, text));
                }
            }
        }
        files.sort();
        files
    }
}

fn is_profiles(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "pearing")
}

/// The program under test, as its entries name it.
fn program() -> &'static str {
    env!("CARGO_BIN_EXE_pearing-cli")
}
