//! One reader's way through the ledger: from where it left off to the head, and on as it grows.
//!
//! Why no gap is possible: events are read from the ledger only, by rising sequence, and never
//! from a message that could be missed. The head's channel says no more than "look again". A head
//! that is published while the ledger is read leaves that channel changed, so the wait after the
//! reading ends at once. A slow reader is asked for nothing and holds nothing but its cursor: it
//! lags behind, and costs one batch of memory.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_stream::Stream;

use crate::domain::event::{Event, Record};
use crate::domain::id::Sequence;
use crate::ledger::{Ledger, Stored};

/// How many records are read at once.
const BATCH_RECORDS: usize = 256;

/// After how many records that the reader doesn't get it is told how far it has come.
const CHECKPOINT_RECORDS: u64 = 1000;

/// Where a reader begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// With what comes after this sequence, the last one that it has dealt with.
    After(Sequence),
    /// With what happens from now on.
    Now,
}

/// What a reader is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// An event.
    Event {
        /// The record as it is stored.
        stored: Stored,
        /// The type.
        type_name: &'static str,
    },
    /// What was history is behind: from here on events come as they happen.
    CaughtUp(Sequence),
    /// Nothing up to here was for this reader.
    Checkpoint(Sequence),
    /// The reader saw events after this one that are gone: it must read the state again.
    Reset(Sequence),
    /// Nothing to say, but the connection is alive.
    Comment,
}

/// What is to be done about a record, or without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The reader gets it.
    Send,
    /// The reader doesn't get it.
    Skip,
    /// The reader gets nothing any more.
    End,
}

/// Where the events come from.
#[derive(Clone)]
pub struct Source {
    /// The ledger.
    pub ledger: Arc<dyn Ledger>,
    /// The published head.
    pub head: watch::Receiver<Sequence>,
}

/// The frames for one reader, until `judge` ends them, the ledger can't be read, or the writer is
/// gone. `judge` is asked about each record right before it would be sent, and about none now and
/// then; it judges by the published state. A `comment_every` is the pause after which a reader is
/// told that the connection is alive.
pub fn frames<J>(
    source: Source,
    start: Start,
    comment_every: Duration,
    judge: J,
) -> impl Stream<Item = Frame> + Send
where
    J: Fn(Option<&Record>) -> Verdict + Send,
{
    let Source { ledger, mut head } = source;
    async_stream::stream! {
        let mut is_first = matches!(start, Start::After(_));
        let mut is_caught_up = false;
        let mut skipped = 0;
        let mut cursor = match start {
            Start::After(sequence) => sequence,
            Start::Now => *head.borrow_and_update(),
        };
        loop {
            // Marked as seen BEFORE the ledger is read: a later head wakes the wait below.
            let published = *head.borrow_and_update();
            while cursor < published {
                let Some(batch) = read(&*ledger, cursor, published) else { return };
                for (stored, record) in batch {
                    if std::mem::take(&mut is_first)
                        && let Some(last) = lost_from(cursor, &record)
                    {
                        yield Frame::Reset(last);
                    }
                    // The state that is asked has this record in it, or a later one: the head
                    // that was read above is published together with its state.
                    match judge(Some(&record)) {
                        Verdict::Send => {
                            let type_name = record.event.type_name();
                            cursor = record.sequence;
                            skipped = 0;
                            yield Frame::Event { stored, type_name };
                        }
                        Verdict::Skip => {
                            cursor = record.sequence;
                            skipped += 1;
                        }
                        Verdict::End => return,
                    }
                    if skipped >= CHECKPOINT_RECORDS {
                        skipped = 0;
                        yield Frame::Checkpoint(cursor);
                    }
                }
                // A long history that isn't for this reader must not hold up the others.
                tokio::task::yield_now().await;
            }
            if judge(None) == Verdict::End {
                return;
            }
            if !is_caught_up {
                is_caught_up = true;
                skipped = 0;
                yield Frame::CaughtUp(cursor);
            }
            match tokio::time::timeout(comment_every, head.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_writer_is_gone)) => return,
                Err(_) => yield Frame::Comment,
            }
        }
    }
}

/// The next records, none of them after `published`: what is durable but not yet published isn't
/// to be seen. `None` if they can't be read: then the writer can't write either, and stops.
fn read(
    ledger: &dyn Ledger,
    after: Sequence,
    published: Sequence,
) -> Option<Vec<(Stored, Record)>> {
    let batch = ledger
        .records(after, BATCH_RECORDS)
        .inspect_err(|error| tracing::error!(%error, "a feed can't read the ledger"))
        .ok()?;
    assert!(!batch.is_empty(), "a published head is in the ledger");
    let visible = batch.into_iter().take_while(|stored| stored.sequence <= published);
    visible
        .map(|stored| match stored.decode() {
            Ok(record) => Some((stored, record)),
            Err(error) => {
                tracing::error!(%error, "a feed can't read a record");
                None
            }
        })
        .collect()
}

/// The last sequence that still counts, if `first`, the first record after the reader's cursor,
/// says that the cursor lies in a gap: then the reader saw events that are gone.
fn lost_from(cursor: Sequence, first: &Record) -> Option<Sequence> {
    match &first.event {
        Event::LedgerRestored(restored) if restored.last_sequence < cursor => {
            Some(restored.last_sequence)
        }
        _ => None,
    }
}

#[cfg(test)]
#[path = "subscription_tests.rs"]
mod tests;
