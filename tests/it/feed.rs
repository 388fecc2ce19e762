//! The feed, as curl sees it: each event once and in order, to whoever may read it.

mod cases;
mod cut;
mod drift;
mod load;
mod session;

use serde_json::{Value, json};

use crate::support::{Client, Event, Feed, Frame, REPO, Server};

/// The sequences of the events among these, without control frames.
fn ids(events: &[Event]) -> Vec<u64> {
    let is_event = |event: &&Event| event.data["specversion"] == "1.0";
    events.iter().filter(is_event).map(|event| event.id).collect()
}

/// Makes events: the lock is taken and let go again.
async fn use_lock(client: &Client, lock_name: &str) {
    let held = client.hold(lock_name, 60).await;
    client.release(&held).await.ticket(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_event_comes_once_and_in_order_while_others_write() {
    const ROUNDS: usize = 100;
    let server = Server::start();
    let admin = server.client("admin");
    let head = admin.get("/v1/whoami").await.sequence();
    let mut from_start = Feed::open(&server, &admin, "?after=0", None).await;
    let mut from_now = Feed::open(&server, &admin, "", None).await;
    let first = from_now.frame().await;
    assert!(matches!(first, Some(Frame::Retry(1000..=3000))), "{first:?}");
    let first = from_now.event().await.expect("a frame comes at once");
    assert_eq!((first.name.as_str(), first.id), ("caught-up", head));
    assert_eq!(first.data, json!({ "sequence": head }));

    let mut writers = tokio::task::JoinSet::new();
    for (writer, user) in ["claude", "codex", "claude", "codex"].into_iter().enumerate() {
        let client = server.client(user);
        writers.spawn(async move {
            for round in 0..ROUNDS {
                use_lock(&client, &format!("lock-{writer}-{round}")).await;
            }
        });
    }
    // Readers who come while there is much going on.
    let mut late = Feed::open(&server, &admin, "?after=0", None).await;
    let last = head + (4 * ROUNDS * 2) as u64;
    let is_last = |event: &Event| event.id == last && event.name != "checkpoint";
    for feed in [&mut from_start, &mut late] {
        let events = feed.until(is_last).await;
        assert_eq!(ids(&events), (1..=last).collect::<Vec<_>>());
        assert_eq!(events.iter().filter(|event| event.name == "caught-up").count(), 1);
    }
    let events = from_now.until(is_last).await;
    assert_eq!(ids(&events), (head + 1..=last).collect::<Vec<_>>());
    writers.join_all().await;

    // The pages show the same bytes.
    let pages = admin.events("").await;
    for (event, shown) in events.iter().zip(&pages[usize::try_from(head).unwrap_or(0)..]) {
        assert_eq!(&event.data, shown);
        assert_eq!(format!("pearing.{}", event.name), event.data["type"].as_str().unwrap_or(""));
        assert_eq!(event.id.to_string(), event.data["id"].as_str().unwrap_or(""));
    }
    for (name, value) in [
        ("content-type", "text/event-stream"),
        ("cache-control", "no-store"),
        ("x-accel-buffering", "no"),
    ] {
        assert_eq!(late.header(name), Some(value));
    }
    assert_eq!(late.header("content-encoding"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_feed_that_is_cut_and_resumed_has_no_gap_and_no_repeat() {
    const CUTS: usize = 8;
    let mut server = Server::start();
    let mut seen = Vec::new();
    let mut cursor = "0".to_owned();
    for cut in 0..CUTS {
        let admin = server.client("admin");
        let client = server.client("claude");
        let writing = tokio::spawn(async move {
            for round in 0..10 {
                use_lock(&client, &format!("lock-{cut}-{round}")).await;
            }
        });
        // What is in the address is older than what a reader sends when it comes back.
        let mut feed = Feed::open(&server, &admin, "?after=0", Some(&cursor)).await;
        for _ in 0..=cut * 3 {
            let event = feed.event().await.expect("the feed goes on");
            cursor = event.id.to_string();
            seen.extend(ids(&[event]));
        }
        drop(feed);
        writing.await.expect("the writer doesn't panic");
        if cut % 4 == 3 {
            server.crash();
        }
    }
    let admin = server.client("admin");
    let mut feed = Feed::open(&server, &admin, "", Some(&cursor)).await;
    seen.extend(ids(&feed.until_caught_up().await));
    let head = admin.get("/v1/whoami").await.sequence();
    assert_eq!(seen, (1..=head).collect::<Vec<_>>());
}

/// What stands in an event, without the frame around it.
fn kind(event: &Value) -> &str {
    event["type"].as_str().unwrap_or("").trim_start_matches("pearing.")
}

#[tokio::test]
async fn filters_let_through_exactly_what_matches() {
    let server = Server::start();
    let (admin, claude, codex) =
        (server.client("admin"), server.client("claude"), server.client("codex"));
    let made = admin.post("/v1/admin/repos", json!({ "repo": "teams/platform/api" })).await;
    assert_eq!(made.status, 201);
    use_lock(&claude, "x").await;
    let held = claude.hold("x", 60).await;
    let waiting = codex.wait_for("x", 60).await;
    claude.heartbeat(&held, 90).await.ticket(200);
    claude.release(&held).await.ticket(200);
    codex.release(&waiting).await.ticket(200);
    use_lock(&codex, "y").await;
    for query in ["repo=teams/platform/api", "team=platform", "user=claude"] {
        let fields = json!({ "request_uuid": crate::support::uuid() });
        let reply = claude.post(&format!("/v1/locks/x/tickets?{query}"), fields).await;
        assert_eq!(reply.status, 201, "{}", reply.body);
    }
    let all = admin.events("").await;
    let in_repo = |event: &Value| event["data"]["scope"] == REPO || event["data"]["repo"] == REPO;
    let is_lock = |event: &Value| kind(event).starts_with("lock.");
    let of_ledger = |event: &Value| kind(event).starts_with("ledger.");
    let has_lock = |event: &Value, name: &str| event["data"]["lock_name"] == name;
    type Matches<'a> = Box<dyn Fn(&Value) -> bool + 'a>;
    let filters: Vec<(&str, Matches<'_>)> = vec![
        ("repo=teams/platform/website", Box::new(|e| in_repo(e) || of_ledger(e))),
        ("lock=x", Box::new(|e| has_lock(e, "x") || of_ledger(e))),
        ("type=lock.*", Box::new(|e| is_lock(e))),
        (
            "type=lock.promoted,lock.re*",
            Box::new(|e| ["lock.promoted", "lock.released"].contains(&kind(e))),
        ),
        ("type=*.created", Box::new(|e| kind(e).ends_with(".created"))),
        ("exclude_type=lock.heartbeat", Box::new(|e| kind(e) != "lock.heartbeat")),
        (
            "type=lock.*&exclude_type=lock.acquired,lock.released",
            Box::new(|e| is_lock(e) && !["lock.acquired", "lock.released"].contains(&kind(e))),
        ),
        ("actor=codex", Box::new(|e| e["actor"] == "codex" || of_ledger(e))),
        ("actor=ledger", Box::new(|e| e["actor"] == "ledger")),
        (
            "repo=teams/platform/website&lock=x&actor=claude&type=lock.*",
            Box::new(|e| e["data"]["scope"] == REPO && has_lock(e, "x") && e["actor"] == "claude"),
        ),
    ];
    for (filter, matches) in filters {
        let expected: Vec<Value> = all.iter().filter(|event| matches(event)).cloned().collect();
        assert!(!expected.is_empty() && expected.len() < all.len(), "{filter} proves something");
        let page = admin.events(&format!("&{filter}")).await;
        assert_eq!(page, expected, "{filter}");
        let mut feed = Feed::open(&server, &admin, &format!("?{filter}&after=0"), None).await;
        let mut events = feed.until_caught_up().await;
        let caught_up = events.pop().expect("it is the last");
        assert_eq!(caught_up.id, all.len() as u64, "{filter}: everything was looked at");
        let data: Vec<Value> = events.into_iter().map(|event| event.data).collect();
        assert_eq!(data, expected, "{filter}");
    }
}

#[tokio::test]
async fn a_start_that_cannot_be_is_refused() {
    let server = Server::start();
    let claude = server.client("claude");
    let head = claude.get("/v1/whoami").await.sequence();
    let beyond = (head + 1).to_string();
    for start in [beyond.as_str(), "-1", "+1", "x", "1.5", "1e3", "99999999999999999999999"] {
        let feed = Feed::open(&server, &claude, "", Some(start)).await;
        assert_eq!(feed.status(), 422, "Last-Event-ID: {start}");
        let after = start.replace('+', "%2B");
        let feed = Feed::open(&server, &claude, &format!("?after={after}"), None).await;
        assert_eq!(feed.status(), 422, "after={start}");
        assert_eq!(feed.header("content-type"), Some("application/problem+json"));
        let page = claude.get(&format!("/v1/events?after={after}")).await;
        assert_eq!(page.says(), (422, "invalid-argument"), "after={start}");
    }
    for query in ["?type=", "?type=lock.?", "?lock=a/b", "?actor=-", "?repo=x", "?since=1"] {
        assert_eq!(Feed::open(&server, &claude, query, None).await.status(), 422, "{query}");
    }
    assert_eq!(Feed::open(&server, &claude, "?team=nothing", None).await.status(), 404);
    let mut feed = Feed::open(&server, &claude, "", Some("")).await;
    let first = feed.event().await.expect("an empty header counts as absent");
    assert_eq!((feed.status(), first.name.as_str(), first.id), (200, "caught-up", head));
    let mut feed = Feed::open(&server, &claude, "", Some(&head.to_string())).await;
    let first = feed.event().await.expect("the head itself is no mistake");
    assert_eq!((first.name.as_str(), first.id), ("caught-up", head));
}

#[tokio::test]
async fn a_revoked_token_ends_its_feed_and_no_other() {
    let server = Server::start();
    let admin = server.client("admin");
    let (kept, revoked) = (server.client("claude"), server.add_token("claude").await);
    let mut kept_feed = Feed::open(&server, &kept, "", None).await;
    let mut feed = Feed::open(&server, &revoked, "", None).await;
    kept_feed.until_caught_up().await;
    feed.until_caught_up().await;
    let id = revoked.get("/v1/whoami").await.body["token_id"].clone();
    let path = format!("/v1/admin/tokens/{}", id.as_str().expect("an id"));
    let at = admin.delete(&path).await.sequence();
    let got = ids(&feed.until_its_end().await);
    assert!(got.iter().all(|sequence| *sequence <= at), "nothing after the revocation: {got:?}");
    use_lock(&kept, "x").await;
    kept_feed.until(|event| event.name == "lock.released").await;
    assert_eq!(Feed::open(&server, &revoked, "", None).await.status(), 401);
}

#[tokio::test]
async fn a_lost_scope_ends_its_own_feed_and_falls_silent_on_others() {
    let server = Server::start();
    let (admin, claude) = (server.client("admin"), server.client("claude"));
    let dee = server.add_writer("dee").await;
    let filter = format!("?repo={REPO}");
    let mut of_scope = Feed::open(&server, &dee, &filter, None).await;
    let mut of_all = Feed::open(&server, &dee, "", None).await;
    of_scope.until_caught_up().await;
    of_all.until_caught_up().await;
    use_lock(&claude, "before").await;
    of_scope.until(|event| event.name == "lock.released").await;
    of_all.until(|event| event.name == "lock.released").await;
    let left = admin.delete("/v1/admin/teams/platform/members/dee").await.sequence();
    use_lock(&claude, "after").await;
    let rest = of_scope.until_its_end().await;
    assert!(ids(&rest).iter().all(|sequence| *sequence < left), "{rest:?}");
    assert_eq!(Feed::open(&server, &dee, &filter, None).await.status(), 404);
    // Its own scope is still its own.
    let fields = json!({ "request_uuid": crate::support::uuid() });
    let own = dee.post("/v1/locks/own/tickets?user=dee", fields).await.ticket(201);
    let rest = of_all.until(|event| event.id == own["sequence"].as_u64().unwrap_or(0)).await;
    assert_eq!(ids(&rest), [own["sequence"].as_u64().unwrap_or(0)], "{rest:?}");
    let mut again = Feed::open(&server, &dee, "?after=0", None).await;
    let seen = again.until_caught_up().await;
    assert!(seen.iter().all(|event| event.data["data"]["scope"] != REPO), "{seen:?}");
}

#[tokio::test]
async fn a_persons_agents_have_their_feeds_from_the_persons_share() {
    let mut server = Server::start();
    server.kill();
    server.serve_with(&["--feeds-per-identity", "2"]);
    let claude = server.client("claude");
    let mut agents = Vec::new();
    for name in ["one", "two"] {
        let made = claude.post("/v1/agents", json!({ "name": name })).await;
        agents.push(server.client_with(made.body["token"].as_str().expect("it is shown")));
    }
    let feeds = [
        Feed::open(&server, &claude, "", None).await,
        Feed::open(&server, &agents[0], "", None).await,
    ];
    assert!(feeds.iter().all(|feed| feed.status() == 200));
    assert_eq!(Feed::open(&server, &agents[1], "", None).await.status(), 429);
    assert_eq!(Feed::open(&server, &server.client("codex"), "", None).await.status(), 200);
}

#[tokio::test]
async fn a_page_of_long_replies_is_short_and_goes_on() {
    let server = Server::start();
    let claude = server.client("claude");
    let reply = json!({ "kind": "note", "body": "\u{1f600}".repeat(16_000) });
    for _ in 0..40 {
        let path = format!("/v1/threads/42/replies?repo={REPO}");
        assert_eq!(claude.post(&path, reply.clone()).await.status, 201);
    }
    let (mut start, mut seen, mut pages) = ("after=0".to_owned(), 0, 0);
    loop {
        let path = format!("/v1/events?type=thread.replied&limit=1000&{start}");
        let page = claude.get(&path).await.body;
        seen += page["items"].as_array().expect("a list").len();
        pages += 1;
        match page["next"].as_str() {
            Some(next) => start = format!("cursor={next}"),
            None => break,
        }
    }
    assert_eq!((seen, pages), (40, 3), "a page has a mebibyte and little more");
    let mut feed = Feed::open(&server, &claude, "?type=thread.replied&after=0", None).await;
    let events = feed.until_caught_up().await;
    assert_eq!(events.len(), 40 + 1, "a feed has them all, and then catches up");
}

#[tokio::test]
async fn a_disabled_users_feed_ends() {
    let server = Server::start();
    let codex = server.client("codex");
    let mut feed = Feed::open(&server, &codex, "", None).await;
    feed.until_caught_up().await;
    let disabled = server.client("admin").post("/v1/admin/users/codex/disable", json!({})).await;
    assert_eq!(disabled.status, 200);
    let rest = feed.until_its_end().await;
    assert!(ids(&rest).is_empty(), "{rest:?}");
    let status = Feed::open(&server, &codex, "", None).await.status();
    assert!([401, 403].contains(&status), "{status}");
}

#[tokio::test]
async fn events_that_one_may_not_read_never_appear() {
    let server = Server::start();
    let (admin, claude) = (server.client("admin"), server.client("claude"));
    let eve = server.add_user("eve").await;
    let mut feed = Feed::open(&server, &eve, "", None).await;
    feed.until_caught_up().await;
    use_lock(&claude, "secret").await;
    let fields = json!({ "request_uuid": crate::support::uuid(), "note": "secret" });
    claude.post("/v1/locks/secret/tickets?user=claude", fields.clone()).await.ticket(201);
    server.add_user("mallory").await;
    let own = eve.post("/v1/locks/own/tickets?user=eve", fields).await.ticket(201);
    let sequence = own["sequence"].as_u64().expect("a number");
    let live = feed.until(|event| event.id == sequence).await;
    assert_eq!(ids(&live), [sequence]);
    let mut history = Feed::open(&server, &eve, "?after=0", None).await;
    let seen = history.until_caught_up().await;
    let named: Vec<(&str, &Value)> =
        seen.iter().map(|event| (event.name.as_str(), &event.data["data"]["user"])).collect();
    let expected = [
        ("ledger.opened", &json!(null)),
        ("user.created", &json!("eve")),
        ("token.issued", &json!("eve")),
        ("lock.acquired", &json!(null)),
        ("caught-up", &json!(null)),
    ];
    assert_eq!(named, expected);
    assert_eq!(eve.events("").await.len(), 4);
    assert!(admin.events("").await.len() > 10, "there was more to see");
}

#[tokio::test]
async fn a_feed_with_nothing_to_say_says_that_it_lives() {
    let server = Server::start();
    let mut feed = Feed::open(&server, &server.client("claude"), "", None).await;
    feed.until_caught_up().await;
    let began = pearing::clock::monotonic();
    assert_eq!(feed.frame().await, Some(Frame::Comment));
    let after = pearing::clock::elapsed(began).as_secs();
    assert!((10..=20).contains(&after), "a comment every 15 s at the latest: {after}");
}
