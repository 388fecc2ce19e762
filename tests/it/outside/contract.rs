//! The written contract, held by programs that others wrote against what a server really sends.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use pearing::domain::event::Event;
use serde_json::{Value, json};

use super::browser::Page;
use super::{node_script, python_script, succeed};
use crate::support::{Client, REPO, Server, eventually, path_of, uuid};

/// How long a script may take.
const SECONDS_MAX: u32 = 120;

/// A file or folder of the contract.
fn schemas(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "schemas", name].iter().collect()
}

/// Every type of event that there is.
fn all_types() -> BTreeSet<&'static str> {
    Event::TYPES.iter().map(|(name, _)| *name).collect()
}

/// A command that reads the server's feed.
fn reader(server: &Server, mut command: Command) -> Command {
    command.env("TOKEN", server.client("admin").token());
    command
}

async fn done(client: &Client, method: &str, path: &str, body: Option<Value>) -> Value {
    let reply = client.call(method, path, body).await;
    assert!([200, 201].contains(&reply.status), "{method} {path}: {}", reply.body);
    reply.body
}

/// A server that has been through everything that can happen, so that its ledger has every type.
async fn server_with_a_past() -> Server {
    let mut server = Server::start();
    let (admin, claude, codex) =
        (server.client("admin"), server.client("claude"), server.client("codex"));

    // What runs out, begun first. Five seconds are the shortest lease.
    let cy = server.add_writer("cy").await;
    claude.acquire("expires", json!({ "lease_seconds": 5, "note": "as \"quoted\"" })).await;
    cy.wait_for("expires", 60).await;
    claude.hold("times-out", 300).await;
    cy.acquire("times-out", json!({ "wait_seconds": 1 })).await.ticket(202);

    // Identities, scopes and access.
    let team = json!({ "team": "core" });
    done(&admin, "POST", "/v1/admin/teams", Some(team)).await;
    let repo = json!({ "repo": "teams/core/app" });
    done(&admin, "POST", "/v1/admin/repos", Some(repo)).await;
    let bo = server.add_writer("bo").await;
    bo.wait_for("times-out", 60).await;
    let role = Some(json!({ "role": "read" }));
    done(&admin, "PUT", "/v1/admin/access/bo?repo=teams/core/app", role).await;
    done(&admin, "DELETE", "/v1/admin/access/bo?repo=teams/core/app", None).await;
    done(&admin, "DELETE", "/v1/admin/teams/platform/members/bo", None).await;
    let token = json!({ "user": "bo", "label": "short", "expires_in_days": 1 });
    let token = done(&admin, "POST", "/v1/admin/tokens", Some(token)).await;
    let token = format!("/v1/admin/tokens/{}", token["token_id"].as_str().expect("an id"));
    done(&admin, "DELETE", &token, None).await;
    done(&bo, "POST", "/v1/agents", Some(json!({ "name": "helper" }))).await;
    done(&admin, "POST", "/v1/admin/users/bo/disable", None).await;
    done(&admin, "POST", "/v1/admin/users/bo/enable", None).await;

    // Locks: again by the same user, taken, in a circle, handed over, broken.
    let held = claude.hold("x", 60).await;
    claude.heartbeat(&held, 90).await.ticket(200);
    claude.hold("x", 60).await;
    assert_eq!(codex.acquire("x", json!({})).await.says(), (409, "lock-contended"));
    codex.hold("y", 60).await;
    claude.wait_for("y", 60).await;
    let circle = codex.acquire("x", json!({ "wait_seconds": 60 })).await;
    assert_eq!(circle.says(), (409, "deadlock-rejected"));
    let given_up = cy.wait_for("times-out", 60).await;
    cy.release(&given_up).await.ticket(200);
    claude.release(&held).await.ticket(200);
    let own = json!({ "request_uuid": uuid(), "reentrant": false });
    let own = done(&claude, "POST", "/v1/locks/own/tickets?user=claude", Some(own)).await;
    done(&claude, "DELETE", &path_of(&own["ticket"], ""), None).await;
    let fence_token = codex.lock("y").await["fence_token"].clone();
    let stuck = json!({ "fence_token": fence_token, "reason": "stuck" });
    done(&admin, "POST", &format!("/v1/locks/y/break?repo={REPO}"), Some(stuck)).await;

    // Activity and threads.
    let activity = json!({ "activity": "reading thread 42", "request_uuid": uuid() });
    done(&claude, "PUT", "/v1/activity", Some(activity)).await;
    done(&claude, "DELETE", "/v1/activity", None).await;
    let thread = json!({ "title": "Slow start", "body": "Two\nlines" });
    done(&claude, "POST", &format!("/v1/threads?repo={REPO}"), Some(thread)).await;
    let fence = json!({ "lock_name": "x", "fence_token": held["fence_token"] });
    let reply = json!({ "kind": "note", "body": "ünïcode", "links": ["pull:7"], "fence": fence });
    let replies = format!("/v1/threads/43/replies?repo={REPO}");
    let first = done(&claude, "POST", &replies, Some(reply)).await;
    let reply = json!({ "kind": "note", "body": "And more.", "parent": first["reply_id"] });
    done(&claude, "POST", &replies, Some(reply)).await;
    done(&claude, "POST", &format!("/v1/threads/43/close?repo={REPO}"), None).await;
    done(&claude, "POST", &format!("/v1/threads/43/reopen?repo={REPO}"), None).await;

    for gone in ["lock.wait_timed_out", "lock.expired"] {
        eventually(gone, async || {
            let found = admin.events(&format!("&type={gone}")).await;
            (!found.is_empty()).then_some(())
        })
        .await;
    }
    // A crash, and a start that doesn't know how far the ledger was synced.
    let head = admin.get("/v1/whoami").await.sequence();
    server.kill();
    let mark = server.data().join("durable-mark");
    std::fs::remove_file(mark).expect("the mark of what is synced is a file of its own");
    server.serve_with(&["--accept-loss-after", &head.to_string()]);
    server
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sdk_of_cloudevents_reads_every_type_of_event() {
    let server = server_with_a_past().await;
    let mut command = reader(&server, python_script("cloud_events.py"));
    let said = succeed(command.arg(server.url()), SECONDS_MAX);
    assert_eq!(said.lines().collect::<BTreeSet<_>>(), all_types());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_validator_takes_every_type_of_event_and_none_with_a_mistake() {
    let server = server_with_a_past().await;
    let mut command = reader(&server, python_script("json_schema.py"));
    let said = succeed(command.arg(schemas("")).arg(server.url()), SECONDS_MAX);
    assert_eq!(said.lines().collect::<BTreeSet<_>>(), all_types());
}

#[test]
fn the_parser_of_asyncapi_takes_the_feeds_document() {
    let said = succeed(node_script("asyncapi.cjs").arg(schemas("asyncapi.json")), SECONDS_MAX);
    assert!(said.lines().any(|line| line == "channel /v1/events"), "{said}");
    for (name, _) in Event::TYPES {
        assert!(said.lines().any(|line| line == format!("message {name}")), "{name}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chromium_shows_every_operation_and_fetches_nothing_from_elsewhere() {
    let server = Server::start();
    let contract = server.client_without_token().get("/openapi.json").await.body;
    let paths = contract["paths"].as_object().expect("it has paths").values();
    let operations: usize = paths.filter_map(|path| Some(path.as_object()?.len())).sum();
    let page = Page::open(&format!("{}/docs", server.url()));
    let shown = "document.querySelectorAll('.opblock').length";
    eventually("every operation to be shown", async || {
        (page.value(shown) == json!(operations)).then_some(())
    })
    .await;
    let loaded = "performance.getEntriesByType('resource').map((entry) => entry.name)";
    let loaded = page.value(loaded);
    let loaded = loaded.as_array().expect("a list").iter().filter_map(Value::as_str);
    let foreign: Vec<&str> = loaded.filter(|url| !url.starts_with(server.url())).collect();
    assert_eq!(foreign, [""; 0]);
}
