//! The typed client against a real server: what it says of a lease while the server is stopped,
//! away, gone or of another mind.

use pearing::client::{Acquire, Client, EventFilter, FeedItem, Lease, LeaseState, Lost};
use pearing::domain::id::{RequestUuid, Sequence};
use pearing::domain::scope::LockKey;
use pearing::random;
use pearing::wire::problem::Code;
use rustix::process::Signal;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::support::{PATIENCE, REPO, Server, eventually};

fn client(url: &str, server: &Server, user: &str) -> Client {
    Client::new(&url.parse().expect("an address"), server.client(user).token()).expect("a client")
}

fn lock(lock_name: &str) -> LockKey {
    let scope = REPO.parse().expect("a scope");
    LockKey { scope, lock_name: lock_name.parse().expect("a name") }
}

fn ask(lease_seconds: u64, wait_seconds: u64) -> Acquire {
    Acquire {
        request_uuid: RequestUuid(random::uuid()),
        lease_seconds: Some(lease_seconds.try_into().expect("in range")),
        wait_seconds: Some(wait_seconds.try_into().expect("in range")),
        note: None,
        reentrant: None,
    }
}

async fn hold(client: &Client, lock_name: &str, lease_seconds: u64) -> Lease {
    let never = std::future::pending::<()>();
    let ask = ask(lease_seconds, 60);
    client.hold(&lock(lock_name), &ask, never).await.expect("it is held in the end")
}

/// The state of a lease, once it is what a test waits for.
async fn told(lease: &Lease, what: &str, is_it: impl Fn(&LeaseState) -> bool) -> LeaseState {
    let mut watch = lease.watch();
    let told = timeout(PATIENCE, async {
        let mut state = watch.state();
        while !is_it(&state) {
            state = watch.changed().await;
        }
        state
    });
    told.await.unwrap_or_else(|_| panic!("waited in vain: {what}"))
}

fn is_in_doubt(state: &LeaseState) -> bool {
    matches!(state, LeaseState::InDoubt { .. })
}

fn is_held(state: &LeaseState) -> bool {
    matches!(state, LeaseState::Held { .. })
}

#[tokio::test]
async fn a_stopped_server_is_a_doubt_first_and_a_loss_at_the_deadline() {
    let mut server = Server::start();
    let claude = client(server.url(), &server, "claude");
    let lease = hold(&claude, "x", 5).await;
    server.process().signal(Signal::STOP);
    told(&lease, "doubt", is_in_doubt).await;
    let lost = timeout(PATIENCE, lease.watch().lost()).await.expect("it is lost in time");
    assert_eq!(lost, Lost::Deadline);
    server.process().signal(Signal::CONT);
    let next = hold(&client(server.url(), &server, "codex"), "x", 5).await;
    assert!(next.fence_token() > lease.fence_token());
    assert_eq!(lease.state(), LeaseState::Lost(Lost::Deadline));
}

#[tokio::test]
async fn it_is_lost_here_before_another_identity_has_the_lock() {
    let server = Server::start();
    let (leads_to, target) = watch::channel(address(&server));
    let lease = hold(&client(&proxy(target).await, &server, "claude"), "x", 5).await;
    let codex = client(server.url(), &server, "codex");
    let next = tokio::spawn(async move { hold(&codex, "x", 60).await });
    eventually("codex waits", async || {
        let lock = server.client("codex").lock("x").await;
        (lock["queue"].as_array().is_some_and(|queue| queue.len() == 1)).then_some(())
    })
    .await;
    // It is kept over more than one lease, and then nothing passes any more.
    let mut watch = lease.watch();
    for _ in 0..6 {
        let state = timeout(PATIENCE, watch.changed()).await.expect("heartbeats go on");
        assert!(is_held(&state), "{state:?}");
    }
    leads_to.send(None).expect("the proxy runs");
    let next = timeout(PATIENCE, next).await.expect("the lease ends").expect("no panic");
    assert_eq!(lease.state(), LeaseState::Lost(Lost::Deadline));
    assert!(next.fence_token() > lease.fence_token());
}

