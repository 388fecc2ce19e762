//! Why a ticket went as it did, over HTTP: who may ask, and what each is told.

use serde_json::{Value, json};

use super::assert_problem;
use crate::support::{REPO, Reply, Server, path_of, uuid};

/// All sequences that a story names as evidence.
fn evidence(why: &Value) -> Vec<u64> {
    let steps = why["steps"].as_array().expect("a story has steps");
    let numbers = steps.iter().flat_map(|step| step["evidence"].as_array().expect("a list"));
    numbers.map(|number| number.as_u64().expect("a sequence")).collect()
}

/// All that a story says.
fn words(why: &Value) -> String {
    let steps = why["steps"].as_array().expect("a story has steps");
    let texts = steps.iter().map(|step| step["text"].as_str().expect("a text"));
    let drawing = why["drawing"].as_str().unwrap_or_default();
    texts.chain([why["summary"].as_str().expect("a text"), drawing]).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn told(reply: &Reply) -> Value {
    assert_eq!(reply.status, 200, "{}", reply.body);
    assert_eq!(reply.sequence(), reply.body["sequence"].as_u64().expect("a sequence"));
    reply.body.clone()
}

#[tokio::test]
async fn a_ticket_tells_why_it_waited_and_what_freed_it() {
    let server = Server::start();
    let (claude, codex) = (server.client("claude"), server.client("codex"));
    let fields = json!({ "lease_seconds": 60, "note": "nightly build" });
    let held = claude.acquire("x", fields).await.ticket(201);
    let waiting = codex.wait_for("x", 60).await;
    let why = told(&codex.get(&path_of(&waiting, "/why")).await);
    assert_eq!((&why["state"], &why["owner"]), (&json!("waiting"), &json!("codex")));
    assert!(words(&why).contains("with the note “nightly build”"), "{why}");
    let released = claude.release(&held).await.ticket(200);
    let ended = codex.release(&waiting).await.ticket(200);
    let why = told(&codex.get(&path_of(&waiting, "/why")).await);
    assert_eq!((&why["ticket_id"], &why["state"]), (&waiting["ticket_id"], &json!("released")));
    assert_eq!((&why["cycle"], &why["drawing"]), (&json!([]), &Value::Null));
    let evidence = evidence(&why);
    for sequence in [&held["fence_token"], &waiting["sequence"], &released["sequence"]] {
        assert!(evidence.contains(&sequence.as_u64().expect("a number")), "{sequence}: {why}");
    }
    assert_eq!(evidence.last(), ended["sequence"].as_u64().as_ref(), "{why}");
    // The same to each who may read it, and however often it is asked.
    let admin = server.client("admin");
    for client in [&claude, &codex, &admin] {
        assert_eq!(told(&client.get(&path_of(&waiting, "/why")).await), why);
    }
}

#[tokio::test]
async fn who_may_not_read_a_ticket_is_told_nothing_and_its_owner_what_is_its_own() {
    let server = Server::start();
    let (admin, claude) = (server.client("admin"), server.client("claude"));
    let held = claude.hold("x", 300).await;
    let eve = server.add_writer("eve").await;
    let waiting = eve.wait_for("x", 60).await;
    let stranger = server.add_user("stranger").await;
    let (path, absent) = (path_of(&waiting, "/why"), uuid());
    let ticket_id = waiting["ticket_id"].as_str().expect("an id");
    for path in [path.clone(), path.replace(ticket_id, &absent)] {
        assert_problem(&stranger.get(&path).await, 404, "not-found");
    }
    assert_problem(&eve.get(&path.replace("/x/", "/y/")).await, 404, "not-found");
    let full = told(&eve.get(&path).await);
    assert!(words(&full).contains("while claude held it"), "{full}");
    let removed = admin.delete("/v1/admin/teams/platform/members/eve").await;
    assert_eq!(removed.status, 200, "{}", removed.body);

    let all = told(&claude.get(&path).await);
    assert!(words(&all).contains("admin took eve out of the team platform"), "{all}");
    let own = told(&eve.get(&path).await);
    assert_eq!((&own["state"], &own["summary"]), (&json!("cancelled"), &all["summary"]));
    let told_to_eve = words(&own);
    assert!(told_to_eve.contains("while someone held it."), "{told_to_eve}");
    for other in ["claude", "admin", "platform at"] {
        assert!(!told_to_eve.contains(other), "{other}: {told_to_eve}");
    }
    let [made, ended] = [&waiting["sequence"], &eve.look(&waiting).await["sequence"]];
    let both: Vec<u64> = [made, ended].map(|n| n.as_u64().expect("a number")).to_vec();
    assert_eq!(evidence(&own), both, "only what is about its own ticket: {own}");
    // It has a token and its own scope still, but another's ticket there is none for it.
    assert_problem(&eve.get(&path_of(&held, "/why")).await, 404, "not-found");
    let disabled = admin.post("/v1/admin/users/eve/disable", json!({})).await;
    assert_eq!(disabled.status, 200, "{}", disabled.body);
    assert_eq!(told(&eve.get(&path).await)["steps"], own["steps"]);
    assert_problem(&eve.get(&path_of(&held, "/why")).await, 403, "forbidden");
}

#[tokio::test]
async fn the_circle_of_a_deadlock_shows_no_other_scope() {
    let server = Server::start();
    let (claude, codex) = (server.client("claude"), server.client("codex"));
    let reader = server.add_user("reader").await;
    for (user, role) in [("codex", "write"), ("reader", "read")] {
        let path = format!("/v1/admin/access/{user}?user=claude");
        assert_eq!(claude.put(&path, json!({ "role": role })).await.status, 200);
    }
    codex.hold("hidden-lock", 300).await;
    let mine = "/v1/locks/mine/tickets?user=claude";
    claude.post(mine, json!({ "request_uuid": uuid() })).await.ticket(201);
    let waiting = claude.wait_for("hidden-lock", 60).await;
    let asked = json!({ "request_uuid": uuid(), "wait_seconds": 60 });
    let rejected = codex.post(mine, asked).await.ticket(409);
    let path = path_of(&rejected, "/why");

    let full = told(&codex.get(&path).await);
    let lines: Vec<&str> = full["drawing"].as_str().expect("it is drawn").lines().collect();
    let (made, other) = (&rejected["sequence"], &waiting["sequence"]);
    assert_eq!(
        lines,
        [
            format!("┌─▶ codex  waits for claude over mine ({made}), rejected"),
            format!("└── claude waits for codex  over hidden-lock in {REPO} ({other})"),
        ]
    );
    let less = told(&reader.get(&path).await);
    let lines: Vec<&str> = less["drawing"].as_str().expect("it is drawn").lines().collect();
    assert_eq!(
        lines,
        [
            format!("┌─▶ codex   waits for someone over mine ({made}), rejected"),
            "└── someone waits for codex".to_owned(),
        ]
    );
    let someone = json!({
        "owner": null, "waits_for": "codex", "scope": null, "lock_name": null, "ticket_id": null,
    });
    assert_eq!((&less["cycle"][1], less["cycle"].as_array().map(Vec::len)), (&someone, Some(2)));
    assert!(!words(&less).contains("hidden-lock") && !words(&less).contains(REPO), "{less}");
    assert!(!evidence(&less).contains(&other.as_u64().expect("a number")), "{less}");
    assert_eq!(full["cycle"], codex.get(&path_of(&rejected, "")).await.body["cycle"]);
    assert_eq!(less["cycle"], reader.get(&path_of(&rejected, "")).await.body["cycle"]);
}
