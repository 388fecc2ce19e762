//! Follows a ledger record by record: its order, its chain, its form, its rules.
//!
//! A fault is told where it first shows. The state is only ever the one of good records.

use super::fault::{Fault, FaultKind};
use crate::domain::State;
use crate::domain::event::{Event, Record};
use crate::domain::id::Sequence;
use crate::domain::invariant;
use crate::domain::lawful::Course;
use crate::domain::ticket::Ticket;
use crate::ledger::codec::decode;
use crate::ledger::{Hash, Head, Stored, link};

/// How far a ledger was followed.
///
/// A fault is told by the sequence that ought to stand there, which is the one after the last good
/// record: a changed record by its own, a missing, repeated or misplaced one by the first place
/// that isn't as it must be. `ledger.restored` alone leaves a gap. A fault in it is told by its own
/// sequence if that can be read, belongs to its time, and follows on the last good record by what
/// it says; else by the one after the last good record. If it is missing, that is where the gap
/// began.
///
/// Whatever is changed is found, but for records that are missing at the end: then the ledger is a
/// shorter one, unless it ends in the middle of what was decided together. Only a checkpoint tells.
#[derive(Debug, Clone, Default)]
pub struct Checker {
    state: State,
    head: Head,
    records: u64,
    course: Course,
}

/// A record that is good, and the ticket that it ended.
pub struct Good {
    /// As it is stored.
    pub stored: Stored,
    /// What it says.
    pub record: Record,
    /// The ticket that it ended, if it did.
    pub ended: Option<Ticket>,
}

impl Checker {
    /// The state of the good records.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The last good record.
    pub fn head(&self) -> Head {
        self.head
    }

    /// How many records are good.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Goes past the next record, if it is good.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn pass(&mut self, hash: Hash, bytes: Box<[u8]>) -> Result<Good, Fault> {
        let place = self.place(&bytes);
        let decoded = decode(&bytes);
        if let Ok(record) = &decoded {
            self.is_in_order(place, record)?;
        }
        if link(&self.head.hash, &bytes) != hash {
            let what = "its hash is not that of its bytes and the record before";
            return Err(Fault::of(place, FaultKind::Chain, what));
        }
        let record =
            decoded.map_err(|error| Fault::of(place, FaultKind::Record, error.to_string()))?;
        self.course
            .pass(&self.state, &record)
            .map_err(|rule| Fault::of(place, FaultKind::Rule, rule))?;
        let ended = self.state.apply(&record);
        let stored = Stored { sequence: record.sequence, hash, bytes };
        self.head = stored.head();
        self.records += 1;
        Ok(Good { stored, record, ended })
    }

    /// Says whether the ledger may end here, and whether the whole state holds together.
    ///
    /// # Errors
    /// What is wrong.
    pub fn end(&self) -> Result<(), Fault> {
        let next = self.head.sequence.next();
        if self.records == 0 {
            return Err(Fault::of(next, FaultKind::Order, "there is no record at all"));
        }
        self.course.end().map_err(|what| Fault::of(next, FaultKind::Order, what))?;
        let broken = |what| Fault { kind: FaultKind::Rule, sequence: None, what };
        invariant::check(&self.state).map_err(broken)
    }

    /// What a fault in the next record is told by.
    fn place(&self, bytes: &[u8]) -> Sequence {
        self.behind_gap(bytes).unwrap_or(self.head.sequence.next())
    }

    /// The sequence of a `ledger.restored`, whatever else is wrong with its bytes.
    fn behind_gap(&self, bytes: &[u8]) -> Option<Sequence> {
        let text = String::from_utf8_lossy(bytes);
        let (number, rest) = text.strip_prefix("{\"sequence\":")?.split_once(",\"time\":\"")?;
        let (time, rest) = rest.split_once('"')?;
        let is_restored = rest.contains("\"type\":\"ledger.restored\"");
        let sequence = number.parse().ok().filter(|_| is_restored).map(Sequence)?;
        (self.head.sequence.after_restore(time.parse().ok()?) == sequence).then_some(sequence)
    }

    /// Whether a record stands in its place. Asked before its hash is, so that a missing record is
    /// told as missing, and not as one whose successor is wrong.
    fn is_in_order(&self, place: Sequence, record: &Record) -> Result<(), Fault> {
        let (last, next) = (self.head.sequence, self.head.sequence.next());
        let wrong = |at: Sequence, what: String| Err(Fault::of(at, FaultKind::Order, what));
        if record.sequence <= last {
            let what = format!("record {} stands there, after record {last}", record.sequence);
            return wrong(next, what);
        }
        // What comes after a gap says where the gap begins.
        let follows = if let Event::LedgerRestored(restored) = &record.event {
            restored.last_sequence.next()
        } else {
            record.sequence
        };
        if follows != next {
            let what = format!("it is missing: record {} follows record {last}", record.sequence);
            return wrong(next, what);
        }
        if record.time < self.state.time() {
            let what = format!("its time {} is before {}", record.time, self.state.time());
            return wrong(place, what);
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
