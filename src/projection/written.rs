//! What a user wrote under a request UUID, beside the tickets that it made: writes to threads, and
//! what it said that it is doing.

use crate::domain::event::{Event, Record};
use crate::domain::id::{RequestUuid, Sequence};
use crate::domain::name::UserName;
use crate::ledger::keys::{self, Operation};
use crate::ledger::{Ledger, LedgerError, Table};

/// A write under a request UUID.
pub struct Written<'a> {
    /// Who wrote.
    pub user: &'a UserName,
    /// What for.
    pub operation: Operation,
    /// The request.
    pub request_uuid: RequestUuid,
}

/// The request that an event was written by; `None` for an event without one, and for tickets.
pub fn written(event: &Event) -> Option<Written<'_>> {
    let (user, operation, request_uuid) = match event {
        Event::ThreadCreated(e) => (&e.author, Operation::CreateThread, e.request_uuid?),
        Event::ThreadReplied(e) => (&e.author, Operation::CreateReply, e.request_uuid?),
        Event::ThreadClosed(e) => (&e.user, Operation::CloseThread, e.request_uuid?),
        Event::ThreadReopened(e) => (&e.user, Operation::ReopenThread, e.request_uuid?),
        Event::ActivityUpdated(e) => (&e.user, Operation::UpdateActivity, e.request_uuid?),
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
        | Event::LockAcquired(_)
        | Event::LockQueued(_)
        | Event::LockContended(_)
        | Event::LockDeadlockRejected(_)
        | Event::LockHeartbeat(_)
        | Event::LockPromoted(_)
        | Event::LockReleased(_)
        | Event::LockExpired(_)
        | Event::LockBroken(_)
        | Event::LockWaitCancelled(_)
        | Event::LockWaitTimedOut(_)
        | Event::ActivityCleared(_) => return None,
    };
    Some(Written { user, operation, request_uuid })
}

/// The sequence of what a user wrote under a request UUID.
///
/// # Errors
///
/// [`LedgerError`] if the ledger can't be read, or holds something else there.
pub fn by_request(
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
