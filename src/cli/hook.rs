//! hook claude-code: stands between an agent and its tools.
//!
//! Claude Code runs it with what happens as JSON on stdin. Before a tool, it lets the agent go on
//! only if the agent's own identity holds the lock at that moment; on any doubt (no answer, no
//! token, input that can't be read) it refuses. After a tool it heartbeats, and at the end of a
//! session it lets go of what that session took.
//!
//! | exit code | what Claude Code makes of it |
//! | --- | --- |
//! | 0 | goes on |
//! | 2 | before a tool: the tool is not run; the agent reads why on stderr |
//! | 1 | after a tool, at the end: the person reads it, and work goes on |
//!
//! Deliberately absent: acquiring. The agent does that itself, so that it learns whether it must
//! wait, and what was done before it. And telling sessions of one identity apart at the gate: they
//! are one owner, here as everywhere.

use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tokio::sync::oneshot;

use super::args::HookArgs;
use super::connection::Said;
use super::output::Output;
use super::private;
use super::vendor::{TOOL_PREFIX, is_gated};
use super::watchdog::Watchdog;
use super::{Connection, Ended, Failure};
use crate::client::{Client, ClientError, Page, lease_deadline};
use crate::clock::BootTime;
use crate::domain::scope::{LockKey, ScopeKind};
use crate::domain::time::LeaseSeconds;
use crate::wire::problem::{EXIT_DONE, EXIT_OTHER};
use crate::wire::ticket::{State, Ticket};

/// Not to go on, in the words of Claude Code.
const EXIT_REFUSED: u8 = 2;
/// How long a hook may take: less than Claude Code waits for it, and no long pause for the agent.
const TIMEOUT: Duration = Duration::from_secs(5);
/// When a hook hangs: longer than what it reads and asks can take, shorter than it is waited for.
const HANGS_AFTER: Duration = Duration::from_secs(12);
/// The most bytes of input that are read. What a tool was given and gave is in there.
const INPUT_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The lease that a heartbeat asks for: the longest, since nothing is heard during a tool call.
const LEASE_SECONDS: u64 = 300;
/// The most live tickets of one identity that are looked through.
const TICKETS_MAX: u32 = 1000;

/// What happened, as far as it matters here.
#[derive(Debug, Deserialize)]
struct Input {
    hook_event_name: String,
    #[serde(default)]
    tool_name: String,
    #[serde(default)]
    transcript_path: Option<PathBuf>,
}

/// Runs a hook. Every failure is told on stderr, and none of them lets a tool run.
pub(super) async fn run(said: Said<'_>, output: &mut Output, args: &HookArgs) -> Ended {
    // Before the agent program cuts it off, which would let a tool through.
    let why = "it hangs, so whether the lock is held can't be known: tell the user";
    let _watchdog = Watchdog::start(HANGS_AFTER, EXIT_REFUSED, why)?;
    let input = tokio::time::timeout(TIMEOUT, input()).await;
    let input = input.unwrap_or_else(|_| Err("there was no end of it in time".to_owned()));
    let input = match input {
        Ok(input) => input,
        Err(why) => return Ok(refuse(output, &format!("what happened can't be read: {why}"))),
    };
    let lock = match args.gate.lock() {
        Ok(lock) => lock,
        Err(why) => return Ok(refuse(output, why)),
    };
    let lease = args.lease_seconds.unwrap_or_else(|| {
        LeaseSeconds::try_from(LEASE_SECONDS).expect("it is within the bounds of a lease")
    });
    let hook = Hook { lock, lease };
    let acted = tokio::time::timeout(TIMEOUT, hook.act(said, &input));
    let ended = acted.await.unwrap_or_else(|_| {
        let why = "no answer in time".to_owned();
        Err(Failure::Client(ClientError::Unreachable(why)))
    });
    let is_gate = input.hook_event_name == "PreToolUse";
    Ok(match ended {
        Ok(Verdict::GoOn) => EXIT_DONE,
        Ok(Verdict::Refused(why)) => refuse(output, &why),
        Err(failure) if is_gate => {
            let is_passing = matches!(&failure, Failure::Client(error) if error.is_passing());
            let advice = if is_passing {
                "try again in a moment, and if that doesn't help tell the user"
            } else {
                "it doesn't pass by itself, so tell the user, who finds the cause with \
                 `pearing-cli doctor`"
            };
            let doubt = "so whether the lock is held can't be known. Don't work around this:";
            refuse(output, &format!("{failure}, {doubt} {advice}"))
        }
        Err(failure) => {
            output.message(&format!("pearing-cli: {failure}"));
            EXIT_OTHER
        }
    })
}

