//! The stored form of a record: one line of JSON, always the same bytes for the same record.
//!
//! Reading is strict. What this version doesn't know (a type, a version, a field) is an error and
//! is never skipped: a state that was folded around a hole would be wrong without a sign of it.
//! A change of an event's shape gets a new version, and its upcast stands in `upcast`; old
//! bytes are never rewritten, since the hash chain is over them.

mod upcast;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::domain::event::{Event, Record, Shape};
use crate::domain::id::Sequence;
use crate::domain::name::Actor;
use crate::domain::time::Time;

/// Why bytes are no record.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    /// No JSON object with exactly the fields of a record.
    #[error("not a record: {0}")]
    NotARecord(serde_json::Error),
    /// A type that this version doesn't know, so a later one wrote it.
    #[error("record {sequence} has the unknown type {type_name:?}")]
    UnknownType {
        /// Its place.
        sequence: Sequence,
        /// The type.
        type_name: String,
    },
    /// A version of a known type that this version doesn't know.
    #[error("record {sequence} has the unknown version {version} of {type_name}")]
    UnknownVersion {
        /// Its place.
        sequence: Sequence,
        /// The type.
        type_name: &'static str,
        /// The version.
        version: u32,
    },
    /// The data is not what the type demands.
    #[error("record {sequence}: the data is no {type_name}: {error}")]
    WrongData {
        /// Its place.
        sequence: Sequence,
        /// The type.
        type_name: &'static str,
        /// What is wrong.
        error: serde_json::Error,
    },
    /// The subject is not that of the event.
    #[error("record {sequence} has the subject {stored:?}, but its data is about {own:?}")]
    WrongSubject {
        /// Its place.
        sequence: Sequence,
        /// What the record says.
        stored: String,
        /// What follows from its data.
        own: String,
    },
    /// A record that lies in another record's place.
    #[error("at the place of record {place} lies record {stored}")]
    WrongPlace {
        /// Where it lies.
        place: Sequence,
        /// Where it says that it belongs.
        stored: Sequence,
    },
}

/// How the `data` of every version of every type is described, the old ones too.
pub fn shapes() -> impl Iterator<Item = &'static Shape> {
    Event::SHAPES.iter().chain(upcast::OLD_SHAPES)
}

/// A record to be written. The order of the fields is part of the stored form.
#[derive(Serialize)]
struct LineOut<'a> {
    sequence: Sequence,
    time: Time,
    actor: &'a Actor,
    #[serde(rename = "type")]
    type_name: &'a str,
    version: u32,
    subject: &'a str,
    data: &'a Event,
}

/// A record that was read, with its data still as text: its shape depends on the type.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LineIn<'a> {
    sequence: Sequence,
    time: Time,
    actor: Actor,
    // Borrowed text has no escapes. None is needed to write a type or a subject.
    #[serde(rename = "type")]
    type_name: &'a str,
    version: u32,
    subject: &'a str,
    #[serde(borrow)]
    data: &'a RawValue,
}

/// The bytes of a record.
pub fn encode(record: &Record) -> Box<[u8]> {
    let line = LineOut {
        sequence: record.sequence,
        time: record.time,
        actor: &record.actor,
        type_name: record.event.type_name(),
        version: record.event.version(),
        subject: &record.event.subject(),
        data: &record.event,
    };
    serde_json::to_vec(&line).expect("a record has only text keys and finite numbers").into()
}

