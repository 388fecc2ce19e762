//! Read models: what is looked up about the past, written in the same append as its events.
//!
//! Each can be worked out from the ledger alone. Live tickets are not here: they are in the
//! state.

pub mod as_of;
pub mod history;
pub mod thread;
pub mod ticket;
pub mod written;

use crate::domain::event::{Event, Record, Subject};
use crate::domain::id::{RequestUuid, TicketId};
use crate::domain::name::UserName;
use crate::domain::ticket::Ticket;
use crate::ledger::{Put, Table, keys};

/// What a record adds to the tables, together with the ticket that it ended.
pub fn puts(record: &Record, ended: Option<&Ticket>) -> Vec<Put> {
    let mut puts = Vec::new();
    if let Some(ticket) = ended {
        puts.push(ticket::put(ticket));
    }
    if let Some(made) = made(&record.event) {
        let key = keys::request(made.owner, keys::Operation::AcquireLock, made.request_uuid);
        let value = made.ticket_id.0.as_bytes().to_vec();
        puts.push(Put { table: Table::Requests, key, value });
    }
    if let Some(written) = written::written(&record.event) {
        let key = keys::request(written.user, written.operation, written.request_uuid);
        let value = record.sequence.0.to_be_bytes().to_vec();
        puts.push(Put { table: Table::Requests, key, value });
    }
    if let Some(key) = history_key(record) {
        puts.push(Put { table: Table::History, key, value: Vec::new() });
    }
    puts.extend(thread::puts(record));
    puts
}

/// The ticket that an event made, and the request that it was made by.
pub struct Made<'a> {
    /// The identity that asked.
    pub owner: &'a UserName,
    /// The request.
    pub request_uuid: RequestUuid,
    /// The ticket.
    pub ticket_id: TicketId,
}

/// The ticket that an event made; `None` for an event that made none.
pub fn made(event: &Event) -> Option<Made<'_>> {
    let (owner, request_uuid, ticket_id) = match event {
        Event::LockAcquired(e) => (&e.owner, e.request_uuid, e.ticket_id),
        Event::LockQueued(e) => (&e.owner, e.request_uuid, e.ticket_id),
        Event::LockContended(e) => (&e.owner, e.request_uuid, e.ticket_id),
        Event::LockDeadlockRejected(e) => (&e.owner, e.request_uuid, e.ticket_id),
        Event::LedgerOpened(_)
        | Event::LedgerRecovered(_)
        | Event::LedgerRestored(_)
        | Event::UserCreated(_)
        | Event::UserDisabled(_)
        | Event::UserEnabled(_)
        | Event::TokenIssued(_)
        | Event::TokenRevoked(_)
        | Event::TeamCreated(_)
        | Event::TeamMemberAdded(_)
        | Event::TeamMemberRemoved(_)
        | Event::RepoCreated(_)
        | Event::AccessGranted(_)
        | Event::AccessRevoked(_)
        | Event::LockHeartbeat(_)
        | Event::LockPromoted(_)
        | Event::LockReleased(_)
        | Event::LockExpired(_)
        | Event::LockBroken(_)
        | Event::LockWaitCancelled(_)
        | Event::LockWaitTimedOut(_)
        | Event::ActivityUpdated(_)
        | Event::ActivityCleared(_)
        | Event::ThreadCreated(_)
        | Event::ThreadReplied(_)
        | Event::ThreadClosed(_)
        | Event::ThreadReopened(_) => return None,
    };
    Some(Made { owner, request_uuid, ticket_id })
}

/// Where an event stands in the history of its lock, or of the ledger, whose events bear on every
/// lock.
fn history_key(record: &Record) -> Option<Vec<u8>> {
    match record.event.concerns() {
        Subject::Ledger => Some(keys::history_of_ledger(record.sequence)),
        Subject::User(_) | Subject::Activity(_) | Subject::Scope(_) => {
            let (lock, _) = record.event.lock_and_ticket()?;
            Some(keys::history(&lock, record.sequence))
        }
    }
}
