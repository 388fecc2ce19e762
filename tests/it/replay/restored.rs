//! What a server makes of a ledger that was restored or imported.

use std::fs;
use std::process::{Command, Stdio};

use pearing::domain::id::TokenId;
use serde_json::{Value, json};

use super::damage::{run, text};
use super::{FIXTURES, path_of};
use crate::scenario::token_text;
use crate::support::{Client, Feed, REPO, SIGTERM, Server, pearing, uuid};

fn sequence_of(event: &Value) -> u64 {
    event["id"].as_str().and_then(|id| id.parse().ok()).expect("an event has its sequence")
}

/// The program, on a machine whose clock is two days behind.
fn behind(words: &[&str]) -> (Option<i32>, String) {
    let program = pearing(words.iter().copied());
    let mut command = Command::new("faketime");
    command.args(["-f", "-2d"]).arg(program.get_program()).args(program.get_args());
    let output = command.stdout(Stdio::null()).output().expect("faketime is installed");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn stop(server: &mut Server) {
    server.process().signal(SIGTERM);
    assert_eq!(server.exit_code(), Some(0));
}

/// A feed that goes on after a sequence: what comes until it has caught up.
async fn feed_after(server: &Server, client: &Client, cursor: u64) -> Vec<(String, u64)> {
    let mut feed = Feed::open(server, client, "", Some(&cursor.to_string())).await;
    feed.until_caught_up().await.into_iter().map(|event| (event.name, event.id)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_restore_no_fence_token_comes_back_and_readers_are_told() {
    let mut server = Server::start();
    let tokens = ["admin", "claude", "codex"].map(|user| server.client(user).token().to_owned());
    let clients = |server: &Server| tokens.clone().map(|token| server.client_with(&token));
    let [admin, claude, codex] = clients(&server);
    let held = claude.hold("kept", 300).await;
    let waiting = codex.wait_for("kept", 300).await;
    let saved = admin.get("/v1/whoami").await.sequence();
    stop(&mut server);
    let (data, backup) = (server.data(), server.home().join("backup"));
    let ran = run(&["backup", text(&data), "--to", text(&backup)]);
    assert_eq!(ran.code, Some(0), "{}", ran.said);

    // What happens now is lost.
    server.serve();
    let [admin, claude, codex] = clients(&server);
    let lost = codex.hold("lost", 300).await;
    claude.release(&held).await.ticket(200);
    let promoted = codex.look(&waiting).await;
    let last = admin.get("/v1/whoami").await.sequence();
    let fences = [&lost, &promoted].map(|ticket| ticket["fence_token"].as_u64().expect("held"));
    assert!(fences.iter().all(|fence| *fence > saved));
    server.kill();
    fs::remove_dir_all(&data).expect("it is there");

    let words = ["restore", "--from", text(&backup), "--data", text(&data)];
    let (code, said) = behind(&words);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("the clock of this machine says"), "{said}");
    let ran = run(&words);
    assert_eq!(ran.code, Some(0), "{}", ran.said);
    let (code, said) = behind(&["serve", "--data", text(&data), "--listen", "127.0.0.1:0"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("the clock of this machine says"), "{said}");

    server.serve();
    let [admin, claude, codex] = clients(&server);
    let events = admin.events("").await;
    let place = usize::try_from(saved).expect("few");
    let (restored, recovered) = (&events[place], &events[place + 1]);
    assert_eq!(restored["type"], "pearing.ledger.restored");
    assert_eq!(restored["data"], json!({ "last_sequence": saved, "reason": "restored" }));
    assert_eq!(recovered["type"], "pearing.ledger.recovered");
    let jumped = sequence_of(restored);
    assert!(jumped > last && jumped >= 1 << 50, "{jumped} after {last}");
    assert_eq!(sequence_of(recovered), jumped + 1);
    assert_eq!(events.len(), place + 2, "and nothing else: the leases run on");

    // The hold is as it was before, and what was lost never was.
    let kept = claude.look(&held).await;
    assert_eq!((&kept["state"], &kept["fence_token"]), (&json!("held"), &held["fence_token"]));
    assert_eq!(codex.look(&waiting).await["state"], "waiting");
    let path = crate::support::path_of(&lost, "");
    assert_eq!(codex.get(&path).await.says(), (404, "not-found"));
    let again = codex.hold("lost", 300).await["fence_token"].as_u64().expect("it is held");
    assert!(again > jumped && fences.iter().all(|fence| *fence < again));
    let fence = json!({ "lock_name": "lost", "fence_token": lost["fence_token"] });
    let reply = json!({ "kind": "note", "body": "late", "request_uuid": uuid(), "fence": fence });
    let path = format!("/v1/threads/42/replies?repo={REPO}");
    assert_eq!(codex.post(&path, reply).await.says(), (409, "stale-fence"));
    claude.release(&held).await.ticket(200);
    let next = codex.look(&waiting).await["fence_token"].as_u64().expect("it is held");
    assert!(next > again);

    // Whoever read what is lost is told so, and then what is.
    let head = admin.get("/v1/whoami").await.sequence();
    let from_gap: Vec<u64> = [saved].into_iter().chain(jumped..=head).collect();
    for cursor in [saved + 1, last, jumped - 1] {
        let seen = feed_after(&server, &admin, cursor).await;
        let (first, second) = (&seen[0], &seen[1]);
        assert_eq!((first.0.as_str(), first.1), ("reset", saved), "after {cursor}");
        assert_eq!((second.0.as_str(), second.1), ("ledger.restored", jumped));
        let ids: Vec<u64> = seen[..seen.len() - 1].iter().map(|(_, id)| *id).collect();
        assert_eq!(ids, from_gap, "after {cursor}");
    }
    for (cursor, first) in [(saved - 1, saved), (saved, jumped), (jumped, jumped + 1)] {
        let seen = feed_after(&server, &admin, cursor).await;
        assert!(seen.iter().all(|(name, _)| name != "reset"), "after {cursor}: {seen:?}");
        assert_eq!(seen[0].1, first, "after {cursor}");
    }

    // Once is enough.
    stop(&mut server);
    let ran = run(&["verify", text(&data)]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.said);
    server.serve();
    let [admin, ..] = clients(&server);
    let events = admin.events("&type=ledger.restored").await;
    assert_eq!(events.len(), 1);
    let ran = run(&["restore", "--from", text(&backup), "--data", text(&backup)]);
    assert_eq!(ran.code, Some(4), "a backup is not restored into itself: {}", ran.said);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_imported_fixture_is_served_as_it_is() {
    for (name, ..) in FIXTURES {
        let mut server = Server::stopped();
        let (data, file) = (server.data(), path_of(name, "ledger"));
        let ran = run(&["import", text(&file), "--data", text(&data)]);
        assert_eq!(ran.code, Some(0), "{name}: {}", ran.said);
        let state = run(&["replay", text(&file), "--json"]).out;
        let state: Value = serde_json::from_str(&state).expect("a state is JSON");
        server.serve();
        let tokens = state["tokens"].as_array().expect("a list").iter();
        let root = tokens.filter(|token| token["user"] == "root").map(|token| &token["token_id"]);
        let root = root.filter_map(Value::as_str).next().expect("root has a token");
        let root = TokenId(root.parse().expect("a UUID"));
        let root = server.client_with(&token_text(root));

        let events = root.events("").await;
        let printed = run(&["export", text(&file), "--format", "cloudevents"]).out;
        let printed: Vec<Value> = printed
            .lines()
            .map(|line| serde_json::from_str(line).expect("an event is JSON"))
            .collect();
        assert_eq!(events[..printed.len()], printed, "{name}");
        let next = &events[printed.len()];
        assert_eq!(next["type"], "pearing.ledger.restored", "{name}: the gap is told first");
        assert_eq!(next["data"]["reason"], "imported", "{name}");

        let of_repo = |list: &Value| -> Vec<Value> {
            let items = list.as_array().expect("a list").iter();
            items.filter(|item| item["scope"] == REPO).cloned().collect()
        };
        for (path, list) in [("/v1/locks", "locks"), ("/v1/threads", "threads")] {
            let path = format!("{path}?repo={REPO}&limit=1000&as_of={}", state["sequence"]);
            let shown = root.get(&path).await;
            assert_eq!(shown.status, 200, "{name}: {}", shown.body);
            let items = shown.body["items"].as_array().expect("a list").clone();
            assert_eq!(items, of_repo(&state[list]), "{name}: {path}");
        }
    }
}
