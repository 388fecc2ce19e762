//! The matrix over the command line: each cell is one run of `pearing-cli`, judged by its exit
//! code.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;
use tokio::task::JoinSet;

use super::askers::{ASKERS, Asker, Role};
use super::cells::{filled, label};
use super::rows::{Cell, Row, rows};
use super::rules::{Needs, Says, judge};
use super::world::{Kind, Object, Spot, Thing, World};

/// How many commands run at once.
const AT_ONCE: usize = 4;

/// The only command that ends by itself for nobody who may run it: it is asked for apart.
const ENDLESS: &str = "watch-events";

/// A command whose call is asked for without it: it would wait until a verification ends.
const WAITING: &str = "verify-ledger";

/// What runs on this machine, or makes more than one call: asked for where it is tested.
const ELSEWHERE: &[&str] = &[
    "completions",
    "doctor",
    "drill",
    "git-push",
    "hook",
    "list-profiles",
    "login",
    "logout",
    "man",
    "mcp",
    "print-guard",
    "respond",
    "setup",
    "watch-ticket",
    "with-lock",
];

/// The exit code of each outcome.
fn exit_code(says: Says) -> i32 {
    match says.1 {
        "" => 0,
        "unauthenticated" | "forbidden" => 7,
        "not-found" => 6,
        "request-uuid-reused" => 2,
        "lock-contended" => 3,
        "stale-fence" => 5,
        "already-exists" => 1,
        code => panic!("no exit code for {code}"),
    }
}

fn words(template: &str, object: &Object) -> Vec<String> {
    let (name, value) = object.scope_parameter();
    let line = template.replace("{@}", &format!("--{name} {value}"));
    filled(&line, object).split(' ').map(str::to_owned).collect()
}

/// A command that is to be run, and how it must end.
struct Run {
    label: String,
    command: Command,
    exit_code: i32,
}

impl Run {
    /// What is wrong with how it ended.
    fn fault(mut self) -> Option<String> {
        let output = self.command.output().expect("it runs");
        let (code, stderr) = (output.status.code(), String::from_utf8_lossy(&output.stderr));
        let is_right = code == Some(self.exit_code);
        (!is_right).then(|| format!("{}: {code:?}, not {}: {stderr}", self.label, self.exit_code))
    }
}

/// Runs all of them, a few at once, and returns what is wrong.
async fn faults(runs: Vec<Run>) -> Vec<String> {
    let (mut runs, mut wrong) = (runs.into_iter(), Vec::new());
    let mut running = JoinSet::new();
    loop {
        while running.len() < AT_ONCE
            && let Some(run) = runs.next()
        {
            running.spawn_blocking(|| run.fault());
        }
        match running.join_next().await {
            Some(ended) => wrong.extend(ended.expect("it doesn't panic")),
            None => return wrong,
        }
    }
}

/// What a command is, and of whom it asks what.
#[derive(Clone, Copy)]
struct Ask<'a> {
    kind: Kind,
    needs: Needs,
    template: &'a str,
}

impl Ask<'_> {
    async fn run(self, world: &World, asker: &Asker, cell: &Cell, label: String) -> Run {
        let object = world.object(asker, self.kind, cell.spot, cell.thing).await;
        let refused = judge(self.needs, asker, &object).err();
        let expected = refused.map_or(cell.then, |refused| refused.says);
        let mut command = world.server.cli(world.client(asker));
        command.args(words(self.template, &object));
        Run { label, command, exit_code: exit_code(expected) }
    }
}

/// A run takes far longer than a request, so of the spots that are alike to the rules one is
/// enough.
fn is_asked(row: &Row, cell: &Cell) -> bool {
    match cell.spot {
        Spot::ThereUser | Spot::NowhereUser => false,
        Spot::NowhereTeam => row.kind == Kind::Member,
        _ => true,
    }
}

#[test]
fn every_command_has_a_row_and_every_row_a_command() {
    let help = Command::new(env!("CARGO_BIN_EXE_pearing-cli")).arg("--help").output();
    let help = String::from_utf8(help.expect("it runs").stdout).expect("help is text");
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.is_empty());
    let names = listed.filter_map(|line| line.strip_prefix("  ")).filter(|l| !l.starts_with(' '));
    let names = names.filter_map(|line| line.split_whitespace().next().map(str::to_owned));
    let is_asked = |name: &String| {
        name != "help" && name != ENDLESS && name != WAITING && !ELSEWHERE.contains(&&**name)
    };
    let commands: BTreeSet<String> = names.filter(is_asked).collect();
    let rows = rows();
    let words = rows.iter().filter_map(|row| row.command.split(' ').next());
    let asked: BTreeSet<String> =
        words.filter(|word| !word.is_empty()).map(str::to_owned).collect();
    assert_eq!(commands, asked);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_command_ends_as_the_rules_say() {
    let world = World::make().await;
    let (rows, mut runs) = (rows(), Vec::new());
    for asker in &ASKERS {
        for row in rows.iter().filter(|row| !row.command.is_empty()) {
            let ask = Ask { kind: row.kind, needs: row.needs, template: row.command };
            for cell in row.cells.iter().filter(|cell| is_asked(row, cell)) {
                runs.push(ask.run(&world, asker, cell, label(asker, row, cell)).await);
            }
        }
    }
    let count = runs.len();
    let wrong = faults(runs).await;
    println!("{count} commands");
    assert!(wrong.is_empty(), "{} wrong cells:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_watched_by_those_who_may_read_them() {
    let world = World::make().await;
    for asker in &ASKERS {
        for spot in [None, Some(Spot::Here), Some(Spot::There), Some(Spot::Nowhere)] {
            let (needs, template) = match spot {
                None => (Needs::Service, "watch-events --after 0 --json"),
                Some(_) => (Needs::Role(Role::Read), "watch-events --after 0 --json {@}"),
            };
            let (thing, then) = (Thing::Others, (200, ""));
            let cell = Cell { spot: spot.unwrap_or(Spot::Here), thing, then };
            let ask = Ask { kind: Kind::Scope, needs, template };
            let label = format!("{}: {template} in {spot:?}", asker.name);
            let mut run = ask.run(&world, asker, &cell, label).await;
            if run.exit_code != 0 {
                assert_eq!(run.fault(), None);
                continue;
            }
            let mut child = run.command.stdout(Stdio::piped()).spawn().expect("it runs");
            let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
            let first = stdout.lines().next().and_then(Result::ok).unwrap_or_default();
            child.kill().expect("it still runs");
            child.wait().expect("it ends");
            let event: Value = serde_json::from_str(&first).unwrap_or_default();
            assert_eq!(event["type"], "pearing.ledger.opened", "{}: {first}", run.label);
        }
    }
}
