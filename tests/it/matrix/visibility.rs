//! The matrix of the feed: every type of event has happened, and each asker sees of it, under
//! each filter, exactly what it may see.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write as _;

use pearing::domain::event::Event as Recorded;
use serde_json::{Value, json};

use super::askers::{ASKERS, Asker, Token};
use super::rules::{FORBIDDEN, NOT_FOUND, UNAUTHENTICATED, role};
use super::world::{Place, World};
use crate::support::{Client, Event, Feed, REPO, Server, eventually, path_of, uuid};

/// Where a scope is, to those who ask.
pub(super) fn place_of(scope: &str) -> Place {
    match scope.split('/').collect::<Vec<_>>()[..] {
        ["teams", "platform", ..] => Place::Here,
        ["users", user, ..] => {
            let known = ASKERS.iter().find(|asker| asker.user == user);
            known.map_or(Place::There, |asker| Place::OfUser(asker.user))
        }
        _ => Place::There,
    }
}

/// Whether a team or repository was given to both.
pub(super) fn shares_a_scope(asker: &Asker, other: &str) -> bool {
    let is_here = |user: &str| {
        let found = ASKERS.iter().find(|asker| asker.user == user);
        user == "claude" || found.is_some_and(|asker| asker.here.is_some())
    };
    // An agent has its person's own repositories too.
    let person = |user: &str| user.split('.').next().unwrap_or_default().to_owned();
    let is_kin = person(asker.user) == person(other);
    is_kin || asker.here.is_some() && is_here(other)
}

/// What stands in an event, without the prefix.
fn kind(event: &Value) -> &str {
    event["type"].as_str().unwrap_or_default().trim_start_matches("pearing.")
}

/// The scope of an event, if it has one.
fn scope_of(event: &Value) -> Option<String> {
    let data = |field: &str| event["data"][field].as_str().map(str::to_owned);
    match kind(event).split('.').next().unwrap_or_default() {
        "ledger" | "user" | "token" | "activity" => None,
        "team" => Some(format!("teams/{}", data("team")?)),
        "repo" => data("repo"),
        "access" | "lock" | "thread" => data("scope"),
        noun => panic!("what is {noun}?"),
    }
}

/// Whether an asker in service may see an event, by access as it is now.
fn may_see(asker: &Asker, event: &Value) -> bool {
    let user = event["data"]["user"].as_str().unwrap_or_default();
    let is_own = user == asker.user || asker.is_server_admin;
    match kind(event).split('.').next().unwrap_or_default() {
        "ledger" => true,
        "user" | "token" => is_own,
        "activity" => is_own || shares_a_scope(asker, user),
        _ => {
            let scope = scope_of(event).expect("all else is in a scope");
            role(asker, place_of(&scope)).is_some()
        }
    }
}

async fn done(client: &Client, method: &str, path: &str, body: Value) -> Value {
    let reply = client.call(method, path, (!body.is_null()).then_some(body)).await;
    assert!(reply.status < 300, "{method} {path}: {}", reply.body);
    reply.body
}

async fn ask(client: &Client, lock_name: &str, scope: &str, fields: [u32; 2]) -> Value {
    let [lease_seconds, wait_seconds] = fields;
    let asked = json!({
        "request_uuid": uuid(),
        "lease_seconds": lease_seconds,
        "wait_seconds": wait_seconds,
    });
    client.post(&format!("/v1/locks/{lock_name}/tickets?{scope}"), asked).await.body
}

/// Everything that a lock can go through, in one scope, by two who may write there.
async fn lock_events(first: &Client, second: &Client, admin: &Client, scope: &str) {
    const LOCK: &str = "shared";
    let held = ask(first, LOCK, scope, [300, 0]).await["ticket"].clone();
    ask(second, LOCK, scope, [300, 0]).await;
    let waiting = ask(second, LOCK, scope, [300, 600]).await["ticket"].clone();
    // A circle of two: the second holds what the first asks for.
    ask(second, "other", scope, [300, 0]).await;
    let rejected = ask(first, "other", scope, [300, 600]).await;
    assert_eq!(rejected["code"], "deadlock-rejected", "{rejected}");
    done(first, "POST", &path_of(&held, "/heartbeat"), json!({})).await;
    done(first, "DELETE", &path_of(&held, ""), Value::Null).await;
    let promoted = done(second, "GET", &path_of(&waiting, ""), Value::Null).await;
    let gone = ask(first, LOCK, scope, [300, 600]).await["ticket"].clone();
    done(first, "DELETE", &path_of(&gone, ""), Value::Null).await;
    ask(first, LOCK, scope, [300, 1]).await;
    let fence = json!({ "fence_token": promoted["ticket"]["fence_token"], "reason": "test" });
    // Not before the wait has run out.
    eventually("the timeout", || async {
        let lock = done(admin, "GET", &format!("/v1/locks/{LOCK}?{scope}"), Value::Null).await;
        lock["queue"].as_array().is_some_and(Vec::is_empty).then_some(())
    })
    .await;
    done(admin, "POST", &format!("/v1/locks/{LOCK}/break?{scope}"), fence).await;
    ask(first, "short", scope, [5, 0]).await;
}

