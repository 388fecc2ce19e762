//! The story of two agents and one event, as it is told to newcomers: the commands as they are
//! typed, by a shell, in their order. Only the ticket's id is the server's.

use std::fs;

use serde_json::Value;

use crate::support::{Server, shell};

const ACQUIRE: &str = r#"
pearing-cli acquire-lock thread-work.42 \
  --request-uuid a2b6da75-a87d-44e0-b413-484354289702 \
  --lease-seconds 60 \
  --wait-seconds 30 \
  --repo teams/platform/website"#;
const READ: &str = r#"
pearing-cli get-lock-ticket thread-work.42 \
  TICKET \
  --repo teams/platform/website"#;
const SAY: &str = r#"
pearing-cli update-user-activity \
  --activity "Revalidating teams/platform/website thread #42 under lock thread-work.42.""#;
const TREE: &str = "pearing-cli get-thread-tree teams/platform/website 42";
const HEARTBEAT: &str = r#"
pearing-cli heartbeat-lock-ticket thread-work.42 \
  TICKET \
  --lease-seconds 60 \
  --repo teams/platform/website"#;
const REPLY: &str = r#"
pearing-cli create-reply teams/platform/website 42 \
  --kind implementation \
  --body "Claimed current work; pushed recoverable progress before the long validation step." \
  --link branch:codex/thread-42"#;
const RELEASE: &str = r#"
pearing-cli release-lock-ticket thread-work.42 \
  TICKET \
  --repo teams/platform/website"#;
const CLEAR: &str = "pearing-cli update-user-activity --clear";

/// Types a command into a shell as a user. Returns its exit code and what it printed.
fn types(server: &Server, user: &str, line: &str, output: &str) -> (Option<i32>, String) {
    let mut shell = shell(server.home(), line);
    shell.env("PEARING_URL", server.url()).env("PEARING_OUTPUT", output);
    shell.env("PEARING_TOKEN", server.client(user).token());
    let ended = shell.output().expect("there is a shell");
    (ended.status.code(), String::from_utf8(ended.stdout).expect("it prints UTF-8"))
}

#[tokio::test]
async fn the_story_of_two_agents_runs_as_it_is_told() {
    let server = Server::start();
    let (code, held) = types(&server, "codex", ACQUIRE, "json");
    assert_eq!(code, Some(0), "{held}");
    let held: Value = serde_json::from_str(&held).expect("one line of JSON");
    let ticket = held["ticket"]["ticket_id"].as_str().expect("a ticket has an id");
    let as_codex = |line: &str| types(&server, "codex", &line.replace("TICKET", ticket), "text");
    let as_claude = |line: &str| types(&server, "claude", line, "text");

    for line in [READ, SAY] {
        assert_eq!(as_codex(line).0, Some(0), "{line}");
    }
    let (code, tree) = as_codex(TREE);
    assert_eq!(code, Some(0), "{tree}");
    assert!(tree.starts_with("teams/platform/website #42  open\n"), "{tree}");
    assert_eq!(as_codex(HEARTBEAT).0, Some(0));
    let (code, said) = as_codex(REPLY);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.starts_with("reply ") && said.contains(" to teams/platform/website #42\n"),
        "{said}"
    );

    let (_, tree) = as_claude(TREE);
    let lines: Vec<&str> = tree.lines().map(str::trim).collect();
    assert!(lines.iter().any(|line| line.contains("codex  implementation")), "{tree}");
    assert!(lines.iter().any(|line| line.starts_with("Claimed current work;")), "{tree}");
    assert!(lines.contains(&"-> branch:codex/thread-42"), "{tree}");
    let (_, activity) = as_claude("pearing-cli list-activity");
    let said = "Revalidating teams/platform/website thread #42 under lock thread-work.42.";
    let entry = activity.lines().find(|line| line.starts_with("codex")).expect("it is listed");
    assert!(entry.ends_with(said) && entry.contains("yes"), "{activity}");

    for (verb, state) in [("close", "closed"), ("reopen", "open")] {
        let (_, said) = as_codex(&format!("pearing-cli {verb}-thread teams/platform/website 42"));
        assert_eq!(said, format!("teams/platform/website #42 is {state}\n"));
    }
    for line in [RELEASE, CLEAR] {
        assert_eq!(as_codex(line).0, Some(0), "{line}");
    }
    assert_eq!(as_claude("pearing-cli list-activity").1, "", "nobody says anything any more");
}

#[test]
fn work_that_must_be_done_once_is_done_once() {
    let server = Server::start();
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md"));
    let readme = readme.expect("the README is there");
    let first = "    pearing-cli with-lock build.7 --repo teams/platform/website";
    let lines = readme.lines().skip_while(|line| !line.starts_with(first));
    let recipe: Vec<&str> = lines.map_while(|line| line.strip_prefix("    ")).collect();
    let recipe = format!("cd {} && {}", server.home().display(), recipe.join("\n"));
    let recipe = recipe.replace("echo worked > done.txt", "echo worked | tee -a done.txt");
    for (user, said) in [("codex", "worked\n"), ("claude", ""), ("codex", "")] {
        assert_eq!(types(&server, user, &recipe, "text"), (Some(0), said.to_owned()), "{recipe}");
    }
    let done = fs::read_to_string(server.home().join("done.txt"));
    assert_eq!(done.expect("it was done"), "worked\n");
}

#[tokio::test]
async fn under_a_lock_a_reply_is_fenced_by_itself() {
    let server = Server::start();
    let held = server.client("codex").hold("thread-work.42", 60).await;
    let line = |fence: &str| format!("PEARING_LOCK_NAME=thread-work.42 {fence} {}", REPLY.trim());
    let right = format!("PEARING_FENCE_TOKEN={}", held["fence_token"]);
    assert_eq!(types(&server, "codex", &line(&right), "text").0, Some(0));
    let event = server.client("codex").events("&type=thread.replied").await.pop();
    let fence = &event.expect("it was written")["data"]["fence"];
    assert_eq!(fence["fence_token"], held["fence_token"]);
    // In text, what is refused prints nothing on stdout; both are looked at here.
    let says = |fence: &str| types(&server, "codex", &format!("{} 2>&1", line(fence)), "text");
    let (code, said) = says("PEARING_FENCE_TOKEN=1");
    assert_eq!(code, Some(5), "{said}");
    assert!(said.contains("stop: nothing was done under that hold"), "{said}");
    for half in ["", "PEARING_FENCE_TOKEN=$(printf '\\377')"] {
        let (code, said) = says(half);
        assert_eq!(code, Some(2), "a wrong fence, or half of one, is not none: {said}");
    }
    let (code, said) = says(&format!("{right} PEARING_SCOPE=teams/platform"));
    assert_eq!(code, Some(0), "{said}");
    let why = "not fenced: PEARING_SCOPE is teams/platform, not teams/platform/website\n";
    assert!(said.contains(why), "{said}");
    let event = server.client("codex").events("&type=thread.replied").await.pop();
    assert_eq!(event.expect("it was written")["data"]["fence"], Value::Null);
}
