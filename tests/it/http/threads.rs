//! Threads over HTTP: each route, its answers, and what is wrong with a request.

use serde_json::{Value, json};

use super::{assert_problem, names};
use crate::support::{Client, REPO, Server, uuid};

fn path(rest: &str) -> String {
    format!("/v1/threads{rest}?repo={REPO}")
}

async fn reply_to(client: &Client, number: u64, fields: Value) -> crate::support::Reply {
    let mut body = json!({ "kind": "note", "body": "Done." });
    body.as_object_mut().expect("an object").extend(fields.as_object().expect("one").clone());
    client.post(&path(&format!("/{number}/replies")), body).await
}

#[tokio::test]
async fn a_thread_grows_into_a_tree_and_its_past_can_be_read() {
    let server = Server::start();
    let (claude, codex) = (server.client("claude"), server.client("codex"));
    let made = claude.post(&path(""), json!({ "title": "Mend it", "body": "It\nis slow." })).await;
    assert_eq!((made.status, &made.body["number"]), (201, &json!(43)), "{}", made.body);
    assert_eq!((&made.body["state"], &made.body["replies"]), (&json!("open"), &json!([])));
    let first = reply_to(
        &claude,
        43,
        json!({ "kind": "implementation", "links": ["branch:codex/thread-42", "pull:7"] }),
    )
    .await;
    assert_eq!(first.status, 201, "{}", first.body);
    let parent = first.body["reply_id"].clone();
    let below = reply_to(&codex, 43, json!({ "parent": parent })).await;
    assert_eq!((below.status, &below.body["parent"]), (201, &parent));
    let closed = codex.post(&path("/43/close"), json!({})).await;
    assert_eq!((closed.status, &closed.body["state"]), (200, &json!("closed")));
    let again = codex.call("POST", &path("/43/close"), None).await;
    assert_eq!((again.status, again.sequence()), (200, closed.sequence()), "nothing is appended");

    let tree = codex.get(&path("/43")).await;
    assert_eq!(tree.body["replies_count"], 2);
    assert_eq!(tree.body["replies"][0]["links"], json!(["branch:codex/thread-42", "pull:7"]));
    assert_eq!(tree.body["replies"][0]["replies"][0]["author"], "codex");
    assert_eq!(tree.body["sequence"], tree.sequence());
    let as_of = format!("{}&as_of={}", path("/43"), first.sequence());
    let then = codex.get(&as_of).await.body;
    assert_eq!((&then["state"], &then["replies_count"]), (&json!("open"), &json!(1)));
    assert_eq!(then["replies"][0]["replies"], json!([]));
    let before = format!("{}&as_of={}", path("/43"), made.sequence() - 1);
    assert_problem(&codex.get(&before).await, 404, "not-found");

    let open = codex.get(&format!("{}&state=open", path(""))).await.body;
    let listed = |list: &Value| {
        let items = list["items"].as_array().expect("a list has items");
        items.iter().map(|item| item["number"].as_u64().expect("one")).collect::<Vec<_>>()
    };
    assert_eq!(listed(&open), [42]);
    let page = codex.get(&format!("{}&limit=1", path(""))).await.body;
    let next = page["next"].as_str().expect("there is more");
    assert_eq!(listed(&page), [42]);
    let rest = codex.get(&format!("{}&cursor={next}", path(""))).await.body;
    assert_eq!((listed(&rest), &rest["next"]), (vec![43], &Value::Null));
    assert_eq!(
        (&rest["items"][0]["state"], &rest["items"][0]["replies_count"]),
        (&json!("closed"), &json!(2))
    );
    let as_of = |sequence: u64| format!("{}&as_of={sequence}", path(""));
    let before = codex.get(&as_of(made.sequence() - 1)).await.body;
    assert_eq!((listed(&before), &before["sequence"]), (vec![42], &json!(made.sequence() - 1)));
    let then = codex.get(&as_of(first.sequence())).await.body;
    let item = &then["items"][1];
    assert_eq!((&item["state"], &item["replies_count"]), (&json!("open"), &json!(1)));
    let open = codex.get(&format!("{}&state=open", as_of(below.sequence()))).await.body;
    assert_eq!(listed(&open), [42, 43]);
    let reopened = claude.post(&path("/43/reopen"), json!({})).await;
    assert_eq!((reopened.status, &reopened.body["state"]), (200, &json!("open")));
    let types = claude.events("&type=thread.*").await;
    let types: Vec<&str> = types.iter().filter_map(|event| event["type"].as_str()).collect();
    let expected = ["created", "created", "replied", "replied", "closed", "reopened"];
    assert_eq!(types, expected.map(|kind| format!("pearing.thread.{kind}")));
}

