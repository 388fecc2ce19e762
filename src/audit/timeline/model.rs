//! What there is to draw of a lock, or of a scope's locks.

use std::collections::BTreeMap;

use super::fold::Fold;
use crate::domain::event::HolderThen;
use crate::domain::id::{FenceToken, Sequence, TicketId};
use crate::domain::name::{LockName, UserName};
use crate::domain::scope::{LockKey, Scope};
use crate::domain::text::ShortText;
use crate::domain::ticket::End;
use crate::domain::time::Time;
use crate::ledger::{Ledger, LedgerError};
use crate::projection::as_of::{self, AsOf, Moment};
use crate::projection::history::{self, Rows};

/// How many tickets, and how many holds, a picture has. More rows than this nobody can read.
pub const TICKETS_MAX: usize = 500;

/// From when to when. What is left out is the beginning, or the head.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Range {
    /// Nothing is shown that was over before this.
    pub from: Option<AsOf>,
    /// Nothing is shown that came after this.
    pub to: Option<AsOf>,
}

impl Range {
    /// The rule of a beginning, fit for "from RULE".
    pub const FROM_RULE: &str =
        "must be a sequence, or an RFC 3339 time, that is after neither `to` nor the head";
    /// The rule of an end, fit for "to RULE".
    pub const TO_RULE: &str = AsOf::RULE;
}

/// Why there is no timeline.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    /// The beginning isn't in the ledger, or it comes after the end.
    #[error("from {}", Range::FROM_RULE)]
    From,
    /// The end isn't in the ledger.
    #[error("to {}", Range::TO_RULE)]
    To,
    /// The ledger can't be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// An event's place and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) sequence: Sequence,
    pub(super) time: Time,
}

/// What happened to a lock, or to the locks of a scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeline {
    pub(super) scope: Scope,
    /// The lock; `None` for all of the scope.
    pub(super) lock_name: Option<LockName>,
    /// The locks to which something happened, by name.
    pub(super) locks: BTreeMap<LockName, Lock>,
    /// Restarts, and gaps in the sequences, between the first and the last moment.
    pub(super) breaks: Vec<Break>,
    /// The first and the last moment; `None` if nothing happened.
    pub(super) span: Option<(Time, Time)>,
    /// The last event that was looked at.
    pub(super) sequence: Sequence,
    pub(super) tickets_left_out: u64,
    pub(super) attempts_left_out: u64,
}

/// What happened to a lock.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Lock {
    /// In their order.
    pub(super) holds: Vec<Hold>,
    /// In the order in which they were made.
    pub(super) tickets: Vec<Ticket>,
}

/// One identity's unbroken ownership of a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hold {
    pub(super) owner: UserName,
    pub(super) fence_token: FenceToken,
    pub(super) since: Point,
    pub(super) until: Option<Point>,
    /// The most tickets that it had at once.
    pub(super) depth: u32,
}

/// One acquisition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) id: TicketId,
    pub(super) owner: UserName,
    pub(super) note: Option<ShortText>,
    pub(super) made: Point,
    /// Who held the lock when it was made, unless it was held at once.
    pub(super) holder: Option<HolderThen>,
    pub(super) held: Option<Held>,
    pub(super) heartbeats: Vec<Beats>,
    pub(super) end: Option<Ending>,
}

/// When a ticket began to be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) since: Point,
    pub(super) fence_token: FenceToken,
}

/// Some heartbeats in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Beats {
    pub(super) first: Point,
    pub(super) last: Point,
    pub(super) count: u64,
}

impl Beats {
    /// These and those that follow.
    pub(super) fn with(self, later: Self) -> Self {
        Self { first: self.first, last: later.last, count: self.count + later.count }
    }
}

/// How a ticket ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ending {
    pub(super) at: Point,
    pub(super) how: End,
    pub(super) reason: Option<ShortText>,
    /// The deadline that passed.
    pub(super) deadline: Option<Time>,
    /// The tickets of the cycle that it would have closed.
    pub(super) cycle: Vec<TicketId>,
}

