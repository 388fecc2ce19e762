//! What each ledger comes to: its state as JSON, and every row of its tables, in words.

use std::fmt::Write as _;

use pearing::audit::Replay;
use pearing::ledger::{Ledger, Table};
use uuid::Uuid;

use super::{FIXTURES, ledger_of, text_of};

/// The parts of a key, in its order.
struct Key<'a>(&'a [u8]);

impl Key<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (part, rest) = self.0.split_first_chunk().expect("a key has all its parts");
        self.0 = rest;
        *part
    }

    fn text(&mut self) -> String {
        let [length] = self.take();
        let (text, rest) = self.0.split_at(length.into());
        self.0 = rest;
        String::from_utf8(text.to_vec()).expect("a name is UTF-8")
    }

    fn number(&mut self) -> u64 {
        u64::from_be_bytes(self.take())
    }

    fn id(&mut self) -> Uuid {
        Uuid::from_bytes(self.take())
    }

    /// The word that a number in a key stands for.
    fn word(&mut self, words: &[&'static str]) -> &'static str {
        let [number] = self.take();
        words[usize::from(number) - 1]
    }
}

const OPERATIONS: [&str; 6] = [
    "acquire-lock",
    "create-thread",
    "create-reply",
    "close-thread",
    "reopen-thread",
    "update-activity",
];

const PARTS: [&str; 3] = ["beginning", "state", "replies"];

/// A row, in words.
fn row(table: Table, key: &[u8], value: &[u8]) -> String {
    let (mut key, mut made) = (Key(key), Key(value));
    let json = || String::from_utf8(value.to_vec()).expect("JSON is UTF-8");
    let words = match table {
        Table::Tickets => format!("{} = {}", key.id(), json()),
        Table::Requests => {
            let (owner, operation, id) = (key.text(), key.word(&OPERATIONS), key.id());
            let made = match operation {
                "acquire-lock" => made.id().to_string(),
                _ => made.number().to_string(),
            };
            format!("{owner} {operation} {id} = {made}")
        }
        Table::History => match key.text().as_str() {
            "" => format!("the ledger: {}", key.number()),
            scope => format!("{scope} {}: {}", key.text(), key.number()),
        },
        Table::Threads => {
            let (scope, number) = (key.text(), key.number());
            format!("{scope} {number} {} = {}", key.word(&PARTS), json())
        }
        Table::ThreadEvents => format!("{} {}: {}", key.text(), key.number(), key.number()),
        Table::Replies => {
            let (scope, number, id) = (key.text(), key.number(), key.id());
            format!("{scope} {number} {id} = level {}", u32::from_be_bytes(made.take()))
        }
        // The newest snapshot, which a ledger that was only read doesn't have.
        Table::Meta => format!("{} = {} bytes", key.text(), value.len()),
    };
    assert!(key.0.is_empty(), "{words}: the key has more");
    words
}

/// All rows of all tables, in words.
pub(super) fn tables(ledger: &dyn Ledger) -> String {
    let mut shown = String::new();
    for table in Table::ALL {
        let rows = ledger.scan(table, b"", b"", usize::MAX).expect("it can be read");
        if rows.is_empty() {
            continue;
        }
        let _ = writeln!(shown, "{}", table.name());
        for (key, value) in rows {
            let _ = writeln!(shown, "  {}", row(table, &key, &value));
        }
    }
    shown
}

/// The state that a ledger comes to, as it is printed.
pub(super) fn state(ledger: &dyn Ledger) -> String {
    let shown = Replay::to(ledger, None, true).and_then(|replay| replay.shown());
    let shown = shown.unwrap_or_else(|error| panic!("{error}"));
    serde_json::to_string_pretty(&shown).expect("its keys are names of fields")
}

#[test]
fn every_fixture_comes_to_the_same_state_and_the_same_tables() {
    insta::with_settings!({
        snapshot_path => "snapshots",
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, {
        for (name, ..) in FIXTURES {
            let ledger = ledger_of(&text_of(name));
            insta::assert_snapshot!(format!("{name}.state"), state(&*ledger));
            insta::assert_snapshot!(format!("{name}.tables"), tables(&*ledger));
        }
    });
}
