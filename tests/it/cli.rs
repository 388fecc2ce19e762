//! `pearing-cli` against a real server: the commands as people type them, and their exit codes.

mod guide;
mod manual;
mod profiles;
mod timeline;
mod with_lock;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::{REPO, Server, eventually, pearing_cli, uuid};

/// The program in a home of its own.
fn program(home: &Path, words: &[&str]) -> Command {
    let mut command = pearing_cli(home);
    command.args(words);
    command
}

/// The program as a user.
fn cli(server: &Server, user: &str, words: &[&str]) -> Command {
    let mut command = program(server.home(), words);
    command.env("PEARING_URL", server.url()).env("PEARING_OUTPUT", "json");
    command.env("PEARING_TOKEN", server.client(user).token());
    command
}

/// What a command ended with.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    /// The JSON on stdout; null if there is none.
    json: Value,
    stderr: String,
}

/// Runs a command to its end. Each waits for its server for a bounded time only.
fn run(server: &Server, user: &str, words: &[&str]) -> Ended {
    ended(cli(server, user, words).output().expect("it runs"))
}

fn ended(output: Output) -> Ended {
    let json = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    let stderr = String::from_utf8(output.stderr).expect("messages are UTF-8");
    Ended { code: output.status.code(), json, stderr }
}

impl Ended {
    /// The id of the ticket in the answer.
    fn ticket_id(&self) -> &str {
        self.json["ticket"]["ticket_id"].as_str().unwrap_or_else(|| panic!("no ticket: {self:?}"))
    }
}

#[tokio::test]
async fn the_four_lock_commands_run_as_they_stand() {
    let server = Server::start();
    let (first, second) = (uuid(), uuid());
    let acquire = |request_uuid: &str, user: &str| {
        let line = format!(
            "acquire-lock thread-work.42 --request-uuid {request_uuid} --lease-seconds 60 \
             --wait-seconds 30 --repo {REPO}"
        );
        run(&server, user, &line.split(' ').collect::<Vec<_>>())
    };
    let of = |command: &str, user: &str, ticket: &str, rest: &str| {
        let line = format!("{command} thread-work.42 {ticket}{rest} --repo {REPO}");
        run(&server, user, &line.split(' ').collect::<Vec<_>>())
    };
    let held = acquire(&first, "claude");
    assert_eq!((held.code, &held.json["ticket"]["state"]), (Some(0), &json!("held")), "{held:?}");
    let waiting = acquire(&second, "codex");
    assert_eq!(waiting.code, Some(10), "{waiting:?}");
    assert_eq!(waiting.json["ticket"]["queue_position"], 1);
    let again = acquire(&first, "claude");
    assert_eq!((again.code, again.ticket_id()), (Some(0), held.ticket_id()), "the same ticket");

    let beat = of("heartbeat-lock-ticket", "claude", held.ticket_id(), " --lease-seconds 60");
    assert_eq!(beat.code, Some(0), "{beat:?}");
    let released = of("release-lock-ticket", "claude", held.ticket_id(), "");
    assert_eq!((released.code, &released.json["ticket"]["state"]), (Some(0), &json!("released")));
    let promoted = of("get-lock-ticket", "codex", waiting.ticket_id(), "");
    assert_eq!((promoted.code, &promoted.json["ticket"]["state"]), (Some(0), &json!("held")));
    let fence = |ended: &Ended| ended.json["ticket"]["fence_token"].as_u64().expect("it was held");
    assert!(fence(&promoted) > fence(&held));
    let late = of("heartbeat-lock-ticket", "claude", held.ticket_id(), " --lease-seconds 60");
    assert_eq!(late.code, Some(5), "{late:?}");
}

#[tokio::test]
async fn exit_codes_tell_what_to_do_next() {
    let mut server = Server::start();
    server.add_user("eve").await;
    server.client("claude").hold("x", 60).await;
    server.client("codex").hold("y", 60).await;
    server.client("claude").wait_for("y", 60).await;
    let unknown = uuid();
    let table: [(&str, &[&str], i32); 12] = [
        ("codex", &["acquire-lock", "x", "--repo", REPO], 3),
        ("codex", &["acquire-lock", "x", "--wait-seconds", "60", "--repo", REPO], 4),
        ("codex", &["acquire-lock", "x", "--lease-seconds", "4", "--repo", REPO], 2),
        ("codex", &["acquire-lock", "x/y", "--repo", REPO], 2),
        ("codex", &["acquire-lock", "x"], 2),
        ("codex", &["get-lock-ticket", "x", &unknown, "--repo", REPO], 6),
        ("eve", &["acquire-lock", "x", "--repo", REPO], 6),
        ("codex", &["break-lock", "x", "--fence-token", "1", "--reason", "r", "--repo", REPO], 7),
        ("admin", &["break-lock", "x", "--fence-token", "1", "--reason", "r", "--repo", REPO], 5),
        ("codex", &["get-lock", "x", "--repo", REPO], 0),
        ("codex", &["list-locks", "--repo", REPO], 0),
        ("codex", &["whoami"], 0),
    ];
    for (user, words, code) in table {
        let ended = run(&server, user, words);
        assert_eq!(ended.code, Some(code), "{user} {words:?}: {ended:?}");
        assert_eq!(ended.stderr.trim().is_empty(), code == 0 && words[0] != "acquire-lock");
    }
    let mut stranger = cli(&server, "codex", &["whoami"]);
    let status = stranger.env("PEARING_TOKEN", "pearing_nobody").output().expect("it runs").status;
    assert_eq!(status.code(), Some(7));
    let (waits, claude) = (uuid(), server.client("claude"));
    let words =
        ["acquire-lock", "y", "--request-uuid", &waits, "--wait-seconds", "60", "--repo", REPO];
    let waiting = run(&server, "claude", &words);
    assert_eq!(waiting.code, Some(10), "{waiting:?}");
    claude.release(&waiting.json["ticket"]).await.ticket(200);
    assert_eq!(run(&server, "claude", &words).code, Some(9), "the wait was given up");
    server.kill();
    let ended = run(&server, "codex", &["whoami"]);
    assert_eq!(ended.code, Some(8), "{ended:?}");
    let advice = format!("does a server run at {} (PEARING_URL)?", server.url());
    assert!(ended.stderr.contains(&advice), "{ended:?}");
    let ended = run(&server, "codex", &["get-lock", "x"]);
    assert!(!ended.stderr.contains("--url"), "set already, so no part of the usage: {ended:?}");
}

