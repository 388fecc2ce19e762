//! doctor: looks at everything that must be right for an agent to work, and says it in a line each.
//!
//! It changes nothing. The exit code is that of the worst that was found: 7 if the token isn't
//! good, else 8 if the server gave no answer, else 1. A warning is none of these.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde::Serialize;
use tokio::process::Command;

use super::args::Vendor;
use super::connection::{self, Connection, FoundToken, Said, UrlSource};
use super::output::Output;
use super::profiles::{Profile, ProfileName};
use super::vendor::{self, Looked, Use};
use super::{Ended, Failure};
use crate::client::{Client, Seen, ServerUrl, mcp_hello};
use crate::clock;
use crate::domain::time::Time;
use crate::wire::problem::{Code, EXIT_DONE, EXIT_OTHER, EXIT_UNREACHABLE};
use crate::wire::token;

/// A greater difference of two clocks than this is worth a warning.
const CLOCK_SECONDS_MAX: u64 = 30;
/// How long an MCP server may take to begin.
const MCP_TIMEOUT: Duration = Duration::from_secs(10);

/// How a matter stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Ok,
    /// Nothing to be good or bad.
    Info,
    /// Worth a look, though nothing fails for it.
    Warning,
    Bad,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ok => "ok",
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Bad => "bad",
        })
    }
}

/// One matter.
#[derive(Debug, Serialize)]
struct Check {
    state: State,
    what: String,
    found: String,
    /// Of what is bad: what it makes the exit code.
    #[serde(skip)]
    code: u8,
}

/// Why each profile that was asked about is refused, if it is, with the exit code of that.
type Profiles = BTreeMap<String, Option<(String, u8)>>;

/// What was looked at so far.
#[derive(Default)]
struct Checks(Vec<Check>);

impl Checks {
    fn add(&mut self, state: State, what: impl Into<String>, found: impl fmt::Display) {
        let code = if state == State::Bad { EXIT_OTHER } else { EXIT_DONE };
        self.0.push(Check { state, what: what.into(), found: found.to_string(), code });
    }

    /// What went wrong, with its own exit code.
    fn add_failure(&mut self, what: &str, failure: &Failure) {
        self.add_with_code(what, failure.to_string(), failure.exit_code());
    }

    fn add_with_code(&mut self, what: impl Into<String>, found: String, code: u8) {
        self.0.push(Check { state: State::Bad, what: what.into(), found, code });
    }

    fn exit_code(&self) -> u8 {
        let order = [Code::Unauthenticated.exit_code(), EXIT_UNREACHABLE];
        let has = |code: &u8| self.0.iter().any(|check| check.code == *code);
        let is_bad = self.0.iter().any(|check| check.code != EXIT_DONE);
        let other = if is_bad { EXIT_OTHER } else { EXIT_DONE };
        order.into_iter().find(has).unwrap_or(other)
    }
}

pub(super) async fn run(said: Said<'_>, output: &mut Output) -> Ended {
    let mut checks = Checks::default();
    match said.connection() {
        Ok(Connection { server: of, token }) => {
            if let Some(client) = server(&mut checks, &of, Some(&token)).await {
                identity(&mut checks, &client).await;
            }
        }
        Err(failure) => {
            checks.add_failure("token", &failure);
            // Whether it is there is seen without one.
            match said.server() {
                Ok(of) => drop(server(&mut checks, &of, None).await),
                Err(failure) => checks.add_failure("url", &failure),
            }
        }
    }
    let mut profiles = Profiles::new();
    for vendor in Vendor::ALL {
        configuration(&mut checks, said, vendor, &mut profiles).await;
    }
    let code = checks.exit_code();
    let json = serde_json::json!({ "ok": code == EXIT_DONE, "checks": checks.0 });
    output.result(&json.to_string(), || {
        let line = |check: &Check| format!("{:<8} {}: {}", check.state, check.what, check.found);
        checks.0.iter().map(line).collect::<Vec<_>>().join("\n")
    })?;
    Ok(code)
}

