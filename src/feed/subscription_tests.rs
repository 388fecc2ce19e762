//! No gap, no repeat, and each control frame where it belongs.

use std::sync::{Mutex, mpsc};
use std::thread::ThreadId;

use tokio_stream::StreamExt as _;

use super::super::live::RECORDS_MAX;
use super::*;
use crate::domain::event::{LedgerRestored, TeamCreated};
use crate::domain::id::LedgerId;
use crate::domain::name::Actor;
use crate::domain::time::Time;
use crate::ledger::memory::MemoryLedger;
use crate::ledger::{Append, Hash, Head, LedgerError, Pair, Stored, Table};

const COMMENT_EVERY: Duration = Duration::from_secs(15);

/// A ledger whose records are made here, and its published head.
struct Log {
    ledger: Arc<MemoryLedger>,
    live: Arc<Live>,
    head: watch::Sender<Sequence>,
    last: Mutex<(Sequence, Hash)>,
}

impl Log {
    fn new() -> Arc<Self> {
        let last = Mutex::new((Sequence::ZERO, Hash::ZERO));
        let head = watch::Sender::new(Sequence::ZERO);
        let live = Arc::new(Live::new(Sequence::ZERO));
        Arc::new(Self { ledger: Arc::default(), live, head, last })
    }

    fn append_at(&self, sequence: Sequence, event: Event) {
        let mut last = self.last.lock().expect("no test panics while it appends");
        let record = Record { sequence, time: Time::default(), actor: Actor::Ledger, event };
        let stored = Stored::new(&last.1, &record);
        let append = Append { expected_head: last.0, records: vec![stored.clone()], puts: vec![] };
        self.ledger.append(&append).expect("the memory doesn't fail");
        *last = (sequence, stored.hash);
        self.live.publish(append);
        self.head.send_replace(sequence);
    }

    fn append(&self, count: u64) {
        for _ in 0..count {
            let next = self.head.borrow().next();
            let team = "a".parse().expect("a team");
            self.append_at(next, Event::TeamCreated(TeamCreated { team }));
        }
    }

    fn source(&self) -> Source {
        let (ledger, live) = (self.ledger.clone(), self.live.clone());
        Source { ledger, live, head: self.head.subscribe() }
    }

    fn feed(
        &self,
        start: Start,
        judge: impl Fn(Option<&Record>) -> Verdict + Send,
    ) -> impl Stream<Item = Frame> + Send {
        frames(self.source(), start, COMMENT_EVERY, judge)
    }
}

/// A frame in one word.
fn word(frame: &Frame) -> String {
    match frame {
        Frame::Event(entry) => entry.sequence().to_string(),
        Frame::CaughtUp(at) => format!("caught-up {at}"),
        Frame::Checkpoint(at) => format!("checkpoint {at}"),
        Frame::Reset(at) => format!("reset {at}"),
        Frame::Comment => "comment".to_owned(),
    }
}

async fn next(feed: &mut (impl Stream<Item = Frame> + Unpin), count: usize) -> Vec<String> {
    feed.take(count).map(|frame| word(&frame)).collect().await
}

#[tokio::test(start_paused = true)]
async fn an_event_between_the_reading_and_the_wait_is_sent_at_once() {
    let log = Log::new();
    log.append(1);
    let (writer, is_late) = (log.clone(), Mutex::new(true));
    let mut feed = Box::pin(log.feed(Start::After(Sequence::ZERO), move |record| {
        // Asked about no record: the ledger was read to its end, and the wait comes next.
        if record.is_none() && std::mem::take(&mut *is_late.lock().expect("one task")) {
            writer.append(1);
        }
        Verdict::Send
    }));
    // Time stands still, so a wake-up that was lost would show as a comment.
    assert_eq!(next(&mut feed, 4).await, ["1", "caught-up 1", "2", "comment"]);
}

