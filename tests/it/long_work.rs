//! What the server does with its whole ledger while it serves: exporting, verifying, backing up.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pearing::audit::{Replay, Silent, Source, verify};
use pearing::domain::id::Sequence;
use pearing::ledger::rocks::{Condition, OpenOptions, RocksLedger, RocksReader};
use pearing::ledger::{Append, Ledger, Put, Table};
use pearing::projection::as_of::AsOf;
use serde_json::{Value, json};

use crate::support::{Client, SIGTERM, Server, pearing};

const BACKUPS: usize = 12;
const BUSY_CLIENTS: usize = 8;

/// All of an export, as it came.
async fn export(client: &Client, query: &str) -> Vec<u8> {
    let request = client.request("GET", &format!("/v1/admin/ledger{query}"));
    let response = request.send().await.expect("the server answers");
    assert_eq!(response.status().as_u16(), 200);
    let media_type = response.headers()["content-type"].to_str().expect("our headers are ASCII");
    assert_eq!(media_type, "text/plain; charset=utf-8");
    response.bytes().await.expect("it comes whole").to_vec()
}

/// Asks until some work is done.
async fn done(client: &Client, path: &str) -> Value {
    loop {
        let reply = client.get(path).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        if reply.body["is_running"] == false {
            return reply.body;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

fn run(arguments: &[&str]) -> Vec<u8> {
    let mut command = pearing(arguments.iter().copied());
    let output = command.stdout(std::process::Stdio::piped()).output().expect("it runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {stderr}");
    output.stdout
}

fn text(path: &Path) -> &str {
    path.to_str().expect("our paths are text")
}

#[tokio::test]
async fn an_export_of_a_server_is_that_of_its_directory() {
    let mut server = Server::start();
    let (admin, claude) = (server.client("admin"), server.client("claude"));
    let ticket = claude.hold("a", 60).await;
    assert_eq!(claude.release(&ticket).await.status, 200);
    let whole = export(&admin, "").await;
    let events = export(&admin, "?format=cloudevents").await;
    let lines = whole.split_inclusive(|byte| *byte == b'\n').count();
    let rest = export(&admin, &format!("?after={}", lines - 2)).await;
    assert!(whole.ends_with(&rest) && rest.iter().filter(|byte| **byte == b'\n').count() == 2);
    assert!(export(&admin, &format!("?after={lines}")).await.is_empty());
    for (query, field) in
        [("?after=x", "after"), ("?after=99999", "after"), ("?format=xml", "format")]
    {
        let refused = admin.get(&format!("/v1/admin/ledger{query}")).await;
        assert_eq!(refused.says(), (422, "invalid-argument"));
        assert!(refused.body["detail"].as_str().is_some_and(|why| why.contains(field)));
    }
    let file = server.home().join("by-command");
    let mut command = server.cli(&admin);
    let status = command.args(["export-ledger", "--out", text(&file)]).status();
    assert!(status.expect("it runs").success());
    assert_eq!(fs::read(&file).expect("it was written"), whole);

    server.process().signal(SIGTERM);
    assert_eq!(server.exit_code(), Some(0));
    let data = server.data();
    assert_eq!(run(&["export", text(&data)]), whole);
    assert_eq!(run(&["export", text(&data), "--format", "cloudevents"]), events);
}

#[tokio::test]
async fn a_verification_that_is_asked_for_finds_a_good_ledger_good() {
    let server = Server::start();
    let (admin, claude) = (server.client("admin"), server.client("claude"));
    claude.hold("a", 60).await;
    const PATH: &str = "/v1/admin/ledger/verification";
    // The one that the start began must be over, for this one to see the hold.
    done(&admin, PATH).await;
    assert_eq!(admin.post(PATH, json!({})).await.status, 202);
    let found = done(&admin, PATH).await;
    assert_eq!((&found["result"]["is_good"], &found["error"]), (&json!(true), &Value::Null));
    assert_eq!(found["result"]["sequence"], found["head"]);
    assert_eq!(found["result"]["sequence"], found["reached"]);
    let output = server.cli(&admin).arg("verify-ledger").output().expect("it runs");
    assert_eq!(output.status.code(), Some(0));
    let said: Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
    assert_eq!(said["result"]["is_good"], true);
}

/// Another row than its record makes stands in a table. Nobody reads it; the verification that a
/// start begins finds it.
#[tokio::test]
async fn damage_that_nobody_met_yet_is_found_in_the_background_and_ends_the_server() {
    let mut server = Server::start();
    let claude = server.client("claude");
    let ticket = claude.hold("a", 60).await;
    assert_eq!(claude.release(&ticket).await.status, 200);
    server.process().signal(SIGTERM);
    assert_eq!(server.exit_code(), Some(0));

    let (ledger, _) =
        RocksLedger::open(&server.data(), OpenOptions::default()).expect("it is good");
    let (key, mut value) = ledger.scan(Table::Tickets, b"", b"", 1).expect("it is read").remove(0);
    value.push(b' ');
    let puts = vec![Put { table: Table::Tickets, key, value }];
    let expected_head = ledger.head().sequence;
    ledger.append(&Append { expected_head, records: Vec::new(), puts }).expect("it is written");
    drop(ledger);

    server.serve();
    server.process().wait_for("what is wrong", |line| {
        line.contains("the table tickets has another row").then_some(())
    });
    assert_eq!(server.exit_code(), Some(5));
    run(&["rebuild", "--data", text(&server.data())]);
    run(&["verify", text(&server.data())]);
    server.serve();
}

#[tokio::test]
async fn a_backup_under_full_load_is_whole_and_has_the_state_of_its_sequence() {
    let mut server = Server::start();
    server.process().signal(SIGTERM);
    assert_eq!(server.exit_code(), Some(0));
    let folder = server.home().join("backups");
    fs::create_dir(&folder).expect("the folder is ours");
    server.serve_with(&["--backup-dir", text(&folder)]);
    let (admin, claude) = (server.client("admin"), server.client("claude"));
    let codex = server.client("codex");
    let is_over = Arc::new(AtomicBool::new(false));
    let busy: Vec<_> = (0..BUSY_CLIENTS)
        .map(|number| {
            let client = if number % 2 == 0 { claude.clone() } else { codex.clone() };
            let is_over = Arc::clone(&is_over);
            // Four locks for the two of them: held, contended, waited for, released.
            let lock_name = format!("load-{}", number / 2);
            tokio::spawn(async move {
                while !is_over.load(Ordering::Relaxed) {
                    let wait = json!({ "wait_seconds": 5, "lease_seconds": 30 });
                    let reply = client.acquire(&lock_name, wait).await;
                    if reply.body["ticket"].is_object() {
                        client.release(&reply.body["ticket"]).await;
                    }
                }
            })
        })
        .collect();
    const PATH: &str = "/v1/admin/ledger/backup";
    assert_eq!(admin.get(PATH).await.says(), (404, "not-found"));
    let mut made = Vec::new();
    for _ in 0..BACKUPS {
        assert_eq!(admin.post(PATH, json!({})).await.status, 202);
        let status = done(&admin, PATH).await;
        assert_eq!(status["error"], Value::Null, "{status}");
        made.push(status);
    }
    is_over.store(true, Ordering::Relaxed);
    for client in busy {
        client.await.expect("it doesn't panic");
    }
    let file = server.home().join("all.ledger");
    fs::write(&file, export(&admin, "").await).expect("the folder is ours");
    let all = Source::open(&file).and_then(|source| source.into_ledger(&mut Silent));
    let all = all.expect("the export is good");
    for status in &made {
        let name = status["name"].as_str().expect("it has a name");
        let (backup, condition) = RocksReader::open(&folder.join(name)).expect("it opens");
        assert_eq!(condition, Condition::Whole, "{name}");
        let found = verify::ledger(&backup, &mut Silent, |_| Ok(())).expect("it can be read");
        assert_eq!((found.fault, json!(found.hash)), (None, status["hash"].clone()));
        let head = backup.head().sequence;
        assert_eq!(json!(head), status["head"], "{name}");
        let own = Replay::to(&backup, None, true).and_then(|replay| replay.shown());
        let then = Replay::to(&*all, Some(AsOf::Sequence(head)), true);
        let then = then.and_then(|replay| replay.shown());
        assert_eq!(own.expect("it is good"), then.expect("it was then"), "{name}");
    }
    let heads: Vec<_> = made.iter().map(|status| status["head"].as_u64()).collect();
    assert!(heads.windows(2).all(|pair| pair[0] < pair[1]), "the load went on: {heads:?}");
    assert!(all.head().sequence > Sequence(heads[0].expect("a number") + 100), "{heads:?}");
    let left: Vec<_> = fs::read_dir(&folder).expect("it is there").collect();
    assert_eq!(left.len(), BACKUPS, "nothing else is left: {left:?}");
}
