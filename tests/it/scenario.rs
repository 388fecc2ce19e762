//! Text scenarios: each rule of the core as small stories, played through the real core.
//!
//! The stories lie in `tests/scenarios`, one file for one rule or a few; the grammar stands in
//! [`parse`]. A story is played on the server's own batches and an in-memory ledger, with time as
//! it says. Beyond what it says, every event of it is checked in [`server`] and [`audit`].

mod audit;
mod command;
mod compare;
mod crowd;
mod expect;
mod length;
mod matrix;
mod names;
mod nest;
mod notes;
mod notes_command;
mod notes_look;
mod parse;
#[cfg(feature = "planted-bugs")]
mod planted;
mod ring;
mod run;
mod script;
mod server;
mod strict;
mod words;

use std::collections::BTreeMap;
use std::path::Path;

use pearing::domain::State;
use pearing::domain::id::TicketId;
use pearing::ledger::memory::MemoryLedger;

pub(crate) use names::token_text;

/// The folder of the stories.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scenarios");

/// The text of a file.
fn text_of(name: &str) -> String {
    let path = Path::new(FOLDER).join(format!("{name}.txt"));
    std::fs::read_to_string(path).expect("the file of the scenarios is there")
}

/// What is left of a scenario that was played.
pub(crate) struct Told {
    /// Its ledger.
    pub(crate) ledger: MemoryLedger,
    /// The state at the end.
    pub(crate) state: State,
    /// The tickets that it has names for.
    pub(crate) tickets: BTreeMap<String, TicketId>,
}

/// Plays the one scenario of a text, which must go as it says.
pub(crate) fn told(text: &str) -> Told {
    let script = parse::script("a test", text).unwrap_or_else(|why| panic!("{why}"));
    let [scenario] = &script.scenarios[..] else { panic!("there is one scenario") };
    let run::Play { server, names, .. } = run::play(scenario).unwrap_or_else(|why| panic!("{why}"));
    let (ledger, state) = server.into_parts();
    Told { ledger, state, tickets: names.tickets }
}

/// Plays every scenario of a text; returns how many there were.
fn play_text(file: &str, text: &str) -> Result<usize, String> {
    let script = parse::script(file, text)?;
    for scenario in &script.scenarios {
        run::play(scenario)?;
    }
    Ok(script.scenarios.len())
}

/// Plays a text of one scenario, and returns the ledger that it wrote.
pub(crate) fn ledger_of(file: &str, text: &str) -> Result<MemoryLedger, String> {
    let script = parse::script(file, text)?;
    let [scenario] = &script.scenarios[..] else {
        return Err(format!("{file}: a ledger has one story"));
    };
    Ok(run::play(scenario)?.server.into_ledger())
}

/// Plays a file and shows all of its failures at once.
fn play_file(name: &str) {
    let file = format!("tests/scenarios/{name}.txt");
    let script = parse::script(&file, &text_of(name)).unwrap_or_else(|why| panic!("{why}"));
    let failures: Vec<String> =
        script.scenarios.iter().filter_map(|scenario| run::play(scenario).err()).collect();
    println!("{file}: {} scenarios", script.scenarios.len());
    assert!(failures.is_empty(), "\n\n{}\n", failures.join("\n\n"));
}

/// One test for each file, so that each fails by its own name.
macro_rules! files {
    ($($name:ident)*) => {
        const FILES: &[&str] = &[$(stringify!($name),)*];

        $(
            #[test]
            fn $name() {
                play_file(stringify!($name));
            }
        )*
    };
}

files! {
    acquire retry reentrancy queue deadlock heartbeat release settle break_lock fence access command
    restart key limit agent activity thread
}

#[test]
fn every_file_of_scenarios_is_played() {
    let mut files: Vec<String> = std::fs::read_dir(FOLDER)
        .expect("the folder of the scenarios is there")
        .map(|file| file.expect("it can be listed").file_name().to_string_lossy().into_owned())
        .collect();
    files.sort();
    let mut played: Vec<String> = FILES.iter().map(|name| format!("{name}.txt")).collect();
    played.sort();
    assert_eq!(files, played);
}
