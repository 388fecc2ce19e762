//! Why a ticket went as it did, and who held a lock: as JSON, or as text for people.

use super::{ServerError, say, say_json};
use crate::audit::{self, AuditError, Replay};
use crate::columns::table;
use crate::domain::id::TicketId;
use crate::domain::scope::LockKey;
use crate::ledger::Ledger;
use crate::projection::as_of::AsOf;
use crate::wire::who::{Standing, Who};

pub(super) fn why(ledger: &dyn Ledger, ticket_id: TicketId, json: bool) -> Result<(), ServerError> {
    let replay = Replay::to(ledger, None, false)?;
    let found = audit::why::why(ledger, replay.state(), ticket_id)?;
    let none = || AuditError::Asked(format!("the ledger has no ticket {ticket_id}"));
    let why = found.ok_or_else(none)?;
    if json {
        return say_json(&why);
    }
    say(why.to_string().trim_end())
}

pub(super) fn who(
    ledger: &dyn Ledger,
    lock: &LockKey,
    at: Option<AsOf>,
    json: bool,
) -> Result<(), ServerError> {
    let who = audit::who::who(ledger, lock, at)?;
    if json {
        return say_json(&who);
    }
    say(in_words(&who).trim_end())
}

fn in_words(who: &Who) -> String {
    let Who { scope, lock_name, sequence, time, depth, .. } = who;
    let lock = format!("{lock_name} in {scope} at {time}, after record {sequence}");
    let held = match (&who.owner, who.fence_token) {
        (Some(owner), Some(fence)) => {
            format!("{owner} held {lock}, under fence token {fence} at depth {depth}.\n\n")
        }
        _ => format!("Nobody held {lock}.\n"),
    };
    let rows: Vec<_> = who.holds.iter().chain(&who.queue).map(row).collect();
    held + &table(["TICKET", "STATE", "OWNER", "SINCE", "UNTIL", "EVENTS", "NOTE"], &rows)
}

fn row(standing: &Standing) -> [String; 7] {
    let state = match standing.queue_position {
        Some(position) => format!("{} ({position})", standing.state.as_str()),
        None => standing.state.as_str().to_owned(),
    };
    let events: Vec<String> = standing.evidence.iter().map(ToString::to_string).collect();
    [
        standing.ticket_id.to_string(),
        state,
        standing.owner.to_string(),
        standing.since.to_string(),
        standing.until.to_string(),
        events.join(" "),
        standing.note.as_ref().map(ToString::to_string).unwrap_or_default(),
    ]
}
