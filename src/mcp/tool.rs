//! The tools: each is an operation of the one table, and a call of it is that operation's call.
//!
//! Pure: from a name and arguments to what is asked of the API. The table says what there is, and
//! this says what a model has to know besides.
//! Deliberately absent: rules. A wrong value is refused by the API, in its own words.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::wire::ask::Ask;
use crate::wire::contract::tools::{Arguments, PAGE, answer, arguments, inner_name};
use crate::wire::operation::{self, Method, Operation};
use crate::wire::problem::Problem;

/// How long a call may wait for a ticket to stop waiting, in seconds: clients of this protocol
/// give up a call after 60.
pub(super) const WAIT_HERE_SECONDS_MAX: u64 = 45;

/// The argument that says how long a call waits.
pub(super) const WAIT_HERE: &str = "wait_here_seconds";
/// The argument that says how long heartbeats are sent for the agent.
pub(super) const KEEP_ALIVE: &str = "keep_alive_minutes";
/// The longest time for which heartbeats are sent after the agent's last call, in minutes.
pub(super) const KEEP_ALIVE_MINUTES_MAX: u64 = 60;

/// The tool that isn't an operation: what an agent asks that has lost its context.
pub(super) const WHAT_DO_I_HOLD: &str = "what_do_i_hold";

/// What a tool is besides its operation.
pub(super) struct Tool {
    /// The operation.
    pub(super) operation: &'static Operation,
    /// What it takes.
    pub(super) arguments: Arguments,
    /// What it answers, if that has a schema.
    pub(super) answer: Option<Map<String, Value>>,
}

/// Every tool that is an operation, in the table's order.
pub(super) static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(|| {
    let of = |operation: &'static Operation| Tool {
        operation,
        arguments: arguments(operation),
        answer: answer(operation).map(or_refusal),
    };
    operation::all().filter(|operation| operation.has_tool).map(of).collect()
});

/// The tool of a name.
pub(super) fn named(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.operation.name == name)
}

/// Whether the ticket that it answers is waited for.
pub(super) fn is_waited_for(operation: &Operation) -> bool {
    [operation::ACQUIRE_LOCK.name, operation::GET_LOCK_TICKET.name].contains(&operation.name)
}

impl Tool {
    /// What a model is told of it.
    pub(super) fn description(&self) -> String {
        let summary = self.operation.summary;
        match note(self.operation.name) {
            Some(note) if is_waited_for(self.operation) && self.is_read_only() => note.to_owned(),
            Some(note) => format!("{summary} {note}"),
            None => summary.to_owned(),
        }
    }

    /// Whether it changes nothing.
    pub(super) fn is_read_only(&self) -> bool {
        self.operation.method == Method::Get
    }

    /// Whether the same call again has no effect besides.
    pub(super) fn is_idempotent(&self) -> bool {
        self.is_read_only() || IDEMPOTENT.contains(&self.operation.name)
    }

    /// Whether it ends what is another's, or can't be had again.
    pub(super) fn is_destructive(&self) -> bool {
        DESTRUCTIVE.contains(&self.operation.name)
    }

    /// The schema of its input.
    pub(super) fn input(&self, can_keep_alive: bool) -> Map<String, Value> {
        let mut properties = self.arguments.properties.clone();
        if is_waited_for(self.operation) {
            let what = "How long this call may take while the ticket waits. Still waiting then? \
                        Call get_lock_ticket.";
            let schema = number(WAIT_HERE_SECONDS_MAX, WAIT_HERE_SECONDS_MAX, what);
            properties.insert(WAIT_HERE.to_owned(), schema);
        }
        if can_keep_alive && self.operation.name == operation::ACQUIRE_LOCK.name {
            let what = "For how long after your last call of any tool heartbeats are sent for you, \
                        while this session lives. 0: you call heartbeat_lock_ticket yourself.";
            properties.insert(KEEP_ALIVE.to_owned(), number(KEEP_ALIVE_MINUTES_MAX, 0, what));
        }
        object(properties, &self.arguments.required)
    }

