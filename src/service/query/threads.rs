//! Reads of threads, as they are or as they were.

use super::{PAGE_RECORDS_MAX, Page, Shown, require_read, stopped};
use crate::domain::id::{Sequence, TokenId};
use crate::domain::refusal::Refusal;
use crate::domain::scope::Scope;
use crate::domain::thread::{Thread, ThreadKey, ThreadNumber, ThreadRow, ThreadState};
use crate::projection::as_of::{AsOf, Moment};
use crate::projection::thread::{numbers, read, row, row_at};
use crate::service::{Service, ServiceError};

/// How many threads a page of a list looks at, at most: one that wants only some of them may be
/// short, and even empty, and still not the last.
const PAGE_THREADS_MAX: usize = 2_000;

impl Service {
    /// A thread, as it is or as it was.
    ///
    /// # Errors
    /// [`ServiceError`]
    pub fn thread(
        &self,
        caller: TokenId,
        key: &ThreadKey,
        moment: Option<AsOf>,
    ) -> Result<Shown<Thread>, ServiceError> {
        let now = self.now();
        let head = self.readable_head(caller, &key.scope)?;
        let Moment { sequence, time } = match moment {
            None => Moment { sequence: head, time: now },
            Some(moment) => self.moment(moment, head)?,
        };
        let thread = read(self.ledger(), key, sequence).map_err(stopped)?;
        let thread = thread.ok_or_else(|| super::refused(Refusal::NotFound("thread"), head))?;
        Ok(Shown { what: thread, time, sequence })
    }

    /// A thread as it is now, for one who has just written to it: that it might write is all that
    /// has to be known, even if its access was taken away since.
    ///
    /// # Errors
    /// [`ServiceError`]
    pub fn thread_as_written(&self, key: &ThreadKey) -> Result<Shown<Thread>, ServiceError> {
        let sequence = self.read(|state| state.head());
        let thread = read(self.ledger(), key, sequence).map_err(stopped)?;
        let what = thread.expect("a thread that was written to is there");
        Ok(Shown { what, time: self.now(), sequence })
    }

    /// The threads of a repository by number, after `after`, all or those in one state, as they are
    /// or as they were. A page may be short, and even empty, and still not be the last.
    ///
    /// # Errors
    /// [`ServiceError`]
    pub fn threads(
        &self,
        caller: TokenId,
        repo: &Scope,
        wanted: Option<ThreadState>,
        moment: Option<AsOf>,
        after: Option<ThreadNumber>,
        most: usize,
    ) -> Result<Page<(ThreadKey, ThreadRow), ThreadNumber>, ServiceError> {
        let head = self.readable_head(caller, repo)?;
        let sequence = match moment {
            None => head,
            Some(moment) => self.moment(moment, head)?.sequence,
        };
        let found = numbers(self.ledger(), repo, after, PAGE_THREADS_MAX).map_err(stopped)?;
        let is_cut_off = found.len() == PAGE_THREADS_MAX;
        let last_found = found.last().copied().filter(|_| is_cut_off);
        let (mut items, mut next, mut events) = (Vec::new(), last_found, 0);
        let mut looked_at = after;
        for number in found {
            if items.len() == most || events >= PAGE_RECORDS_MAX {
                next = looked_at;
                break;
            }
            looked_at = Some(number);
            let key = ThreadKey { scope: repo.clone(), number };
            let Some((row, events_read)) = self.thread_row(&key, sequence)? else { continue };
            events += events_read;
            if wanted.is_none_or(|wanted| wanted == row.state) {
                items.push((key, row));
            }
        }
        Ok(Page { items, next, sequence })
    }

    /// What is known of a thread at `last`, and how many events had to be read for it. If its row
    /// is newer than that, its events tell.
    fn thread_row(
        &self,
        key: &ThreadKey,
        last: Sequence,
    ) -> Result<Option<(ThreadRow, usize)>, ServiceError> {
        let get = |table, key: &[u8]| self.ledger().get(table, key);
        match row(key, get).map_err(stopped)? {
            Some(row) if row.sequence > last => row_at(self.ledger(), key, last).map_err(stopped),
            found => Ok(found.map(|row| (row, 0))),
        }
    }

    /// The head of the published state, in which a scope can be read.
    fn readable_head(&self, caller: TokenId, scope: &Scope) -> Result<Sequence, ServiceError> {
        self.look(caller, |state, user| {
            require_read(state, user, scope)?;
            Ok(state.head())
        })
    }
}
