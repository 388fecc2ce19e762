//! What the server says of itself at `/metrics`, after stories of which each number is known.

mod scrape;

use serde_json::{Value, json};

use crate::support::{Client, Feed, REPO, Server, eventually, path_of, uuid};
use scrape::Scrape;

const ACQUIRE: &str = "POST /v1/locks/{lock_name}/tickets";
const RELEASE: &str = "DELETE /v1/locks/{lock_name}/tickets/{ticket_id}";
const HEARTBEAT: &str = "POST /v1/locks/{lock_name}/tickets/{ticket_id}/heartbeat";

/// What anyone reads, without a token.
async fn scrape(server: &Server) -> Scrape {
    let request = server.client_without_token().request("GET", "/metrics");
    let response = request.send().await.expect("the server answers");
    assert_eq!(response.status().as_u16(), 200);
    let header = |name: &str| response.headers()[name].to_str().expect("our headers are ASCII");
    let media_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!((header("content-type"), header("cache-control")), (media_type, "no-store"));
    Scrape::read(response.text().await.expect("it is text"))
}

/// The values of some series, which have names as `pearing_NAME`.
fn values<const N: usize>(scrape: &Scrape, names: [&str; N]) -> [f64; N] {
    names.map(|name| scrape.get(&format!("pearing_{name}")))
}

async fn deadlock(client: &Client, lock_name: &str) {
    let reply = client.acquire(lock_name, json!({ "wait_seconds": 60 })).await;
    assert_eq!(reply.says(), (409, "deadlock-rejected"));
}

#[tokio::test]
async fn each_number_is_that_of_the_story() {
    let server = Server::start();
    let (claude, codex) = (server.client("claude"), server.client("codex"));
    let before = scrape(&server).await;
    let held = claude.hold("a", 60).await;
    let again = claude.hold("a", 60).await;
    assert_eq!(codex.acquire("a", json!({})).await.says(), (409, "lock-contended"));
    let waiting = codex.wait_for("a", 60).await;
    let other = codex.hold("b", 60).await;
    deadlock(&claude, "b").await;
    assert_eq!(claude.heartbeat(&held, 60).await.status, 200);
    assert_eq!(codex.heartbeat(&held, 60).await.says(), (403, "forbidden"));

    let during = scrape(&server).await;
    let state = ["held_locks", "held_tickets", "waiting_tickets"];
    assert_eq!(values(&before, state), [0.0; 3]);
    assert_eq!(values(&during, state), [2.0, 3.0, 1.0]);
    assert_eq!(values(&during, ["hold_seconds_count", "wait_seconds_count"]), [0.0; 2]);
    let queue = ["queue_depth{lane=\"holders\"}", "queue_depth{lane=\"others\"}"];
    assert_eq!(values(&during, queue), [0.0; 2]);

    for ticket in [&held, &again, &held] {
        assert_eq!(claude.release(ticket).await.status, 200);
    }
    assert_eq!(codex.look(&waiting).await["state"], "held");
    let broken = json!({ "fence_token": codex.look(&waiting).await["fence_token"], "reason": "x" });
    let path = format!("/v1/locks/a/break?repo={REPO}");
    assert_eq!(server.client("admin").post(&path, broken).await.status, 200);
    assert_eq!(codex.release(&waiting).await.says(), (409, "ticket-ended"));
    assert_eq!(codex.release(&other).await.status, 200);
    assert_eq!(server.client_without_token().get("/v1/whoami").await.status, 401);
    assert_eq!(claude.get("/v1/nowhere").await.status, 404);
    assert_eq!(claude.call("PATCH", "/v1/whoami", None).await.status, 405);

    let after = scrape(&server).await;
    assert_eq!(values(&after, state), [0.0; 3]);
    let counted = ["promoted_total", "deadlocks_total", "expired_total", "wait_timed_out_total"];
    assert_eq!(values(&after, counted), [1.0, 1.0, 0.0, 0.0]);
    assert_eq!(values(&after, ["hold_seconds_count", "wait_seconds_count"]), [3.0, 1.0]);
    assert_eq!(
        after.answers(ACQUIRE),
        [("deadlock-rejected", 1.0), ("held", 3.0), ("lock-contended", 1.0), ("waiting", 1.0)]
    );
    assert_eq!(after.answers(HEARTBEAT), [("forbidden", 1.0), ("held", 1.0)]);
    assert_eq!(after.answers(RELEASE), [("released", 4.0), ("ticket-ended", 1.0)]);
    assert_eq!(after.answers("POST /v1/locks/{lock_name}/break"), [("ok", 1.0)]);
    assert_eq!(after.answers("GET /v1/whoami"), [("unauthenticated", 1.0)]);
    assert_eq!(after.answers("any none"), [("method-not-allowed", 1.0), ("not-found", 1.0)]);
    assert_eq!(after.answers("GET /metrics"), [("ok", 2.0)]);

    // Every command was in some batch, and every event in some append.
    let commands = 6.0 + 2.0 + 5.0 + 1.0;
    let events = after.get("pearing_head_sequence") - before.get("pearing_head_sequence");
    assert_eq!(values(&after, ["batch_commands_sum", "batch_events_sum"]), [commands, events]);
    let appends = ["batch_events_count", "append_seconds_count", "sync_seconds_count"];
    let [appends, appended, synced] = values(&after, appends);
    assert!(appends > 0.0 && appends == appended && appends == synced);
    let [append, sync] = values(&after, ["append_seconds_sum", "sync_seconds_sum"]);
    assert!(append >= sync && sync > 0.0, "{append} {sync}");
    let process = ["uptime_seconds", "resident_memory_bytes"];
    assert!(values(&after, process).iter().all(|value| *value > 0.0), "{}", after.text);
    let version = format!("build_info{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"));
    assert_eq!(values(&after, [version.as_str()]), [1.0]);
}