/// Runs a command as text: its exit code, and what is on stdout and stderr.
fn said(server: &Server, user: &str, line: &str) -> (Option<i32>, String, String) {
    let mut command = cli(server, user, &line.split(' ').collect::<Vec<_>>());
    let output = command.env("PEARING_OUTPUT", "text").output().expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("it prints UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[tokio::test]
async fn a_refusal_is_a_problem_in_json_and_silence_with_a_word_in_text() {
    let server = Server::start();
    let held = server.client("claude").hold("x", 60).await;
    let ended = server.client("codex").hold("y", 60).await;
    server.client("codex").release(&ended).await.ticket(200);
    let path = "/v1/admin/teams/platform/members/claude";
    server.client("admin").put(path, json!({ "role": "read" })).await;
    let of = |command: &str, lock: &str, ticket: &Value| {
        let id = ticket["ticket_id"].as_str().expect("an id");
        format!("{command} {lock} {id} --repo {REPO}")
    };
    for (user, line, exit_code, code, word) in [
        (
            "claude",
            of("heartbeat-lock-ticket", "x", &held),
            7,
            "forbidden",
            "the lease can't be extended any more: stop before it ends\n",
        ),
        (
            "codex",
            of("heartbeat-lock-ticket", "y", &ended),
            5,
            "ticket-not-held",
            "stop: the lock is not yours any more\n",
        ),
        (
            "admin",
            format!("break-lock x --fence-token 1 --reason r --repo {REPO}"),
            5,
            "stale-fence",
            "nothing was broken: get-lock says who holds it now, under which fence\n",
        ),
        ("claude", format!("get-thread-tree {REPO} 7"), 6, "not-found", "pearing-cli: not-found: "),
        ("claude", "create-team more".to_owned(), 7, "forbidden", "pearing-cli: forbidden: "),
    ] {
        let (ended, stdout, stderr) = said(&server, user, &line);
        assert_eq!((ended, stdout.as_str()), (Some(exit_code), ""), "{line}: {stderr}");
        assert!(stderr.contains(word), "{line}: {stderr}");
        let ended = run(&server, user, &line.split(' ').collect::<Vec<_>>());
        assert_eq!((ended.code, &ended.json["code"]), (Some(exit_code), &json!(code)), "{ended:?}");
        assert_eq!(ended.json["type"], format!("urn:pearing:problem:{code}"));
    }
}

#[tokio::test]
async fn a_session_learns_that_its_own_user_has_the_lock() {
    let server = Server::start();
    let first = server.client("claude").hold("x", 60).await;
    let request_uuid = uuid();
    let join = format!("acquire-lock x --request-uuid {request_uuid} --repo {REPO}");
    let (code, _, stderr) = said(&server, "claude", &join);
    let word = "joined your own hold, now 2 tickets: --no-reentrant contends instead\n";
    assert_eq!((code, stderr.as_str()), (Some(0), word));
    let (code, stdout, stderr) = said(&server, "claude", &join);
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "a replay joins nothing");
    assert!(stdout.contains(&first["fence_token"].to_string()), "{stdout}");
    let apart = format!("acquire-lock x --no-reentrant --wait-seconds 60 --repo {REPO}");
    let (code, _, stderr) = said(&server, "claude", &apart);
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains("another session of claude has it, which can't be waited"), "{stderr}");
    assert!(!stderr.contains("--wait-seconds"), "{stderr}");
}

/// Starts an acquire that blocks, and waits until its ticket is in the queue.
async fn blocked(server: &Server, user: &str, words: &[&str]) -> Child {
    let mut command = cli(server, user, words);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let client = server.client(user);
    eventually("the ticket to wait", || async {
        let queue = client.lock("x").await["queue"].clone();
        queue.as_array().is_some_and(|queue| !queue.is_empty()).then_some(())
    })
    .await;
    child
}

#[tokio::test]
async fn block_waits_for_the_lock_and_a_signal_gives_it_up() {
    let server = Server::start();
    let claude = server.client("claude");
    let held = claude.hold("x", 60).await;
    let words = ["acquire-lock", "x", "--wait-seconds", "600", "--block", "--repo", REPO];

    let mut child = blocked(&server, "codex", &words).await;
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
    assert_eq!(child.wait().expect("it ends").code(), Some(128 + 15));
    assert_eq!(claude.lock("x").await["queue"], json!([]), "the ticket was cancelled");
    let stderr = BufReader::new(child.stderr.take().expect("it is piped"));
    let lines: Vec<String> = stderr.lines().map_while(Result::ok).collect();
    let has_uuid = lines.first().is_some_and(|line| line.contains("request_uuid "));
    assert!(has_uuid, "the UUID comes before anything is sent: {lines:?}");

    let child = blocked(&server, "codex", &words).await;
    claude.release(&held).await.ticket(200);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let answer: Value = serde_json::from_slice(&output.stdout).expect("one line of JSON");
    assert_eq!(answer["ticket"]["state"], "held");
    assert_eq!(claude.lock("x").await["owner"], "codex");
}
