//! Every view of the locks is the same: a ticket, its lock, the list of locks, one's own tickets,
//! what a reader makes of the feed alone, and what an auditor replays of the exported ledger.

use std::collections::{BTreeMap, BTreeSet};

use pearing::audit::{Replay, Silent, Source};
use pearing::domain::id::Sequence;
use pearing::projection::as_of::AsOf;
use serde_json::{Value, json};

use crate::simulation::rng::Rng;
use crate::support::{Client, REPO, RawFeed, Server, SseFrame, path_of, uuid};

const USERS: usize = 5;
const LOCKS: usize = 8;
const OPERATIONS: usize = 2_000;
const LOOK_EVERY: usize = 100;

/// A ticket as its events made it.
#[derive(Debug, Clone, PartialEq)]
struct Folded {
    lock_name: String,
    owner: String,
    state: &'static str,
    fence_token: Value,
    lease_expires_at: Value,
}

/// The locks of the repository, made of the feed's events and nothing else.
#[derive(Default)]
struct Fold {
    sequence: u64,
    tickets: BTreeMap<String, Folded>,
    /// Held tickets by lock, in the order in which they were taken.
    holds: BTreeMap<String, Vec<String>>,
    /// Places by lock: an identity, and its waiting tickets.
    queues: BTreeMap<String, Vec<(String, Vec<String>)>>,
    /// The depth that each lock's last event said.
    depths: BTreeMap<String, u64>,
    counts: BTreeMap<String, usize>,
}

impl Fold {
    fn apply(&mut self, frame: &SseFrame) {
        self.sequence = frame.sequence();
        let event: Value = serde_json::from_str(&frame.data).expect("it is JSON");
        *self.counts.entry(frame.name.clone()).or_default() += 1;
        let Some(step) = frame.name.strip_prefix("lock.") else { return };
        let data = &event["data"];
        let text = |field: &str| data[field].as_str().expect("each lock event has it").to_owned();
        let (id, lock, owner) = (text("ticket_id"), text("lock_name"), text("owner"));
        let state = match step {
            "acquired" | "promoted" | "heartbeat" => "held",
            "queued" => "waiting",
            "contended" => "contended",
            "deadlock_rejected" => "deadlock_rejected",
            "released" => "released",
            "expired" => "expired",
            "broken" => "broken",
            "wait_cancelled" => "cancelled",
            "wait_timed_out" => "timed_out",
            other => panic!("an event that nobody knows: {other}"),
        };
        self.leave(&lock, &id);
        match state {
            "held" => {
                let holds = self.holds.entry(lock.clone()).or_default();
                if !holds.contains(&id) {
                    holds.push(id.clone());
                }
            }
            "waiting" => self.join(&lock, &owner, &id),
            _ => self.holds.entry(lock.clone()).or_default().retain(|held| *held != id),
        }
        if let Some(depth) = data["depth"].as_u64() {
            self.depths.insert(lock.clone(), depth);
        }
        let ticket = self.tickets.entry(id).or_insert_with(|| Folded {
            lock_name: lock,
            owner,
            state,
            fence_token: Value::Null,
            lease_expires_at: Value::Null,
        });
        ticket.state = state;
        if data["fence_token"].is_number() {
            ticket.fence_token = data["fence_token"].clone();
        }
        // A deadline counts only while the ticket is held.
        ticket.lease_expires_at = match state {
            "held" => data["lease_expires_at"].clone(),
            _ => Value::Null,
        };
    }

    fn join(&mut self, lock: &str, owner: &str, id: &str) {
        let queue = self.queues.entry(lock.to_owned()).or_default();
        match queue.iter_mut().find(|(user, _)| user == owner) {
            Some((_, tickets)) => tickets.push(id.to_owned()),
            None => queue.push((owner.to_owned(), vec![id.to_owned()])),
        }
    }

    fn leave(&mut self, lock: &str, id: &str) {
        let queue = self.queues.entry(lock.to_owned()).or_default();
        for (_, tickets) in queue.iter_mut() {
            tickets.retain(|waiting| waiting != id);
        }
        queue.retain(|(_, tickets)| !tickets.is_empty());
    }