#[tokio::test]
async fn open_feeds_are_those_that_are_open() {
    let server = Server::start();
    let claude = server.client("claude");
    let readers = async || scrape(&server).await.get("pearing_feed_readers");
    assert_eq!(readers().await, 0.0);
    let mut feeds = Vec::new();
    for query in ["", "?after=0", "?type=lock.*"] {
        let mut feed = Feed::open(&server, &claude, query, None).await;
        feed.until_caught_up().await;
        feeds.push(feed);
    }
    assert_eq!(values(&scrape(&server).await, ["feed_readers", "feed_lag_events"]), [3.0, 0.0]);
    claude.hold("a", 60).await;
    feeds[2].until(|event| event.name == "lock.acquired").await;
    drop(feeds.split_off(1));
    eventually("two feeds to end", || async { (readers().await == 1.0).then_some(()) }).await;
    drop(feeds);
    eventually("all feeds to end", || async { (readers().await == 0.0).then_some(()) }).await;
}

#[tokio::test]
async fn a_restart_begins_the_counters_anew_and_shows_what_is_held() {
    let mut server = Server::start();
    server.client("claude").hold("a", 300).await;
    server.client("codex").wait_for("a", 60).await;
    let before = scrape(&server).await;
    server.crash();
    let after = scrape(&server).await;
    let state = ["held_locks", "held_tickets", "waiting_tickets"];
    assert_eq!(values(&before, state), [1.0; 3]);
    assert_eq!(values(&after, state), [1.0; 3]);
    // It has said that it has recovered.
    let head = "pearing_head_sequence";
    assert_eq!(after.get(head), before.get(head) + 1.0);
    assert_eq!(after.answers(ACQUIRE), []);
    assert_eq!(after.get("pearing_batch_commands_count"), 0.0);
}

/// Does of everything something, with names that occur nowhere else. Returns the names.
async fn use_names(server: &Server, word: &str) -> Vec<String> {
    let admin = server.client("admin");
    let user = format!("user{word}");
    let client = server.add_writer(&user).await;
    let names = ["team", "repo", "lock", "note", "title", "kind", "agent", "activity", "branch"];
    let names = names.map(|name| format!("{name}{word}"));
    let [team, repo, lock, note, title, kind, agent, activity, branch] = &names;
    let made = admin.post("/v1/admin/teams", json!({ "team": team })).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let scope = format!("teams/{team}/{repo}");
    let made = admin.post("/v1/admin/repos", json!({ "repo": scope })).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let granted = admin.put(&format!("/v1/admin/access/{user}?repo={scope}"), role("write")).await;
    assert_eq!(granted.status, 200, "{}", granted.body);
    let request_uuid = uuid();
    let asked = json!({ "request_uuid": request_uuid, "note": note });
    let path = format!("/v1/locks/{lock}/tickets?repo={scope}");
    let held = client.post(&path, asked).await.ticket(201);
    assert_eq!(client.acquire(lock, json!({})).await.status, 201);
    assert_eq!(client.put("/v1/activity", json!({ "activity": activity })).await.status, 200);
    assert_eq!(client.post("/v1/agents", json!({ "name": agent })).await.status, 201);
    let threads = format!("/v1/threads?repo={scope}");
    let thread = client.post(&threads, json!({ "title": title })).await;
    let number = thread.body["number"].as_u64().expect("a thread has a number");
    let reply = json!({ "kind": kind, "body": note, "links": [format!("branch:{branch}")] });
    let replies = format!("/v1/threads/{number}/replies?repo={scope}");
    assert_eq!(client.post(&replies, reply).await.status, 201);
    assert_eq!(client.release(&held).await.status, 200);
    assert_eq!(client.get(&path_of(&held, "")).await.status, 200);
    assert_eq!(client.get(&format!("/v1/{word}")).await.status, 404);
    assert_eq!(client.call(&word.to_uppercase(), "/v1/whoami", None).await.status, 405);
    let named = client.request("GET", "/v1/whoami").header("x-request-id", word);
    assert_eq!(Client::send(named).await.expect("it is answered").status, 200);
    let mut feed = Feed::open(server, &client, &format!("?lock={lock}&actor={user}"), None).await;
    feed.until_caught_up().await;
    let mut all = names.to_vec();
    all.extend([user, word.to_owned(), word.to_uppercase(), request_uuid, scope]);
    all.extend([client.token().to_owned(), held["ticket_id"].to_string().replace('"', "")]);
    all
}

fn role(role: &str) -> Value {
    json!({ "role": role })
}

#[tokio::test]
async fn no_name_and_no_token_is_in_the_metrics_however_many_there_are() {
    let server = Server::start();
    let mut names = use_names(&server, "zaphod").await;
    scrape(&server).await;
    let first = scrape(&server).await;
    for word in ["trillian", "marvin", "arthur"] {
        names.extend(use_names(&server, word).await);
    }
    let later = scrape(&server).await;
    names.extend(["claude", "codex", "platform"].map(str::to_owned));
    for name in names {
        assert!(!first.text.contains(&name) && !later.text.contains(&name), "{name}");
    }
    assert_eq!(first.series(), later.series(), "what there is more of makes no further series");
}
