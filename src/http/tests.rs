//! The wiring: raw requests over a socket, against a service on a ledger in memory.

use std::collections::HashSet;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, ThreadId};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_stream::StreamExt as _;
use tracing::Instrument as _;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::{Layer, layer, registry};

use super::{self as http, Api, FOLDS_MAX, serve};
use crate::clock::LedgerClock;
use crate::domain::command::{Caller, Command};
use crate::domain::event::{Event, LedgerOpened};
use crate::domain::id::{LedgerId, Sequence, TokenId};
use crate::domain::name::Actor;
use crate::domain::time::Time;
use crate::domain::{Limits, State};
use crate::feed::filter::{Filter, Reader};
use crate::feed::subscription::{Frame, Start};
use crate::ledger::Ledger;
use crate::ledger::memory::{Fault, MemoryLedger};
use crate::service::batch::Batch;
use crate::service::{Options, Running, Service};
use crate::wire::token;

/// What the surface takes, unless a test says otherwise.
fn plenty() -> http::Options {
    let plenty = NonZeroU32::new(100_000).expect("it is more than 0");
    http::Options {
        requests_per_second_per_identity: plenty,
        requests_per_second_per_scope: plenty,
        feeds_per_identity: 1000,
        allowed_hosts: Vec::new(),
    }
}

/// A server in which ana is an administrator.
struct Server {
    address: std::net::SocketAddr,
    token: String,
    ledger: Arc<MemoryLedger>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
    _running: Running,
}

/// A service in which ana is an administrator.
struct Started {
    service: Service,
    running: Running,
    ledger: Arc<MemoryLedger>,
    token: String,
}

impl Started {
    fn new() -> Self {
        let ledger = Arc::new(MemoryLedger::default());
        let mut state = State::default();
        let token_id = TokenId(uuid::Uuid::from_u128(1));
        let token = token::format(token_id, &[7; 32]);
        let user: crate::domain::name::UserName = "ana".parse().expect("a name");
        let sha256 = token::hash(&token);
        let limits = Limits::default();
        let mut batch = Batch::open(&mut state, &*ledger, &limits, Time::from_millis(0));
        let ledger_id = LedgerId(uuid::Uuid::from_u128(2));
        batch.record(Actor::Ledger, Event::LedgerOpened(LedgerOpened { ledger_id }));
        for command in [
            Command::CreateUser { user: user.clone(), admin: true },
            Command::IssueToken { token_id, user, sha256, label: None, expires_in_days: None },
        ] {
            let decided = batch.decide(Caller::Ledger, &command).expect("the memory can be read");
            decided.expect("nothing stands against the first user");
        }
        ledger.append(&batch.close().0).expect("the memory doesn't fail");
        let clock = LedgerClock::anchored_after(state.time());
        let options =
            Options { limits, data: None, backup_dir: None, checkpoints: None, reserve_bytes: 0 };
        let (service, running) =
            Service::start(ledger.clone(), state, clock, options).expect("a thread");
        Self { service, running, ledger, token }
    }
}

impl Server {
    async fn start() -> Self {
        Self::start_with(plenty()).await
    }

    async fn start_with(options: http::Options) -> Self {
        let Started { service, running, ledger, token } = Started::new();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(async move {
            let stop = async {
                let _ = stopped.await;
            };
            serve(listener, service, &options, stop).await;
        });
        Self { address, token, ledger, stop, serving, _running: running }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.expect("the server listens")
    }

    /// Sends bytes on a connection of their own, and reads until the server closes it.
    async fn raw(&self, bytes: &[u8]) -> String {
        let mut socket = self.connect().await;
        // An early answer may close the connection before all was sent.
        let _ = socket.write_all(bytes).await;
        let mut answer = Vec::new();
        let _ = socket.read_to_end(&mut answer).await;
        String::from_utf8(answer).expect("answers are UTF-8")
    }

    fn request(&self, method: &str, path: &str, headers: &str, body: &str) -> String {
        format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n{headers}\r\n{body}",
            self.token,
            body.len()
        )
    }

    async fn call(&self, method: &str, path: &str, body: &str) -> String {
        self.raw(self.request(method, path, "connection: close\r\n", body).as_bytes()).await
    }
}

