//! Profiles: who is logged in on a machine, in which shell, and what is kept of it.

use std::fs::{self, File, Permissions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use pearing::domain::id::TokenId;
use pearing::wire::token;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};
use serde_json::json;

use super::{Ended, ended, program};
use crate::support::{REPO, Server};

fn output(command: &mut Command) -> Ended {
    ended(command.output().expect("it runs"))
}

/// Logs in with a token on stdin.
fn login(home: &Path, token: &str, words: &[&str]) -> Output {
    let mut command = program(home, &["login", "--json"]);
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it runs");
    let mut stdin = child.stdin.take().expect("it is piped");
    writeln!(stdin, "{token}").expect("it is read");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    for shown in [&output.stdout, &output.stderr] {
        let is_shown = !token.is_empty() && String::from_utf8_lossy(shown).contains(token);
        assert!(!is_shown, "the token is shown: {output:?}");
    }
    output
}

/// Logs in, which must succeed.
fn logged_in(server: &Server, home: &Path, user: &str, words: &[&str]) {
    let words = [&["--url", server.url()], words].concat();
    let ended = ended(login(home, server.client(user).token(), &words));
    assert_eq!((ended.code, &ended.json["user"]), (Some(0), &json!(user)), "{ended:?}");
}

fn home() -> tempfile::TempDir {
    tempfile::tempdir().expect("there can be a temporary folder")
}

#[tokio::test]
async fn a_profile_is_kept_for_its_owner_alone_and_used_from_then_on() {
    let (server, home) = (Server::start(), home());
    let home = home.path();
    logged_in(&server, home, "claude", &[]);
    logged_in(&server, home, "codex", &["--profile", "codex"]);
    let file = home.join("pearing/config.toml");
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(&home.join("pearing"))), (0o600, 0o700));

    for (words, user) in [(&["whoami"][..], "claude"), (&["whoami", "--profile", "codex"], "codex")]
    {
        let said = program(home, words).output().expect("it runs");
        let said = String::from_utf8(said.stdout).expect("it is text");
        assert!(said.contains(&format!("user          {user}\n")), "{said}");
        let profile = if user == "codex" { user } else { "default" };
        let source = format!("token_from    profile {profile} in {}", file.display());
        assert!(said.contains(&source), "{said}");
    }
    let listed = output(&mut program(home, &["list-profiles", "--json"]));
    let row = |name: &str, used| json!({ "profile": name, "url": server.url(), "used": used });
    assert_eq!(listed.json, json!({ "items": [row("codex", false), row("default", true)] }));

    let out = output(&mut program(home, &["logout", "--profile", "codex"]));
    assert_eq!(out.code, Some(0), "{out:?}");
    assert!(out.stderr.contains("still valid"), "{out:?}");
    let gone = output(&mut program(home, &["whoami", "--profile", "codex"]));
    assert_eq!(gone.code, Some(2), "{gone:?}");
    assert!(!fs::read_to_string(&file).expect("a file").contains(server.client("codex").token()));
    assert_eq!(server.client("codex").get("/v1/whoami").await.status, 200, "as it was said");

    fs::set_permissions(&file, Permissions::from_mode(0o640)).expect("it is ours");
    for words in [&["whoami"][..], &["list-profiles"], &["login"], &["logout"]] {
        let open = output(&mut program(home, words));
        assert_eq!(open.code, Some(2), "{words:?}: {open:?}");
        assert!(open.stderr.contains("chmod 600"), "{words:?}: {open:?}");
    }
}

#[tokio::test]
async fn a_login_says_what_it_replaces_and_a_shell_what_it_passes_over() {
    let (server, home) = (Server::start(), home());
    let home = home.path();
    logged_in(&server, home, "claude", &["--profile", "work"]);
    let unnamed = output(&mut program(home, &["whoami"]));
    assert_eq!(unnamed.code, Some(7), "{unnamed:?}");
    let word = "there is the profile work: name it by --profile or PEARING_PROFILE";
    assert!(unnamed.stderr.contains(word), "{unnamed:?}");

    let words = ["--url", server.url(), "--profile", "work"];
    let again = ended(login(home, server.client("claude").token(), &words));
    assert_eq!((again.code, again.stderr.as_str()), (Some(0), ""), "the same token");
    let old = server.client("claude").get("/v1/whoami").await.body["token_id"].clone();
    let more = server.add_token("claude").await;
    for (token, old) in [
        (more.token().to_owned(), old),
        (
            server.client("codex").token().to_owned(),
            more.get("/v1/whoami").await.body["token_id"].clone(),
        ),
    ] {
        let other = ended(login(home, &token, &words));
        let word = format!(
            "profile work was replaced: its old token {} is still valid at {}",
            old.as_str().expect("an id"),
            server.url()
        );
        assert!(other.code == Some(0) && other.stderr.contains(&word), "{other:?}");
    }
    let empty = ended(login(home, "", &words));
    assert_eq!(empty.code, Some(7), "{empty:?}");
    assert!(empty.stderr.contains("stdin was empty"), "{empty:?}");

    let mut both = program(home, &["whoami", "--json"]);
    both.env("PEARING_PROFILE", "work").env("PEARING_TOKEN", server.client("admin").token());
    let both = output(&mut both);
    assert_eq!((both.code, &both.json["user"]), (Some(0), &json!("admin")), "{both:?}");
    assert_eq!(both.stderr, "PEARING_TOKEN is used, and not the token of profile work\n");
}

