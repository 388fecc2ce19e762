//! An event as a CloudEvents 1.0 JSON object.
//!
//! Made from the record's stored line: only the envelope is read, and `data` is passed through
//! byte for byte, so a feed costs no second parse and can't change what was recorded.
//! Deliberately absent: the typed event. Who needs it decodes the record.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::domain::hex::HASH_PATTERN;
use crate::domain::id::{LedgerId, Sequence};
use crate::domain::name::Actor;
use crate::domain::time::Time;
use crate::ledger::Hash;
use crate::ledger::codec::shapes;

/// What every type begins with on the wire.
pub const TYPE_PREFIX: &str = "pearing.";

/// The id of the schema of a type's `data` in a version.
pub fn dataschema(type_name: &str, version: u32) -> String {
    format!("urn:pearing:schema:{type_name}:{version}")
}

/// A record's stored line.
#[derive(Deserialize)]
struct Line<'a> {
    sequence: Sequence,
    #[serde(borrow)]
    time: Cow<'a, str>,
    #[serde(borrow)]
    actor: Cow<'a, str>,
    #[serde(borrow, rename = "type")]
    type_name: Cow<'a, str>,
    version: u32,
    #[serde(borrow)]
    subject: Cow<'a, str>,
    #[serde(borrow)]
    data: &'a RawValue,
}

/// A record's line, as it is stored.
#[derive(Serialize)]
struct LineOut<'a> {
    sequence: Sequence,
    time: &'a str,
    actor: &'a str,
    #[serde(rename = "type")]
    type_name: &'a str,
    version: u32,
    subject: &'a str,
    data: &'a RawValue,
}

/// An event on the wire.
#[derive(Debug, Serialize, Deserialize)]
pub struct CloudEvent<'a> {
    /// `1.0`
    #[serde(borrow)]
    pub specversion: Cow<'a, str>,
    /// The sequence, as a string.
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    /// `/ledgers/LEDGER`
    #[serde(borrow)]
    pub source: Cow<'a, str>,
    /// The type, with the prefix `pearing.`.
    #[serde(borrow, rename = "type")]
    pub type_name: Cow<'a, str>,
    /// The scope, then what in it.
    #[serde(borrow)]
    pub subject: Cow<'a, str>,
    /// The ledger time.
    #[serde(borrow)]
    pub time: Cow<'a, str>,
    /// `application/json`
    #[serde(borrow)]
    pub datacontenttype: Cow<'a, str>,
    /// `urn:pearing:schema:TYPE:VERSION`
    #[serde(borrow)]
    pub dataschema: Cow<'a, str>,
    /// The user who caused it, or `ledger`.
    #[serde(borrow)]
    pub actor: Cow<'a, str>,
    /// The record's place in the hash chain, in lower-case hex.
    #[serde(borrow)]
    pub hash: Cow<'a, str>,
    /// What happened, as it was recorded.
    #[serde(borrow)]
    pub data: &'a RawValue,
}

impl JsonSchema for CloudEvent<'_> {
    fn schema_name() -> Cow<'static, str> {
        "CloudEvent".into()
    }

    /// The envelope, in which `type` and `dataschema` say the shape of `data`.
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut each_shape = Vec::new();
        for shape in shapes() {
            each_shape.push(json!({ "properties": {
                "type": { "const": format!("{TYPE_PREFIX}{}", shape.type_name) },
                "dataschema": { "const": dataschema(shape.type_name, shape.version) },
                "data": (shape.schema)(generator),
            } }));
        }
        let consts = |name: &str| {
            let mut consts: Vec<Value> = Vec::new();
            for shape in &each_shape {
                let value = &shape["properties"][name]["const"];
                if !consts.contains(value) {
                    consts.push(value.clone());
                }
            }
            consts
        };
        json_schema!({
            "description": "An event as a CloudEvents 1.0 JSON object.",
            "type": "object",
            "required": [
                "specversion", "id", "source", "type", "subject", "time", "datacontenttype",
                "dataschema", "actor", "hash", "data",
            ],
            "properties": {
                "specversion": { "const": "1.0" },
                "id": {
                    "description": "The sequence, as a string.",
                    "type": "string",
                    "pattern": "^[1-9][0-9]{0,15}$",
                },
                "source": {
                    "description": "The ledger.",
                    "type": "string",
                    "format": "uri-reference",
                    "pattern": "^/ledgers/[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$",
                },
                "type": {
                    "description": "The type, with the prefix `pearing.`.",
                    "enum": consts("type"),
                },
                "subject": {
                    "description": "The scope, then what in it.",
                    "type": "string",
                    "minLength": 1,
                },
                "time": generator.subschema_for::<Time>(),
                "datacontenttype": { "const": "application/json" },
                "dataschema": {
                    "description": "The id of the schema of the data, with its version.",
                    "enum": consts("dataschema"),
                },
                "actor": generator.subschema_for::<Actor>(),
                "hash": {
                    "description": "The record's place in the hash chain.",
                    "type": "string",
                    "pattern": HASH_PATTERN,
                },
                "data": { "description": "What happened, as it was recorded.", "type": "object" },
            },
            "oneOf": each_shape,
        })
    }
}

