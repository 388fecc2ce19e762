//! The README says what there is: every route, command, flag, event, code and exit code, and none
//! that isn't there.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use pearing::config::EXIT_CODES;
use pearing::domain::event::Event;
use pearing::http::every_route;
use pearing::metrics::Metrics;
use pearing::wire::problem::{self, Code};

fn repository(path: &str) -> String {
    let path = format!("{}/{path}", env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The cells of the README's table that has this first line, row by row, without backticks.
fn table(head: &str) -> Vec<Vec<String>> {
    let readme = repository("README.md");
    let mut lines = readme.lines().skip_while(|line| *line != head).skip(2);
    let cells = |line: &str| {
        let cells = line.trim_matches('|').split(" | ");
        cells.map(|cell| cell.replace('`', "").trim().to_owned()).collect::<Vec<_>>()
    };
    let rows: Vec<_> = lines.by_ref().take_while(|line| line.starts_with('|')).map(cells).collect();
    assert!(!rows.is_empty(), "the README has no table {head}");
    rows
}

/// The first cells of a table, each of which may name several things.
fn first_cells(head: &str) -> BTreeSet<String> {
    table(head).into_iter().flat_map(|row| words(&row[0])).collect()
}

/// What a cell names: the words at the beginnings of its parts, as `a NAME, b` names a and b.
fn words(cell: &str) -> Vec<String> {
    let first = |part: &str| part.split_whitespace().next().unwrap_or_default().to_owned();
    cell.split(", ").map(first).collect()
}

fn help(binary: &str, arguments: &[&str]) -> String {
    let output = Command::new(binary).args(arguments).arg("--help").output().expect("it runs");
    assert!(output.status.success(), "{binary} {arguments:?} --help");
    String::from_utf8(output.stdout).expect("help is text")
}

/// The commands that a program's help lists.
fn commands(binary: &str) -> BTreeSet<String> {
    let help = help(binary, &[]);
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.is_empty());
    let names = listed.filter_map(|line| line.strip_prefix("  ")).filter(|l| !l.starts_with(' '));
    let first = |line: &str| line.split_whitespace().next().unwrap_or_default().to_owned();
    names.map(first).filter(|name| name != "help").collect()
}

/// The long flags that a command's help lists.
fn flags(binary: &str, command: &str) -> BTreeSet<String> {
    let help = help(binary, &[command]);
    let lines = help.lines().map(str::trim_start);
    let named = lines.filter(|line| line.starts_with("--") || line.starts_with("-h"));
    let flags = named.filter_map(|line| line.split([' ', ',']).find(|w| w.starts_with("--")));
    flags.filter(|flag| !["--help", "--version"].contains(flag)).map(str::to_owned).collect()
}

fn strings<'a>(texts: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    texts.into_iter().map(str::to_owned).collect()
}

#[test]
fn every_tool_is_there() {
    let in_code: BTreeSet<String> =
        pearing::mcp::tools(true).iter().map(|tool| tool.name.to_string()).collect();
    assert_eq!(first_cells("| tool | does |"), in_code);
}

#[test]
fn every_route_is_there() {
    let in_code: BTreeSet<String> =
        every_route().iter().map(|(method, path)| format!("{method} {path}")).collect();
    let mut in_readme = BTreeSet::new();
    for row in table("| call | does |") {
        let (methods, path) = row[0].rsplit_once(' ').expect("a call is methods and a path");
        in_readme.extend(methods.split(", ").map(|method| format!("{method} {path}")));
    }
    assert_eq!(in_code, in_readme);
}

#[test]
fn every_command_is_there() {
    let cli = env!("CARGO_BIN_EXE_pearing-cli");
    let mut in_readme = BTreeSet::new();
    for row in table("| command | does |") {
        in_readme.extend(words(&row[0]));
    }
    assert_eq!(commands(cli), in_readme);
    let server = first_cells("| server command | does |");
    assert_eq!(commands(env!("CARGO_BIN_EXE_pearing")), server);
}

#[test]
fn every_flag_of_the_server_is_there() {
    let server = env!("CARGO_BIN_EXE_pearing");
    let in_code: BTreeSet<String> =
        commands(server).iter().flat_map(|command| flags(server, command)).collect();
    assert_eq!(in_code, first_cells("| flag | environment | of | default |"));
}

#[test]
fn every_flag_that_all_commands_have_is_there() {
    let cli = env!("CARGO_BIN_EXE_pearing-cli");
    let mut commands = commands(cli).into_iter().map(|command| flags(cli, &command));
    let first = commands.next().expect("there are commands");
    let common = commands.fold(first, |common, flags| &common & &flags);
    assert_eq!(common, first_cells("| flag | environment | default |"));
}

#[test]
fn every_event_is_there() {
    let in_code = strings(Event::TYPES.iter().map(|(name, _)| *name));
    let rows = table("| event | when |");
    let in_readme: BTreeSet<String> = rows.iter().flat_map(|row| words(&row[0])).collect();
    assert_eq!(in_code, in_readme);
}

#[test]
fn every_code_is_there_with_its_status_and_exit_code() {
    let row = |code: &Code| {
        (code.as_str().to_owned(), code.status().to_string(), code.exit_code().to_string())
    };
    let in_code: BTreeSet<_> = Code::ALL.iter().map(row).collect();
    let rows = table("| code | HTTP status | exit code |");
    let in_readme: BTreeSet<_> =
        rows.into_iter().map(|row| (row[0].clone(), row[1].clone(), row[2].clone())).collect();
    assert_eq!(in_code, in_readme);
}

#[test]
fn every_metric_is_there_as_it_is_described() {
    let name = |name: &str, labels: &[&str]| match labels {
        [] => name.to_owned(),
        labels => format!("{name}{{{}}}", labels.join(", ")),
    };
    let in_code: Vec<Vec<String>> = Metrics::TABLE
        .iter()
        .map(|row| vec![name(row.name, row.labels), row.kind.to_owned(), row.help.to_owned()])
        .collect();
    assert_eq!(table("| metric | type | what |"), in_code);
}

#[test]
fn every_exit_code_is_there() {
    let others = [problem::EXIT_DONE, problem::EXIT_OTHER, problem::EXIT_WAITING];
    let in_code: BTreeSet<String> = Code::ALL
        .iter()
        .map(|code| code.exit_code())
        .chain(others)
        .map(|code| code.to_string())
        .collect();
    assert_eq!(in_code, first_cells("| exit code | meaning |"));
    let server: Vec<_> = EXIT_CODES.iter().map(|(code, meaning)| vec![*code, *meaning]).collect();
    assert_eq!(table("| exit code of the server | meaning |"), server);
}
