//! A feed that is cut anywhere and resumed has no gap and no repeat.
//!
//! The stream is read once, over a socket. For each cut a reader has had the bytes before it and
//! comes back, over a connection of its own, with the id of the last frame that was whole.

use std::sync::Arc;

use pearing::client::{Client as TypedClient, EventFilter, FeedItem};
use pearing::domain::id::Sequence;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::use_lock;
use crate::simulation::rng::Rng;
use crate::support::{Client, Cutter, REPO, RawFeed, Server, SseFrame, SseParser};

/// How many readers are at it at once.
const AT_ONCE: usize = 16;
/// The same of our own client, which pauses before it comes back.
const TYPED_AT_ONCE: usize = 128;

/// A stretch of the feed, as one reader sees it.
struct Stretch {
    server: Server,
    client: Client,
    query: &'static str,
    filter: EventFilter,
    /// The sequence before it.
    after: u64,
    body: Vec<u8>,
    events: Vec<SseFrame>,
    checkpoints: usize,
}

/// A server that lets a reader come back as often as it likes.
fn start() -> Server {
    let mut server = Server::start();
    server.kill();
    server.serve_with(&[
        "--requests-per-second-per-identity",
        "1000000",
        "--requests-per-second-per-scope",
        "1000000",
        "--feeds-per-identity",
        "10000",
    ]);
    server
}

async fn head(client: &Client) -> u64 {
    client.get("/v1/whoami").await.sequence()
}

/// Many events that a filter leaves out.
async fn heartbeat(client: &Client, ticket: &Value, count: usize) {
    for _ in 0..count {
        client.heartbeat(ticket, 60).await.ticket(200);
    }
}

impl Stretch {
    /// Reads from `after` to the event `last`, which must be there.
    async fn record(
        server: Server,
        query: &'static str,
        filter: EventFilter,
        after: u64,
        last: u64,
    ) -> Self {
        let client = server.client("claude");
        let mut feed = RawFeed::open(&server, &client, query, Some(&after.to_string())).await;
        let (mut body, mut parser, mut frames) = (Vec::new(), SseParser::default(), Vec::new());
        'reading: loop {
            for byte in feed.read().await.expect("the connection holds") {
                body.push(byte);
                frames.extend(parser.push(&[byte]));
                if frames.last().is_some_and(|frame| frame.sequence() == last) {
                    break 'reading;
                }
            }
        }
        let checkpoints = frames.iter().filter(|frame| frame.name == "checkpoint").count();
        let events: Vec<_> = frames.into_iter().filter(SseFrame::is_event).collect();
        let rises = events.windows(2).all(|two| two[0].sequence() < two[1].sequence());
        assert!(rises && events[0].sequence() > after, "each once and in order");
        Self { server, client, query, filter, after, body, events, checkpoints }
    }

    /// For each of these cuts, which rise: with which id a reader comes back, and how many events
    /// it has seen.
    fn resumes(&self, cuts: impl Iterator<Item = usize>) -> Vec<(u64, usize)> {
        let (mut parser, mut fed, mut cursor, mut seen) = (SseParser::default(), 0, self.after, 0);
        cuts.map(|cut| {
            for frame in parser.push(&self.body[fed..cut]) {
                cursor = frame.sequence();
                seen += usize::from(frame.is_event());
            }
            fed = cut;
            (cursor, seen)
        })
        .collect()
    }

    /// A reader that comes back with this id gets just the events that it hasn't seen.
    async fn resume(&self, cursor: u64, seen: usize) {
        let last_event_id = cursor.to_string();
        let mut feed =
            RawFeed::open(&self.server, &self.client, self.query, Some(&last_event_id)).await;
        for expected in &self.events[seen..] {
            let event = feed.event().await.expect("the feed goes on");
            assert_eq!(&event, expected, "resumed after {cursor}");
        }
        if seen == self.events.len() {
            feed.caught_up().await;
        }
    }
}

/// Cuts a stretch, reads on, and says how much that was.
async fn cut_and_resume(stretch: &Arc<Stretch>, cuts: impl Iterator<Item = usize>) {
    let resumes = stretch.resumes(cuts);
    let (turns, count) = (Arc::new(Semaphore::new(AT_ONCE)), resumes.len());
    let mut readers = JoinSet::new();
    for (cursor, seen) in resumes {
        let turn = turns.clone().acquire_owned().await.expect("nobody closes it");
        let stretch = stretch.clone();
        readers.spawn(async move {
            stretch.resume(cursor, seen).await;
            drop(turn);
        });
        while let Some(ended) = readers.try_join_next() {
            ended.expect("each gets what it hasn't seen");
        }
    }
    readers.join_all().await;
    let (bytes, events) = (stretch.body.len(), stretch.events.len());
    println!("{count} cuts of {bytes} bytes with {events} events, and as many resumes");
}

