//! What is promised of the tools, by hand: who may ask, what a repeated call does, what a broken
//! connection leaves behind.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use super::{VERSION, call, request, send};
use crate::support::{Client, PATIENCE, REPO, Relay, Server, eventually, pearing_cli, uuid};

fn initialize(id: u32) -> Value {
    let params = json!({
        "protocolVersion": VERSION,
        "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    });
    json!({ "jsonrpc": "2.0", "id": id, "method": "initialize", "params": params })
}

fn lock(name: &str) -> Value {
    json!({ "repo": REPO, "lock_name": name })
}

fn with(mut object: Value, more: Value) -> Value {
    let Value::Object(more) = more else { panic!("an object") };
    object.as_object_mut().expect("an object").extend(more);
    object
}

fn acquire(name: &str, more: Value) -> Value {
    with(with(lock(name), json!({ "request_uuid": uuid() })), more)
}

/// The ticket that a tool answered.
#[track_caller]
fn ticket(result: &Value) -> Value {
    assert_ne!(result["isError"], true, "{result}");
    result["structuredContent"]["ticket"].clone()
}

async fn head(client: &Client) -> u64 {
    client.get("/v1/whoami").await.sequence()
}

#[tokio::test]
async fn nobody_gets_in_without_a_token_or_from_another_site() {
    let server = Server::start();
    let (claude, nobody) = (server.client("claude"), server.client_without_token());
    assert_eq!(send(&nobody, &initialize(1)).await.says(), (401, "unauthenticated"));
    let wrong = server.client_with("pearing_wrong");
    assert_eq!(send(&wrong, &initialize(1)).await.says(), (401, "unauthenticated"));
    for (name, value) in [("Host", "evil.example"), ("Origin", "https://evil.example")] {
        let request = claude.request("POST", "/mcp").header(name, value);
        let request = request.body(initialize(1).to_string());
        let reply = Client::send(request).await.expect("it is answered");
        assert_eq!(reply.says(), (403, "forbidden"), "{name}");
    }
    let good = send(&claude, &initialize(1)).await;
    assert_eq!(good.body["result"]["protocolVersion"], VERSION, "{}", good.body);
    assert_eq!(good.header("mcp-session-id"), None, "there is nothing that could leak");
    for method in ["GET", "DELETE"] {
        let reply = Client::send(claude.request(method, "/mcp")).await.expect("it is answered");
        assert_eq!(reply.status, 405, "{method}");
    }
    for (body, status, code) in [("{", 400, ""), ("[]", 400, "-32600"), ("null", 400, "-32600")] {
        let request = claude.request("POST", "/mcp").body(body);
        let request = request.header("Accept", "application/json, text/event-stream");
        let request = request.header("Content-Type", "application/json");
        let reply = Client::send(request).await.expect("it is answered");
        assert_eq!(reply.status, status, "{body}");
        assert!(reply.body["error"]["code"].to_string().contains(code), "{body}: {}", reply.body);
    }
    let plain = claude.request("POST", "/mcp").body("{}").header("Content-Type", "text/plain");
    let plain = Client::send(plain).await.expect("it is answered");
    assert_eq!(plain.says(), (400, "malformed"));
    let params = json!({ "name": "whoami", "arguments": [1] });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    assert_eq!(send(&claude, &message).await.body["error"]["code"], -32602);
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/sing", "params": {} });
    assert_eq!(send(&claude, &message).await.body["error"]["code"], -32601);
    let long = send(&claude, &json!({ "x": "a".repeat(70_000) })).await;
    assert_eq!(long.says(), (413, "too-large"));
    // A tool shows no more than the call behind it.
    let stranger = server.add_user("stranger").await;
    let refused = call(&stranger, "get_lock", lock("x")).await;
    assert_eq!(refused["isError"], true);
    assert_eq!(refused["structuredContent"]["code"], "not-found");
    let unknown = json!({ "name": "create_token", "arguments": {} });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": unknown });
    assert_eq!(send(&claude, &message).await.body["error"]["code"], -32602);
}

/// Every tool that changes something, with arguments that can be sent twice. What must be there for
/// it is there.
async fn changes(server: &Server) -> Vec<(&'static str, Client, Value)> {
    let (claude, admin) = (server.client("claude"), server.client("admin"));
    let held = |name: &'static str| {
        let claude = claude.clone();
        async move { ticket(&call(&claude, "acquire_lock", acquire(name, json!({}))).await) }
    };
    let of =
        |ticket: &Value, name: &str| with(lock(name), json!({ "ticket_id": ticket["ticket_id"] }));
    let (kept, let_go, broken) = (held("kept").await, held("let-go").await, held("broken").await);
    let fence = broken["fence_token"].clone();
    let thread = json!({ "repo": REPO, "number": 42 });
    let made = claude.post("/v1/agents", json!({ "name": "helper" })).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let say = |name| (name, claude.clone());
    let (heartbeat, release) = (say("heartbeat_lock_ticket"), say("release_lock_ticket"));
    vec![
        ("acquire_lock", claude.clone(), acquire("made", json!({}))),
        (heartbeat.0, heartbeat.1, of(&kept, "kept")),
        (release.0, release.1, of(&let_go, "let-go")),
        (
            "break_lock",
            admin,
            with(lock("broken"), json!({ "fence_token": fence, "reason": "a test" })),
        ),
        ("create_thread", claude.clone(), json!({ "repo": REPO, "title": "Another" })),
        (
            "create_reply",
            claude.clone(),
            with(thread.clone(), json!({ "kind": "note", "body": "A word." })),
        ),
        ("close_thread", claude.clone(), thread.clone()),
        ("reopen_thread", claude.clone(), thread),
        ("update_user_activity", claude.clone(), json!({ "activity": "Testing" })),
        ("clear_user_activity", claude.clone(), json!({})),
        ("revoke_agent_tokens", claude.clone(), json!({ "name": "helper" })),
    ]
}

#[tokio::test]
async fn what_a_tool_says_of_itself_is_so() {
    let server = Server::start();
    let claude = server.client("claude");
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let listed = send(&claude, &message).await.body["result"]["tools"].clone();
    let listed = listed.as_array().expect("a list").clone();
    let (changes, mut wrong) = (changes(&server).await, Vec::new());
    for tool in &listed {
        let name = tool["name"].as_str().expect("a name");
        let says = |what: &str| tool["annotations"][what].as_bool().expect("it is said");
        let change = changes.iter().find(|(known, _, _)| *known == name);
        assert_eq!(says("readOnlyHint"), change.is_none(), "{name} has a case here if it changes");
        assert!(!says("openWorldHint"), "{name}");
        assert!(tool["inputSchema"]["type"] == "object", "{name}");
        assert!(tool["outputSchema"]["type"] == "object", "{name}");
        let Some((_, client, given)) = change else { continue };
        call(client, name, given.clone()).await;
        let before = head(&claude).await;
        call(client, name, given.clone()).await;
        let is_same = head(&claude).await == before;
        if says("idempotentHint") != is_same {
            wrong.push(format!("{name} again: nothing more is {is_same}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
    let missing: Vec<_> = changes
        .iter()
        .filter(|(name, _, _)| !listed.iter().any(|tool| tool["name"] == *name))
        .map(|(name, _, _)| name)
        .collect();
    assert!(missing.is_empty(), "{missing:?} are no tools");
}

#[tokio::test]
async fn a_call_that_was_cut_off_in_the_middle_is_sent_again_and_gives_the_same_ticket() {
    let server = Server::start();
    let (claude, codex) = (server.client("claude"), server.client("codex"));
    let held = ticket(&call(&claude, "acquire_lock", acquire("cut", json!({}))).await);
    let relay = Relay::before(server.url()).await;
    let through = codex.by_way_of(
        reqwest::Client::builder().no_proxy().build().expect("plain settings"),
        relay.url(),
    );
    let given = acquire("cut", json!({ "wait_seconds": 600 }));
    let params = json!({
        "name": "acquire_lock",
        "arguments": given,
        "_meta": { "progressToken": "p" },
    });
    let message = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
    relay.cut_early(1);
    // The stream breaks as soon as the first progress is told.
    let cut = request(&through, &message).send().await;
    let broke = match cut {
        Ok(response) => response.bytes().await.is_err(),
        Err(_) => true,
    };
    assert!(broke && relay.cuts() == 1, "it was cut");
    let waiting = with(given, json!({ "wait_here_seconds": 0 }));
    let again = ticket(&call(&codex, "acquire_lock", waiting.clone()).await);
    assert_eq!(again["state"], "waiting");
    let seen = claude.get(&format!("/v1/locks/cut?repo={REPO}")).await.body;
    assert_eq!(seen["queue"].as_array().map(Vec::len), Some(1), "one ticket, not two: {seen}");
    assert_eq!(seen["queue"][0]["ticket_id"], again["ticket_id"]);
    let release = with(lock("cut"), json!({ "ticket_id": held["ticket_id"] }));
    ticket(&call(&claude, "release_lock_ticket", release).await);
    assert_eq!(ticket(&call(&codex, "acquire_lock", waiting).await)["state"], "held");
}

#[tokio::test]
async fn clients_that_vanish_leave_nothing_but_leases_that_end_by_themselves() {
    const CLIENTS: usize = 100;
    let server = Server::start();
    let claude = server.client("claude");
    for n in 0..CLIENTS {
        // A connection of its own, which is dropped without a word.
        let own = reqwest::Client::builder().no_proxy().build().expect("plain settings");
        let own = claude.by_way_of(own, server.url());
        let hello = send(&own, &initialize(1)).await;
        assert_eq!(hello.header("mcp-session-id"), None, "{}", hello.body);
        let given = acquire(&format!("vanish.{n}"), json!({ "lease_seconds": 5 }));
        assert_eq!(ticket(&call(&own, "acquire_lock", given).await)["state"], "held");
    }
    let holds = async || {
        let list = claude.get("/v1/tickets?limit=1000").await.body;
        list["items"].as_array().expect("a list").len()
    };
    assert!(holds().await > 0, "going away ends no lease");
    eventually("all have ended", async || (holds().await == 0).then_some(())).await;
}

#[tokio::test]
async fn names_are_completed_from_what_one_may_read() {
    let server = Server::start();
    let claude = server.client("claude");
    call(&claude, "acquire_lock", acquire("thread-work.42", json!({}))).await;
    let complete = async |client: &Client, name: &str, value: &str| {
        let params = json!({
            "ref": { "type": "ref/prompt", "name": "work_under_lock" },
            "argument": { "name": name, "value": value },
            "context": { "arguments": { "repo": REPO } },
        });
        let method = "completion/complete";
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        send(client, &message).await.body["result"]["completion"]["values"].clone()
    };
    assert_eq!(complete(&claude, "repo", "teams/pl").await, json!([REPO]));
    assert_eq!(complete(&claude, "repo", "x").await, json!([]));
    assert_eq!(complete(&claude, "lock_name", "thread").await, json!(["thread-work.42"]));
    assert_eq!(complete(&claude, "task", "").await, json!([]));
    let stranger = server.add_user("stranger").await;
    assert_eq!(complete(&stranger, "lock_name", "").await, json!([]));
}

#[tokio::test]
async fn who_is_promoted_reads_what_the_one_before_it_wrote() {
    let server = Server::start();
    let (claude, codex) = (server.client("claude"), server.client("codex"));
    let held = ticket(&call(&claude, "acquire_lock", acquire("work", json!({}))).await);
    let waits = tokio::spawn(async move {
        let given = acquire("work", json!({ "wait_seconds": 600 }));
        let turn = ticket(&call(&codex, "acquire_lock", given).await);
        assert_eq!(turn["state"], "held");
        call(&codex, "get_thread_tree", json!({ "repo": REPO, "number": 42 })).await
    });
    let path = format!("/v1/locks/work?repo={REPO}");
    eventually("codex waits", async || {
        let lock = claude.get(&path).await.body;
        lock["queue"].as_array().is_some_and(|queue| queue.len() == 1).then_some(())
    })
    .await;
    let fence = json!({ "fence_lock_name": "work", "fence_token": held["fence_token"] });
    let reply =
        json!({ "repo": REPO, "number": 42, "kind": "implementation", "body": "It's done" });
    let written = call(&claude, "create_reply", with(reply, fence)).await;
    assert_ne!(written["isError"], true, "{written}");
    let release = with(lock("work"), json!({ "ticket_id": held["ticket_id"] }));
    ticket(&call(&claude, "release_lock_ticket", release).await);
    let seen = waits.await.expect("it was promoted");
    assert!(seen["structuredContent"].to_string().contains("It's done"), "{seen}");
}

/// `pearing-cli mcp`, spoken to by hand.
struct Session {
    process: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
    calls: u32,
}

impl Session {
    fn start(server: &Server, client: &Client) -> Self {
        let mut command = pearing_cli(server.home());
        command.env("PEARING_URL", server.url()).env("PEARING_TOKEN", client.token());
        Self::run(command)
    }

    fn run(mut command: Command) -> Self {
        command.arg("mcp").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("it is built");
        let stdin = process.stdin.take().expect("it is piped");
        let stdout = BufReader::new(process.stdout.take().expect("it is piped"));
        let (tells, lines) = channel();
        std::thread::Builder::new()
            .spawn(move || {
                for line in stdout.lines().map_while(Result::ok) {
                    if tells.send(line).is_err() {
                        return;
                    }
                }
            })
            .expect("a thread");
        let mut stdio = Self { process, stdin, lines, calls: 0 };
        stdio.write(&initialize(0));
        stdio.read(0);
        stdio.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        stdio
    }

    fn write(&mut self, message: &Value) {
        writeln!(self.stdin, "{message}").and_then(|()| self.stdin.flush()).expect("it reads");
    }

    fn read(&mut self, id: u32) -> Value {
        loop {
            let line = self.lines.recv_timeout(PATIENCE).expect("it answers");
            let message: Value = serde_json::from_str(&line).expect("a line is a message");
            if message["id"] == id {
                return message["result"].clone();
            }
        }
    }

    fn begin(&mut self, name: &str, given: &Value) {
        self.calls += 1;
        let params = json!({ "name": name, "arguments": given });
        let id = self.calls;
        self.write(&json!({
            "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params,
        }));
    }

    fn call(&mut self, name: &str, given: &Value) -> Value {
        self.begin(name, given);
        self.read(self.calls)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // By its id; it may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// How often a lock was heartbeaten.
async fn heartbeats(client: &Client, name: &str) -> usize {
    let history = client.get(&format!("/v1/locks/{name}/history?repo={REPO}&limit=1000")).await;
    let items = history.body["items"].as_array().expect("a list").clone();
    items.iter().filter(|event| event["type"] == "pearing.lock.heartbeat").count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_kept_for_a_busy_model_as_long_as_its_session_lives() {
    let server = Server::start();
    let (claude, codex) = (server.client("claude"), server.client("codex"));
    let mut session = Session::start(&server, &claude);
    let given = json!({ "lease_seconds": 5, "keep_alive_minutes": 10 });
    let kept = ticket(&session.call("acquire_lock", &acquire("kept", given)));
    let alone = json!({ "lease_seconds": 5 });
    let alone = ticket(&session.call("acquire_lock", &acquire("alone", alone)));
    let state = async |ticket: &Value, name: &str| {
        let id = ticket["ticket_id"].as_str().expect("an id");
        let path = format!("/v1/locks/{name}/tickets/{id}?repo={REPO}");
        claude.get(&path).await.body["ticket"]["state"].clone()
    };
    // The one that nobody keeps runs out; by then the other one would have too.
    eventually("it expired", async || (state(&alone, "alone").await == "expired").then_some(()))
        .await;
    eventually("it is kept", async || (heartbeats(&claude, "kept").await >= 4).then_some(())).await;
    assert_eq!(state(&kept, "kept").await, "held");
    // For 0 minutes it is kept no more; one that was cancelled never is.
    let mut given = acquire("ended", json!({ "lease_seconds": 5, "keep_alive_minutes": 10.0 }));
    let ended = ticket(&session.call("acquire_lock", &given));
    given["keep_alive_minutes"] = json!(0);
    assert_eq!(ticket(&session.call("acquire_lock", &given))["ticket_id"], ended["ticket_id"]);
    eventually("it expired", async || (state(&ended, "ended").await == "expired").then_some(()))
        .await;
    // A wait is kept from its promotion on, though its agent asks nothing.
    let other = ticket(&call(&codex, "acquire_lock", acquire("turn", json!({}))).await);
    let given = json!({
        "wait_seconds": 600, "lease_seconds": 5, "keep_alive_minutes": 1, "wait_here_seconds": 0,
    });
    let turn = ticket(&session.call("acquire_lock", &acquire("turn", given)));
    assert_eq!(turn["state"], "waiting");
    let release = with(lock("turn"), json!({ "ticket_id": other["ticket_id"] }));
    ticket(&call(&codex, "release_lock_ticket", release).await);
    eventually("it is kept", async || (heartbeats(&claude, "turn").await >= 1).then_some(())).await;
    // What is let go isn't kept any more.
    let release = with(lock("turn"), json!({ "ticket_id": turn["ticket_id"] }));
    assert_eq!(ticket(&session.call("release_lock_ticket", &release))["state"], "released");
    drop(session);
    eventually("it expired", async || (state(&kept, "kept").await == "expired").then_some(()))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_a_restarted_server_gave_grace_is_kept_on() {
    let mut server = Server::start();
    let relay = Relay::before(server.url()).await;
    let claude = server.client("claude");
    let mut command = pearing_cli(server.home());
    command.env("PEARING_URL", relay.url()).env("PEARING_TOKEN", claude.token());
    let mut session = Session::run(command);
    let given = json!({ "lease_seconds": 5, "keep_alive_minutes": 10 });
    let kept = ticket(&session.call("acquire_lock", &acquire("kept", given)));
    server.kill();
    // Longer than the lease: by the clock of the session it is lost.
    tokio::time::sleep(Duration::from_secs(6)).await;
    server.serve();
    relay.lead_to(server.url());
    let claude = server.client("claude");
    eventually("it is kept", async || (heartbeats(&claude, "kept").await >= 3).then_some(())).await;
    let holds = session.call("what_do_i_hold", &json!({ "x": null }))["structuredContent"].clone();
    assert_eq!(holds["tickets"][0]["ticket_id"], kept["ticket_id"], "{holds}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_was_killed_in_the_middle_is_gone_on_with_in_another() {
    let server = Server::start();
    let (claude, codex) = (server.client("claude"), server.client("codex"));
    let held = ticket(&call(&codex, "acquire_lock", acquire("x", json!({}))).await);
    let given = acquire("x", json!({ "wait_seconds": 600 }));
    let mut first = Session::start(&server, &claude);
    first.begin("acquire_lock", &given);
    let path = format!("/v1/locks/x?repo={REPO}");
    let waiting = eventually("it waits", async || {
        let lock = codex.get(&path).await.body;
        lock["queue"][0]["ticket_id"].as_str().map(str::to_owned)
    })
    .await;
    drop(first);
    let release = with(lock("x"), json!({ "ticket_id": held["ticket_id"] }));
    ticket(&call(&codex, "release_lock_ticket", release).await);
    let mut second = Session::start(&server, &claude);
    let again = ticket(&second.call("acquire_lock", &given));
    assert_eq!((again["ticket_id"].as_str(), &again["state"]), (Some(&*waiting), &json!("held")));
    let holds = second.call("what_do_i_hold", &json!({}))["structuredContent"].clone();
    assert_eq!(holds["tickets"][0]["ticket_id"], waiting, "{holds}");
}