async fn thread_events(client: &Client, scope: &str) {
    let path = format!("/v1/threads?{scope}");
    let made = done(client, "POST", &path, json!({ "title": "work" })).await;
    let part = |rest: &str| format!("/v1/threads/{}/{rest}?{scope}", made["number"]);
    let reply = json!({ "kind": "note", "body": "done" });
    done(client, "POST", &part("replies"), reply).await;
    done(client, "POST", &part("close"), Value::Null).await;
    done(client, "POST", &part("reopen"), Value::Null).await;
}

/// Makes every type of event, and most of them in each place.
async fn history(world: &mut World) {
    let admin = world.admin.clone();
    let named = |name: &str| {
        let asker = ASKERS.iter().find(|a| a.user == name && a.token == Token::Good);
        world.client(asker.expect("it asks")).clone()
    };
    let (wim, helper, lea, dan, kim) =
        (named("wim"), named("wim.helper"), named("lea"), named("dan"), world.server.client("kim"));
    for client in [&wim, &helper, &lea, &dan, &kim, &named("sue"), &named("fay"), &named("root")] {
        done(client, "PUT", "/v1/activity", json!({ "activity": "at work" })).await;
        done(client, "DELETE", "/v1/activity", Value::Null).await;
    }
    for scope in ["repo=teams/platform/website", "team=platform"] {
        lock_events(&wim, &lea, &admin, scope).await;
    }
    lock_events(&kim, &admin, &admin, "repo=teams/vault/safe").await;
    lock_events(&wim, &helper, &admin, "user=wim").await;
    thread_events(&wim, "repo=teams/platform/website").await;
    thread_events(&kim, "repo=teams/vault/safe").await;
    thread_events(&helper, "repo=users/wim/notes").await;
    for scope in ["repo=teams/platform/website", "team=vault", "user=sue"] {
        let path = format!("/v1/admin/access/claude?{scope}");
        done(&admin, "PUT", &path, json!({ "role": "read" })).await;
        done(&admin, "DELETE", &path, Value::Null).await;
    }
    for what in ["disable", "enable"] {
        for user in ["sue", "kim"] {
            done(&admin, "POST", &format!("/v1/admin/users/{user}/{what}"), Value::Null).await;
        }
    }
    world.take_away().await;
    eventually("the expiries", || async {
        let expired = admin.events("&type=lock.expired").await;
        (expired.len() >= 4).then_some(())
    })
    .await;
}

/// Kills the server and leaves the beginning of a write behind, as a power cut does: the next
/// start drops it and says so.
fn tear(server: &mut Server) {
    server.kill();
    let folder = std::fs::read_dir(server.data().join("rocks")).expect("the ledger's folder");
    let files = folder.map(|entry| entry.expect("an entry").path());
    let newest = files.filter(|path| path.extension().is_some_and(|e| e == "log")).max();
    let mut log = OpenOptions::new().append(true).open(newest.expect("a log")).expect("it is ours");
    log.write_all(&[1, 2, 3, 4, 200, 0, 1, 9]).expect("it can be written");
    server.serve();
}

/// An event filter, with what it lets through beside the ledger's own events.
struct Filter {
    query: String,
    scope: Option<String>,
    lock_name: Option<&'static str>,
}

