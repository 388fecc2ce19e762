//! What has gone wrong with event streams elsewhere.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use pearing::client::{Client as TypedClient, ClientError, EventFilter};
use pearing::domain::id::Sequence;
use pearing::ledger::rocks::{OpenOptions, RocksLedger};
use pearing::ledger::{Ledger as _, Table};
use pearing::wire::problem::Code;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::use_lock;
use crate::support::{
    Client, Cutter, Feed, Frame, REPO, RawFeed, SIGTERM, Server, eventually, uuid,
};

#[tokio::test]
async fn a_single_event_arrives_by_itself_whatever_encodings_a_reader_takes() {
    let server = Server::start();
    let claude = server.client("claude");
    for headers in ["", "Accept-Encoding: gzip, deflate, br, zstd\r\n"] {
        let mut feed = RawFeed::open_with(&server, &claude, "", None, headers, None).await;
        for line in ["200 ok", "cache-control: no-store", "x-accel-buffering: no"] {
            assert!(feed.head().contains(line), "{}", feed.head());
        }
        assert!(!feed.head().contains("content-encoding"), "{}", feed.head());
        feed.caught_up().await;
        // Nothing comes after either of them that could push it out.
        let held = claude.hold("x", 60).await;
        let event = feed.event().await.expect("it comes by itself");
        assert_eq!(event.name, "lock.acquired");
        claude.release(&held).await.ticket(200);
        let event = feed.event().await.expect("it comes by itself");
        assert_eq!(event.name, "lock.released");
    }
}

