//! What the names of a scenario stand for, and whether a fact holds of an event or a ticket.

use std::collections::BTreeMap;

use pearing::domain::access::TokenHash;
use pearing::domain::id::{FenceToken, ReplyId, RequestUuid, Sequence, TicketId, TokenId};
use pearing::domain::ticket::{End, Phase, Ticket};
use pearing::domain::time::Time;
use pearing::wire::token;
use serde_json::{Value, json};
use uuid::Uuid;

use super::script::{Facts, Fence};

/// The fields that a name alone may stand for.
const FIELDS_OF_NAMES: [&str; 7] = ["owner", "user", "team", "repo", "scope", "author", "person"];

/// When each scenario begins: 2026-01-01T00:00:00Z.
const START_MILLIS: i64 = 1_767_225_600_000;

/// The ledger time of a scenario's time.
pub(super) fn time(millis: i64) -> Time {
    Time::from_millis(START_MILLIS + millis)
}

/// The text of a token. Anybody can make it, so it is good in a story only.
pub(crate) fn token_text(token_id: TokenId) -> String {
    let mut secret = [0; 32];
    for half in secret.chunks_mut(16) {
        half.copy_from_slice(token_id.0.as_bytes());
    }
    token::format(token_id, &secret)
}

/// What the ledger knows of a token.
pub(super) fn token_hash(token_id: TokenId) -> TokenHash {
    token::hash(&token_text(token_id))
}

/// The names of one scenario.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Tickets by name.
    pub(super) tickets: BTreeMap<String, TicketId>,
    /// Tokens by name, with their users.
    pub(super) tokens: BTreeMap<String, (TokenId, String)>,
    /// Replies by name.
    pub(super) replies: BTreeMap<String, ReplyId>,
    fences: BTreeMap<String, FenceToken>,
    requests: BTreeMap<String, RequestUuid>,
    made: u128,
}

