//! The AsyncAPI document: the feed, with a message for each type of event and each control frame.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{Components, described, info, tidy};
use crate::domain::event::Event;
use crate::domain::id::Sequence;
use crate::ledger::codec;
use crate::wire::cloud_event::{CloudEvent, TYPE_PREFIX, dataschema};
use crate::wire::operation::{Parameter, Place, WATCH_EVENTS};

const DESCRIPTION: &str = "\
The feed: every event that the caller may read, in order and without a gap, as server-sent events. \
It is followed with `GET /v1/events` and `Accept: text/event-stream`. After a lost connection, \
`Last-Event-ID` goes on after the last frame that was seen.";

/// The frames that are no events: what each says.
const CONTROLS: [(&str, &str); 3] = [
    ("caught-up", "Here history meets the present."),
    ("checkpoint", "So far was looked, though the filter let nothing through: resume from here."),
    ("reset", "Events after this sequence are gone. Read the state again, then go on."),
];

/// The document.
pub(super) fn document() -> Value {
    let mut components = Components::new();
    let mut messages: BTreeMap<&str, Value> = BTreeMap::new();
    for (type_name, _) in Event::TYPES {
        messages.insert(type_name, event(type_name, &mut components));
    }
    for (name, what) in CONTROLS {
        messages.insert(name, control(name, what, &mut components));
    }
    let refer = |place: &str, name: &str| json!({ "$ref": format!("#/{place}/{name}") });
    let in_channel: Map<String, Value> = messages
        .keys()
        .map(|name| ((*name).to_owned(), refer("components/messages", name)))
        .collect();
    let sent: Vec<Value> =
        messages.keys().map(|name| refer("channels/events/messages", name)).collect();
    let query = query(&mut components);
    let mut document = json!({
        "asyncapi": "3.0.0",
        "info": info(DESCRIPTION),
        "defaultContentType": "application/json",
        "servers": { "local": {
            "host": "127.0.0.1:7420",
            "protocol": "http",
            "description": "Where a server listens if it isn't told otherwise.",
            "security": [refer("components/securitySchemes", "bearer")],
        } },
        "channels": { "events": {
            "address": WATCH_EVENTS.path,
            "title": "The feed",
            "description": "Frames of server-sent events. The headers of a message are the fields \
                            id and event of its frame, and its payload is the field data.",
            "messages": in_channel,
        } },
        "operations": { WATCH_EVENTS.name: {
            "action": "send",
            "channel": refer("channels", "events"),
            "summary": WATCH_EVENTS.summary,
            "messages": sent,
            "bindings": { "http": {
                "method": WATCH_EVENTS.method.as_str(),
                "query": query,
                "bindingVersion": "0.3.0",
            } },
        } },
        "components": {
            "messages": messages,
            "schemas": components.take(),
            "securitySchemes": { "bearer": {
                "type": "http",
                "scheme": "bearer",
                "description": "A token, as `create-token` or `create-agent` shows it once.",
            } },
        },
    });
    document["info"]["license"] = json!({
        "name": "Apache-2.0",
        "url": "https://www.apache.org/licenses/LICENSE-2.0",
    });
    tidy(&mut document);
    document
}

/// The query of the feed.
fn query(components: &mut Components) -> Value {
    let mut properties = json!({
        "repo": { "type": "string", "description": "Only in this repository." },
        "team": { "type": "string", "description": "Only in this team's scope." },
        "user": { "type": "string", "description": "Only in this user's scope." },
    });
    let in_query = |parameter: &&Parameter| parameter.place == Place::Query;
    for parameter in WATCH_EVENTS.parameters.iter().filter(in_query) {
        let mut schema = components.asked(parameter.schema);
        schema["description"] = parameter.what.into();
        properties[parameter.name] = schema;
    }
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

/// The frame's own fields.
fn frame(name: &str) -> Value {
    json!({
        "type": "object",
        "required": ["id", "event"],
        "properties": {
            "id": {
                "type": "string",
                "pattern": "^[0-9]{1,16}$",
                "description": "The sequence, to resume from.",
            },
            "event": { "const": name },
        },
    })
}

fn event(type_name: &str, components: &mut Components) -> Value {
    let shapes = codec::shapes().filter(|shape| shape.type_name == type_name);
    let versions: Vec<Value> = shapes
        .map(|shape| {
            json!({ "properties": {
                "dataschema": { "const": dataschema(type_name, shape.version) },
                "data": components.answered(shape.schema),
            } })
        })
        .collect();
    let wire_type = format!("{TYPE_PREFIX}{type_name}");
    json!({
        "name": type_name,
        "title": type_name,
        "contentType": "application/json",
        "headers": frame(type_name),
        "payload": { "allOf": [
            components.answered(described::<CloudEvent<'_>>()),
            { "properties": { "type": { "const": wire_type } }, "oneOf": versions },
        ] },
    })
}

fn control(name: &str, what: &str, components: &mut Components) -> Value {
    json!({
        "name": name,
        "title": name,
        "summary": what,
        "contentType": "application/json",
        "headers": frame(name),
        "payload": {
            "type": "object",
            "required": ["sequence"],
            "properties": { "sequence": components.answered(described::<Sequence>()) },
        },
    })
}