/// The status of an answer and, of a problem, its code and field.
fn outcome(answer: &str) -> String {
    let status = answer.get(9..12).unwrap_or("none");
    let body = json_of(answer);
    let word = |name: &str| body[name].as_str().map(|text| format!(" {text}")).unwrap_or_default();
    format!("{status}{}{}", word("code"), word("field"))
}

/// The body of an answer.
fn json_of(answer: &str) -> serde_json::Value {
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    serde_json::from_str(body).unwrap_or_default()
}

const LOCK: &str = "/v1/locks/x/tickets?user=ana";
const UUID: &str = "00000000-0000-0000-0000-00000000000a";

#[tokio::test]
async fn each_request_that_is_wrong_is_told_what_is_wrong() {
    let server = Server::start().await;
    let big = format!("{{\"note\":\"{}\"}}", "a".repeat(70_000));
    let ticket = format!("/v1/locks/x/tickets/{UUID}?user=ana");
    for (method, path, body, expected) in [
        ("GET", "/v1/whoami", "", "200"),
        ("GET", "/nowhere", "", "404 not-found"),
        ("PUT", "/v1/whoami", "", "405 method-not-allowed"),
        ("GET", "/v1/whoami?x=1", "", "422 invalid-argument x"),
        ("POST", LOCK, "{", "400 malformed"),
        ("POST", LOCK, "{}", "422 invalid-argument request_uuid"),
        ("POST", LOCK, &big, "413 too-large"),
        ("POST", "/v1/locks/x/tickets", "{}", "422 invalid-argument repo"),
        ("POST", "/v1/locks/%2e%2e%2fx/tickets?user=ana", "{}", "422 invalid-argument lock_name"),
        ("GET", "/v1/locks/%ff?user=ana", "", "400 malformed"),
        ("GET", "/v1/locks/x?user=bo", "", "404 not-found"),
        ("GET", "/v1/locks/x?user=ana&as_of=1000", "", "422 invalid-argument as_of"),
        ("GET", "/v1/locks?user=ana&limit=0", "", "422 invalid-argument limit"),
        ("GET", "/v1/locks/x/tickets/1?user=ana", "", "422 invalid-argument ticket_id"),
        ("GET", &ticket, "", "404 not-found"),
        ("DELETE", &ticket, "", "404 not-found"),
        ("GET", "/v1/events?after=1000", "", "422 invalid-argument after"),
        ("GET", "/v1/events?type=Lock", "", "422 invalid-argument type"),
        ("POST", "/v1/admin/users", "{\"user\":\"ana\"}", "409 already-exists"),
        ("POST", "/v1/admin/users", "{\"user\":\"Ana\"}", "422 invalid-argument user"),
    ] {
        let answer = server.call(method, path, body).await;
        assert_eq!(outcome(&answer), expected, "{method} {path}");
        let has_sequence = answer.contains("\r\npearing-sequence: ");
        let is_routed = !matches!(outcome(&answer).as_str(), "404 not-found" if path == "/nowhere")
            && !expected.starts_with("405");
        assert_eq!(has_sequence, is_routed, "{method} {path}: {answer}");
    }
}

#[tokio::test]
async fn a_request_for_another_host_or_from_another_site_is_refused_whatever_it_asks() {
    let server = Server::start().await;
    for (method, path) in [("GET", "/livez"), ("GET", "/nowhere"), ("POST", LOCK)] {
        for headers in [
            "host: evil.example\r\n",
            "host: localhost\r\norigin: https://evil.example\r\n",
            "host: localhost\r\norigin: null\r\n",
        ] {
            let head = format!(
                "{method} {path} HTTP/1.1\r\n{headers}authorization: Bearer {}\r\n\
                 connection: close\r\n\r\n",
                server.token
            );
            let answer = server.raw(head.as_bytes()).await;
            assert_eq!(outcome(&answer), "403 forbidden", "{head}");
            assert!(!answer.contains("access-control-"), "{answer}");
        }
    }
    let none = server.raw(b"GET /livez HTTP/1.1\r\nconnection: close\r\n\r\n").await;
    assert_eq!(outcome(&none), "400 malformed");
    let own = server.request("GET", "/v1/whoami", "origin: http://localhost:1\r\n", "");
    let own = own.replace("\r\norigin", "\r\nconnection: close\r\norigin");
    assert_eq!(outcome(&server.raw(own.as_bytes()).await), "200");
}