fn refuse(output: &mut Output, why: &str) -> u8 {
    output.message(&format!("pearing: {why}"));
    EXIT_REFUSED
}

/// Reads stdin, in a thread, since nobody may ever close it.
async fn input() -> Result<Input, String> {
    let (sends, receives) = oneshot::channel();
    let reader = thread::Builder::new().name("hook-input".to_owned()).spawn(move || {
        let stdin = BufReader::new(io::stdin().lock().take(INPUT_BYTES_MAX));
        // Nobody waits for it any more after the time is over.
        let _ = sends.send(serde_json::from_reader(stdin).map_err(|why| no_input(&why)));
    });
    reader.map_err(|why| why.to_string())?;
    receives.await.unwrap_or_else(|_| Err("it was not read".to_owned()))
}

/// Why input is none, without any of its text.
fn no_input(why: &serde_json::Error) -> String {
    format!("line {} is not the JSON of a hook", why.line())
}

enum Verdict {
    GoOn,
    /// Not to go on, and why; for the agent to read.
    Refused(String),
}

/// What a hook was told to watch over.
struct Hook {
    /// The lock; if none is named, whatever the identity holds.
    lock: Option<LockKey>,
    lease: LeaseSeconds,
}

impl Hook {
    async fn act(&self, said: Said<'_>, input: &Input) -> Result<Verdict, Failure> {
        match input.hook_event_name.as_str() {
            // Without them it could never get the lock.
            "PreToolUse" if input.tool_name.starts_with(TOOL_PREFIX) => Ok(Verdict::GoOn),
            "PreToolUse" => {
                let Some(lock) = &self.lock else {
                    let why = "no lock is named, so nothing can be let through: set this hook up \
                               again, with --lock and --repo";
                    return Ok(Verdict::Refused(why.to_owned()));
                };
                self.gate(&client(said)?, lock).await
            }
            "PostToolUse" | "PostToolUseFailure" => {
                self.heartbeat(&client(said)?, &input.tool_name).await
            }
            "SessionEnd" => self.end(&client(said)?, input.transcript_path.as_deref()).await,
            _ => Ok(Verdict::GoOn),
        }
    }

    /// Lets the agent go on if it holds the lock, and will for as long as a heartbeat gives it.
    async fn gate(&self, client: &Client, lock: &LockKey) -> Result<Verdict, Failure> {
        let held = self.live(client, Some("held")).await?;
        let Some(ticket) = held.iter().max_by_key(|ticket| ticket.lease_remaining_ms) else {
            return Ok(Verdict::Refused(acquire_first(lock)));
        };
        let answer = match client.heartbeat(lock, ticket.ticket_id, Some(self.lease)).await {
            Ok(answer) => answer,
            Err(error) if is_lost(&error) => return Ok(Verdict::Refused(lost(ticket))),
            Err(error) => return Err(error.into()),
        };
        let deadline = lease_deadline(&answer.body, answer.sent_at);
        if deadline.is_some_and(|deadline| BootTime::now() < deadline) {
            return Ok(Verdict::GoOn);
        }
        Ok(Verdict::Refused(lost(ticket)))
    }

