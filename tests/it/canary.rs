//! No token is anywhere but where it belongs: not in a file of the data directory, not in a log,
//! an error, an event, a table or a process list, whatever is done and whatever goes wrong.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use pearing::ledger::rocks::{OpenOptions, RocksLedger};
use pearing::ledger::{Ledger as _, Table};
use serde_json::{Value, json};

use crate::support::{
    Client, Feed, REPO, Reply, SIGTERM, Server, eventually, path_of, pearing, pearing_cli, uuid,
};

/// Texts by where each was found, in which nothing secret may be.
#[derive(Default)]
struct Found(BTreeMap<String, Vec<u8>>);

impl Found {
    fn add(&mut self, place: impl Into<String>, text: impl AsRef<[u8]>) {
        let text_so_far = self.0.entry(place.into()).or_default();
        text_so_far.extend_from_slice(text.as_ref());
        text_so_far.push(b'\n');
    }

    /// Every file below a folder.
    fn add_files(&mut self, folder: &Path) {
        for entry in fs::read_dir(folder).expect("a folder can be read") {
            let path = entry.expect("an entry can be read").path();
            if path.is_dir() {
                self.add_files(&path);
            } else {
                self.add(path.display().to_string(), fs::read(&path).expect("a file can be read"));
            }
        }
    }

    /// Where a text stands.
    fn places_of(&self, text: &str) -> Vec<&str> {
        let needle = text.as_bytes();
        let has = |hay: &[u8]| hay.windows(needle.len()).any(|window| window == needle);
        self.0.iter().filter(|(_, hay)| has(hay)).map(|(place, _)| place.as_str()).collect()
    }
}

/// The secret part of a token: its longest part.
fn secret_of(token: &str) -> &str {
    let secret = token.split('_').max_by_key(|part| part.len()).expect("a text has parts");
    assert_eq!(secret.len(), 64, "a token has 64 digits that nobody may know");
    secret
}

/// What a process was started with, as anyone on the machine can read it. It is empty until the
/// process has become what it was started as.
async fn command_line(child: u32) -> Vec<u8> {
    let path = format!("/proc/{child}/cmdline");
    eventually("the process to begin", || async {
        let line = fs::read(&path).expect("the process runs");
        (!line.is_empty()).then_some(line)
    })
    .await
}

/// A server under test, all of whose tokens are known.
struct Canary {
    server: Server,
    tokens: Vec<String>,
    found: Found,
}

impl Canary {
    /// Notes an answer, and hands it on.
    fn note(&mut self, reply: Reply) -> Reply {
        self.found.add("an answer", reply.body.to_string());
        self.found.add("the headers of an answer", format!("{:?}", reply.headers));
        reply
    }

    /// Takes the token out of an answer whose result it is, and notes the rest.
    fn take_token(&mut self, mut reply: Reply) -> Client {
        assert_eq!(reply.status, 201, "{}", reply.body);
        let token = reply.body["token"].take().as_str().expect("it is shown once").to_owned();
        self.note(reply);
        self.tokens.push(token.clone());
        self.server.client_with(&token)
    }

    /// Runs a command to its end; if a token is its result, it stands on stdout alone.
    fn run(&mut self, client: &Client, words: &[&str], token_file: Option<&Path>) -> Option<i32> {
        let mut command = self.server.cli(client);
        command.args(words).env("PEARING_OUTPUT", "text");
        if let Some(file) = token_file {
            command.env_remove("PEARING_TOKEN").arg("--token-file").arg(file);
        }
        let output = command.output().expect("it runs");
        let place = format!("pearing-cli {}", words[0]);
        if ["create-token", "create-agent"].contains(&words[0]) && output.status.success() {
            let token = String::from_utf8(output.stdout).expect("it is text");
            self.tokens.push(token.trim().to_owned());
        } else {
            self.found.add(format!("stdout of {place}"), &output.stdout);
        }
        self.found.add(format!("stderr of {place}"), &output.stderr);
        output.status.code()
    }

    /// Starts a command that goes on, whose command line is looked at meanwhile.
    fn begin(&self, client: &Client, words: &[&str]) -> Child {
        let log = |name: &str| {
            let path = self.server.home().join(format!("{}-{}.{name}", words[0], uuid()));
            File::create(path).expect("the directory is ours")
        };
        let mut command = self.server.cli(client);
        command.args(words).stdout(log("out")).stderr(log("err"));
        command.spawn().expect("it runs")
    }
}

