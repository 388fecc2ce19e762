//! Where the ledgers come from: stories of the scenarios' grammar, played by the real core in
//! simulated time, with the same ids each time.

use std::fs;
use std::io::Write as _;

use pearing::audit::{Form, Silent, export};
use pearing::domain::event::Record;
use pearing::domain::id::Sequence;
use pearing::ledger::{Hash, Ledger, chain};

use super::{ledger_of, names, path_of, records_of, text_of};
use crate::scenario;

/// The story of a ledger that is written in the shapes of a version that knew no agents.
const FIRST_SHAPES: &str = "first-shapes";

/// Plays a story.
fn played(name: &str) -> Box<dyn Ledger> {
    let text = fs::read_to_string(path_of(name, "txt")).expect("it was listed");
    let file = format!("replay-fixtures/{name}.txt");
    let ledger = scenario::ledger_of(&file, &text).unwrap_or_else(|why| panic!("{why}"));
    Box::new(ledger)
}

fn as_text(ledger: &dyn Ledger) -> Vec<u8> {
    let mut text = Vec::new();
    export(ledger, Form::Text, Sequence::ZERO, &mut text, &mut Silent).expect("it is in memory");
    text
}

/// The same ledger as the version wrote it that knew no agents, up to the first one. There were
/// no others in its time.
fn in_first_shapes(ledger: &dyn Ledger) -> Vec<u8> {
    let (mut text, mut hash, mut is_old) = (Vec::new(), Hash::ZERO, true);
    for stored in records_of(ledger) {
        let line = String::from_utf8(stored.bytes.into()).expect("JSON is UTF-8");
        is_old &= !line.contains(r#""type":"user.created""#) || line.contains(r#""person":null"#);
        let line = if is_old && line.contains(r#""type":"user.created","version":2"#) {
            line.replace(r#""version":2"#, r#""version":1"#).replace(r#","person":null"#, "")
        } else {
            line
        };
        hash = chain::link(&hash, line.as_bytes());
        text.extend_from_slice(format!("{hash} {line}\n").as_bytes());
    }
    text
}

/// Writes the ledger of each story that has none yet, if it is told to.
#[test]
fn a_story_without_a_ledger_is_written_on_demand() {
    let is_told = std::env::var_os("PEARING_WRITE_FIXTURES").is_some();
    let missing: Vec<String> = names("txt").difference(&names("ledger")).cloned().collect();
    for name in &missing {
        assert!(is_told, "{name} has no ledger; PEARING_WRITE_FIXTURES=1 writes it");
        let ledger = played(name);
        let text = match name.as_str() {
            FIRST_SHAPES => in_first_shapes(&*ledger),
            _ => as_text(&*ledger),
        };
        // Never over one that is there.
        let mut file = fs::File::create_new(path_of(name, "ledger")).expect("it is missing");
        file.write_all(&text).expect("the disk isn't full");
        let head = ledger_of(&text).head();
        println!(
            "(\"{name}\", {}, \"{}\"),",
            text.iter().filter(|b| **b == b'\n').count(),
            head.hash
        );
    }
}

/// A ledger's events, in the newest shapes.
fn events_of(ledger: &dyn Ledger) -> Vec<Record> {
    let stored = records_of(ledger);
    stored.iter().map(|stored| stored.decode().expect("it is a record")).collect()
}

#[test]
fn every_story_still_makes_its_ledger() {
    for name in names("txt") {
        assert_eq!(events_of(&*played(&name)), events_of(&*ledger_of(&text_of(&name))), "{name}");
    }
}
