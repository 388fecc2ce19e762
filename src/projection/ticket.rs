//! Tickets that have ended, by id. An ended ticket can be read for ever.

use crate::domain::id::RequestUuid;
use crate::domain::id::TicketId;
use crate::domain::name::UserName;
use crate::domain::ticket::Ticket;
use crate::ledger::{Ledger, LedgerError, Put, Table, keys};

/// Records an ended ticket.
pub(super) fn put(ticket: &Ticket) -> Put {
    let value = serde_json::to_vec(ticket).expect("a ticket has no map with keys that aren't text");
    Put { table: Table::Tickets, key: keys::ticket(ticket.id), value }
}

/// An ended ticket by its id; `None` if it never was, or if it hasn't ended.
///
/// # Errors
///
/// [`LedgerError`] if the ledger can't be read, or holds something else there.
pub fn ended(ledger: &dyn Ledger, id: TicketId) -> Result<Option<Ticket>, LedgerError> {
    let Some(value) = ledger.get(Table::Tickets, &keys::ticket(id))? else { return Ok(None) };
    let what = |error| LedgerError::Corrupt { what: format!("the ended ticket {id}: {error}") };
    serde_json::from_slice(&value).map(Some).map_err(what)
}

/// The ticket that an identity made under a request UUID, live or ended.
///
/// # Errors
///
/// As [`ended`].
pub fn by_request(
    ledger: &dyn Ledger,
    owner: &UserName,
    request_uuid: RequestUuid,
) -> Result<Option<TicketId>, LedgerError> {
    let key = keys::request(owner, keys::Operation::AcquireLock, request_uuid);
    let Some(value) = ledger.get(Table::Requests, &key)? else { return Ok(None) };
    let what = |error| LedgerError::Corrupt { what: format!("request {request_uuid}: {error}") };
    uuid::Uuid::from_slice(&value).map(|id| Some(TicketId(id))).map_err(what)
}