    /// Reads on until the state is that of a sequence.
    async fn follow(&mut self, feed: &mut RawFeed, sequence: u64) {
        while self.sequence < sequence {
            let frame = feed.event().await.expect("the feed goes on");
            assert!(frame.sequence() > self.sequence, "each event once and in order");
            self.apply(&frame);
        }
        assert_eq!(self.sequence, sequence, "an answer shows the end of an append");
    }

    fn live(&self, owner: &str) -> BTreeSet<&str> {
        let is_live = |ticket: &Folded| ["held", "waiting"].contains(&ticket.state);
        let own = self.tickets.iter().filter(|(_, t)| t.owner == owner && is_live(t));
        own.map(|(id, _)| id.as_str()).collect()
    }

    /// A ticket as any answer shows it is the one that the feed tells of.
    #[track_caller]
    fn assert_ticket(&self, shown: &Value) {
        let id = shown["ticket_id"].as_str().expect("a ticket has an id");
        let ticket = &self.tickets[id];
        let seen = Folded {
            lock_name: shown["lock_name"].as_str().unwrap_or_default().to_owned(),
            owner: shown["owner"].as_str().unwrap_or_default().to_owned(),
            state: ticket.state,
            fence_token: shown["fence_token"].clone(),
            lease_expires_at: shown["lease_expires_at"].clone(),
        };
        assert_eq!((&seen, shown["state"].as_str()), (ticket, Some(ticket.state)), "{shown}");
        let depth = match ticket.state {
            "held" => self.depths[&ticket.lock_name],
            _ => 0,
        };
        assert_eq!(shown["depth"], depth, "{shown}");
    }

    /// A lock as any answer shows it is the one that the feed tells of.
    #[track_caller]
    fn assert_lock(&self, shown: &Value) {
        let name = shown["lock_name"].as_str().expect("a lock has a name");
        let ids = |list: &Value| -> Vec<String> {
            let tickets = list.as_array().expect("a list").iter();
            tickets.map(|t| t["ticket_id"].as_str().expect("an id").to_owned()).collect()
        };
        let holds = self.holds.get(name).cloned().unwrap_or_default();
        let queue = self.queues.get(name).into_iter().flatten();
        let queue: Vec<String> = queue.flat_map(|(_, tickets)| tickets.clone()).collect();
        assert_eq!((ids(&shown["holds"]), ids(&shown["queue"])), (holds.clone(), queue), "{shown}");
        assert_eq!(shown["depth"], holds.len(), "{shown}");
        let first = holds.first().map(|id| &self.tickets[id]);
        assert_eq!(shown["owner"].as_str(), first.map(|t| t.owner.as_str()), "{shown}");
        assert_eq!(&shown["fence_token"], first.map_or(&Value::Null, |t| &t.fence_token));
        let tickets = [&shown["holds"], &shown["queue"]].map(|list| list.as_array());
        tickets.into_iter().flatten().flatten().for_each(|ticket| self.assert_ticket(ticket));
    }
}

/// Whoever plays, and what was asked for last.
struct Play {
    server: Server,
    users: Vec<(String, Client)>,
    rng: Rng,
    last: Option<(usize, String, Value)>,
    seen: Vec<Seen>,
}

/// What was shown of some sequence.
enum Seen {
    /// All locks that are held.
    Locks(u64, Value),
    /// A lock, held or not.
    Lock(u64, Value),
    /// A ticket, live or over.
    Ticket(u64, Value),
}

/// What was shown, less what depends on when one looks.
fn timeless(shown: &Value) -> Value {
    match shown {
        Value::Array(items) => items.iter().map(timeless).collect(),
        Value::Object(fields) => {
            let lasting = fields.iter().filter(|(name, _)| *name != "lease_remaining_ms");
            lasting.map(|(name, value)| (name.clone(), timeless(value))).collect()
        }
        other => other.clone(),
    }
}

