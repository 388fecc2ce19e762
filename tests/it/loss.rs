//! Access that is taken away from who holds, who waits and who reads the feed: in each way in which
//! it can be, over HTTP and by `pearing-cli`.

use serde_json::{Value, json};

use crate::support::{Client, Event, Feed, REPO, Reply, Server, path_of, uuid};

/// How access to the repository is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    TeamRemoval,
    /// From `write` to `read`: nothing is hidden by it.
    Demotion,
    GrantRemoval,
    Disabling,
    /// Of an agent, whose person is removed from the team.
    PersonRemoval,
    PersonDisabling,
}

const WAYS: [Way; 6] = [
    Way::TeamRemoval,
    Way::Demotion,
    Way::GrantRemoval,
    Way::Disabling,
    Way::PersonRemoval,
    Way::PersonDisabling,
];

/// Status, code and exit code.
type Outcome = (u16, &'static str, i32);

const DONE: Outcome = (200, "", 0);
const FORBIDDEN: Outcome = (403, "forbidden", 7);
const NOT_FOUND: Outcome = (404, "not-found", 6);

impl Way {
    fn is_of_agent(self) -> bool {
        matches!(self, Self::PersonRemoval | Self::PersonDisabling)
    }

    fn is_out_of_service(self) -> bool {
        matches!(self, Self::Disabling | Self::PersonDisabling)
    }

    /// What a read of the repository is answered afterwards.
    fn read(self) -> Outcome {
        match self {
            Self::Demotion => DONE,
            Self::Disabling | Self::PersonDisabling => FORBIDDEN,
            Self::TeamRemoval | Self::GrantRemoval | Self::PersonRemoval => NOT_FOUND,
        }
    }

    /// What an acquire there is answered afterwards.
    fn write(self) -> Outcome {
        if self == Self::Demotion { FORBIDDEN } else { self.read() }
    }

    /// Why a wait has ended.
    fn reason(self) -> &'static str {
        if self.is_out_of_service() { "user-disabled" } else { "access-revoked" }
    }
}

/// One who has access by the way that it will be lost by.
struct Someone {
    person: String,
    /// The person, or its agent.
    user: String,
    client: Client,
}

async fn join(server: &Server, way: Way, person: &str) -> Someone {
    let of_person = server.add_user(person).await;
    if way == Way::GrantRemoval {
        let path = format!("/v1/admin/access/{person}?repo={REPO}");
        let granted = server.client("admin").put(&path, json!({ "role": "write" })).await;
        assert_eq!(granted.status, 200, "{}", granted.body);
    } else {
        server.join_team(person, "write").await;
    }
    if !way.is_of_agent() {
        return Someone { person: person.to_owned(), user: person.to_owned(), client: of_person };
    }
    let made = of_person.post("/v1/agents", json!({ "name": "helper" })).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let client = server.client_with(made.body["token"].as_str().expect("it is shown once"));
    Someone { person: person.to_owned(), user: format!("{person}.helper"), client }
}

/// Takes away what [`join`] gave.
async fn take(server: &Server, way: Way, someone: &Someone) -> Reply {
    let (admin, person) = (server.client("admin"), &someone.person);
    let member = format!("/v1/admin/teams/platform/members/{person}");
    let taken = match way {
        Way::TeamRemoval | Way::PersonRemoval => admin.delete(&member).await,
        Way::Demotion => admin.put(&member, json!({ "role": "read" })).await,
        Way::GrantRemoval => admin.delete(&format!("/v1/admin/access/{person}?repo={REPO}")).await,
        Way::Disabling | Way::PersonDisabling => {
            admin.post(&format!("/v1/admin/users/{person}/disable"), json!({})).await
        }
    };
    assert_eq!(taken.status, 200, "{way:?}: {}", taken.body);
    taken
}

/// The exit code of a command, and what it printed.
fn run(server: &Server, client: &Client, line: &str) -> (Option<i32>, Value) {
    let mut command = server.cli(client);
    let output = command.args(line.split(' ')).output().expect("it runs");
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or(Value::Null))
}

/// Asks over HTTP and by the command, and wants the same of both.
async fn assert_both(
    server: &Server,
    client: &Client,
    (method, path, body): (&str, &str, Option<Value>),
    line: &str,
    (status, code, exit_code): Outcome,
) {
    let reply = client.call(method, path, body).await;
    assert_eq!(reply.says(), (status, code), "{method} {path}: {}", reply.body);
    assert_eq!(run(server, client, line).0, Some(exit_code), "{line}");
}

