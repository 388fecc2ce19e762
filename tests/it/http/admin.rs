//! Administration: make, list, change, take away; and what exists already.

use serde_json::{Value, json};

use super::{assert_problem, names};
use crate::support::{SIGTERM, Server};

#[tokio::test]
async fn each_noun_is_made_once_and_listed() {
    let server = Server::start();
    let admin = server.client("admin");
    for (path, body, list_field, all) in [
        ("users", json!({ "user": "dee" }), "user", vec!["admin", "claude", "codex", "dee"]),
        ("teams", json!({ "team": "ops" }), "team", vec!["ops", "platform"]),
        (
            "repos",
            json!({ "repo": "teams/ops/infra" }),
            "repo",
            vec!["teams/ops/infra", "teams/platform/website"],
        ),
    ] {
        let path = format!("/v1/admin/{path}");
        let made = admin.post(&path, body.clone()).await;
        assert_eq!(made.status, 201, "{}", made.body);
        assert_eq!(made.body[list_field], body[list_field]);
        let again = admin.post(&path, body).await;
        assert_problem(&again, 409, "already-exists");
        assert_eq!(again.sequence(), made.sequence(), "nothing is appended");
        let list = admin.get(&path).await;
        assert_eq!(
            (list.status, names(&list.body, list_field)),
            (200, all.clone().into_iter().map(str::to_owned).collect())
        );
        let page = admin.get(&format!("{path}?limit=1")).await.body;
        assert_eq!(
            (names(&page, list_field), page["next"].is_string()),
            (vec![all[0].to_owned()], true)
        );
    }
    for (path, body, status) in [
        ("users", json!({ "user": "Dee" }), 422),
        ("users", json!({ "user": "ledger" }), 422),
        ("users", json!({ "user": "x", "role": "admin" }), 422),
        ("teams", json!({ "team": "a/b" }), 422),
        ("repos", json!({ "repo": "teams/ops" }), 422),
        ("repos", json!({ "repo": "teams/nothing/x" }), 404),
        ("tokens", json!({ "user": "nobody" }), 404),
        ("tokens", json!({ "user": "dee", "expires_in_days": 0 }), 422),
    ] {
        let reply = admin.post(&format!("/v1/admin/{path}"), body.clone()).await;
        assert_eq!(reply.status, status, "{path} {body}: {}", reply.body);
    }
}

#[tokio::test]
async fn a_token_is_shown_once_and_works_until_it_is_revoked() {
    let server = Server::start();
    let admin = server.client("admin");
    let asked = json!({ "user": "claude", "label": "laptop", "expires_in_days": 30 });
    let made = admin.post("/v1/admin/tokens", asked).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let text = made.body["token"].as_str().expect("it is shown").to_owned();
    let laptop = server.client_with(&text);
    let who = laptop.get("/v1/whoami").await.body;
    assert_eq!((&who["user"], &who["label"]), (&json!("claude"), &json!("laptop")));
    assert_eq!(who["expires_at"], made.body["expires_at"]);
    let list = admin.get("/v1/admin/tokens").await;
    assert!(!list.body.to_string().contains(&text), "it is never shown again");
    let events = Value::from(admin.events("").await).to_string();
    assert!(!events.contains(&text), "no event has it");
    let id = made.body["token_id"].as_str().expect("an id");
    let path = format!("/v1/admin/tokens/{id}");
    for _ in ["once", "again"] {
        let revoked = admin.delete(&path).await;
        assert_eq!((revoked.status, &revoked.body["revoked"]), (200, &json!(true)));
    }
    assert_problem(&laptop.get("/v1/whoami").await, 401, "unauthenticated");
    assert_eq!(server.client("claude").get("/v1/whoami").await.status, 200, "only that one");
    let unknown = format!("/v1/admin/tokens/{}", crate::support::uuid());
    assert_problem(&admin.delete(&unknown).await, 404, "not-found");
}

#[tokio::test]
async fn a_tokens_last_use_is_shown_outlives_a_stop_and_may_be_lost() {
    let mut server = Server::start();
    let last_used = async |server: &Server, user: &str| {
        let list = server.client("admin").get("/v1/admin/tokens").await.body;
        let items = list["items"].as_array().expect("a list has items");
        items.iter().find(|item| item["user"] == user).expect("it has one")["last_used_at"].clone()
    };
    assert_eq!(server.client("codex").get("/v1/whoami").await.status, 200);
    let hour = last_used(&server, "codex").await;
    let text = hour.as_str().expect("it was just used");
    assert!(text.ends_with(":00:00.000Z"), "{text}");
    assert_eq!(last_used(&server, "claude").await, Value::Null);
    let head = server.client("admin").get("/v1/whoami").await.sequence();

    server.process().signal(SIGTERM);
    assert_eq!(server.exit_code(), Some(0));
    server.serve();
    assert_eq!(last_used(&server, "codex").await, hour);
    assert_eq!(last_used(&server, "claude").await, Value::Null);
    assert_eq!(server.client("admin").get("/v1/whoami").await.sequence(), head, "it is no event");

    server.kill();
    std::fs::write(server.data().join("token-use"), b"\xff damaged").expect("it is ours");
    server.serve();
    assert_eq!(last_used(&server, "codex").await, Value::Null);
    assert_eq!(server.client("codex").get("/v1/whoami").await.status, 200);
    assert!(last_used(&server, "codex").await.is_string());
}

#[tokio::test]
async fn members_and_grants_are_given_changed_and_taken() {
    let server = Server::start();
    let admin = server.client("admin");
    let dee = server.add_user("dee").await;
    let member = "/v1/admin/teams/platform/members/dee";
    let grant = "/v1/admin/access/dee?repo=teams/platform/website";
    let lists = [
        (member, "/v1/admin/teams/platform/members"),
        (grant, "/v1/admin/access?repo=teams/platform/website"),
    ];
    for (path, list) in lists {
        let before = names(&admin.get(list).await.body, "user");
        assert!(!before.contains(&"dee".to_owned()));
        for (role, acquires) in [("read", 403), ("write", 201)] {
            let set = admin.put(path, json!({ "role": role })).await;
            assert_eq!((set.status, &set.body["role"]), (200, &json!(role)), "{}", set.body);
            let again = admin.put(path, json!({ "role": role })).await;
            assert_eq!((again.status, again.sequence()), (200, set.sequence()), "no event");
            assert_eq!(dee.acquire("x", json!({})).await.status, acquires);
        }
        assert!(names(&admin.get(list).await.body, "user").contains(&"dee".to_owned()));
        assert_eq!(admin.delete(path).await.status, 200);
        assert_problem(&admin.delete(path).await, 404, "not-found");
        assert_eq!(names(&admin.get(list).await.body, "user"), before);
        assert_eq!(dee.acquire("x", json!({})).await.status, 404);
    }
    let nobody = "/v1/admin/teams/platform/members/nobody";
    assert_problem(&admin.put(nobody, json!({ "role": "read" })).await, 404, "not-found");
    let own = dee.put("/v1/admin/access/claude?user=dee", json!({ "role": "write" })).await;
    assert_eq!(own.status, 200, "one grants access to one's own scope: {}", own.body);
    let claude = server.client("claude");
    assert_eq!(claude.get("/v1/locks?user=dee").await.status, 200);
}
