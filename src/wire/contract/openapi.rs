//! The OpenAPI document: all of HTTP, from the table of operations.

use std::collections::BTreeMap;

use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use super::links::LINKS;
use super::{Components, described, info, tidy};
use crate::domain::id::{TicketId, TokenId};
use crate::domain::name::{LockName, TeamName, UserName};
use crate::domain::scope::Scope;
use crate::domain::thread::ThreadNumber;
use crate::wire::operation::{
    self, Answer, Content, Group, Method, Operation, Parameter, Place, ScopeIn,
};
use crate::wire::problem::{Code, Problem};
use crate::wire::request;

const DESCRIPTION: &str = "\
Pearing gives one identity at a time a time-limited claim on named work, and records every step \
of it in a durable ledger.

Bodies are JSON; fields and parameters that a call doesn't know are refused. Refusals are \
`application/problem+json` with a stable `code`. In answers fields may be added, so a client \
passes over those that it doesn't know. A path that takes another method answers 405, and its \
header `Allow` says which.";

/// The document.
pub(super) fn document() -> Value {
    let mut components = Components::new();
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for operation in operation::all() {
        let path = paths.entry(operation.path).or_default();
        let method = operation.method.as_str().to_ascii_lowercase();
        let described = call(operation, &mut components);
        match path.get_mut(&method) {
            // The feed has its address in common with the page of events.
            Some(other) => join(other, described),
            None => {
                path.insert(method, described);
            }
        }
    }
    let parameters = shared_parameters(&mut components);
    let responses = shared_responses(&mut components);
    let mut document = json!({
        "openapi": "3.1.0",
        "info": info(DESCRIPTION),
        "tags": Group::ALL.iter().map(|g| json!({ "name": g.as_str() })).collect::<Vec<_>>(),
        "paths": paths,
        "security": [{ "bearer": [] }],
        "components": {
            "schemas": components.take(),
            "parameters": parameters,
            "responses": responses,
            "headers": headers(),
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token, as `create-token` or `create-agent` shows it once.",
                },
                "feed": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "pearing_feed",
                    "description": "Set by `POST /v1/feed-session`. For GET /v1/events alone.",
                },
            },
        },
    });
    document["info"]["license"] = json!({ "name": "Apache-2.0", "identifier": "Apache-2.0" });
    tidy(&mut document);
    document
}

