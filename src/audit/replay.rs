//! Replays a ledger to a point of it, and shows the state there, or what each event changes.
//!
//! Nothing here reads a clock or a time zone, so the same ledger gives the same bytes, for ever.

use super::difference::{Change, differences};
use super::fault::AuditError;
use super::source::RECORDS_MAX;
use crate::domain::State;
use crate::domain::event::Record;
use crate::domain::id::Sequence;
use crate::domain::scope::Scope;
use crate::domain::thread::ThreadKey;
use crate::domain::time::Time;
use crate::ledger::{Hash, Head, Ledger, LedgerError};
use crate::projection::as_of::{self, AsOf, Moment};
use crate::projection::{snapshot, thread};
use crate::wire::state::LedgerState;
use crate::wire::thread::ThreadItem;

/// A ledger up to one of its points.
pub struct Replay<'a> {
    ledger: &'a dyn Ledger,
    state: State,
    hash: Hash,
}

/// A record, and what it changed.
pub struct Step {
    /// The record.
    pub record: Record,
    /// What is otherwise after it than before.
    pub changes: Vec<Change>,
}

impl<'a> Replay<'a> {
    /// Replays up to `point`, or to the end. Begins at the stored snapshot if that is not beyond
    /// the point, unless `is_from_first`.
    ///
    /// # Errors
    /// [`AuditError::Asked`] for a point that is beyond the end; else what reading fails with.
    pub fn to(
        ledger: &'a dyn Ledger,
        point: Option<AsOf>,
        is_from_first: bool,
    ) -> Result<Self, AuditError> {
        let last = moment(ledger, point)?.sequence;
        let (state, head) = match snapshot::read(ledger)? {
            Some((state, head)) if head.sequence <= last && !is_from_first => (state, head),
            Some(_) | None => (State::default(), Head::default()),
        };
        let mut replay = Self { ledger, state, hash: head.hash };
        replay.go_on(last)?;
        Ok(replay)
    }

    /// The state.
    pub fn state(&self) -> &State {
        &self.state
    }

    fn go_on(&mut self, last: Sequence) -> Result<(), AuditError> {
        while self.state.head() < last {
            for stored in self.ledger.records(self.state.head(), RECORDS_MAX)? {
                if stored.sequence > last {
                    break;
                }
                self.state.apply(&stored.record()?);
                self.hash = stored.hash;
            }
        }
        Ok(())
    }

    /// The state as JSON.
    ///
    /// # Errors
    /// What reading fails with.
    pub fn shown(&self) -> Result<LedgerState, AuditError> {
        Ok(LedgerState::new(&self.state, &self.hash, self.threads()?))
    }

    fn threads(&self) -> Result<Vec<ThreadItem>, LedgerError> {
        let mut items = Vec::new();
        let repos: Vec<Scope> = self.state.access().repos().map(|(repo, _)| repo.clone()).collect();
        for scope in repos.iter().filter(|repo| self.state.newest_thread(repo).is_some()) {
            for number in thread::numbers(self.ledger, scope, None, usize::MAX)? {
                let key = ThreadKey { scope: scope.clone(), number };
                let row = thread::row_at(self.ledger, &key, self.state.head())?;
                items.extend(row.map(|(row, _)| ThreadItem::new(&key, &row)));
            }
        }
        Ok(items)
    }

    /// Goes on to `point`, or to the end, and hands each record on with what it changed.
    ///
    /// # Errors
    /// As [`to`](Self::to), and what `take` fails with.
    pub fn each_step(
        mut self,
        point: Option<AsOf>,
        mut take: impl FnMut(Step) -> Result<(), AuditError>,
    ) -> Result<(), AuditError> {
        let last = moment(self.ledger, point)?.sequence;
        let mut before = self.shown()?;
        while self.state.head() < last {
            for stored in self.ledger.records(self.state.head(), RECORDS_MAX)? {
                if stored.sequence > last {
                    break;
                }
                let record = stored.record()?;
                self.state.apply(&record);
                self.hash = stored.hash;
                let after = self.shown()?;
                let changes = differences(&before, &after);
                before = after;
                take(Step { record, changes })?;
            }
        }
        Ok(())
    }
}

/// The moment that a point of a ledger means, the end of what was decided together there; of no
/// point, the end of the ledger.
///
/// # Errors
/// [`AuditError::Asked`] for a point that is beyond the end; else what reading fails with.
pub(super) fn moment(ledger: &dyn Ledger, point: Option<AsOf>) -> Result<Moment, AuditError> {
    let head = ledger.head().sequence;
    let point = point.unwrap_or(AsOf::Sequence(head));
    // A time after the last record means the last record, whatever the time is now.
    let moment = as_of::resolve(ledger, point, head, Time::from_millis(i64::MAX))?;
    moment.ok_or_else(|| AuditError::Asked(format!("the ledger ends with record {head}")))
}
