//! Who may do what: each role against each kind of object, and what a lost role leaves.

use serde_json::{Value, json};

use super::assert_problem;
use crate::support::{Client, REPO, Server, path_of, uuid};

/// A server on which claude holds a lock, with a client for each kind of asker.
struct World {
    server: Server,
    held: Value,
    askers: Vec<(&'static str, Client)>,
}

async fn world() -> World {
    let server = Server::start();
    let held = server.client("claude").hold("x", 300).await;
    let stranger = server.add_user("stranger").await;
    let reader = server.add_user("reader").await;
    server.join_team("reader", "read").await;
    let writer = server.client("codex");
    let scope_admin = server.add_user("lead").await;
    server.join_team("lead", "admin").await;
    let admin = server.client("admin");
    let askers = vec![
        ("stranger", stranger),
        ("reader", reader),
        ("writer", writer),
        ("lead", scope_admin),
        ("admin", admin),
    ];
    World { server, held, askers }
}

#[tokio::test]
async fn roles_open_what_they_should_and_hide_the_rest() {
    let World { server: _server, held, askers } = world().await;
    let ticket = path_of(&held, "");
    let heartbeat = path_of(&held, "/heartbeat");
    let acquire = format!("/v1/locks/x/tickets?repo={REPO}");
    let breaking = format!("/v1/locks/x/break?repo={REPO}");
    let stale = json!({ "fence_token": 1, "reason": "why" });
    let asked = |_: &str| json!({ "request_uuid": uuid() });
    // For each call the statuses of a stranger, a reader, a writer, the team's and the server's
    // administrator. What one may not know of is 404, what one may only see is 403.
    let table = [
        ("GET", "/v1/locks/x?repo=teams/platform/website", None, [404, 200, 200, 200, 200]),
        ("GET", "/v1/locks?repo=teams/platform/website", None, [404, 200, 200, 200, 200]),
        ("GET", "/v1/locks/x/history?repo=teams/platform/website", None, [404, 200, 200, 200, 200]),
        ("GET", "/v1/locks?team=platform", None, [404, 200, 200, 200, 200]),
        ("GET", "/v1/locks?user=claude", None, [404, 404, 404, 404, 200]),
        ("GET", ticket.as_str(), None, [404, 200, 200, 200, 200]),
        ("POST", acquire.as_str(), Some(asked("")), [404, 403, 409, 409, 409]),
        ("POST", heartbeat.as_str(), Some(json!({})), [404, 403, 403, 403, 403]),
        ("DELETE", ticket.as_str(), None, [404, 403, 403, 403, 403]),
        ("POST", breaking.as_str(), Some(stale), [404, 403, 403, 409, 409]),
        ("GET", "/v1/events?repo=teams/platform/website", None, [404, 200, 200, 200, 200]),
        ("GET", "/v1/admin/teams/platform/members", None, [404, 200, 200, 200, 200]),
        ("GET", "/v1/admin/access?team=platform", None, [404, 200, 200, 200, 200]),
        ("GET", "/v1/admin/users", None, [403, 403, 403, 403, 200]),
        ("GET", "/v1/admin/tokens", None, [403, 403, 403, 403, 200]),
        ("POST", "/v1/admin/users", Some(json!({ "user": "u" })), [403, 403, 403, 403, 201]),
        ("POST", "/v1/admin/tokens", Some(json!({ "user": "lead" })), [403, 403, 403, 403, 201]),
        ("POST", "/v1/admin/teams", Some(json!({ "team": "t" })), [403, 403, 403, 403, 201]),
        (
            "POST",
            "/v1/admin/repos",
            Some(json!({ "repo": "teams/platform/new" })),
            [404, 403, 403, 201, 409],
        ),
        (
            "PUT",
            "/v1/admin/teams/platform/members/stranger",
            Some(json!({ "role": "bad" })),
            [422, 422, 422, 422, 422],
        ),
        ("DELETE", "/v1/admin/teams/platform/members/nobody", None, [404, 403, 403, 404, 404]),
        (
            "DELETE",
            "/v1/admin/access/nobody?repo=teams/platform/website",
            None,
            [404, 403, 403, 404, 404],
        ),
    ];
    for (method, path, body, statuses) in table {
        for ((role, client), status) in askers.iter().zip(statuses) {
            let reply = client.call(method, path, body.clone()).await;
            assert_eq!(reply.status, status, "{role} {method} {path}: {}", reply.body);
        }
    }
}

#[tokio::test]
async fn what_is_hidden_and_what_is_missing_look_alike() {
    let World { server: _server, held, askers } = world().await;
    let (_, stranger) = &askers[0];
    let (_, reader) = &askers[1];
    let mut unknown = held.clone();
    unknown["ticket_id"] = uuid().into();
    let hidden = stranger.get(&path_of(&held, "")).await;
    assert_eq!(hidden.body, stranger.get(&path_of(&unknown, "")).await.body);
    assert_problem(&reader.get(&path_of(&unknown, "")).await, 404, "not-found");
    let mut elsewhere = held.clone();
    elsewhere["lock_name"] = "y".into();
    assert_problem(&reader.get(&path_of(&elsewhere, "")).await, 404, "not-found");
    for path in ["/v1/locks?team=platform", "/v1/locks?team=nothing"] {
        assert_problem(&stranger.get(path).await, 404, "not-found");
    }
}

#[tokio::test]
async fn a_lost_role_cancels_waits_and_leaves_reading_and_releasing() {
    let server = Server::start();
    let (admin, claude, codex) =
        (server.client("admin"), server.client("claude"), server.client("codex"));
    let asked = json!({ "lease_seconds": 300, "request_uuid": uuid() });
    let held = claude.acquire("x", asked.clone()).await.ticket(201);
    codex.hold("y", 300).await;
    let waiting = claude.wait_for("y", 60).await;
    let left = admin.delete("/v1/admin/teams/platform/members/claude").await;
    assert_eq!(left.status, 200, "{}", left.body);
    assert_eq!(left.body["role"], json!(null));

    let cancelled = claude.look(&waiting).await;
    assert_eq!(cancelled["state"], "cancelled");
    assert_eq!(cancelled["end_reason"], "access-revoked");
    assert_eq!(cancelled["sequence"].as_u64(), Some(left.sequence()), "in the same append");
    assert_problem(&claude.acquire("z", json!({})).await, 404, "not-found");
    assert_problem(&claude.heartbeat(&held, 60).await, 403, "forbidden");
    let lock = claude.get(&format!("/v1/locks/x?repo={REPO}")).await;
    assert_problem(&lock, 404, "not-found");
    assert_eq!(claude.look(&held).await["state"], "held", "one's own ticket always exists");
    let retried = claude.acquire("x", asked).await;
    assert_eq!(retried.header("idempotency-replayed"), Some("true"));
    assert_eq!(retried.ticket(200)["ticket_id"], held["ticket_id"]);
    assert_eq!(claude.release(&held).await.ticket(200)["state"], "released");
}

#[tokio::test]
async fn a_disabled_user_may_only_read_and_release_its_own() {
    let server = Server::start();
    let (admin, claude) = (server.client("admin"), server.client("claude"));
    let held = claude.hold("x", 300).await;
    let disabled = admin.post("/v1/admin/users/claude/disable", json!({})).await;
    assert_eq!((disabled.status, &disabled.body["disabled"]), (200, &json!(true)));
    assert_problem(&claude.acquire("y", json!({})).await, 403, "forbidden");
    assert_problem(&claude.heartbeat(&held, 60).await, 403, "forbidden");
    let events = claude.get("/v1/events").await;
    assert!([401, 403].contains(&events.status), "{}", events.body);
    assert_eq!(claude.look(&held).await["state"], "held");
    assert_eq!(claude.release(&held).await.ticket(200)["state"], "released");
    let enabled = admin.post("/v1/admin/users/claude/enable", json!({})).await;
    assert_eq!((enabled.status, &enabled.body["disabled"]), (200, &json!(false)));
    assert_eq!(claude.acquire("y", json!({})).await.status, 201);
}