    /// The call that these arguments make.
    ///
    /// # Errors
    /// An argument that it doesn't have, or that must be there.
    pub(super) fn ask(&self, mut given: Map<String, Value>) -> Result<Ask, Box<Problem>> {
        if let Some(missing) = self.arguments.required.iter().find(|n| !given.contains_key(*n)) {
            return Err(invalid(missing, "is required"));
        }
        let mut path = Vec::new();
        for part in self.operation.path.trim_start_matches("/v1/").split('/') {
            let Some(name) = part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) else {
                path.push(part.to_owned());
                continue;
            };
            let value = text(&given.remove(name).unwrap_or_default());
            // A path with such a part is another path.
            if value.bytes().all(|byte| byte == b'.') {
                return Err(invalid(name, "must be a name"));
            }
            path.push(value);
        }
        let mut query = Vec::new();
        for name in &self.arguments.query {
            if let Some(value) = given.remove(*name) {
                query.push((*name, text(&value)));
            } else if *name == "limit" {
                query.push((*name, PAGE.to_string()));
            }
        }
        let mut body = Map::new();
        for (name, inner) in &self.arguments.body {
            if inner.is_empty() {
                body.extend(given.remove_entry(name));
                continue;
            }
            let fields = inner
                .iter()
                .filter_map(|field| Some((field.clone(), given.remove(&inner_name(name, field))?)));
            let fields: Map<String, Value> = fields.collect();
            if !fields.is_empty() {
                body.insert(name.clone(), fields.into());
            }
        }
        if let Some(unknown) = given.keys().next() {
            return Err(invalid(unknown, "is not an argument of this tool"));
        }
        let body = self.operation.body.map(|_| Value::Object(body));
        let is_harmless = self.is_idempotent();
        Ok(Ask { method: self.operation.method, path, query, body, wait_seconds: 0, is_harmless })
    }
}

/// What a model has to know of a tool, beyond its operation's summary.
fn note(name: &str) -> Option<&'static str> {
    Some(match name {
        "acquire_lock" => {
            "Make a new random request_uuid for each acquisition, and send the same one again if \
             the answer got lost: that gives the same ticket. The ticket's state tells: held (go \
             on, read the current state first), waiting (call get_lock_ticket until it is not), \
             contended (somebody else has it: leave the work, or ask later with wait_seconds), \
             deadlock_rejected (release what you hold, or give this up)."
        }
        "get_lock_ticket" => {
            "Reads a ticket, and waits while the ticket waits, up to wait_here_seconds."
        }
        "heartbeat_lock_ticket" => {
            "Call it about every third of lease_seconds. Refused (ticket-not-held): you lost the \
             lock; stop writing at once."
        }
        "release_lock_ticket" => "Release each ticket that you acquired, once.",
        "create_reply" => {
            "Give fence_lock_name and fence_token of your hold, so that it is refused if you lost \
             the lock. With a request_uuid a repeated call writes no second reply."
        }
        "whoami" => "For what you hold, call what_do_i_hold.",
        _ => return None,
    })
}

/// What can be called again with the same arguments and changes nothing more. Heartbeats are not
/// here: each moves the deadline. Nor is what makes another event without a `request_uuid`.
const IDEMPOTENT: &[&str] = &[
    "acquire_lock",
    "release_lock_ticket",
    "break_lock",
    "close_thread",
    "reopen_thread",
    "clear_user_activity",
    "revoke_agent_tokens",
];

/// What ends a hold of another, or tokens.
const DESTRUCTIVE: &[&str] = &["break_lock", "revoke_agent_tokens"];

pub(super) fn object(properties: Map<String, Value>, required: &[String]) -> Map<String, Value> {
    let schema = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    let Value::Object(schema) = schema else { unreachable!("it is one") };
    schema
}

/// The schema of an answer, or of a problem in its place: some clients hold a refusal, too, against
/// what its tool says that it answers.
pub(super) fn or_refusal(mut answer: Map<String, Value>) -> Map<String, Value> {
    let definitions = answer.remove("$defs");
    let refusal = json!({
        "description": "A refusal, with isError: a problem, as the HTTP API has it.",
        "properties": { "code": { "type": "string" }, "detail": { "type": "string" } },
        "required": ["code", "detail"],
    });
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("anyOf".to_owned(), json!([answer, refusal]));
    schema.extend(definitions.map(|definitions| ("$defs".to_owned(), definitions)));
    schema
}

fn number(most: u64, default: u64, what: &str) -> Value {
    json!({
        "type": "integer",
        "minimum": 0,
        "maximum": most,
        "default": default,
        "description": what,
    })
}

/// Makes an integer of a number that is one but for how it is written.
pub(super) fn make_whole(value: &mut Value) {
    if value.is_f64()
        && let Some(whole) = value.as_f64().filter(|number| number.fract() == 0.0)
        && let Ok(whole) = format!("{whole:.0}").parse::<i64>()
    {
        *value = whole.into();
    }
}

/// A number from 0 to `most` among the arguments, taken out.
///
/// # Errors
/// It is another value.
pub(super) fn take_number(
    given: &mut Map<String, Value>,
    name: &str,
    most: u64,
    default: u64,
) -> Result<u64, Box<Problem>> {
    match given.remove(name) {
        None => Ok(default),
        Some(value) => value
            .as_u64()
            .filter(|number| *number <= most)
            .ok_or_else(|| invalid(name, &format!("must be a whole number from 0 to {most}"))),
    }
}

fn invalid(field: &str, rule: &str) -> Box<Problem> {
    Box::new(Problem::invalid(field, rule))
}

