//! The drill of every target: a holder is frozen past its lease, just before it writes; the next
//! one claims, reads and writes; the first one is thawed, and writes what it had in mind.
//!
//! Both are real processes that take the lock at a real server, and each writes twice: once where
//! nothing guards, and once through the guard. So the harm and the refusal are of one run.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Client, REPO, Server, eventually, shell};

/// The lock, as targets name it.
pub(super) const LOCK: &str = "teams/platform/website/locks/deploy";

/// Takes the lock, waiting its turn, claims at the target, says its fence token, and writes when it
/// is told to.
const WORK: &str = r#"
answer=$(pearing-cli acquire-lock deploy --lease-seconds 5 --wait-seconds 60 --block --json \
  --repo "$PEARING_SCOPE") || exit 99
PEARING_FENCE_TOKEN=$(printf %s "$answer" | sed 's/.*"fence_token":\([0-9]*\).*/\1/')
export PEARING_FENCE_TOKEN PEARING_LOCK_NAME=deploy
claim > claim.log 2>&1 || { cat claim.log >&2; exit 98; }
echo "$PEARING_FENCE_TOKEN"
read -r go
write_plain > "$NAME.plain" 2>&1
echo "$? $(tr '\n' ' ' < "$NAME.plain")"
write_guarded > "$NAME.guarded" 2>&1
echo "$? $(tr '\n' ' ' < "$NAME.guarded")"
"#;

/// A target: what it takes to work with it from a shell.
pub(super) struct Target<'a> {
    /// Shell functions: `claim`, `write_plain` and `write_guarded`. They find their fence token in
    /// `PEARING_FENCE_TOKEN`, and who they are in `NAME`.
    pub(super) functions: &'a str,
    /// What they find besides.
    pub(super) variables: &'a [(&'a str, String)],
}

/// How a writer's two writes ended: each an exit code and what was printed.
#[derive(Debug)]
pub(super) struct Writes {
    pub(super) plain: (i32, String),
    pub(super) guarded: (i32, String),
}

/// Runs the drill. What the late writer's two writes came to; the other one's have both passed.
/// The writers are claude, who is late, and codex.
pub(super) async fn drill(server: &Server, target: &Target<'_>) -> Writes {
    let mut zombie = Worker::start(server, "claude", &server.client("claude"), target);
    let old_fence = zombie.fence();
    zombie.signal(Signal::STOP);
    eventually("the holder to be stopped", || async { zombie.is_stopped().then_some(()) }).await;
    // It would write at once if it ran.
    zombie.tell_to_write();

    let mut next = Worker::start(server, "codex", &server.client("codex"), target);
    assert!(next.fence() > old_fence);
    next.tell_to_write();
    let writes = next.writes();
    assert_eq!((writes.plain.0, writes.guarded.0), (0, 0), "{writes:?}");
    assert!(zombie.is_stopped(), "all this happened while the first holder stood still");

    zombie.signal(Signal::CONT);
    zombie.writes()
}

/// A shell that works as somebody, in a process of its own. It is killed when it is dropped.
struct Worker {
    shell: Child,
    said: std::io::Lines<BufReader<ChildStdout>>,
}

impl Worker {
    fn start(server: &Server, name: &str, client: &Client, target: &Target<'_>) -> Self {
        let mut shell = shell(server.home(), &format!("{}\n{WORK}", target.functions));
        shell.env("PEARING_URL", server.url()).env("PEARING_TOKEN", client.token());
        shell.env("PEARING_SCOPE", REPO).env("NAME", name).env("LOCK", LOCK);
        shell.envs(target.variables.iter().map(|(name, value)| (*name, value)));
        shell.current_dir(server.home()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = shell.spawn().expect("there is a shell");
        let stdout = shell.stdout.take().expect("it is piped");
        Self { shell, said: BufReader::new(stdout).lines() }
    }

    fn says(&mut self) -> String {
        self.said.next().and_then(Result::ok).expect("it says something")
    }

    fn fence(&mut self) -> u64 {
        self.says().parse().expect("a fence token is a number")
    }

    fn writes(&mut self) -> Writes {
        let mut write = || {
            let line = self.says();
            let (code, said) = line.split_once(' ').expect("a code and what was printed");
            (code.parse().expect("an exit code"), said.trim().to_owned())
        };
        Writes { plain: write(), guarded: write() }
    }

    fn tell_to_write(&mut self) {
        let stdin = self.shell.stdin.as_mut().expect("it is piped");
        stdin.write_all(b"go\n").expect("it is open");
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.shell), signal).expect("it was not waited for");
    }

    /// Whether it is stopped, as the kernel has it.
    fn is_stopped(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.shell.id()));
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