/// Something that happened to the whole ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Break {
    pub(super) at: Point,
    pub(super) what: Interruption,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Interruption {
    /// A start with live holds.
    Restart { grace_seconds: u32 },
    /// Sequences jump: events may be lost.
    Gap { last_sequence: Sequence, reason: ShortText },
}

impl Ticket {
    /// Whether it ended at once.
    pub(super) fn is_attempt(&self) -> bool {
        self.end.as_ref().is_some_and(|end| match end.how {
            End::Contended | End::DeadlockRejected => true,
            End::Released | End::Expired | End::Broken | End::Cancelled | End::TimedOut => false,
        })
    }

    /// Whether it waited before it was held.
    pub(super) fn is_promoted(&self) -> bool {
        self.held.is_some_and(|held| held.since.sequence != self.made.sequence)
    }

    /// When it ended; `last` if it lives.
    pub(super) fn end_or(&self, last: Time) -> Time {
        self.end.as_ref().map_or(last, |end| end.at.time)
    }
}

impl Hold {
    /// When it ended; `last` if it lasts.
    pub(super) fn end_or(&self, last: Time) -> Time {
        self.until.map_or(last, |until| until.time)
    }
}

impl Timeline {
    /// Reads what happened to a lock, or to all locks of its scope if `lock_name` is `None`, in a
    /// ledger that is read up to `head`. At most `most` tickets and `most` holds are shown, the
    /// newest; see [`TICKETS_MAX`].
    ///
    /// # Errors
    /// If the range isn't in the ledger, or the ledger can't be read.
    pub fn read(
        ledger: &dyn Ledger,
        scope: &Scope,
        lock_name: Option<&LockName>,
        range: Range,
        (head, now): (Sequence, Time),
        most: usize,
    ) -> Result<Self, Unread> {
        let resolve = |moment| as_of::resolve(ledger, moment, head, now);
        let to = resolve(range.to.unwrap_or(AsOf::Sequence(head)))?.ok_or(Unread::To)?;
        let from = match range.from {
            None => Moment { sequence: Sequence::ZERO, time: Time::from_millis(i64::MIN) },
            Some(from) => resolve(from)?.ok_or(Unread::From)?,
        };
        if from.time > to.time || from.sequence > to.sequence {
            return Err(Unread::From);
        }
        let lock = lock_name.map(|lock_name| {
            let (scope, lock_name) = (scope.clone(), lock_name.clone());
            LockKey { scope, lock_name }
        });
        let rows = lock.as_ref().map_or(Rows::Scope(scope), Rows::Lock);
        let mut sequences = history::sequences(ledger, rows, to.sequence)?;
        sequences.extend(history::sequences(ledger, Rows::Ledger, to.sequence)?);
        sequences.sort_unstable();
        let mut fold = Fold::new(from.time, most);
        history::each_record(ledger, &sequences, |stored| {
            fold.take(&stored.record()?);
            Ok(())
        })?;
        Ok(fold.finish(scope.clone(), lock_name.cloned(), to))
    }

    /// The state that it shows.
    pub fn sequence(&self) -> Sequence {
        self.sequence
    }

    /// All tickets.
    pub(super) fn tickets(&self) -> impl Iterator<Item = &Ticket> {
        self.locks.values().flat_map(|lock| &lock.tickets)
    }

    /// All holds.
    pub(super) fn holds(&self) -> impl Iterator<Item = &Hold> {
        self.locks.values().flat_map(|lock| &lock.holds)
    }

    /// The owners of all tickets and holds, each once, in the order of their first ones.
    pub(super) fn owners(&self) -> Vec<&UserName> {
        let of_tickets = self.tickets().map(|ticket| (ticket.made.sequence, &ticket.owner));
        let of_holds = self.holds().map(|hold| (hold.since.sequence, &hold.owner));
        let mut first: BTreeMap<&UserName, Sequence> = BTreeMap::new();
        for (sequence, owner) in of_tickets.chain(of_holds) {
            let known = first.entry(owner).or_insert(sequence);
            *known = sequence.min(*known);
        }
        let mut owners: Vec<_> = first.into_iter().collect();
        owners.sort_by_key(|(_, sequence)| *sequence);
        owners.into_iter().map(|(owner, _)| owner).collect()
    }
}
