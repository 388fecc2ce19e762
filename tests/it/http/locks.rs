//! Locks and tickets: each call once, with its statuses and headers.

use serde_json::{Value, json};

use super::assert_problem;
use crate::support::{REPO, Server, eventually, path_of, uuid};

#[tokio::test]
async fn two_identities_take_turns() {
    let server = Server::start();
    let (claude, codex) = (server.client("claude"), server.client("codex"));
    let asked = json!({ "lease_seconds": 60, "note": "why", "request_uuid": uuid() });
    let reply = claude.acquire("thread-work.42", asked.clone()).await;
    assert_eq!(reply.header("idempotency-replayed"), None);
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    let sequence = reply.sequence();
    assert!(reply.body["answered_after_ms"].is_u64());
    let first = reply.ticket(201);
    let expected = json!({
        "ticket_id": first["ticket_id"], "scope": REPO, "lock_name": "thread-work.42",
        "owner": "claude", "request_uuid": asked["request_uuid"], "state": "held", "note": "why",
        "fence_token": sequence, "depth": 1, "queue_position": null, "lease_seconds": 60,
        "wait_seconds": 0, "lease_expires_at": first["lease_expires_at"],
        "lease_remaining_ms": first["lease_remaining_ms"], "wait_expires_at": null,
        "heartbeat_every_seconds": 20, "created_at": first["created_at"],
        "held_at": first["created_at"], "ended_at": null, "end_reason": null,
        "sequence": sequence,
    });
    assert_eq!(first, expected);
    assert!((1..=60_000).contains(&first["lease_remaining_ms"].as_u64().expect("it is held")));

    let reply = claude.acquire("thread-work.42", asked).await;
    assert_eq!(reply.header("idempotency-replayed"), Some("true"));
    assert_eq!(reply.sequence(), sequence, "a replay appends nothing");
    assert_eq!(reply.ticket(200)["ticket_id"], first["ticket_id"]);

    let asked = json!({ "lease_seconds": 30, "wait_seconds": 30, "request_uuid": uuid() });
    let reply = codex.acquire("thread-work.42", asked.clone()).await;
    assert_eq!(reply.body["holder"]["owner"], "claude");
    assert_eq!(reply.body["holder"]["note"], "why");
    assert_eq!(reply.body["holder"]["fence_token"], first["fence_token"]);
    assert!((50..=60).contains(&reply.body["retry_after_seconds"].as_u64().expect("a number")));
    let second = reply.ticket(202);
    assert_eq!((&second["state"], &second["queue_position"]), (&json!("waiting"), &json!(1)));
    assert_eq!((&second["fence_token"], &second["lease_expires_at"]), (&json!(null), &json!(null)));
    assert_eq!(codex.acquire("thread-work.42", asked).await.status, 202);

    let beaten = claude.heartbeat(&first, 120).await.ticket(200);
    assert!(beaten["lease_remaining_ms"].as_u64() > Some(100_000), "{beaten}");
    assert_eq!(beaten["lease_seconds"], 60);

    let released = claude.release(&first).await.ticket(200);
    assert_eq!((&released["state"], &released["depth"]), (&json!("released"), &json!(0)));
    assert_eq!(claude.release(&first).await.ticket(200), released, "the same answer again");

    let promoted = codex.look(&second).await;
    assert_eq!(promoted["state"], "held");
    assert!(promoted["fence_token"].as_u64() > first["fence_token"].as_u64());

    let late = claude.heartbeat(&first, 60).await;
    assert_problem(&late, 409, "ticket-not-held");
    assert_eq!(late.body["ticket"], released);
}

#[tokio::test]
async fn a_taken_lock_contends_and_says_when_to_come_back() {
    let server = Server::start();
    let (claude, codex) = (server.client("claude"), server.client("codex"));
    let held = claude.hold("x", 40).await;
    let asked = json!({ "request_uuid": uuid() });
    for replayed in [None, Some("true")] {
        let reply = codex.acquire("x", asked.clone()).await;
        assert_problem(&reply, 409, "lock-contended");
        assert_eq!(reply.header("idempotency-replayed"), replayed);
        let seconds: u64 = reply.header("retry-after").expect("it is sent").parse().unwrap();
        assert!((30..=40).contains(&seconds), "{seconds}");
        assert_eq!(reply.body["retry_after_seconds"], seconds);
        assert_eq!(reply.body["holder"]["owner"], "claude");
        assert_eq!(reply.body["ticket"]["state"], "contended");
    }
    assert_problem(
        &claude.acquire("x", json!({ "reentrant": false })).await,
        409,
        "lock-contended",
    );
    let deeper = claude.acquire("x", json!({})).await.ticket(201);
    assert_eq!((&deeper["depth"], &deeper["fence_token"]), (&json!(2), &held["fence_token"]));
    let reused = json!({ "request_uuid": asked["request_uuid"], "lease_seconds": 61 });
    let before = codex.lock("x").await["sequence"].clone();
    let reply = codex.acquire("x", reused).await;
    assert_problem(&reply, 422, "request-uuid-reused");
    assert_eq!(reply.body.get("ticket"), None);
    assert_eq!(codex.lock("x").await["sequence"], before, "nothing is appended");
    let own = claude.acquire("y", asked).await;
    assert_eq!(own.status, 201, "another identity's UUIDs are its own");
}

