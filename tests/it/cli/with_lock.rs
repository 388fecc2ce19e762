//! with-lock: the command runs under the lock and never without, whatever happens to either.

mod loss;
mod terminal;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{Ended, cli, ended};
use crate::support::{REPO, Server, eventually, pearing_cli};

/// with-lock, for the lock `x` of the repository, as a user.
fn with_lock(server: &Server, user: &str, flags: &str, command: &[&str]) -> Command {
    let flags = flags.split(' ').filter(|flag| !flag.is_empty());
    let words: Vec<&str> = ["with-lock", "x", "--repo", REPO].into_iter().chain(flags).collect();
    let mut wrapper = cli(server, user, &words);
    wrapper.arg("--").args(command);
    wrapper
}

/// The same, run to its end.
fn run(server: &Server, user: &str, flags: &str, command: &[&str]) -> Ended {
    ended(with_lock(server, user, flags, command).output().expect("it runs"))
}

/// A wrapper that runs, and what it says.
struct Wrapper(Child);

impl Wrapper {
    fn start(command: &mut Command) -> Self {
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        Self(command.spawn().expect("it runs"))
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).expect("it runs");
    }

    /// Its end, without standing in the way of what else this test does.
    async fn status(&mut self) -> ExitStatus {
        eventually("its end", async || self.0.try_wait().expect("it is our child")).await
    }

    async fn code(&mut self) -> Option<i32> {
        self.status().await.code()
    }

    /// What it said, once it has ended.
    fn said(&mut self) -> String {
        let stderr = self.0.stderr.take().expect("it is piped");
        std::io::read_to_string(stderr).expect("messages are UTF-8")
    }
}

impl Drop for Wrapper {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A file that commands write to.
struct Log(PathBuf);

impl Log {
    fn new(server: &Server, name: &str) -> Self {
        Self(server.home().join(name))
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a path that is text")
    }

    fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.0).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The first line, once it is there whole.
    async fn first(&self) -> String {
        eventually("a line", async || {
            let text = fs::read_to_string(&self.0).unwrap_or_default();
            text.split_once('\n').map(|(line, _)| line.to_owned())
        })
        .await
    }
}

/// The process group of a process that runs. One that has ended and that nobody has asked about
/// yet doesn't.
fn group_of(pid: &str) -> Option<String> {
    let stat = fs::read_to_string(Path::new("/proc").join(pid).join("stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let (state, _, group) = (fields.next()?, fields.next()?, fields.next()?);
    (state != "Z").then(|| group.to_owned())
}

fn is_running(pid: &str) -> bool {
    group_of(pid).is_some()
}

/// The processes of a group that run.
fn left_of(group: &str) -> Vec<String> {
    let all = fs::read_dir("/proc").expect("there are processes");
    let pids = all.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    pids.filter(|pid| group_of(pid).as_deref() == Some(group)).collect()
}

async fn owner(server: &Server) -> Value {
    server.client("admin").lock("x").await["owner"].clone()
}

/// The types of the lock's events so far.
async fn events(server: &Server) -> Vec<String> {
    let events = server.client("admin").events("&lock=x&type=lock.*").await;
    let name = |event: &Value| event["type"].as_str().expect("a type").replace("pearing.lock.", "");
    events.iter().map(name).collect()
}

#[tokio::test]
async fn the_commands_exit_code_is_passed_on_and_the_lock_released_each_time() {
    let server = Server::start();
    let plain = server.home().join("plain");
    fs::write(&plain, "no program").expect("the directory is ours");
    let plain = plain.to_str().expect("a path that is text");
    for (command, code, word) in [
        (&["true"][..], 0, ""),
        (&["sh", "-c", "exit 1"], 1, ""),
        (&["sh", "-c", "exit 3"], 3, ""),
        (&[plain], 126, "Permission denied"),
        (&["no-such-program"], 127, "no-such-program: No such file"),
        (&["sh", "-c", "kill -9 $$"], 137, ""),
        (&["sh", "-c", "exit 124"], 124, "the command's own exit code is 124"),
        (&["sh", "-c", "exit 125"], 125, "the command's own exit code is 125"),
    ] {
        let ended = run(&server, "claude", "", command);
        assert_eq!(ended.code, Some(code), "{command:?}: {ended:?}");
        assert!(ended.stderr.contains(word), "{command:?}: {ended:?}");
        assert_eq!(ended.stderr.is_empty(), word.is_empty(), "{command:?}: {ended:?}");
        assert_eq!(owner(&server).await, Value::Null, "{command:?}");
    }
    assert_eq!(events(&server).await, ["acquired", "released"].repeat(8));
}

#[tokio::test]
async fn an_exit_code_is_passed_on_whatever_signals_the_wrapper_was_started_without() {
    let server = Server::start();
    let wrapper = with_lock(&server, "claude", "", &["sh", "-c", "exit 3"]);
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' CHLD PIPE; exec \"$@\"", "sh"]).arg(wrapper.get_program());
    shell.args(wrapper.get_args()).stdin(Stdio::null());
    for (name, value) in wrapper.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let ended = ended(shell.output().expect("it runs"));
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(3), ""), "{ended:?}");
}