/// A file that holds a token, for whoever `mode` lets read it.
fn token_file(server: &Server, token: &str, mode: u32) -> PathBuf {
    let folder = server.home().join("secrets");
    fs::create_dir_all(&folder).expect("the directory is ours");
    let path = folder.join(uuid());
    fs::write(&path, token).expect("the directory is ours");
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("the file is ours");
    path
}

/// What holders, waiters and readers do, and what goes wrong with it.
async fn use_locks(canary: &mut Canary, lock_name: &str, note: &str) {
    let (claude, codex) = (canary.server.client("claude"), canary.server.client("codex"));
    let mut feed = Feed::open(&canary.server, &claude, "?after=0", None).await;
    feed.until_caught_up().await;
    let held = claude.acquire(lock_name, json!({ "lease_seconds": 60, "note": note })).await;
    let held = canary.note(held).ticket(201);
    for reply in [
        codex.acquire(lock_name, json!({})).await,
        codex.acquire(lock_name, json!({ "wait_seconds": 60 })).await,
        claude.heartbeat(&held, 60).await,
        codex.heartbeat(&held, 60).await,
        codex.release(&held).await,
        claude.release(&held).await,
        claude.heartbeat(&held, 60).await,
        claude.get(&format!("/v1/locks/{lock_name}?repo={REPO}")).await,
        claude.get(&format!("/v1/locks/{lock_name}/history?repo={REPO}")).await,
        claude.get("/v1/whoami").await,
        claude.get("/v1/tickets").await,
        claude.acquire("y", json!({ "lease_seconds": 1 })).await,
        claude.acquire("y", json!({ "token": "x" })).await,
        claude.get("/v1/locks/x?repo=teams/nothing/x").await,
        claude.get("/v1/nothing").await,
        claude.call("PATCH", "/v1/whoami", None).await,
    ] {
        canary.note(reply);
    }
    let seen = feed.until(|event| event.name == "lock.promoted").await;
    canary.found.add("a feed", format!("{seen:?}"));
    let refused = Feed::open(&canary.server, &claude, "?after=999999", None).await;
    assert_eq!(refused.status(), 422);
    let malformed = claude.request("PUT", "/v1/activity").body("{").send().await;
    let text = malformed.expect("it is answered").text().await.expect("it is text");
    canary.found.add("an answer", text);
    let thread = json!({ "title": "work", "body": note, "request_uuid": uuid() });
    canary.note(claude.post(&format!("/v1/threads?repo={REPO}"), thread).await);
    canary.note(claude.put("/v1/activity", json!({ "activity": note })).await);
    let waiting = codex.get("/v1/tickets").await.body["items"][0].clone();
    canary.note(codex.get(&path_of(&waiting, "")).await);
}

/// A browser's cookie, which is as secret as a token.
async fn follow_by_cookie(canary: &mut Canary) {
    let claude = canary.server.client("claude");
    let mut reply = claude.call("POST", "/v1/feed-session", None).await;
    let cookie = reply.headers.remove("set-cookie").expect("it is set");
    let cookie = cookie.to_str().expect("it is ASCII").to_owned();
    canary.note(reply);
    let pair = cookie.split(';').next().expect("a text has a first part");
    let (_, session) = pair.split_once('=').expect("a name and a value");
    canary.tokens.push(session.to_owned());
    let header = format!("Cookie: {pair}");
    let mut feed = Feed::open_with(&canary.server, Some(&header), "?after=0", None).await;
    assert_eq!(feed.status(), 200);
    canary.found.add("a feed", format!("{:?}", feed.until_caught_up().await));
    let nobody = canary.server.client_without_token();
    for path in ["/v1/whoami", "/v1/events?after=x", "/v1/events?limit=1"] {
        let request = nobody.request("GET", path).header("Cookie", pair);
        canary.note(Client::send(request).await.expect("it is answered"));
    }
    let mistyped = format!("Cookie: {}", pair.replace("pearing_feed=", "pearing_feed=0"));
    assert_eq!(Feed::open_with(&canary.server, Some(&mistyped), "", None).await.status(), 401);
}

