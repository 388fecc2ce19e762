//! What is wrong is refused by name, and leaves no trace.

use serde_json::{Value, json};

use super::assert_problem;
use crate::support::{Client, REPO, Reply, Server, path_of, uuid};

fn path(lock_name: &str) -> String {
    format!("/v1/locks/{lock_name}/tickets?repo={REPO}")
}

/// Sends a body as it stands.
async fn raw(client: &Client, path: &str, media_type: Option<&str>, body: &[u8]) -> Reply {
    let mut request = client.request("POST", path).body(body.to_vec());
    if let Some(media_type) = media_type {
        request = request.header("Content-Type", media_type);
    }
    Client::send(request).await.expect("it is answered")
}

/// Fails unless a value was refused for this field.
#[track_caller]
fn assert_invalid(reply: &Reply, field: &str, case: &str) {
    assert_eq!(reply.says(), (422, "invalid-argument"), "{case}: {}", reply.body);
    assert_eq!(reply.body["field"], field, "{case}: {}", reply.body);
    assert!(reply.body["rule"].as_str().is_some_and(|rule| !rule.is_empty()), "{case}");
}

#[tokio::test]
async fn leases_and_waits_are_whole_numbers_in_their_ranges() {
    let server = Server::start();
    let claude = server.client("claude");
    let head = claude.get("/v1/whoami").await.sequence();
    let bad = [
        "0",
        "4",
        "-1",
        "5.5",
        "60.0",
        "\"60\"",
        "1e9",
        "1e308",
        "99999999999999999999",
        "null",
        "true",
        "[60]",
        "{}",
    ];
    for value in bad.into_iter().chain(["301"]) {
        let body = format!(r#"{{"request_uuid":"{}","lease_seconds":{value}}}"#, uuid());
        let reply = raw(&claude, &path("x"), Some("application/json"), body.as_bytes()).await;
        assert_invalid(&reply, "lease_seconds", value);
    }
    for value in bad.into_iter().filter(|v| !matches!(*v, "0" | "4")).chain(["3601"]) {
        let body = format!(r#"{{"request_uuid":"{}","wait_seconds":{value}}}"#, uuid());
        let reply = raw(&claude, &path("x"), Some("application/json"), body.as_bytes()).await;
        assert_invalid(&reply, "wait_seconds", value);
    }
    assert_eq!(claude.get("/v1/whoami").await.sequence(), head, "nothing is appended");
    let held = claude.hold("x", 5).await;
    for value in bad.into_iter().chain(["301"]) {
        let body = format!(r#"{{"lease_seconds":{value}}}"#);
        let path = path_of(&held, "/heartbeat");
        let reply = raw(&claude, &path, Some("application/json"), body.as_bytes()).await;
        assert_invalid(&reply, "lease_seconds", value);
    }
    assert_eq!(claude.look(&held).await["lease_expires_at"], held["lease_expires_at"]);
    for (lease, wait) in [(5, 0), (300, 3600)] {
        let asked = json!({ "lease_seconds": lease, "wait_seconds": wait });
        assert_eq!(claude.acquire("y", asked).await.status, 201);
    }
    let defaults = claude.acquire("z", json!({ "note": null })).await.ticket(201);
    assert_eq!((&defaults["lease_seconds"], &defaults["wait_seconds"]), (&json!(60), &json!(0)));
    let without_body = claude.call("POST", &path_of(&held, "/heartbeat"), None).await;
    assert_eq!(without_body.status, 200, "a heartbeat needs no body");
}

#[tokio::test]
async fn fields_are_known_and_of_their_kind() {
    let server = Server::start();
    let claude = server.client("claude");
    let head = claude.get("/v1/whoami").await.sequence();
    let long = "n".repeat(201);
    for (field, value) in [
        ("request_uuid", json!("not-a-uuid")),
        ("request_uuid", json!(null)),
        ("request_uuid", json!(7)),
        ("note", json!("")),
        ("note", json!(long)),
        ("note", json!(1)),
        ("reentrant", json!("yes")),
        ("reentrant", json!(null)),
        ("fence_token", json!(1)),
        ("owner", json!("codex")),
        ("ticket_id", json!(uuid())),
        ("Lease_Seconds", json!(60)),
    ] {
        let mut body = json!({ "request_uuid": uuid() });
        body[field] = value;
        assert_invalid(&claude.post(&path("x"), body.clone()).await, field, &body.to_string());
    }
    assert_invalid(&claude.post(&path("x"), json!({})).await, "request_uuid", "missing");
    for body in ["[]", "null", "7", "\"x\""] {
        let reply = raw(&claude, &path("x"), Some("application/json"), body.as_bytes()).await;
        assert_invalid(&reply, "body", body);
    }
    let break_path = format!("/v1/locks/x/break?repo={REPO}");
    let admin = server.client("admin");
    for (field, body) in [
        ("reason", json!({ "fence_token": 1 })),
        ("fence_token", json!({ "reason": "why" })),
        ("fence_token", json!({ "fence_token": -1, "reason": "why" })),
        ("reason", json!({ "fence_token": 1, "reason": "" })),
    ] {
        assert_invalid(&admin.post(&break_path, body.clone()).await, field, &body.to_string());
    }
    assert_eq!(claude.get("/v1/whoami").await.sequence(), head, "nothing is appended");
}

#[tokio::test]
async fn any_spelling_of_a_uuid_is_one_value_shown_in_lower_case() {
    let server = Server::start();
    let claude = server.client("claude");
    let upper = "0191D1F0-0000-7000-8000-0000000000AB";
    let first = claude.acquire("x", json!({ "request_uuid": upper })).await.ticket(201);
    assert_eq!(first["request_uuid"], upper.to_lowercase());
    let again = claude.acquire("x", json!({ "request_uuid": upper.to_lowercase() })).await;
    assert_eq!(again.ticket(200)["ticket_id"], first["ticket_id"]);
}

#[tokio::test]
async fn names_keep_to_their_grammar() {
    let server = Server::start();
    let claude = server.client("claude");
    let head = claude.get("/v1/whoami").await.sequence();
    let long = "x".repeat(129);
    for name in ["-x", ".x", "x%2Fy", "x%20y", "%C3%A4", "x%00", "x%0A", "%2e%2e%2fx", &long] {
        let reply = claude.post(&path(name), json!({ "request_uuid": uuid() })).await;
        assert_invalid(&reply, "lock_name", name);
        assert_eq!(claude.get(&format!("/v1/locks/{name}?repo={REPO}")).await.status, 422);
    }
    let undecodable = claude.get(&format!("/v1/locks/x%FF?repo={REPO}")).await;
    assert_problem(&undecodable, 400, "malformed");
    let body = json!({ "request_uuid": uuid() });
    for (query, field) in [
        ("", "repo"),
        ("?repo=teams/platform", "repo"),
        ("?repo=teams/Platform/website", "repo"),
        ("?repo=teams/platform/website/x", "repo"),
        ("?repo=teams/platform/../x", "repo"),
        ("?team=a/b", "team"),
        ("?user=ledger", "user"),
        ("?team=platform&user=claude", "team"),
        ("?repo=teams/platform/website&repo=teams/platform/website", "repo"),
        ("?repo=teams/platform/website&force=true", "force"),
    ] {
        let reply = claude.post(&format!("/v1/locks/x/tickets{query}"), body.clone()).await;
        assert_invalid(&reply, field, query);
    }
    let reply = claude.get("/v1/locks/x?repo=%zz").await;
    assert_problem(&reply, 400, "malformed");
    for query in ["limit=0", "limit=1001", "limit=x", "cursor=x", "state=broken"] {
        let field = query.split_once('=').map_or("", |(field, _)| field);
        assert_invalid(&claude.get(&format!("/v1/tickets?{query}")).await, field, query);
    }
    let reply = claude.get(&format!("/v1/locks/x/tickets/no-uuid?repo={REPO}")).await;
    assert_invalid(&reply, "ticket_id", "no-uuid");
    assert_eq!(claude.get("/v1/whoami").await.sequence(), head, "nothing is appended");
    let longest = "x".repeat(128);
    for name in [longest.as_str(), "A", "9", "thread-work.42:a_B"] {
        assert_eq!(claude.acquire(name, json!({})).await.status, 201, "{name}");
    }
}

#[tokio::test]
async fn bodies_are_json_and_short() {
    let server = Server::start();
    let claude = server.client("claude");
    let head = claude.get("/v1/whoami").await.sequence();
    let json_type = Some("application/json");
    let good = format!(r#"{{"request_uuid":"{}"}}"#, uuid());
    let twice = format!(r#"{{"request_uuid":"{0}","request_uuid":"{0}"}}"#, uuid());
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    for body in [
        &b"{"[..],
        b"{}}",
        b"{'request_uuid':1}",
        b"\xef\xbb\xbf{}",
        b"{\"note\":\"\xff\"}",
        b"{\"lease_seconds\":NaN}",
        twice.as_bytes(),
        deep.as_bytes(),
    ] {
        let reply = raw(&claude, &path("x"), json_type, body).await;
        assert_problem(&reply, 400, "malformed");
    }
    for media_type in [None, Some("text/plain"), Some("application/x-www-form-urlencoded")] {
        let reply = raw(&claude, &path("x"), media_type, good.as_bytes()).await;
        assert_problem(&reply, 400, "malformed");
    }
    for length in [64 * 1024 + 1, 300_000, 1 << 20] {
        let reply = raw(&claude, &path("x"), json_type, &vec![b' '; length]).await;
        assert_problem(&reply, 413, "too-large");
    }
    let reply = claude.call("GET", "/v1/whoami", Some(json!({}))).await;
    assert_eq!(reply.says(), (400, "malformed"), "a read has no body");
    assert_eq!(claude.get("/v1/whoami").await.sequence(), head, "nothing is appended");
    let padded = format!("{good}{}", " ".repeat(64 * 1024 - good.len()));
    let with_charset = Some("Application/JSON; charset=utf-8");
    let reply = raw(&claude, &path("x"), with_charset, padded.as_bytes()).await;
    assert_eq!(reply.status, 201, "{}", reply.body);
    assert_eq!(reply.body["ticket"]["state"], Value::from("held"));
}