#[tokio::test]
async fn without_the_lock_the_command_is_not_run() {
    let mut server = Server::start();
    let ran = Log::new(&server, "ran");
    let command = ["touch", ran.path()];
    server.client("codex").hold("x", 60).await;
    for (user, flags, code, word) in [
        ("claude", "", 124, "lock-contended: x in teams/platform/website is taken; held by codex"),
        ("claude", "--on-conflict skip", 0, "pearing-cli: skipped: the command was not run\n"),
        ("claude", "--wait-seconds 1", 124, "waiting: position 1 for x in teams/platform/website"),
        ("claude", "--wait-seconds 1 --on-conflict skip", 0, "pearing-cli: skipped:"),
        ("codex", "--wait-seconds 60", 124, "another session of codex has it"),
        (
            "claude",
            "--grace 21",
            2,
            "pearing-cli: invalid-argument: grace must be at most a third of the lease",
        ),
        ("claude", "--grace x", 2, "grace must be a whole number of seconds"),
        ("claude", "--url nowhere", 2, "invalid-argument: url"),
    ] {
        let ended = run(&server, user, flags, &command);
        assert_eq!(ended.code, Some(code), "{user} {flags}: {ended:?}");
        assert!(ended.stderr.contains(word), "{user} {flags}: {ended:?}");
        assert!(!ended.stderr.contains("UUID"), "each run is a new request: {ended:?}");
    }
    for (variable, word, code) in [
        ("PEARING_TOKEN", "unauthenticated", 125),
        ("PEARING_URL", "invalid-argument: PEARING_URL", 2),
        ("PEARING_PROFILE", "invalid-argument: there is no profile nothing", 2),
    ] {
        let mut wrapper = with_lock(&server, "claude", "", &command);
        if variable == "PEARING_PROFILE" {
            wrapper.env_remove("PEARING_TOKEN");
        }
        let ended = ended(wrapper.env(variable, "nothing").output().expect("it runs"));
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(ended.stderr.contains(word), "{ended:?}");
        let is_own = ended.stderr.contains("with-lock failed (exit code 125)");
        assert_eq!(is_own, code == 125, "{ended:?}");
    }
    let unknown = ["with-lock", "x", "--repo", "teams/platform/nowhere", "--", "true"];
    let ended = ended(cli(&server, "claude", &unknown).output().expect("it runs"));
    assert!(ended.code == Some(125) && ended.stderr.contains("not-found"), "{ended:?}");
    server.kill();
    let ended = run(&server, "claude", "--on-conflict skip", &command);
    assert_eq!(ended.code, Some(125), "no answer is no conflict: {ended:?}");
    assert!(!Path::new(ran.path()).exists());
}

