//! Locks as they were: the state of a lock, or of a scope's locks, at an earlier sequence or time.
//!
//! The events of just those locks are folded by the same `apply` as everything else, so the past
//! can't be told by other rules than the present.
//!
//! The invariants hold where an append ends. A hold's end and the promotions after it are one
//! append, so a sequence between them is taken for the last of them, and the answer says so.

use crate::domain::State;
use crate::domain::event::{Event, Record};
use crate::domain::id::Sequence;
use crate::domain::time::Time;
use crate::ledger::{Ledger, LedgerError};

use super::history::{self, Rows};

/// How many records are read at once to find the end of a group.
const GROUP_RECORDS: usize = 64;

/// A moment of the past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AsOf {
    /// After the event with this sequence, and those that belong to it.
    Sequence(Sequence),
    /// After the last event up to this time.
    Time(Time),
}

impl AsOf {
    /// The rule, fit for "as_of RULE".
    pub const RULE: &str = "must be a sequence, or an RFC 3339 time, that is not after the head";
}

impl std::str::FromStr for AsOf {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        if text.bytes().all(|b| b.is_ascii_digit()) {
            text.parse().map(|sequence| Self::Sequence(Sequence(sequence))).map_err(|_| Self::RULE)
        } else {
            text.parse().map(Self::Time).map_err(|_| Self::RULE)
        }
    }
}

/// A moment that was found in the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Its last event.
    pub sequence: Sequence,
    /// Its ledger time: the one that was asked for, else that of its last event.
    pub time: Time,
}

/// The moment that `as_of` means, in a ledger that is read up to `head`; `None` beyond it.
///
/// # Errors
/// If the ledger can't be read.
pub fn resolve(
    ledger: &dyn Ledger,
    as_of: AsOf,
    head: Sequence,
    now: Time,
) -> Result<Option<Moment>, LedgerError> {
    let (sequence, asked) = match as_of {
        AsOf::Sequence(sequence) if sequence <= head => (sequence, None),
        AsOf::Time(time) if time <= now => (last_until(ledger, time, head)?, Some(time)),
        AsOf::Sequence(_) | AsOf::Time(_) => return Ok(None),
    };
    let last = group_end(ledger, sequence, head)?;
    let own = last.as_ref().map_or(Time::default(), |record| record.time);
    let sequence = last.map_or(sequence, |record| record.sequence);
    Ok(Some(Moment { sequence, time: asked.unwrap_or(own).max(own) }))
}

/// The state that the events of `rows` up to `last` make.
///
/// # Errors
/// If the ledger can't be read.
pub fn fold(ledger: &dyn Ledger, rows: Rows<'_>, last: Sequence) -> Result<State, LedgerError> {
    fold_with(ledger, rows, last, |_, _| {})
}

/// The same; `see` gets each of the events, with the state after it.
///
/// # Errors
/// As [`fold`].
pub fn fold_with(
    ledger: &dyn Ledger,
    rows: Rows<'_>,
    last: Sequence,
    mut see: impl FnMut(&State, &Record),
) -> Result<State, LedgerError> {
    let mut sequences = history::sequences(ledger, rows, last)?;
    sequences.extend(history::sequences(ledger, Rows::Ledger, last)?);
    sequences.sort_unstable();
    let mut state = State::default();
    history::each_record(ledger, &sequences, |record| {
        let record = record.record()?;
        state.apply(&record);
        see(&state, &record);
        Ok(())
    })?;
    Ok(state)
}

/// The last sequence up to `time`. Ledger time never goes back, so it can be searched for.
fn last_until(ledger: &dyn Ledger, time: Time, head: Sequence) -> Result<Sequence, LedgerError> {
    // Records up to `low` are in time, and those from `high` on are not, or not there.
    let (mut low, mut high) = (Sequence::ZERO, head.next());
    while low.next() < high {
        let middle = Sequence(low.0 + (high.0 - low.0 - 1) / 2);
        // A restore leaves a gap, so what comes next may lie far ahead of the middle.
        let found = ledger.records(middle, 1)?.pop().filter(|found| found.sequence < high);
        match found {
            Some(found) if found.record()?.time <= time => low = found.sequence,
            _ => high = middle.next(),
        }
    }
    Ok(low)
}

/// The last event of the group that the last event up to `sequence` stands in; `None` before the
/// first event.
fn group_end(
    ledger: &dyn Ledger,
    sequence: Sequence,
    head: Sequence,
) -> Result<Option<Record>, LedgerError> {
    // From one record before the one that is meant: what follows depends on what it follows.
    let mut after = Sequence(sequence.0.saturating_sub(1));
    let mut end: Option<Record> = None;
    loop {
        let records = ledger.records(after, GROUP_RECORDS)?;
        let Some(last) = records.last() else {
            return Ok(end);
        };
        after = last.sequence;
        for stored in records {
            let record = stored.record()?;
            if let (None, Event::LedgerRestored(restored)) = (&end, &record.event)
                && record.sequence > sequence
            {
                // Nothing ever had this sequence: it lies in the gap that a restore left.
                return group_end(ledger, restored.last_sequence, head);
            }
            let goes_on = end.as_ref().is_some_and(|end| goes_on(&end.event, &record.event));
            if record.sequence > head || record.sequence > sequence && !goes_on {
                return Ok(end);
            }
            end = Some(record);
        }
    }
}

/// Whether `next`, which directly follows `event`, was decided together with it.
fn goes_on(event: &Event, next: &Event) -> bool {
    match next {
        Event::LockPromoted(_) => true,
        Event::LedgerRecovered(_) => matches!(event, Event::LedgerRestored(_)),
        Event::LockBroken(next) => matches!(
            event,
            Event::LockBroken(broken) if broken.fence_token == next.fence_token
        ),
        // Only lost access cancels with a reason, and then directly after the event that took it.
        Event::LockWaitCancelled(cancelled) => cancelled.reason.is_some(),
        Event::LedgerOpened(_)
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
        | Event::LockReleased(_)
        | Event::LockExpired(_)
        | Event::LockWaitTimedOut(_)
        | Event::ActivityUpdated(_)
        | Event::ActivityCleared(_)
        | Event::ThreadCreated(_)
        | Event::ThreadReplied(_)
        | Event::ThreadClosed(_)
        | Event::ThreadReopened(_) => false,
    }
}