fn filters(asker: &Asker) -> Vec<Filter> {
    let scoped = |name: &str, value: &str, scope: &str| {
        let (query, scope) = (format!("{name}={value}"), Some(scope.to_owned()));
        Filter { query, scope, lock_name: None }
    };
    let own = format!("users/{}", asker.user);
    vec![
        Filter { query: String::new(), scope: None, lock_name: None },
        Filter { query: "lock=shared".to_owned(), scope: None, lock_name: Some("shared") },
        scoped("repo", REPO, REPO),
        scoped("repo", "teams/vault/safe", "teams/vault/safe"),
        scoped("repo", "users/wim/notes", "users/wim/notes"),
        scoped("team", "platform", "teams/platform"),
        scoped("team", "vault", "teams/vault"),
        scoped("user", asker.user, &own),
        scoped("user", "wim", "users/wim"),
        scoped("user", "kim", "users/kim"),
        Filter {
            lock_name: Some("shared"),
            ..scoped("repo", &format!("{REPO}&lock=shared"), REPO)
        },
    ]
}

impl Filter {
    fn wants(&self, event: &Value) -> bool {
        let is_in_scope = self.scope.is_none() || scope_of(event) == self.scope;
        let has_name = self.lock_name.is_none_or(|name| event["data"]["lock_name"] == name);
        kind(event).starts_with("ledger.") || is_in_scope && has_name
    }
}

/// What the asker is answered that opens a feed, if it is not the feed.
fn refusal(asker: &Asker, filter: &Filter) -> Option<(u16, &'static str)> {
    let can_read = |scope: &String| role(asker, place_of(scope)).is_some();
    if asker.token != Token::Good {
        Some(UNAUTHENTICATED)
    } else if !asker.is_in_service {
        Some(FORBIDDEN)
    } else if filter.scope.as_ref().is_some_and(|scope| !can_read(scope)) {
        Some(NOT_FOUND)
    } else {
        None
    }
}

async fn assert_sees(world: &World, asker: &Asker, filter: &Filter, all: &[Value]) -> Vec<Value> {
    let (client, query) = (world.client(asker), &filter.query);
    let label = format!("{} with {query:?}", asker.name);
    let path = format!("?{query}{}after=0", if query.is_empty() { "" } else { "&" });
    let mut feed = Feed::open(&world.server, client, &path, None).await;
    if let Some((status, code)) = refusal(asker, filter) {
        assert_eq!(feed.status(), status, "{label}");
        let page = client.get(&format!("/v1/events?{query}")).await;
        assert_eq!(page.says(), (status, code), "{label}");
        return Vec::new();
    }
    let is_seen = |event: &&Value| may_see(asker, event) && filter.wants(event);
    let expected: Vec<Value> = all.iter().filter(is_seen).cloned().collect();
    let is_event = |event: &Event| event.data["specversion"] == "1.0";
    let seen = feed.until_caught_up().await.into_iter().filter(is_event).map(|event| event.data);
    let of = |events: &[Value]| -> Vec<String> {
        events.iter().map(|e| format!("{} {} {}", e["id"], kind(e), e["subject"])).collect()
    };
    let seen: Vec<Value> = seen.collect();
    assert_eq!(of(&seen), of(&expected), "the feed of {label}");
    assert_eq!(seen, expected, "{label}");
    assert_eq!(client.events(&format!("&{query}")).await, expected, "the pages of {label}");
    expected
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_sees_of_all_events_what_it_may_and_nothing_else() {
    let mut world = World::of_users().await;
    history(&mut world).await;
    tear(&mut world.server);
    world.reconnect();
    let all = world.admin.events("").await;
    let types: BTreeSet<&str> = all.iter().map(kind).collect();
    let known: BTreeSet<&str> = Recorded::TYPES.iter().map(|(name, _)| *name).collect();
    assert_eq!(types, known, "every type of event is in the history");
    let (mut seen_by_some, mut hidden_from_some) = (BTreeSet::new(), BTreeSet::new());
    for asker in &ASKERS {
        for filter in filters(asker) {
            let seen = assert_sees(&world, asker, &filter, &all).await;
            if filter.query.is_empty() && asker.is_in_service && !asker.is_server_admin {
                hidden_from_some.extend(all.iter().filter(|e| !seen.contains(e)).map(kind));
                seen_by_some.extend(seen.iter().map(kind).map(str::to_owned));
            }
        }
    }
    for name in known.iter().filter(|name| !name.starts_with("ledger.")) {
        assert!(seen_by_some.contains(*name), "nobody sees {name}");
        assert!(hidden_from_some.contains(name), "everybody sees {name}");
    }
}