#[tokio::test]
async fn a_feed_is_refused_under_the_name_that_was_given() {
    const FEED: &str = "accept: text/event-stream\r\n";
    let server = Server::start().await;
    for (path, headers, expected) in [
        ("/v1/events?limit=5", FEED, "422 invalid-argument limit"),
        ("/v1/events?cursor=0", FEED, "422 invalid-argument cursor"),
        ("/v1/events?after=1000", FEED, "422 invalid-argument after"),
        ("/v1/events", "last-event-id: 1000\r\n", "422 invalid-argument Last-Event-ID"),
        ("/v1/events", "last-event-id: é\r\n", "422 invalid-argument Last-Event-ID"),
        ("/v1/events?after=0", "last-event-id: 1000\r\n", "422 invalid-argument Last-Event-ID"),
        ("/v1/events?cursor=31303030", "", "422 invalid-argument cursor"),
        ("/v1/events?cursor=1000", "", "422 invalid-argument cursor"),
        ("/v1/events?cursor=30&limit=5", "", "200"),
        ("/v1/events?cursor=30&after=0", "", "422 invalid-argument cursor"),
    ] {
        let headers = format!("connection: close\r\n{headers}");
        let answer = server.raw(server.request("GET", path, &headers, "").as_bytes()).await;
        assert_eq!(outcome(&answer), expected, "{path} {headers}");
    }
    let resumed = format!("connection: close\r\nlast-event-id: 1000\r\n{FEED}");
    let answer = server.raw(server.request("GET", "/v1/events", &resumed, "").as_bytes()).await;
    assert_eq!(outcome(&answer), "422 invalid-argument Last-Event-ID");
}

#[tokio::test]
async fn no_token_and_a_wrong_token_are_told_the_same() {
    let server = Server::start().await;
    let wrong = token::format(TokenId(uuid::Uuid::from_u128(1)), &[8; 32]);
    let unknown = token::format(TokenId(uuid::Uuid::from_u128(9)), &[7; 32]);
    let ask = async |header: String| {
        let request = format!(
            "GET /v1/whoami HTTP/1.1\r\nhost: localhost\r\nx-request-id: one\r\n{header}\
             connection: close\r\n\r\n"
        );
        let answer = server.raw(request.as_bytes()).await;
        assert!(answer.contains("\r\nwww-authenticate: Bearer\r\n"), "{answer}");
        answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned())
    };
    let none = ask(String::new()).await;
    assert_eq!(
        outcome(&format!("HTTP/1.1 401 \r\n\r\n{}", none.clone().unwrap_or_default())),
        "401 unauthenticated"
    );
    for token in [wrong, unknown, "x".to_owned()] {
        assert_eq!(ask(format!("authorization: Bearer {token}\r\n")).await, none);
    }
}

#[tokio::test]
async fn a_retried_acquire_is_marked_and_shows_the_ticket_as_it_is_now() {
    let server = Server::start().await;
    let body = format!("{{\"request_uuid\":\"{UUID}\"}}");
    let first = server.call("POST", LOCK, &body).await;
    assert_eq!(outcome(&first), "201");
    assert!(!first.contains("idempotency-replayed"), "{first}");
    let again = server.call("POST", LOCK, &body).await;
    assert_eq!(outcome(&again), "200");
    assert!(again.contains("\r\nidempotency-replayed: true\r\n"), "{again}");
    let (_, json) = first.split_once("\r\n\r\n").expect("an answer has a body");
    let json: serde_json::Value = serde_json::from_str(json).expect("it is JSON");
    let ticket = json["ticket"]["ticket_id"].as_str().expect("it has a ticket");
    let path = format!("/v1/locks/x/tickets/{ticket}?user=ana");
    assert_eq!(outcome(&server.call("DELETE", &path, "").await), "200");
    let ended = server.call("POST", LOCK, &body).await;
    assert_eq!(outcome(&ended), "409 ticket-ended");
    assert!(ended.contains("\r\nidempotency-replayed: true\r\n"), "{ended}");
}