#[tokio::test]
async fn the_command_finds_its_lock_and_replies_under_it() {
    let server = Server::start();
    let claude = server.client("claude");
    let thread = json!({ "title": "Slow start", "body": "" });
    let made = claude.post(&format!("/v1/threads?repo={REPO}"), thread).await;
    let number = made.body["number"].as_u64().expect("it is made");
    let program = env!("CARGO_BIN_EXE_pearing-cli");
    let says = "echo $PEARING_LOCK_NAME $PEARING_SCOPE $PEARING_TICKET_ID $PEARING_FENCE_TOKEN \
        $PEARING_LEASE_SECONDS";
    let script = format!(
        "{says}; {program} create-reply {REPO} {number} --kind note --body done >&2; \
         {program} get-lock x --repo {REPO} >&2"
    );
    let mut wrapper = with_lock(&server, "claude", "--lease-seconds 30", &["sh", "-c", &script]);
    let output = wrapper.output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    let events = claude.events("&lock=x&type=lock.acquired").await;
    let ticket = &events[0]["data"];
    let text = |name: &str| ticket[name].to_string().replace('"', "");
    let expected = format!("x {REPO} {} {} 30\n", text("ticket_id"), text("fence_token"));
    assert_eq!(String::from_utf8(output.stdout).expect("it is text"), expected);
    let replied = claude.events("&type=thread.replied").await;
    let fence = json!({ "lock_name": "x", "fence_token": ticket["fence_token"] });
    assert_eq!(replied.last().expect("a reply")["data"]["fence"], fence);
}

#[tokio::test]
async fn signals_are_the_commands_and_its_end_is_waited_for_before_the_release() {
    let server = Server::start();
    let signals = [
        (Signal::TERM, 15),
        (Signal::INT, 2),
        (Signal::HUP, 1),
        (Signal::QUIT, 3),
        (Signal::USR1, 10),
        (Signal::USR2, 12),
    ];
    for (signal, number) in signals {
        let pid = Log::new(&server, &format!("pid-{number}"));
        let script = format!("echo $$ > {}; exec sleep 600", pid.path());
        let command = ["sh", "-c", &script];
        let mut wrapper =
            Wrapper::start(&mut with_lock(&server, "claude", "--lease-seconds 10", &command));
        let pid = pid.first().await;
        // It has become what it is to be only after that line.
        eventually("sleep", async || {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            (name == "sleep\n").then_some(())
        })
        .await;
        wrapper.signal(signal);
        assert_eq!(wrapper.code().await, Some(128 + number), "{}", wrapper.said());
        assert!(!is_running(&pid));
        assert_eq!(owner(&server).await, Value::Null);
    }
    // A command that takes a signal for something else goes on, under the lock.
    let log = Log::new(&server, "log");
    let program = env!("CARGO_BIN_EXE_pearing-cli");
    let look = format!("{program} --json get-lock x --repo {REPO} >> {}", log.path());
    let script = format!(
        "trap 'sleep 0.3; {look}; exit 7' TERM; echo begins >> {}; while :; do sleep 0.05; done",
        log.path()
    );
    let mut wrapper = Wrapper::start(&mut with_lock(&server, "claude", "", &["sh", "-c", &script]));
    log.first().await;
    wrapper.signal(Signal::TERM);
    assert_eq!(wrapper.code().await, Some(7), "{}", wrapper.said());
    let lock: Value = serde_json::from_str(&log.lines()[1]).expect("a lock");
    assert_eq!(lock["owner"], "claude", "it is released after the command's end");
    assert_eq!(owner(&server).await, Value::Null);
}

