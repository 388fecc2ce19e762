//! Reads: lists, what was, and the pages of events.

use serde_json::{Value, json};

use super::names;
use crate::support::{REPO, Server, path_of};

#[tokio::test]
async fn a_lock_shows_who_holds_it_and_who_waits_in_order() {
    let server = Server::start();
    let (claude, codex) = (server.client("claude"), server.client("codex"));
    let dee = server.add_writer("dee").await;
    let free = claude.get(&format!("/v1/locks/x?repo={REPO}")).await;
    let expected = json!({
        "scope": REPO, "lock_name": "x", "owner": null, "fence_token": null, "depth": 0,
        "holds": [], "queue": [], "sequence": free.sequence(),
    });
    assert_eq!((free.status, free.body), (200, expected));
    let held = claude.hold("x", 60).await;
    let again = claude.acquire("x", json!({})).await.ticket(201);
    let (second, third) = (dee.wait_for("x", 60).await, codex.wait_for("x", 60).await);
    let lock = claude.lock("x").await;
    let ids = |field: &str| -> Vec<Value> {
        let tickets = lock[field].as_array().expect("a list");
        tickets.iter().map(|ticket| ticket["ticket_id"].clone()).collect()
    };
    assert_eq!(ids("holds"), [held["ticket_id"].clone(), again["ticket_id"].clone()]);
    assert_eq!(ids("queue"), [second["ticket_id"].clone(), third["ticket_id"].clone()]);
    assert_eq!((&lock["owner"], &lock["depth"]), (&json!("claude"), &json!(2)));
    assert_eq!(lock["fence_token"], held["fence_token"]);
    assert_eq!(lock["queue"][1]["queue_position"], 2);
    assert_eq!(lock["sequence"], third["sequence"]);
}

#[tokio::test]
async fn held_locks_are_listed_by_name_and_page() {
    let server = Server::start();
    let claude = server.client("claude");
    for name in ["c", "a", "b"] {
        claude.hold(name, 60).await;
    }
    let gone = claude.hold("d", 60).await;
    claude.release(&gone).await.ticket(200);
    let path = format!("/v1/locks?repo={REPO}");
    assert_eq!(names(&claude.get(&path).await.body, "lock_name"), ["a", "b", "c"]);
    let page = claude.get(&format!("{path}&limit=2")).await.body;
    assert_eq!(names(&page, "lock_name"), ["a", "b"]);
    let next = page["next"].as_str().expect("there is more");
    let page = claude.get(&format!("{path}&limit=2&cursor={next}")).await.body;
    assert_eq!((names(&page, "lock_name"), &page["next"]), (vec!["c".to_owned()], &json!(null)));
    let elsewhere = claude.get("/v1/locks?team=platform").await.body;
    assert_eq!(elsewhere["items"], json!([]), "a repository's locks are not its team's");
}

#[tokio::test]
async fn any_past_sequence_and_time_can_be_seen_again() {
    let server = Server::start();
    let (claude, codex) = (server.client("claude"), server.client("codex"));
    let before = claude.get("/v1/whoami").await.sequence();
    // What each state showed when it was new.
    let mut seen = Vec::new();
    let held = claude.hold("x", 60).await;
    seen.push(claude.lock("x").await);
    let waiting = codex.wait_for("x", 30).await;
    seen.push(claude.lock("x").await);
    claude.heartbeat(&held, 120).await.ticket(200);
    seen.push(claude.lock("x").await);
    claude.release(&held).await.ticket(200);
    seen.push(claude.lock("x").await);
    codex.release(&waiting).await.ticket(200);
    seen.push(claude.lock("x").await);
    let path = format!("/v1/locks/x?repo={REPO}&as_of=");
    // What depends on when one looks, and not on the state.
    let timeless = |lock: &Value| {
        let mut lock = lock.clone();
        for list in ["holds", "queue"] {
            for ticket in lock[list].as_array_mut().expect("a list") {
                ticket["lease_remaining_ms"] = Value::Null;
            }
        }
        lock
    };
    for then in &seen {
        let reply = claude.get(&format!("{path}{}", then["sequence"])).await;
        assert_eq!((reply.status, timeless(&reply.body)), (200, timeless(then)));
    }
    let reply = claude.get(&format!("{path}{before}")).await;
    assert_eq!((&reply.body["owner"], &reply.body["sequence"]), (&json!(null), &json!(before)));
    // The release and the promotion are one append: inside it one sees its end, and which it is.
    let promoted = seen[3]["sequence"].as_u64().expect("a number");
    let inside = claude.get(&format!("{path}{}", promoted - 1)).await.body;
    assert_eq!((&inside["owner"], &inside["sequence"]), (&json!("codex"), &json!(promoted)));
    let list = claude.get(&format!("/v1/locks?repo={REPO}&as_of={promoted}")).await.body;
    assert_eq!(names(&list, "owner"), ["codex"]);
    let made = held["created_at"].as_str().expect("a time");
    let by_time = claude.get(&format!("{path}{made}")).await.body;
    assert_eq!(by_time["owner"], "claude");
    for bad in ["999999", "-1", "yesterday", "", "2999-01-01T00:00:00.000Z"] {
        let reply = claude.get(&format!("{path}{bad}")).await;
        assert_eq!(
            (reply.says(), &reply.body["field"]),
            ((422, "invalid-argument"), &json!("as_of"))
        );
    }
}

