//! The contracts, made from the types and from the table of operations: a JSON Schema of each
//! event, request and answer, an OpenAPI and an AsyncAPI document.
//!
//! They are checked in below `schemas/`, and a test compares those files with what is made here.
//! What is asked with and what is answered differ: an answer always has its nullable fields, and a
//! request may leave them out.

mod asyncapi;
mod links;
mod openapi;
#[cfg(test)]
mod tests;
#[cfg(any(feature = "server", feature = "client"))]
pub(crate) mod tools;

use std::collections::BTreeMap;

use schemars::generate::{Contract, SchemaSettings};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::cloud_event::{CloudEvent, dataschema};
use super::operation::{self, Content, Described};
use super::problem::Problem;
use crate::ledger::codec;

/// Beyond this a JSON number isn't exact for every reader.
const NUMBER_MAX: u64 = (1 << 53) - 1;

/// A document that says what the API is, as its own standard has it.
#[derive(JsonSchema)]
pub struct Document {}

/// Every contract, by its file below `schemas/`.
pub fn files() -> BTreeMap<String, Value> {
    let mut files = BTreeMap::new();
    for shape in codec::shapes() {
        let id = dataschema(shape.type_name, shape.version);
        let mut schema = standalone(Contract::Serialize, shape.schema, &id);
        schema.insert("title".to_owned(), shape.type_name.into());
        let file = format!("events/{}.{}.json", shape.type_name, shape.version);
        files.insert(file, Value::Object(schema));
    }
    let mut answers: Vec<Described> =
        vec![SchemaGenerator::subschema_for::<CloudEvent<'_>>, described::<Problem>()];
    for operation in operation::all() {
        if let Some(body) = operation.body {
            let id = format!("urn:pearing:schema:requests:{}", operation.name);
            let schema = standalone(Contract::Deserialize, body, &id);
            files.insert(format!("requests/{}.json", operation.name), Value::Object(schema));
        }
        answers.extend(operation.answers.iter().filter_map(|answer| match answer.content {
            Content::Json(described) => Some(described),
            Content::Feed | Content::Text(_) | Content::Nothing => None,
        }));
    }
    for described in answers {
        let name = words_of(&name_of(described));
        let id = format!("urn:pearing:schema:answers:{name}");
        let schema = standalone(Contract::Serialize, described, &id);
        files.insert(format!("answers/{name}.json"), Value::Object(schema));
    }
    files.insert("openapi.json".to_owned(), openapi::document());
    files.insert("asyncapi.json".to_owned(), asyncapi::document());
    files
}

fn described<T: JsonSchema>() -> Described {
    SchemaGenerator::subschema_for::<T>
}

fn generator(contract: Contract, definitions_path: &'static str) -> SchemaGenerator {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.contract = contract;
        settings.definitions_path = definitions_path.into();
    });
    settings.into_generator()
}

/// A schema as a document of its own, with all that it refers to.
fn standalone(contract: Contract, described: Described, id: &str) -> Map<String, Value> {
    const PATH: &str = "#/$defs/";
    let mut generator = generator(contract, PATH);
    let schema = described(&mut generator);
    let mut definitions = generator.take_definitions(false);
    let name = reference(&schema, PATH).expect("what has a contract has a name");
    let whole = definitions[&name].clone();
    // A tree refers to itself.
    if !Value::from(definitions.clone()).to_string().contains(&format!("\"{PATH}{name}\"")) {
        definitions.remove(&name);
    }
    let Value::Object(mut schema) = whole else { unreachable!("a definition is an object") };
    if !definitions.is_empty() {
        schema.insert("$defs".to_owned(), definitions.into());
    }
    let dialect = "https://json-schema.org/draft/2020-12/schema";
    schema.insert("$schema".to_owned(), dialect.into());
    schema.insert("$id".to_owned(), id.into());
    let mut schema = Value::Object(schema);
    tidy(&mut schema);
    let Value::Object(schema) = schema else { unreachable!("it was one") };
    schema
}

/// The name of what a schema refers to.
fn reference(schema: &Schema, path: &str) -> Option<String> {
    let reference = schema.get("$ref")?.as_str()?;
    reference.strip_prefix(path).map(str::to_owned)
}

/// The name of the type that is described, `TicketAnswer` for instance.
fn name_of(described: Described) -> String {
    let schema = described(&mut generator(Contract::Serialize, "#/$defs/"));
    reference(&schema, "#/$defs/").expect("what has a contract has a name")
}

/// `TicketAnswer` as `ticket_answer`.
fn words_of(name: &str) -> String {
    let mut words = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !words.is_empty() {
            words.push('_');
        }
        words.push(c.to_ascii_lowercase());
    }
    words
}

/// Says in words of JSON Schema what was said in Rust's: how far a number goes, and which words
/// there are.
fn tidy(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Object(object) => {
            object.values_mut().for_each(tidy);
            bound(object);
            list_words(object);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Gives an integer of Rust its bound.
fn bound(object: &mut Map<String, Value>) {
    let most = match object.get("format").and_then(Value::as_str) {
        Some("uint8") => u8::MAX.into(),
        Some("uint16") => u16::MAX.into(),
        Some("uint32") => u32::MAX.into(),
        Some("uint64" | "uint") => NUMBER_MAX,
        Some(_) | None => return,
    };
    object.remove("format");
    object.entry("maximum").or_insert(most.into());
}

/// Makes one list of words of as many alternatives, each with one word and what it means.
fn list_words(object: &mut Map<String, Value>) {
    let Some(Value::Array(alternatives)) = object.get("oneOf") else { return };
    let word = |one: &Value| Some((one.get("const")?.as_str()?.to_owned(), one.clone()));
    let Some(words) = alternatives.iter().map(word).collect::<Option<Vec<_>>>() else { return };
    let mut description =
        object.get("description").and_then(Value::as_str).unwrap_or("").to_owned();
    for (word, one) in &words {
        let meaning = one.get("description").and_then(Value::as_str).unwrap_or("");
        description.push_str(&format!("\n- `{word}`: {meaning}"));
    }
    object.remove("oneOf");
    object.insert("type".to_owned(), "string".into());
    object.insert("enum".to_owned(), words.into_iter().map(|(word, _)| word).collect());
    object.insert("description".to_owned(), description.trim_start().into());
}

/// The shapes that a document refers to, in both directions of a contract.
struct Components {
    asked: SchemaGenerator,
    answered: SchemaGenerator,
}

impl Components {
    const PATH: &str = "#/components/schemas/";

    fn new() -> Self {
        Self {
            asked: generator(Contract::Deserialize, Self::PATH),
            answered: generator(Contract::Serialize, Self::PATH),
        }
    }

    /// Of something that is asked with.
    fn asked(&mut self, described: Described) -> Value {
        described(&mut self.asked).into()
    }

    /// Of something that is answered.
    fn answered(&mut self, described: Described) -> Value {
        described(&mut self.answered).into()
    }

    /// All that was referred to.
    ///
    /// # Panics
    /// If one name stands for two shapes.
    fn take(mut self) -> Map<String, Value> {
        let mut all = self.answered.take_definitions(false);
        for (name, schema) in self.asked.take_definitions(false) {
            let other = all.insert(name.clone(), schema.clone());
            assert!(other.is_none_or(|other| other == schema), "two shapes have the name {name}");
        }
        all
    }
}

/// What a document says of itself.
fn info(description: &str) -> Value {
    json!({
        "title": "Pearing",
        "version": env!("CARGO_PKG_VERSION"),
        "description": description,
    })
}
