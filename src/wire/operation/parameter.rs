//! The parameters that only some calls have, beside the scope and a list's page.

use schemars::{Schema, SchemaGenerator, json_schema};

use super::Described;
use crate::domain::id::Sequence;
use crate::domain::name::{Actor, LockName};
use crate::domain::thread::ThreadState;

/// How a moment is written, a sequence or a time, as a pattern of a JSON Schema.
pub(crate) const MOMENT_PATTERN: &str = concat!(
    "^([0-9]{1,16}|[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])",
    "[Tt ]([01][0-9]|2[0-3])(:[0-5][0-9]){2}([.][0-9]{1,9})?",
    "([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9]))$",
);

/// Where a parameter stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the query.
    Query,
    /// In a header.
    Header,
}

/// A parameter that only some calls have. It may always be left out.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Where it stands.
    pub place: Place,
    /// What it asks for.
    pub what: &'static str,
    /// What it must be.
    pub schema: Described,
}

pub(super) const PREFER: Parameter = Parameter {
    name: "Prefer",
    place: Place::Header,
    what: "wait=N holds the answer back until the ticket stops waiting, up to N seconds, 25 at \
           the most.",
    schema: |_| json_schema!({ "type": "string", "examples": ["wait=25"] }),
};

pub(super) const EXPORT_AFTER: Parameter = Parameter {
    name: "after",
    place: Place::Query,
    what: "Begin after this sequence. Left out, it begins with the first record.",
    schema: SchemaGenerator::subschema_for::<Sequence>,
};

pub(super) const EXPORT_FORMAT: Parameter = Parameter {
    name: "format",
    place: Place::Query,
    what: "How a record is written: text is its hash, a space and the stored bytes, cloudevents a \
           CloudEvents JSON object.",
    schema: |_| json_schema!({ "type": "string", "enum": ["text", "cloudevents"] }),
};

pub(super) const THREAD_STATE: Parameter = Parameter {
    name: "state",
    place: Place::Query,
    what: "Only the threads in this state.",
    schema: SchemaGenerator::subschema_for::<ThreadState>,
};

pub(super) const TICKET_STATE: Parameter = Parameter {
    name: "state",
    place: Place::Query,
    what: "Only the tickets in this state.",
    schema: |_| json_schema!({ "type": "string", "enum": ["held", "waiting"] }),
};

pub(super) const LOCK: Parameter = Parameter {
    name: "lock",
    place: Place::Query,
    what: "Only events about the lock of this name, and the ledger's own.",
    schema: SchemaGenerator::subschema_for::<LockName>,
};

pub(super) const TYPES: Parameter = Parameter {
    name: "type",
    place: Place::Query,
    what: "Only events of these types: patterns in which * stands for anything, with commas.",
    schema: globs,
};

pub(super) const EXCLUDED_TYPES: Parameter = Parameter {
    name: "exclude_type",
    place: Place::Query,
    what: "No events of these types: patterns, as of type.",
    schema: globs,
};

pub(super) const ACTOR: Parameter = Parameter {
    name: "actor",
    place: Place::Query,
    what: "Only what this user caused, or ledger, and the ledger's own events.",
    schema: SchemaGenerator::subschema_for::<Actor>,
};

pub(super) const AFTER: Parameter = Parameter {
    name: "after",
    place: Place::Query,
    what: "Begin after this sequence. Left out, a page begins with the first event, a feed now.",
    schema: SchemaGenerator::subschema_for::<Sequence>,
};

pub(super) const LAST_EVENT_ID: Parameter = Parameter {
    name: "Last-Event-ID",
    place: Place::Header,
    what: "Goes on after this sequence, the last one that was seen; wins over after.",
    schema: |_| json_schema!({ "type": "string", "pattern": "^[0-9]{0,16}$" }),
};

pub(super) const FROM: Parameter = Parameter {
    name: "from",
    place: Place::Query,
    what: "Nothing that was over before this: a sequence or a time, up to now.",
    schema: moment,
};

pub(super) const TO: Parameter = Parameter {
    name: "to",
    place: Place::Query,
    what: "Nothing that came after this: a sequence or a time, up to now.",
    schema: moment,
};

pub(super) const ONE_LOCK: Parameter = Parameter {
    name: "lock",
    place: Place::Query,
    what: "Only the lock of this name.",
    schema: SchemaGenerator::subschema_for::<LockName>,
};

pub(super) const WIDTH: Parameter = Parameter {
    name: "width",
    place: Place::Query,
    what: "How many columns a drawing as text has.",
    schema: |_| json_schema!({ "type": "integer", "minimum": 40, "maximum": 1000, "default": 100 }),
};

fn moment(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": MOMENT_PATTERN })
}

fn globs(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "pattern": r"^(pearing\.)?[a-z._*]{1,64}(,(pearing\.)?[a-z._*]{1,64})*$",
        "examples": ["lock.*"],
    })
}
