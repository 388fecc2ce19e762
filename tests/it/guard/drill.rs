//! `pearing-cli drill`: the story of a zombie, at a real server.

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::{Server, eventually};

/// The agents of claude, and whether each has a token that works.
async fn agents(server: &Server) -> Vec<(String, bool)> {
    let list = server.client("claude").get("/v1/agents").await.body;
    let items = list["items"].as_array().expect("a list has items");
    let is_live = |token: &Value| token["revoked"] == json!(false);
    let row = |agent: &Value| {
        let tokens = agent["tokens"].as_array().expect("it has tokens");
        let name = agent["user"].as_str().expect("a name").to_owned();
        (name, tokens.iter().any(is_live))
    };
    items.iter().map(row).collect()
}

fn no_tokens() -> Vec<(String, bool)> {
    ["claude.drill-a", "claude.drill-b"].map(|name| (name.to_owned(), false)).into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_drill_shows_the_harm_and_the_refusal_and_leaves_nothing_behind() {
    let server = Server::start();
    let temporary = server.home().join("temporary");
    std::fs::create_dir(&temporary).expect("the folder is ours");
    let mut command = server.cli(&server.client("claude"));
    // Nothing of this reaches the repositories that it makes.
    command.env("GIT_DIR", "/nowhere").env("TMPDIR", &temporary).arg("drill");
    let output = command.output().expect("it runs");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let told: Value = serde_json::from_slice(&output.stdout).expect("one line of JSON");
    let [a, b] = ["claude.drill-a", "claude.drill-b"];
    assert_eq!(told["unguarded"], json!({ "exit_code": 0, "written_by": a }), "{told}");
    assert_eq!(told["guarded"], json!({ "exit_code": 5, "written_by": b }), "{told}");
    assert_eq!((&told["scope"], &told["refused"]), (&json!("users/claude"), &json!(true)));
    let fence = |of: &str| told[of]["fence_token"].as_u64().expect("a fence token");
    assert!(fence("current") > fence("late"));
    assert_eq!(agents(&server).await, no_tokens());
    assert_eq!(std::fs::read_dir(&temporary).expect("it is there").count(), 0);

    let text = command.env("PEARING_OUTPUT", "text").output().expect("it runs");
    let said = String::from_utf8_lossy(&text.stdout).into_owned();
    assert_eq!(text.status.code(), Some(0), "a second time too: {text:?}");
    assert!(said.contains("with the guard   git-push exits with 5"), "{said}");
    assert!(said.ends_with("and the guard refused it.\n"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drill_that_is_stopped_puts_everything_back() {
    let server = Server::start();
    let mut command = server.cli(&server.client("claude"));
    command.env("TMPDIR", server.home()).arg("drill").stderr(Stdio::piped());
    let child = command.spawn().expect("it runs");
    eventually("the first agent to hold the lock", async || {
        let path = "/v1/locks?user=claude";
        let list = server.client("claude").get(path).await.body;
        (list["items"] != json!([])).then_some(())
    })
    .await;
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(128 + 15), "{output:?}");
    assert_eq!(agents(&server).await, no_tokens());
    let left = std::fs::read_dir(server.home()).expect("it is there").flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    assert!(
        !left.iter().any(|name| name.to_string_lossy().starts_with("pearing-drill")),
        "{left:?}"
    );
}