#[tokio::test]
async fn a_command_that_is_stopped_is_woken_to_end_by_a_signal() {
    let server = Server::start();
    let log = Log::new(&server, "log");
    let script = format!("echo begins >> {}; kill -STOP $$; sleep 600", log.path());
    let command = ["sh", "-c", &script];
    let mut wrapper = Wrapper::start(&mut with_lock(&server, "claude", "", &command));
    log.first().await;
    wrapper.signal(Signal::TERM);
    assert_eq!(wrapper.code().await, Some(128 + 15));
    assert!(owner(&server).await.is_null());
}

#[tokio::test]
async fn a_signal_that_was_ignored_at_the_start_stays_ignored() {
    let server = Server::start();
    let log = Log::new(&server, "log");
    let inner = format!("echo begins >> {0}; read word; echo \"$word\" >> {0}", log.path());
    let of_inner = with_lock(&server, "claude", "", &["sh", "-c", &inner]);
    let mut command = Command::new("env");
    command.args(["--ignore-signal=HUP", env!("CARGO_BIN_EXE_pearing-cli")]);
    // Without what would have it hear all signals.
    command.args(of_inner.get_args().skip(2));
    command.envs(of_inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut wrapper = Wrapper::start(command.stdin(Stdio::piped()));
    log.first().await;
    wrapper.signal(Signal::HUP);
    let mut stdin = wrapper.0.stdin.take().expect("it is piped");
    stdin.write_all(b"went on\n").expect("it reads");
    assert_eq!(wrapper.code().await, Some(0));
    assert_eq!(log.lines(), ["begins", "went on"]);
}

#[tokio::test]
async fn a_signal_while_it_waits_gives_the_ticket_up() {
    let server = Server::start();
    let claude = server.client("claude");
    claude.hold("x", 60).await;
    let flags = "--wait-seconds 600";
    let mut wrapper = Wrapper::start(&mut with_lock(&server, "codex", flags, &["true"]));
    eventually("it to wait", async || {
        let queue = claude.lock("x").await["queue"].clone();
        queue.as_array().is_some_and(|queue| !queue.is_empty()).then_some(())
    })
    .await;
    wrapper.signal(Signal::INT);
    assert_eq!(wrapper.code().await, Some(128 + 2));
    assert_eq!(claude.lock("x").await["queue"], json!([]), "the ticket was cancelled");
    assert!(wrapper.said().contains("the command was not run"));
}

#[tokio::test]
async fn what_outlives_the_command_keeps_neither_lock_nor_heartbeat() {
    let server = Server::start();
    let pid = Log::new(&server, "pid");
    let script = format!("sleep 600 >/dev/null 2>&1 & echo $! > {}", pid.path());
    let ended = run(&server, "claude", "--lease-seconds 5", &["sh", "-c", &script]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let pid = pid.first().await;
    assert!(is_running(&pid), "it is nobody's business any more");
    assert_eq!(events(&server).await, ["acquired", "released"]);
    // Somebody else's hold lasts for all that it has left behind.
    let ended = run(&server, "codex", "--lease-seconds 5", &["sleep", "3"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let events = events(&server).await;
    let (first, rest) = events.split_at(2);
    assert_eq!((first.len(), rest.first().map(String::as_str)), (2, Some("acquired")));
    assert_eq!(rest.last().map(String::as_str), Some("released"));
    let pid = pid.parse().ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(pid, Signal::KILL).expect("it still runs");
}

/// A wrapper that asks by way of another address than the server's own.
fn by_way_of(server: &Server, url: &str, flags: &str, script: &str) -> Command {
    let mut wrapper = with_lock(server, "claude", flags, &["sh", "-c", script]);
    wrapper.env("PEARING_URL", url);
    wrapper
}

#[test]
fn help_says_what_it_does() {
    let home = tempfile::tempdir().expect("there can be a temporary folder");
    let output = pearing_cli(home.path()).args(["with-lock", "--help"]).output();
    let help = String::from_utf8(output.expect("it runs").stdout).expect("it is text");
    for flag in ["--on-conflict", "--grace", "--wait-seconds", "-- <COMMAND>..."] {
        assert!(help.contains(flag), "{flag}: {help}");
    }
}