#[tokio::test]
async fn a_broken_hold_is_lost_at_the_next_heartbeat() {
    let server = Server::start();
    let mut lease = hold(&client(server.url(), &server, "claude"), "x", 5).await;
    let breaks = json!({ "fence_token": lease.fence_token().0.0, "reason": "it is stuck" });
    let path = format!("/v1/locks/x/break?repo={REPO}");
    let broken = server.client("admin").post(&path, breaks).await;
    assert_eq!(broken.status, 200, "{}", broken.body);
    let lost = timeout(PATIENCE, lease.watch().lost()).await.expect("it is told");
    assert_eq!(lost, Lost::Refused(Code::TicketNotHeld));
    assert_eq!(lease.release().await.expect_err("it was lost before").exit_code(), 5);
}

#[tokio::test]
async fn a_server_that_comes_back_finds_its_holder() {
    let mut server = Server::start();
    // By a proxy, since it comes back elsewhere.
    let (leads_to, target) = watch::channel(address(&server));
    let mut lease = hold(&client(&proxy(target).await, &server, "claude"), "x", 30).await;
    // Away for as long as it takes to be noticed.
    server.kill();
    told(&lease, "doubt", is_in_doubt).await;
    server.serve();
    leads_to.send(address(&server)).expect("the proxy runs");
    told(&lease, "no doubt", is_held).await;
    let lock = server.client("codex").lock("x").await;
    assert_eq!(lock["fence_token"], lease.fence_token().0.0);
    lease.release().await.expect("it is released");
    let lock = server.client("codex").lock("x").await;
    assert!(lock["owner"].is_null(), "{lock}");
}

#[tokio::test]
async fn a_feed_goes_on_over_restarts_from_where_it_was_saved() {
    let mut server = Server::start();
    let claude = server.client("claude");
    claude.hold("a", 60).await;
    claude.hold("b", 60).await;
    let filter = EventFilter { types: vec!["lock.*".to_owned()], ..EventFilter::default() };
    let next = async |feed: &mut pearing::client::Feed| loop {
        let item = timeout(PATIENCE, feed.next()).await.expect("it comes").expect("the feed lives");
        if let FeedItem::Event { sequence, .. } = item {
            return sequence;
        }
    };
    let mut feed = client(server.url(), &server, "codex").feed(filter.clone(), Some(Sequence(0)));
    let first = next(&mut feed).await;
    assert_eq!(feed.cursor(), Some(first));
    drop(feed);
    server.crash();
    let mut feed = client(server.url(), &server, "codex").feed(filter, Some(first));
    let second = next(&mut feed).await;
    assert!(second > first);
    let third = server.client("claude").hold("c", 60).await;
    assert_eq!(next(&mut feed).await.0, third["sequence"].as_u64().expect("a number"));
}

/// Where a proxy leads; with none, what it has does not arrive anywhere.
type Target = watch::Receiver<Option<String>>;

fn address(server: &Server) -> Option<String> {
    Some(server.url().trim_start_matches("http://").to_owned())
}

/// The address of a proxy.
async fn proxy(target: Target) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let mut target = target.clone();
            tokio::spawn(async move {
                let to = target.wait_for(Option::is_some).await.ok()?.clone()?;
                let server = TcpStream::connect(&to).await.ok()?;
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                tokio::join!(
                    pass(from_client, to_server, target.clone()),
                    pass(from_server, to_client, target),
                );
                Some(())
            });
        }
    });
    url
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut target: Target) -> Option<()> {
    let mut part = [0; 4096];
    loop {
        let count = from.read(&mut part).await.ok().filter(|count| *count > 0)?;
        target.wait_for(Option::is_some).await.ok()?;
        to.write_all(&part[..count]).await.ok()?;
    }
}
