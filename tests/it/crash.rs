//! kill -9 at any time: what was acknowledged is there afterwards, and nothing is there by half.

mod exit;
mod load;
mod reserve;
mod storage;

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{PATIENCE, Process, SIGKILL, SIGTERM, Server, eventually, pearing, uuid};
use load::{Load, assert_remembered, assert_whole};

/// A random length of time.
fn random_millis(from: u64, to: u64) -> Duration {
    let mut bytes = [0; 2];
    pearing::random::fill(&mut bytes);
    Duration::from_millis(from + u64::from(u16::from_le_bytes(bytes)) % (to - from))
}

/// A ticket without what depends on when one looks.
fn timeless(ticket: &Value) -> Value {
    let mut ticket = ticket.clone();
    ticket["lease_remaining_ms"] = Value::Null;
    ticket
}

#[tokio::test]
async fn a_hold_and_a_wait_survive_a_kill_unchanged() {
    let mut server = Server::start();
    let asked = json!({ "request_uuid": uuid(), "lease_seconds": 300 });
    let held = server.client("claude").acquire("x", asked.clone()).await.ticket(201);
    let waiting = server.client("codex").wait_for("x", 60).await;
    server.crash();
    let (claude, codex) = (server.client("claude"), server.client("codex"));
    let recovered = claude.look(&held).await;
    // More than the grace is left, so the deadline is the same to the millisecond.
    assert_eq!(timeless(&recovered), timeless(&held));
    assert!(recovered["lease_remaining_ms"].as_u64() <= held["lease_remaining_ms"].as_u64());
    let retried = claude.acquire("x", asked).await;
    assert_eq!(retried.header("idempotency-replayed"), Some("true"));
    assert_eq!(timeless(&retried.ticket(200)), timeless(&held));
    assert_eq!(codex.look(&waiting).await, waiting);
    let events = claude.events("&type=ledger.recovered").await;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["data"], json!({ "grace_seconds": 10 }));
    claude.release(&held).await.ticket(200);
    let promoted = codex.look(&waiting).await;
    assert_eq!(promoted["state"], "held");
    assert!(promoted["fence_token"].as_u64() > held["fence_token"].as_u64());
    server.crash();
    assert_eq!(timeless(&server.client("codex").look(&waiting).await), timeless(&promoted));
    assert_whole(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_acknowledged_answer_survives_kills_at_random_times() {
    const KILLS: usize = 20;
    let mut server = Server::start();
    for user in ["wren", "lark"] {
        server.add_writer(user).await;
    }
    let mut load = Load::of(["claude", "codex", "wren", "lark"]);
    let (mut lives, mut answers) = (Vec::new(), 0);
    for kill in 0..KILLS {
        load.start(&server);
        let life = random_millis(5, 400);
        lives.push(life);
        tokio::time::sleep(life).await;
        // A drain under load loses nothing either.
        if kill % 5 == 4 {
            server.process().signal(SIGTERM);
            assert_eq!(server.exit_code(), Some(0));
        } else {
            server.kill();
        }
        let told = load.answers().await;
        answers += told.len();
        server.serve();
        assert_remembered(&server, &told).await;
    }
    println!("killed after {lives:?}; {answers} answers");
    assert!(answers > 0, "there was a load");
    assert_whole(&server).await;
}

#[tokio::test]
async fn restarts_do_not_lengthen_a_dead_holders_lease() {
    let mut server = Server::start();
    let claude = server.client("claude");
    let (short, long) = (claude.hold("short", 5).await, claude.hold("long", 300).await);
    server.crash();
    // The first restart gives it one grace, which for a lease of 5 s is 5 s.
    let after_grace = server.client("claude").look(&short).await;
    let deadline = after_grace["lease_expires_at"].clone();
    assert!(deadline.as_str() >= short["lease_expires_at"].as_str());
    for _ in 0..3 {
        server.kill();
        // Killed while it starts, too.
        for _ in 0..2 {
            let starting = Process::start(pearing(["serve"]).args(server.place()));
            tokio::time::sleep(random_millis(1, 50)).await;
            starting.signal(SIGKILL);
        }
        server.serve();
        let claude = server.client("claude");
        let (short, now_long) = (claude.look(&short).await, claude.look(&long).await);
        assert!(short["state"] == "expired" || short["lease_expires_at"] == deadline, "{short}");
        assert_eq!(timeless(&now_long), timeless(&long));
    }
    let claude = server.client("claude");
    let ended = eventually("the expiry", || async {
        let short = claude.look(&short).await;
        (short["state"] == "expired").then_some(short)
    })
    .await;
    let time = |value: &Value| -> jiff::Timestamp {
        value.as_str().expect("a time").parse().expect("RFC 3339")
    };
    let late = time(&ended["ended_at"]).duration_since(time(&deadline));
    println!("expired {late:?} after its deadline");
    assert!(!late.is_negative() && late.unsigned_abs() < PATIENCE, "{late:?}");
    assert_eq!(ended["fence_token"], short["fence_token"]);
    assert_eq!(claude.look(&long).await["state"], "held");
    assert_whole(&server).await;
}
