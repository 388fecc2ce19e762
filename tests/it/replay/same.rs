//! The same ledger gives the same bytes: whenever, wherever, from a snapshot or from the first
//! record, once or twice in one process.

use std::path::Path;
use std::process::{Command, Stdio};

use pearing::audit::{Replay, differences};
use pearing::domain::State;
use pearing::domain::event::Event;
use pearing::domain::id::Sequence;
use pearing::ledger::memory::MemoryLedger;
use pearing::ledger::rocks::RocksLedger;
use pearing::ledger::{Append, Ledger, Stored};
use pearing::projection::as_of::AsOf;
use pearing::projection::{self, snapshot};

use super::{FIXTURES, ledger_of, path_of, records_of, text_of};
use crate::support::pearing;

/// What is asked of each ledger, with `LEDGER` for where it is, `HEAD` for its last record, `LOCK`
/// for the first lock that was taken, and `TICKET` for whose it was.
const QUESTIONS: &[&str] = &[
    "replay LEDGER",
    "replay LEDGER --json",
    "replay LEDGER --to 15 --json",
    "replay LEDGER --to 2026-01-01T00:00:07Z",
    "replay LEDGER --step 0",
    "replay LEDGER --step 0 --json",
    "diff 10 HEAD LEDGER",
    "diff 10 HEAD LEDGER --json",
    "who LOCK LEDGER --at 2026-01-01T00:00:07Z --repo teams/platform/website",
    "who LOCK LEDGER --at 2026-01-01T00:00:07Z --repo teams/platform/website --json",
    "why TICKET LEDGER",
    "why TICKET LEDGER --json",
    "timeline LOCK LEDGER --repo teams/platform/website",
    "timeline LOCK LEDGER --repo teams/platform/website --svg",
];

/// The words of a program that runs another one, and what is set for it.
type Surrounding<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)]);

/// Where and when it is asked: what runs the program, and what is set for it.
const SURROUNDINGS: &[Surrounding] = &[
    (&["faketime", "-f", "+1d"], &[]),
    (&["faketime", "-f", "+366d"], &[]),
    (&["faketime", "-f", "-3y"], &[]),
    (&[], &[("TZ", "Asia/Kolkata")]),
    (&[], &[("TZ", "America/St_Johns")]),
    (&[], &[("LC_ALL", "tr_TR.UTF-8"), ("LANG", "de_DE.UTF-8"), ("COLUMNS", "40")]),
];

/// The exit code, and what was printed.
type Answer = (Option<i32>, Vec<u8>);

fn answer(command: &mut Command) -> Answer {
    let output = command.stdout(Stdio::piped()).stderr(Stdio::piped()).output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said, "", "{command:?}");
    (output.status.code(), output.stdout)
}

/// The program with a question's words.
fn asked(question: &str, path: &Path, ledger: &dyn Ledger) -> Command {
    let records = records_of(ledger);
    let mut events = records.iter().filter_map(|stored| stored.decode().ok());
    let first = events.find(|record| matches!(record.event, Event::LockAcquired(_)));
    let (lock, ticket) =
        first.and_then(|record| record.event.lock_and_ticket()).expect("a lock was taken");
    let words = question.split(' ').map(|word| match word {
        "LEDGER" => path.to_str().expect("our paths are text").to_owned(),
        "HEAD" => ledger.head().sequence.to_string(),
        "LOCK" => lock.lock_name.to_string(),
        "TICKET" => ticket.to_string(),
        word => word.to_owned(),
    });
    let words: Vec<String> = words.collect();
    pearing(words.iter().map(String::as_str))
}

/// The same command, run by another one, and with more set for it.
fn within(command: &Command, (wrapper, settings): Surrounding<'_>) -> Command {
    let mut wrapped = match wrapper.split_first() {
        None => Command::new(command.get_program()),
        Some((program, arguments)) => {
            let mut wrapped = Command::new(program);
            wrapped.args(arguments).arg(command.get_program());
            wrapped
        }
    };
    wrapped.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => wrapped.env(name, value),
            None => wrapped.env_remove(name),
        };
    }
    wrapped.envs(settings.iter().copied());
    wrapped
}