#[tokio::test]
async fn a_flood_is_told_to_slow_down_and_costs_no_heartbeat() {
    let one = NonZeroU32::new(1).expect("it is more than 0");
    let server =
        Server::start_with(http::Options { requests_per_second_per_identity: one, ..plenty() })
            .await;
    let heartbeat = format!("/v1/locks/x/tickets/{UUID}/heartbeat?user=ana");
    // A body that is too large to be read, and is looked at only after the budget.
    let large = "connection: close\r\ncontent-length: 2000000\r\n";
    let head = format!(
        "POST {LOCK} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n{large}\r\n",
        server.token
    );
    let mut refused = server.raw(head.as_bytes()).await;
    assert_eq!(outcome(&refused), "413 too-large");
    while outcome(&refused) == "413 too-large" {
        refused = server.raw(head.as_bytes()).await;
    }
    assert_eq!(outcome(&refused), "429 limit-reached");
    assert!(refused.contains("\r\nretry-after: 1\r\n"), "{refused}");
    assert!(
        refused.contains("\r\npearing-sequence: "),
        "as in every authenticated answer: {refused}"
    );
    assert_eq!(outcome(&server.call("POST", &heartbeat, "").await), "404 not-found");
}

#[tokio::test]
async fn a_scope_has_a_budget_that_only_those_spend_who_may_see_it() {
    let one = NonZeroU32::new(1).expect("it is more than 0");
    let options = http::Options { requests_per_second_per_scope: one, ..plenty() };
    let server = Server::start_with(options).await;
    let user = server.call("POST", "/v1/admin/users", r#"{"user":"cy"}"#).await;
    assert_eq!(outcome(&user), "201");
    let made = server.call("POST", "/v1/admin/tokens", r#"{"user":"cy"}"#).await;
    let stranger = json_of(&made)["token"].as_str().expect("it is shown once").to_owned();
    let flood = async |method: &str, path: &str, token: &str| {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             authorization: Bearer {token}\r\n\r\n"
        );
        let mut outcomes = Vec::new();
        for _ in 0..50 {
            outcomes.push(outcome(&server.raw(head.as_bytes()).await));
        }
        outcomes.sort();
        outcomes.dedup();
        outcomes
    };
    let release = format!("/v1/locks/x/tickets/{UUID}?user=ana");
    let locks = "/v1/locks?user=ana";
    assert_eq!(flood("GET", locks, &stranger).await, ["404 not-found"]);
    let first = server.call("GET", locks, "").await;
    assert_eq!(outcome(&first), "200", "the stranger left the budget as it was");
    let own = flood("GET", locks, &server.token).await;
    assert!(own.contains(&"429 limit-reached".to_owned()), "{own:?}");
    assert_eq!(flood("DELETE", &release, &server.token).await, ["404 not-found"]);
    assert_eq!(flood("GET", "/v1/whoami", &server.token).await, ["200"], "it names no scope");
}

#[tokio::test]
async fn after_a_storage_error_the_connection_ends_without_a_byte() {
    let server = Server::start().await;
    server.ledger.fail_append(1, Fault::Uncertain);
    let body = format!("{{\"request_uuid\":\"{UUID}\"}}");
    assert_eq!(server.call("POST", LOCK, &body).await, "");
}

#[tokio::test]
async fn a_drain_ends_feeds_and_resting_connections_and_leaves_nothing_unanswered() {
    let server = Server::start().await;
    let feed = server.request("GET", "/v1/events", "accept: text/event-stream\r\n", "");
    let mut feeding = server.connect().await;
    feeding.write_all(feed.as_bytes()).await.expect("the server reads");
    let mut text = Vec::new();
    while !String::from_utf8_lossy(&text).contains("event: caught-up\n") {
        assert_ne!(feeding.read_buf(&mut text).await.expect("the feed is open"), 0);
    }
    let resting = server.connect().await;
    server.stop.send(()).expect("the server runs");
    feeding.read_to_end(&mut text).await.expect("the feed ends in order");
    assert!(text.ends_with(b"0\r\n\r\n"), "{}", String::from_utf8_lossy(&text));
    drop(resting);
    tokio::time::timeout(Duration::from_secs(20), server.serving)
        .await
        .expect("the drain is bounded")
        .expect("the server ends in order");
}

#[tokio::test]
async fn few_histories_are_folded_at_once_and_the_others_wait() {
    let Started { service, running: _running, .. } = Started::new();
    let api = Api::new(service, &plenty());
    let (begun, mut begins) = tokio::sync::mpsc::unbounded_channel();
    let mut folds = Vec::new();
    for _ in 0..=FOLDS_MAX {
        let (api, begun) = (api.clone(), begun.clone());
        folds.push(tokio::spawn(async move {
            let fold = move |_: &Service| {
                let (end, ended) = std::sync::mpsc::channel::<()>();
                begun.send(end).expect("the test listens");
                // Until the test drops the other side.
                let _ = ended.recv();
                Ok(())
            };
            api.read_past(fold).await
        }));
    }
    let mut running = Vec::new();
    while running.len() < FOLDS_MAX {
        running.push(begins.recv().await);
    }
    assert_eq!(api.folds.available_permits(), 0);
    assert!(begins.try_recv().is_err(), "the last one waits");
    running.pop();
    running.push(begins.recv().await);
    drop(running);
    for fold in folds {
        fold.await.expect("it doesn't panic").expect("it reads nothing");
    }
}

#[tokio::test]
async fn a_feed_that_nobody_reads_lags_behind_the_head() {
    let Started { service, running: _running, .. } = Started::new();
    let lag = || {
        let text = service.metrics_text();
        let lag = text.lines().find_map(|line| line.strip_prefix("pearing_feed_lag_events "));
        lag.map(str::to_owned)
    };
    assert_eq!(lag().as_deref(), Some("0"));
    let token_id = TokenId(uuid::Uuid::from_u128(1));
    let reader = Reader { token_id, filter: Filter::default() };
    let feed = service.feed(reader, Start::After(Sequence::ZERO), Duration::from_secs(3600));
    let mut feed = Box::pin(feed.expect("ana may read"));
    assert_eq!(lag(), Some(service.read(State::head).to_string()));
    while !matches!(feed.next().await, Some(Frame::CaughtUp(_))) {}
    assert_eq!(lag().as_deref(), Some("0"));
}

/// The threads that are inside of a span.
#[derive(Clone, Default)]
struct Inside(Arc<Mutex<HashSet<ThreadId>>>);

impl Inside {
    fn threads(&self) -> MutexGuard<'_, HashSet<ThreadId>> {
        self.0.lock().expect("a set of threads doesn't panic")
    }
}

impl<S: tracing::Subscriber> Layer<S> for Inside {
    fn on_enter(&self, _: &tracing::span::Id, _: layer::Context<'_, S>) {
        self.threads().insert(thread::current().id());
    }

    fn on_exit(&self, _: &tracing::span::Id, _: layer::Context<'_, S>) {
        self.threads().remove(&thread::current().id());
    }
}

#[tokio::test]
async fn a_read_that_may_block_runs_in_the_span_of_its_request() {
    let Started { service, running: _running, .. } = Started::new();
    let api = Api::new(service, &plenty());
    let inside = Inside::default();
    let _default = tracing::subscriber::set_default(registry().with(inside.clone()));
    let here = thread::current().id();
    let read = move |_: &Service| {
        let thread = thread::current().id();
        Ok((thread == here, inside.threads().contains(&thread)))
    };
    let span = tracing::error_span!("request");
    let seen = api.read(read).instrument(span).await.expect("it reads nothing");
    assert_eq!(seen, (false, true));
}