#[tokio::test]
async fn a_token_that_is_not_accepted_is_not_kept() {
    let (mut server, home) = (Server::start(), home());
    let (home, url) = (home.path(), server.url().to_owned());
    let claude = server.client("claude").token().to_owned();
    let unknown = token::format(TokenId(pearing::random::uuid()), &[7; 32]);
    let file = home.join("own/config.toml");
    let config = ["--config", file.to_str().expect("a path that is text"), "--url", &url];
    for (token, code) in [(&unknown[..], 7), ("pearing_abc", 7), (&claude[1..], 7)] {
        let refused = login(home, token, &config);
        assert_eq!(refused.status.code(), Some(code), "{refused:?}");
        assert!(!file.exists());
    }
    assert!(login(home, &claude, &config).status.success());
    let before = fs::read(&file).expect("it was kept");
    let refused = login(home, &unknown, &config);
    assert_eq!(refused.status.code(), Some(7), "{refused:?}");
    server.kill();
    let silent = login(home, &claude, &[&config[..], &["--profile", "more"]].concat());
    assert_eq!(silent.status.code(), Some(8), "{silent:?}");
    assert_eq!(fs::read(&file).expect("it is there"), before, "as it was");
}

#[tokio::test]
async fn a_profiles_token_reaches_no_other_server() {
    let (server, home) = (Server::start(), home());
    let home = home.path();
    logged_in(&server, home, "claude", &[]);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.set_nonblocking(true).expect("a socket can be");
    let other = format!("http://{}", listener.local_addr().expect("it has one"));
    let by_flag = output(&mut program(home, &["whoami", "--url", &other]));
    let by_variable = output(program(home, &["list-tickets"]).env("PEARING_URL", &other));
    for refused in [by_flag, by_variable] {
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains("no other server"), "{refused:?}");
    }
    let nobody = listener.accept().expect_err("nobody connected");
    assert_eq!(nobody.kind(), std::io::ErrorKind::WouldBlock);
}

#[tokio::test]
async fn logins_at_the_same_time_lose_no_profile() {
    let (server, home) = (Server::start(), home());
    let names: Vec<String> = (0..12).map(|number| format!("shell-{number}")).collect();
    thread::scope(|scope| {
        for name in &names {
            let (server, home) = (&server, home.path());
            scope.spawn(move || logged_in(server, home, "claude", &["--profile", name]));
        }
    });
    let listed = output(&mut program(home.path(), &["list-profiles", "--json"]));
    let items = listed.json["items"].as_array().expect("a list").clone();
    let mut kept: Vec<_> = items.iter().filter_map(|item| item["profile"].as_str()).collect();
    kept.sort_by_key(|name| name.len());
    assert_eq!(kept, names);
}

/// A shell of somebody: what it has exported, besides the home that it shares.
struct Shell<'a> {
    home: &'a Path,
    user: &'static str,
    variables: Vec<(&'static str, String)>,
    flags: &'static [&'static str],
}

impl Shell<'_> {
    fn run(&self, line: &str) -> Ended {
        let words: Vec<&str> = line.split(' ').chain(self.flags.iter().copied()).collect();
        let mut command = program(self.home, &words);
        output(command.arg("--json").envs(self.variables.iter().cloned()))
    }

    /// Takes a lock of its own, keeps it and lets it go, again and again.
    fn work(&self) {
        let user = self.user;
        let lock = format!("work-of-{user}");
        for round in 0..50 {
            let held = self.run(&format!("acquire-lock {lock} --repo {REPO}"));
            assert_eq!(held.code, Some(0), "{user} {round}: {held:?}");
            assert_eq!(held.json["ticket"]["owner"], user, "{round}");
            let ticket = held.ticket_id();
            let of = |command: &str| self.run(&format!("{command} {lock} {ticket} --repo {REPO}"));
            let kept = of("heartbeat-lock-ticket");
            assert_eq!(kept.code, Some(0), "{user} {round}: {kept:?}");
            let seen = self.run(&format!("get-lock {lock} --repo {REPO}"));
            assert_eq!(seen.json["owner"], user, "{round}: {seen:?}");
            let released = of("release-lock-ticket");
            assert_eq!(released.code, Some(0), "{user} {round}: {released:?}");
        }
    }
}