#[tokio::test]
async fn a_write_that_is_sent_again_writes_nothing_more() {
    let mut server = Server::start();
    let claude = server.client("claude");
    let [create, reply, close] = [uuid(), uuid(), uuid()];
    let fresh = json!({ "title": "Twice?", "request_uuid": create });
    let made = claude.post(&path(""), fresh.clone()).await;
    let replied = reply_to(&claude, 43, json!({ "request_uuid": reply })).await;
    let closed = claude.post(&path("/43/close"), json!({ "request_uuid": close })).await;
    assert_eq!((made.status, replied.status, closed.status), (201, 201, 200));
    let reply_id = replied.body["reply_id"].clone();
    let below = reply_to(&claude, 43, json!({ "parent": reply_id })).await;
    claude.post(&path("/43/reopen"), json!({})).await;
    let head = claude.get("/v1/whoami").await.sequence();
    for round in ["at once", "after a restart"] {
        if round == "after a restart" {
            server.crash();
        }
        let claude = server.client("claude");
        for retried in [
            claude.post(&path(""), fresh.clone()).await,
            reply_to(&claude, 43, json!({ "request_uuid": reply })).await,
            claude.post(&path("/43/close"), json!({ "request_uuid": close })).await,
        ] {
            assert_eq!(retried.status, 200, "{round}: {}", retried.body);
            assert_eq!(retried.header("idempotency-replayed"), Some("true"), "{round}");
        }
        let again = reply_to(&claude, 43, json!({ "request_uuid": reply })).await.body;
        assert_eq!(again["reply_id"], reply_id, "{round}");
        assert_eq!(again["replies"][0]["reply_id"], below.body["reply_id"], "as it is now");
        let other = reply_to(&claude, 43, json!({ "request_uuid": reply, "body": "Else" })).await;
        assert_problem(&other, 422, "request-uuid-reused");
        let thread = claude.get(&path("/43")).await;
        assert_eq!((&thread.body["state"], thread.sequence()), (&json!("open"), head), "{round}");
    }
    // Another identity's request of the same name is another request.
    let codex = server.client("codex");
    assert_eq!(reply_to(&codex, 43, json!({ "request_uuid": reply })).await.status, 201);
}

#[tokio::test]
async fn a_fenced_write_needs_the_hold_that_it_names() {
    let server = Server::start();
    let (claude, codex) = (server.client("claude"), server.client("codex"));
    let old = claude.hold("thread-work.42", 60).await;
    let waiting = codex.wait_for("thread-work.42", 60).await;
    let fence = |ticket: &Value| {
        let token = &ticket["fence_token"];
        json!({ "fence": { "lock_name": "thread-work.42", "fence_token": token } })
    };
    assert_eq!(reply_to(&claude, 42, fence(&old)).await.status, 201);
    assert_problem(&reply_to(&codex, 42, fence(&old)).await, 409, "stale-fence");
    claude.release(&old).await.ticket(200);
    let new = codex.look(&waiting).await;
    let (mut last, late) = (Vec::new(), fence(&old));
    last.push(reply_to(&claude, 42, late.clone()).await);
    last.push(claude.post(&path("/42/close"), late.clone()).await);
    last.push(claude.post(&path("/42/reopen"), late.clone()).await);
    let mut thread = late;
    thread["title"] = json!("Late");
    last.push(claude.post(&path(""), thread).await);
    for reply in last {
        assert_problem(&reply, 409, "stale-fence");
    }
    let written = reply_to(&codex, 42, fence(&new)).await;
    assert_eq!(written.status, 201, "{}", written.body);
    let event = codex.events("&type=thread.replied").await.pop().expect("it was written");
    assert_eq!(event["data"]["fence"], fence(&new)["fence"]);
    assert_eq!(event["subject"], "teams/platform/website/threads/42");
}

