//! respond: each event of a thread is worked on by one at a time, and not again once it is
//! finished, whatever is killed on the way.

mod killed;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::{REPO, Relay, Server, eventually, pearing_cli};

/// What is common to the responders of a test: the log that their commands write to.
struct Stage<'a> {
    server: &'a Server,
    log: PathBuf,
}

/// A responder that runs. Killed when it is dropped.
struct Responder(Child);

impl<'a> Stage<'a> {
    fn new(server: &'a Server) -> Self {
        Self { server, log: server.home().join("log") }
    }

    /// A responder with a state of its user's own, from the first event on.
    fn respond(&self, user: &str, flags: &str, script: &str) -> Command {
        let mut command = pearing_cli(self.server.home());
        let state = self.server.home().join(format!("{user}.json"));
        command.args(["respond", "--repo", REPO, "--lock", "thread-work.{thread}", "--after", "0"]);
        command.arg("--cursor").arg(state);
        command.args(flags.split(' ').filter(|flag| !flag.is_empty()));
        command.args(["--", "sh", "-c", script]);
        command.env("PEARING_URL", self.server.url()).env("WHO", user).env("LOG", &self.log);
        command.env("PEARING_TOKEN", self.server.client(user).token());
        command.env("CLI", env!("CARGO_BIN_EXE_pearing-cli"));
        command
    }

    /// Runs a responder until history has met the present: its exit code, and what it said.
    fn run(&self, user: &str, flags: &str, script: &str) -> (Option<i32>, String) {
        let flags = format!("--until-caught-up {flags}");
        let output = self.respond(user, &flags, script).output().expect("it runs");
        (output.status.code(), String::from_utf8(output.stderr).expect("messages are UTF-8"))
    }

    fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    async fn lines_to_be(&self, count: usize) -> Vec<String> {
        eventually("the log", async || {
            let lines = self.lines();
            (lines.len() >= count).then_some(lines)
        })
        .await
    }

    /// Begins a thread. Says its number, and the event's sequence.
    async fn thread(&self) -> (u64, u64) {
        let body = json!({ "title": "Slow start", "body": "" });
        let path = format!("/v1/threads?repo={REPO}");
        let made = self.server.client("admin").post(&path, body).await;
        assert_eq!(made.status, 201, "{}", made.body);
        (made.body["number"].as_u64().expect("a number"), made.sequence())
    }

    /// Replies to a thread. Says the event's sequence.
    async fn reply(&self, thread: u64) -> u64 {
        let body = json!({ "kind": "question", "body": "Why?", "links": [] });
        let path = format!("/v1/threads/{thread}/replies?repo={REPO}");
        let made = self.server.client("admin").post(&path, body).await;
        assert_eq!(made.status, 201, "{}", made.body);
        made.sequence()
    }

    /// The marks of finished events: the event's sequence, and the mark's own event.
    async fn marks(&self) -> Vec<(u64, Value)> {
        let replies = self.server.client("admin").events("&type=thread.replied").await;
        let marks = replies.into_iter().filter(|event| event["data"]["kind"] == "handled");
        let sequence = |event: &Value| {
            let body = event["data"]["body"].as_str().expect("a text");
            let sequence = body.strip_prefix("handled event ").expect("it says of which");
            sequence.parse().expect("a sequence")
        };
        marks.map(|event| (sequence(&event), event)).collect()
    }
}

impl Responder {
    fn start(command: &mut Command, stderr: &Path) -> Self {
        let stderr = fs::File::options().create(true).append(true).open(stderr);
        command.stdout(Stdio::null()).stderr(stderr.expect("the directory is ours"));
        Self(command.spawn().expect("it runs"))
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).expect("it runs");
    }

    async fn code(&mut self) -> Option<i32> {
        eventually("its end", async || self.0.try_wait().expect("it is our child")).await.code()
    }

    /// kill -9, and it is gone.
    async fn kill(&mut self) {
        self.signal(Signal::KILL);
        assert_eq!(self.code().await, None, "the signal ended it");
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn the_command_finds_its_event_and_what_it_writes_wakes_nobody() {
    let server = Server::start();
    let stage = Stage::new(&server);
    let (thread, created) = stage.thread().await;
    let replied = stage.reply(thread).await;
    let script = r#"
        read -r event
        case "$event" in *'"id":"'$PEARING_EVENT_SEQUENCE'"'*) ;; *) exit 1 ;; esac
        read -r more && exit 2
        echo $PEARING_EVENT_SEQUENCE $PEARING_EVENT_TYPE $PEARING_THREAD $PEARING_LOCK_NAME >> $LOG
        $CLI create-reply $PEARING_SCOPE $PEARING_THREAD --kind note --body done
    "#;
    // What was there before this test is responded to as well.
    let before = server.client("admin").events("&type=thread.created").await.len() - 1;
    let (code, said) = stage.run("claude", "", script);
    assert_eq!(code, Some(0), "{said}");
    let lines = stage.lines();
    let expected = [
        format!("{created} thread.created {thread} thread-work.{thread}"),
        format!("{replied} thread.replied {thread} thread-work.{thread}"),
    ];
    assert_eq!(lines[before..], expected, "{said}");
    let marks = stage.marks().await;
    assert_eq!(marks.len(), lines.len());
    let (sequence, mark) = marks.last().expect("a mark");
    assert_eq!((*sequence, &mark["actor"]), (replied, &json!("claude")));
    assert_eq!(mark["data"]["fence"]["lock_name"], format!("thread-work.{thread}"));
    // Neither the same one, nor another from the first event on, runs it again.
    for user in ["claude", "codex"] {
        let (code, said) = stage.run(user, "", script);
        assert_eq!((code, stage.lines().len()), (Some(0), lines.len()), "{user}: {said}");
    }
    let last = stage.reply(thread).await;
    let (code, said) = stage.run("codex", "--on thread.replied", script);
    assert_eq!(code, Some(2), "it is another responder's state: {said}");
    let (code, said) = stage.run("codex", "", script);
    assert_eq!(code, Some(0), "{said}");
    assert!(stage.lines().last().is_some_and(|line| line.starts_with(&last.to_string())));
}

