//! with-lock at a terminal: the command reads from it, and its reader comes back after it.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command};

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::support::{REPO, Server, eventually, shell};

/// A terminal of its own, with a shell line at it.
struct Terminal {
    screen: File,
    child: Child,
    seen: String,
}

impl Terminal {
    /// Runs a line of a shell that has the terminal.
    fn run(server: &Server, user: &str, line: &str) -> Self {
        Self::open(server, user, shell(server.home(), line))
    }

    /// A shell that somebody works with.
    fn interactive(server: &Server, user: &str) -> Self {
        let mut command = Command::new("bash");
        command.args(["--norc", "--noprofile", "-i"]);
        let like = shell(server.home(), "");
        command.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Self::open(server, user, command)
    }

    fn open(server: &Server, user: &str, shell: Command) -> Self {
        let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&screen).and_then(|()| unlockpt(&screen)).expect("it is ours");
        let name = ptsname(&screen, Vec::new()).expect("it has a name");
        let name = name.to_str().expect("a name that is text");
        let side = File::options().read(true).write(true).open(name).expect("it is ours");
        let mut command = Command::new("env");
        command
            .args(["--default-signal=HUP,INT,QUIT,TERM", "setsid", "--ctty", "--wait"])
            .arg(shell.get_program())
            .args(shell.get_args());
        command.env_clear().envs(shell.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("PEARING_URL", server.url());
        command.env("PEARING_TOKEN", server.client(user).token());
        command.stdin(side.try_clone().expect("it is open"));
        command.stdout(side.try_clone().expect("it is open")).stderr(side);
        let child = command.spawn().expect("it runs");
        fcntl_setfl(&screen, OFlags::NONBLOCK).expect("it is open");
        Self { screen: File::from(screen), child, seen: String::new() }
    }

    /// Waits until this can be seen.
    async fn shows(&mut self, text: &str) {
        let (screen, seen) = (&mut self.screen, &mut self.seen);
        let looks = async || {
            let mut bytes = Vec::new();
            // It ends with what there is: an error that says so.
            let _ = screen.read_to_end(&mut bytes);
            seen.push_str(&String::from_utf8_lossy(&bytes));
            seen.contains(text).then_some(())
        };
        eventually(text, looks).await;
    }

    fn types(&mut self, text: &str) {
        self.screen.write_all(text.as_bytes()).expect("it can be typed");
    }

    async fn code(&mut self) -> Option<i32> {
        let child = &mut self.child;
        let status = eventually("its end", async || child.try_wait().expect("our child")).await;
        status.code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn line(flags: &str, command: &str) -> String {
    format!("pearing-cli with-lock x --repo {REPO} {flags} -- {command}")
}

#[tokio::test]
async fn the_command_reads_from_the_terminal_and_then_the_shell_does_again() {
    let server = Server::start();
    let with_lock = line("", "sh -c 'read word; echo \"command: $word\"'");
    let script = format!("{with_lock}; read word; echo \"shell: $word\"");
    let mut terminal = Terminal::run(&server, "claude", &script);
    terminal.types("one\n");
    terminal.shows("command: one").await;
    terminal.types("two\n");
    terminal.shows("shell: two").await;
    assert_eq!(terminal.code().await, Some(0));
}

#[tokio::test]
async fn an_interrupt_that_is_typed_is_the_commands() {
    let server = Server::start();
    let script = format!("{}; echo \"code: $?\"", line("", "sh -c 'echo begins; sleep 600'"));
    // A shell that is interrupted together with its command would end too.
    let mut terminal = Terminal::run(&server, "claude", &format!("trap : INT; {script}"));
    terminal.shows("begins").await;
    terminal.types("\u{3}");
    terminal.shows("code: 130").await;
    let lock = server.client("claude").lock("x").await;
    assert!(lock["owner"].is_null(), "{lock}");
}

#[tokio::test]
async fn a_command_whose_results_go_elsewhere_has_the_terminal_once_it_reads_from_it() {
    let server = Server::start();
    let with_lock = line("", "sh -c 'read word < /dev/tty; echo \"command: $word\"'");
    let script = format!("{with_lock} | sed s/^/piped:/; read word; echo \"shell: $word\"");
    let mut terminal = Terminal::run(&server, "claude", &script);
    terminal.types("one\n");
    terminal.shows("piped:command: one").await;
    terminal.types("two\n");
    terminal.shows("shell: two").await;
    assert_eq!(terminal.code().await, Some(0));
}

#[tokio::test]
async fn a_terminal_shows_the_place_in_the_queue() {
    let server = Server::start();
    let held = server.client("codex").hold("x", 60).await;
    let mut terminal = Terminal::run(&server, "claude", &line("--wait-seconds 60", "echo begins"));
    terminal.shows("waiting: position 1 for x in teams/platform/website; held by codex").await;
    server.client("codex").release(&held).await.ticket(200);
    terminal.shows("begins").await;
    assert_eq!(terminal.code().await, Some(0));
}

#[tokio::test]
async fn a_command_that_is_stopped_stops_the_wrapper_and_goes_on_with_it() {
    let server = Server::start();
    let mut terminal = Terminal::interactive(&server, "claude");
    let command = "sh -c 'echo be''gins; read word; echo \"command: $word\"'";
    terminal.types(&format!("{}\n", line("", command)));
    terminal.shows("begins").await;
    terminal.types("\u{1a}");
    terminal.shows("Stopped").await;
    terminal.types("echo shell: $((6 * 7))\n");
    terminal.shows("shell: 42").await;
    terminal.types("fg\n");
    terminal.types("one\n");
    terminal.shows("command: one").await;
    terminal.types("exit\n");
    assert_eq!(terminal.code().await, Some(0));
    assert!(server.client("claude").lock("x").await["owner"].is_null());
}

#[tokio::test]
async fn a_command_that_is_stopped_past_its_lease_does_not_go_on() {
    let server = Server::start();
    let mut terminal = Terminal::interactive(&server, "claude");
    let command = "sh -c 'echo be''gins; read word; echo \"command: $word\"'";
    terminal.types(&format!("{}\n", line("--lease-seconds 5", command)));
    terminal.shows("begins").await;
    terminal.types("\u{1a}");
    terminal.shows("Stopped").await;
    let claude = server.client("claude");
    eventually("the lock to be free", async || {
        claude.lock("x").await["owner"].is_null().then_some(())
    })
    .await;
    terminal.types("fg\n");
    terminal.shows("the command was killed").await;
    terminal.types("echo code: $?\n");
    terminal.shows("code: 125").await;
    let of_command = terminal.seen.replace("command: $word", "");
    assert!(!of_command.contains("command: "), "{of_command}");
}

#[tokio::test]
async fn where_no_shell_would_continue_it_a_command_is_not_stopped() {
    let server = Server::start();
    let command = "sh -c 'echo begins; read word; echo \"command: $word\"'";
    let mut terminal = Terminal::run(&server, "claude", &line("", command));
    terminal.shows("begins").await;
    terminal.types("\u{1a}one\n");
    terminal.shows("command: one").await;
    assert_eq!(terminal.code().await, Some(0));
}