fn kind(event: &Value) -> &str {
    event["type"].as_str().unwrap_or_default().trim_start_matches("pearing.")
}

/// The events after a sequence, as an administrator sees them: their sequences and types.
async fn events_after(server: &Server, after: u64) -> Vec<(u64, Value)> {
    let events = server.client("admin").events("").await.into_iter();
    let id = |event: &Value| event["id"].as_str().and_then(|id| id.parse().ok()).unwrap_or(0);
    events.map(|event| (id(&event), event)).filter(|(id, _)| *id > after).collect()
}

/// A ticket whose owner may not read the repository any more shows nobody else.
fn assert_own_only(ticket: &Value, others: &[&str]) {
    let text = ticket.to_string();
    for other in others {
        assert!(!text.contains(other), "{other} is in {text}");
    }
}

/// What the one who waits lives through.
async fn the_waiter_leaves(server: &Server, way: Way, lock_name: &str, bo: &Someone) {
    let asked = json!({ "request_uuid": uuid(), "lease_seconds": 300, "wait_seconds": 600 });
    let contended = bo.client.acquire(lock_name, json!({})).await;
    assert!(contended.body["holder"].is_object(), "{}", contended.body);
    let contended = contended.ticket(409);
    let waiting = bo.client.acquire(lock_name, asked.clone()).await.ticket(202);
    let cy = server.client("codex");
    let behind = cy.wait_for(lock_name, 300).await;
    let before = server.client("admin").get("/v1/whoami").await.sequence();
    let taken = take(server, way, bo).await;
    let events = events_after(server, before).await;
    let seen: Vec<(u64, &str)> = events.iter().map(|(id, event)| (*id, kind(event))).collect();
    assert_eq!(seen.len(), 2, "{way:?}: {seen:?}");
    assert_eq!((seen[1].0, seen[1].1), (seen[0].0 + 1, "lock.wait_cancelled"), "{way:?}: {seen:?}");
    assert_eq!(taken.sequence(), seen[1].0, "both are one append");
    assert_eq!(events[1].1["data"]["reason"], way.reason());
    assert_eq!(events[1].1["data"]["owner"], bo.user);
    assert_eq!(cy.look(&behind).await["queue_position"], 1, "{way:?}: nobody stands before cy");

    let reply = bo.client.get(&path_of(&waiting, "")).await;
    assert_eq!(reply.body["holder"], Value::Null);
    let ticket = reply.ticket(200);
    assert_eq!(
        (&ticket["state"], &ticket["end_reason"]),
        (&json!("cancelled"), &json!(way.reason()))
    );
    let retried = bo.client.acquire(lock_name, asked.clone()).await;
    assert_eq!(retried.says(), (409, "wait-ended"), "{way:?}: {}", retried.body);
    assert_eq!(retried.header("idempotency-replayed"), Some("true"));
    // Who holds the lock now is shown with a contended ticket, to those who may read of it.
    let shown = bo.client.get(&path_of(&contended, "")).await.body;
    assert_eq!(shown["holder"].is_object(), way == Way::Demotion, "{way:?}: {shown}");
    if way != Way::Demotion {
        assert_own_only(&retried.body, &["ana", "codex"]);
        assert_own_only(&shown, &["ana", "codex"]);
    }
    let id = ticket["ticket_id"].as_str().expect("an id");
    let read = format!("get-lock-ticket {lock_name} {id} --exit-status --repo {REPO}");
    assert_eq!(run(server, &bo.client, &read).0, Some(9), "{way:?}: its wait was cancelled");
    let again = format!(
        "acquire-lock {lock_name} --request-uuid {} --lease-seconds 300 --wait-seconds 600 \
         --repo {REPO}",
        asked["request_uuid"].as_str().expect("a UUID")
    );
    assert_eq!(run(server, &bo.client, &again).0, Some(9), "{way:?}");
}

