//! Much to read: what it costs the server that many read, or that some don't.
//!
//! The figures are printed, since they depend on the machine; what is asserted are bounds that no
//! machine should pass. `-- --nocapture` shows them.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pearing::clock;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::task::JoinSet;

use super::use_lock;
use crate::support::{Client, RawFeed, Server};

/// How many events are written while some don't read.
const EVENTS: usize = 50_000;
/// How many connections write them.
const WRITERS: usize = 32;
/// How many don't read. If the server kept for each what it doesn't read, that would be 35 MiB
/// of each.
const STOPPED: usize = 10;
/// How much all of these together may cost the server.
const STOPPED_BYTES_MAX: u64 = 100 << 20;

/// How many feeds are open of which nobody hears anything.
const IDLE: usize = 5_000;
/// How many users have them.
const IDLE_USERS: usize = 10;
/// How much one of them may cost the server.
const IDLE_BYTES_MAX: u64 = 32 << 10;
/// How many locks are taken, one after the other, beside them.
const TAKEN: usize = 400;

/// A server whose limits nobody here meets.
fn start() -> Server {
    let mut server = Server::start();
    server.kill();
    server.serve_with(&[
        "--requests-per-second-per-identity",
        "1000000",
        "--requests-per-second-per-scope",
        "1000000",
    ]);
    server
}

/// The memory that a server has in use.
fn resident_bytes(server: &mut Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.process().id()));
    let status = status.expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it is told");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib << 10
}

/// Locks are taken and let go on many connections until there are so many events more. Yields how
/// many there were a second.
async fn write(client: &Client, round: usize) -> f64 {
    let (left, began) = (Arc::new(AtomicUsize::new(EVENTS / 2)), clock::monotonic());
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let (client, left) = (client.clone(), left.clone());
        writers.spawn(async move {
            let take = |left: usize| left.checked_sub(1);
            while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
                use_lock(&client, &format!("lock-{round}-{writer}")).await;
            }
        });
    }
    writers.join_all().await;
    EVENTS as f64 / clock::elapsed(began).as_secs_f64()
}

/// The sequences of the next events, over as many connections as it takes: a reader that was
/// silent for too long has been cut off.
async fn read_on(server: &Server, client: &Client, mut feed: RawFeed, after: u64) -> Vec<u64> {
    let (mut seen, mut cursor) = (Vec::new(), after);
    while seen.len() < EVENTS {
        match feed.frame().await {
            Some(frame) => {
                cursor = frame.sequence();
                seen.extend(frame.is_event().then_some(cursor));
            }
            None => feed = RawFeed::open(server, client, "", Some(&cursor.to_string())).await,
        }
    }
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_stop_cost_little_and_the_others_nothing_and_miss_nothing() {
    let mut server = start();
    let claude = server.client("claude");
    let mut rates = Vec::new();
    let mut resident = Vec::new();
    for (round, stopped) in [0, STOPPED].into_iter().enumerate() {
        let head = claude.get("/v1/whoami").await.sequence();
        let all: Vec<u64> = (head + 1..).take(EVENTS).collect();
        let open = async |receive_bytes| {
            let mut feed = RawFeed::open_with(&server, &claude, "", None, "", receive_bytes).await;
            feed.caught_up().await;
            feed
        };
        let mut silent = Vec::new();
        for _ in 0..stopped {
            silent.push(open(Some(4096)).await);
        }
        let reading = open(None).await;
        let (rate, seen) =
            tokio::join!(write(&claude, round), read_on(&server, &claude, reading, head));
        assert_eq!(seen, all, "who reads misses nothing");
        rates.push(rate);
        resident.push(resident_bytes(&mut server));
        for feed in silent {
            assert_eq!(read_on(&server, &claude, feed, head).await, all);
        }
    }
    let (before, after) = (resident[0] >> 20, resident[1] >> 20);
    println!("{:.0} and {:.0} events a second: {:.2}", rates[0], rates[1], rates[1] / rates[0]);
    println!("{before} MiB, and {after} MiB with {STOPPED} that don't read {EVENTS} events");
    assert!(resident[1] < resident[0] + STOPPED_BYTES_MAX, "{before} MiB, {after} MiB");
}

/// The number of descriptors that a process may have is for most too small for this.
fn allow_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).expect("it may");
    let most = limit.maximum.unwrap_or(u64::MAX);
    assert!(most > 2 * IDLE as u64, "`ulimit -Hn` is {most}: too few descriptors for this test");
}

/// How long it takes to get a lock: half of them are faster than the first, 99 % than the second.
async fn latency(client: &Client) -> (Duration, Duration) {
    let mut took = Vec::with_capacity(TAKEN);
    for _ in 0..TAKEN {
        let began = clock::monotonic();
        let held = client.hold("latency", 60).await;
        took.push(clock::elapsed(began));
        client.release(&held).await.ticket(200);
    }
    took.sort_unstable();
    (took[TAKEN / 2], took[TAKEN * 99 / 100])
}

/// Opens the feeds; whatever comes is read and thrown away.
async fn open_idle(server: &Server, users: &[Client], query: &'static str) -> JoinSet<()> {
    let mut feeds = JoinSet::new();
    for at in 0..IDLE {
        let mut feed = RawFeed::open(server, &users[at % users.len()], query, None).await;
        feed.caught_up().await;
        feeds.spawn(async move { while feed.read().await.is_ok_and(|piece| !piece.is_empty()) {} });
    }
    feeds
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_thousand_idle_feeds_cost_little_memory_and_little_time() {
    allow_descriptors();
    let mut server = start();
    let mut users = Vec::new();
    for number in 0..IDLE_USERS {
        users.push(server.add_writer(&format!("reader-{number}")).await);
    }
    let claude = server.client("claude");
    latency(&claude).await;
    let told = |what: &str, (half, most): (Duration, Duration)| {
        println!("acquire {what}: p50 {} us, p99 {} us", half.as_micros(), most.as_micros());
    };
    told("without feeds", latency(&claude).await);
    let before = resident_bytes(&mut server);
    for (what, query) in
        [("beside feeds of nothing", "?type=team.*"), ("beside feeds of everything", "")]
    {
        let mut feeds = open_idle(&server, &users, query).await;
        let each = resident_bytes(&mut server).saturating_sub(before) / IDLE as u64;
        println!("{IDLE} feeds: {each} bytes of the server's memory for each");
        assert!(each < IDLE_BYTES_MAX, "{each} bytes");
        told(what, latency(&claude).await);
        assert_eq!(feeds.len(), IDLE);
        assert!(feeds.try_join_next().is_none(), "none has ended");
        feeds.shutdown().await;
    }
}