/// Whether the server is there. Nothing, if it isn't.
async fn server(
    checks: &mut Checks,
    server: &connection::Server,
    token: Option<&FoundToken>,
) -> Option<Client> {
    let source = match &server.source {
        UrlSource::Default => "the default: nothing names another".to_owned(),
        source => format!("from {source}"),
    };
    checks.add(State::Info, "url", format!("{}, {source}", server.url));
    if let Some(token) = token {
        checks.add(State::Info, "token", format!("from {}", token.source));
    }
    let text = token.map(|token| token.text.as_str()).unwrap_or_default();
    let client = match Client::new(&server.url, text) {
        Ok(client) => client,
        Err(error) => {
            checks.add_failure("server", &error.into());
            return None;
        }
    };
    let before = clock::wall();
    match client.look().await {
        Ok(seen) => {
            let version = seen.version.as_deref().map(|version| format!(", version {version}"));
            let version = version.unwrap_or_default();
            if seen.is_ready {
                checks.add(State::Ok, "server", format!("ready{version}"));
            } else {
                checks.add(State::Bad, "server", format!("it takes no requests now{version}"));
            }
            clock_difference(checks, &seen, before);
            Some(client)
        }
        Err(error) => {
            checks.add_failure("server", &error.into());
            None
        }
    }
}

/// What the server makes of the token.
async fn identity(checks: &mut Checks, client: &Client) {
    match client.whoami().await {
        Ok(reply) => {
            let who = reply.body;
            let until = who.expires_at.map(|end| format!(", good until {end}"));
            let person = who.person.map(|person| format!(", an agent of {person}"));
            let found = format!(
                "{}{}{}, {} live tickets",
                who.user,
                person.unwrap_or_default(),
                until.unwrap_or_default(),
                who.live_tickets
            );
            checks.add(State::Ok, "identity", found);
        }
        Err(error) => checks.add_failure("identity", &error.into()),
    }
    match client.try_mcp().await {
        Ok(Some(())) => checks.add(State::Ok, "mcp at the server", "/mcp answers"),
        // `pearing-cli mcp` doesn't need it.
        Ok(None) => checks.add(State::Warning, "mcp at the server", "there is no /mcp"),
        Err(error) => checks.add_failure("mcp at the server", &error.into()),
    }
}

/// How far this machine's clock is from the server's. No lease depends on it: each side counts
/// with its own clock.
fn clock_difference(checks: &mut Checks, seen: &Seen, before: Time) {
    let Some(theirs) = seen.time else {
        return checks.add(State::Info, "clock", "the server doesn't say its time");
    };
    // Whole seconds are cut off, so up to one of them is none.
    let millis = theirs.as_millis() - before.as_millis();
    let seconds = millis.unsigned_abs() / 1000;
    let state = if seconds > CLOCK_SECONDS_MAX { State::Warning } else { State::Ok };
    let found = match seconds {
        0 | 1 => "as the server's".to_owned(),
        _ if millis > 0 => format!("{seconds} s behind the server's; no lease depends on it"),
        _ => format!("{seconds} s ahead of the server's; no lease depends on it"),
    };
    checks.add(state, "clock", found);
}

/// Our entries in the files of a program, for all projects and for this one.
async fn configuration(
    checks: &mut Checks,
    said: Said<'_>,
    vendor: Vendor,
    profiles: &mut Profiles,
) {
    let mut looked: Vec<(Looked, bool)> = Vec::new();
    for project in [None, Some(Path::new("."))] {
        let is_own = project.is_none();
        match vendor::look(vendor, project, said.environment) {
            Ok(found) => looked.extend(found.into_iter().map(|file| (file, is_own))),
            Err(failure) => checks.add(State::Bad, vendor.name(), failure),
        }
    }
    // In a home both are the same files.
    looked.sort_by(|(a, _), (b, _)| a.path.cmp(&b.path));
    looked.dedup_by(|(a, _), (b, _)| a.path == b.path);
    if looked.iter().all(|(file, _)| file.uses.is_empty()) {
        let found = format!("no entry of ours: `pearing-cli setup {}` makes one", vendor.name());
        checks.add(State::Info, vendor.name(), found);
    }
    for (file, is_own) in &looked {
        let what = format!("{} {}", vendor.name(), file.path.display());
        for used in &file.uses {
            one_use(checks, said, &what, used, *is_own, profiles).await;
        }
        if !file.uses.is_empty() && vendor::are_hooks_off(&file.text) {
            let found = "disableAllHooks is set there: no hook runs, so there is no gate";
            checks.add(State::Bad, &*what, found);
        }
        if !file.uses.is_empty() && has_token(file) {
            checks.add(
                State::Bad,
                what,
                "a token stands in it, which others may read: take it out",
            );
        }
    }
}