/// What the one who holds may still do, and what not.
async fn the_holder_is_kept_out(server: &Server, way: Way, held: &Value, ana: &Someone) {
    let (lock_name, id) = (&held["lock_name"], &held["ticket_id"]);
    let [lock_name, id] = [lock_name, id].map(|text| text.as_str().expect("a text"));
    let beat = (path_of(held, "/heartbeat"), FORBIDDEN);
    let list = (format!("/v1/locks?repo={REPO}"), way.read());
    let acquire = format!("/v1/locks/another/tickets?repo={REPO}");
    let asked = Some(json!({ "request_uuid": uuid() }));
    for (request, line, outcome) in [
        (("POST", beat.0.as_str(), None), "heartbeat-lock-ticket LOCK ID --repo REPO", beat.1),
        (("POST", acquire.as_str(), asked), "acquire-lock another --repo REPO", way.write()),
        (("GET", list.0.as_str(), None), "list-locks --repo REPO", list.1),
    ] {
        let line = line.replace("LOCK", lock_name).replace("ID", id).replace("REPO", REPO);
        assert_both(server, &ana.client, request, &line, outcome).await;
    }
    let reply = ana.client.get(&path_of(held, "")).await;
    assert_eq!(reply.body["holder"], Value::Null);
    let ticket = reply.ticket(200);
    assert_eq!((&ticket["state"], &ticket["depth"]), (&json!("held"), &json!(1)));
    assert_own_only(&ticket, &["bo-", "codex"]);
    let (code, shown) =
        run(server, &ana.client, &format!("get-lock-ticket {lock_name} {id} --repo {REPO}"));
    assert_eq!((code, &shown["ticket"]["state"]), (Some(0), &json!("held")), "{way:?}");
    assert_own_only(&shown, &["bo-", "codex"]);
    let own = ana.client.get("/v1/tickets").await;
    assert_eq!((own.status, own.body["items"].as_array().map(Vec::len)), (200, Some(1)), "{way:?}");
}

/// The sequences of the events among these frames.
fn ids(events: &[Event]) -> Vec<u64> {
    let is_event = |event: &&Event| event.data["specversion"] == "1.0";
    events.iter().filter(is_event).map(|event| event.id).collect()
}

/// What the feeds of the one who lost its access bring, while others go on there.
async fn the_feeds_fall_silent(
    server: &Server,
    way: Way,
    ana: &Someone,
    (mut of_repo, mut of_all): (Feed, Feed),
    taken: u64,
) {
    let codex = server.client("codex");
    let other = codex.hold(&format!("after-{}", ana.user), 60).await;
    codex.release(&other).await.ticket(200);
    let filter = format!("?repo={REPO}");
    let (status, ..) = way.read();
    let is_kept = way == Way::Demotion;
    if is_kept {
        of_repo.until(|event| event.name == "lock.released").await;
    } else {
        let rest = ids(&of_repo.until_its_end().await);
        assert!(rest.iter().all(|id| *id < taken), "{way:?}: {rest:?} after {taken}");
    }
    assert_eq!(Feed::open(server, &ana.client, &filter, None).await.status(), status, "{way:?}");
    if way.is_out_of_service() {
        let rest = ids(&of_all.until_its_end().await);
        assert!(rest.iter().all(|id| *id < taken), "{way:?}: {rest:?} after {taken}");
        assert_eq!(Feed::open(server, &ana.client, "", None).await.status(), 403, "{way:?}");
        return;
    }
    // Its own scope is still its own, and the feed tells of it.
    let path = format!("/v1/locks/own/tickets?user={}", ana.user);
    let own = ana.client.post(&path, json!({ "request_uuid": uuid() })).await.ticket(201);
    let own_id = own["sequence"].as_u64().expect("a number");
    let rest = of_all.until(|event| event.id == own_id).await;
    let in_repo = |event: &&Event| event.data["data"]["scope"] == REPO && event.id > taken;
    assert_eq!(rest.iter().filter(in_repo).count() > 0, is_kept, "{way:?}: {rest:?}");
    // And what it had not read yet is hidden as well.
    let mut again = Feed::open(server, &ana.client, "?after=0", None).await;
    let seen = again.until_caught_up().await;
    let in_repo = seen.iter().filter(|event| event.data["data"]["scope"] == REPO).count();
    assert_eq!(in_repo > 0, is_kept, "{way:?}");
    ana.client.release(&own).await.ticket(200);
}