/// Adds to a call what another one at the same address has besides.
fn join(call: &mut Value, other: Value) {
    let known = call["parameters"].as_array_mut().expect("a call has a list of parameters");
    let Value::Array(others) = other["parameters"].clone() else { unreachable!("as this one") };
    let name = |parameter: &Value| parameter.get("name").cloned();
    for parameter in others {
        let is_known = |one: &Value| one == &parameter || name(one) == name(&parameter);
        if !known.iter().any(is_known) {
            known.push(parameter);
        }
    }
    let commands = other["x-pearing-commands"].as_array().cloned().unwrap_or_default();
    if let Some(known) = call["x-pearing-commands"].as_array_mut() {
        known.extend(commands);
    }
    let summary = format!("{} {}", text(call, "summary"), text(&other, "summary"));
    call["summary"] = summary.into();
    let answers = other["responses"].as_object().expect("a call has answers");
    for (status, answer) in answers.iter().filter(|(_, answer)| answer.get("content").is_some()) {
        let content = answer["content"].as_object().cloned().unwrap_or_default();
        for (media_type, schema) in content {
            call["responses"][status]["content"][media_type] = schema;
        }
    }
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

fn call(operation: &Operation, components: &mut Components) -> Value {
    let mut call = json!({
        "operationId": operation.name,
        "tags": [operation.group.as_str()],
        "summary": operation.summary,
        "parameters": parameters(operation, components),
        "responses": responses(operation, components),
    });
    if operation.is_open {
        call["security"] = json!([]);
    }
    if operation.method == Method::Get && operation.path == operation::LIST_EVENTS.path {
        call["security"] = json!([{ "bearer": [] }, { "feed": [] }]);
    }
    if let Some(command) = operation.command {
        call["x-pearing-commands"] = json!([command.replace('_', "-")]);
    }
    if let Some(body) = operation.body {
        let schema = components.asked(body);
        // Found where the reference leads.
        let whole = whole(&mut components.asked, &schema);
        let mut content = json!({ "schema": schema });
        if let Some(example) = whole["examples"].get(0) {
            content["example"] = example.clone();
        }
        let is_required = whole.get("required").is_some();
        call["requestBody"] =
            json!({ "required": is_required, "content": { "application/json": content } });
    }
    call
}

/// What a reference leads to.
fn whole(generator: &mut SchemaGenerator, schema: &Value) -> Value {
    let name = text(schema, "$ref").strip_prefix(Components::PATH).expect("it is a reference");
    generator.definitions()[name].clone()
}

/// The parts of paths: what each must be, and an example of it.
pub(super) fn part_of_path(name: &str) -> (operation::Described, Value) {
    match name {
        "lock_name" => (described::<LockName>(), json!("thread-work.42")),
        "ticket_id" => (described::<TicketId>(), json!("0191d1f0-0000-7000-8000-000000000001")),
        "number" => (described::<ThreadNumber>(), json!(42)),
        "name" => (request::agent_name as operation::Described, json!("helper")),
        "user" => (described::<UserName>(), json!("codex")),
        "team" => (described::<TeamName>(), json!("platform")),
        "token_id" => (described::<TokenId>(), json!("0191d1f0-0000-7000-8000-000000000002")),
        "file" => (described::<String>(), json!("index.html")),
        other => panic!("nobody knows what {other} is in a path"),
    }
}

fn path_part(name: &str, components: &mut Components) -> Value {
    let (schema, example) = part_of_path(name);
    json!({
        "name": name,
        "in": "path",
        "required": true,
        "schema": components.asked(schema),
        "example": example,
    })
}

/// What names a scope: `repo`, `team` or `user`.
pub(super) fn scope_named(
    name: &str,
    schema_of: &mut dyn FnMut(operation::Described) -> Value,
) -> Value {
    match name {
        "repo" => {
            let mut schema = schema_of(described::<Scope>());
            let narrowed = <&mut schemars::Schema>::try_from(&mut schema);
            Scope::repo_only(narrowed.expect("a schema that was just made"));
            schema
        }
        "team" => schema_of(described::<TeamName>()),
        _ => schema_of(described::<UserName>()),
    }
}

fn parameters(operation: &Operation, components: &mut Components) -> Vec<Value> {
    let shared = |name: &str| json!({ "$ref": format!("#/components/parameters/{name}") });
    let mut parameters: Vec<Value> =
        operation.path_parts().map(|part| path_part(part, components)).collect();
    parameters.extend(match operation.scope {
        ScopeIn::Nothing => None,
        ScopeIn::One => Some(shared("scope")),
        ScopeIn::OneAtMost => Some(shared("scope_if_any")),
        ScopeIn::Repo => Some(shared("repo")),
    });
    if operation.has_as_of {
        parameters.push(shared("as_of"));
    }
    let own = |parameter: &Parameter| {
        let place = match parameter.place {
            Place::Query => "query",
            Place::Header => "header",
        };
        json!({
            "name": parameter.name,
            "in": place,
            "description": parameter.what,
            "schema": components.asked(parameter.schema),
        })
    };
    parameters.extend(operation.parameters.iter().map(own));
    if operation.is_paged {
        parameters.extend([shared("limit"), shared("cursor")]);
    }
    parameters
}

fn shared_parameters(components: &mut Components) -> Value {
    let mut scope = |name: &str| {
        let described = scope_named(name, &mut |described| components.asked(described));
        json!({
            "required": [name],
            "properties": { name: described },
            "additionalProperties": false,
        })
    };
    let repo = scope("repo")["properties"]["repo"].clone();
    let one = [scope("repo"), scope("team"), scope("user")];
    let in_query = |name: &str, what: &str, schema: Value| {
        json!({
            "name": name,
            "in": "query",
            "description": what,
            "schema": schema,
        })
    };
    let exploded = |mut parameter: Value| {
        parameter["style"] = "form".into();
        parameter["explode"] = true.into();
        parameter["example"] = json!({ "repo": "teams/platform/website" });
        parameter
    };
    let what = "The scope: exactly one of repo, team and user, as ?repo=teams/platform/website.";
    let mut scope = exploded(in_query("scope", what, json!({ "type": "object", "oneOf": one })));
    scope["required"] = true.into();
    let what = "Only in this scope: one of repo, team and user.";
    let scope_if_any = exploded(in_query("scope", what, json!({ "type": "object", "oneOf": one })));
    let mut repo = in_query("repo", "The repository.", repo);
    repo["required"] = true.into();
    repo["example"] = "teams/platform/website".into();
    let as_of = json!({ "type": "string", "pattern": operation::MOMENT_PATTERN });
    let limit = json!({ "type": "integer", "minimum": 1, "maximum": 1000, "default": 100 });
    json!({
        "scope": scope,
        "scope_if_any": scope_if_any,
        "repo": repo,
        "as_of": in_query("as_of", "As it was then: a sequence or a time, up to now.", as_of),
        "limit": in_query("limit", "The most items to answer.", limit),
        "cursor": in_query(
            "cursor",
            "Goes on after the page before: its next.",
            json!({ "type": "string" }),
        ),
    })
}

/// All answers of a call, by their status.
fn responses(operation: &Operation, components: &mut Components) -> BTreeMap<String, Value> {
    let mut responses = BTreeMap::new();
    for answer in operation.answers {
        responses.insert(answer.status.to_string(), success(operation, answer, components));
    }
    let mut problems: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for code in operation.codes() {
        problems.entry(code.status()).or_default().push(code);
    }
    for (status, codes) in problems {
        let response = match codes[..] {
            [code] => json!({ "$ref": format!("#/components/responses/{code}") }),
            _ => problem(&codes, components),
        };
        responses.insert(status.to_string(), response);
    }
    responses
}

fn header(name: &str) -> Value {
    json!({ "$ref": format!("#/components/headers/{name}") })
}

fn success(operation: &Operation, answer: &Answer, components: &mut Components) -> Value {
    let content = match answer.content {
        Content::Json(shape) => {
            json!({ "application/json": { "schema": components.answered(shape) } })
        }
        Content::Feed => json!({ "text/event-stream": { "schema": {
            "type": "string",
            "description": "Server-sent events, as the AsyncAPI document describes them.",
        } } }),
        Content::Text(media_types) => {
            let text = |media_type: &&str| {
                ((*media_type).to_owned(), json!({ "schema": { "type": "string" } }))
            };
            media_types.iter().map(text).collect::<Map<_, _>>().into()
        }
        Content::Nothing => json!({}),
    };
    let mut headers = json!({ "X-Request-Id": header("X-Request-Id") });
    if matches!(answer.content, Content::Json(_)) && !operation.is_open {
        headers["Pearing-Sequence"] = header("Pearing-Sequence");
        if is_retriable(operation, components) && answer.status != 201 {
            headers["Idempotency-Replayed"] = header("Idempotency-Replayed");
        }
        if operation.is_paged {
            headers["Link"] = header("Link");
        }
        if operation.parameters.iter().any(|parameter| parameter.name == "Prefer") {
            headers["Preference-Applied"] = header("Preference-Applied");
        }
    }
    let mut response =
        json!({ "description": answer.when, "content": content, "headers": headers });
    let is_from_here = |link: &super::links::Link| {
        link.from == operation.name && link.statuses.contains(&answer.status)
    };
    let mut links = Map::new();
    for link in LINKS.iter().filter(|link| is_from_here(link)) {
        let json = |text: &str| -> Value { serde_json::from_str(text).expect("a link is JSON") };
        let mut described = json!({ "operationId": link.to, "parameters": json(link.parameters) });
        if !link.body.is_empty() {
            described["requestBody"] = json(link.body);
        }
        links.insert(link.to.to_owned(), described);
    }
    if !links.is_empty() {
        response["links"] = links.into();
    }
    response
}

/// Whether a retry of it is known as such.
fn is_retriable(operation: &Operation, components: &mut Components) -> bool {
    operation.body.is_some_and(|body| {
        let schema = components.asked(body);
        whole(&mut components.asked, &schema)["properties"].get("request_uuid").is_some()
    })
}

/// The answer with one of some problems that have a status in common.
fn problem(codes: &[Code], components: &mut Components) -> Value {
    let status = codes[0].status();
    let titles: Vec<String> =
        codes.iter().map(|code| format!("{} (`{code}`)", code.title())).collect();
    let schema = json!({
        "allOf": [components.answered(described::<Problem>())],
        "properties": { "code": { "enum": codes }, "status": { "const": status } },
    });
    let mut headers = json!({ "X-Request-Id": header("X-Request-Id") });
    let is_passing = |code: &Code| code.retry_after_seconds().is_some();
    if codes.iter().any(|code| is_passing(code) || *code == Code::LockContended) {
        headers["Retry-After"] = header("Retry-After");
    }
    if codes.contains(&Code::Unauthenticated) {
        headers["WWW-Authenticate"] = header("WWW-Authenticate");
    }
    if codes.contains(&Code::MethodNotAllowed) {
        headers["Allow"] = header("Allow");
    }
    json!({
        "description": format!("{}.", titles.join(", or ")),
        "headers": headers,
        "content": { Problem::MEDIA_TYPE: { "schema": schema } },
    })
}

/// The answer of each problem, for the calls where it alone has its status.
fn shared_responses(components: &mut Components) -> BTreeMap<&'static str, Value> {
    Code::ALL.iter().map(|code| (code.as_str(), problem(&[*code], components))).collect()
}

