//! What was done under a request UUID: the ticket that an acquire made, and what a user wrote to a
//! thread or said of itself.

use crate::domain::event::{Event, Record};
use crate::domain::id::{RequestUuid, Sequence, TicketId};
use crate::domain::name::UserName;
use crate::ledger::keys::{self, Operation};
use crate::ledger::{Ledger, LedgerError, Put, Table};

/// A request that was carried out.
pub struct Request<'a> {
    /// Whose it was.
    pub user: &'a UserName,
    /// What for.
    pub operation: Operation,
    /// Its name.
    pub request_uuid: RequestUuid,
    /// The ticket that it made; a write made none, and is known by its event.
    pub ticket_id: Option<TicketId>,
}

/// The request that an event carried out; `None` for an event that no named request made.
pub fn request(event: &Event) -> Option<Request<'_>> {
    use Operation::{
        AcquireLock, CloseThread, CreateReply, CreateThread, ReopenThread, UpdateActivity,
    };
    macro_rules! acquired {
        ($data:expr) => {
            (&$data.owner, AcquireLock, $data.request_uuid, Some($data.ticket_id))
        };
    }
    let (user, operation, request_uuid, ticket_id) = match event {
        Event::LockAcquired(e) => acquired!(e),
        Event::LockQueued(e) => acquired!(e),
        Event::LockContended(e) => acquired!(e),
        Event::LockDeadlockRejected(e) => acquired!(e),
        Event::ThreadCreated(e) => (&e.author, CreateThread, e.request_uuid?, None),
        Event::ThreadReplied(e) => (&e.author, CreateReply, e.request_uuid?, None),
        Event::ThreadClosed(e) => (&e.user, CloseThread, e.request_uuid?, None),
        Event::ThreadReopened(e) => (&e.user, ReopenThread, e.request_uuid?, None),
        Event::ActivityUpdated(e) => (&e.user, UpdateActivity, e.request_uuid?, None),
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
        | Event::ActivityCleared(_) => return None,
    };
    Some(Request { user, operation, request_uuid, ticket_id })
}

/// Records a request.
pub(super) fn put(record: &Record, request: &Request<'_>) -> Put {
    let key = keys::request(request.user, request.operation, request.request_uuid);
    let value = match request.ticket_id {
        Some(ticket_id) => ticket_id.0.as_bytes().to_vec(),
        None => record.sequence.0.to_be_bytes().to_vec(),
    };
    Put { table: Table::Requests, key, value }
}

/// The sequence of what a user wrote under a request UUID.
///
/// # Errors
///
/// [`LedgerError`] if the ledger can't be read, or holds something else there.
pub fn written(
    ledger: &dyn Ledger,
    user: &UserName,
    operation: Operation,
    request_uuid: RequestUuid,
) -> Result<Option<Sequence>, LedgerError> {
    let key = keys::request(user, operation, request_uuid);
    let Some(value) = ledger.get(Table::Requests, &key)? else { return Ok(None) };
    let corrupt = |_| LedgerError::Corrupt { what: format!("request {request_uuid}") };
    value.try_into().map(|bytes| Some(Sequence(u64::from_be_bytes(bytes)))).map_err(corrupt)
}

/// A record that a table names.
///
/// # Errors
///
/// [`LedgerError`] if the ledger can't be read, or has no such record: rows and records are
/// written by one append.
pub fn record(ledger: &dyn Ledger, sequence: Sequence) -> Result<Record, LedgerError> {
    let corrupt =
        |what: String| LedgerError::Corrupt { what: format!("record {sequence}: {what}") };
    let before = Sequence(sequence.0.saturating_sub(1));
    let found = ledger.records(before, 1)?.pop().filter(|found| found.sequence == sequence);
    let stored = found.ok_or_else(|| corrupt("it is named, and not there".to_owned()))?;
    stored.decode().map_err(|error| corrupt(error.to_string()))
}
