//! Who held a lock at a moment, who waited, and by which events, as JSON.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ticket::State;
use crate::domain::id::{FenceToken, Sequence, TicketId};
use crate::domain::name::{LockName, UserName};
use crate::domain::scope::Scope;
use crate::domain::text::ShortText;
use crate::domain::time::Time;

/// A lock at a moment. A free one has owner and fence token null, depth 0 and empty lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Who {
    /// Where it lives.
    pub scope: Scope,
    /// Its name there.
    pub lock_name: LockName,
    /// The last event of that moment, whatever it is about.
    pub sequence: Sequence,
    /// The moment: the one that was asked for, else the time of that event.
    pub time: Time,
    /// Who held it.
    pub owner: Option<UserName>,
    /// The hold's fence token.
    pub fence_token: Option<FenceToken>,
    /// Held tickets of the hold.
    pub depth: u32,
    /// The held tickets, in the order in which they joined.
    pub holds: Vec<Standing>,
    /// The waiting tickets, in the order of their places.
    pub queue: Vec<Standing>,
}

/// A ticket that held or waited, with the events by which it did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Standing {
    /// The ticket.
    pub ticket_id: TicketId,
    /// The identity that it belongs to.
    pub owner: UserName,
    /// Held or waiting.
    pub state: State,
    /// The place of its identity in the queue, 1 being next; null if it doesn't wait.
    pub queue_position: Option<u32>,
    /// Why, as its owner said.
    pub note: Option<ShortText>,
    /// Since when it stood so.
    pub since: Time,
    /// When its lease, or its wait, was to end.
    pub until: Time,
    /// The events that made it so: the acquire, the promotion, and what moved its deadline last.
    pub evidence: Vec<Sequence>,
}
