//! The guard in a real Redis.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::guard::zombie::{Target, drill};
use crate::guard::{example, printed, reset};
use crate::support::{Process, Server, eventually, shell};

/// A running Redis on a socket in a folder.
struct Redis {
    _process: Process,
    socket: PathBuf,
    script: String,
}

impl Redis {
    async fn start(home: &Path) -> Self {
        let socket = home.join("redis.sock");
        let mut command = Command::new("redis-server");
        command.args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"]);
        command.arg(&socket).arg("--dir").arg(home).stdout(Stdio::null());
        let process = Process::start(&mut command);
        let redis = Self { _process: process, socket, script: printed(home, "redis") };
        eventually("Redis to answer", async || (redis.run(&["PING"]) == "PONG").then_some(()))
            .await;
        redis
    }

    /// Runs one command. What it answers; of an error its text.
    fn run(&self, words: &[&str]) -> String {
        let mut command = Command::new("redis-cli");
        command.arg("-s").arg(&self.socket).args(words);
        let output = command.output().expect("it runs");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Runs the script: keys and arguments with a comma between them, as of `redis-cli --eval`.
    fn guard(&self, words: &str) -> String {
        let mut words: Vec<&str> = words.split(' ').collect();
        let keys = words.iter().position(|word| *word == ",").expect("a comma");
        words.remove(keys);
        let count = keys.to_string();
        let mut command = vec!["EVAL", self.script.as_str(), count.as_str()];
        command.extend(words);
        self.run(&command)
    }
}

#[tokio::test]
async fn lower_is_refused_equal_is_accepted_and_unclaimed_does_not_write() {
    let home = tempfile::tempdir().expect("a folder");
    let redis = Redis::start(home.path()).await;
    let table = [
        ("f s , guard 7 SET a", "UNCLAIMEDFENCE f is claimed with fence token none"),
        ("f , claim 7", "OK"),
        ("f s , guard 7 SET a", "OK"),
        ("f , claim 7", "OK"),
        ("f , claim 6", "STALEFENCE f is claimed with fence token 7, and 6 is lower"),
        ("f s , guard 6 SET b", "STALEFENCE f is claimed with fence token 7, and 6 is lower"),
        ("f s , guard 8 SET c", "UNCLAIMEDFENCE f is claimed with fence token 7"),
        // As numbers, and not as texts.
        ("f , claim 10", "OK"),
        ("f s , guard 7 SET d", "STALEFENCE"),
        ("f s , guard 10 APPEND e", "2"),
        ("f s t , guard 10 RENAME", "OK"),
        ("f t , guard 10 GET", "ae"),
        ("f t , guard 10 SET x EX 60", "OK"),
        ("f t , guard 10 TTL", "60"),
        ("f , claim 9007199254740990", "OK"),
        ("f , claim 9007199254740991", "OK"),
        ("f t , guard 9007199254740990 SET y", "STALEFENCE"),
        ("f , claim 9007199254740992", "ERR "),
        ("f , claim 9007199254740993", "ERR "),
        ("f , claim 0", "ERR "),
        ("f , claim 08", "ERR "),
        ("f , claim 1e3", "ERR "),
        ("f , claim -1", "ERR "),
        ("f , claim", "ERR "),
        ("f , other 9007199254740991", "ERR "),
        ("f , guard 9007199254740991", "ERR "),
        ("f t , claim 9007199254740991", "ERR "),
        // Another key that is no number is nobody's fence token.
        ("t , claim 1", "ERR "),
        ("f t , guard 9007199254740991 LPUSH z", "WRONGTYPE"),
    ];
    for (words, answer) in table {
        let said = redis.guard(words);
        assert!(said.starts_with(answer), "{words}: {said}");
    }
    assert_eq!(redis.run(&["GET", "t"]), "x");
    assert_eq!(redis.run(&["GET", "f"]), "9007199254740991", "to the last digit");
    assert_eq!(redis.run(&["TTL", "f"]), "-1", "it never expires");
}

#[tokio::test]
async fn what_the_readme_types_works_as_it_stands() {
    let home = tempfile::tempdir().expect("a folder");
    let redis = Redis::start(home.path()).await;
    let here = |line: &str| {
        let cli = format!("redis-cli -s {}", redis.socket.display());
        let output = shell(home.path(), &line.replace("redis-cli", &cli)).output();
        let output = output.expect("there is a shell");
        (output.status.success(), String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let lines = example("redis-cli -e EVAL");
    let (claim, write) = lines.split_once('\n').expect("two lines");
    for line in [claim, write] {
        assert_eq!(here(line), (true, "OK".to_owned()), "{line}");
    }
    assert_eq!(redis.run(&["GET", "{deploy}:state"]), "live");
    let lower = claim.replace("claim 17", "claim 16");
    assert!(!here(&lower).0, "a script is to see it");
    assert_eq!(here(&reset("Redis")), (true, "1".to_owned()));
    assert_eq!(here(&lower), (true, "OK".to_owned()), "it is taken back");
}

const FUNCTIONS: &str = r#"
run() { redis-cli -s "$SOCKET" "$@"; }
claim() { [ "$(run EVAL "$SCRIPT" 1 "{$LOCK}" claim "$PEARING_FENCE_TOKEN")" = OK ]; }
write_plain() { run SET plain "$NAME"; }
write_guarded() {
  run EVAL "$SCRIPT" 2 "{$LOCK}" "{$LOCK}:state" guard "$PEARING_FENCE_TOKEN" SET "$NAME"
}
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_zombies_write_is_refused_and_does_harm_without_the_guard() {
    let server = Server::start();
    let redis = Redis::start(server.home()).await;
    let socket = redis.socket.display().to_string();
    let variables = [("SOCKET", socket), ("SCRIPT", redis.script.clone())];
    let target = Target { functions: FUNCTIONS, variables: &variables };
    let late = drill(&server, &target).await;
    assert_eq!(late.plain.1, "OK", "{late:?}");
    assert!(late.guarded.1.starts_with("STALEFENCE"), "{late:?}");
    assert_eq!(redis.run(&["GET", "plain"]), "claude", "the newer write is lost");
    let key = format!("{{{}}}:state", crate::guard::zombie::LOCK);
    assert_eq!(redis.run(&["GET", &key]), "codex");
}