impl Names {
    /// An id that was never made before. The same scenario always makes the same ids.
    pub(super) fn fresh(&mut self) -> Uuid {
        self.made += 1;
        // The multiplier is odd, so no two ids are equal, and their order says nothing.
        Uuid::from_u128(self.made.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
    }

    /// The request UUID of a name.
    pub(super) fn request(&mut self, name: &str) -> RequestUuid {
        let fresh = RequestUuid(self.fresh());
        *self.requests.entry(name.to_owned()).or_insert(fresh)
    }

    /// A ticket by its name. `unknown` is one that was never made.
    pub(super) fn ticket(&mut self, name: &str) -> Result<TicketId, String> {
        if name == "unknown" {
            return Ok(TicketId(self.fresh()));
        }
        self.tickets.get(name).copied().ok_or_else(|| format!("no ticket is called {name:?}"))
    }

    /// A reply by its name. `unknown` is one that was never made.
    pub(super) fn reply(&mut self, name: &str) -> Result<ReplyId, String> {
        if name == "unknown" {
            return Ok(ReplyId(self.fresh()));
        }
        self.replies.get(name).copied().ok_or_else(|| format!("no reply is called {name:?}"))
    }

    /// A fence token that was mentioned before, or a number.
    pub(super) fn fence(&self, fence: &Fence) -> Result<FenceToken, String> {
        match fence {
            Fence::Number(number) => Ok(FenceToken(Sequence(*number))),
            Fence::Absent => Err("a fence token is needed here".to_owned()),
            Fence::Named(name) => {
                let known = self.fences.get(name).copied();
                known.ok_or_else(|| format!("no fence token is called {name:?} yet"))
            }
        }
    }

    /// Whether a fence token is the one that is named; the first mention of a name binds it.
    pub(super) fn is_fence(&mut self, fence: &Fence, found: Option<FenceToken>) -> bool {
        match (fence, found) {
            (Fence::Absent, found) => found.is_none(),
            (Fence::Named(_) | Fence::Number(_), None) => false,
            (Fence::Number(number), Some(found)) => found == FenceToken(Sequence(*number)),
            (Fence::Named(name), Some(found)) => {
                *self.fences.entry(name.clone()).or_insert(found) == found
            }
        }
    }

    /// Checks facts against an event's data or a ticket's view. Says which one doesn't hold.
    pub(super) fn check(&mut self, facts: &Facts, found: &Value) -> Result<(), String> {
        for name in &facts.names {
            if !self.is_about(name, found) {
                return Err(format!("it isn't about {name:?}"));
            }
        }
        if let Some(fence) = &facts.fence {
            let holder = &found["holder"]["fence_token"];
            let written_under = &found["fence"]["fence_token"];
            let numbers = [&found["fence_token"], holder, written_under];
            let number = numbers.into_iter().find_map(Value::as_u64);
            if !self.is_fence(fence, number.map(|number| FenceToken(Sequence(number)))) {
                return Err(format!("the fence token isn't {fence:?}, which is {:?}", self.fences));
            }
        }
        let mut cycle = Vec::new();
        for name in facts.cycle.iter().flatten() {
            cycle.push(self.ticket(name)?.to_string());
        }
        self.check_reply(facts, found)?;
        let moment = |millis: Option<i64>| millis.map(|millis| json!(time(millis).to_string()));
        let wanted = [
            ("depth", facts.depth.map(Value::from)),
            ("queue_position", facts.position.map(Value::from)),
            ("lease_seconds", facts.lease.map(Value::from)),
            ("reason", facts.reason.clone().map(Value::from)),
            ("note", facts.note.clone().map(Value::from)),
            ("lease_expires_at", moment(facts.expires_at_millis)),
            ("wait_expires_at", moment(facts.until_millis)),
            ("cycle", facts.cycle.is_some().then_some(json!(cycle))),
        ];
        let fields = facts.fields.iter().map(|(field, wanted)| (*field, Some(wanted.clone())));
        for (field, wanted) in wanted.into_iter().chain(fields) {
            match wanted {
                Some(wanted) if found[field] != wanted => {
                    return Err(format!("{field} should be {wanted}, not {}", found[field]));
                }
                Some(_) | None => {}
            }
        }
        match &facts.holder {
            Some(holder) if found["holder"]["owner"] != *holder => {
                Err(format!("the holder should be {holder}, not {}", found["holder"]))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn check_reply(&mut self, facts: &Facts, found: &Value) -> Result<(), String> {
        if let Some(name) = &facts.parent {
            let parent = if name == "none" { None } else { Some(self.reply(name)?) };
            if found["parent"] != json!(parent) {
                return Err(format!("it doesn't answer {name:?}"));
            }
        }
        let links = found["links"].as_array();
        let is_there = |link: &String| links.is_some_and(|links| links.contains(&json!(link)));
        match &facts.link {
            Some(link) if !is_there(link) => Err(format!("it has no link {link:?}")),
            Some(_) | None => Ok(()),
        }
    }

    fn is_about(&self, name: &str, found: &Value) -> bool {
        let is = |field: &str, id: Option<String>| id.is_some_and(|id| found[field] == id);
        is("ticket_id", self.tickets.get(name).map(ToString::to_string))
            || is("token_id", self.tokens.get(name).map(|(id, _)| id.to_string()))
            || is("reply_id", self.replies.get(name).map(ToString::to_string))
            || FIELDS_OF_NAMES.iter().any(|field| found[field] == name)
    }

    /// Whether one named fence token is greater than another.
    pub(super) fn is_greater(&self, left: &str, right: &str) -> Result<bool, String> {
        let named = |name: &str| self.fence(&Fence::Named(name.to_owned()));
        Ok(named(left)? > named(right)?)
    }
}

/// A ticket as somebody saw it at some moment.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    /// The ticket.
    pub(super) ticket: Ticket,
    /// The depth of its hold then.
    pub(super) depth: u32,
    /// Its place then.
    pub(super) position: Option<u32>,
}

impl Seen {
    /// Its state, in the words of the scenarios.
    pub(super) fn state(&self) -> &'static str {
        match &self.ticket.phase {
            Phase::Held { .. } => "held",
            Phase::Waiting { .. } => "waiting",
            Phase::Ended { end, .. } => match end {
                End::Released => "released",
                End::Expired => "expired",
                End::Broken => "broken",
                End::Cancelled => "cancelled",
                End::TimedOut => "timed_out",
                End::Contended => "contended",
                End::DeadlockRejected => "deadlock_rejected",
            },
        }
    }

    /// Its facts, under the names that events use for them.
    pub(super) fn facts(&self) -> Value {
        let ticket = &self.ticket;
        let (reason, cycle) = match &ticket.phase {
            Phase::Ended { reason, cycle, .. } => (reason.clone(), cycle.clone()),
            Phase::Held { .. } | Phase::Waiting { .. } => (None, Vec::new()),
        };
        json!({
            "ticket_id": ticket.id,
            "owner": ticket.owner,
            "scope": ticket.input.scope,
            "fence_token": ticket.fence_token,
            "depth": self.depth,
            "queue_position": self.position,
            "lease_seconds": ticket.input.lease_seconds,
            "lease_expires_at": ticket.lease_deadline(),
            "wait_expires_at": ticket.wait_deadline(),
            "note": ticket.input.note,
            "reason": reason,
            "cycle": cycle,
        })
    }
}