#[tokio::test]
async fn a_wake_up_that_was_missed_is_told_again_and_once() {
    let server = Server::start();
    let (ada, bo) = (server.client("claude"), server.client("codex"));
    let held = ada.hold("x", 60).await;
    let waiting = bo.wait_for("x", 60).await;
    let mut feed = RawFeed::open(&server, &bo, "?lock=x", Some("0")).await;
    feed.caught_up().await;
    let cursor = waiting["sequence"].to_string();
    drop(feed);
    ada.release(&held).await.ticket(200);
    assert_eq!(bo.look(&waiting).await["state"], "held", "who polls knows without the feed");
    let mut feed = RawFeed::open(&server, &bo, "?lock=x", Some(&cursor)).await;
    let mut names = Vec::new();
    loop {
        let frame = feed.frame().await.expect("the feed goes on");
        if frame.name == "caught-up" {
            break;
        }
        names.push(frame.name);
    }
    assert_eq!(names, ["lock.released", "lock.promoted"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_is_cut_off_while_it_watches_prints_each_event_once() {
    const EVENTS: u64 = 30;
    let server = Server::start();
    let (ada, bo) = (server.client("claude"), server.client("codex"));
    let head = bo.get("/v1/whoami").await.sequence();
    let cutter = Cutter::start(&server).await;
    // Somewhere within the tenth event.
    cutter.cut_next_after(6500);
    let mut command = server.cli(&bo);
    command.args(["watch-events", "--after", &head.to_string()]);
    command.env("PEARING_URL", cutter.url()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut watching = command.spawn().expect("it runs");
    let stdout = watching.stdout.take().expect("it is piped");
    let printed = tokio::task::spawn_blocking(move || {
        let lines = BufReader::new(stdout).lines().map_while(Result::ok);
        let events = lines.map(|line| serde_json::from_str(&line).expect("a line is JSON"));
        events.take(EVENTS as usize).collect::<Vec<Value>>()
    });
    for round in 0..EVENTS / 2 {
        use_lock(&ada, &format!("lock-{round}")).await;
    }
    let printed = printed.await.expect("what is printed is read");
    let ids: Vec<u64> = printed.iter().filter_map(|e| e["id"].as_str()?.parse().ok()).collect();
    assert_eq!(ids, (head + 1..).take(EVENTS as usize).collect::<Vec<_>>());
    watching.kill().expect("it still runs");
    let output = watching.wait_with_output().expect("it ends");
    let messages = String::from_utf8(output.stderr).expect("messages are text");
    assert_eq!(messages.matches("reconnecting").count(), 1, "{messages}");
}

#[tokio::test]
async fn a_resume_that_cannot_be_ends_the_reader_at_once() {
    let server = Server::start();
    let claude = server.client("claude");
    let url = server.url().parse().expect("it is an address");
    let client = TypedClient::new(&url, claude.token()).expect("plain settings");
    let beyond = Sequence(999_999);
    match client.feed(EventFilter::default(), Some(beyond)).next().await {
        Err(ClientError::Problem(refused)) => {
            assert_eq!(refused.problem.code, Code::InvalidArgument);
        }
        other => panic!("{other:?}"),
    }
    let mut command = server.cli(&claude);
    let output = command.args(["watch-events", "--after", "999999"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let messages = String::from_utf8(output.stderr).expect("messages are text");
    assert!(!messages.contains("reconnecting"), "{messages}");
}

/// Gives somebody a role in a repository alone.
async fn grant(server: &Server, user: &str, repo: &str) {
    let path = format!("/v1/admin/access/{user}?repo={repo}");
    let granted = server.client("admin").put(&path, json!({ "role": "read" })).await;
    assert_eq!(granted.status, 200, "{}", granted.body);
}

/// Takes a lock of a repository and lets it go again.
async fn use_lock_of(client: &Client, repo: &str, lock_name: &str) {
    let path = format!("/v1/locks/{lock_name}/tickets?repo={repo}");
    let held = client.post(&path, json!({ "request_uuid": uuid() })).await.ticket(201);
    client.release(&held).await.ticket(200);
}

/// The lock names of the events that a feed has until one of this lock is released.
async fn lock_names(feed: &mut RawFeed, last: &str) -> Vec<String> {
    let mut names = Vec::new();
    loop {
        let event = feed.event().await.expect("the feed goes on");
        let data: Value = serde_json::from_str(&event.data).expect("it is JSON");
        let name = data["data"]["lock_name"].as_str().unwrap_or_default().to_owned();
        let is_last = name == last && event.name == "lock.released";
        names.push(name);
        if is_last {
            return names;
        }
    }
}

#[tokio::test]
async fn a_stream_does_not_outlive_access() {
    let server = Server::start();
    let (admin, ada) = (server.client("admin"), server.client("claude"));
    let other = "teams/platform/api";
    let made = admin.post("/v1/admin/repos", json!({ "repo": other })).await;
    assert_eq!(made.status, 201);
    server.add_user("bo").await;
    let bo = server.add_token("bo").await;
    let dee = server.add_user("dee").await;
    for repo in [REPO, other] {
        grant(&server, "bo", repo).await;
    }
    let head = bo.get("/v1/whoami").await.sequence().to_string();
    let mut of_bo = RawFeed::open(&server, &bo, "", Some(&head)).await;
    let mut of_dee = RawFeed::open(&server, &dee, "", Some(&head)).await;
    use_lock_of(&ada, REPO, "seen").await;
    assert_eq!(lock_names(&mut of_bo, "seen").await, ["seen", "seen"]);
    let path = format!("/v1/admin/access/bo?repo={REPO}");
    assert_eq!(admin.delete(&path).await.status, 200);
    use_lock_of(&ada, REPO, "hidden-1").await;
    use_lock_of(&ada, other, "other").await;
    use_lock_of(&ada, REPO, "hidden-2").await;
    use_lock_of(&ada, other, "last").await;
    let heard = lock_names(&mut of_bo, "last").await;
    assert_eq!(heard, ["other", "other", "last", "last"]);
    // What was seen live isn't seen again either: access is judged as it is now.
    let mut replay = RawFeed::open(&server, &bo, "?type=lock.*", Some("0")).await;
    assert_eq!(lock_names(&mut replay, "last").await, heard);
    let own = json!({ "request_uuid": uuid() });
    let own = dee.post("/v1/locks/own/tickets?user=dee", own).await.ticket(201);
    let event = of_dee.event().await.expect("the feed goes on");
    assert_eq!(own["sequence"], event.sequence(), "a stranger hears of nothing else: {event:?}");
    let id = bo.get("/v1/whoami").await.body["token_id"].clone();
    let path = format!("/v1/admin/tokens/{}", id.as_str().expect("an id"));
    assert_eq!(admin.delete(&path).await.status, 200);
    assert_eq!(of_bo.event().await, None, "the stream ends");
    let again = RawFeed::open(&server, &bo, "", Some(&head)).await;
    assert!(again.head().contains("401"), "{}", again.head());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_ends_every_feed_and_each_comes_back_in_its_own_time() {
    const FEEDS: usize = 24;
    let mut server = Server::start();
    let claude = server.client("claude");
    let (mut feeds, mut retries) = (Vec::new(), Vec::new());
    for _ in 0..FEEDS {
        let mut feed = Feed::open(&server, &claude, "", None).await;
        match feed.frame().await {
            Some(Frame::Retry(retry)) => retries.push(retry),
            other => panic!("a feed begins with when to come back: {other:?}"),
        }
        feed.until_caught_up().await;
        feeds.push(feed);
    }
    assert!(retries.iter().all(|retry| (1000..=3000).contains(retry)), "{retries:?}");
    retries.sort_unstable();
    retries.dedup();
    assert!(retries.len() > FEEDS / 2, "all come back at once: {retries:?}");
    server.process().signal(SIGTERM);
    for mut feed in feeds {
        assert!(feed.until_its_end().await.is_empty());
    }
    assert_eq!(server.exit_code(), Some(0));
}

/// Takes locks of these numbers on many connections.
async fn for_each_lock<F>(count: usize, act: impl Fn(usize) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut acting = JoinSet::new();
    for number in 0..count {
        if acting.len() == 64 {
            acting.join_next().await.expect("there are some").expect("it is answered");
        }
        acting.spawn(act(number));
    }
    acting.join_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_nobody_holds_any_more_leave_nothing_behind_in_memory() {
    const RELEASED: usize = 20_000;
    const EXPIRED: usize = 5_000;
    let mut server = Server::start();
    server.kill();
    server.serve_with(&["--requests-per-second-per-identity", "1000000"]);
    let (claude, codex) = (server.client("claude"), server.client("codex"));
    let first = claude.hold("first", 60).await;
    claude.release(&first).await.ticket(200);
    for_each_lock(RELEASED, |number| {
        let claude = claude.clone();
        async move { use_lock(&claude, &format!("released-{number}")).await }
    })
    .await;
    for_each_lock(EXPIRED, |number| {
        let (claude, codex) = (claude.clone(), codex.clone());
        async move {
            claude.hold(&format!("expired-{number}"), 5).await;
            let reply = codex.acquire(&format!("expired-{number}"), json!({})).await;
            // It may have expired on a slow machine.
            assert!([201, 409].contains(&reply.status), "{}", reply.body);
        }
    })
    .await;
    eventually("all leases to run out", || async {
        let list = claude.get(&format!("/v1/locks?repo={REPO}")).await.body;
        (list["items"].as_array()?.is_empty()).then_some(())
    })
    .await;
    server.process().signal(SIGTERM);
    assert_eq!(server.exit_code(), Some(0));
    // A start reads the newest snapshot, and what came after it, which is nothing. It holds all of
    // the state: there is no name in it.
    let (ledger, _) = RocksLedger::open(&server.data(), OpenOptions::default()).expect("closed");
    let facts = ledger.scan(Table::Meta, &[], &[], usize::MAX).expect("it can be read");
    let bytes: usize = facts.iter().map(|(_, value)| value.len()).sum();
    assert!(bytes < 64 * 1024, "{bytes} bytes are kept of the state");
    for name in ["released-", "expired-"] {
        let has = |value: &[u8]| value.windows(name.len()).any(|part| part == name.as_bytes());
        assert!(!facts.iter().any(|(_, value)| has(value)), "{name} is still known");
    }
    drop(ledger);
    server.serve();
    let again = server.client("claude").hold("first", 60).await;
    assert!(again["fence_token"].as_u64() > first["fence_token"].as_u64(), "fences go on");
}
