//! hook claude-code: the gate before a tool, the heartbeat after it, and the end of a session.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Ended, Home, program};
use crate::support::{Client, REPO, Server};

/// A home whose Claude Code is gated by a lock, and its identity.
fn gated(server: &Server) -> (Home, Client) {
    let home = Home::of(server, "claude");
    home.says("setup claude-code --repo teams/platform/website --lock edit").done();
    let client = server.client_with(&home.token("claude-code"));
    (home, client)
}

/// What Claude Code tells a hook.
fn input(event: &str, more: &Value) -> String {
    let mut input = json!({
        "session_id": "00000000-0000-4000-8000-000000000001",
        "transcript_path": "/nowhere/session.jsonl",
        "cwd": "/nowhere",
        "permission_mode": "default",
        "hook_event_name": event,
        "tool_name": "Edit",
        "tool_input": { "file_path": "/nowhere/a", "old_string": "é", "new_string": "\u{1f600}" },
    });
    for (name, value) in more.as_object().expect("an object") {
        input[name] = value.clone();
    }
    input.to_string()
}

/// Runs what the settings say for an event, in a shell, as Claude Code does.
fn hook(home: &Home, event: &str, input: &str) -> Ended {
    let settings: Value = serde_json::from_str(&home.read(".claude/settings.json")).expect("JSON");
    let command = settings["hooks"][event][0]["hooks"][0]["command"].as_str().expect("a command");
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).env_clear().env("PATH", "/usr/bin:/bin");
    // A server that a shell names for other work is not the entry's.
    shell.env("HOME", home.path("")).env("PEARING_URL", "http://127.0.0.1:1");
    home.run(&mut shell, input)
}

fn pre(home: &Home) -> Ended {
    hook(home, "PreToolUse", &input("PreToolUse", &json!({})))
}

#[track_caller]
fn refused(ended: &Ended, said: &str) {
    assert!(ended.code == Some(2) && ended.err.contains(said), "{said}: {ended:?}");
    assert_eq!(ended.out, "", "nothing that could be taken for a decision");
}

#[tokio::test]
async fn a_tool_is_let_through_only_under_the_lock() {
    let mut server = Server::start();
    let (home, agent) = gated(&server);
    let none = pre(&home);
    refused(&none, "lock edit in teams/platform/website is not held");
    refused(&none, "acquire_lock of the MCP server pearing with {");
    refused(&none, "\"lock_name\":\"edit\"");
    // Its person is another owner, and another lock is another lock.
    let person = server.client("claude").hold("edit", 60).await;
    agent.hold("other", 60).await;
    refused(&pre(&home), "is not held");
    server.client("claude").release(&person).await.ticket(200);

    let held = agent.hold("edit", 30).await;
    let before = agent.look(&held).await;
    assert_eq!((pre(&home).done().out.as_str(), pre(&home).err.as_str()), ("", ""));
    let after = agent.look(&held).await;
    let left = |ticket: &Value| ticket["lease_remaining_ms"].as_u64().expect("it is held");
    assert!(left(&before) <= 30_000 && left(&after) > 200_000, "a heartbeat for a long call");

    // To get the lock back, it must be able to ask for it.
    agent.release(&held).await.ticket(200);
    refused(&pre(&home), "is not held");
    let ask = json!({ "tool_name": "mcp__pearing__acquire_lock" });
    hook(&home, "PreToolUse", &input("PreToolUse", &ask)).done();

    agent.hold("edit", 60).await;
    pre(&home).done();
    server.kill();
    refused(&pre(&home), "can't be known. Don't work around this: try again in a moment");
}

#[tokio::test]
async fn a_gate_refuses_on_any_doubt() {
    let server = Server::start();
    let (home, agent) = gated(&server);
    agent.hold("edit", 60).await;
    pre(&home).done();
    for bad in ["", "{", "[]", "{\"tool_name\":\"Edit\"}", "{\"hook_event_name\":7}", "\u{0}"] {
        refused(&hook(&home, "PreToolUse", bad), "what happened can't be read");
    }
    let mut no_lock = home.cli("hook claude-code --profile claude-code");
    let pre_input = input("PreToolUse", &json!({}));
    refused(&home.run(&mut no_lock, &pre_input), "no lock is named");
    let mut half = home.cli("hook claude-code --profile claude-code --lock edit");
    refused(&home.run(&mut half, &pre_input), "is missing");

    let settings = home.read(".claude/settings.json");
    home.write(".claude/settings.json", &settings.replace(program(), "/nowhere/pearing-cli"));
    assert_eq!(pre(&home).code, Some(2), "a program that is gone lets nothing through");
    home.write(".claude/settings.json", &settings);
    pre(&home).done();
    home.says("revoke-agent-tokens claude-code").done();
    refused(&pre(&home), "unauthenticated");
    refused(&pre(&home), "it doesn't pass by itself, so tell the user");
    home.says("logout --profile claude-code").done();
    let gone = pre(&home);
    refused(&gone, "there is no profile claude-code");
    assert!(!gone.err.contains("try again"), "{gone:?}");
}

