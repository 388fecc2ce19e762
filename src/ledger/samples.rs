//! One sample record of each type, for the tests of whatever reads or writes records.
//!
//! The data stands here as text, exactly as it is stored, so that a change of the stored form
//! shows as a change of this file.

use super::{Append, Ledger, Put, Stored};
use crate::domain::event::{Event, Record};
use crate::domain::id::Sequence;
use crate::domain::name::Actor;
use crate::domain::time::Time;

/// The samples, in sequence from 1 and each a second after the one before.
pub(crate) fn records() -> Vec<Record> {
    let start = Time::from_millis(1_764_431_692_007);
    (1..)
        .zip(DATA)
        .map(|(n, (type_name, data))| Record {
            sequence: Sequence(n.into()),
            time: start.plus_seconds(n - 1),
            actor: Actor::User("ana".parse().expect("a user name")),
            event: Event::from_data(type_name, data)
                .expect("a known type")
                .unwrap_or_else(|error| panic!("{type_name}: {error}")),
        })
        .collect()
}

/// The sample of a type.
pub(super) fn record_of(type_name: &str) -> Record {
    let found = records().into_iter().find(|record| record.event.type_name() == type_name);
    found.expect("every type has a sample")
}

const DATA: &[(&str, &str)] = &[
    ("ledger.opened", r#"{"ledger_id":"99999999-8888-4777-8666-555555555555"}"#),
    ("ledger.recovered", r#"{"grace_seconds":10}"#),
    ("ledger.restored", r#"{"last_sequence":2,"reason":"restored"}"#),
    ("user.created", r#"{"user":"bo","admin":false,"person":null}"#),
    ("user.disabled", r#"{"user":"bo"}"#),
    ("user.enabled", r#"{"user":"bo"}"#),
    (
        "token.issued",
        concat!(
            r#"{"token_id":"11111111-2222-4333-8444-555555555555","user":"bo","#,
            r#""sha256":"0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a","#,
            r#""label":null,"expires_at":"2025-11-29T15:54:56.000Z"}"#,
        ),
    ),
    ("token.revoked", r#"{"token_id":"11111111-2222-4333-8444-555555555555","user":"bo"}"#),
    ("team.created", r#"{"team":"platform"}"#),
    ("team.member_added", r#"{"team":"platform","user":"bo","role":"write"}"#),
    ("team.member_removed", r#"{"team":"platform","user":"bo"}"#),
    ("repo.created", r#"{"repo":"teams/platform/website"}"#),
    ("access.granted", r#"{"scope":"users/ana","user":"bo","role":"read"}"#),
    ("access.revoked", r#"{"scope":"users/ana","user":"bo"}"#),
    (
        "lock.acquired",
        concat!(
            r#"{"ticket_id":"7d8a6b0e-3f0c-4b5e-9d1a-2c4e6f8a0b1c","#,
            r#""scope":"teams/platform/website","lock_name":"build","owner":"ana","#,
            r#""request_uuid":"0f0e0d0c-0b0a-4900-8807-060504030201","lease_seconds":60,"#,
            r#""wait_seconds":30,"note":"a \"quoted\" note","reentrant":false,"#,
            r#""fence_token":15,"depth":1,"lease_expires_at":"2025-11-29T15:54:56.000Z"}"#,
        ),
    ),
    (
        "lock.queued",
        concat!(
            r#"{"ticket_id":"7d8a6b0e-3f0c-4b5e-9d1a-2c4e6f8a0b1c","#,
            r#""scope":"teams/platform/website","lock_name":"build","owner":"ana","#,
            r#""request_uuid":"0f0e0d0c-0b0a-4900-8807-060504030201","lease_seconds":60,"#,
            r#""wait_seconds":30,"note":null,"reentrant":false,"queue_position":1,"#,
            r#""wait_expires_at":"2025-11-29T15:54:56.000Z","holder":{"owner":"bo","#,
            r#""fence_token":9}}"#,
        ),
    ),
    (
        "lock.contended",
        concat!(
            r#"{"ticket_id":"7d8a6b0e-3f0c-4b5e-9d1a-2c4e6f8a0b1c","#,
            r#""scope":"teams/platform/website","lock_name":"build","owner":"ana","#,
            r#""request_uuid":"0f0e0d0c-0b0a-4900-8807-060504030201","lease_seconds":60,"#,
            r#""wait_seconds":30,"note":"ünïcode","reentrant":false,"holder":{"owner":"bo","#,
            r#""fence_token":9}}"#,
        ),
    ),
    (
        "lock.deadlock_rejected",
        concat!(
            r#"{"ticket_id":"7d8a6b0e-3f0c-4b5e-9d1a-2c4e6f8a0b1c","#,
            r#""scope":"teams/platform/website","lock_name":"build","owner":"ana","#,
            r#""request_uuid":"0f0e0d0c-0b0a-4900-8807-060504030201","lease_seconds":60,"#,
            r#""wait_seconds":30,"note":null,"reentrant":false,"#,
            r#""cycle":["7d8a6b0e-3f0c-4b5e-9d1a-2c4e6f8a0b1c"],"holder":{"owner":"bo","#,
            r#""fence_token":9}}"#,
        ),
    ),
    (
        "lock.heartbeat",
        concat!(
            r#"{"ticket_id":"7d8a6b0e-3f0c-4b5e-9d1a-2c4e6f8a0b1c","#,
            r#""scope":"teams/platform/website","lock_name":"build","owner":"ana","#,
            r#""fence_token":15,"depth":1,"lease_seconds":5,"#,
            r#""lease_expires_at":"2025-11-29T15:54:56.000Z"}"#,
        ),
    ),
    (
        "lock.promoted",
        concat!(
            r#"{"ticket_id":"7d8a6b0e-3f0c-4b5e-9d1a-2c4e6f8a0b1c","#,
            r#""scope":"teams/platform/website","lock_name":"build","owner":"ana","#,
            r#""fence_token":15,"depth":1,"lease_expires_at":"2025-11-29T15:54:56.000Z"}"#,
        ),
    ),
    (
        "lock.released",
        concat!(
            r#"{"ticket_id":"7d8a6b0e-3f0c-4b5e-9d1a-2c4e6f8a0b1c","#,
            r#""scope":"teams/platform/website","lock_name":"build","owner":"ana","#,
            r#""fence_token":15,"depth":0}"#,
        ),
    ),
    (
        "lock.expired",
        concat!(
            r#"{"ticket_id":"7d8a6b0e-3f0c-4b5e-9d1a-2c4e6f8a0b1c","#,
            r#""scope":"teams/platform/website","lock_name":"build","owner":"ana","#,
            r#""fence_token":15,"depth":0,"lease_expires_at":"2025-11-29T15:54:56.000Z"}"#,
        ),
    ),
    (
        "lock.broken",
        concat!(
            r#"{"ticket_id":"7d8a6b0e-3f0c-4b5e-9d1a-2c4e6f8a0b1c","#,
            r#""scope":"teams/platform/website","lock_name":"build","owner":"ana","#,
            r#""fence_token":15,"depth":0,"reason":"stuck"}"#,
        ),
    ),
    (
        "lock.wait_cancelled",
        concat!(
            r#"{"ticket_id":"7d8a6b0e-3f0c-4b5e-9d1a-2c4e6f8a0b1c","#,
            r#""scope":"teams/platform/website","lock_name":"build","owner":"ana","#,
            r#""reason":"access-revoked"}"#,
        ),
    ),
    (
        "lock.wait_timed_out",
        concat!(
            r#"{"ticket_id":"7d8a6b0e-3f0c-4b5e-9d1a-2c4e6f8a0b1c","#,
            r#""scope":"teams/platform/website","lock_name":"build","owner":"ana","#,
            r#""wait_expires_at":"2025-11-29T15:54:56.000Z"}"#,
        ),
    ),
    (
        "activity.updated",
        concat!(
            r#"{"user":"ana","activity":"reading thread #42","#,
            r#""request_uuid":"0f0e0d0c-0b0a-4900-8807-060504030201"}"#,
        ),
    ),
    ("activity.cleared", r#"{"user":"ana"}"#),
    (
        "thread.created",
        concat!(
            r#"{"scope":"teams/platform/website","number":42,"is_mirror":true,"#,
            r#""title":"Slow start","body":"Two\nlines","author":"ana","request_uuid":null,"#,
            r#""fence":null}"#,
        ),
    ),
    (
        "thread.replied",
        concat!(
            r#"{"scope":"teams/platform/website","number":42,"#,
            r#""reply_id":"aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee","kind":"implementation","#,
            r#""body":"Pushed.","links":["branch:ana/slow-start","pull:7"],"author":"ana","#,
            r#""parent":null,"level":1,"replies_count":1,"#,
            r#""request_uuid":"0f0e0d0c-0b0a-4900-8807-060504030201","#,
            r#""fence":{"lock_name":"thread-work.42","fence_token":15}}"#,
        ),
    ),
    (
        "thread.closed",
        concat!(
            r#"{"scope":"teams/platform/website","number":42,"user":"ana","request_uuid":null,"#,
            r#""fence":null}"#,
        ),
    ),
    (
        "thread.reopened",
        concat!(
            r#"{"scope":"teams/platform/website","number":42,"user":"ana","request_uuid":null,"#,
            r#""fence":null}"#,
        ),
    ),
];

/// An append of `count` records onto the head of a ledger.
pub(super) fn append_to(ledger: &dyn Ledger, count: u64, puts: Vec<Put>) -> Append {
    let head = ledger.head();
    let mut hash = head.hash;
    let records = (1..=count)
        .map(|n| {
            let record =
                Record { sequence: head.sequence.plus(n), ..record_of("lock.wait_cancelled") };
            let stored = Stored::new(&hash, &record);
            hash = stored.hash;
            stored
        })
        .collect();
    Append { expected_head: head.sequence, records, puts }
}