#[tokio::test]
async fn retries_show_how_it_ended() {
    let server = Server::start();
    let (admin, claude, codex) =
        (server.client("admin"), server.client("claude"), server.client("codex"));
    let asked = |wait: u32| json!({ "request_uuid": uuid(), "wait_seconds": wait });
    let (first, second) = (asked(0), asked(600));
    let held = claude.acquire("x", first.clone()).await.ticket(201);
    let waiting = codex.acquire("x", second.clone()).await.ticket(202);
    let cancelled = codex.release(&waiting).await.ticket(200);
    assert_eq!(cancelled["state"], "cancelled");
    assert_problem(&codex.acquire("x", second).await, 409, "wait-ended");

    let stale = json!({ "fence_token": 1, "reason": "stuck" });
    let break_path = format!("/v1/locks/x/break?repo={REPO}");
    assert_problem(&admin.post(&break_path, stale).await, 409, "stale-fence");
    let right = json!({ "fence_token": held["fence_token"], "reason": "stuck" });
    assert_problem(&claude.post(&break_path, right.clone()).await, 403, "forbidden");
    let free = admin.post(&break_path, right.clone()).await;
    assert_eq!(free.status, 200, "{}", free.body);
    assert_eq!((&free.body["owner"], &free.body["holds"]), (&json!(null), &json!([])));
    assert_problem(&admin.post(&break_path, right).await, 409, "stale-fence");

    let reply = claude.acquire("x", first).await;
    assert_problem(&reply, 409, "ticket-ended");
    assert_eq!(reply.header("idempotency-replayed"), Some("true"));
    assert_eq!(reply.body["ticket"]["state"], "broken");
    assert_eq!(reply.body["ticket"]["end_reason"], "stuck");
    let reply = claude.release(&held).await;
    assert_problem(&reply, 409, "ticket-ended");
    assert_eq!(reply.body["ticket"]["state"], "broken");
}

#[tokio::test]
async fn a_deadlock_is_rejected_with_its_cycle() {
    let server = Server::start();
    let (claude, codex) = (server.client("claude"), server.client("codex"));
    claude.hold("x", 60).await;
    codex.hold("y", 60).await;
    let waiting = claude.wait_for("y", 60).await;
    let asked = json!({ "request_uuid": uuid(), "wait_seconds": 60 });
    for _ in ["at first", "again"] {
        let reply = codex.acquire("x", asked.clone()).await;
        assert_problem(&reply, 409, "deadlock-rejected");
        let cycle = reply.body["cycle"].as_array().expect("it names the cycle").clone();
        assert_eq!(cycle.len(), 2);
        assert_eq!(
            (&cycle[0]["owner"], &cycle[0]["waits_for"]),
            (&json!("codex"), &json!("claude"))
        );
        assert_eq!((&cycle[0]["lock_name"], &cycle[0]["scope"]), (&json!("x"), &json!(REPO)));
        assert_eq!(cycle[0]["ticket_id"], reply.body["ticket"]["ticket_id"]);
        assert_eq!(
            (&cycle[1]["owner"], &cycle[1]["waits_for"]),
            (&json!("claude"), &json!("codex"))
        );
        assert_eq!(cycle[1]["ticket_id"], waiting["ticket_id"]);
        assert_eq!(reply.body["ticket"]["state"], "deadlock_rejected");
    }
}

#[tokio::test]
async fn a_long_poll_returns_when_the_wait_is_over() {
    let server = Server::start();
    let (claude, codex) = (server.client("claude"), server.client("codex"));
    let held = claude.hold("x", 60).await;
    let waiting = codex.wait_for("x", 60).await;
    let poll = |seconds: u32| {
        let request = codex.request("GET", &path_of(&waiting, ""));
        crate::support::Client::send(request.header("Prefer", format!("wait={seconds}")))
    };
    let short = poll(0).await.expect("it is answered");
    assert_eq!(short.header("preference-applied"), Some("wait=0"));
    assert_eq!(short.ticket(200)["state"], "waiting");
    let long = tokio::spawn(poll(25));
    // So that the poll is there first; were it not, it would return at once and prove less.
    eventually("another poll to be answered", || async { poll(1).await.ok() }).await;
    assert!(!long.is_finished(), "it is held back");
    claude.release(&held).await.ticket(200);
    let began = pearing::clock::monotonic();
    let reply = long.await.expect("it does not panic").expect("it is answered");
    assert!(pearing::clock::elapsed(began).as_secs() < 10, "it returns early");
    assert!(reply.body["answered_after_ms"].as_u64() >= Some(500), "{}", reply.body);
    assert_eq!(reply.ticket(200)["state"], "held");
}

#[tokio::test]
async fn own_tickets_are_listed_by_state() {
    let server = Server::start();
    let (claude, codex) = (server.client("claude"), server.client("codex"));
    codex.hold("c", 60).await;
    let mut made = vec![claude.hold("a", 60).await, claude.hold("b", 60).await];
    made.push(claude.wait_for("c", 60).await);
    let ids = |tickets: &Value| super::names(tickets, "ticket_id");
    let all: Vec<String> =
        made.iter().map(|t| t["ticket_id"].as_str().expect("an id").to_owned()).collect();
    assert_eq!(ids(&claude.get("/v1/tickets").await.body), all);
    assert_eq!(ids(&claude.get("/v1/tickets?state=held").await.body), all[..2]);
    assert_eq!(ids(&claude.get("/v1/tickets?state=waiting").await.body), all[2..]);
    let page = claude.get("/v1/tickets?limit=2").await.body;
    assert_eq!(ids(&page), all[..2]);
    let next = page["next"].as_str().expect("there is more");
    let page = claude.get(&format!("/v1/tickets?limit=2&cursor={next}")).await.body;
    assert_eq!((ids(&page), &page["next"]), (all[2..].to_vec(), &json!(null)));
    assert_eq!(claude.get("/v1/whoami").await.body["live_tickets"], 3);
}