#[tokio::test]
async fn a_server_that_says_nothing_is_not_waited_for() {
    let mut server = Server::start();
    let (home, agent) = gated(&server);
    agent.hold("edit", 300).await;
    server.process().signal(rustix::process::Signal::STOP);
    let began = pearing::clock::monotonic();
    refused(&pre(&home), "no answer in time");
    // Claude Code itself would wait 15 s, and then let the tool run.
    assert!(pearing::clock::elapsed(began) < Duration::from_secs(14), "it gave up in time");
    server.process().signal(rustix::process::Signal::CONT);
    pre(&home).done();
}

#[tokio::test]
async fn a_file_that_is_a_pipe_without_a_writer_holds_no_gate_open() {
    let server = Server::start();
    let (home, _) = gated(&server);
    let pipe = home.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("it runs");
    assert!(made.success());
    let text = input("PreToolUse", &json!({})).to_string();
    let mut command = home.cli("hook claude-code --profile claude-code");
    command.arg("--config").arg(&pipe);
    let ended = home.run(&mut command, &text);
    assert_eq!(ended.code, Some(2), "{ended:?}");
}

#[tokio::test]
async fn after_a_tool_what_is_held_is_extended_and_what_is_lost_is_told() {
    let mut server = Server::start();
    let (home, agent) = gated(&server);
    let post = |home: &Home| {
        let more = json!({ "tool_response": { "success": true } });
        hook(home, "PostToolUse", &input("PostToolUse", &more))
    };
    let held = agent.hold("edit", 30).await;
    post(&home).done();
    let left = agent.look(&held).await["lease_remaining_ms"].as_u64().expect("it is held");
    assert!(left > 200_000, "{left}");
    let path = format!("/v1/locks/edit/break?repo={REPO}");
    let fence = held["fence_token"].clone();
    let broken = json!({ "fence_token": fence, "reason": "stuck" });
    assert_eq!(server.client("admin").post(&path, broken).await.status, 200);
    refused(&post(&home), "is not held, or not any more");
    // Who only reads needs no lock, nor who has just let go of it.
    for tool in ["Read", "mcp__pearing__release_lock_ticket"] {
        let read = hook(&home, "PostToolUse", &input("PostToolUse", &json!({ "tool_name": tool })));
        assert_eq!(read.done().err, "");
    }
    server.kill();
    let ended = post(&home);
    assert_eq!(ended.code, Some(1), "the tool has run, so there is nothing to refuse: {ended:?}");
}

#[tokio::test]
async fn a_session_lets_go_of_what_it_took_at_its_end() {
    let server = Server::start();
    let (home, agent) = gated(&server);
    let end = |more: Value| hook(&home, "SessionEnd", &input("SessionEnd", &more)).done();
    let state = async |ticket: &Value| agent.look(ticket).await["state"].clone();
    let (mine, other) = (agent.hold("edit", 60).await, agent.hold("other", 60).await);
    end(json!({ "reason": "prompt_input_exit" }));
    assert_eq!((state(&mine).await, state(&other).await), (json!("released"), json!("held")));

    // Another session of the same identity goes on with what it took.
    let (mine, theirs) = (agent.hold("edit", 60).await, agent.hold("edit", 60).await);
    let asked = json!({ "type": "tool_use", "input": { "request_uuid": mine["request_uuid"] } });
    // As a list of tickets shows it to whoever looks.
    let seen = json!({ "type": "tool_result", "content": [{ "text": theirs.to_string() }] });
    home.write("session.jsonl", &format!("{{}}\n{asked}\n{seen}\n"));
    end(json!({ "reason": "other", "transcript_path": home.path("session.jsonl") }));
    assert_eq!((state(&mine).await, state(&theirs).await), (json!("released"), json!("held")));

    // Without a gate it is whatever the session took, also a place in a queue.
    home.says("setup claude-code").done();
    let blocking = server.client("codex").hold("queue", 60).await;
    let waiting = agent.wait_for("queue", 60).await;
    end(json!({ "reason": "other" }));
    for (ticket, wanted) in [(&theirs, "released"), (&other, "released"), (&waiting, "cancelled")] {
        assert_eq!(state(ticket).await, json!(wanted));
    }
    server.client("codex").release(&blocking).await.ticket(200);
    end(json!({ "reason": "other" }));
}