/// A value as a path or a query has it.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(tool: &str, given: Value) -> Result<Ask, Box<Problem>> {
        let Value::Object(given) = given else { panic!("arguments are an object") };
        named(tool).expect("there is such a tool").ask(given)
    }

    #[test]
    fn a_flat_call_is_the_operations_call() {
        let asked = ask(
            "create_reply",
            json!({
                "repo": "teams/platform/website", "number": 42, "kind": "note", "body": "a",
                "fence_lock_name": "x", "fence_token": 7,
            }),
        )
        .expect("it is right");
        assert_eq!(
            (asked.method, asked.path.join("/")),
            (Method::Post, "threads/42/replies".into())
        );
        assert_eq!(asked.query, [("repo", "teams/platform/website".to_owned())]);
        let fence = json!({ "lock_name": "x", "fence_token": 7 });
        assert_eq!(asked.body, Some(json!({ "kind": "note", "body": "a", "fence": fence })));
        assert!(!asked.is_harmless);
    }

    #[test]
    fn no_name_leads_to_another_path() {
        let id = "0191d1f0-0000-7000-8000-000000000001";
        for name in ["", ".", ".."] {
            let asked = ask("why_lock_ticket", json!({ "lock_name": name, "ticket_id": id }));
            assert_eq!(asked.expect_err("no name").detail, "lock_name must be a name");
        }
        let asked = ask("why_lock_ticket", json!({ "lock_name": "a/b", "ticket_id": id }));
        assert_eq!(asked.expect("a call").target(), format!("/v1/locks/a%2Fb/tickets/{id}/why"));
    }

    #[test]
    fn a_whole_number_is_one_however_it_is_written() {
        for (given, expected) in [
            (json!(5.0), json!(5)),
            (json!(-0.0), json!(0)),
            (json!(5.5), json!(5.5)),
            (json!(1e300), json!(1e300)),
            (json!("5.0"), json!("5.0")),
        ] {
            let mut value = given.clone();
            make_whole(&mut value);
            assert_eq!(value, expected, "{given}");
        }
    }

    #[test]
    fn a_list_is_short_unless_a_longer_one_is_asked_for() {
        let asked = ask("list_tickets", json!({})).expect("it is right");
        assert_eq!(asked.query, [("limit", "20".to_owned())]);
        let asked = ask("list_tickets", json!({ "limit": 500 })).expect("it is right");
        assert_eq!(asked.query, [("limit", "500".to_owned())]);
    }

    #[test]
    fn a_missing_and_an_unknown_argument_are_named() {
        let said = |tool, given| ask(tool, given).expect_err("it is wrong").detail;
        assert_eq!(said("get_lock", json!({})), "lock_name is required");
        let unknown = json!({ "lock_name": "x", "repo": "users/a/b", "owner": "me" });
        assert_eq!(said("get_lock", unknown), "owner is not an argument of this tool");
    }

    #[test]
    fn every_input_is_flat_and_none_can_hold_a_token() {
        for tool in TOOLS.iter() {
            let input = tool.input(true);
            assert!(!Value::from(input.clone()).to_string().contains("$ref"), "{input:?}");
            let properties = input["properties"].as_object().expect("an object");
            for (name, property) in properties {
                assert!(object_like(property).is_none(), "{} {name}", tool.operation.name);
            }
            assert!(tool.description().len() < 700, "{}", tool.operation.name);
        }
        let names: Vec<_> = TOOLS.iter().map(|tool| tool.operation.name).collect();
        for name in ["create_agent", "create_token", "watch_events", "create_user"] {
            assert!(!names.contains(&name), "{name}");
        }
        assert!(names.contains(&"acquire_lock") && names.contains(&"list_repos"), "{names:?}");
    }

    #[test]
    fn what_a_model_reads_is_short_and_every_reference_leads_somewhere() {
        let tools = super::super::tools(true);
        let long = |tool: &&rmcp::model::Tool| {
            let input = serde_json::to_string(&tool.input_schema).expect("it is JSON").len();
            input + tool.description.as_deref().unwrap_or_default().len() > 3_000
        };
        assert_eq!(tools.iter().filter(long).map(|tool| &tool.name).collect::<Vec<_>>(), [""; 0]);
        for tool in &tools {
            let answer = tool.output_schema.as_ref().expect("each answers JSON");
            let answer = Value::Object((**answer).clone());
            let text = answer.to_string();
            assert!(text.len() < 10_000, "{}: {}", tool.name, text.len());
            for name in text.split("\"#/$defs/").skip(1).filter_map(|rest| rest.split('"').next()) {
                assert!(answer["$defs"][name].is_object(), "{}: {name}", tool.name);
            }
        }
    }

    fn object_like(schema: &Value) -> Option<&Value> {
        schema.to_string().contains("\"properties\"").then_some(schema)
    }
}