#[tokio::test]
async fn history_and_events_come_in_pages_without_a_gap() {
    let server = Server::start();
    let (admin, claude) = (server.client("admin"), server.client("claude"));
    let other = claude.hold("other", 60).await;
    for _ in 0..3 {
        let held = claude.hold("x", 60).await;
        claude.release(&held).await.ticket(200);
    }
    let mut history = Vec::new();
    let mut path = format!("/v1/locks/x/history?repo={REPO}&limit=4");
    loop {
        let page = claude.get(&path).await;
        assert_eq!(page.status, 200, "{}", page.body);
        assert_eq!(page.body["sequence"], page.sequence());
        history.extend(page.body["items"].as_array().expect("items").clone());
        let Some(next) = page.body["next"].as_str() else {
            assert_eq!(page.header("link"), None, "nothing comes after the last page");
            break;
        };
        let link = page.header("link").expect("a page that isn't the last has a link to the next");
        assert_eq!(link, format!("<?repo={REPO}&limit=4&cursor={next}>; rel=\"next\""));
        let reference = link.trim_start_matches('<').split('>').next().expect("a reference");
        path = format!("/v1/locks/x/history{reference}");
    }
    let types: Vec<&str> = history.iter().filter_map(|event| event["type"].as_str()).collect();
    assert_eq!(types, ["pearing.lock.acquired", "pearing.lock.released"].repeat(3));

    let events = admin.events("").await;
    let ids: Vec<String> =
        events.iter().filter_map(|event| event["id"].as_str()).map(str::to_owned).collect();
    let expected: Vec<String> = (1..=events.len()).map(|sequence| sequence.to_string()).collect();
    assert_eq!(ids, expected, "an administrator sees each sequence once");
    let of_x: Vec<&Value> =
        events.iter().filter(|event| event["subject"] == format!("{REPO}/locks/x")).collect();
    assert_eq!(of_x, history.iter().collect::<Vec<_>>());
    let first = &events[0];
    assert_eq!(first["type"], "pearing.ledger.opened");
    let acquired = &history[0];
    for (member, value) in [
        ("specversion", json!("1.0")),
        ("source", first["source"].clone()),
        ("datacontenttype", json!("application/json")),
        ("dataschema", json!("urn:pearing:schema:lock.acquired:1")),
        ("actor", json!("claude")),
    ] {
        assert_eq!(acquired[member], value, "{member}");
    }
    assert_eq!(acquired["hash"].as_str().map(str::len), Some(64));
    let data = &acquired["data"];
    for (field, value) in [("owner", "claude"), ("scope", REPO), ("lock_name", "x")] {
        assert_eq!(data[field], value, "{field}");
    }
    let id: u64 = acquired["id"].as_str().expect("a text").parse().unwrap();
    assert_eq!(data["fence_token"], id);

    let after = claude.get(&format!("/v1/events?after={}&limit=1", id - 1)).await.body;
    assert_eq!(names(&after, "id"), [id.to_string()]);
    let filtered = claude.events("&lock=other&type=lock.*").await;
    assert_eq!(filtered.len(), 1);
    assert_eq!(filtered[0]["data"]["ticket_id"], other["ticket_id"]);
    for event in claude.events("").await {
        let kind = event["type"].as_str().expect("a type").to_owned();
        let is_own = event["data"]["user"] == "claude";
        assert!(is_own || !kind.starts_with("pearing.user."), "another's: {event}");
    }
}

#[tokio::test]
async fn whoami_says_who_and_with_which_roles() {
    let server = Server::start();
    let admin = server.client("admin").get("/v1/whoami").await;
    assert_eq!((&admin.body["user"], &admin.body["admin"]), (&json!("admin"), &json!(true)));
    let claude = server.client("claude");
    let held = claude.hold("x", 60).await;
    let reply = claude.get("/v1/whoami").await;
    let expected = json!({
        "user": "claude", "person": null, "admin": false, "label": null,
        "expires_at": null,
        "token_id": reply.body["token_id"],
        "roles": [
            { "scope": "teams/platform", "role": "write" },
            { "scope": "users/claude", "role": "admin" },
        ],
        "live_tickets": 1, "sequence": held["sequence"],
    });
    assert_eq!((reply.status, &reply.body), (200, &expected));
    assert_eq!(Some(reply.sequence()), held["sequence"].as_u64());
    assert_eq!(claude.get(&path_of(&held, "")).await.sequence(), reply.sequence());
}
