//! Holds every answer to the contract: its status, its problem, its headers and its body must be
//! as `schemas/openapi.json` says of the call that was made.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use jsonschema::Validator;
use pearing::wire::operation::{self, Operation};
use serde_json::{Value, json};

use super::Reply;

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../schemas/openapi.json")).expect("it is JSON")
});

/// What was needed so far, by its place in the document.
static VALIDATORS: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);

/// Fails unless the answer is one that the contract has. Of a path or method that nobody promised
/// it says nothing.
#[track_caller]
pub(super) fn check(method: &str, path_and_query: &str, reply: &Reply) {
    let path = path_and_query.split('?').next().unwrap_or_default();
    let is_called = |operation: &&Operation| {
        operation.method.as_str() == method && matches(operation.path, path)
    };
    let Some(operation) = operation::all().find(is_called) else { return };
    let call = format!("{method} {path_and_query}: {} {}", reply.status, reply.body);
    let at = format!(
        "/paths/{}/{}/responses/{}",
        operation.path.replace('~', "~0").replace('/', "~1"),
        method.to_ascii_lowercase(),
        reply.status
    );
    let response = DOCUMENT.pointer(&at).unwrap_or_else(|| panic!("no such answer: {call}"));
    let (at, response) = match response["$ref"].as_str() {
        Some(reference) => {
            let at = reference.trim_start_matches('#');
            (at.to_owned(), DOCUMENT.pointer(at).expect("a reference leads somewhere"))
        }
        None => (at, response),
    };
    if reply.body.is_null() {
        return;
    }
    for (name, header) in response["headers"].as_object().into_iter().flatten() {
        let reference = header["$ref"].as_str().unwrap_or_default();
        let header = DOCUMENT.pointer(reference.trim_start_matches('#')).expect("it is there");
        let is_there = reply.header(name).is_some();
        assert!(is_there || header["required"] != true, "without {name}: {call}");
    }
    let media_type = reply.header("content-type").unwrap_or_default().replace('/', "~1");
    let validator = validator(&format!("{at}/content/{media_type}/schema"));
    let wrong: Vec<String> = validator.iter_errors(&reply.body).map(|e| e.to_string()).collect();
    assert!(wrong.is_empty(), "not as promised: {call}: {wrong:?}");
}

/// Whether a path is of a form, with its parts in braces.
fn matches(form: &str, path: &str) -> bool {
    let (form, path): (Vec<_>, Vec<_>) = (form.split('/').collect(), path.split('/').collect());
    let part = |(form, part): (&&str, &&str)| form == part || form.starts_with('{');
    form.len() == path.len() && form.iter().zip(&path).all(part)
}

fn validator(at: &str) -> Arc<Validator> {
    let mut validators = VALIDATORS.lock().expect("nobody panics with it");
    let made = validators.entry(at.to_owned()).or_insert_with(|| {
        let schema = DOCUMENT.pointer(at).unwrap_or_else(|| panic!("no such content: {at}"));
        let schema = json!({ "allOf": [schema], "components": DOCUMENT["components"] });
        let options = jsonschema::options().should_validate_formats(true);
        Arc::new(options.build(&schema).expect("it is a schema"))
    });
    Arc::clone(made)
}
