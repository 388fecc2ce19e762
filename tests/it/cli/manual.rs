//! Completions and man pages: there for every command, without a token and without a server.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::program;
use crate::support::pearing;

/// The commands that the program's help lists, but for help itself.
fn commands(help: &str) -> BTreeSet<String> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.is_empty());
    let names = listed.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !name.is_empty() && *name != "help").map(str::to_owned).collect()
}

fn printed(home: &TempDir, words: &[&str]) -> String {
    let output = program(home.path(), words).output().expect("it runs");
    assert!(output.status.success() && output.stderr.is_empty(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).expect("it is text")
}

#[test]
fn every_command_has_a_man_page() {
    let home = tempfile::tempdir().expect("a folder");
    let folder = home.path().join("man/man1");
    let out = folder.to_str().expect("a path that is text");
    assert_eq!(printed(&home, &["man", "--out", out]), "");
    let entries = fs::read_dir(&folder).expect("it was made");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string());
    let pages: BTreeSet<String> = names.map(|name| name.expect("a name that is text")).collect();
    let commands = commands(&printed(&home, &["--help"]));
    assert!(commands.len() > 30, "{commands:?}");
    let page = |command: &String| format!("pearing-cli-{command}.1");
    let mut expected: BTreeSet<String> = commands.iter().map(page).collect();
    expected.insert("pearing-cli.1".to_owned());
    assert_eq!(pages, expected);

    let acquire = fs::read_to_string(folder.join("pearing-cli-acquire-lock.1"));
    let acquire = acquire.expect("it is there").replace("\\-", "-");
    assert!(acquire.contains("--lease-seconds") && acquire.contains("5 to 300"), "{acquire}");
    let whole = printed(&home, &["man"]);
    assert_eq!(whole, fs::read_to_string(folder.join("pearing-cli.1")).expect("it is there"));
    assert!(whole.starts_with(".ie") && whole.contains(".TH pearing-cli 1"), "{whole}");
}

#[test]
fn every_shell_has_a_script_that_knows_the_commands() {
    let home = tempfile::tempdir().expect("a folder");
    let commands = commands(&printed(&home, &["--help"]));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = printed(&home, &["completions", shell]);
        for command in &commands {
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
    let refused = program(home.path(), &["completions", "tcsh"]).output().expect("it runs");
    assert_eq!(refused.status.code(), Some(2));
}

/// Asks bash itself what it would offer after some words.
fn offered(home: &TempDir, words: &str) -> BTreeSet<String> {
    let script = home.path().join("completions.bash");
    fs::write(&script, printed(home, &["completions", "bash"])).expect("a file");
    let check = Command::new("bash").arg("-n").arg(&script).status().expect("there is bash");
    assert!(check.success());
    // As bash itself does it: it calls the function that the script has registered.
    let ask = r#"
        source "$1"
        function="$(complete -p pearing-cli | sed 's/.*-F \([^ ]*\).*/\1/')"
        COMP_WORDS=($2 "")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        "$function" pearing-cli "" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let mut bash = Command::new("bash");
    bash.args(["--noprofile", "--norc", "-c", ask, "bash"]).arg(&script).arg(words);
    let output = bash.stdin(Stdio::null()).output().expect("there is bash");
    let text = String::from_utf8(output.stdout).expect("it is text");
    text.lines().map(str::to_owned).collect()
}

#[test]
fn bash_offers_commands_and_the_values_that_are_known() {
    let home = tempfile::tempdir().expect("a folder");
    let set = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<BTreeSet<_>>();
    let roles = offered(&home, "pearing-cli set-team-member platform ana --role");
    assert_eq!(roles, set(&["read", "write", "admin"]));
    let states = offered(&home, "pearing-cli list-tickets --state");
    assert_eq!(states, set(&["held", "waiting"]));
    let states = offered(&home, "pearing-cli list-threads teams/platform/website --state");
    assert_eq!(states, set(&["open", "closed"]));
    assert!(offered(&home, "pearing-cli").contains("acquire-lock"));
    assert!(offered(&home, "pearing-cli whoami").contains("--token-file"));
}

#[test]
fn the_server_has_both_too() {
    let home = tempfile::tempdir().expect("a folder");
    let said = |words: &[&str]| {
        let output = pearing(words.iter().copied()).stdout(Stdio::piped()).output();
        let output = output.expect("it runs");
        assert!(output.status.success() && output.stderr.is_empty(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).expect("it is text")
    };
    let commands = commands(&said(&["--help"]));
    let script = said(&["completions", "zsh"]);
    for command in &commands {
        assert!(script.contains(command), "{command}");
        let out = home.path().join("man1");
        said(&["man", "--out", out.to_str().expect("a path that is text")]);
        assert!(out.join(format!("pearing-{command}.1")).exists(), "{command}");
    }
    assert!(said(&["man"]).contains("another process has the data directory open"));
}