/// All that was shown is what a replay of the exported ledger comes to at the same sequence.
fn assert_replayed(text: Vec<u8>, seen: &[Seen]) {
    let source = Source::Text(Box::new(std::io::Cursor::new(text)));
    let ledger = source.into_ledger(&mut Silent).unwrap_or_else(|error| panic!("{error}"));
    let mut locks_at: BTreeMap<u64, Vec<Value>> = BTreeMap::new();
    for seen in seen {
        let (Seen::Locks(sequence, shown)
        | Seen::Lock(sequence, shown)
        | Seen::Ticket(sequence, shown)) = seen;
        let locks = locks_at.entry(*sequence).or_insert_with(|| {
            let point = Some(AsOf::Sequence(Sequence(*sequence)));
            let replay = Replay::to(&*ledger, point, true).and_then(|replay| replay.shown());
            let state = replay.unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(state.sequence, Sequence(*sequence), "an answer shows the end of an append");
            let locks = serde_json::to_value(state.locks).expect("its keys are names of fields");
            let locks = locks.as_array().expect("a list").iter();
            locks.filter(|lock| lock["scope"] == REPO).map(timeless).collect()
        });
        let tickets = |lock: &Value| -> Vec<Value> {
            let lists = [&lock["holds"], &lock["queue"]].map(|list| list.as_array().cloned());
            lists.into_iter().flatten().flatten().collect()
        };
        match seen {
            Seen::Locks(..) => assert_eq!(timeless(shown), Value::from(locks.clone())),
            Seen::Lock(..) => {
                let replayed = locks.iter().find(|lock| lock["lock_name"] == shown["lock_name"]);
                match replayed {
                    Some(replayed) => assert_eq!(timeless(shown), *replayed),
                    None => assert_eq!(shown["owner"], Value::Null, "nobody holds it: {shown}"),
                }
            }
            Seen::Ticket(..) => {
                let all: Vec<Value> = locks.iter().flat_map(tickets).collect();
                let live = all.iter().find(|ticket| ticket["ticket_id"] == shown["ticket_id"]);
                match shown["state"].as_str() {
                    Some("held" | "waiting") => assert_eq!(Some(&timeless(shown)), live),
                    _ => assert_eq!(live, None, "it is over: {shown}"),
                }
            }
        }
    }
    println!("{} views of {} sequences were replayed", seen.len(), locks_at.len());
}

impl Play {
    /// One operation. What is answered doesn't matter: the views must agree on it.
    async fn step(&mut self, fold: &Fold) {
        let at = self.rng.index(USERS);
        let (name, user) = self.users[at].clone();
        let lock = format!("lock-{}", self.rng.below(LOCKS as u64));
        let own: Vec<&str> = fold.live(&name).into_iter().collect();
        let ticket = (!own.is_empty()).then(|| {
            let id = *self.rng.pick(&own);
            json!({ "ticket_id": id, "lock_name": fold.tickets[id].lock_name, "scope": REPO })
        });
        match (self.rng.below(100), ticket) {
            (0..40, _) | (45..93, None) => {
                let wait = if self.rng.percent(70) { 1 + self.rng.below(10) } else { 0 };
                let fields = json!({
                    "request_uuid": uuid(), "lease_seconds": 5, "wait_seconds": wait,
                    "reentrant": self.rng.percent(30),
                });
                self.last = Some((at, lock.clone(), fields.clone()));
                user.acquire(&lock, fields).await;
            }
            (40..45, _) => {
                if let Some((at, lock, fields)) = self.last.clone() {
                    self.users[at].1.acquire(&lock, fields).await;
                }
            }
            (45..60, Some(ticket)) => drop(user.heartbeat(&ticket, 5).await),
            (60..93, Some(ticket)) => drop(user.release(&ticket).await),
            (93..97, _) => {
                let fence = fold.holds.get(&lock).and_then(|holds| holds.first());
                let fence = fence.map_or(json!(1), |id| fold.tickets[id].fence_token.clone());
                let path = format!("/v1/locks/{lock}/break?repo={REPO}");
                let fields = json!({ "fence_token": fence, "reason": "in the way" });
                self.server.client("admin").post(&path, fields).await;
            }
            (_, _) => {
                let path = format!("/v1/admin/teams/platform/members/{name}");
                self.server.client("admin").delete(&path).await;
                self.server.join_team(&name, "write").await;
            }
        }
    }