#[tokio::test]
async fn an_event_whose_command_fails_is_tried_again_and_then_given_up() {
    let server = Server::start();
    let stage = Stage::new(&server);
    let (thread, created) = stage.thread().await;
    let replied = stage.reply(thread).await;
    let script = format!(
        "echo $PEARING_EVENT_SEQUENCE >> $LOG; test $PEARING_EVENT_SEQUENCE != {created} || exit 9"
    );
    let (code, said) = stage.run("claude", "--attempts 2", &script);
    assert_eq!(code, Some(1), "{said}");
    let of = |sequence: u64| stage.lines().iter().filter(|l| **l == sequence.to_string()).count();
    assert_eq!((of(created), of(replied)), (2, 1), "{said}");
    let word = format!("event {created}: failed (2 of 2) with exit code 9: given up");
    assert!(said.contains(&word), "{said}");
    assert!(stage.marks().await.iter().all(|(sequence, _)| *sequence != created));
    let (code, said) = stage.run("claude", "--attempts 2", &script);
    assert_eq!((code, of(created)), (Some(0), 2), "it goes on: {said}");
    let lock = server.client("admin").lock(&format!("thread-work.{thread}")).await;
    assert!(lock["owner"].is_null(), "{lock}");
}

#[tokio::test]
async fn a_signal_is_passed_on_and_the_event_is_worked_on_again_at_the_next_start() {
    let server = Server::start();
    let stage = Stage::new(&server);
    let (thread, created) = stage.thread().await;
    let script = format!(
        "test $PEARING_EVENT_SEQUENCE = {created} || exit 0; test -e $LOG && exec echo >> $LOG; \
         trap 'echo asked >> $LOG; exit 0' TERM; echo begins >> $LOG; while :; do sleep 0.02; done"
    );
    let said = server.home().join("said");
    let mut responder = Responder::start(&mut stage.respond("claude", "", &script), &said);
    stage.lines_to_be(1).await;
    responder.signal(Signal::TERM);
    assert_eq!(responder.code().await, Some(128 + 15));
    assert_eq!(stage.lines(), ["begins", "asked"]);
    let lock = server.client("admin").lock(&format!("thread-work.{thread}")).await;
    assert!(lock["owner"].is_null(), "{lock}");
    let marked = async || stage.marks().await.iter().any(|(sequence, _)| *sequence == created);
    assert!(!marked().await, "it was asked to end, whatever its exit code");
    let (code, said) = stage.run("claude", "", &script);
    assert_eq!((code, stage.lines().len(), marked().await), (Some(0), 3, true), "{said}");
}

#[tokio::test]
async fn one_process_has_a_cursor_and_the_command_line_is_looked_at_first() {
    let server = Server::start();
    let stage = Stage::new(&server);
    for (flags, word) in [
        ("--lock work", "lock must be a lock name with {thread} in it"),
        ("--lock {sequence}", "lock must be a lock name with {thread} in it"),
        ("--on lock.*", "on must begin with thread."),
        ("--grace 21", "grace must be at most a third of the lease"),
        ("--attempts 0", "0 is not in 1..=100"),
    ] {
        let mut command = pearing_cli(server.home());
        command.args(["respond", "--repo", REPO]).args(flags.split(' '));
        if !flags.starts_with("--lock") {
            command.args(["--lock", "work.{thread}"]);
        }
        let output = command.args(["--", "true"]).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{flags}: {said}");
        assert!(said.contains(word), "{flags}: {said}");
    }
    let said = server.home().join("said");
    let _first = Responder::start(&mut stage.respond("claude", "", "true"), &said);
    let state = server.home().join("claude.json");
    eventually("the state", async || state.exists().then_some(())).await;
    let (code, said) = stage.run("claude", "", "true");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("claude.json: another process has it"), "{said}");
}

#[tokio::test]
async fn it_goes_on_over_a_server_that_is_killed() {
    let mut server = Server::start();
    let relay = Relay::before(server.url()).await;
    let go = server.home().join("go");
    let script = format!(
        "echo $PEARING_EVENT_SEQUENCE >> $LOG; while [ ! -e {} ]; do sleep 0.02; done",
        go.display()
    );
    let (responder, first, thread) = {
        let stage = Stage::new(&server);
        let (thread, _) = stage.thread().await;
        let mut command = stage.respond("claude", "--lease-seconds 60", &script);
        let said = server.home().join("said");
        let responder = Responder::start(command.env("PEARING_URL", relay.url()), &said);
        (responder, stage.lines_to_be(1).await, thread)
    };
    server.crash();
    relay.lead_to(server.url());
    fs::write(&go, "").expect("the directory is ours");
    let stage = Stage::new(&server);
    let last = stage.reply(thread).await;
    eventually("the last event to be finished", async || {
        stage.marks().await.iter().any(|(sequence, _)| *sequence == last).then_some(())
    })
    .await;
    let lines = stage.lines();
    assert_eq!(lines.first(), first.first());
    let mut once = lines.clone();
    once.dedup();
    assert_eq!(once, lines, "nothing is run again, and the first command ran on");
    drop(responder);
}