#[tokio::test]
async fn what_is_wrong_with_a_thread_is_named() {
    let server = Server::start();
    let claude = server.client("claude");
    let head = claude.get("/v1/whoami").await.sequence();
    let (long, links) = ("a".repeat(16_385), vec!["pull:1"; 21]);
    for (rest, body, field) in [
        ("", json!({}), "title"),
        ("", json!({ "title": "" }), "title"),
        ("", json!({ "title": "two\nlines" }), "title"),
        ("", json!({ "title": "t", "body": long }), "body"),
        ("", json!({ "title": "t", "body": "\u{1b}[2J" }), "body"),
        ("", json!({ "title": "t", "number": 0 }), "number"),
        ("", json!({ "title": "t", "number": 1_000_000_001 }), "number"),
        ("", json!({ "title": "t", "author": "codex" }), "author"),
        ("", json!({ "title": "t", "fence": { "lock_name": "x" } }), "fence"),
        ("", json!({ "title": "t", "request_uuid": "x" }), "request_uuid"),
        ("/42/replies", json!({ "body": "b" }), "kind"),
        ("/42/replies", json!({ "kind": "Note", "body": "b" }), "kind"),
        ("/42/replies", json!({ "kind": "note", "body": "" }), "body"),
        ("/42/replies", json!({ "kind": "note", "body": "b", "links": null }), "links"),
        ("/42/replies", json!({ "kind": "note", "body": "b", "links": ["x"] }), "links[0]"),
        ("/42/replies", json!({ "kind": "note", "body": "b", "links": links }), "links"),
        ("/42/replies", json!({ "kind": "note", "body": "b", "parent": 1 }), "parent"),
        ("/42/close", json!({ "reason": "done" }), "reason"),
        ("/0", Value::Null, "number"),
        ("/x", Value::Null, "number"),
    ] {
        let reply = match &body {
            Value::Null => claude.get(&path(rest)).await,
            body => claude.post(&path(rest), body.clone()).await,
        };
        assert_problem(&reply, 422, "invalid-argument");
        assert_eq!(reply.body["field"], field, "{rest} {body}: {}", reply.body);
    }
    let team = claude.post("/v1/threads?team=platform", json!({ "title": "t" })).await;
    assert_eq!((team.says(), &team.body["field"]), ((422, "invalid-argument"), &json!("repo")));
    let taken = claude.post(&path(""), json!({ "title": "t", "number": 42 })).await;
    assert_problem(&taken, 409, "already-exists");
    let orphan = reply_to(&claude, 42, json!({ "parent": uuid() })).await;
    assert_problem(&orphan, 404, "not-found");
    assert_problem(&reply_to(&claude, 41, json!({})).await, 404, "not-found");
    assert_problem(&claude.get(&path("/41")).await, 404, "not-found");
    assert_eq!(claude.get("/v1/whoami").await.sequence(), head, "nothing is appended");
}

#[tokio::test]
async fn activity_is_said_seen_and_cleared_and_a_retry_undoes_nothing() {
    let server = Server::start();
    let (claude, codex) = (server.client("claude"), server.client("codex"));
    let eve = server.add_user("eve").await;
    let said = json!({ "activity": "Reading thread #42", "request_uuid": uuid() });
    let updated = claude.put("/v1/activity", said.clone()).await;
    assert_eq!(updated.status, 200, "{}", updated.body);
    assert_eq!(
        (&updated.body["user"], &updated.body["has_holds"]),
        (&json!("claude"), &json!(false))
    );
    claude.hold("x", 60).await;
    let seen = codex.get("/v1/activity").await;
    assert_eq!(names(&seen.body, "activity"), ["Reading thread #42"]);
    assert_eq!(seen.body["items"][0]["has_holds"], true);
    assert!(seen.body["items"][0]["age_ms"].is_u64(), "{}", seen.body);
    assert_eq!(names(&eve.get("/v1/activity").await.body, "user"), [""; 0]);
    assert!(eve.events("&type=activity.*").await.is_empty());
    let cleared = claude.delete("/v1/activity").await;
    assert_eq!((cleared.status, &cleared.body["activity"]), (200, &Value::Null));
    let again = claude.delete("/v1/activity").await;
    assert_eq!((again.status, again.sequence()), (200, cleared.sequence()), "nothing is appended");
    let retried = claude.put("/v1/activity", said.clone()).await;
    assert_eq!((retried.status, &retried.body["activity"]), (200, &Value::Null));
    assert_eq!(retried.header("idempotency-replayed"), Some("true"));
    let mut other = said;
    other["activity"] = json!("Else");
    assert_problem(&claude.put("/v1/activity", other).await, 422, "request-uuid-reused");
    for bad in [json!({}), json!({ "activity": "" }), json!({ "activity": "a".repeat(501) })] {
        assert_problem(&claude.put("/v1/activity", bad).await, 422, "invalid-argument");
    }
    let types = codex.events("&type=activity.*").await;
    let types: Vec<&str> = types.iter().filter_map(|event| event["type"].as_str()).collect();
    assert_eq!(types, ["pearing.activity.updated", "pearing.activity.cleared"]);
}

