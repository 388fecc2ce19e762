//! The matrix over HTTP: each cell is one request for a fresh object.

use std::collections::{BTreeMap, BTreeSet};

use pearing::http::every_route;
use serde_json::{Value, json};

use super::askers::{ASKERS, Asker};
use super::rows::{Cell, Row, rows};
use super::rules::{Says, judge};
use super::world::{Object, World};
use crate::support::Reply;

/// What a cell is, for messages.
pub(super) fn label(asker: &Asker, row: &Row, cell: &Cell) -> String {
    let Cell { spot, thing, .. } = cell;
    format!("{}: {} {} of {thing:?} in {spot:?}", asker.name, row.method, row.path)
}

/// The text with the object's words in place of the names in braces.
pub(super) fn filled(template: &str, object: &Object) -> String {
    let mut text = template.replace("{scope}", &object.scope);
    for (name, value) in &object.values {
        text = text.replace(&format!("{{{name}}}"), value);
    }
    assert!(!text.contains('{'), "{template}: {object:?} lacks something");
    text
}

fn request(row: &Row, object: &Object) -> (String, Option<Value>) {
    let mut path = filled(row.path, object);
    if row.is_scoped {
        let (name, value) = object.scope_parameter();
        path = format!("{path}?{name}={value}");
    }
    let body = (row.body)(object);
    (path, (!body.is_null()).then_some(body))
}

/// What of an answer could tell something: all but when it was given, to which request, and of
/// which state.
fn telling(reply: &Reply) -> (u16, BTreeMap<&str, &str>, &Value) {
    let headers = reply.headers.keys().map(|name| name.as_str());
    let differing = ["date", "x-request-id", "pearing-sequence"];
    let headers = headers.filter(|name| !differing.contains(name));
    let headers = headers.map(|name| (name, reply.header(name).unwrap_or_default())).collect();
    (reply.status, headers, &reply.body)
}

/// What was found so far.
#[derive(Default)]
struct Findings {
    wrong: Vec<String>,
    /// How many cells have each outcome.
    counts: BTreeMap<Says, usize>,
    /// The first of the answers to an asker that may not depend on what there is, by row and by
    /// what they say; and which cell it was.
    blind: BTreeMap<(usize, &'static str, u16), (String, Reply)>,
}

impl Findings {
    async fn look(
        &mut self,
        world: &World,
        asker: &'static Asker,
        at: usize,
        row: &Row,
        cell: &Cell,
    ) {
        let object = world.object(asker, row.kind, cell.spot, cell.thing).await;
        let verdict = judge(row.needs, asker, &object);
        let expected = verdict.err().map_or(cell.then, |refused| refused.says);
        *self.counts.entry(expected).or_default() += 1;
        let (path, body) = request(row, &object);
        let before = world.head().await;
        let reply = world.client(asker).call(row.method, &path, body).await;
        let label = label(asker, row, cell);
        if reply.says() != expected {
            let said = format!("{label}: {:?}, not {expected:?}: {}", reply.says(), reply.body);
            self.wrong.push(said);
        }
        // A refusal appends nothing, and neither does a read.
        let changes = reply.status < 300 && row.method != "GET" || reply.code() == "lock-contended";
        if !changes && world.head().await != before {
            self.wrong.push(format!("{label}: something was appended"));
        }
        if let Err(refused) = verdict
            && refused.is_blind
        {
            let key = (at, asker.name, refused.says.0);
            let (first, seen) = self.blind.entry(key).or_insert((label.clone(), reply.clone()));
            if telling(seen) != telling(&reply) {
                self.wrong.push(format!("{label}: {reply:?} differs from {first}: {seen:?}"));
            }
        }
    }
}

#[test]
fn every_route_has_a_row_and_every_row_a_route() {
    // The calls of the protocol there are the calls of these routes.
    let routes = every_route().into_iter().filter(|(_, path)| *path != "/mcp");
    let routes: BTreeSet<String> = routes.map(|(m, p)| format!("{m} {p}")).collect();
    let rows = rows();
    let asked: BTreeSet<String> = rows.iter().map(|r| format!("{} {}", r.method, r.path)).collect();
    let (none, empty) = (BTreeSet::new(), Vec::<&str>::new());
    assert_eq!(routes.difference(&asked).collect::<BTreeSet<_>>(), none, "routes without a row");
    assert_eq!(asked.difference(&routes).collect::<BTreeSet<_>>(), none, "rows without a route");
    let idle: Vec<&str> = rows.iter().filter(|r| r.cells.is_empty()).map(|r| r.path).collect();
    assert_eq!(idle, empty, "rows that ask for nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_request_is_answered_as_the_rules_say() {
    let world = World::make().await;
    let (rows, mut findings) = (rows(), Findings::default());
    for asker in &ASKERS {
        for (at, row) in rows.iter().enumerate() {
            for cell in &row.cells {
                findings.look(&world, asker, at, row, cell).await;
            }
        }
    }
    let Findings { wrong, counts, blind } = findings;
    println!("{counts:?}, {} kinds of answers that must tell nothing", blind.len());
    assert!(wrong.is_empty(), "{} wrong cells:\n{}", wrong.len(), wrong.join("\n"));
    // Whoever is nobody is told the same, whatever it asks for.
    let nobody: Vec<_> =
        blind.values().filter(|(_, reply)| reply.status == 401).map(|(_, r)| telling(r)).collect();
    assert!(nobody.windows(2).all(|two| two[0] == two[1]), "{nobody:?}");
    for says in [(401, "unauthenticated"), (403, "forbidden"), (404, "not-found"), (200, "")] {
        assert!(counts[&says] > 100, "{says:?} is tried: {counts:?}");
    }
}

#[tokio::test]
async fn an_agent_is_given_no_role_and_no_name_of_anothers() {
    let world = World::of_users().await;
    let rules = [
        ("PUT", "/v1/admin/teams/platform/members/wim.helper", json!({ "role": "read" }), 422),
        ("PUT", "/v1/admin/access/wim.helper?team=platform", json!({ "role": "read" }), 422),
        ("POST", "/v1/admin/users", json!({ "user": "wim.other" }), 422),
        // It may well have a token from the server's administrator.
        ("POST", "/v1/admin/tokens", json!({ "user": "wim.helper" }), 201),
    ];
    for (method, path, body, status) in rules {
        let reply = world.admin.call(method, path, Some(body)).await;
        assert_eq!(reply.status, status, "{method} {path}: {}", reply.body);
    }
}
