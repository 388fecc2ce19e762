//! What happened meanwhile, in its order: the first ones, a count of those between, the last ones.
//! So the story of a ticket with thousands before it is as short as any other.

use std::collections::{BTreeMap, VecDeque};

use super::bearing::{Bearing, Ended, bearing};
use crate::domain::event::Record;
use crate::domain::id::Sequence;
use crate::domain::time::Time;

/// How many are told at the beginning, and at the end.
const TOLD_FIRST: usize = 6;
const TOLD_LAST: usize = 6;

/// Something that happened meanwhile.
#[derive(Debug, Clone)]
pub(super) enum Turn {
    /// A hold ended, and another one than the story's began: the two events.
    Handed(Box<(Record, Record)>),
    /// An identity that stood before it left the queue.
    Left(Record),
    /// A start. Of a held ticket, the deadline before and after it.
    Recovered(Record, Option<(Time, Time)>),
    /// Events may be lost.
    Restored(Record),
}

/// What happened meanwhile.
#[derive(Debug, Clone, Default)]
pub(super) struct Turns {
    pub(super) first: Vec<Turn>,
    pub(super) between: Option<Between>,
    pub(super) last: VecDeque<Turn>,
}

/// What is counted only.
#[derive(Debug, Clone)]
pub(super) struct Between {
    pub(super) from: Record,
    pub(super) to: Sequence,
    pub(super) counts: BTreeMap<Kind, u64>,
}

/// Of which kind it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Released,
    Expired,
    Broken,
    Left,
    Recovered,
    Restored,
}

impl Turn {
    fn record(&self) -> &Record {
        match self {
            Self::Handed(two) => &two.0,
            Self::Left(record) | Self::Recovered(record, _) | Self::Restored(record) => record,
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Handed(two) => match bearing(&two.0.event) {
                Bearing::Over(over) => match over.how {
                    Ended::Released => Kind::Released,
                    Ended::Expired(_) => Kind::Expired,
                    Ended::Broken(_) => Kind::Broken,
                },
                _ => Kind::Released,
            },
            Self::Left(_) => Kind::Left,
            Self::Recovered(..) => Kind::Recovered,
            Self::Restored(_) => Kind::Restored,
        }
    }
}

impl Turns {
    pub(super) fn push(&mut self, turn: Turn) {
        if self.first.len() < TOLD_FIRST {
            return self.first.push(turn);
        }
        self.last.push_back(turn);
        if self.last.len() <= TOLD_LAST {
            return;
        }
        let Some(turn) = self.last.pop_front() else { return };
        let (from, to) = (turn.record().clone(), turn.record().sequence);
        let new = || Between { from, to, counts: BTreeMap::new() };
        let between = self.between.get_or_insert_with(new);
        between.to = to;
        *between.counts.entry(turn.kind()).or_default() += 1;
    }
}
