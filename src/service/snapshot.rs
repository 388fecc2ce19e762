//! The stored state, so that a start needn't replay the whole ledger.
//!
//! A snapshot is a help, not a truth: it names the record that it stands on by its hash, and a
//! start that doesn't find that record refuses it.

use serde::{Deserialize, Serialize};

use crate::domain::{Snapshot, State};
use crate::ledger::{Append, Head, Ledger, LedgerError, Put, Table, keys};

/// How many records a start may have to replay, at the least; more where many tickets live, so
/// that writing snapshots stays a small part of the work.
const RECORDS_BETWEEN: u64 = 20_000;
const RECORDS_BETWEEN_PER_TICKET: u64 = 4;

const KEY: &str = "snapshot";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredSnapshot {
    hash: String,
    state: Snapshot,
}

/// Whether enough has been appended since the last snapshot.
pub(super) fn is_due(records_since: u64, state: &State) -> bool {
    let tickets = state.tickets().size_hint().0 as u64;
    records_since >= RECORDS_BETWEEN.max(tickets * RECORDS_BETWEEN_PER_TICKET)
}

/// Stores the state, which is that of the ledger's head.
pub(super) fn save(ledger: &dyn Ledger, state: &State) -> Result<(), LedgerError> {
    let head = ledger.head();
    assert_eq!(head.sequence, state.head(), "a snapshot is of the ledger's head");
    let stored = StoredSnapshot { hash: head.hash.to_string(), state: state.to_snapshot() };
    let value = serde_json::to_vec(&stored).expect("every key of a snapshot's maps is text");
    let put = Put { table: Table::Meta, key: keys::meta(KEY), value };
    ledger.append(&Append { expected_head: head.sequence, records: Vec::new(), puts: vec![put] })
}

/// The newest snapshot, with the head that it stands on; the empty state if there is none.
pub(super) fn load(ledger: &dyn Ledger) -> Result<(State, Head), LedgerError> {
    let Some(value) = ledger.get(Table::Meta, &keys::meta(KEY))? else {
        return Ok((State::default(), Head::default()));
    };
    let corrupt = |what: String| LedgerError::Corrupt { what: format!("the snapshot: {what}") };
    let stored: StoredSnapshot =
        serde_json::from_slice(&value).map_err(|error| corrupt(error.to_string()))?;
    let hash = stored.hash.parse().map_err(|_| corrupt("its hash is none".to_owned()))?;
    let state = State::from(stored.state);
    let sequence = state.head();
    let before = crate::domain::id::Sequence(sequence.0.saturating_sub(1));
    let record = ledger.records(before, 1)?.pop();
    if record.is_none_or(|record| record.sequence != sequence || record.hash != hash) {
        return Err(corrupt(format!("it stands on record {sequence}, which isn't there")));
    }
    Ok((state, Head { sequence, hash }))
}
