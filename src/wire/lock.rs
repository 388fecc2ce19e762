//! A lock as JSON: who holds it, who waits, in order.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ticket::Ticket;
use super::view::LockView;
use crate::domain::id::{FenceToken, Sequence};
use crate::domain::name::{LockName, UserName};
use crate::domain::scope::Scope;
use crate::domain::time::Time;

/// A lock. A free one has owner and fence token null, depth 0 and empty lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lock {
    /// Where it lives.
    pub scope: Scope,
    /// Its name there.
    pub lock_name: LockName,
    /// Who holds it.
    pub owner: Option<UserName>,
    /// The hold's fence token.
    pub fence_token: Option<FenceToken>,
    /// Held tickets of the hold.
    pub depth: u32,
    /// The held tickets, in the order in which they were made.
    pub holds: Vec<Ticket>,
    /// The waiting tickets, in the order of their places.
    pub queue: Vec<Ticket>,
    /// The state that this shows.
    pub sequence: Sequence,
}

impl Lock {
    /// The lock as it looks at `now`, in ledger time.
    pub fn new(view: &LockView, now: Time) -> Self {
        let first = view.holds.first();
        Self {
            scope: view.lock.scope.clone(),
            lock_name: view.lock.lock_name.clone(),
            owner: first.map(|first| first.ticket.owner.clone()),
            fence_token: first.and_then(|first| first.ticket.fence_token),
            depth: first.map_or(0, |first| first.depth),
            holds: view.holds.iter().map(|ticket| Ticket::new(ticket, now)).collect(),
            queue: view.queue.iter().map(|ticket| Ticket::new(ticket, now)).collect(),
            sequence: view.sequence,
        }
    }
}
