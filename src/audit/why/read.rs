//! What a story reads of the ledger, each read of bounded length.
//!
//! A lock's history may be long, and a story is asked for by anyone who may read the ticket. So a
//! walk stops after so many rows, and says where.

use std::ops::ControlFlow;

use crate::domain::event::Record;
use crate::domain::id::{Sequence, TicketId};
use crate::domain::scope::LockKey;
use crate::domain::ticket::Ticket;
use crate::ledger::{Ledger, LedgerError, Stored};
use crate::projection::{self, history};

/// How many rows of a lock a walk reads. That takes a few tenths of a second.
const ROWS_MAX: usize = 50_000;

/// How many a walk backwards reads.
const BACK_ROWS_MAX: usize = 20_000;

/// How many events of the ledger itself are read beside those of a lock.
const LEDGER_ROWS_MAX: usize = 10_000;

/// How many rows are read at once.
const PAGE_ROWS: usize = 1000;

/// How many sequences a walk backwards looks at first.
const BACK_SPAN: u64 = 256;

/// A ledger as it was at one sequence.
pub(super) struct Past<'a> {
    pub(super) ledger: &'a dyn Ledger,
    pub(super) head: Sequence,
    /// Finds a live ticket. Of a ticket that isn't the story's own only what never changes is
    /// used, so it doesn't matter that it may be newer than `head`.
    pub(super) live: &'a dyn Fn(TicketId) -> Option<Ticket>,
}

impl Past<'_> {
    /// An event that another one names.
    pub(super) fn record(&self, sequence: Sequence) -> Result<Record, LedgerError> {
        projection::request::record(self.ledger, sequence)
    }

    /// The event after a sequence, up to the head.
    pub(super) fn record_after(&self, sequence: Sequence) -> Result<Option<Record>, LedgerError> {
        let next = self.ledger.records(sequence, 1)?.pop();
        next.filter(|next| next.sequence <= self.head).as_ref().map(Stored::record).transpose()
    }

    /// A ticket, live or ended.
    pub(super) fn ticket(&self, id: TicketId) -> Result<Option<Ticket>, LedgerError> {
        match (self.live)(id) {
            Some(ticket) => Ok(Some(ticket)),
            // What has just ended is in the table before it leaves the state.
            None => projection::ticket::ended(self.ledger, id),
        }
    }

    /// Walks through the events of a lock, and those of the ledger itself, after `after` and up
    /// to `last`. Returns the last sequence that it came to, if it had to stop before the end.
    pub(super) fn walk(
        &self,
        lock: &LockKey,
        after: Sequence,
        last: Sequence,
        mut see: impl FnMut(Record),
    ) -> Result<Option<Sequence>, LedgerError> {
        let of_ledger = history::of_ledger_after(self.ledger, after, LEDGER_ROWS_MAX)?;
        let mut of_ledger = of_ledger.into_iter().peekable();
        let (mut after, mut rows_left) = (after, ROWS_MAX);
        loop {
            let mut rows = history::of_lock_after(self.ledger, lock, after, PAGE_ROWS)?;
            let is_end = rows.len() < PAGE_ROWS || rows.last() >= Some(&last);
            rows.retain(|row| *row <= last);
            rows_left = rows_left.saturating_sub(rows.len());
            after = if is_end { last } else { rows.last().copied().unwrap_or(last) };
            while let Some(row) = of_ledger.next_if(|row| *row <= after) {
                rows.push(row);
            }
            rows.sort_unstable();
            history::each_record(self.ledger, &rows, |stored| {
                see(stored.record()?);
                Ok(())
            })?;
            if is_end {
                return Ok(None);
            }
            if rows_left == 0 {
                return Ok(Some(after));
            }
        }
    }

    /// Walks through the events of a lock before `before`, the newest first, until `see` breaks
    /// off, or the beginning. False if it had to stop earlier.
    pub(super) fn walk_back(
        &self,
        lock: &LockKey,
        before: Sequence,
        mut see: impl FnMut(&Record) -> ControlFlow<()>,
    ) -> Result<bool, LedgerError> {
        // Rows can only be read forwards: so in pieces, each before the last one.
        let (mut end, mut span, mut is_dense) = (before, BACK_SPAN, false);
        let mut rows_left = BACK_ROWS_MAX;
        while end > Sequence::ZERO {
            let start = Sequence(end.0.saturating_sub(span));
            let after = Sequence(start.0.saturating_sub(1));
            let mut rows = history::of_lock_after(self.ledger, lock, after, PAGE_ROWS)?;
            if rows.len() == PAGE_ROWS && rows.last() < Some(&end) {
                // A piece that has fewer sequences than a page has rows is not too long.
                (span, is_dense) = (span / 2, true);
                continue;
            }
            rows.retain(|row| *row < end);
            let mut records = Vec::with_capacity(rows.len());
            history::each_record(self.ledger, &rows, |stored| {
                records.push(stored.record()?);
                Ok(())
            })?;
            if records.iter().rev().any(|record| see(record).is_break()) {
                return Ok(true);
            }
            rows_left = rows_left.saturating_sub(rows.len());
            if rows_left == 0 {
                return Ok(false);
            }
            end = start;
            if !is_dense {
                span = span.saturating_mul(4);
            }
        }
        Ok(true)
    }
}
