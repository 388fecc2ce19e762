//! HTTP wiring: each route leads to its rule, and what goes over the wire is as promised. The
//! rules themselves are tested in the core.

mod access;
mod admin;
mod docs;
mod limits;
mod locks;
mod reads;
mod threads;
mod timeline;
mod validation;
mod why;

use serde_json::Value;

use crate::support::{Reply, Server};

/// A problem has the same five members everywhere.
#[track_caller]
fn assert_problem(reply: &Reply, status: u16, code: &str) {
    assert_eq!(reply.says(), (status, code), "{}", reply.body);
    assert_eq!(reply.header("content-type"), Some("application/problem+json"));
    assert_eq!(reply.body["type"], format!("urn:pearing:problem:{code}"));
    assert_eq!(reply.body["status"], status);
    for member in ["title", "detail"] {
        assert!(reply.body[member].as_str().is_some_and(|text| !text.is_empty()), "{member}");
    }
}

/// The names in a list, by the field that has them.
fn names(list: &Value, field: &str) -> Vec<String> {
    let items = list["items"].as_array().expect("a list has items");
    items.iter().map(|item| item[field].as_str().expect("a name").to_owned()).collect()
}

#[tokio::test]
async fn operations_are_open_and_all_else_needs_a_token() {
    let server = Server::start();
    let nobody = server.client_with("pearing_nobody");
    for (path, status) in [("/livez", "live"), ("/readyz", "ready")] {
        let reply = nobody.get(path).await;
        assert_eq!((reply.status, &reply.body["status"]), (200, &Value::from(status)));
    }
    let mut bodies = Vec::new();
    let revoked = server.add_token("claude").await;
    let id = revoked.get("/v1/whoami").await.body["token_id"].as_str().map(str::to_owned);
    let id = id.expect("a token has an id");
    assert_eq!(server.client("admin").delete(&format!("/v1/admin/tokens/{id}")).await.status, 200);
    let wrong = server.client("codex").token().replace(['0', '1'], "2");
    for client in [nobody, revoked, server.client_with(&wrong), server.client_with("")] {
        for (method, path) in [
            ("GET", "/v1/whoami"),
            ("GET", "/v1/events"),
            ("POST", "/v1/locks/x/tickets?repo=teams/platform/website"),
            ("GET", "/v1/admin/users"),
        ] {
            let reply = client.call(method, path, None).await;
            assert_problem(&reply, 401, "unauthenticated");
            assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
            assert_eq!(reply.header("pearing-sequence"), None);
            bodies.push(reply.body);
        }
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "the body tells nothing of why: {bodies:?}");
}

#[tokio::test]
async fn what_is_not_there_says_so() {
    let server = Server::start();
    let claude = server.client("claude");
    assert_problem(&claude.get("/v1/nothing").await, 404, "not-found");
    let reply = claude.delete("/v1/locks/x?repo=teams/platform/website").await;
    assert_problem(&reply, 405, "method-not-allowed");
    assert!(reply.header("allow").is_some_and(|allow| allow.contains("GET")), "{reply:?}");
}
