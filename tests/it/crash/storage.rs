//! A sync that fails: the server says nothing more, ends, and the next start makes it good.

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::load::assert_whole;
use crate::support::{Client, REPO, Server, trace, uuid};

/// Which of a thread's syncs fails: strace counts for each thread by itself. More than the thread
/// makes that opens the ledger, so that it is one of the writer's.
const FAILING_SYNC: usize = 20;

/// More rounds than it can take until that many syncs were made.
const ROUNDS_MAX: usize = 100;

/// Eight acquires at once, which may share an append. Each comes back with its answer, if it got
/// one.
async fn round(client: &Client) -> Vec<(String, Value, Option<Value>)> {
    let mut sent = JoinSet::new();
    for _ in 0..8 {
        let client = client.clone();
        sent.spawn(async move {
            let lock_name = format!("lock-{}", uuid());
            let fields = json!({ "request_uuid": uuid(), "lease_seconds": 300 });
            let path = format!("/v1/locks/{lock_name}/tickets?repo={REPO}");
            let reply = Client::send(client.request("POST", &path).json(&fields)).await.ok();
            let ticket = reply.map(|reply| reply.ticket(201));
            (lock_name, fields, ticket)
        });
    }
    sent.join_all().await
}

/// Returns how many were answered, and how many were not.
async fn fails_with(error: &str, failing_sync: usize) -> (usize, usize) {
    let mut server = Server::start();
    server.kill();
    let inject = format!("inject=fdatasync:error={error}:when={failing_sync}");
    let options: Vec<&str> = trace::OPTIONS.into_iter().chain(["-e", &inject]).collect();
    server.serve_traced(&options);
    let claude = server.client("claude");
    let mut asked = Vec::new();
    for _ in 0..ROUNDS_MAX {
        let round = round(&claude).await;
        let has_failed = round.iter().any(|(_, _, ticket)| ticket.is_none());
        asked.extend(round);
        if has_failed {
            break;
        }
    }
    let unanswered = asked.iter().filter(|(_, _, ticket)| ticket.is_none()).count();
    assert!(unanswered > 0, "no sync failed, or it was hidden");
    assert_eq!(server.exit_code(), Some(6), "{error}");
    // The failed write may well be read back: only the order of things shows that nobody was told.
    let trace = server.trace();
    assert_eq!((trace.answers(), trace.unsynced()), (asked.len() - unanswered, 0));

    server.serve();
    let claude = server.client("claude");
    for (lock_name, fields, ticket) in &asked {
        let retried = claude.acquire(lock_name, fields.clone()).await;
        let is_replay = retried.header("idempotency-replayed") == Some("true");
        // Of what was not answered either is right: it was written, or it was not.
        let now = retried.ticket(if is_replay { 200 } else { 201 });
        assert_eq!(now["request_uuid"], fields["request_uuid"]);
        if let Some(ticket) = ticket {
            assert!(is_replay, "an acknowledged ticket is gone: {ticket}");
            assert_eq!(now["ticket_id"], ticket["ticket_id"]);
            assert_eq!(now["fence_token"], ticket["fence_token"]);
        }
        let lock = claude.lock(lock_name).await;
        assert_eq!((&lock["fence_token"], &lock["depth"]), (&now["fence_token"], &json!(1)));
    }
    assert_whole(&server).await;
    (asked.len() - unanswered, unanswered)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_io_error_in_a_sync_stops_the_server_and_answers_nobody() {
    let (answered, not) = fails_with("EIO", FAILING_SYNC).await;
    println!("{answered} were answered, {not} were not");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_in_a_sync_stops_the_server_and_answers_nobody() {
    let (answered, not) = fails_with("ENOSPC", FAILING_SYNC + 1).await;
    println!("{answered} were answered, {not} were not");
}
