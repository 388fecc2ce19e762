//! Results in words, for people. Nothing here is meant to be parsed: that is what `--json` is for.

use std::fmt::{self, Write as _};

use serde_json::Value;

use crate::columns::table;
use crate::domain::id::TicketId;
use crate::domain::scope::{LockKey, Scope, ScopeKind};
use crate::wire::cloud_event::CloudEvent;
use crate::wire::lock::Lock;
use crate::wire::ticket::{CycleEdge, Holder, Ticket};

/// Names and values, one a line, aligned. A value that isn't there has no line.
#[derive(Default)]
pub(super) struct Fields(Vec<(&'static str, String)>);

impl Fields {
    pub(super) fn add(mut self, name: &'static str, value: impl fmt::Display) -> Self {
        self.0.push((name, value.to_string()));
        self
    }

    pub(super) fn add_if(self, name: &'static str, value: Option<impl fmt::Display>) -> Self {
        match value {
            Some(value) => self.add(name, value),
            None => self,
        }
    }
}

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.0.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        self.0.iter().try_for_each(|(name, value)| writeln!(f, "{name:width$}  {value}"))
    }
}

/// Milliseconds as seconds with one decimal, rounded down: never more than there is.
pub(super) fn seconds(millis: u64) -> String {
    format!("{}.{} s", millis / 1000, millis % 1000 / 100)
}

/// The flag that names a scope.
pub(super) fn scope_flag(scope: &Scope) -> String {
    match scope.kind() {
        ScopeKind::Repo(_) => format!("--repo {scope}"),
        ScopeKind::Team(team) => format!("--team {team}"),
        ScopeKind::User(user) => format!("--user {user}"),
    }
}

/// A command about a ticket, to be typed as it stands.
pub(super) fn ticket_command(command: &str, lock: &LockKey, ticket_id: TicketId) -> String {
    format!("pearing-cli {command} {} {ticket_id} {}", lock.lock_name, scope_flag(&lock.scope))
}

pub(super) fn ticket(ticket: &Ticket) -> String {
    Fields::default()
        .add("ticket_id", ticket.ticket_id)
        .add("state", ticket.state.as_str())
        .add("lock", format!("{} in {}", ticket.lock_name, ticket.scope))
        .add("owner", &ticket.owner)
        .add_if("note", ticket.note.as_ref())
        .add_if("fence_token", ticket.fence_token)
        .add_if("depth", (ticket.depth > 0).then_some(ticket.depth))
        .add_if("queue_position", ticket.queue_position)
        .add_if(
            "lease",
            ticket.lease_remaining_ms.map(|ms| {
                let until = ticket.lease_expires_at.map(|t| format!(", until {t}"));
                format!("{} left{}", seconds(ms), until.unwrap_or_default())
            }),
        )
        .add_if(
            "heartbeat",
            ticket
                .lease_remaining_ms
                .map(|_| format!("every {} s", ticket.heartbeat_every_seconds)),
        )
        .add_if("waits_until", ticket.wait_expires_at)
        .add("request_uuid", ticket.request_uuid)
        .add("created_at", ticket.created_at)
        .add_if("held_at", ticket.held_at)
        .add_if("ended_at", ticket.ended_at)
        .add_if("end_reason", ticket.end_reason.as_ref())
        .to_string()
}

/// Who holds the lock, for those who don't. Its fence token is left out: it is not theirs.
pub(super) fn holder(holder: &Holder) -> String {
    let note = holder.note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
    format!("held by {}{note}, {} left", holder.owner, seconds(holder.lease_remaining_ms))
}

/// A cycle, as who waits for whom.
pub(super) fn cycle(edges: &[CycleEdge]) -> String {
    let mut text = String::new();
    for edge in edges {
        let name =
            |name: &Option<_>| name.as_ref().map_or("somebody".to_owned(), ToString::to_string);
        let _ = write!(text, "  {} waits for {}", name(&edge.owner), name(&edge.waits_for));
        if let (Some(lock_name), Some(scope)) = (&edge.lock_name, &edge.scope) {
            let _ = write!(text, " because of {lock_name} in {scope}");
        }
        text.push('\n');
    }
    text
}

pub(super) fn lock(lock: &Lock) -> String {
    let state = match &lock.owner {
        Some(owner) => format!("held by {owner}"),
        None => "free".to_owned(),
    };
    let mut text = Fields::default()
        .add("lock", format!("{} in {}", lock.lock_name, lock.scope))
        .add("state", state)
        .add_if("fence_token", lock.fence_token)
        .add_if("depth", (lock.depth > 0).then_some(lock.depth))
        .add("waiting", lock.queue.len())
        .add("sequence", lock.sequence)
        .to_string();
    let rows: Vec<_> = lock.holds.iter().chain(&lock.queue).map(ticket_row).collect();
    if !rows.is_empty() {
        text.push('\n');
        text.push_str(&table(TICKET_HEADING, &rows));
    }
    text
}

const TICKET_HEADING: [&str; 5] = ["TICKET", "STATE", "OWNER", "TIME", "NOTE"];

fn ticket_row(ticket: &Ticket) -> [String; 5] {
    [
        ticket.ticket_id.to_string(),
        state(ticket),
        ticket.owner.to_string(),
        time_left(ticket),
        ticket.note.as_ref().map(ToString::to_string).unwrap_or_default(),
    ]
}

fn state(ticket: &Ticket) -> String {
    match ticket.queue_position {
        Some(position) => format!("{} ({position})", ticket.state.as_str()),
        None => ticket.state.as_str().to_owned(),
    }
}

