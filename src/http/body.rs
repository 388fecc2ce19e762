//! JSON bodies: read within bounds, then parsed into a struct whose every value is right.
//!
//! Two passes. The first takes the text for what it is (JSON, UTF-8, no key twice): what fails
//! there is malformed. The second knows the fields: what fails there breaks a rule, and the answer
//! names the field and the rule, in our words and never in a parser's.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use serde::Deserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use tokio_stream::StreamExt as _;

use super::failure::Failure;

/// The most bytes that a body may have.
pub(super) const BODY_BYTES_MAX: usize = 64 * 1024;

/// How much of a body that is too big is still taken off the wire, and dropped: a sender that is
/// cut off in the middle sees a broken connection, and never the answer that says why.
const DROPPED_BYTES_MAX: usize = 1 << 20;

/// How long a body may take to arrive.
const BODY_DEADLINE: Duration = Duration::from_secs(10);

/// What a request's body must be.
pub(super) trait JsonBody: DeserializeOwned {
    /// Its fields.
    const FIELDS: &'static [Field];
}

/// A field of a body.
pub(super) struct Field {
    name: &'static str,
    /// What a value must be, fit for "field RULE".
    rule: &'static str,
    is_required: bool,
}

impl Field {
    /// A field that must be there.
    pub(super) const fn required(name: &'static str, rule: &'static str) -> Self {
        Self { name, rule, is_required: true }
    }

    /// A field that may be left out.
    pub(super) const fn optional(name: &'static str, rule: &'static str) -> Self {
        Self { name, rule, is_required: false }
    }
}

/// Reads the body: at most [`BODY_BYTES_MAX`], within [`BODY_DEADLINE`].
pub(super) async fn read(headers: &HeaderMap, body: Body) -> Result<Bytes, Failure> {
    // A length that is announced is judged before anything is read if it is beyond what would be
    // dropped, or if the sender asks whether to send the body at all (`Expect`). A body that is
    // too large, but not by that much, is taken off the wire first, so that its sender can read
    // the answer.
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok());
    let announced: usize = announced.and_then(|length| length.parse().ok()).unwrap_or(0);
    let is_too_large = announced > BODY_BYTES_MAX;
    if is_too_large && (announced > DROPPED_BYTES_MAX || headers.contains_key(header::EXPECT)) {
        return Err(Failure::TooLarge);
    }
    let whole = async {
        let mut chunks = body.into_data_stream();
        let (mut bytes, mut arrived) = (Vec::new(), 0);
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|_| Failure::malformed("the body broke off"))?;
            arrived += chunk.len();
            if arrived <= BODY_BYTES_MAX {
                bytes.extend_from_slice(&chunk);
            } else if arrived > DROPPED_BYTES_MAX {
                break;
            }
        }
        if arrived > BODY_BYTES_MAX { Err(Failure::TooLarge) } else { Ok(Bytes::from(bytes)) }
    };
    match tokio::time::timeout(BODY_DEADLINE, whole).await {
        Ok(body) => body,
        Err(_) if is_too_large => Err(Failure::TooLarge),
        Err(_) => Err(Failure::malformed("the body did not arrive within 10 seconds")),
    }
}

/// Parses a body. An empty one is an object without fields.
pub(super) fn parse<T: JsonBody>(headers: &HeaderMap, bytes: &[u8]) -> Result<T, Failure> {
    let bytes = if bytes.is_empty() { b"{}" } else { bytes };
    if bytes != b"{}" && !is_json(headers) {
        return Err(Failure::malformed("the content-type of a body must be application/json"));
    }
    let Some(given) = keys(bytes)? else {
        return Err(Failure::invalid("body", "must be a JSON object"));
    };
    if let Some(unknown) = given.iter().find(|key| T::FIELDS.iter().all(|f| f.name != **key)) {
        return Err(Failure::invalid(unknown.as_str(), "is not a field of this request"));
    }
    if let Some(field) = T::FIELDS.iter().find(|f| f.is_required && !given.contains(f.name)) {
        return Err(Failure::invalid(field.name, format!("is required; it {}", field.rule)));
    }
    let mut json = serde_json::Deserializer::from_slice(bytes);
    serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        let broken = T::FIELDS.iter().find(|f| path.split(['.', '[']).next() == Some(f.name));
        let rule = broken.map_or("must be a value of another type", |field| field.rule);
        Failure::invalid(path, rule)
    })
}

pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let text = headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or("");
    text.split(';').next().is_some_and(|t| t.trim().eq_ignore_ascii_case("application/json"))
}

/// The keys of the object that `bytes` hold; `None` if they hold another kind of value.
fn keys(bytes: &[u8]) -> Result<Option<BTreeSet<String>>, Failure> {
    let malformed = |error: serde_json::Error| {
        Failure::malformed(format!("the body is no JSON as it should be: {error}"))
    };
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let keys = AnyValue.deserialize(&mut json).map_err(malformed)?;
    json.end().map_err(malformed)?;
    Ok(keys)
}

/// Goes through a JSON value to its end and refuses a key that stands twice in one object: which
/// of the two a reader believes is anyone's guess. Yields an object's keys.
struct AnyValue;

