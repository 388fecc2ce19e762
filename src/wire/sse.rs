//! Frames of the feed as server-sent events, byte by byte.
//!
//! Each value in a frame is a number, a word of ours, or JSON on one line, so nothing in an event
//! can break out of its frame or make up a field. A line of the stream ends with LF, CR or both;
//! readers that split text at every line end that Unicode knows are common too, so none of these
//! stands in a frame: JSON can write each of them as an escape.
//! Deliberately absent: who gets which frame, and when.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use serde::de::Error as _;

use super::cloud_event::CloudEvent;
use crate::domain::id::{LedgerId, Sequence};
use crate::ledger::Stored;

/// Says that the connection is alive.
pub const COMMENT: Bytes = Bytes::from_static(b":\n\n");

/// The line ends beyond ASCII. Those within it JSON always escapes.
const LINE_ENDS: [(char, &str); 3] =
    [('\u{85}', "\\u0085"), ('\u{2028}', "\\u2028"), ('\u{2029}', "\\u2029")];

/// An event.
///
/// # Errors
/// The record's line is none that a ledger stores.
pub fn event(stored: &Stored, ledger_id: LedgerId) -> serde_json::Result<Bytes> {
    let event = CloudEvent::from_stored(&stored.bytes, &stored.hash, ledger_id)?;
    let data = serde_json::to_string(&event)?;
    if data.contains(['\n', '\r']) {
        return Err(serde_json::Error::custom("a line end in the line of a record"));
    }
    let data = LINE_ENDS.iter().fold(Cow::Borrowed(data.as_str()), |data, (end, escape)| {
        if data.contains(*end) { data.replace(*end, escape).into() } else { data }
    });
    let (sequence, name) = (stored.sequence, event.plain_type());
    Ok(format!("id: {sequence}\nevent: {name}\ndata: {data}\n\n").into())
}

/// A frame of the feed's own, about the last sequence that was looked at.
pub fn control(name: &'static str, sequence: Sequence) -> Bytes {
    format!("id: {sequence}\nevent: {name}\ndata: {{\"sequence\":{sequence}}}\n\n").into()
}

/// After how long a reader comes back that lost its connection: the first line of the frame that
/// comes next. A frame of its own would have no id, and there are readers that take that for
/// their place.
pub fn retry(after: Duration) -> Bytes {
    format!("retry: {}\n", after.as_millis()).into()
}

// With the streams that the server brings along.
#[cfg(all(test, feature = "server"))]
#[path = "sse_tests.rs"]
mod tests;