/// The record of some bytes.
///
/// # Errors
/// [`CodecError`] says which rule the bytes break, and in which record.
pub fn decode(bytes: &[u8]) -> Result<Record, CodecError> {
    let line: LineIn<'_> = serde_json::from_slice(bytes).map_err(CodecError::NotARecord)?;
    let sequence = line.sequence;
    let known = Event::TYPES.iter().find(|(name, _)| *name == line.type_name);
    let Some(&(type_name, newest)) = known else {
        return Err(CodecError::UnknownType { sequence, type_name: line.type_name.to_owned() });
    };
    let data = line.data.get();
    let event = if line.version == newest {
        Event::from_data(type_name, data)
    } else {
        upcast::from_old_data(type_name, line.version, data)
    };
    let event = event
        .ok_or(CodecError::UnknownVersion { sequence, type_name, version: line.version })?
        .map_err(|error| CodecError::WrongData { sequence, type_name, error })?;
    let own = event.subject();
    if line.subject != own {
        return Err(CodecError::WrongSubject { sequence, stored: line.subject.to_owned(), own });
    }
    Ok(Record { sequence, time: line.time, actor: line.actor, event })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::samples;
    use super::*;

    fn text_of(record: &Record) -> String {
        String::from_utf8(encode(record).into()).expect("JSON is UTF-8")
    }

    #[test]
    fn every_type_has_a_sample() {
        let sampled: BTreeSet<_> = samples::records().iter().map(|r| r.event.type_name()).collect();
        let known: BTreeSet<_> = Event::TYPES.iter().map(|(name, _)| *name).collect();
        assert_eq!(sampled, known);
    }

    #[test]
    fn a_record_decoded_and_encoded_again_gives_the_same_bytes() {
        for record in samples::records() {
            let bytes = encode(&record);
            let read = decode(&bytes).expect("a record that was just written");
            assert_eq!(read, record);
            assert_eq!(encode(&read), bytes);
        }
    }

    #[test]
    fn the_stored_form_is_one_line_of_json_with_its_fields_in_order() {
        let user_created = samples::record_of("user.created");
        assert_eq!(
            text_of(&user_created),
            concat!(
                r#"{"sequence":4,"time":"2025-11-29T15:54:55.007Z","actor":"ana","#,
                r#""type":"user.created","version":2,"subject":"users/bo","#,
                r#""data":{"user":"bo","admin":false,"person":null}}"#
            )
        );
    }

    #[test]
    fn what_this_version_does_not_know_is_named_and_never_skipped() {
        let text = text_of(&samples::record_of("user.created"));
        let cases = [
            (r#""user.created""#, r#""user.praised""#, "unknown type \"user.praised\""),
            (r#""version":2"#, r#""version":3"#, "unknown version 3 of user.created"),
            (r#""version":2"#, r#""version":0"#, "unknown version 0 of user.created"),
            (r#""version":2"#, r#""version":1"#, "unknown field `person`"),
            (r#""admin":false"#, r#""admin":false,"x":1"#, "unknown field `x`"),
            (r#""admin":false"#, r#""admin":0"#, "the data is no user.created"),
            (r#","data""#, r#","x":1,"data""#, "unknown field `x`"),
            (r#""version":2,"#, "", "missing field `version`"),
            (r#""version":2"#, r#""version":2,"version":2"#, "duplicate field `version`"),
            (r#""users/bo""#, r#""users/ana""#, "has the subject \"users/ana\""),
            (r#""sequence":4"#, r#""sequence":-4"#, "not a record"),
            (r#""actor":"ana""#, r#""actor":"Ana""#, "not a record"),
            ("}}", "}", "not a record"),
            ("}}", "}}x", "trailing characters"),
        ];
        for (from, to, fault) in cases {
            assert!(text.contains(from), "{from}");
            let bytes = text.replacen(from, to, 1);
            let error = decode(bytes.as_bytes()).expect_err("a record that breaks a rule");
            assert!(error.to_string().contains(fault), "{error} should say {fault}");
        }
    }

    #[test]
    fn a_record_in_the_place_of_another_is_found() {
        let record = samples::record_of("user.created");
        let mut stored = super::super::Stored::new(&super::super::Hash::ZERO, &record);
        assert_eq!(stored.decode().expect("in its own place"), record);
        stored.sequence = stored.sequence.next();
        assert!(matches!(stored.decode(), Err(CodecError::WrongPlace { .. })));
    }
}