/// The same with our own client, which a proxy cuts off from the server, and which comes back by
/// itself.
async fn cut_our_client(stretch: &Arc<Stretch>, cuts: Vec<usize>) {
    let (cuts, count) = (Arc::new(std::sync::Mutex::new(cuts.into_iter())), stretch.events.len());
    let mut readers = JoinSet::new();
    for _ in 0..TYPED_AT_ONCE {
        let (stretch, cuts) = (stretch.clone(), cuts.clone());
        readers.spawn(async move {
            let cutter = Cutter::start(&stretch.server).await;
            let url = cutter.url().parse().expect("it is an address");
            let client = TypedClient::new(&url, stretch.client.token()).expect("plain settings");
            let next = || cuts.lock().expect("nobody panics with it").next();
            while let Some(cut) = next() {
                cutter.cut_next_after(cut);
                let mut feed = client.feed(stretch.filter.clone(), Some(Sequence(stretch.after)));
                let (mut seen, mut breaks) = (0, 0);
                while seen < count {
                    match feed.next().await.expect("a cut is no end") {
                        FeedItem::Event { sequence, json } => {
                            let expected = &stretch.events[seen];
                            assert_eq!(sequence.0, expected.sequence(), "cut after {cut}");
                            assert_eq!(json, expected.data, "cut after {cut}");
                            seen += 1;
                        }
                        FeedItem::Reconnecting(_) => breaks += 1,
                        FeedItem::CaughtUp(_) | FeedItem::Checkpoint(_) => {}
                        FeedItem::Reset(_) => panic!("nothing was restored"),
                    }
                }
                assert_eq!(breaks, 1, "it was cut after {cut}");
            }
        });
    }
    readers.join_all().await;
}

/// Fifty events that all see, after others of which a filter lets few through.
async fn short_stretch(is_filtered: bool) -> Arc<Stretch> {
    let server = start();
    let (claude, codex) = (server.client("claude"), server.client("codex"));
    let after = head(&claude).await;
    if !is_filtered {
        for round in 0..25 {
            use_lock(&claude, &format!("lock-{round}")).await;
        }
        let last = head(&claude).await;
        return Arc::new(Stretch::record(server, "", EventFilter::default(), after, last).await);
    }
    use_lock(&claude, "cut").await;
    let held = codex.hold("other", 60).await;
    heartbeat(&codex, &held, 1010).await;
    for _ in 0..24 {
        use_lock(&claude, "cut").await;
        heartbeat(&codex, &held, 1).await;
    }
    let filter = EventFilter { lock: Some("cut".to_owned()), ..EventFilter::default() };
    let last = head(&claude).await - 1;
    Arc::new(Stretch::record(server, "?lock=cut", filter, after, last).await)
}

/// About a megabyte for whoever sees all, and for whoever sees long replies only.
async fn long_stretch(is_filtered: bool) -> Arc<Stretch> {
    let server = start();
    let (claude, codex) = (server.client("claude"), server.client("codex"));
    let after = head(&claude).await;
    let replies = if is_filtered { 30 } else { 10 };
    let write = async || {
        let reply = json!({ "kind": "note", "body": "\u{1f600} long ".repeat(1600) });
        for _ in 0..replies {
            let path = format!("/v1/threads/42/replies?repo={REPO}");
            assert_eq!(claude.post(&path, reply.clone()).await.status, 201);
        }
    };
    write().await;
    let held = codex.hold("other", 60).await;
    heartbeat(&codex, &held, 1010).await;
    write().await;
    let last = head(&claude).await;
    let (query, types) = match is_filtered {
        true => ("?type=thread.*", vec!["thread.*".to_owned()]),
        false => ("", Vec::new()),
    };
    let filter = EventFilter { types, ..EventFilter::default() };
    Arc::new(Stretch::record(server, query, filter, after, last).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_fifty_events_cut_at_any_byte_goes_on_there() {
    let stretch = short_stretch(false).await;
    assert_eq!((stretch.events.len(), stretch.checkpoints), (50, 0));
    cut_and_resume(&stretch, 0..=stretch.body.len()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_filtered_stream_of_fifty_events_cut_at_any_byte_goes_on_there() {
    let stretch = short_stretch(true).await;
    assert_eq!((stretch.events.len(), stretch.checkpoints), (50, 1));
    cut_and_resume(&stretch, 0..=stretch.body.len()).await;
}

/// Random places in a stretch.
fn places(stretch: &Stretch, count: usize) -> Vec<usize> {
    let seed = u64::from_le_bytes(pearing::random::uuid().as_bytes()[..8].try_into().expect("8"));
    println!("seed {seed}");
    let (mut rng, end) = (Rng::new(seed), stretch.body.len() as u64);
    let mut cuts: Vec<usize> =
        (0..count).map(|_| usize::try_from(rng.below(end)).expect("it is small")).collect();
    cuts.sort_unstable();
    cuts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_a_megabyte_cut_at_random_bytes_goes_on_there() {
    for is_filtered in [false, true] {
        let stretch = long_stretch(is_filtered).await;
        assert_eq!(stretch.checkpoints, usize::from(is_filtered));
        assert!((800_000..1_300_000).contains(&stretch.body.len()), "{}", stretch.body.len());
        cut_and_resume(&stretch, places(&stretch, 2000).into_iter()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_own_client_that_is_cut_off_anywhere_goes_on_there() {
    for is_filtered in [false, true] {
        let stretch = short_stretch(is_filtered).await;
        let cuts = places(&stretch, 4000);
        cut_our_client(&stretch, cuts).await;
        let stretch = long_stretch(is_filtered).await;
        let cuts = places(&stretch, 500);
        cut_our_client(&stretch, cuts).await;
    }
}
