//! One reader's way through the ledger: from where it left off to the head, and on as it grows.
//!
//! Why no gap is possible: events are read from the ledger only, by rising sequence, and never
//! from a message that could be missed. The head's channel says no more than "look again". A head
//! that is published while the ledger is read leaves that channel changed, so the wait after the
//! reading ends at once. Where a batch is read, by the feed itself or by a thread for it, changes
//! nothing in this: it is the feed that asks for it, from its own cursor, up to a head that it has
//! marked as seen, and that waits for it.
//!
//! A slow reader is asked for nothing and holds nothing but its cursor: it lags behind, and costs
//! one batch of memory.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::time::{Sleep, sleep};
use tokio_stream::Stream;
use tracing::Span;

use crate::domain::event::{Event, Record};
use crate::domain::id::Sequence;
use crate::ledger::{Ledger, Stored};

/// How many records are read at once.
const BATCH_RECORDS: usize = 256;

/// How large they are together: none are read beyond so many bytes. Each feed keeps what it read
/// until its reader has taken it, and a thousand feeds of readers that take nothing must cost
/// little also where each record is a long reply.
const BATCH_BYTES: usize = 128 * 1024;

/// How many records are read at once on the spot. Who is no further behind gets what was written
/// just now, which is in memory.
const AT_ONCE_RECORDS: u64 = 32;

/// How many feeds of this process may be reading more than that at once; the others wait.
static READINGS: Semaphore = Semaphore::const_new(4);

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
/// then; it judges by the published state. Whenever nothing was sent for `comment_every`, the
/// reader is told that the connection is alive, whatever happens meanwhile that isn't for it.
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
    // "Now" is when the reader asks, and is read this once: what happens from here on is sent,
    // and sent after `caught-up`.
    let mut published = *head.borrow_and_update();
    let (cursor, is_first) = match start {
        Start::After(sequence) => (sequence, true),
        Start::Now => (published, false),
    };
    async_stream::stream! {
        let mut place = Place { cursor, skipped: 0, is_first };
        let mut silence = Silence::new(comment_every);
        let mut is_caught_up = false;
        loop {
            while place.cursor < published {
                let mut reading = Box::pin(read(ledger.clone(), place.cursor, published));
                let batch = loop {
                    match silence.or(&mut reading).await {
                        Ok(batch) => break batch,
                        Err(TooLong) => yield silence.before(Frame::Comment),
                    }
                };
                let Some(batch) = batch else { return };
                for (stored, record) in batch {
                    if let Some(frame) = place.reset(&record) {
                        yield silence.before(frame);
                    }
                    // The state that is asked has this record in it, or a later one: the head
                    // that was read below is published together with its state.
                    let verdict = judge(Some(&record));
                    if verdict == Verdict::End {
                        return;
                    }
                    if let Some(frame) = place.pass(stored, &record, verdict) {
                        yield silence.before(frame);
                    }
                }
            }
            if judge(None) == Verdict::End {
                return;
            }
            if !std::mem::replace(&mut is_caught_up, true) {
                yield silence.before(place.caught_up());
            }
            match silence.or(head.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_writer_is_gone)) => return,
                Err(TooLong) => yield silence.before(Frame::Comment),
            }
            // Marked as seen BEFORE the ledger is read: a later head ends the next wait.
            published = *head.borrow_and_update();
        }
    }
}

/// How far a reader has come.
struct Place {
    /// The last sequence that was looked at.
    cursor: Sequence,
    /// How many records were looked at since the reader last learned where it is.
    skipped: u64,
    /// Whether the next record is the first after a cursor that the reader brought along.
    is_first: bool,
}

impl Place {
    /// What is to be said before a record, which may show that the reader's cursor lies in a gap.
    fn reset(&mut self, record: &Record) -> Option<Frame> {
        let is_first = std::mem::take(&mut self.is_first);
        let last = if is_first { lost_from(self.cursor, record) } else { None };
        last.map(Frame::Reset)
    }

    /// Goes past a record. Yields what is to be said about it.
    fn pass(&mut self, stored: Stored, record: &Record, verdict: Verdict) -> Option<Frame> {
        self.cursor = record.sequence;
        self.skipped += 1;
        let frame = match verdict {
            Verdict::Send => Frame::Event { stored, type_name: record.event.type_name() },
            Verdict::Skip if self.skipped >= CHECKPOINT_RECORDS => Frame::Checkpoint(self.cursor),
            Verdict::Skip | Verdict::End => return None,
        };
        self.skipped = 0;
        Some(frame)
    }

    fn caught_up(&mut self) -> Frame {
        self.skipped = 0;
        Frame::CaughtUp(self.cursor)
    }
}

/// The time since the last frame. It begins anew where a frame is sent, and nowhere else: a busy
/// ledger must not keep a reader from hearing anything.
struct Silence {
    longest: Duration,
    end: Pin<Box<Sleep>>,
}

/// Nothing was sent for as long as a reader may be left without a sign.
struct TooLong;

impl Silence {
    fn new(longest: Duration) -> Self {
        Self { longest, end: Box::pin(sleep(longest)) }
    }

    /// Begins anew with a frame, which is sent now.
    fn before(&mut self, frame: Frame) -> Frame {
        self.end.set(sleep(self.longest));
        frame
    }

    /// Waits for an event, unless the silence lasts too long. That comes first: else an event that
    /// is there each time would win each time.
    async fn or<T>(&mut self, event: impl Future<Output = T>) -> Result<T, TooLong> {
        tokio::select! {
            biased;
            () = &mut self.end => Err(TooLong),
            happened = event => Ok(happened),
        }
    }
}

/// The next records, none of them after `published`: what is durable but not yet published isn't
/// to be seen. `None` if they can't be read: then the writer can't write either, and stops.
///
/// A few are read where the feed runs. More are read where they may block, and few such readings
/// run at once: they must hold up neither requests nor the feeds that have caught up.
async fn read(
    ledger: Arc<dyn Ledger>,
    after: Sequence,
    published: Sequence,
) -> Option<Vec<(Stored, Record)>> {
    if published.0 - after.0 <= AT_ONCE_RECORDS {
        return read_batch(&*ledger, after, published);
    }
    let permit = READINGS.acquire().await.expect("nobody closes it");
    let span = Span::current();
    let reading = tokio::task::spawn_blocking(move || {
        let _in_span = span.enter();
        // Kept by the reading itself, which goes on when the reader has gone.
        let _permit = permit;
        read_batch(&*ledger, after, published)
    });
    // One that panicked has told so, and a runtime that ends takes its feeds along.
    reading.await.ok().flatten()
}

fn read_batch(
    ledger: &dyn Ledger,
    after: Sequence,
    published: Sequence,
) -> Option<Vec<(Stored, Record)>> {
    let behind = usize::try_from(published.0 - after.0).unwrap_or(BATCH_RECORDS);
    let batch = ledger
        .records_within(after, behind.min(BATCH_RECORDS), BATCH_BYTES)
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
    let Event::LedgerRestored(restored) = &first.event else { return None };
    (restored.last_sequence < cursor).then_some(restored.last_sequence)
}

#[cfg(test)]
#[path = "subscription_tests.rs"]
mod tests;