async fn lost_by(server: &Server, way: Way, round: usize, lets_go_by_command: bool) {
    let [lock_name, ana, bo] = ["lock", "ana", "bo"].map(|what| format!("{what}-{round}"));
    let (ana, bo) = (join(server, way, &ana).await, join(server, way, &bo).await);
    let (admin, cy) = (server.client("admin"), server.client("codex"));
    let held = ana.client.hold(&lock_name, 300).await;
    let thread = json!({ "title": "work", "request_uuid": uuid() });
    let threads = format!("/v1/threads?repo={REPO}");
    assert_eq!(ana.client.post(&threads, thread.clone()).await.status, 201);
    the_waiter_leaves(server, way, &lock_name, &bo).await;

    let mut of_repo = Feed::open(server, &ana.client, &format!("?repo={REPO}"), None).await;
    let mut of_all = Feed::open(server, &ana.client, "", None).await;
    of_repo.until_caught_up().await;
    of_all.until_caught_up().await;
    let taken = take(server, way, &ana).await.sequence();
    the_holder_is_kept_out(server, way, &held, &ana).await;
    the_feeds_fall_silent(server, way, &ana, (of_repo, of_all), taken).await;
    let retried = ana.client.post(&threads, thread).await;
    let (status, code, _) = way.read();
    assert_eq!(retried.says(), (status, code), "{way:?}: a thread isn't the writer's own");

    // Nobody else can let go of it, and its owner can.
    let outsider = bo.client.release(&held).await;
    assert!([403, 404].contains(&outsider.status), "{way:?}: {}", outsider.body);
    assert_eq!(cy.release(&held).await.says(), (403, "forbidden"));
    let before = admin.get("/v1/whoami").await.sequence();
    if lets_go_by_command {
        let id = held["ticket_id"].as_str().expect("an id");
        let line = format!("release-lock-ticket {lock_name} {id} --repo {REPO}");
        let (code, answer) = run(server, &ana.client, &line);
        assert_eq!((code, &answer["ticket"]["state"]), (Some(0), &json!("released")), "{way:?}");
    } else {
        assert_eq!(ana.client.release(&held).await.ticket(200)["state"], "released", "{way:?}");
    }
    let events = events_after(server, before).await;
    let seen: Vec<(u64, &str, &Value)> =
        events.iter().map(|(id, e)| (*id, kind(e), &e["data"]["owner"])).collect();
    let (ana, cy) = (json!(ana.user), json!("codex"));
    let expected = [(before + 1, "lock.released", &ana), (before + 2, "lock.promoted", &cy)];
    assert_eq!(seen, expected, "{way:?}: the next is promoted in the same append");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_loses_access_leaves_the_queue_and_can_still_let_go() {
    let server = Server::start();
    let rounds = WAYS.into_iter().flat_map(|way| [(way, false), (way, true)]);
    for (round, (way, lets_go_by_command)) in rounds.enumerate() {
        lost_by(&server, way, round, lets_go_by_command).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_token_stops_and_its_users_holds_go_on() {
    let server = Server::start();
    let (admin, kept, revoked) =
        (server.client("admin"), server.client("claude"), server.add_token("claude").await);
    let held = revoked.hold("x", 300).await;
    let waiting = server.client("codex").wait_for("x", 300).await;
    let mut feeds = Vec::new();
    for query in [String::new(), format!("?repo={REPO}"), "?lock=x".to_owned()] {
        let mut feed = Feed::open(&server, &revoked, &query, None).await;
        feed.until_caught_up().await;
        feeds.push((query, feed));
    }
    let id = revoked.get("/v1/whoami").await.body["token_id"].clone();
    let path = format!("/v1/admin/tokens/{}", id.as_str().expect("an id"));
    let taken = admin.delete(&path).await.sequence();
    kept.heartbeat(&held, 300).await.ticket(200);
    for (query, mut feed) in feeds {
        let rest = ids(&feed.until_its_end().await);
        assert!(rest.iter().all(|id| *id < taken), "{query}: {rest:?} after {taken}");
        assert_eq!(Feed::open(&server, &revoked, &query, None).await.status(), 401, "{query}");
    }
    let id = held["ticket_id"].as_str().expect("an id");
    let outcome = (401, "unauthenticated", 7);
    let release = format!("release-lock-ticket x {id} --repo {REPO}");
    let of_ticket = path_of(&held, "");
    assert_both(&server, &revoked, ("DELETE", &of_ticket, None), &release, outcome).await;
    let read = format!("get-lock-ticket x {id} --repo {REPO}");
    assert_both(&server, &revoked, ("GET", &of_ticket, None), &read, outcome).await;
    // The owner is the user, not the token.
    assert_eq!(run(&server, &kept, &release).0, Some(0));
    assert_eq!(server.client("codex").look(&waiting).await["state"], "held");
}
