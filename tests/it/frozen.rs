//! A holder that is frozen in the middle of its work, and goes on when its lease is long over: its
//! late write is refused, since it names the fence token of a hold that is no more.
//!
//! Real processes and real time: a lease can't be shorter than five seconds.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::{Client, REPO, Server, eventually, shell};

const LOCK: &str = "thread-work.42";

/// What the holder does: takes the lock, says so, works until it is told to write, and writes,
/// once by the command and once by hand. It says how each write ended, and whether the lock is
/// still its own.
const WORK: &str = r#"
answer=$(pearing-cli acquire-lock "$PEARING_LOCK_NAME" --lease-seconds 5 --repo "$REPO") || exit 99
ticket=$(printf %s "$answer" | sed 's/.*"ticket_id":"\([^"]*\)".*/\1/')
PEARING_FENCE_TOKEN=$(printf %s "$answer" | sed 's/.*"fence_token":\([0-9]*\).*/\1/')
export PEARING_FENCE_TOKEN
echo "$PEARING_FENCE_TOKEN"
read -r go
pearing-cli create-reply "$REPO" 42 --kind implementation --body "by $NAME" > "$HOME/$NAME.refused"
echo "reply $?"
body="{\"kind\":\"implementation\",\"body\":\"by $NAME\",\"fence\":
  {\"lock_name\":\"$PEARING_LOCK_NAME\",\"fence_token\":$PEARING_FENCE_TOKEN}}"
printf 'header = "Authorization: Bearer %s"\n' "$PEARING_TOKEN" |
  curl --silent --noproxy '*' --config - --header 'Content-Type: application/json' \
    --data "$body" --output "$HOME/$NAME.problem" --write-out 'status %{http_code}\n' \
    "$PEARING_URL/v1/threads/42/replies?repo=$REPO"
pearing-cli heartbeat-lock-ticket "$PEARING_LOCK_NAME" "$ticket" --repo "$REPO" > "$HOME/beat"
echo "heartbeat $?"
"#;

/// A shell that works as somebody, in a process of its own. It is killed when it is dropped.
struct Worker {
    shell: Child,
    said: std::io::Lines<BufReader<ChildStdout>>,
}

impl Worker {
    fn start(server: &Server, name: &str, client: &Client) -> Self {
        let mut shell = shell(server.home(), WORK);
        shell.env("PEARING_URL", server.url()).env("PEARING_OUTPUT", "json");
        shell.env("PEARING_TOKEN", client.token()).env("PEARING_LOCK_NAME", LOCK);
        shell.env("REPO", REPO).env("NAME", name);
        shell.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = shell.spawn().expect("there is a shell");
        let stdout = shell.stdout.take().expect("it is piped");
        Self { shell, said: BufReader::new(stdout).lines() }
    }

    /// The next line that it says.
    fn says(&mut self) -> String {
        self.said.next().and_then(Result::ok).expect("it says something")
    }

    /// Tells it to write, when it gets round to reading that.
    fn tell_to_write(&mut self) {
        let stdin = self.shell.stdin.as_mut().expect("it is piped");
        stdin.write_all(b"go\n").expect("it is open");
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.shell), signal).expect("it was not waited for");
    }

    /// Whether it is stopped, as the kernel has it.
    fn is_stopped(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.shell.id()));
        let stat = stat.expect("it was not waited for");
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

fn run(server: &Server, client: &Client, variables: &[(&str, &str)], line: &str) -> (i32, Value) {
    let mut command = server.cli(client);
    command.envs(variables.iter().copied()).args(line.split(' '));
    let output = command.output().expect("it runs");
    let json = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    (output.status.code().expect("no signal ended it"), json)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_holders_late_write_is_refused() {
    let server = Server::start();
    let (first, second) = (server.client("claude"), server.client("codex"));
    let mut frozen = Worker::start(&server, "frozen", &first);
    let old_fence = frozen.says();
    frozen.signal(Signal::STOP);
    eventually("the holder to be stopped", || async { frozen.is_stopped().then_some(()) }).await;
    // It would write at once if it ran.
    frozen.tell_to_write();

    let line =
        format!("acquire-lock {LOCK} --wait-seconds 25 --lease-seconds 300 --block --repo {REPO}");
    let (code, held) = run(&server, &second, &[], &line);
    assert_eq!((code, &held["ticket"]["state"]), (0, &json!("held")), "{held}");
    let new_fence = held["ticket"]["fence_token"].to_string();
    let number = |fence: &str| fence.parse::<u64>().expect("a fence token is a number");
    assert!(number(&new_fence) > number(&old_fence));
    let fence = [("PEARING_LOCK_NAME", LOCK), ("PEARING_FENCE_TOKEN", new_fence.as_str())];
    let line = format!("create-reply {REPO} 42 --kind implementation --body written");
    let (code, reply) = run(&server, &second, &fence, &line);
    assert_eq!((code, &reply["author"]), (0, &json!("codex")), "{reply}");
    assert!(frozen.is_stopped(), "all this happened while the first holder stood still");

    frozen.signal(Signal::CONT);
    assert_eq!(frozen.says(), "reply 5", "ownership is lost");
    assert_eq!(frozen.says(), "status 409");
    assert_eq!(frozen.says(), "heartbeat 5");
    for file in ["frozen.refused", "frozen.problem"] {
        let problem = fs::read_to_string(server.home().join(file)).expect("an answer");
        let problem: Value = serde_json::from_str(&problem).expect("a problem is JSON");
        assert_eq!(problem["code"], "stale-fence", "{file}: {problem}");
    }

    let thread = second.get(&format!("/v1/threads/42?repo={REPO}")).await.body;
    let replies = thread["replies"].as_array().expect("a thread has replies");
    assert_eq!(replies.len(), 1, "{thread}");
    assert_eq!((&replies[0]["author"], &replies[0]["body"]), (&json!("codex"), &json!("written")));
    let events = second.events("&lock=thread-work.42&type=lock.*").await;
    let kinds: Vec<(&str, &Value)> =
        events.iter().filter_map(|e| Some((e["type"].as_str()?, &e["data"]["owner"]))).collect();
    let [claude, codex] = [json!("claude"), json!("codex")];
    let expected = [
        ("pearing.lock.acquired", &claude),
        ("pearing.lock.queued", &codex),
        ("pearing.lock.expired", &claude),
        ("pearing.lock.promoted", &codex),
    ];
    assert_eq!(kinds, expected);
}
