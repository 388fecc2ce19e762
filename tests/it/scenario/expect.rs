//! Reads what a line of a scenario expects: the part after `->`.
//!
//! Each phrase is one thing that comes of the line, in order. An event is named by what it does
//! to a ticket (`held`, `promoted`), or by its type (`team.member_removed`).

use pearing::domain::event::Event;

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
        "replay" => return Ok(Expected::Replay(state(words)?)),
        "still" => return Ok(Expected::Still(state(words)?)),
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
            _ => facts.names.push(word),
        }
    }
    Ok(facts)
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
