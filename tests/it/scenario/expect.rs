//! Reads what a line of a scenario expects: the part after `->`.
//!
//! Each phrase is one thing that comes of the line, in order. An event is named by what it does
//! to a ticket (`held`, `promoted`), or by its type (`team.member_removed`).

use pearing::domain::event::Event;

use serde_json::Value;

use super::names::time;
use super::notes;
use super::script::{Expected, Facts, Fence, State};
use super::words::Words;

/// What a ticket's events are called here, and on the wire.
const TICKET_EVENTS: [(&str, &str); 12] = [
    ("held", "lock.acquired"),
    ("waiting", "lock.queued"),
    ("contended", "lock.contended"),
    ("deadlock_rejected", "lock.deadlock_rejected"),
    ("heartbeat", "lock.heartbeat"),
    ("promoted", "lock.promoted"),
    ("released", "lock.released"),
    ("expired", "lock.expired"),
    ("broken", "lock.broken"),
    ("cancelled", "lock.wait_cancelled"),
    ("timed_out", "lock.wait_timed_out"),
    ("recovered", "ledger.recovered"),
];

/// The states of a ticket.
const STATES: [&str; 9] = [
    "held",
    "waiting",
    "released",
    "expired",
    "broken",
    "cancelled",
    "timed_out",
    "contended",
    "deadlock_rejected",
];

/// Reads all phrases of a line.
pub(super) fn all(words: &Words) -> Result<Vec<Expected>, String> {
    let mut expected = Vec::new();
    for part in words.split(";")? {
        for mut phrase in part.split(",")? {
            expected.push(one(&mut phrase)?);
            phrase.end()?;
        }
    }
    Ok(expected)
}

fn one(words: &mut Words) -> Result<Expected, String> {
    let first = words.take("what comes of it")?;
    if words.take_if(">") {
        return Ok(Expected::Greater { left: first, right: words.take("a fence token")? });
    }
    match first.as_str() {
        "replay" | "still" => {
            let is_replay = first == "replay";
            if let Some(unchanged) = notes::unchanged(words)? {
                return Ok(Expected::Unchanged { is_replay, unchanged: Box::new(unchanged) });
            }
            let state = state(words)?;
            return Ok(if is_replay { Expected::Replay(state) } else { Expected::Still(state) });
        }
        "refused" => {
            let code = words.take("the code of the refusal")?;
            let current = if words.take_if("current") { Some(fence(words)?) } else { None };
            return Ok(Expected::Refused { code, current });
        }
        "invalid" => return Ok(Expected::Invalid { field: words.take("a field")? }),
        "nothing" => return Ok(Expected::Nothing),
        "more" => {
            words.take_exactly("due")?;
            return Ok(Expected::MoreDue);
        }
        _ => {}
    }
    let of_ticket = TICKET_EVENTS.iter().find(|(word, _)| *word == first).map(|(_, name)| *name);
    let by_type = || Event::TYPES.iter().map(|(name, _)| *name).find(|name| *name == first);
    let Some(type_name) = of_ticket.or_else(by_type) else {
        return Err(words.fails(format!("unknown word {first:?}")));
    };
    Ok(Expected::Event { type_name, facts: facts(words, None)? })
}

/// Reads a ticket's state and what is said of it.
pub(super) fn state(words: &mut Words) -> Result<State, String> {
    let state = words.take("a state")?;
    if !STATES.contains(&state.as_str()) {
        return Err(words.fails(format!("no ticket is ever {state:?}")));
    }
    let facts = facts(words, None)?;
    words.end()?;
    Ok(State { state, facts })
}

/// Reads facts up to the end, or up to the word `stop`.
pub(super) fn facts(words: &mut Words, stop: Option<&str>) -> Result<Facts, String> {
    let mut facts = Facts::default();
    while let Some(word) = words.peek().filter(|word| Some(*word) != stop).map(str::to_owned) {
        words.take("a fact")?;
        match word.as_str() {
            "fence" => facts.fence = Some(fence(words)?),
            "depth" => facts.depth = Some(words.take_as("number")?),
            "position" => facts.position = Some(words.take_as("number")?),
            "lease" => facts.lease = Some(words.take_as("number")?),
            "until" => facts.until_millis = Some(words.take_millis()?),
            "holder" => facts.holder = Some(words.take("a user")?),
            "reason" => facts.reason = Some(words.take_text("a reason")?),
            "note" => facts.note = Some(words.take_text("a note")?),
            "expires" => {
                words.take_exactly("at")?;
                facts.expires_at_millis = Some(words.take_millis()?);
            }
            "cycle" => {
                let mut cycle = vec![words.take("a ticket")?];
                while !words.is_empty() {
                    cycle.push(words.take("a ticket")?);
                }
                facts.cycle = Some(cycle);
            }
            "parent" => facts.parent = Some(words.take("a reply, or none")?),
            "link" => facts.link = Some(words.take("a link")?),
            _ => match field(&word, words)? {
                Some(field) => facts.fields.push(field),
                None => facts.names.push(word),
            },
        }
    }
    Ok(facts)
}

/// A field that is compared as it is; `None` if the word is no such field.
fn field(word: &str, words: &mut Words) -> Result<Option<(&'static str, Value)>, String> {
    let number = |words: &mut Words| words.take_as::<u64>("number").map(Value::from);
    let text = |words: &mut Words| words.take_text("a text").map(Value::from);
    Ok(Some(match word {
        "number" => ("number", number(words)?),
        "level" => ("level", number(words)?),
        "replies" => ("replies_count", number(words)?),
        "title" => ("title", text(words)?),
        "body" => ("body", text(words)?),
        "activity" => ("activity", text(words)?),
        "kind" => ("kind", Value::from(words.take("a kind")?)),
        "mirror" => ("is_mirror", Value::from(true)),
        "updated" => {
            words.take_exactly("at")?;
            ("updated_at", Value::from(time(words.take_millis()?).to_string()))
        }
        _ => return Ok(None),
    }))
}

/// A fence token: a name, a number, or `none`.
pub(super) fn fence(words: &mut Words) -> Result<Fence, String> {
    let word = words.take("a fence token")?;
    Ok(match (word.as_str(), word.parse()) {
        ("none", _) => Fence::Absent,
        (_, Ok(number)) => Fence::Number(number),
        (_, Err(_)) => Fence::Named(word),
    })
}