    /// Looks at everything in each way. The feed is read up to what each answer shows.
    async fn look(&mut self, fold: &mut Fold, feed: &mut RawFeed) {
        let admin = self.server.client("admin");
        for number in 0..LOCKS {
            let shown = admin.lock(&format!("lock-{number}")).await;
            fold.follow(feed, shown["sequence"].as_u64().expect("a number")).await;
            fold.assert_lock(&shown);
            self.seen.push(Seen::Lock(fold.sequence, shown));
        }
        let list = admin.get(&format!("/v1/locks?repo={REPO}&limit=1000")).await;
        fold.follow(feed, list.sequence()).await;
        self.seen.push(Seen::Locks(fold.sequence, list.body["items"].clone()));
        let shown = list.body["items"].as_array().expect("a list");
        shown.iter().for_each(|lock| fold.assert_lock(lock));
        let held = fold.holds.iter().filter(|(_, holds)| !holds.is_empty());
        let names: Vec<&str> = shown.iter().filter_map(|lock| lock["lock_name"].as_str()).collect();
        assert_eq!(names, held.map(|(name, _)| name.as_str()).collect::<Vec<_>>());
        for (name, user) in &self.users {
            let own = user.get("/v1/tickets?limit=1000").await;
            fold.follow(feed, own.sequence()).await;
            let shown = own.body["items"].as_array().expect("a list");
            shown.iter().for_each(|ticket| fold.assert_ticket(ticket));
            let ids: BTreeSet<_> = shown.iter().filter_map(|t| t["ticket_id"].as_str()).collect();
            assert_eq!(ids, fold.live(name));
            let seen = shown.iter().map(|t| Seen::Ticket(fold.sequence, t.clone()));
            self.seen.extend(seen);
        }
        // The newest, of which most are over.
        let mut ids: Vec<String> = fold.tickets.keys().cloned().collect();
        ids.sort_unstable();
        for id in ids.iter().rev().take(20) {
            let place = json!({
                "ticket_id": id, "lock_name": fold.tickets[id].lock_name, "scope": REPO
            });
            let reply = admin.get(&path_of(&place, "")).await;
            fold.follow(feed, reply.sequence()).await;
            let shown = reply.ticket(200);
            fold.assert_ticket(&shown);
            self.seen.push(Seen::Ticket(fold.sequence, shown));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_feed_alone_tells_what_every_other_view_shows() {
    let seed = u64::from_le_bytes(pearing::random::uuid().as_bytes()[..8].try_into().expect("8"));
    println!("seed {seed}");
    let server = Server::start();
    let mut users = Vec::new();
    for number in 0..USERS {
        let name = format!("player-{number}");
        let client = server.add_writer(&name).await;
        users.push((name, client));
    }
    let mut feed = RawFeed::open(&server, &server.client("admin"), "", Some("0")).await;
    let mut play = Play { server, users, rng: Rng::new(seed), last: None, seen: Vec::new() };
    let mut fold = Fold::default();
    for operation in 0..OPERATIONS {
        if operation % LOOK_EVERY == 0 {
            play.look(&mut fold, &mut feed).await;
        }
        play.step(&fold).await;
        let head = play.server.client("admin").get("/v1/whoami").await.sequence();
        fold.follow(&mut feed, head).await;
    }
    // A lease lasts for five seconds at least, which is longer than some plays.
    play.users[0].1.hold("left-behind", 5).await;
    while !fold.counts.contains_key("lock.expired") {
        let next = fold.sequence + 1;
        fold.follow(&mut feed, next).await;
    }
    let head = play.server.client("admin").get("/v1/whoami").await.sequence();
    fold.follow(&mut feed, head).await;
    play.look(&mut fold, &mut feed).await;
    let exported = play.server.client("admin").request("GET", "/v1/admin/ledger").send().await;
    let exported = exported.expect("the server answers").bytes().await.expect("it comes whole");
    assert_replayed(exported.to_vec(), &play.seen);
    println!("{:?}", fold.counts);
    for step in ["queued", "promoted", "released", "expired", "broken", "wait_cancelled"] {
        assert!(fold.counts.contains_key(&format!("lock.{step}")), "there was no {step}");
    }
}
