//! What lists show: all that the asker may see, and nothing else.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::askers::{ASKERS, Asker, Token};
use super::rules::role;
use super::visibility::{place_of, shares_a_scope};
use super::world::World;
use crate::support::REPO;

/// Those who may ask for lists.
fn readers() -> impl Iterator<Item = &'static Asker> {
    ASKERS.iter().filter(|asker| asker.token == Token::Good && asker.is_in_service)
}

async fn listed(world: &World, asker: &Asker, path: &str, field: &str) -> BTreeSet<String> {
    let reply = world.client(asker).get(&format!("{path}?limit=1000")).await;
    assert_eq!(reply.status, 200, "{}: {path}: {}", asker.name, reply.body);
    let items = reply.body["items"].as_array().expect("a list has items");
    items.iter().filter_map(|item| item[field].as_str()).map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_show_what_the_asker_may_see_and_nothing_else() {
    let world = World::of_users().await;
    // Everyone says something while it may, also those who are taken something from later.
    let mut talkers: Vec<&str> = Vec::new();
    for asker in ASKERS.iter().filter(|asker| asker.token == Token::Good) {
        let said = world.client(asker).put("/v1/activity", json!({ "activity": "at work" })).await;
        assert_eq!(said.status, 200, "{}", said.body);
        talkers.push(asker.user);
        world.hold(world.client(asker), &format!("users/{}", asker.user)).await;
    }
    for user in ["claude", "kim"] {
        let client = world.server.client(user);
        let said = client.put("/v1/activity", json!({ "activity": "at work" })).await;
        assert_eq!(said.status, 200, "{}", said.body);
        talkers.push(user);
    }
    world.take_away().await;
    let own_repos = ASKERS.iter().map(|asker| format!("users/{}/notes", asker.user));
    let repos: BTreeSet<String> =
        own_repos.chain([REPO.to_owned(), "teams/vault/safe".to_owned()]).collect();
    for asker in readers() {
        let may_read = |scope: &str| role(asker, place_of(scope)).is_some();
        let teams = ["platform", "vault"].map(str::to_owned).into_iter();
        let expected: BTreeSet<String> =
            teams.filter(|team| may_read(&format!("teams/{team}"))).collect();
        assert_eq!(listed(&world, asker, "/v1/admin/teams", "team").await, expected);
        let expected: BTreeSet<String> =
            repos.iter().filter(|repo| may_read(repo)).cloned().collect();
        let seen = listed(&world, asker, "/v1/admin/repos", "repo").await;
        assert_eq!(seen, expected, "{}", asker.name);
        let is_seen = |user: &&str| {
            *user == asker.user || asker.is_server_admin || shares_a_scope(asker, user)
        };
        let expected: BTreeSet<String> =
            talkers.iter().copied().filter(is_seen).map(str::to_owned).collect();
        let seen = listed(&world, asker, "/v1/activity", "user").await;
        assert_eq!(seen, expected, "what {} sees others do", asker.name);
        let mine = BTreeSet::from([asker.user.to_owned()]);
        assert_eq!(listed(&world, asker, "/v1/tickets", "owner").await, mine, "{}", asker.name);
        let helper = asker.user;
        let agents = ["helper", "spare"].map(|name| format!("{helper}.{name}")).into_iter();
        let has = |agent: &String| {
            asker.person.is_none()
                && (agent.ends_with("spare") || ["wim", "lea", "sue"].contains(&helper))
        };
        let expected: BTreeSet<String> = agents.filter(has).collect();
        assert_eq!(listed(&world, asker, "/v1/agents", "user").await, expected, "{}", asker.name);
    }
}

#[tokio::test]
async fn whoami_tells_each_of_itself_alone() {
    let world = World::of_users().await;
    world.take_away().await;
    let may_ask = |asker: &&Asker| asker.token == Token::Good && asker.is_in_service;
    for asker in ASKERS.iter().filter(may_ask) {
        let who = world.client(asker).get("/v1/whoami").await.body;
        let expected = [
            ("user", json!(asker.user)),
            ("admin", json!(asker.is_server_admin)),
            ("person", json!(asker.person)),
        ];
        for (field, value) in expected {
            assert_eq!(who[field], value, "{}: {field}", asker.name);
        }
        let roles: Vec<&Value> = who["roles"].as_array().expect("a list").iter().collect();
        let here = roles.iter().find(|given| given["scope"] == "teams/platform");
        let role = here.map(|given| given["role"].as_str().unwrap_or_default().to_owned());
        let expected = asker.here.map(|role| format!("{role:?}").to_lowercase());
        assert_eq!(role, expected, "{}", asker.name);
        assert!(roles.iter().all(|given| given["scope"] != "teams/vault"), "{roles:?}");
    }
}
