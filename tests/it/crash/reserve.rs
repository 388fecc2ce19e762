//! A disk that is nearly full, and one that has rotted.

use std::fs;

use serde_json::json;

use crate::support::{Client, REPO, SIGTERM, Server, path_of, uuid};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn below_the_reserve_only_new_work_is_refused() {
    let mut server = Server::start();
    let claude = server.client("claude");
    let request = json!({ "request_uuid": uuid(), "lease_seconds": 300, "wait_seconds": 0 });
    let held = claude.acquire("x", request.clone()).await.ticket(201);
    server.kill();
    server.serve_with(&["--disk-reserve-mib", "1000000000"]);
    let (claude, admin) = (server.client("claude"), server.client("admin"));

    let refused = claude.acquire("y", json!({ "request_uuid": uuid() })).await;
    assert_eq!(refused.says(), (507, "disk-full"));
    assert!(refused.header("Retry-After").is_some());
    let again = claude.acquire("x", request).await.ticket(200);
    assert_eq!(again["ticket_id"], held["ticket_id"], "a retry is a read");
    assert_eq!(claude.heartbeat(&held, 300).await.status, 200);
    assert_eq!(claude.get(&path_of(&held, "")).await.status, 200);
    assert_eq!(claude.get("/readyz").await.status, 200);
    let taken = format!("/v1/admin/users/{}/disable", "codex");
    assert_eq!(admin.post(&taken, json!({})).await.status, 200);
    assert_eq!(claude.release(&held).await.status, 200);

    server.kill();
    server.serve();
    let claude = server.client("claude");
    claude.acquire("y", json!({ "request_uuid": uuid() })).await.ticket(201);
}

/// Turns one bit in each block of the largest file of the ledger's tables.
fn rot(server: &Server) {
    let folder = server.data().join("rocks");
    let entries = fs::read_dir(folder).expect("the ledger's folder").map(|e| e.expect("an entry"));
    let tables =
        entries.map(|e| e.path()).filter(|path| path.extension().is_some_and(|e| e == "sst"));
    let largest = tables
        .max_by_key(|path| fs::metadata(path).expect("a file").len())
        .expect("a stopped server leaves its records in tables");
    let mut bytes = fs::read(&largest).expect("a table");
    // Only where records lie: what stands at the end is read at the start, and refused there.
    for at in (64..bytes.len() / 2).step_by(64) {
        bytes[at] ^= 1;
    }
    fs::write(&largest, bytes).expect("a table");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rot_that_a_read_finds_ends_the_server() {
    let mut server = Server::start();
    let claude = server.client("claude");
    for round in 0..40 {
        let held = claude.hold(&format!("lock-{round}"), 60).await;
        assert_eq!(claude.release(&held).await.status, 200);
    }
    // Twice: the second start finds the records in tables, and a snapshot to begin with.
    for _ in 0..2 {
        server.process().signal(SIGTERM);
        assert_eq!(server.exit_code(), Some(0));
        server.serve();
    }
    server.process().signal(SIGTERM);
    assert_eq!(server.exit_code(), Some(0));
    rot(&server);
    server.serve();
    let claude = server.client("claude");
    let path = format!("/v1/locks/lock-1/history?repo={REPO}");
    let answer = Client::send(claude.request("GET", &path)).await;
    assert!(answer.is_err(), "there is no right answer");
    assert_eq!(server.exit_code(), Some(5));
}