fn time_left(ticket: &Ticket) -> String {
    match (ticket.lease_remaining_ms, ticket.wait_expires_at) {
        (Some(ms), _) => format!("{} left", seconds(ms)),
        (None, Some(end)) => format!("waits until {end}"),
        (None, None) => String::new(),
    }
}

pub(super) fn locks(locks: &[Lock]) -> String {
    let left = |lock: &Lock| lock.holds.iter().filter_map(|hold| hold.lease_remaining_ms).max();
    let rows: Vec<_> = locks
        .iter()
        .map(|lock| {
            [
                lock.lock_name.to_string(),
                lock.owner.as_ref().map(ToString::to_string).unwrap_or_default(),
                lock.fence_token.map(|fence| fence.to_string()).unwrap_or_default(),
                lock.depth.to_string(),
                left(lock).map(seconds).unwrap_or_default(),
                lock.queue.len().to_string(),
            ]
        })
        .collect();
    table(["LOCK", "OWNER", "FENCE", "DEPTH", "LEFT", "WAITING"], &rows)
}

pub(super) fn tickets(tickets: &[Ticket]) -> String {
    let rows: Vec<_> = tickets
        .iter()
        .map(|ticket| {
            [
                ticket.ticket_id.to_string(),
                state(ticket),
                ticket.lock_name.to_string(),
                ticket.scope.to_string(),
                ticket.fence_token.map(|fence| fence.to_string()).unwrap_or_default(),
                time_left(ticket),
            ]
        })
        .collect();
    table(["TICKET", "STATE", "LOCK", "SCOPE", "FENCE", "TIME"], &rows)
}

/// What of an event's data is shown, in this order. The subject says the scope and the lock.
const SHOWN: [&str; 21] = [
    "owner",
    "user",
    "person",
    "title",
    "kind",
    "reply_id",
    "activity",
    "team",
    "role",
    "admin",
    "fence_token",
    "depth",
    "queue_position",
    "lease_seconds",
    "wait_seconds",
    "grace_seconds",
    "last_sequence",
    "ticket_id",
    "token_id",
    "note",
    "reason",
];

/// An event in one line; as it came if it is none that we can read.
pub(super) fn event(json: &str) -> String {
    let Ok(event) = serde_json::from_str::<CloudEvent<'_>>(json) else {
        return json.replace('\n', " ");
    };
    let mut line = format!(
        "{:>6}  {}  {:<22}  by {:<12}  {}",
        event.id,
        event.time,
        event.plain_type(),
        event.actor,
        event.subject
    );
    let data: Value = serde_json::from_str(event.data.get()).unwrap_or_default();
    for name in SHOWN {
        match data.get(name) {
            None | Some(Value::Null) => {}
            Some(value) => {
                let _ = write!(line, "  {name}={value}");
            }
        }
    }
    // Under the names of the flags that say it of a write.
    if let Some(Value::Object(fence)) = data.get("fence") {
        for (flag, name) in [("fence_lock", "lock_name"), ("fence_token", "fence_token")] {
            let _ = write!(line, "  {flag}={}", fence.get(name).unwrap_or(&Value::Null));
        }
    }
    line.replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_never_rounded_up() {
        assert_eq!(seconds(59_999), "59.9 s");
        assert_eq!(seconds(0), "0.0 s");
    }

    #[test]
    fn an_event_is_one_line_that_says_who_did_what() {
        const REPO: &str = "teams/platform/website";
        let line = |plain_type: &str, subject: &str, data: &str| {
            event(&format!(
                r#"{{"specversion":"1.0","id":"7","source":"/ledgers/x",
                "type":"pearing.{plain_type}","subject":"{subject}",
                "time":"2026-01-01T00:00:00.000Z","datacontenttype":"application/json",
                "dataschema":"s","actor":"ana","hash":"ab","data":{data}}}"#
            ))
        };
        let lock = format!("{REPO}/locks/x");
        assert_eq!(
            line(
                "lock.acquired",
                &lock,
                r#"{"owner":"ana","fence_token":7,"note":null,"depth":1}"#
            ),
            "     7  2026-01-01T00:00:00.000Z  lock.acquired           by ana           \
             teams/platform/website/locks/x  owner=\"ana\"  fence_token=7  depth=1"
        );
        let thread = format!("{REPO}/threads/42");
        let fence = r#""fence":{"lock_name":"x","fence_token":977}"#;
        for (plain_type, data, said) in [
            ("thread.created", r#""title":"Slow start","fence":null"#, r#"  title="Slow start""#),
            (
                "thread.replied",
                &format!(r#""kind":"review","reply_id":"0a","body":"Good.",{fence}"#),
                r#"  kind="review"  reply_id="0a"  fence_lock="x"  fence_token=977"#,
            ),
            (
                "thread.closed",
                &format!(r#""user":"ana",{fence}"#),
                r#"  user="ana"  fence_lock="x"  fence_token=977"#,
            ),
            (
                "activity.updated",
                r#""user":"ana","activity":"Reads","request_uuid":null"#,
                r#"  user="ana"  activity="Reads""#,
            ),
        ] {
            let shown = line(plain_type, &thread, &format!("{{{data}}}"));
            let (_, rest) = shown.split_once("  by ana           ").expect("it names the actor");
            assert_eq!(rest, format!("{thread}{said}"), "{plain_type}");
        }
        assert_eq!(event("no\nevent"), "no event");
    }
}