/// One entry: whether what it starts is there, and works.
async fn one_use(
    checks: &mut Checks,
    said: Said<'_>,
    what: &str,
    used: &Use,
    is_own: bool,
    profiles: &mut Profiles,
) {
    let what = format!("{what} {}", used.what);
    let Use { program, profile, .. } = used;
    if !Path::new(program).is_file() {
        return checks.add(State::Bad, what, format!("{program} isn't there: run setup again"));
    }
    let name = profile.parse::<ProfileName>().map_err(str::to_owned);
    let there = name.and_then(|name| said.profile(&name).map_err(|failure| failure.to_string()));
    let kept = match there {
        Ok(Some(kept)) => kept,
        Ok(None) => {
            let found = format!("there is no profile {profile}: run setup again");
            return checks.add(State::Bad, what, found);
        }
        Err(why) => return checks.add(State::Bad, what, why),
    };
    if let Some(url) = &used.url
        && url.parse::<ServerUrl>().ok().as_ref() != Some(&kept.url)
    {
        let found = format!("it names {url}, but profile {profile} is for {}", kept.url);
        return checks.add(State::Bad, what, format!("{found}: run setup again"));
    }
    if let Some((why, code)) = refused(profiles, profile, &kept).await {
        return checks.add_with_code(what, why, code);
    }
    let Some(server) = &used.server else {
        return checks.add(State::Ok, what, format!("profile {profile}"));
    };
    // A project may come from anybody, and must have nothing started by a look but what we would
    // write there ourselves, and that by this program.
    let mut command = Command::new(program);
    command.args(&server.args);
    if !is_own {
        let this = std::env::current_exe().and_then(std::fs::canonicalize);
        let (Ok(this), true) = (this, server.is_plain() && is_this_program(program)) else {
            let found = "it is none that setup would write here, and was not started";
            return checks.add(State::Warning, what, found);
        };
        command = Command::new(this);
        command.args(["--profile", profile, "mcp"]);
    }
    match speaks_mcp(command).await {
        Ok(()) => checks.add(State::Ok, what, format!("profile {profile}, and it answers")),
        Err(why) => checks.add(State::Bad, what, format!("it doesn't speak MCP: {why}")),
    }
}

/// Why the server doesn't take a profile's token, if it doesn't, with the exit code of that.
/// Several entries have one profile, which is asked about once.
async fn refused(profiles: &mut Profiles, name: &str, profile: &Profile) -> Option<(String, u8)> {
    if let Some(known) = profiles.get(name) {
        return known.clone();
    }
    let asked = match Client::new(&profile.url, &profile.token) {
        Ok(client) => client.whoami().await.map(|_| ()),
        Err(error) => Err(error),
    };
    let refused = asked.err().map(|error| {
        let failure = Failure::from(error);
        let code = failure.exit_code();
        let is_token = failure.is(Code::Unauthenticated);
        let advice = if is_token { ": run setup again" } else { "" };
        (format!("profile {name} at {}: {failure}{advice}", profile.url), code)
    });
    profiles.insert(name.to_owned(), refused.clone());
    refused
}

fn is_this_program(program: &str) -> bool {
    let this = std::env::current_exe().and_then(std::fs::canonicalize);
    this.is_ok_and(|this| std::fs::canonicalize(program).is_ok_and(|that| this == that))
}

/// Starts an MCP server as its agent would, and says hello.
async fn speaks_mcp(mut command: Command) -> Result<(), String> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.kill_on_drop(true).spawn().map_err(|why| why.to_string())?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let (Some(mut stdin), Some(mut stdout)) = (stdin, stdout) else {
        return Err("it has no stdin".to_owned());
    };
    let talk = async {
        stdin.write_all(format!("{}\n", mcp_hello()).as_bytes()).await?;
        let mut answer = Vec::new();
        while stdout.read_buf(&mut answer).await? > 0 {
            if String::from_utf8_lossy(&answer).contains("\"protocolVersion\"") {
                return Ok(true);
            }
        }
        Ok::<_, std::io::Error>(false)
    };
    match tokio::time::timeout(MCP_TIMEOUT, talk).await {
        Ok(Ok(true)) => Ok(()),
        Ok(Ok(false)) => Err("it ended without an answer".to_owned()),
        Ok(Err(why)) => Err(why.to_string()),
        Err(_) => Err("no answer in time".to_owned()),
    }
}

/// Whether a token of ours stands in a file.
fn has_token(file: &Looked) -> bool {
    let is_token = |word: &str| token::parse(word).is_some();
    file.text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(is_token)
}
