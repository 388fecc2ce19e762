//! Why a ticket went as it did: who held what it waited for, whom it stood behind, what freed it,
//! and how it ended, with the events that show it.
//!
//! A story is made in two steps. [`read`] gathers what bears on the ticket, from the ledger alone
//! and within bounds. [`Life::tell`] says it in words, as far as the asker may read, and reads
//! nothing. A live ticket is in no table, so it is found in a state, by whoever has one.

mod bearing;
mod circle;
mod life;
mod queue;
mod read;
mod tell;
mod turns;
mod words;

use crate::domain::State;
use crate::domain::event::{Event, HolderThen};
use crate::domain::id::{Sequence, TicketId};
use crate::domain::name::UserName;
use crate::domain::scope::Scope;
use crate::domain::ticket::Ticket;
use crate::ledger::{Ledger, LedgerError};
use crate::projection;
use crate::wire::why::Why;

pub use life::Life;

/// A ticket as it was found, with what only a state knows of a live one.
#[derive(Debug, Clone)]
pub struct Found {
    /// The ticket.
    pub ticket: Ticket,
    /// Held tickets of its hold; 0 if it is not held.
    pub depth: u32,
    /// The place of its identity in the queue, from 1, if it waits.
    pub queue_position: Option<u32>,
    /// Who holds the lock, if it waits.
    pub holder: Option<HolderThen>,
    /// The state in which it was found. The story ends here.
    pub head: Sequence,
}

impl Found {
    /// A ticket that is live in a state.
    pub fn live(state: &State, id: TicketId) -> Option<Self> {
        let ticket = state.ticket(id)?;
        let lock = state.lock(&ticket.lock()).filter(|_| ticket.is_waiting());
        Some(Self {
            ticket: ticket.clone(),
            depth: state.depth(ticket),
            queue_position: state.queue_position(ticket),
            holder: lock.map(|lock| HolderThen {
                owner: lock.hold.owner.clone(),
                fence_token: lock.hold.fence_token,
            }),
            head: state.head(),
        })
    }

    /// A ticket that has ended up to `head`.
    ///
    /// # Errors
    /// If the ledger can't be read.
    pub fn ended(
        ledger: &dyn Ledger,
        head: Sequence,
        id: TicketId,
    ) -> Result<Option<Self>, LedgerError> {
        let ticket = projection::ticket::ended(ledger, id)?;
        let ticket = ticket.filter(|ticket| ticket.sequence <= head);
        let found = |ticket| Self { ticket, depth: 0, queue_position: None, holder: None, head };
        Ok(ticket.map(found))
    }
}

/// Whoever asks.
#[derive(Clone, Copy)]
pub struct Asker<'a> {
    /// The user, to whom its own tickets are always told; `None` for who has the ledger itself.
    pub user: Option<&'a UserName>,
    /// Whether it may read a scope.
    pub reads: &'a dyn Fn(&Scope) -> bool,
    /// Whether it may see an event.
    pub sees: &'a dyn Fn(&Event) -> bool,
}

impl Asker<'static> {
    /// Who has the ledger itself, and so may read all of it.
    pub const EVERYTHING: Self = Self { user: None, reads: &|_| true, sees: &|_| true };
}

/// Gathers the story of a ticket. `live` finds live tickets of others, which the story may name.
///
/// # Errors
/// If the ledger can't be read, or holds what can't be.
pub fn read(
    ledger: &dyn Ledger,
    live: &dyn Fn(TicketId) -> Option<Ticket>,
    found: Found,
) -> Result<Life, LedgerError> {
    let past = read::Past { ledger, head: found.head, live };
    life::gather(&past, found)
}

/// Tells all of the story of a ticket, for who has a ledger and the state that it makes; `None` if
/// there is no such ticket.
///
/// # Errors
/// As [`read`].
pub fn why(ledger: &dyn Ledger, state: &State, id: TicketId) -> Result<Option<Why>, LedgerError> {
    let found = match Found::live(state, id) {
        Some(found) => Some(found),
        None => Found::ended(ledger, state.head(), id)?,
    };
    let Some(found) = found else { return Ok(None) };
    let life = read(ledger, &|id| state.ticket(id).cloned(), found)?;
    Ok(Some(life.tell(Asker::EVERYTHING)))
}
