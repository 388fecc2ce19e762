//! The stored state, so that a start needn't replay the whole ledger.
//!
//! A snapshot is a help, not a truth. One that can't be read, or that another version wrote, is
//! passed over, and the whole ledger replayed. It names the record that it stands on by its hash:
//! where that record isn't there, the ledger has lost it, and the start is refused.

use serde::{Deserialize, Serialize};

use crate::domain::id::Sequence;
use crate::domain::{Snapshot, State};
use crate::ledger::{Append, Hash, Head, Ledger, LedgerError, Put, Table, keys};

/// How many records a start may have to replay, at the least; more where many tickets live, so
/// that writing snapshots stays a small part of the work.
const RECORDS_BETWEEN: u64 = 20_000;
const RECORDS_BETWEEN_PER_TICKET: u64 = 4;

const KEY: &str = "snapshot";

/// Beside it, the sequence that it stands on: 8 bytes, big-endian.
const HEAD_KEY: &str = "snapshot-head";

/// Of the form below and of everything in it. Any change is a new version.
const VERSION: u32 = 2;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredSnapshot {
    version: u32,
    hash: String,
    state: Snapshot,
}

/// Whether enough has been appended since the snapshot that stands on `last`.
pub fn is_due(last: Sequence, state: &State) -> bool {
    let tickets = state.tickets().size_hint().0 as u64;
    let since = state.head().0.saturating_sub(last.0);
    since >= RECORDS_BETWEEN.max(tickets * RECORDS_BETWEEN_PER_TICKET)
}

/// The sequence that the newest snapshot stands on; zero if there is none.
///
/// # Errors
/// [`LedgerError`] if it can't be read.
pub fn last(ledger: &dyn Ledger) -> Result<Sequence, LedgerError> {
    let value = ledger.get(Table::Meta, &keys::meta(HEAD_KEY))?;
    let bytes = value.and_then(|value| value.try_into().ok());
    Ok(Sequence(bytes.map_or(0, u64::from_be_bytes)))
}

/// Stores the state, which is that of the ledger's head.
///
/// # Errors
/// [`LedgerError`] if it can't be written.
///
/// # Panics
/// If it is another one's.
pub fn save(ledger: &dyn Ledger, state: &State) -> Result<(), LedgerError> {
    let head = ledger.head();
    assert_eq!(head.sequence, state.head(), "a snapshot is of the ledger's head");
    let (hash, state) = (head.hash.to_string(), state.to_snapshot());
    let value = serde_json::to_vec(&StoredSnapshot { version: VERSION, hash, state })
        .expect("every key of a snapshot's maps is text");
    let put = |key, value| Put { table: Table::Meta, key: keys::meta(key), value };
    let stands_on = head.sequence.0.to_be_bytes().to_vec();
    let puts = vec![put(KEY, value), put(HEAD_KEY, stands_on)];
    ledger.append(&Append { expected_head: head.sequence, records: Vec::new(), puts })
}

/// The newest snapshot, with the head that it stands on; `None` if there is none, or one that
/// another version wrote.
///
/// # Errors
/// [`LedgerError`] if it can't be read.
pub fn read(ledger: &dyn Ledger) -> Result<Option<(State, Head)>, LedgerError> {
    let Some(value) = ledger.get(Table::Meta, &keys::meta(KEY))? else { return Ok(None) };
    let stored = match serde_json::from_slice::<StoredSnapshot>(&value) {
        Ok(stored) if stored.version == VERSION => stored,
        Ok(_) | Err(_) => return Ok(None),
    };
    let hash = stored.hash.parse().map_err(|_| corrupt("its hash is none"))?;
    let state = State::from(stored.state);
    let sequence = state.head();
    Ok(Some((state, Head { sequence, hash })))
}

/// Whether the stored snapshot, if there is one, can be read or is another version's. A start
/// passes over one that can't, but somebody who verifies the ledger wants to know.
///
/// # Errors
/// [`LedgerError`] if it can't be looked at.
pub fn is_sound(ledger: &dyn Ledger) -> Result<bool, LedgerError> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    let Some(value) = ledger.get(Table::Meta, &keys::meta(KEY))? else { return Ok(true) };
    Ok(match serde_json::from_slice::<Versioned>(&value) {
        Ok(stored) if stored.version != VERSION => true,
        Ok(_) => serde_json::from_slice::<StoredSnapshot>(&value)
            .is_ok_and(|stored| stored.hash.parse::<Hash>().is_ok()),
        Err(_) => false,
    })
}

/// The newest snapshot, or the empty state if there is none, with the head that it stands on.
///
/// # Errors
/// [`LedgerError::Corrupt`] if that head isn't in the ledger, and what a read fails with.
pub fn load(ledger: &dyn Ledger) -> Result<(State, Head), LedgerError> {
    let Some((state, head)) = read(ledger)? else {
        if last(ledger)? > Sequence::ZERO {
            tracing::warn!("the snapshot is of another version: replaying the whole ledger");
        }
        return Ok((State::default(), Head::default()));
    };
    let before = Sequence(head.sequence.0.saturating_sub(1));
    let record = ledger.records(before, 1)?.pop();
    if record.is_none_or(|record| record.head() != head) {
        let what = format!("it stands on record {}, which isn't there", head.sequence);
        return Err(corrupt(&what));
    }
    Ok((state, head))
}

fn corrupt(what: &str) -> LedgerError {
    LedgerError::Corrupt { what: format!("the snapshot: {what}") }
}
