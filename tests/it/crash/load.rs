//! Identities that acquire, heartbeat and release until the server is gone, and remember each
//! answer; and what must then be true of the ledger.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::timeless;
use crate::support::{Client, REPO, Server, path_of, uuid};

const LOCKS: [&str; 3] = ["a", "b", "c"];

/// One identity's work, which goes on over restarts.
struct Worker {
    user: &'static str,
    /// What it asked for and doesn't know the end of: asked again with the same UUID.
    asked: Option<(&'static str, Value)>,
    turn: usize,
}

/// An answer: the ticket that it showed.
pub(super) struct Told {
    user: &'static str,
    ticket: Value,
}

/// All workers.
pub(super) struct Load {
    resting: Vec<Worker>,
    working: JoinSet<(Worker, Vec<Told>)>,
}

impl Load {
    /// One worker for each user.
    pub(super) fn of<const N: usize>(users: [&'static str; N]) -> Self {
        let worker = |(turn, user)| Worker { user, asked: None, turn };
        let resting = users.into_iter().enumerate().map(worker).collect();
        Self { resting, working: JoinSet::new() }
    }

    /// Has all of them work until the server is gone.
    pub(super) fn start(&mut self, server: &Server) {
        for mut worker in self.resting.drain(..) {
            let client = server.client(worker.user);
            self.working.spawn(async move {
                let mut told = Vec::new();
                while worker.work(&client, &mut told).await.is_some() {}
                (worker, told)
            });
        }
    }

    /// What all of them were told, once the server is gone.
    pub(super) async fn answers(&mut self) -> Vec<Told> {
        let mut answers = Vec::new();
        while let Some(ended) = self.working.join_next().await {
            let (worker, told) = ended.expect("a worker doesn't panic");
            self.resting.push(worker);
            answers.extend(told);
        }
        answers
    }
}

impl Worker {
    /// One ticket from its beginning to its end. `None` if no answer came, or the server drains.
    async fn work(&mut self, client: &Client, told: &mut Vec<Told>) -> Option<()> {
        let turn = self.turn;
        let (lock_name, fields) = self.asked.get_or_insert_with(|| {
            let wait_seconds = if turn.is_multiple_of(2) { 600 } else { 0 };
            let fields = json!({
                "request_uuid": uuid(), "lease_seconds": 300, "wait_seconds": wait_seconds,
            });
            (LOCKS[turn % LOCKS.len()], fields)
        });
        let path = format!("/v1/locks/{lock_name}/tickets?repo={REPO}");
        let mut keep = async |request: reqwest::RequestBuilder| {
            let reply = Client::send(request).await.ok().filter(|reply| reply.status != 503)?;
            let ticket = reply.body["ticket"].clone();
            assert!(ticket.is_object(), "{}: {}", reply.status, reply.body);
            told.push(Told { user: self.user, ticket: ticket.clone() });
            Some(ticket)
        };
        let ticket = keep(client.request("POST", &path).json(&*fields)).await?;
        let is_held = ticket["state"] == "held";
        if is_held {
            let heartbeat = client.request("POST", &path_of(&ticket, "/heartbeat"));
            keep(heartbeat.json(&json!({ "lease_seconds": 300 }))).await?;
        }
        if is_held || ticket["state"] == "waiting" {
            keep(client.request("DELETE", &path_of(&ticket, ""))).await?;
        }
        self.asked = None;
        self.turn += 1;
        Some(())
    }
}

/// Fails unless the server knows of every answer.
pub(super) async fn assert_remembered(server: &Server, told: &[Told]) {
    let events = server.client("admin").events("").await;
    let event_of: BTreeMap<&str, &Value> =
        events.iter().filter_map(|event| Some((event["id"].as_str()?, event))).collect();
    for Told { user, ticket } in told {
        let event = event_of.get(ticket["sequence"].to_string().as_str());
        let event = event.unwrap_or_else(|| panic!("the event of {ticket} is gone"));
        assert_eq!(event["data"]["ticket_id"], ticket["ticket_id"], "{ticket}");
        let now = server.client(user).look(ticket).await;
        for field in ["ticket_id", "owner", "lock_name", "request_uuid", "created_at"] {
            assert_eq!(now[field], ticket[field], "{ticket} is now {now}");
        }
        assert!(now["sequence"].as_u64() >= ticket["sequence"].as_u64(), "{ticket}, now {now}");
        if ticket["fence_token"].is_u64() {
            assert_eq!(now["fence_token"], ticket["fence_token"], "{ticket} is now {now}");
        }
        if ticket["ended_at"].is_string() {
            assert_eq!(timeless(&now), timeless(ticket), "what has ended stays as it was");
        }
    }
}

/// A lock as its events make it: whose tickets are held, and whose wait.
#[derive(Default)]
struct Folded {
    held: Vec<(String, String)>,
    waiting: Vec<(String, String)>,
}

/// Fails unless the ledger is whole: no sequence missing or twice (but where it says so), no
/// request twice, never a free lock with a queue, never two holders, and each lock as its events
/// make it.
pub(super) async fn assert_whole(server: &Server) {
    let admin = server.client("admin");
    let events = admin.events("").await;
    let mut locks: BTreeMap<String, Folded> = BTreeMap::new();
    let mut requests = BTreeSet::new();
    // A lock that is free although somebody waits: the next event has to promote.
    let mut must_promote: Option<String> = None;
    let mut last = 0;
    for event in &events {
        let data = &event["data"];
        let text = |field: &str| data[field].as_str().unwrap_or("").to_owned();
        let kind = event["type"].as_str().expect("a type").trim_start_matches("pearing.");
        let sequence: u64 = event["id"].as_str().and_then(|id| id.parse().ok()).expect("a number");
        if kind == "ledger.restored" {
            // A kill in the middle of a write leaves a torn one, which was never acknowledged.
            // The next start drops it and says so, and sequences jump.
            assert_eq!(data["reason"], "torn-tail-dropped", "{event}");
            assert_eq!((&data["last_sequence"], sequence > last), (&json!(last), true), "{event}");
        } else {
            assert_eq!(sequence, last + 1, "no sequence is missing or twice: {event}");
        }
        last = sequence;
        if let Some(lock_name) = must_promote.take() {
            assert_eq!((kind, text("lock_name")), ("lock.promoted", lock_name), "{event}");
        }
        if !kind.starts_with("lock.") {
            continue;
        }
        if let Some(request) = data["request_uuid"].as_str() {
            let is_new = requests.insert((text("owner"), request.to_owned()));
            assert!(is_new, "a request made two tickets: {event}");
        }
        let lock = locks.entry(text("lock_name")).or_default();
        let ticket = (text("owner"), text("ticket_id"));
        match kind {
            "lock.acquired" => lock.held.push(ticket),
            "lock.queued" => lock.waiting.push(ticket),
            "lock.promoted" => {
                lock.waiting.retain(|waiting| *waiting != ticket);
                lock.held.push(ticket);
            }
            "lock.released" | "lock.expired" | "lock.broken" => {
                lock.held.retain(|held| *held != ticket);
            }
            "lock.wait_cancelled" | "lock.wait_timed_out" => {
                lock.waiting.retain(|waiting| *waiting != ticket);
            }
            _ => {}
        }
        assert!(lock.held.windows(2).all(|two| two[0].0 == two[1].0), "two holders: {event}");
        if lock.held.is_empty() && !lock.waiting.is_empty() {
            must_promote = Some(text("lock_name"));
        }
    }
    assert_eq!(must_promote, None, "an append was cut in two");
    for (lock_name, folded) in locks {
        let lock = admin.lock(&lock_name).await;
        let ids = |list: &str| -> BTreeSet<String> {
            let tickets = lock[list].as_array().expect("a list");
            tickets.iter().filter_map(|t| t["ticket_id"].as_str()).map(str::to_owned).collect()
        };
        let expected = |tickets: Vec<(String, String)>| -> BTreeSet<String> {
            tickets.into_iter().map(|(_, ticket_id)| ticket_id).collect()
        };
        assert_eq!((ids("holds"), ids("queue")), (expected(folded.held), expected(folded.waiting)));
    }
}
