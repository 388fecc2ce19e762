//! Reads of threads, as they are or as they were.

use super::{Page, Shown, require_read, stopped};
use crate::domain::id::{Sequence, TokenId};
use crate::domain::refusal::Refusal;
use crate::domain::scope::Scope;
use crate::domain::thread::{Thread, ThreadKey, ThreadNumber, ThreadRow, ThreadState};
use crate::projection::as_of::{self, AsOf};
use crate::projection::thread::{numbers, read, row};
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
        let head = self.look(caller, |state, user| {
            require_read(state, user, &key.scope)?;
            Ok(state.head())
        })?;
        let (sequence, time) = match moment {
            None => (head, now),
            Some(moment) => {
                let found = as_of::resolve(self.ledger(), moment, head, now).map_err(stopped)?;
                let refusal = Refusal::InvalidArgument { field: "as_of", rule: AsOf::RULE };
                let found = found.ok_or_else(|| super::refused(refusal, head))?;
                (found.sequence, found.time)
            }
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

    /// The threads of a repository by number, after `after`, all or those in one state.
    ///
    /// # Errors
    /// [`ServiceError`]
    pub fn threads(
        &self,
        caller: TokenId,
        repo: &Scope,
        wanted: Option<ThreadState>,
        after: Option<ThreadNumber>,
        most: usize,
    ) -> Result<Page<(ThreadKey, ThreadRow), ThreadNumber>, ServiceError> {
        let sequence = self.look(caller, |state, user| {
            require_read(state, user, repo)?;
            Ok(state.head())
        })?;
        let looked_at = numbers(self.ledger(), repo, after, PAGE_THREADS_MAX).map_err(stopped)?;
        let is_cut_off = looked_at.len() == PAGE_THREADS_MAX;
        let last_looked_at = looked_at.last().copied().filter(|_| is_cut_off);
        let (mut items, mut next) = (Vec::new(), last_looked_at);
        for number in looked_at {
            let key = ThreadKey { scope: repo.clone(), number };
            let Some(row) = self.thread_row(&key, sequence)? else { continue };
            if wanted.is_some_and(|wanted| wanted != row.state) {
                continue;
            }
            if items.len() == most {
                next = items.last().map(|(key, _): &(ThreadKey, _)| key.number);
                break;
            }
            items.push((key, row));
        }
        Ok(Page { items, next, sequence })
    }

    /// What is known of a thread at the published state. Its row may be a little ahead of that:
    /// then its events tell.
    fn thread_row(
        &self,
        key: &ThreadKey,
        head: Sequence,
    ) -> Result<Option<ThreadRow>, ServiceError> {
        let found = row(key, |table, key| self.ledger().get(table, key)).map_err(stopped)?;
        if found.as_ref().is_none_or(|row| row.sequence <= head) {
            return Ok(found);
        }
        let thread = read(self.ledger(), key, head).map_err(stopped)?;
        Ok(thread.map(|thread| ThreadRow {
            replies_count: u32::try_from(thread.replies.len()).expect("replies are limited"),
            title: thread.title,
            author: thread.author,
            created_at: thread.created_at,
            state: thread.state,
            updated_at: thread.updated_at,
            sequence: thread.sequence,
        }))
    }
}
