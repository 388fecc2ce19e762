//! A server with a data directory, which outlives it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use reqwest::redirect::Policy;
use serde_json::json;
use tempfile::TempDir;

use super::trace::Trace;
use super::{Client, Process, SIGKILL};

/// The repository that `dev` makes.
pub(crate) const REPO: &str = "teams/platform/website";

/// The program under test, with arguments.
pub(crate) fn pearing<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pearing"));
    command.args(arguments);
    prepare(&mut command);
    command
}

/// `pearing-cli` in a home of its own. It hears every signal, whatever whoever runs the tests has
/// had ignored: a job in the background ignores some.
pub(crate) fn pearing_cli(home: &Path) -> Command {
    let mut command = Command::new("env");
    command.arg("--default-signal=HUP,INT,QUIT,TERM").arg(env!("CARGO_BIN_EXE_pearing-cli"));
    forget_settings(&mut command);
    command.env("HOME", home).env("XDG_CONFIG_HOME", home).stdin(Stdio::null());
    command
}

/// A line for a shell that finds `pearing-cli`, in a home of its own and with nothing else set.
pub(crate) fn shell(home: &Path, line: &str) -> Command {
    let cli = Path::new(env!("CARGO_BIN_EXE_pearing-cli"));
    let folder = cli.parent().expect("a program is in a folder").display();
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).env_clear().env("PATH", format!("{folder}:/usr/bin:/bin"));
    shell.env("HOME", home).env("XDG_CONFIG_HOME", home).stdin(Stdio::null());
    shell
}

/// What whoever runs the tests has set up must not matter.
fn forget_settings(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PEARING_") {
            command.env_remove(name);
        }
    }
}

fn prepare(command: &mut Command) {
    forget_settings(command);
    command.env("PEARING_LOG_FORMAT", "json").env("PEARING_DISK_RESERVE_MIB", "0");
    command.stdout(Stdio::null());
}

/// A data directory, with the users admin, claude and codex, and mostly a server on it.
pub(crate) struct Server {
    /// Deleted at the end.
    home: TempDir,
    process: Option<Process>,
    url: String,
    http: reqwest::Client,
}

impl Server {
    /// A server on a fresh directory.
    pub(crate) fn start() -> Self {
        let mut server = Self::stopped();
        server.run(pearing(["dev"]));
        server
    }

    /// No server yet, and no data.
    pub(crate) fn stopped() -> Self {
        let home = tempfile::tempdir().expect("there can be a temporary directory");
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(Policy::none())
            .build()
            .expect("plain settings");
        Self { home, process: None, url: String::new(), http }
    }

    /// Starts a server on the data by a command that knows all but where.
    pub(crate) fn run(&mut self, mut command: Command) {
        assert!(self.process.is_none(), "one server at a time");
        let process = Process::start(command.args(self.place()));
        let address = process.wait_for("address", |line| {
            // In a log of either format.
            let (_, rest) = line.split_once("serving")?.1.split_once("127.0.0.1:")?;
            let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
            (!port.is_empty()).then(|| format!("127.0.0.1:{port}"))
        });
        self.url = format!("http://{address}");
        self.process = Some(process);
    }

    /// Serves the data again.
    pub(crate) fn serve(&mut self) {
        self.run(pearing(["serve"]));
    }

    /// Serves the data again, with more flags.
    pub(crate) fn serve_with(&mut self, flags: &[&str]) {
        let mut command = pearing(["serve"]);
        command.args(flags);
        self.run(command);
    }

    /// Serves the data again under strace, which ends by itself after the server. The server is
    /// our own child all the same, so that signals and exit codes are its own.
    pub(crate) fn serve_traced(&mut self, options: &[&str]) {
        let mut command = Command::new("strace");
        command.args(["-D", "-f", "-q", "-ttt", "-o"]).arg(self.trace_file()).args(options);
        command.arg("--").arg(env!("CARGO_BIN_EXE_pearing")).arg("serve");
        prepare(&mut command);
        self.run(command);
    }