#[tokio::test]
async fn shells_that_share_a_home_never_act_as_each_other() {
    let (server, home) = (Server::start(), home());
    let home = home.path();
    server.add_writer("ana").await;
    let token = server.add_writer("bo").await.token().to_owned();
    logged_in(&server, home, "claude", &[]);
    logged_in(&server, home, "codex", &["--profile", "codex"]);
    logged_in(&server, home, "ana", &["--profile", "ana"]);
    let url = || ("PEARING_URL", server.url().to_owned());
    let own = || vec![url(), ("PEARING_TOKEN", token.clone())];
    let shells = [
        Shell { home, user: "claude", variables: Vec::new(), flags: &[] },
        Shell {
            home,
            user: "codex",
            variables: vec![("PEARING_PROFILE", "codex".to_owned())],
            flags: &[],
        },
        Shell { home, user: "bo", variables: own(), flags: &[] },
        // A shell like the one before, with one word more.
        Shell { home, user: "ana", variables: own(), flags: &["--profile", "ana"] },
    ];
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        // Meanwhile somebody logs in and out, so the file is replaced all the time.
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                logged_in(&server, home, "admin", &["--profile", "more"]);
                let out = output(&mut program(home, &["logout", "--profile", "more"]));
                assert_eq!(out.code, Some(0), "{out:?}");
            }
        });
        let work = |shell| scope.spawn(move || Shell::work(shell));
        let workers: Vec<_> = shells.iter().map(work).collect();
        let results: Vec<_> = workers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        is_over.store(true, Ordering::Relaxed);
        assert!(results.iter().all(Result::is_ok), "see above");
    });
}

/// A login at a terminal of its own.
struct Terminal {
    /// What a person would type into and see.
    screen: File,
    /// The program's side, kept open so that it can be looked at.
    side: File,
    child: Child,
}

impl Terminal {
    /// A login that has asked for the token.
    fn asked(server: &Server, home: &Path) -> Self {
        let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&screen).and_then(|()| unlockpt(&screen)).expect("it is ours");
        let name = ptsname(&screen, Vec::new()).expect("it has a name");
        let name = name.to_str().expect("a name that is text");
        let side = File::options().read(true).write(true).open(name).expect("it is ours");
        let mut command = program(home, &["login", "--url", server.url()]);
        command.stdin(side.try_clone().expect("it is open"));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it runs");
        let mut line = String::new();
        let mut stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        stderr.read_line(&mut line).expect("it is text");
        assert!(line.contains("not shown"), "{line}");
        Self { screen: File::from(screen), side, child }
    }

    fn shows_typing(&self) -> bool {
        tcgetattr(&self.side).expect("a terminal").local_modes.contains(LocalModes::ECHO)
    }

    /// All that could be seen so far.
    fn seen(&mut self) -> String {
        fcntl_setfl(&self.screen, OFlags::NONBLOCK).expect("it is open");
        let mut seen = Vec::new();
        // It ends with what there is: an error that says so.
        let _ = self.screen.read_to_end(&mut seen);
        String::from_utf8(seen).expect("it is text")
    }
}

#[tokio::test]
async fn a_token_that_is_typed_is_not_shown() {
    let (server, home) = (Server::start(), home());
    let mut terminal = Terminal::asked(&server, home.path());
    assert!(!terminal.shows_typing());
    let token = server.client("claude").token().to_owned();
    writeln!(terminal.screen, "{token}").expect("it can be typed");
    assert!(terminal.child.wait().expect("it ends").success());
    assert_eq!(terminal.seen(), "\r\n", "the end of the line, and nothing else");
    assert!(terminal.shows_typing());
    let who = output(&mut program(home.path(), &["whoami", "--json"]));
    assert_eq!(who.json["user"], "claude", "{who:?}");
}

#[tokio::test]
async fn a_login_that_is_broken_off_leaves_the_terminal_as_it_was() {
    let (server, home) = (Server::start(), home());
    let mut terminal = Terminal::asked(&server, home.path());
    kill_process(Pid::from_child(&terminal.child), Signal::INT).expect("it runs");
    assert_eq!(terminal.child.wait().expect("it ends").code(), Some(128 + 2));
    assert!(terminal.shows_typing());
    assert!(!home.path().join("pearing").exists(), "nothing was kept");
}
