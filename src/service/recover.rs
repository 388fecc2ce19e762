//! Start-up: from the ledger to the state that the writer goes on with.
//!
//! The tail that is replayed is verified: its chain, its sequences, its times. Then the first
//! append says what the start found: a gap (`ledger.restored`), and the grace for those who could
//! not heartbeat meanwhile (`ledger.recovered`), before anything is settled.

use super::batch::Batch;
use super::snapshot;
use crate::domain::event::{Event, LedgerRecovered, LedgerRestored};
use crate::domain::id::Sequence;
use crate::domain::name::Actor;
use crate::domain::text::ShortText;
use crate::domain::time::Time;
use crate::domain::{Limits, State, invariant};
use crate::ledger::chain::link;
use crate::ledger::{Head, Ledger, LedgerError, Stored};

/// How long a holder that could not heartbeat is waited for after a start, in seconds, at most.
pub const GRACE_SECONDS: u32 = 10;

const RECORDS_AT_ONCE: usize = 1000;

/// Why the ledger may have lost events that were acknowledged or seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gap {
    /// A record that was being written when the machine stopped was dropped.
    TornTailDropped,
    /// The operator accepted the loss of what comes after a sequence.
    LossAccepted,
}

impl Gap {
    fn reason(self) -> &'static str {
        match self {
            Self::TornTailDropped => "torn-tail-dropped",
            Self::LossAccepted => "loss-accepted",
        }
    }
}

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
        batch.record_at(restored_sequence(last_sequence, now), Actor::Ledger, event);
    }
    if batch.state().has_holds() {
        let event = Event::LedgerRecovered(LedgerRecovered { grace_seconds: GRACE_SECONDS });
        batch.record(Actor::Ledger, event);
    }
    let (append, _) = batch.close();
    if append.records.is_empty() { Ok(()) } else { ledger.append(&append) }
}

/// A sequence above all that a lost part of the ledger can have used: it would have had to issue
/// 2^20 a second ever since 1970. It stays below 2^53 until 2242.
fn restored_sequence(head: Sequence, now: Time) -> Sequence {
    let seconds = u64::try_from(now.as_millis() / 1000).unwrap_or(0);
    head.next().max(Sequence(seconds << 20))
}
