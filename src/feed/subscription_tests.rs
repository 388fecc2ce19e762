//! No gap, no repeat, and each control frame where it belongs.

use std::sync::{Mutex, mpsc};
use std::thread::ThreadId;

use tokio_stream::StreamExt as _;

use super::*;
use crate::domain::event::{LedgerRestored, TeamCreated};
use crate::domain::name::Actor;
use crate::domain::time::Time;
use crate::ledger::memory::MemoryLedger;
use crate::ledger::{Append, Hash, Head, LedgerError, Pair, Table};

const COMMENT_EVERY: Duration = Duration::from_secs(15);

/// A ledger whose records are made here, and its published head.
struct Log {
    ledger: Arc<MemoryLedger>,
    head: watch::Sender<Sequence>,
    last: Mutex<(Sequence, Hash)>,
}

impl Log {
    fn new() -> Arc<Self> {
        let last = Mutex::new((Sequence::ZERO, Hash::ZERO));
        let head = watch::Sender::new(Sequence::ZERO);
        Arc::new(Self { ledger: Arc::default(), head, last })
    }

    fn append_at(&self, sequence: Sequence, event: Event) {
        let mut last = self.last.lock().expect("no test panics while it appends");
        let record = Record { sequence, time: Time::default(), actor: Actor::Ledger, event };
        let stored = Stored::new(&last.1, &record);
        let append = Append { expected_head: last.0, records: vec![stored.clone()], puts: vec![] };
        self.ledger.append(&append).expect("the memory doesn't fail");
        *last = (sequence, stored.hash);
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
        Source { ledger: self.ledger.clone(), head: self.head.subscribe() }
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
        Frame::Event { stored, .. } => stored.sequence.to_string(),
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
    let records = 2 * BATCH_RECORDS as u64 + 10;
    log.append(records);
    for after in [0, 1, BATCH_RECORDS as u64, records - 1, records] {
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
    log.append(2 * BATCH_RECORDS as u64);
    let (open, gate) = mpsc::channel();
    let made_by = std::thread::current().id();
    let ledger = Gated { ledger: log.ledger.clone(), made_by, gate: Mutex::new(gate) };
    let source = Source { ledger: Arc::new(ledger), head: log.head.subscribe() };
    let start = Start::After(Sequence::ZERO);
    let mut feed = Box::pin(frames(source, start, COMMENT_EVERY, |_| Verdict::Skip));
    for _ in 0..2 {
        // The reading stands still, and time goes by.
        let (frame, ()) = tokio::join!(next(&mut feed, 1), tokio::time::advance(COMMENT_EVERY));
        assert_eq!(frame, ["comment"]);
    }
    for _ in 0..2 {
        open.send(()).expect("the feed reads");
    }
    assert_eq!(next(&mut feed, 1).await, ["caught-up 512"]);
}
