//! What the README says of auditing is so: the lines of Python that check a ledger without us, and
//! what the commands print.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::damage::{run, text};
use super::{FIXTURES, path_of, text_of};

const TOP: &str = env!("CARGO_MANIFEST_DIR");

/// How many bytes of each ledger are changed.
const CHANGES: usize = 8;

fn readme() -> String {
    fs::read_to_string(Path::new(TOP).join("README.md")).expect("the README is there")
}

/// The indented lines that begin with this one.
fn block(first: &str) -> Vec<String> {
    let readme = readme();
    let lines = readme.lines().map(|line| line.strip_prefix("    "));
    let from = lines.skip_while(|line| *line != Some(first)).map_while(|line| line);
    let block: Vec<String> = from.map(str::to_owned).collect();
    assert!(!block.is_empty(), "the README has no block that begins with {first}");
    block
}

#[test]
fn ten_lines_of_python_check_a_ledger() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let script = home.path().join("check.py");
    let lines = block("import hashlib, json, sys");
    assert_eq!(lines.len(), 10, "{lines:?}");
    fs::write(&script, lines.join("\n") + "\n").expect("the disk isn't full");
    // Without any package that isn't Python's own.
    let check = |file: &Path| {
        let mut python = Command::new("python3");
        let output = python.args(["-I", "-S"]).arg(&script).arg(file).output();
        let output = output.expect("Python is installed");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let changed = home.path().join("changed.ledger");
    let is_refused = |bytes: &[u8]| {
        fs::write(&changed, bytes).expect("the disk isn't full");
        check(&changed).0 == Some(1)
    };
    for (name, _, hash) in FIXTURES {
        let (code, printed) = check(&path_of(name, "ledger"));
        assert_eq!(code, Some(0), "{name}: {printed}");
        assert!(printed.contains(hash), "{name}: {printed}");
        let good = text_of(name);
        for change in 0..CHANGES {
            let mut bad = good.clone();
            bad[change * (good.len() - 1) / (CHANGES - 1)] ^= 1 << change;
            assert!(is_refused(&bad), "{name}: change {change}");
        }
        let lines: Vec<&[u8]> = good.split_inclusive(|byte| *byte == b'\n').collect();
        let middle = lines.len() / 2;
        let mut missing = lines.clone();
        missing.remove(middle);
        assert!(is_refused(&missing.concat()), "{name}: a record is missing");
        let mut repeated = lines.clone();
        repeated.insert(middle, lines[middle]);
        assert!(is_refused(&repeated.concat()), "{name}: a record is there twice");
        let mut swapped = lines.clone();
        swapped.swap(middle, middle + 1);
        assert!(is_refused(&swapped.concat()), "{name}: two records are swapped");
    }
    assert!(is_refused(b""), "nothing is no ledger");
}

#[test]
fn the_examples_print_what_the_readme_says() {
    let readme = readme();
    let section = readme.split("\n## ").find(|part| part.starts_with("Auditing\n"));
    let mut lines = section.expect("there is a section").lines().peekable();
    let mut examples = 0;
    while let Some(line) = lines.next() {
        let Some(command) = line.strip_prefix("    $ pearing ") else { continue };
        let is_printed = |line: &&str| {
            line.is_empty() || line.starts_with("    ") && !line.starts_with("    $ ")
        };
        let mut wanted = Vec::new();
        while let Some(line) = lines.next_if(is_printed) {
            wanted.push(line.strip_prefix("    ").unwrap_or(line));
        }
        wanted.truncate(wanted.iter().rposition(|line| !line.is_empty()).map_or(0, |at| at + 1));
        let words = command.split(' ').map(|word| match word.strip_prefix("replay-fixtures/") {
            Some(file) => text(&Path::new(super::FOLDER).join(file)).to_owned(),
            None => word.to_owned(),
        });
        let words: Vec<String> = words.collect();
        let ran = run(&words.iter().map(String::as_str).collect::<Vec<_>>());
        let printed: Vec<&str> = ran.out.lines().map(str::trim_end).collect();
        // A long answer is shown in part.
        let is_shown = match wanted.iter().position(|line| *line == "…") {
            Some(cut) => {
                printed.starts_with(&wanted[..cut]) && printed.ends_with(&wanted[cut + 1..])
            }
            None => printed == wanted,
        };
        assert!(is_shown, "{command} prints\n{}{}", ran.out, ran.said);
        examples += 1;
    }
    assert!(examples >= 4, "{examples} examples");
}
