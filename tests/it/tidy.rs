//! Holds the shape of the code base: which module may name which, who alone touches the machine,
//! how long a file may be, and that what is committed stands by itself.
//!
//! Each rule returns what is wrong as lines of text, so that it can be tried on a sample that
//! breaks it: a rule that finds nothing proves nothing until it has found something.

mod source;

use std::fs;
use std::path::{Path, PathBuf};

use source::{code_of, has_path, roots_named};

/// What each top-level module may name, beside itself. A new module must be given its place here.
const MAY_NAME: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("ledger", &["domain"]),
    ("wire", &["domain", "ledger"]),
    ("projection", &["domain", "ledger"]),
    ("audit", &["domain", "ledger", "projection", "wire", "columns"]),
    ("feed", &["domain", "ledger", "projection", "wire"]),
    (
        "service",
        &["domain", "ledger", "projection", "audit", "feed", "wire", "clock", "random", "metrics"],
    ),
    (
        "http",
        &[
            "domain",
            "ledger",
            "projection",
            "audit",
            "feed",
            "service",
            "wire",
            "mcp",
            "clock",
            "random",
            "metrics",
        ],
    ),
    // What the program `pearing` does with the pieces above.
    (
        "server",
        &[
            "domain",
            "ledger",
            "projection",
            "audit",
            "service",
            "http",
            "wire",
            "clock",
            "random",
            "config",
            "telemetry",
            "columns",
        ],
    ),
    ("client", &["domain", "wire", "clock", "random"]),
    ("guard", &["domain"]),
    ("mcp", &["domain", "wire", "clock"]),
    (
        "cli",
        &[
            "domain", "wire", "client", "guard", "mcp", "clock", "random", "manual", "flags",
            "columns",
        ],
    ),
    ("clock", &["domain"]),
    ("random", &["domain"]),
    ("metrics", &[]),
    ("manual", &[]),
    ("flags", &["domain"]),
    ("columns", &[]),
    ("config", &["domain", "flags", "projection"]),
    ("telemetry", &["config"]),
];

/// Paths that only some files may have in their code: who alone does it, and what gives it away.
const ONLY: &[(&str, &[&str])] = &[
    ("src/ledger/rocks", &["rocksdb"]),
    ("src/http", &["axum"]),
    ("src/metrics.rs", &["prometheus_client"]),
    ("src/clock.rs", &["Instant::now", "SystemTime::now", "Timestamp::now", "clock_gettime"]),
    ("src/random.rs", &["new_v4", "now_v7", "getrandom", "rand", "RandomState"]),
];

/// What the core would need to touch the machine.
const IMPURE: &[&str] = &[
    "tokio",
    "std::env",
    "std::fs",
    "std::io",
    "std::net",
    "std::process",
    "Mutex",
    "RwLock",
    "std::thread",
    "HashMap",
    "HashSet",
];

/// What a finished line of code has not.
const UNFINISHED: &[&str] =
    &["todo!", "unimplemented!", "dbg!", "#[ignore", "#[allow(", "#![allow("];

const LINES_MAX: usize = 500;
const COLUMNS_MAX: usize = 100;

