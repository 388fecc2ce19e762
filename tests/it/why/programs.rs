//! The same story by every way: from the server, from its data directory, from an export; by
//! either program, at any time and in any time zone.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Client, REPO, Server, path_of, pearing};

/// What a command prints, which must succeed.
fn printed(command: &mut Command) -> String {
    let output = command.stdout(Stdio::piped()).output().expect("it runs");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it is UTF-8")
}

fn cli(server: &Server, client: &Client, ticket: &Value, more: &[&str]) -> Command {
    let ticket_id = ticket["ticket_id"].as_str().expect("an id");
    let mut command = server.cli(client);
    command.env("PEARING_OUTPUT", "text");
    command.args(["why-lock-ticket", "x", ticket_id, "--repo", REPO]).args(more);
    command
}

#[tokio::test]
async fn every_way_tells_the_same_story() {
    let mut server = Server::start();
    let (admin, claude, codex) =
        (server.client("admin"), server.client("claude"), server.client("codex"));
    let held = claude.hold("x", 300).await;
    let ended = codex.wait_for("x", 60).await;
    claude.release(&held).await.ticket(200);
    codex.release(&ended).await.ticket(200);
    codex.hold("y", 300).await;
    let last = claude.wait_for("y", 60).await;
    let mut stories = Vec::new();
    for ticket in [&held, &ended] {
        let json = printed(&mut cli(&server, &admin, ticket, &["--json"]));
        let answered = admin.get(&path_of(ticket, "/why")).await.body;
        assert_eq!(serde_json::from_str::<Value>(&json).expect("it is JSON"), answered);
        stories.push((ticket, json, printed(&mut cli(&server, &admin, ticket, &[]))));
    }
    let live = admin.get(&path_of(&last, "/why")).await.body;
    server.kill();

    let data = server.data().to_string_lossy().into_owned();
    let file = server.home().join("x.ledger").to_string_lossy().into_owned();
    printed(&mut pearing(["export", &data, "--out", &file]));
    for (ticket, json, text) in stories {
        let ticket_id = ticket["ticket_id"].as_str().expect("an id");
        for ledger in [&data, &file] {
            for zone in ["UTC", "Asia/Tokyo"] {
                let why = |more: &[&str]| {
                    let mut command = pearing(["why", ticket_id, ledger]);
                    printed(command.args(more).env("TZ", zone))
                };
                assert_eq!((why(&["--json"]), why(&[])), (json.clone(), text.clone()), "{ledger}");
            }
        }
    }
    // A live ticket is found by the state that the ledger makes.
    let last_id = last["ticket_id"].as_str().expect("an id");
    let told = printed(&mut pearing(["why", last_id, "--data", &data, "--json"]));
    assert_eq!(serde_json::from_str::<Value>(&told).expect("it is JSON"), live);
    let mut unknown = pearing(["why", "00000000-0000-4000-8000-000000000000", &file]);
    let output = unknown.stdout(Stdio::piped()).output().expect("it runs");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("the ledger has no ticket 00000000"), "{said}");
}

#[tokio::test]
async fn who_held_a_lock_is_told_of_any_moment() {
    let mut server = Server::start();
    let (claude, codex) = (server.client("claude"), server.client("codex"));
    let fields = json!({ "lease_seconds": 300, "note": "nightly build" });
    let held = claude.acquire("x", fields).await.ticket(201);
    let waiting = codex.wait_for("x", 60).await;
    let beaten = claude.heartbeat(&held, 300).await.ticket(200);
    let released = claude.release(&held).await.ticket(200);
    server.kill();
    let data = server.data().to_string_lossy().into_owned();
    let who = |at: &Value| {
        let at = at.as_str().map_or(at.to_string(), str::to_owned);
        let words = ["who", "x", "--repo", REPO, "--at", &at, &data, "--json"];
        serde_json::from_str::<Value>(&printed(&mut pearing(words))).expect("it is JSON")
    };
    let before = who(&json!(held["sequence"].as_u64().expect("a number") - 1));
    assert_eq!((&before["owner"], &before["holds"]), (&Value::Null, &json!([])));
    let then = who(&beaten["sequence"]);
    assert_eq!((&then["owner"], &then["fence_token"]), (&json!("claude"), &held["fence_token"]));
    assert_eq!(
        then["holds"],
        json!([{
            "ticket_id": held["ticket_id"], "owner": "claude", "state": "held",
            "queue_position": null, "note": "nightly build", "since": held["held_at"],
            "until": beaten["lease_expires_at"],
            "evidence": [held["sequence"], beaten["sequence"]],
        }])
    );
    assert_eq!(
        then["queue"],
        json!([{
            "ticket_id": waiting["ticket_id"], "owner": "codex", "state": "waiting",
            "queue_position": 1, "note": null, "since": waiting["created_at"],
            "until": waiting["wait_expires_at"], "evidence": [waiting["sequence"]],
        }])
    );
    // The release and the promotion were decided together: nobody saw the lock free in between.
    let after = who(&released["ended_at"]);
    let promoted = released["sequence"].as_u64().expect("a number") + 1;
    assert_eq!((&after["owner"], &after["sequence"]), (&json!("codex"), &json!(promoted)));
    assert_eq!(after["holds"][0]["evidence"], json!([waiting["sequence"], promoted]));
    assert_eq!(who(&released["sequence"])["sequence"], promoted);

    let text = printed(&mut pearing(["who", "x", "--repo", REPO, &data]));
    let first = text.lines().next().unwrap_or_default();
    assert!(first.starts_with(&format!("codex held x in {REPO} at ")), "{text}");
    assert!(first.ends_with(&format!("under fence token {promoted} at depth 1.")), "{text}");
    let text = printed(&mut pearing(["who", "z", "--repo", REPO, &data]));
    assert!(text.starts_with("Nobody held z in "), "{text}");
    let mut beyond = pearing(["who", "x", "--repo", REPO, &data, "--at", "999999"]);
    assert_eq!(beyond.output().expect("it runs").status.code(), Some(1));
}