    fn trace_file(&self) -> PathBuf {
        self.home().join("trace")
    }

    /// The trace of a server that has ended, and strace with it.
    pub(crate) fn trace(&self) -> Trace {
        assert!(self.process.is_none(), "the trace is whole only after the end");
        Trace::read(&fs::read_to_string(self.trace_file()).expect("strace wrote it"))
    }

    /// kill -9, and the server is gone.
    pub(crate) fn kill(&mut self) {
        let mut process = self.process.take().expect("a server runs");
        process.signal(SIGKILL);
        assert_eq!(process.exit_code(), None, "a signal ended it");
    }

    /// kill -9, and a new server on the same data.
    pub(crate) fn crash(&mut self) {
        self.kill();
        self.serve();
    }

    /// The running process.
    pub(crate) fn process(&mut self) -> &mut Process {
        self.process.as_mut().expect("a server runs")
    }

    /// The exit code of a server that ends by itself. After it, another one can serve the data.
    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        self.process.take().expect("a server runs").exit_code()
    }

    /// A directory for whatever a test wants to keep.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Where the ledger lies.
    pub(crate) fn data(&self) -> PathBuf {
        self.home().join("data")
    }

    /// Arguments that say which data to serve, on a free port.
    pub(crate) fn place(&self) -> [String; 4] {
        let data = self.data().to_string_lossy().into_owned();
        ["--data".to_owned(), data, "--listen".to_owned(), "127.0.0.1:0".to_owned()]
    }

    /// Where the running server listens.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// A client for a user that `dev` or the test has made.
    pub(crate) fn client(&self, user: &str) -> Client {
        let token = fs::read_to_string(self.data().join("tokens").join(user));
        let token = token.or_else(|_| fs::read_to_string(self.token_file(user)));
        self.client_with(token.expect("each of these has a token").trim())
    }

    /// `pearing-cli` with a client's token, to be given its words. It prints JSON.
    pub(crate) fn cli(&self, client: &Client) -> Command {
        let mut command = pearing_cli(self.home());
        command.env("PEARING_URL", self.url()).env("PEARING_OUTPUT", "json");
        if let Some(token) = client.token_if_any() {
            command.env("PEARING_TOKEN", token);
        }
        command
    }

    /// Where the token of a user is kept that the test has made.
    fn token_file(&self, user: &str) -> PathBuf {
        self.home().join(format!("{user}.token"))
    }

    /// A client with this token.
    pub(crate) fn client_with(&self, token: &str) -> Client {
        Client::new(self.http.clone(), &self.url, Some(token))
    }

    /// A client without any token.
    pub(crate) fn client_without_token(&self) -> Client {
        Client::new(self.http.clone(), &self.url, None)
    }

    /// A new user without any access but its own, and a token for it.
    pub(crate) async fn add_user(&self, user: &str) -> Client {
        let admin = self.client("admin");
        let made = admin.post("/v1/admin/users", json!({ "user": user })).await;
        assert_eq!(made.status, 201, "{}", made.body);
        let client = self.add_token(user).await;
        fs::write(self.token_file(user), client.token()).expect("the directory is ours");
        client
    }

    /// Another token for a user.
    pub(crate) async fn add_token(&self, user: &str) -> Client {
        let made = self.client("admin").post("/v1/admin/tokens", json!({ "user": user })).await;
        assert_eq!(made.status, 201, "{}", made.body);
        self.client_with(made.body["token"].as_str().expect("a token is shown once"))
    }

    /// Gives a user a role in the team.
    pub(crate) async fn join_team(&self, user: &str, role: &str) {
        let path = format!("/v1/admin/teams/platform/members/{user}");
        let joined = self.client("admin").put(&path, json!({ "role": role })).await;
        assert_eq!(joined.status, 200, "{}", joined.body);
    }

    /// A new user who may take locks in the repository.
    pub(crate) async fn add_writer(&self, user: &str) -> Client {
        let client = self.add_user(user).await;
        self.join_team(user, "write").await;
        client
    }
}