struct File {
    /// From the top of the repository, with `/`.
    path: String,
    text: String,
}

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every text file below a folder, in order; what Git or a build keeps is left out.
fn files(folder: &str) -> Vec<File> {
    let mut found = Vec::new();
    let mut folders = vec![top().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the repository can be read") {
            let path: PathBuf = entry.expect("an entry can be read").path();
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            if matches!(name.as_deref(), Some(".git" | "target" | ".pearing-dev")) {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(text) = fs::read_to_string(&path) {
                let path = path.strip_prefix(top()).expect("it was found below the top");
                found.push(File { path: path.to_string_lossy().into_owned(), text });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn sources() -> Vec<File> {
    let is_rust = |file: &File| file.path.ends_with(".rs");
    let found: Vec<File> =
        ["src", "tests"].iter().flat_map(|folder| files(folder)).filter(is_rust).collect();
    assert!(found.iter().any(|file| file.path == "src/lib.rs"), "the sources are not found");
    found
}

fn all(rule: impl Fn(&File) -> Vec<String>) -> Vec<String> {
    sources().iter().flat_map(rule).collect()
}

fn sample(path: &str, text: &str) -> File {
    File { path: path.to_owned(), text: text.to_owned() }
}

/// `src/domain/lock/mod.rs` is the module `domain::lock`; none outside the library.
fn module_of(path: &str) -> Option<Vec<&str>> {
    let path = path.strip_prefix("src/")?.strip_suffix(".rs")?;
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop_if(|last| *last == "mod");
    (!matches!(parts[..], ["lib"] | ["bin", ..])).then_some(parts)
}

fn wrong_imports(file: &File) -> Vec<String> {
    let Some(module) = module_of(&file.path) else { return Vec::new() };
    let Some((_, allowed)) = MAY_NAME.iter().find(|(name, _)| *name == module[0]) else {
        return vec![format!("{}: `{}` has no place among the modules", file.path, module[0])];
    };
    let is_module = |root: &str| MAY_NAME.iter().any(|(name, _)| *name == root);
    let mut wrong: Vec<String> = roots_named(&code_of(&file.text), &module)
        .into_iter()
        .filter(|root| root == "*" || is_module(root))
        .filter(|root| root != module[0] && !allowed.contains(&root.as_str()))
        .map(|root| format!("{}: `{}` may not name `{root}`", file.path, module[0]))
        .collect();
    wrong.dedup();
    wrong
}

#[test]
fn imports_go_one_way() {
    assert_eq!(all(wrong_imports), [""; 0]);
}

#[test]
fn an_import_against_the_flow_is_found() {
    let wrong = |path, text| wrong_imports(&sample(path, text)).len();
    assert_eq!(wrong("src/domain/state.rs", "use crate::ledger::Record;"), 1);
    assert_eq!(wrong("src/wire/lock.rs", "use super::super::service::Service;"), 1);
    assert_eq!(wrong("src/feed/live.rs", "use crate::{domain::Time, http};"), 1);
    assert_eq!(wrong("src/client.rs", "fn f() { crate::service::g() }"), 1);
    assert_eq!(wrong("src/news/mod.rs", ""), 1);
    assert_eq!(wrong("src/http/mod.rs", "use crate::service::Service; use super::http;"), 0);
    assert_eq!(wrong("src/bin/pearing.rs", "use crate::service::Service;"), 0);
}

fn wrong_owners(file: &File) -> Vec<String> {
    if !file.path.starts_with("src/") {
        return Vec::new();
    }
    let code = code_of(&file.text);
    ONLY.iter()
        .filter(|(owner, _)| !file.path.starts_with(owner))
        .flat_map(|(owner, paths)| paths.iter().map(move |path| (owner, path)))
        .filter(|(_, path)| has_path(&code, path))
        .map(|(owner, path)| format!("{}: `{path}` belongs to {owner}", file.path))
        .collect()
}

#[test]
fn storage_clocks_chance_and_http_have_one_place_each() {
    assert_eq!(all(wrong_owners), [""; 0]);
}

#[test]
fn a_second_place_is_found() {
    let wrong = |path, text| wrong_owners(&sample(path, text)).len();
    assert_eq!(wrong("src/service/writer.rs", "let now = tokio::time::Instant::now();"), 1);
    assert_eq!(wrong("src/domain/id.rs", "Uuid::new_v4()"), 1);
    assert_eq!(wrong("src/ledger/keys.rs", "use rocksdb::DB;"), 1);
    assert_eq!(wrong("src/bin/pearing.rs", "axum::serve(a, b)"), 1);
    assert_eq!(wrong("src/ledger/rocks/open.rs", "use rocksdb::DB; // axum"), 0);
    assert_eq!(wrong("src/http/mod.rs", "use axum::Router;"), 0);
}

fn impure_core(file: &File) -> Vec<String> {
    if !file.path.starts_with("src/domain/") {
        return Vec::new();
    }
    let code = code_of(&file.text);
    IMPURE
        .iter()
        .filter(|path| has_path(&code, path))
        .map(|path| format!("{}: the core names `{path}`", file.path))
        .collect()
}

#[test]
fn the_core_touches_no_machine_and_keeps_an_order() {
    assert_eq!(all(impure_core), [""; 0]);
    assert_eq!(impure_core(&sample("src/domain/state.rs", "use std::fs::File;")).len(), 1);
    assert_eq!(impure_core(&sample("src/domain/state.rs", "m: HashMap<K, V>")).len(), 1);
    assert_eq!(impure_core(&sample("src/ledger/rocks.rs", "use std::fs::File;")).len(), 0);
}

fn wrong_layout(file: &File) -> Vec<String> {
    let mut wrong = Vec::new();
    let lines = file.text.lines().count();
    if lines > LINES_MAX {
        wrong.push(format!("{}: {lines} lines; split it by operation", file.path));
    }
    for (number, line) in (1..).zip(file.text.lines()) {
        let columns = line.chars().count();
        if columns > COLUMNS_MAX {
            wrong.push(format!("{}:{number}: {columns} columns", file.path));
        }
    }
    if file.path.starts_with("src/") && !file.text.starts_with("//!") {
        wrong.push(format!("{}: does not begin with what it is for", file.path));
    }
    let code = code_of(&file.text);
    for (number, line) in (1..).zip(code.lines()) {
        for mark in UNFINISHED.iter().filter(|mark| line.contains(**mark)) {
            wrong.push(format!("{}:{number}: {mark}", file.path));
        }
    }
    wrong
}

#[test]
fn files_are_short_and_finished_and_say_what_they_are_for() {
    assert_eq!(all(wrong_layout), [""; 0]);
}

#[test]
fn a_long_or_unfinished_file_is_found() {
    let wrong = |text: &str| wrong_layout(&sample("src/a.rs", text)).len();
    assert_eq!(wrong("//! Doc.\nfn f() {}\n"), 0);
    assert_eq!(wrong("fn f() {}\n"), 1);
    assert_eq!(wrong(&format!("//! Doc.\n{}", "\n".repeat(LINES_MAX))), 1);
    assert_eq!(wrong(&format!("//! {}\n", "x".repeat(COLUMNS_MAX))), 1);
    assert_eq!(wrong("//! Doc.\n#[ignore = \"slow\"]\nfn f() { todo!() }\n"), 2);
    assert_eq!(wrong("//! todo! is not here\n"), 0);
}

/// What only its makers could follow. In pieces, so that this file does not contain it.
fn foreign_words() -> Vec<String> {
    let pieces = [
        ["/wo", "rk/"],
        ["/tm", "p/wt"],
        ["sha", "red/"],
        ["loc", "ks.md"],
        ["cas", "es.md"],
        ["fau", "lts.md"],
        ["ap", "i.md"],
        ["architec", "ture.md"],
        ["sty", "le.md"],
        ["pla", "n.md"],
        ["iss", "ue #"],
        ["iss", "ues show"],
    ];
    pieces.iter().map(|word| word.concat()).collect()
}

fn foreign(file: &File) -> Vec<String> {
    let begins_a_word = |line: &str, at: usize| {
        !line[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_')
    };
    let words = foreign_words();
    let mut found = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        let line = line.to_lowercase();
        for word in &words {
            if line.match_indices(word.as_str()).any(|(at, _)| begins_a_word(&line, at)) {
                found.push(format!("{}:{number}: names {word}", file.path));
            }
        }
    }
    found
}

#[test]
fn what_is_committed_stands_by_itself() {
    let found: Vec<String> = files("").iter().flat_map(foreign).collect();
    assert_eq!(found, [""; 0]);
}

#[test]
fn a_word_from_outside_is_found() {
    for word in foreign_words() {
        let text = format!("Nothing here.\nSee {}, as told there.\n", word.to_uppercase());
        assert_eq!(foreign(&sample("README.md", &text)).len(), 1, "{word}");
    }
    assert_eq!(foreign(&sample("README.md", "Framework/tools, unshared/x.\n")).len(), 0);
}
