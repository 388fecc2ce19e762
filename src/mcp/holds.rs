//! What an agent holds, in a few lines: for one that has lost its context.

use std::sync::Arc;

use rmcp::model::{Tool as ToolInfo, ToolAnnotations};
use serde_json::{Map, Value, json};

use super::tool::{WHAT_DO_I_HOLD, object, or_refusal};
use super::{Api, Told};
use crate::wire::ask::Ask;

/// How many tickets it tells of. One who has more asks for the list.
const TICKETS_MAX: &str = "50";

/// What is kept of a ticket.
const FIELDS: [&str; 8] = [
    "scope",
    "lock_name",
    "ticket_id",
    "state",
    "fence_token",
    "lease_remaining_ms",
    "queue_position",
    "note",
];

/// The tool, as a client lists it.
pub(super) fn info() -> ToolInfo {
    let nullable = |kind: &str| json!({ "type": [kind, "null"] });
    let ticket = json!({
        "type": "object",
        "properties": {
            "scope": { "type": "string" },
            "lock_name": { "type": "string" },
            "ticket_id": { "type": "string", "format": "uuid" },
            "state": { "type": "string", "enum": ["held", "waiting"] },
            "fence_token": nullable("integer"),
            "lease_remaining_ms": nullable("integer"),
            "queue_position": nullable("integer"),
            "note": nullable("string"),
        },
        "required": FIELDS,
    });
    let answer = json!({
        "user": { "type": "string" },
        "tickets": { "type": "array", "items": ticket },
        "has_more": { "type": "boolean" },
    });
    let Value::Object(properties) = answer else { unreachable!("it is an object") };
    let required: Vec<String> = properties.keys().cloned().collect();
    let what = "Says who you are and which locks you hold or wait for, in a few lines. Call it \
                first when you don't know any more what you were doing.";
    let annotations = ToolAnnotations::new().read_only(true).idempotent(true).destructive(false);
    ToolInfo::new(WHAT_DO_I_HOLD, what, Arc::new(object(Map::new(), &[])))
        .with_raw_output_schema(Arc::new(or_refusal(object(properties, &required))))
        .with_annotations(annotations.open_world(false))
}

/// The answer.
pub(super) async fn told<A: Api>(api: &A) -> Told {
    let who = match api.ask(Ask::get(&["whoami"], Vec::new())).await {
        Told::Answer(who) => who,
        other => return other,
    };
    let limit = vec![("limit", TICKETS_MAX.to_owned())];
    let tickets = match api.ask(Ask::get(&["tickets"], limit)).await {
        Told::Answer(tickets) => tickets,
        other => return other,
    };
    let short = |ticket: &Value| -> Value {
        FIELDS.iter().map(|name| ((*name).to_owned(), ticket[*name].clone())).collect()
    };
    let items = tickets["items"].as_array().into_iter().flatten();
    Told::Answer(json!({
        "user": who["user"],
        "tickets": items.map(short).collect::<Vec<_>>(),
        "has_more": !tickets["next"].is_null(),
    }))
}
