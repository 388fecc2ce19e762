//! Whatever stands in an event, a reader that isn't ours finds just that event again.

use eventsource_stream::Eventsource as _;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio_stream::StreamExt as _;

use super::*;
use crate::ledger::Hash;

/// Where any reader could see the end of a line: those of Python's `str.splitlines`.
const ANY_LINE_END: [char; 10] =
    ['\n', '\r', '\u{b}', '\u{c}', '\u{1c}', '\u{1d}', '\u{1e}', '\u{85}', '\u{2028}', '\u{2029}'];

fn id() -> LedgerId {
    LedgerId(uuid::Uuid::nil())
}

fn stored(sequence: u64, data: &Value) -> Stored {
    let line = format!(
        "{{\"sequence\":{sequence},\"time\":\"2026-01-31T12:00:00.000Z\",\"actor\":\"ana\",\
         \"type\":\"thread.replied\",\"version\":1,\"subject\":\"x\",\"data\":{data}}}"
    );
    let bytes = line.into_bytes().into();
    Stored { sequence: Sequence(sequence), hash: Hash::ZERO, bytes }
}

/// What a reader finds in a stream that comes in these pieces: id, name and data of each event.
fn parsed(pieces: Vec<Vec<u8>>) -> Vec<(String, String, String)> {
    let pieces = pieces.into_iter().map(Ok::<_, std::convert::Infallible>);
    let events = tokio_stream::iter(pieces).eventsource().map(|event| {
        let event = event.expect("the stream is as it should be");
        (event.id, event.event, event.data)
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("there can be a runtime").block_on(events.collect())
}

/// Texts in which what could end a line, a field or a frame is common.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(&ANY_LINE_END[..]).prop_map(String::from),
        prop::sample::select(vec!["\n\n", "\r\n", "data: x", "id: 7\n", ":", "\0", "\"", "\\"])
            .prop_map(String::from),
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn every_event_is_found_again_and_nothing_else(
        texts in prop::collection::vec((hostile(), hostile()), 1..6),
        cut in 1_usize..64,
    ) {
        let data: Vec<Value> = texts.iter().map(|(key, text)| json!({ key: text })).collect();
        let mut stream = Vec::new();
        for (sequence, data) in (1..).zip(&data) {
            let frame = event(&stored(sequence, data), id()).expect("a stored line");
            let text = std::str::from_utf8(&frame).expect("it is UTF-8");
            let lines: Vec<&str> = text.split(ANY_LINE_END).collect();
            prop_assert_eq!(lines.len(), 5, "three lines and a blank one: {:?}", text);
            stream.extend_from_slice(&frame);
            stream.extend_from_slice(&COMMENT);
        }
        let found = parsed(stream.chunks(cut).map(<[u8]>::to_vec).collect());
        prop_assert_eq!(found.len(), data.len());
        for ((sequence, data), (id, name, text)) in (1_u64..).zip(&data).zip(&found) {
            prop_assert_eq!((id, name.as_str()), (&sequence.to_string(), "thread.replied"));
            let event: Value = serde_json::from_str(text).expect("it is JSON on one line");
            prop_assert_eq!(&event["data"], data);
            prop_assert_eq!(event["id"].as_str(), Some(id.as_str()));
        }
    }
}

#[test]
fn frames_of_the_feeds_own_say_the_last_sequence_that_was_looked_at() {
    let frame = control("caught-up", Sequence(7));
    assert_eq!(&frame[..], b"id: 7\nevent: caught-up\ndata: {\"sequence\":7}\n\n");
    assert_eq!(&COMMENT[..], b":\n\n");
    assert_eq!(&retry(Duration::from_millis(1234))[..], b"retry: 1234\n");
}

#[test]
fn a_line_that_is_no_record_has_no_frame() {
    let whole = stored(1, &json!({}));
    let line = String::from_utf8(whole.bytes.to_vec()).expect("it is text");
    for bad in ["", "{}", "null", &line[..line.len() - 1], &line.replace("{}", "{\n}")] {
        let bytes = bad.as_bytes().into();
        let stored = Stored { bytes, ..whole.clone() };
        assert!(event(&stored, id()).is_err(), "{bad}");
    }
}