#[tokio::test(start_paused = true)]
async fn a_reader_from_any_sequence_gets_each_later_event_once_and_in_order() {
    let log = Log::new();
    // The oldest are in the ledger alone.
    let records = RECORDS_MAX as u64 + 2 * BATCH_RECORDS as u64 + 10;
    let begins = records - RECORDS_MAX as u64;
    log.append(records);
    for after in [0, 1, BATCH_RECORDS as u64, begins - 1, begins, begins + 1, records - 1, records]
    {
        let mut feed = Box::pin(log.feed(Start::After(Sequence(after)), |_| Verdict::Send));
        let left = usize::try_from(records - after).expect("a small number");
        let expected: Vec<String> = (after + 1..=records).map(|n| n.to_string()).collect();
        assert_eq!(next(&mut feed, left).await, expected);
        assert_eq!(next(&mut feed, 1).await, [format!("caught-up {records}")]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_without_a_start_gets_what_happens_from_now_on() {
    let log = Log::new();
    log.append(3);
    let mut feed = Box::pin(log.feed(Start::Now, |_| Verdict::Send));
    assert_eq!(next(&mut feed, 1).await, ["caught-up 3"]);
    log.append(1);
    assert_eq!(next(&mut feed, 2).await, ["4", "comment"]);
}

#[tokio::test(start_paused = true)]
async fn caught_up_comes_first_and_what_happens_after_the_asking_is_sent() {
    let log = Log::new();
    log.append(3);
    let mut feed = Box::pin(log.feed(Start::Now, |_| Verdict::Send));
    // After the head was read, and before the first frame is taken.
    log.append(1);
    assert_eq!(next(&mut feed, 3).await, ["caught-up 3", "4", "comment"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_published_is_not_sent() {
    let log = Log::new();
    log.append(2);
    log.head.send_replace(Sequence(1));
    let mut feed = Box::pin(log.feed(Start::After(Sequence::ZERO), |_| Verdict::Send));
    assert_eq!(next(&mut feed, 3).await, ["1", "caught-up 1", "comment"]);
    log.head.send_replace(Sequence(2));
    assert_eq!(next(&mut feed, 1).await, ["2"]);
}

#[tokio::test(start_paused = true)]
async fn a_reader_who_gets_nothing_learns_how_far_it_has_come() {
    let log = Log::new();
    log.append(CHECKPOINT_RECORDS + 5);
    let mut feed = Box::pin(log.feed(Start::After(Sequence::ZERO), |_| Verdict::Skip));
    let head = CHECKPOINT_RECORDS + 5;
    let expected = [format!("checkpoint {CHECKPOINT_RECORDS}"), format!("caught-up {head}")];
    assert_eq!(next(&mut feed, 2).await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_cursor_in_the_gap_of_a_restore_is_reset() {
    let log = Log::new();
    log.append(5);
    let last_sequence = Sequence(5);
    let reason = "restored".to_owned().try_into().expect("a short text");
    let restored = LedgerRestored { last_sequence, reason };
    log.append_at(Sequence(1000), Event::LedgerRestored(restored));
    for (after, expected) in [
        (4, vec!["5", "1000", "caught-up 1000"]),
        (5, vec!["1000", "caught-up 1000"]),
        (6, vec!["reset 5", "1000", "caught-up 1000"]),
        (999, vec!["reset 5", "1000", "caught-up 1000"]),
        (1000, vec!["caught-up 1000"]),
    ] {
        let mut feed = Box::pin(log.feed(Start::After(Sequence(after)), |_| Verdict::Send));
        assert_eq!(next(&mut feed, expected.len()).await, expected, "after {after}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_who_may_not_read_on_gets_no_further_event() {
    let log = Log::new();
    log.append(3);
    let mut feed = Box::pin(log.feed(Start::After(Sequence::ZERO), |record| match record {
        Some(record) if record.sequence < Sequence(2) => Verdict::Send,
        _ => Verdict::End,
    }));
    assert_eq!(next(&mut feed, 5).await, ["1"]);
}

#[tokio::test(start_paused = true)]
async fn a_reader_who_gets_nothing_from_a_busy_ledger_hears_that_it_is_connected() {
    let log = Log::new();
    let mut feed = Box::pin(log.feed(Start::Now, |_| Verdict::Skip));
    assert_eq!(next(&mut feed, 1).await, ["caught-up 0"]);
    let writer = log.clone();
    let busy = tokio::spawn(async move {
        let mut second = tokio::time::interval(Duration::from_secs(1));
        loop {
            second.tick().await;
            writer.append(1);
        }
    });
    for _ in 0..3 {
        let frame = tokio::time::timeout(COMMENT_EVERY, next(&mut feed, 1)).await;
        assert_eq!(frame.expect("a comment comes in time"), ["comment"]);
    }
    busy.abort();
}

/// A ledger that is read only by other threads than the one that made it, and when it is let.
struct Gated {
    ledger: Arc<MemoryLedger>,
    made_by: ThreadId,
    gate: Mutex<mpsc::Receiver<()>>,
}

impl Gated {
    /// A feed from such a ledger, which may be read as often as the gate is opened.
    fn feed(
        log: &Log,
        start: Start,
        verdict: Verdict,
    ) -> (mpsc::Sender<()>, impl Stream<Item = Frame> + Unpin) {
        let (open, gate) = mpsc::channel();
        let made_by = std::thread::current().id();
        let ledger = Self { ledger: log.ledger.clone(), made_by, gate: Mutex::new(gate) };
        let source = Source { ledger: Arc::new(ledger), ..log.source() };
        (open, Box::pin(frames(source, start, COMMENT_EVERY, move |_| verdict)))
    }
}

impl Ledger for Gated {
    fn head(&self) -> Head {
        self.ledger.head()
    }

    fn append(&self, append: &Append) -> Result<(), LedgerError> {
        self.ledger.append(append)
    }

    fn records_within(
        &self,
        after: Sequence,
        most: usize,
        bytes: usize,
    ) -> Result<Vec<Stored>, LedgerError> {
        if std::thread::current().id() == self.made_by {
            return Err(LedgerError::Stopped);
        }
        let gate = self.gate.lock().expect("no reading panics");
        gate.recv().map_err(|_closed| LedgerError::Stopped)?;
        self.ledger.records_within(after, most, bytes)
    }

    fn frozen(&self) -> Result<Box<dyn Ledger + '_>, LedgerError> {
        self.ledger.frozen()
    }

    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, LedgerError> {
        self.ledger.get(table, key)
    }

    fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        after: &[u8],
        most: usize,
    ) -> Result<Vec<Pair>, LedgerError> {
        self.ledger.scan(table, prefix, after, most)
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_history_is_read_by_other_threads_and_is_no_silence_meanwhile() {
    let log = Log::new();
    log.append(2 * BATCH_RECORDS as u64 + RECORDS_MAX as u64);
    let (open, mut feed) = Gated::feed(&log, Start::After(Sequence::ZERO), Verdict::Skip);
    for _ in 0..2 {
        // The reading stands still, and time goes by.
        let (frame, ()) = tokio::join!(next(&mut feed, 1), tokio::time::advance(COMMENT_EVERY));
        assert_eq!(frame, ["comment"]);
    }
    for _ in 0..2 {
        open.send(()).expect("the feed reads");
    }
    // The rest is in memory.
    let words = next(&mut feed, 5).await;
    assert!(words[..4].iter().all(|word| word.starts_with("checkpoint")), "{words:?}");
    let head = *log.head.borrow();
    assert_eq!(words[4], format!("caught-up {head}"));
}

#[tokio::test(start_paused = true)]
async fn whoever_has_caught_up_never_reads_the_ledger_and_shares_its_frames() {
    let log = Log::new();
    let id = LedgerId(uuid::Uuid::nil());
    log.append(3);
    let (closed, mut one) = Gated::feed(&log, Start::Now, Verdict::Send);
    let (_, mut other) = Gated::feed(&log, Start::After(Sequence(1)), Verdict::Send);
    drop(closed);
    assert_eq!(next(&mut one, 1).await, ["caught-up 3"]);
    assert_eq!(next(&mut other, 3).await, ["2", "3", "caught-up 3"]);
    log.append(2);
    for expected in [4, 5] {
        let frames = [one.next().await, other.next().await].map(|frame| match frame {
            Some(Frame::Event(entry)) => entry,
            other => panic!("no event: {other:?}"),
        });
        assert!(frames.iter().all(|entry| entry.sequence() == Sequence(expected)));
        let bytes = frames.map(|entry| entry.frame(id).expect("it can be written"));
        assert_eq!(bytes[0].as_ptr(), bytes[1].as_ptr(), "it is written once");
    }
}

/// A ledger in which something happens whenever it has been read.
struct Eventful<F> {
    ledger: Arc<MemoryLedger>,
    happens: F,
}

impl<F: Fn() + Send + Sync> Ledger for Eventful<F> {
    fn head(&self) -> Head {
        self.ledger.head()
    }

    fn append(&self, append: &Append) -> Result<(), LedgerError> {
        self.ledger.append(append)
    }

    fn records_within(
        &self,
        after: Sequence,
        most: usize,
        bytes: usize,
    ) -> Result<Vec<Stored>, LedgerError> {
        let records = self.ledger.records_within(after, most, bytes);
        (self.happens)();
        records
    }

    fn frozen(&self) -> Result<Box<dyn Ledger + '_>, LedgerError> {
        self.ledger.frozen()
    }

    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, LedgerError> {
        self.ledger.get(table, key)
    }

    fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        after: &[u8],
        most: usize,
    ) -> Result<Vec<Pair>, LedgerError> {
        self.ledger.scan(table, prefix, after, most)
    }
}

#[tokio::test(start_paused = true)]
async fn what_happens_between_the_ledger_and_the_memory_is_sent_once() {
    const LEFT_OUT: u64 = 5;
    // How many events happen while the ledger is read: none, some, so many that those in memory
    // begin anew at, just before, or long after the reader's place.
    for happening in [0, 1, RECORDS_MAX as u64 - 1, RECORDS_MAX as u64, 3 * RECORDS_MAX as u64] {
        let log = Log::new();
        log.append(RECORDS_MAX as u64 + LEFT_OUT);
        let (writer, left) = (log.clone(), Mutex::new(2));
        let happens = move || {
            let mut left = left.lock().expect("one reading at a time");
            if *left > 0 {
                *left -= 1;
                writer.append(happening);
            }
        };
        let ledger = Arc::new(Eventful { ledger: log.ledger.clone(), happens });
        let source = Source { ledger, ..log.source() };
        let start = Start::After(Sequence::ZERO);
        let mut feed = Box::pin(frames(source, start, COMMENT_EVERY, |_| Verdict::Send));
        let mut seen = Vec::new();
        // Time stands still while there is anything to do, so a comment tells that all was sent.
        loop {
            match feed.next().await.expect("the feed goes on") {
                Frame::Event(entry) => seen.push(entry.sequence().0),
                Frame::CaughtUp(_) => {}
                Frame::Comment => break,
                other => panic!("{other:?}"),
            }
        }
        let head = log.head.borrow().0;
        assert!(head >= RECORDS_MAX as u64 + LEFT_OUT + happening, "the ledger was read");
        assert_eq!(seen, (1..=head).collect::<Vec<_>>(), "{happening} while it is read");
    }
}

#[tokio::test(start_paused = true)]
async fn a_record_that_cannot_be_read_ends_the_feed() {
    let log = Log::new();
    log.append(2);
    let mut broken = log.ledger.records(Sequence(1), 1).expect("the memory can be read");
    broken[0].sequence = Sequence(3);
    let append = Append { expected_head: Sequence(2), records: broken, puts: vec![] };
    log.ledger.append(&append).expect("the memory doesn't fail");
    log.live.publish(append);
    log.head.send_replace(Sequence(3));
    let from_memory = log.source();
    let from_ledger = Source { live: Arc::new(Live::new(Sequence(3))), ..log.source() };
    for source in [from_memory, from_ledger] {
        let start = Start::After(Sequence::ZERO);
        let feed = Box::pin(frames(source, start, COMMENT_EVERY, |_| Verdict::Send));
        let words: Vec<String> = feed.map(|frame| word(&frame)).collect().await;
        assert_eq!(words, ["1", "2"]);
    }
}