    /// Extends what is held. What was lost meanwhile is told, as the tool has already run; if it
    /// is one that only reads, there was perhaps nothing to lose.
    async fn heartbeat(&self, client: &Client, tool: &str) -> Result<Verdict, Failure> {
        let held = self.live(client, Some("held")).await?;
        if let (Some(lock), true) = (&self.lock, held.is_empty() && is_gated(tool)) {
            let why = format!(
                "{} is not held, or not any more: what was just done may have met somebody \
                 else's work. Stop, look at what is there, then {}",
                name(lock),
                call_acquire(lock)
            );
            return Ok(Verdict::Refused(why));
        }
        for ticket in &held {
            match client.heartbeat(&lock_of(ticket), ticket.ticket_id, Some(self.lease)).await {
                Ok(_) => {}
                Err(error) if is_lost(&error) => return Ok(Verdict::Refused(lost(ticket))),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Verdict::GoOn)
    }

    /// Lets go of what a session took, held or waited for.
    async fn end(&self, client: &Client, transcript: Option<&Path>) -> Result<Verdict, Failure> {
        let mut tickets = self.live(client, None).await?;
        retain_named(&mut tickets, transcript)?;
        for ticket in &tickets {
            match client.release(&lock_of(ticket), ticket.ticket_id).await {
                Ok(_) => {}
                // Over already is as good.
                Err(error) if is_lost(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Verdict::GoOn)
    }

    /// The identity's own live tickets for the lock, or for any if none is named.
    async fn live(&self, client: &Client, state: Option<&str>) -> Result<Vec<Ticket>, Failure> {
        let page = Page { cursor: None, limit: Some(TICKETS_MAX) };
        let mut tickets = client.tickets(state, &page).await?.body.items;
        tickets.retain(|ticket| self.lock.as_ref().is_none_or(|lock| lock_of(ticket) == *lock));
        Ok(tickets)
    }
}

fn client(said: Said<'_>) -> Result<Client, Failure> {
    let Connection { server, token } = said.connection()?;
    Ok(Client::new(&server.url, &token.text)?)
}

/// Leaves those that a session asked for: another one of the same identity goes on with its own.
/// Who asks names the request, in what it has a tool do, or `pearing-cli` names it for it; what a
/// session just looks at names requests too, and doesn't count. Without a transcript nothing tells
/// them apart.
fn retain_named(tickets: &mut Vec<Ticket>, transcript: Option<&Path>) -> io::Result<()> {
    let file = match transcript.map(private::open) {
        None => return Ok(()),
        Some(Err(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Some(file) => file?,
    };
    let ids: Vec<String> = tickets.iter().map(|ticket| ticket.request_uuid.to_string()).collect();
    let mut is_named = vec![false; ids.len()];
    let mut lines = BufReader::new(file);
    let mut line = Vec::new();
    while !is_named.iter().all(|named| *named) && lines.read_until(b'\n', &mut line)? > 0 {
        let text = String::from_utf8_lossy(&line).to_ascii_lowercase();
        let asked = serde_json::from_str(&text).map(|line: Value| asked_in(&line));
        // What is no line of a transcript can't be told from what was asked.
        let asked = asked.unwrap_or(text);
        for (id, named) in ids.iter().zip(&mut is_named) {
            *named |= asked.contains(id);
        }
        line.clear();
    }
    let mut is_named = is_named.into_iter();
    tickets.retain(|_| is_named.next().unwrap_or_default());
    Ok(())
}

/// What a line of a transcript has a tool do, and the requests that `pearing-cli` has named there.
fn asked_in(line: &Value) -> String {
    let inner: Vec<&Value> = match line {
        Value::Object(object) if object.get("type").is_some_and(|kind| kind == "tool_use") => {
            return object.get("input").map(Value::to_string).unwrap_or_default();
        }
        Value::String(text) => {
            let named = text.lines().filter(|line| line.starts_with("request_uuid "));
            return named.collect::<Vec<_>>().join(" ");
        }
        Value::Object(object) => object.values().collect(),
        Value::Array(items) => items.iter().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    };
    inner.into_iter().map(asked_in).collect::<Vec<_>>().join(" ")
}

/// Whether an answer says that there is nothing left to keep.
fn is_lost(error: &ClientError) -> bool {
    use crate::wire::problem::Code;

    let ClientError::Problem(refused) = error else { return false };
    matches!(refused.problem.code, Code::TicketNotHeld | Code::TicketEnded | Code::NotFound)
}

fn lock_of(ticket: &Ticket) -> LockKey {
    LockKey { scope: ticket.scope.clone(), lock_name: ticket.lock_name.clone() }
}

fn name(lock: &LockKey) -> String {
    format!("lock {} in {}", lock.lock_name, lock.scope)
}

fn acquire_first(lock: &LockKey) -> String {
    format!("{} is not held. Before this tool can be used, {}", name(lock), call_acquire(lock))
}

fn lost(ticket: &Ticket) -> String {
    let lock = lock_of(ticket);
    let state = State::Held.as_str();
    format!(
        "{} is lost: ticket {} is not {state} any more. Stop, look at what is there, then {}",
        name(&lock),
        ticket.ticket_id,
        call_acquire(&lock)
    )
}

/// What the agent is to do to get a lock.
fn call_acquire(lock: &LockKey) -> String {
    let (field, value) = match lock.scope.kind() {
        ScopeKind::Repo(_) => ("repo", lock.scope.to_string()),
        ScopeKind::Team(team) => ("team", team.to_string()),
        ScopeKind::User(user) => ("user", user.to_string()),
    };
    let input = serde_json::json!({
        field: value,
        "lock_name": lock.lock_name.as_str(),
        "request_uuid": "A NEW UUID",
        "wait_seconds": 600,
        "keep_alive_minutes": 10,
    });
    format!(
        "call the tool acquire_lock of the MCP server pearing with {input}, and go on once its \
         ticket is held"
    )
}