/// Tokens that are wrong, or given in the wrong place. A mistyped one is a secret too.
async fn use_wrong_tokens(canary: &mut Canary) {
    let token = canary.server.client("claude").token().to_owned();
    let secret = secret_of(&token);
    let other_digit = if secret.ends_with('0') { "1" } else { "0" };
    let wrong_secret = format!("{}{other_digit}", &secret[..63]);
    let mistyped = token.replace(secret, &wrong_secret);
    canary.tokens.push(mistyped.clone());
    let wrong = canary.server.client_with(&mistyped);
    canary.note(wrong.get("/v1/whoami").await);
    let feed = Feed::open(&canary.server, &wrong, "", None).await;
    assert_eq!(feed.status(), 401);
    let nobody = canary.server.client_without_token();
    for value in [format!("Basic {token}"), token.clone(), format!("Bearer {token}, {token}")] {
        let request = nobody.request("GET", "/v1/whoami").header("Authorization", value);
        let reply = Client::send(request).await.expect("it is answered");
        assert_eq!(canary.note(reply).status, 401);
    }
    let claude = canary.server.client("claude");
    for (name, value) in [
        ("Last-Event-ID", token.as_str()),
        ("Prefer", &token),
        ("Cookie", &token),
        ("X-Request-Id", &token),
        ("X-Request-Id", secret),
    ] {
        let request = claude.request("GET", "/v1/events").header(name, value);
        canary.note(Client::send(request).await.expect("it is answered"));
    }
    canary.note(claude.get(&format!("/v1/whoami?token={token}")).await);
    canary.note(claude.get(&format!("/v1/events?after={token}")).await);
    canary.note(claude.post("/v1/agents", json!({ "name": "x", "label": [token] })).await);
    canary.note(claude.acquire("x", json!({ "request_uuid": token })).await);
    let code = canary.run(&wrong, &["whoami"], None);
    assert_eq!(code, Some(7));
    for (mode, exit_code) in [(0o600, 0), (0o644, 2)] {
        let file = token_file(&canary.server, &token, mode);
        assert_eq!(canary.run(&claude, &["whoami"], Some(&file)), Some(exit_code));
    }
    let file = token_file(&canary.server, &mistyped, 0o600);
    assert_eq!(canary.run(&claude, &["whoami"], Some(&file)), Some(7));
}

/// A login keeps the token in a profile of its own user's home, and nowhere else.
async fn log_in(canary: &mut Canary) {
    let codex = canary.server.client("codex");
    let home = canary.server.home().join("secrets").join(uuid());
    fs::create_dir_all(&home).expect("the directory is ours");
    for (token, exit_code) in [(codex.token().to_owned(), 0), (secret_of(codex.token()).into(), 7)]
    {
        let mut command = pearing_cli(&home);
        command.args(["login", "--url", canary.server.url()]);
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = pipes.spawn().expect("it runs");
        canary.found.add("the process list", command_line(child.id()).await);
        let mut stdin = child.stdin.take().expect("it is piped");
        writeln!(stdin, "{token}").expect("it reads");
        drop(stdin);
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(exit_code), "{output:?}");
        canary.found.add("stdout of pearing-cli login", output.stdout);
        canary.found.add("stderr of pearing-cli login", output.stderr);
    }
    for words in [&["whoami"][..], &["list-profiles"], &["logout"], &["whoami"]] {
        let mut command = pearing_cli(&home);
        let output = command.args(words).output().expect("it runs");
        canary.found.add("a command of a profile", [output.stdout, output.stderr].concat());
    }
}

/// Makes tokens in every way, uses them, and ends one.
async fn make_tokens(canary: &mut Canary) {
    let admin = canary.server.client("admin");
    let claude = canary.server.client("claude");
    let name = format!("agent-{}", &uuid()[..8]);
    let fields = json!({ "name": name, "label": "a label" });
    let agent = claude.post("/v1/agents", fields).await;
    let agent = canary.take_token(agent);
    canary.note(agent.get("/v1/whoami").await);
    let issued = admin.post("/v1/admin/tokens", json!({ "user": "codex" })).await;
    let issued = canary.take_token(issued);
    let id = issued.get("/v1/whoami").await.body["token_id"].clone();
    let path = format!("/v1/admin/tokens/{}", id.as_str().expect("an id"));
    canary.note(admin.delete(&path).await);
    canary.note(issued.get("/v1/whoami").await);
    assert_eq!(canary.run(&admin, &["create-token", "codex"], None), Some(0));
    assert_eq!(canary.run(&claude, &["create-agent", &name], None), Some(0));
    assert_eq!(canary.run(&claude, &["create-token", "codex"], None), Some(7));
    canary.note(admin.get("/v1/admin/tokens").await);
    canary.note(admin.get("/v1/admin/users").await);
    canary.note(claude.get("/v1/agents").await);
    for words in [
        &["list-tokens"][..],
        &["list-agents"],
        &["acquire-lock", "z", "--repo", REPO],
        &["acquire-lock", "x", "--repo", REPO],
        &["whoami", "--url", "http://127.0.0.1:1"],
        &["list-events", "--json"],
    ] {
        canary.run(&admin, words, None);
    }
}

