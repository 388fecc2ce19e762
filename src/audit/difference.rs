//! What is different: between two states, and between two ledgers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::{Map, Value};

use super::fault::AuditError;
use super::lines::Line;
use super::source::Records;
use crate::domain::id::Sequence;
use crate::ledger::codec::decode;
use crate::wire::state::LedgerState;

/// What follows from the time alone, or names the point itself.
const NOT_COMPARED: [&str; 5] = ["lease_remaining_ms", "age_ms", "sequence", "time", "hash"];

/// What tells the items of a list apart.
const IDENTITIES: [&[&str]; 6] = [
    &["ticket_id"],
    &["token_id"],
    &["scope", "lock_name"],
    &["scope", "number"],
    &["team", "user"],
    &["scope", "user"],
];

/// Those that have a single name.
const NAMES: [&str; 3] = ["user", "team", "repo"];

/// A value that is otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Where it stands.
    pub path: String,
    /// What it was; `None` if it wasn't there.
    pub before: Option<Value>,
    /// What it is; `None` if it isn't there any more.
    pub after: Option<Value>,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => write!(f, "~ {}: {before} -> {after}", self.path),
            (None, Some(after)) => write!(f, "+ {}: {}", self.path, brief(after)),
            (Some(before), None) => write!(f, "- {}: {}", self.path, brief(before)),
            (None, None) => Ok(()),
        }
    }
}

/// What is otherwise in `after` than in `before`, in the order of the places.
pub fn differences(before: &LedgerState, after: &LedgerState) -> Vec<Change> {
    let mut changes = Vec::new();
    compare("", &by_ticket(before), &by_ticket(after), &mut changes);
    changes
}

/// The state as JSON in which each ticket stands once, by its id, wherever it is: so a promotion
/// is a ticket that changes, and not one that goes and another that comes.
fn by_ticket(state: &LedgerState) -> Value {
    let mut json = serde_json::to_value(state).expect("its keys are names of fields");
    let mut tickets = Vec::new();
    for lock in json["locks"].as_array_mut().into_iter().flatten() {
        for part in ["holds", "queue"] {
            let moved = lock[part].take();
            let moved = moved.as_array().cloned().unwrap_or_default();
            let ids = moved.iter().map(|ticket| ticket["ticket_id"].clone()).collect();
            lock[part] = Value::Array(ids);
            tickets.extend(moved);
        }
    }
    json["tickets"] = Value::Array(tickets);
    json
}

fn compare(path: &str, before: &Value, after: &Value, changes: &mut Vec<Change>) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let part = |name: &String| {
                if path.is_empty() { name.clone() } else { format!("{path}.{name}") }
            };
            let compared = |fields: &Map<String, Value>| {
                let fields = fields.iter().filter(|(name, _)| is_compared(name));
                fields.map(|(name, value)| (part(name), value.clone())).collect()
            };
            compare_parts(compared(before), compared(after), changes);
        }
        (Value::Array(before), Value::Array(after))
            if before.iter().chain(after).all(Value::is_object) =>
        {
            let named = |items: &Vec<Value>| {
                let named = items.iter().enumerate().map(|(at, item)| {
                    let name = identity(item).unwrap_or_else(|| at.to_string());
                    (format!("{path}[{name}]"), item.clone())
                });
                named.collect()
            };
            compare_parts(named(before), named(after), changes);
        }
        (before, after) if before == after => {}
        (before, after) => changes.push(Change {
            path: path.to_owned(),
            before: Some(before.clone()),
            after: Some(after.clone()),
        }),
    }
}

fn compare_parts(
    mut before: BTreeMap<String, Value>,
    mut after: BTreeMap<String, Value>,
    changes: &mut Vec<Change>,
) {
    let paths: BTreeSet<String> = before.keys().chain(after.keys()).cloned().collect();
    for path in paths {
        match (before.remove(&path), after.remove(&path)) {
            (Some(before), Some(after)) => compare(&path, &before, &after, changes),
            (before, after) => changes.push(Change { path, before, after }),
        }
    }
}

/// A value without what it hasn't.
fn brief(value: &Value) -> Value {
    let mut brief = value.clone();
    if let Value::Object(fields) = &mut brief {
        fields.retain(|name, value| is_compared(name) && !value.is_null());
    }
    brief
}

fn is_compared(name: &str) -> bool {
    !NOT_COMPARED.contains(&name)
}

fn identity(item: &Value) -> Option<String> {
    let text = |name: &&str| match item.get(*name)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let of = |names: &&[&str]| -> Option<Vec<String>> { names.iter().map(text).collect() };
    let found = IDENTITIES.iter().find_map(of).map(|parts| parts.join(" "));
    found.or_else(|| NAMES.iter().find_map(text))
}

/// Where two ledgers part.
pub struct Divergence {
    /// The last record that both have; zero if none.
    pub common: Sequence,
    /// What the first one has next.
    pub first: Option<Line>,
    /// What the second one has next.
    pub second: Option<Line>,
}

/// Compares two ledgers up to where they part; `None` for the point if they don't.
///
/// # Errors
/// What reading fails with, and [`AuditError::Fault`] for a line that is none.
pub fn divergence(
    mut first: Records<'_>,
    mut second: Records<'_>,
) -> Result<Result<Sequence, Divergence>, AuditError> {
    let mut common = Sequence::ZERO;
    loop {
        match (first.read(common)?, second.read(common)?) {
            (None, None) => return Ok(Ok(common)),
            // A hash stands for all that is before it.
            (Some(one), Some(other)) if one.hash == other.hash && one.bytes == other.bytes => {
                common = decode(&one.bytes).map_or(common.next(), |record| record.sequence);
            }
            (first, second) => return Ok(Err(Divergence { common, first, second })),
        }
    }
}