impl<'de> DeserializeSeed<'de> for AnyValue {
    type Value = Option<BTreeSet<String>>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for AnyValue {
    type Value = Option<BTreeSet<String>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element_seed(AnyValue)?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut keys = BTreeSet::new();
        while let Some(key) = entries.next_key::<String>()? {
            if keys.contains(&key) {
                return Err(A::Error::custom("a key stands twice in one object"));
            }
            keys.insert(key);
            entries.next_value_seed(AnyValue)?;
        }
        Ok(Some(keys))
    }
}

#[cfg(test)]
mod tests {
    use schemars::{JsonSchema, SchemaGenerator};
    use serde::Deserialize;

    use super::*;
    use crate::wire::operation;
    use crate::wire::request::{
        AcquireLock, BreakLock, CreateAgent, CreateReply, CreateRepo, CreateTeam, CreateThread,
        CreateToken, CreateUser, HeartbeatLockTicket, SetRole, SetThreadState, UpdateUserActivity,
        not_null,
    };

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        name: String,
        #[serde(default, deserialize_with = "not_null")]
        count: Option<u32>,
        note: Option<String>,
    }

    impl JsonBody for Sample {
        const FIELDS: &'static [Field] = &[
            Field::required("name", "must be a text"),
            Field::optional("count", "must be a whole number"),
            Field::optional("note", "must be a text or null"),
        ];
    }

    fn said(body: &[u8]) -> String {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, "application/json; charset=utf-8".parse().unwrap());
        match parse::<Sample>(&headers, body) {
            Ok(sample) => format!("{} {:?} {:?}", sample.name, sample.count, sample.note),
            Err(failure) => failure.to_string(),
        }
    }

    /// A body's fields, each with whether it must be there, as they are read and as described.
    fn fields<T: JsonBody + JsonSchema>() -> [BTreeSet<(String, bool)>; 2] {
        let schema = schemars::schema_for!(T).to_value();
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let described = schema["properties"].as_object().expect("a body is an object");
        assert_eq!(schema["additionalProperties"], false, "{}", T::schema_name());
        let read = T::FIELDS.iter().map(|field| (field.name.to_owned(), field.is_required));
        let is_required = |name: &String| required.contains(&name.as_str().into());
        let described = described.keys().map(|name| (name.clone(), is_required(name)));
        [read.collect(), described.collect()]
    }

    #[test]
    fn a_body_is_read_as_it_is_described() {
        let bodies = [
            fields::<AcquireLock>(),
            fields::<HeartbeatLockTicket>(),
            fields::<BreakLock>(),
            fields::<UpdateUserActivity>(),
            fields::<CreateThread>(),
            fields::<CreateReply>(),
            fields::<SetThreadState>(),
            fields::<CreateAgent>(),
            fields::<CreateUser>(),
            fields::<CreateToken>(),
            fields::<CreateTeam>(),
            fields::<CreateRepo>(),
            fields::<SetRole>(),
        ];
        for [read, described] in &bodies {
            assert_eq!(read, described);
        }
        let described = operation::all().filter_map(|operation| operation.body);
        let described =
            described.map(|body| body(&mut SchemaGenerator::default()).to_value().to_string());
        assert_eq!(described.collect::<BTreeSet<_>>().len(), bodies.len());
    }

    #[test]
    fn what_is_no_json_is_malformed() {
        let deep = "[".repeat(5_000);
        let bodies: [&[u8]; 12] = [
            b"{",
            b"{}}",
            b"{} {}",
            b"\xef\xbb\xbf{}",
            b"{\"name\":\"\xff\"}",
            b"{'name':1}",
            b"{\"name\":NaN}",
            b"{\"name\":\"a\",\"name\":\"b\"}",
            b"{\"x\":{\"y\":1,\"y\":2}}",
            b"{\"n\\u0061me\":\"a\",\"name\":\"b\"}",
            deep.as_bytes(),
            b"{\"name\":\"\\ud800\"}",
        ];
        for body in bodies {
            let said = said(body);
            assert!(said.starts_with("malformed: "), "{body:?}: {said}");
        }
    }

    #[test]
    fn what_breaks_a_rule_names_the_field_and_the_rule() {
        assert_eq!(said(b"{\"name\":\"a\",\"note\":null}"), "a None None");
        assert_eq!(said(b"{\"name\":\"a\",\"count\":3}"), "a Some(3) None");
        for value in ["null", "-1", "5.5", "5.0", "\"5\"", "1e9", "[]", "{}", "true", "1e300"] {
            let body = format!("{{\"name\":\"a\",\"count\":{value}}}");
            let rule = "invalid-argument: count must be a whole number";
            assert_eq!(said(body.as_bytes()), rule, "{value}");
        }
        for (body, rule) in [
            ("", "name is required; it must be a text"),
            ("{}", "name is required; it must be a text"),
            ("{\"name\":null}", "name must be a text"),
            ("{\"name\":\"a\",\"owner\":1}", "owner is not a field of this request"),
            ("[]", "body must be a JSON object"),
            ("null", "body must be a JSON object"),
        ] {
            assert_eq!(said(body.as_bytes()), format!("invalid-argument: {rule}"), "{body}");
        }
    }

    #[test]
    fn a_body_says_that_it_is_json() {
        let failure = parse::<Sample>(&HeaderMap::new(), b"{\"name\":\"a\"}").expect_err("no type");
        assert!(failure.to_string().starts_with("malformed: the content-type"));
    }
}