/// What the list of processes shows of the server and of commands that wait.
async fn look_at_processes(canary: &mut Canary) {
    let codex = canary.server.client("codex");
    let file = token_file(&canary.server, codex.token(), 0o600);
    let file = file.to_string_lossy().into_owned();
    let lock_name = format!("taken-{}", &uuid()[..8]);
    canary.server.client("claude").hold(&lock_name, 60).await;
    let waits = ["acquire-lock", &lock_name, "--wait-seconds", "60", "--block", "--repo", REPO];
    let watches = ["watch-events", "--after", "0", "--token-file", &file];
    let mut running = [canary.begin(&codex, &waits), canary.begin(&codex, &watches)];
    eventually("the command to wait", || async {
        let lock = codex.lock(&lock_name).await;
        lock["queue"].as_array().is_some_and(|queue| !queue.is_empty()).then_some(())
    })
    .await;
    for child in &running {
        let line = command_line(child.id()).await;
        let is_ours = line.starts_with(env!("CARGO_BIN_EXE_pearing-cli").as_bytes());
        assert!(is_ours, "{}", String::from_utf8_lossy(&line));
        canary.found.add("the process list", line);
    }
    let server = canary.server.process().id();
    let line = command_line(server).await;
    assert!(line.starts_with(env!("CARGO_BIN_EXE_pearing").as_bytes()));
    canary.found.add("the process list", line);
    for child in &mut running {
        child.kill().expect("it still runs");
        child.wait().expect("it ends");
    }
}

/// All that the ledger holds, which lies compressed on the disk.
fn read_ledger(found: &mut Found, data: &Path) {
    let (ledger, _) = RocksLedger::open(data, OpenOptions::default()).expect("it was closed");
    let records = ledger.records(Default::default(), usize::MAX).expect("it can be read");
    for stored in records {
        found.add("the ledger's records", &*stored.bytes);
    }
    for table in Table::ALL {
        let pairs = ledger.scan(table, &[], &[], usize::MAX).expect("it can be read");
        for (key, value) in pairs {
            found.add(format!("the ledger's table {}", table.name()), [key, value].concat());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_token_is_anywhere_but_where_it_belongs() {
    let mut canary =
        Canary { server: Server::stopped(), tokens: Vec::new(), found: Found::default() };
    let note = format!("note-{}", uuid());
    for format in ["text", "json"] {
        let mut command = pearing(["dev", "--log", "trace", "--log-format", format]);
        let stdout = File::create(canary.server.home().join(format!("server-{format}.out")));
        command.stdout(Stdio::from(stdout.expect("the directory is ours")));
        canary.server.run(command);
        use_locks(&mut canary, &format!("lock-{format}"), &note).await;
        follow_by_cookie(&mut canary).await;
        use_wrong_tokens(&mut canary).await;
        make_tokens(&mut canary).await;
        log_in(&mut canary).await;
        look_at_processes(&mut canary).await;
        canary.server.process().signal(SIGTERM);
        let process = canary.server.process();
        assert_eq!(process.exit_code(), Some(0));
        let log = process.log();
        assert!(log.contains("serving"), "the log was read: {log}");
        canary.found.add(format!("the log as {format}"), log);
        canary.server.exit_code();
    }
    let Canary { server, mut tokens, mut found } = canary;
    let secrets = server.home().join("secrets");
    fs::remove_dir_all(secrets).expect("what the test itself wrote");
    found.add_files(server.home());
    read_ledger(&mut found, &server.data());

    // First that a text is found wherever it is.
    for place in ["an answer", "a feed", "the ledger's records", "the ledger's table tickets"] {
        assert!(found.places_of(&note).contains(&place), "{place}: {:?}", found.places_of(&note));
    }
    for user in ["admin", "claude", "codex"] {
        let file = server.data().join("tokens").join(user);
        let place = file.display().to_string();
        let token = fs::read_to_string(&file).expect("dev wrote it");
        assert_eq!(found.places_of(token.trim()), [&place], "found where it belongs");
        assert_eq!(found.places_of(secret_of(token.trim())), [&place], "and nowhere else");
        found.0.remove(&place);
        tokens.push(token.trim().to_owned());
    }
    assert_eq!(tokens.len(), 2 * 6 + 3);
    let leaked: Vec<Value> = tokens
        .iter()
        .flat_map(|token| [token.as_str(), secret_of(token)])
        .flat_map(|text| found.places_of(text))
        .map(Value::from)
        .collect();
    assert!(leaked.is_empty(), "a token is in {leaked:?}");
}