fn headers() -> Value {
    let of = |what: &str, schema: Value| json!({ "description": what, "schema": schema });
    let number = |least: u32| json!({ "type": "integer", "minimum": least });
    let mut headers = json!({
        "Pearing-Sequence": of(
            "The state that the answer shows. Following the feed from it on leaves no gap.",
            number(0),
        ),
        "Idempotency-Replayed": of(
            "Only of a request that had been carried out before: true.",
            json!({ "type": "string", "const": "true" }),
        ),
        "Link": of(
            "Unless this is the last page: the next one, with rel=\"next\".",
            json!({ "type": "string" }),
        ),
        "Preference-Applied": of(
            "Only where it was asked for: how long the answer was held back at most.",
            json!({ "type": "string", "pattern": "^wait=[0-9]+$" }),
        ),
        "Retry-After": of("In how many seconds it is worth asking again.", number(1)),
        "X-Request-Id": of(
            "The request, as the server's log has it: the caller's own X-Request-Id, or a new one.",
            json!({ "type": "string" }),
        ),
        "WWW-Authenticate": of("Which scheme to use.", json!({ "const": "Bearer" })),
        "Allow": of("Which methods the path takes.", json!({ "type": "string" })),
    });
    headers["Pearing-Sequence"]["required"] = true.into();
    headers
}