#[test]
fn a_replay_is_the_same_at_any_time_and_in_any_place() {
    let clock = |options: &[&str]| {
        let mut date = Command::new("date");
        let printed = answer(&mut within(date.arg("+%Y"), (options, &[]))).1;
        String::from_utf8(printed).expect("it is text").trim().parse::<u32>().expect("a year")
    };
    assert_eq!(clock(&[]) + 1, clock(&["faketime", "-f", "+366d"]), "the clock can be set");
    for (name, ..) in FIXTURES {
        let path = path_of(name, "ledger");
        let ledger = ledger_of(&text_of(name));
        for question in QUESTIONS {
            let command = asked(question, &path, &*ledger);
            let first = answer(&mut within(&command, (&[], &[])));
            let differs = i32::from(question.starts_with("diff"));
            assert_eq!(first.0, Some(differs), "{name}: {question}");
            assert!(!first.1.is_empty(), "{name}: {question}");
            for (wrapper, settings) in SURROUNDINGS {
                let again = answer(&mut within(&command, (wrapper, settings)));
                assert!(again == first, "{name}: {question} {wrapper:?} {settings:?}");
            }
        }
    }
}

/// Writes records and their tables, with a snapshot that stands on record number `middle`.
fn with_snapshot(ledger: &dyn Ledger, records: &[Stored], middle: usize) {
    let mut state = State::default();
    let mut write = |ledger: &dyn Ledger, records: &[Stored]| {
        for stored in records {
            let record = stored.decode().expect("a fixture is good");
            let ended = state.apply(&record);
            let puts = projection::puts(&record, ended.as_ref());
            let expected_head = ledger.head().sequence;
            let append = Append { expected_head, records: vec![stored.clone()], puts };
            ledger.append(&append).expect("the disk isn't full");
        }
        state.clone()
    };
    let state = write(ledger, &records[..middle]);
    snapshot::save(ledger, &state).expect("the disk isn't full");
    write(ledger, &records[middle..]);
}

fn shown(ledger: &dyn Ledger, point: Sequence, is_from_first: bool) -> String {
    let replay = Replay::to(ledger, Some(AsOf::Sequence(point)), is_from_first);
    let shown = replay.and_then(|replay| replay.shown());
    let shown = shown.unwrap_or_else(|error| panic!("{point}: {error}"));
    serde_json::to_string(&shown).expect("its keys are names of fields")
}

#[test]
fn a_replay_is_the_same_twice_and_from_a_snapshot_wherever_it_stands() {
    for (name, ..) in FIXTURES.iter().filter(|(name, ..)| *name != "herd") {
        let records = records_of(&*ledger_of(&text_of(name)));
        let plain = ledger_of(&text_of(name));
        let once: Vec<String> =
            records.iter().map(|stored| shown(&*plain, stored.sequence, false)).collect();
        for middle in (1..=records.len()).step_by(3) {
            let ledger = MemoryLedger::default();
            with_snapshot(&ledger, &records, middle);
            for (stored, once) in records.iter().zip(&once) {
                let place = format!("{name}: record {}, snapshot {middle}", stored.sequence);
                assert!(shown(&ledger, stored.sequence, false) == *once, "{place}");
                assert!(shown(&ledger, stored.sequence, true) == *once, "{place}, from first");
            }
        }
    }
}

#[test]
fn the_tools_say_the_same_of_a_directory_with_a_snapshot_in_its_middle() {
    let home = tempfile::tempdir().expect("a temporary directory");
    for (name, ..) in FIXTURES {
        let data = home.path().join(name);
        let ledger = ledger_of(&text_of(name));
        let records = records_of(&*ledger);
        let in_data = RocksLedger::create(&data).expect("a new directory");
        with_snapshot(&in_data, &records, records.len() / 2);
        drop(in_data);
        for question in QUESTIONS {
            let of_file = answer(&mut asked(question, &path_of(name, "ledger"), &*ledger));
            let of_data = answer(&mut asked(question, &data, &*ledger));
            assert!(of_file == of_data, "{name}: {question}");
            if question.starts_with("replay") {
                let mut command = asked(question, &data, &*ledger);
                assert!(answer(command.arg("--from-first")) == of_file, "{name}: {question}");
            }
        }
    }
}

#[test]
fn what_a_point_inside_a_decision_shows_is_its_end() {
    // Record 15 of the hand-over is the release, and 16 the promotion that came of it.
    let ledger = ledger_of(&text_of("hand-over"));
    let at = |sequence| shown(&*ledger, Sequence(sequence), false);
    assert_eq!(at(15), at(16));
    assert_ne!(at(14), at(15));
    let to = |point| Replay::to(&*ledger, Some(point), false).and_then(|replay| replay.shown());
    let before = to(AsOf::Sequence(Sequence(15))).expect("it is there");
    let after = to("2026-01-01T00:00:41.5Z".parse().expect("a time")).expect("it is there");
    assert_eq!(differences(&before, &after), []);
}
