//! Limits over HTTP: what is too much says so, and takes nothing from those who keep to them.

use serde_json::json;
use tokio::task::JoinSet;

use super::assert_problem;
use crate::support::{REPO, Reply, Server, uuid};

/// A server on which a first try was made, with these flags.
fn server_with(flags: &[&str]) -> Server {
    let mut server = Server::start();
    server.kill();
    server.serve_with(flags);
    server
}

fn assert_too_much(reply: &Reply) {
    assert_problem(reply, 429, "limit-reached");
    let seconds = reply.header("retry-after").and_then(|text| text.parse::<u64>().ok());
    assert!(seconds.is_some_and(|seconds| seconds > 0), "{reply:?}");
}

#[tokio::test]
async fn one_who_asks_too_often_costs_neither_its_own_lease_nor_the_others() {
    let server = server_with(&["--requests-per-second-per-identity", "1"]);
    let (claude, codex) = (server.client("claude"), server.client("codex"));
    let held = claude.hold("x", 60).await;
    let asked = (0..10).map(|_| {
        let claude = claude.clone();
        async move { claude.get("/v1/tickets").await }
    });
    let mut refused = 0;
    for reply in asked.collect::<JoinSet<_>>().join_all().await {
        if reply.status != 200 {
            assert_too_much(&reply);
            refused += 1;
        }
    }
    assert!(refused > 0, "ten at once are more than one a second");
    // Its heartbeats and releases are counted apart, and so is everyone else.
    assert_eq!(claude.heartbeat(&held, 60).await.status, 200);
    assert_eq!(codex.get("/v1/tickets").await.status, 200);
}

#[tokio::test]
async fn what_lives_in_one_scope_leaves_room_in_the_others() {
    let server = server_with(&["--live-tickets-per-scope", "2", "--places-per-lock", "1"]);
    let (claude, codex) = (server.client("claude"), server.client("codex"));
    let first = claude.hold("x", 60).await;
    let request = json!({ "request_uuid": uuid() });
    claude.acquire("y", request.clone()).await.ticket(201);
    assert_too_much(&codex.acquire("z", json!({})).await);
    assert_too_much(&codex.acquire("x", json!({ "wait_seconds": 60 })).await);
    let retried = claude.acquire("y", request).await;
    assert_eq!(retried.status, 200, "a retry never meets a limit: {}", retried.body);
    let own = codex.post("/v1/locks/z/tickets?user=codex", json!({ "request_uuid": uuid() })).await;
    assert_eq!(own.status, 201, "{}", own.body);
    assert_eq!(claude.release(&first).await.status, 200);
    assert_eq!(codex.acquire("z", json!({})).await.status, 201, "there is room again");
}

#[tokio::test]
async fn replies_and_agents_have_their_bounds() {
    let server = server_with(&["--replies-per-thread", "2", "--agents-per-person", "1"]);
    let claude = server.client("claude");
    let path = format!("/v1/threads/42/replies?repo={REPO}");
    let reply =
        |request_uuid: &str| json!({ "kind": "note", "body": "b", "request_uuid": request_uuid });
    let [first, second] = [uuid(), uuid()];
    for request_uuid in [&first, &second] {
        assert_eq!(claude.post(&path, reply(request_uuid)).await.status, 201);
    }
    assert_too_much(&claude.post(&path, reply(&uuid())).await);
    assert_eq!(claude.post(&path, reply(&first)).await.status, 200, "a retry finds its reply");
    for (name, status) in [("one", 201), ("two", 429), ("one", 201)] {
        let made = claude.post("/v1/agents", json!({ "name": name })).await;
        assert_eq!(made.status, status, "{name}: {}", made.body);
    }
}
