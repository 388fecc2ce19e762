//! Start-up: from the ledger to the state that the writer goes on with.
//!
//! The tail that is replayed is verified: its chain, its sequences, its times. Then the first
//! append says what the start found: a gap (`ledger.restored`), and the grace for those who could
//! not heartbeat meanwhile (`ledger.recovered`), before anything is settled.

use super::batch::Batch;
use crate::domain::event::{Event, LedgerRecovered, LedgerRestored};
use crate::domain::name::Actor;
use crate::domain::text::ShortText;
use crate::domain::time::Time;
use crate::domain::{Limits, State, invariant};
use crate::ledger::chain::link;
use crate::ledger::pending::{Gap, Pending};
use crate::ledger::{Head, Ledger, LedgerError, Stored};
use crate::projection::snapshot;

/// How long a holder that could not heartbeat is waited for after a start, in seconds, at most.
pub const GRACE_SECONDS: u32 = 10;

const RECORDS_AT_ONCE: usize = 1000;

/// The state at the ledger's head: the newest snapshot, and the verified records after it.
///
/// # Errors
///
/// [`LedgerError::Corrupt`] naming the first record that is not as it was written.
pub fn replay(ledger: &dyn Ledger) -> Result<State, LedgerError> {
    let (mut state, mut head) = snapshot::load(ledger)?;
    loop {
        let records = ledger.records(head.sequence, RECORDS_AT_ONCE)?;
        if records.is_empty() {
            break;
        }
        for stored in &records {
            head = fold(&mut state, head, stored)?;
        }
    }
    if state.ledger_id().is_none() {
        return Err(LedgerError::Corrupt { what: "it has no first record".to_owned() });
    }
    Ok(state)
}

fn fold(state: &mut State, head: Head, stored: &Stored) -> Result<Head, LedgerError> {
    let at = stored.sequence;
    let corrupt = |what: String| LedgerError::Corrupt { what: format!("record {at}: {what}") };
    if link(&head.hash, &stored.bytes) != stored.hash {
        return Err(corrupt("its hash is not that of its bytes".to_owned()));
    }
    let record = stored.decode().map_err(|error| corrupt(error.to_string()))?;
    invariant::check_record(state, &record).map_err(corrupt)?;
    state.apply(&record);
    Ok(stored.head())
}

/// Appends what a start at ledger time `now` has to say, if anything.
///
/// # Errors
///
/// [`LedgerError`] if it can't be written.
pub fn resume(
    state: &mut State,
    ledger: &dyn Ledger,
    gap: Option<Gap>,
    now: Time,
) -> Result<(), LedgerError> {
    let limits = Limits::default();
    let mut batch = Batch::open(state, ledger, &limits, now);
    if let Some(gap) = gap {
        let last_sequence = batch.state().head();
        let reason = ShortText::try_from(gap.reason().to_owned()).expect("the reason is short");
        let event = Event::LedgerRestored(LedgerRestored { last_sequence, reason });
        batch.record_at(last_sequence.after_restore(now), Actor::Ledger, event);
    }
    if batch.state().has_holds() {
        let event = Event::LedgerRecovered(LedgerRecovered { grace_seconds: GRACE_SECONDS });
        batch.record(Actor::Ledger, event);
    }
    let (mut append, _) = batch.close();
    if gap.is_some() {
        append.puts.push(Pending::default().put());
    }
    if append.records.is_empty() { Ok(()) } else { ledger.append(&append) }
}
