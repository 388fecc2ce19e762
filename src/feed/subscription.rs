//! One reader's way through the ledger: from where it left off to the head, and on as it grows.
//!
//! Why no gap is possible: a reader asks for what comes after its own cursor, by rising sequence,
//! and never relies on a message that could be missed. The head's channel says no more than "look
//! again". A head that is published while it looks leaves that channel changed, so the wait after
//! the looking ends at once.
//!
//! Where it looks changes nothing in this. The end of the ledger that is kept in memory (`live`)
//! has no hole, and knows where it begins: asked from a cursor before that, it refuses, and the
//! ledger is read instead. It never lags behind the channel: what is published is put in first,
//! and only then is the head sent. So up to a head that was seen there everything is found, in the
//! one or the other, and each batch is a piece of the ledger that begins right after the cursor.
//! The switch from one to the other is no step of its own that anything could fall into: it is
//! decided anew for each batch.
//!
//! A slow reader is asked for nothing and holds nothing but its cursor: it lags behind, and costs
//! one batch of memory.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::task::{spawn_blocking, yield_now};
use tokio::time::{Sleep, sleep};
use tokio_stream::Stream;
use tracing::Span;

use super::live::{Entry, Live};
use crate::domain::event::{Event, Record};
use crate::domain::id::Sequence;
use crate::ledger::Ledger;

/// How many records are read at once.
const BATCH_RECORDS: usize = 256;

/// How large they are together: none are read beyond so many bytes. Each feed keeps what it read
/// until its reader has taken it, and a thousand feeds of readers that take nothing must cost
/// little also where each record is a long reply.
const BATCH_BYTES: usize = 128 * 1024;

/// How many feeds of this process may be reading the ledger at once; the others wait.
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
#[derive(Debug, Clone)]
pub enum Frame {
    /// An event.
    Event(Arc<Entry>),
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
    /// The end of it.
    pub live: Arc<Live>,
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
    let Source { ledger, live, mut head } = source;
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
                let mut batch = live.after(place.cursor, published);
                if batch.is_none() {
                    let mut reading = Box::pin(read(ledger.clone(), place.cursor, published));
                    batch = loop {
                        match silence.or(&mut reading).await {
                            Ok(batch) => break batch,
                            Err(TooLong) => yield silence.before(Frame::Comment),
                        }
                    };
                }
                let Some(batch) = batch else { return };
                assert!(!batch.is_empty(), "a published head is in the ledger");
                for entry in batch {
                    let Some(record) = entry.record() else { return };
                    if let Some(frame) = place.reset(record) {
                        yield silence.before(frame);
                    }
                    // The state that is asked has this record in it, or a later one: the head
                    // that was read below is published together with its state.
                    let verdict = judge(Some(record));
                    if verdict == Verdict::End {
                        return;
                    }
                    if let Some(frame) = place.pass(&entry, verdict) {
                        yield silence.before(frame);
                    }
                }
                // Whoever has far to go lets others have a turn, however little it gets to say.
                if place.cursor < published && silence.or(yield_now()).await.is_err() {
                    yield silence.before(Frame::Comment);
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
    fn pass(&mut self, entry: &Arc<Entry>, verdict: Verdict) -> Option<Frame> {
        self.cursor = entry.sequence();
        self.skipped += 1;
        let frame = match verdict {
            Verdict::Send => Frame::Event(Arc::clone(entry)),
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

/// The next records of the ledger, none of them after `published`: what is durable but not yet
/// published isn't to be seen. `None` if they can't be read: then the writer can't write either,
/// and stops.
///
/// They are read where it may block, and few such readings run at once: they must hold up neither
/// requests nor the feeds that have caught up.
async fn read(
    ledger: Arc<dyn Ledger>,
    after: Sequence,
    published: Sequence,
) -> Option<Vec<Arc<Entry>>> {
    let permit = READINGS.acquire().await.expect("nobody closes it");
    let span = Span::current();
    let reading = spawn_blocking(move || {
        let _in_span = span.enter();
        // Kept by the reading itself, which goes on when the reader has gone.
        let _permit = permit;
        let behind = usize::try_from(published.0 - after.0).unwrap_or(BATCH_RECORDS);
        let batch = ledger
            .records_within(after, behind.min(BATCH_RECORDS), BATCH_BYTES)
            .inspect_err(|error| tracing::error!(%error, "a feed can't read the ledger"))
            .ok()?;
        let visible = batch.into_iter().take_while(|stored| stored.sequence <= published);
        let entries = visible.map(|stored| Arc::new(Entry::new(stored)));
        // Decoded here, where that holds up nobody.
        Some(entries.inspect(|entry| _ = entry.record()).collect())
    });
    // One that panicked has told so, and a runtime that ends takes its feeds along.
    reading.await.ok().flatten()
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