#[tokio::test]
async fn an_agent_is_an_identity_of_its_own_with_the_role_of_its_person() {
    let server = Server::start();
    let (admin, claude) = (server.client("admin"), server.client("claude"));
    let agent = async |person: &Client, name: &str| {
        let made = person.post("/v1/agents", json!({ "name": name })).await;
        assert_eq!(made.status, 201, "{}", made.body);
        server.client_with(made.body["token"].as_str().expect("it is shown"))
    };
    let (one, two) = (agent(&claude, "one").await, agent(&claude, "two").await);
    let who = one.get("/v1/whoami").await.body;
    assert_eq!((&who["user"], &who["person"]), (&json!("claude.one"), &json!("claude")));
    let held = one.hold("x", 60).await;
    assert_eq!(two.acquire("x", json!({})).await.status, 409, "two agents are two owners");
    assert_eq!(claude.acquire("x", json!({})).await.status, 409, "and so is their person");
    let boss = agent(&admin, "helper").await;
    assert_eq!(boss.acquire("y", json!({})).await.status, 201);
    assert_problem(&boss.get("/v1/admin/users").await, 403, "forbidden");
    let broken = json!({ "fence_token": held["fence_token"], "reason": "r" });
    let reply = boss.post(&format!("/v1/locks/x/break?repo={REPO}"), broken).await;
    assert_problem(&reply, 403, "forbidden");
    assert_problem(&one.post("/v1/agents", json!({ "name": "sub" })).await, 403, "forbidden");

    for (path, body) in [
        ("/v1/admin/teams/platform/members/claude.one", json!({ "role": "admin" })),
        ("/v1/admin/access/claude.one?repo=teams/platform/website", json!({ "role": "admin" })),
    ] {
        let reply = admin.put(path, body).await;
        assert_problem(&reply, 422, "invalid-argument");
        assert_eq!(reply.body["field"], "user");
    }
    let taken = admin.post("/v1/admin/users", json!({ "user": "claude.three" })).await;
    assert_problem(&taken, 422, "invalid-argument");
    for bad in [json!({ "name": "" }), json!({ "name": "a/b" }), json!({ "name": "a".repeat(60) })]
    {
        let reply = claude.post("/v1/agents", bad).await;
        assert_eq!((reply.status, &reply.body["field"]), (422, &json!("name")), "{}", reply.body);
    }
    assert_eq!(admin.post("/v1/admin/users/claude/disable", json!({})).await.status, 200);
    assert_problem(&one.heartbeat(&held, 60).await, 403, "forbidden");
    one.release(&held).await.ticket(200);
    assert_eq!(admin.post("/v1/admin/users/claude/enable", json!({})).await.status, 200);
    let ended = claude.delete("/v1/agents/one/tokens").await;
    assert_eq!((ended.status, &ended.body["items"][0]["revoked"]), (200, &json!(true)));
    assert_eq!(one.get("/v1/whoami").await.status, 401);
    assert_eq!(two.get("/v1/whoami").await.status, 200);
    assert_eq!(agent(&claude, "one").await.get("/v1/whoami").await.status, 200, "another token");
    let list = claude.get("/v1/agents").await.body;
    assert_eq!(names(&list, "user"), ["claude.one", "claude.two"]);
    assert_eq!(names(&list, "name"), ["one", "two"]);
    let codex = server.client("codex");
    assert_problem(&codex.delete("/v1/agents/one/tokens").await, 404, "not-found");
}
