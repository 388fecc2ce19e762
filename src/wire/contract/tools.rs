//! What a tool for agents is asked with and answers, as JSON Schemas.
//!
//! A tool is an operation whose parts of the path, parameters and fields of the body all stand side
//! by side in one object, since that is what models fill in best. So no schema here refers to
//! another one, but for answers that are trees.
//! Deliberately absent: "exactly one of repo, team and user" as a schema. Not every model's API
//! takes alternatives at the top; the server says the rule.

use schemars::generate::Contract;
use serde_json::{Map, Value, json};

use super::super::operation::{Content, Operation, Place, ScopeIn};
use super::openapi::{part_of_path, scope_named};
use super::{Described, standalone, tidy};
use crate::wire::operation::MOMENT_PATTERN;

/// The argument that an object inside a body becomes: `fence.lock_name` is `fence_lock_name`.
pub(crate) fn inner_name(outer: &str, inner: &str) -> String {
    let prefix = format!("{outer}_");
    if inner.starts_with(&prefix) { inner.to_owned() } else { prefix + inner }
}

/// The arguments of an operation's tool, by where they go.
pub(crate) struct Arguments {
    /// Into the query.
    pub(crate) query: Vec<&'static str>,
    /// Into the body: the field, and the fields inside of it if it is an object.
    pub(crate) body: Vec<(String, Vec<String>)>,
    /// All of them, as properties of an object.
    pub(crate) properties: Map<String, Value>,
    /// Those that must be there.
    pub(crate) required: Vec<String>,
}

/// What an operation's tool takes.
pub(crate) fn arguments(operation: &Operation) -> Arguments {
    let mut arguments = Arguments {
        query: Vec::new(),
        body: Vec::new(),
        properties: Map::new(),
        required: Vec::new(),
    };
    for part in operation.path_parts() {
        let (described, example) = part_of_path(part);
        let mut schema = inlined(described);
        schema["examples"] = json!([example]);
        arguments.properties.insert(part.to_owned(), schema);
        arguments.required.push(part.to_owned());
    }
    let scopes: &[&str] = match operation.scope {
        ScopeIn::Nothing => &[],
        ScopeIn::One | ScopeIn::OneAtMost => &["repo", "team", "user"],
        ScopeIn::Repo => &["repo"],
    };
    for name in scopes {
        let mut schema = scope_named(name, &mut |described| inlined(described));
        let which = match operation.scope {
            ScopeIn::One => "Give exactly one of repo, team and user.",
            ScopeIn::OneAtMost => "Only in this scope; at most one of repo, team and user.",
            ScopeIn::Repo | ScopeIn::Nothing => "The repository.",
        };
        schema["description"] = which.into();
        arguments.ask_in_query(name, schema);
    }
    if operation.scope == ScopeIn::Repo {
        arguments.required.push("repo".to_owned());
    }
    for parameter in operation.parameters.iter().filter(|one| one.place == Place::Query) {
        let mut schema = inlined(parameter.schema);
        schema["description"] = parameter.what.into();
        arguments.ask_in_query(parameter.name, schema);
    }
    if operation.has_as_of {
        let what = "As it was then: a sequence or a time, up to now.";
        let schema = json!({ "type": "string", "pattern": MOMENT_PATTERN, "description": what });
        arguments.ask_in_query("as_of", schema);
    }
    if operation.is_paged {
        let most = json!({
            "type": "integer",
            "minimum": 1,
            "maximum": 1000,
            "default": PAGE,
            "description": "The most items to answer.",
        });
        arguments.ask_in_query("limit", most);
        let what = "Goes on after the page before: its next.";
        arguments.ask_in_query("cursor", json!({ "type": "string", "description": what }));
    }
    if let Some(body) = operation.body {
        arguments.add_body(&inlined(body));
    }
    let mut properties = Value::Object(std::mem::take(&mut arguments.properties));
    tidy(&mut properties);
    let Value::Object(properties) = properties else { unreachable!("it was one") };
    arguments.properties = properties;
    arguments
}

/// How many items a tool answers unless it is asked for another number: what a model reads, it
/// pays for.
pub(crate) const PAGE: u32 = 20;

impl Arguments {
    fn ask_in_query(&mut self, name: &'static str, schema: Value) {
        self.query.push(name);
        self.properties.insert(name.to_owned(), schema);
    }

    fn add_body(&mut self, schema: &Value) {
        let required = |schema: &Value, name: &str| {
            schema["required"].as_array().is_some_and(|names| names.iter().any(|one| one == name))
        };
        let properties = schema["properties"].as_object().into_iter().flatten();
        for (name, property) in properties {
            let Some(inner) = object_in(property) else {
                if required(schema, name) {
                    self.required.push(name.clone());
                }
                self.properties.insert(name.clone(), property.clone());
                self.body.push((name.clone(), Vec::new()));
                continue;
            };
            for (field, property) in inner {
                self.properties.insert(inner_name(name, field), property.clone());
            }
            self.body.push((name.clone(), inner.keys().cloned().collect()));
        }
    }
}

/// The fields of an object, also where null may stand instead of it.
fn object_in(schema: &Value) -> Option<&Map<String, Value>> {
    let alternatives = schema["anyOf"].as_array().into_iter().flatten();
    std::iter::once(schema).chain(alternatives).find_map(|one| one["properties"].as_object())
}

/// What an operation answers.
pub(crate) fn answer(operation: &Operation) -> Option<Map<String, Value>> {
    let described = operation.answers.iter().find_map(|answer| match answer.content {
        Content::Json(described) => Some(described),
        Content::Feed | Content::Text(_) | Content::Nothing => None,
    })?;
    let mut schema = standalone(Contract::Serialize, described, "");
    // Readers of the wire know which dialect it is, and compile many tools side by side.
    schema.remove("$id");
    schema.remove("$schema");
    if let Some(definitions) = schema.get_mut("$defs").and_then(Value::as_object_mut)
        && definitions.contains_key(EVENT)
    {
        let fields = ["id", "type", "subject", "time", "actor", "data"];
        let event = json!({
            "type": "object",
            "description": "A CloudEvents object; its data is by its type.",
            "required": fields,
        });
        *definitions = Map::from_iter([(EVENT.to_owned(), event)]);
    }
    Some(schema)
}

/// What an event is called. With all that each type has it would be longer than all tools.
const EVENT: &str = "CloudEvent";

/// A schema that refers to no other.
fn inlined(described: Described) -> Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12().with(|settings| {
        settings.contract = Contract::Deserialize;
        settings.inline_subschemas = true;
    });
    let mut schema: Value = described(&mut settings.into_generator()).into();
    if let Some(object) = schema.as_object_mut() {
        object.remove("examples");
    }
    shorten(&mut schema);
    schema
}

/// Leaves out what no model gets wrong, and the API refuses all the same: which characters a text
/// may not have, and which name is nobody's.
fn shorten(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            object.remove("not");
            if object.get("pattern").and_then(Value::as_str).is_some_and(|p| p.starts_with("^[^")) {
                object.remove("pattern");
            }
            object.values_mut().for_each(shorten);
        }
        Value::Array(items) => items.iter_mut().for_each(shorten),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