impl<'a> CloudEvent<'a> {
    /// From a record's stored line and its hash.
    ///
    /// # Errors
    /// The line is none that a ledger stores.
    pub fn from_stored(
        line: &'a [u8],
        hash: &Hash,
        ledger_id: LedgerId,
    ) -> serde_json::Result<Self> {
        let line: Line<'a> = serde_json::from_slice(line)?;
        Ok(Self {
            specversion: "1.0".into(),
            id: line.sequence.to_string().into(),
            source: format!("/ledgers/{ledger_id}").into(),
            dataschema: dataschema(&line.type_name, line.version).into(),
            type_name: format!("{TYPE_PREFIX}{}", line.type_name).into(),
            subject: line.subject,
            time: line.time,
            datacontenttype: "application/json".into(),
            actor: line.actor,
            hash: hash.to_string().into(),
            data: line.data,
        })
    }

    /// The record's hash, and its stored bytes, put together again. Whether they are what was
    /// stored, the hash tells.
    ///
    /// # Errors
    /// What of it can't be a record's.
    pub fn to_stored(&self) -> Result<(Hash, Box<[u8]>), String> {
        let hash = self.hash.parse().map_err(|error| format!("has a hash that {error}"))?;
        let sequence = self.sequence().ok_or("has an id that is no sequence")?;
        let version = self.dataschema.rsplit(':').next().and_then(|version| version.parse().ok());
        let line = LineOut {
            sequence,
            time: &self.time,
            actor: &self.actor,
            type_name: self.plain_type(),
            version: version.ok_or("has a dataschema without a version")?,
            subject: &self.subject,
            data: self.data,
        };
        let bytes = serde_json::to_vec(&line).map_err(|error| error.to_string())?;
        Ok((hash, bytes.into()))
    }

    /// The sequence; `None` if the id is no number.
    pub fn sequence(&self) -> Option<Sequence> {
        self.id.parse().ok().map(Sequence)
    }

    /// The type without its prefix.
    pub fn plain_type(&self) -> &str {
        self.type_name.strip_prefix(TYPE_PREFIX).unwrap_or(&self.type_name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = concat!(
        r#"{"sequence":7,"time":"2026-01-31T12:00:00.000Z","actor":"ana","type":"lock.released","#,
        r#""version":1,"subject":"users/ana/locks/x","data":{ "b":1, "a":[2.50] }}"#,
    );

    #[test]
    fn an_event_has_the_fixed_names_in_their_order_and_its_data_untouched() {
        let event = CloudEvent::from_stored(
            LINE.as_bytes(),
            &Hash([0xab; 32]),
            LedgerId(uuid::Uuid::nil()),
        )
        .expect("a stored line");
        let json = serde_json::to_string(&event).expect("plain values");
        let expected = concat!(
            r#"{"specversion":"1.0","id":"7","#,
            r#""source":"/ledgers/00000000-0000-0000-0000-000000000000","#,
            r#""type":"pearing.lock.released","subject":"users/ana/locks/x","#,
            r#""time":"2026-01-31T12:00:00.000Z","datacontenttype":"application/json","#,
            r#""dataschema":"urn:pearing:schema:lock.released:1","actor":"ana","#,
            r#""hash":"abababababababababababababababababababababababababababababababab","#,
            r#""data":{ "b":1, "a":[2.50] }}"#,
        );
        assert_eq!(json, expected);
        let read: CloudEvent<'_> = serde_json::from_str(&json).expect("what was written");
        assert_eq!(read.sequence(), Some(Sequence(7)));
        assert_eq!(read.plain_type(), "lock.released");
    }

    #[test]
    fn a_line_without_its_data_is_no_event() {
        let line = br#"{"sequence":7,"time":"t","actor":"a","type":"x","version":1,"subject":"s"}"#;
        assert!(CloudEvent::from_stored(line, &Hash::ZERO, LedgerId(uuid::Uuid::nil())).is_err());
    }
}
