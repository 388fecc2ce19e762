//! Cursors: where a page of a list ended, as text that only this server reads.
//!
//! A cursor is the place of the page's last item, a name or a number, in hex digits. Written out
//! it would be taken for that name or number, and clients would begin to make their own.

use crate::domain::hex;

/// What a cursor must be, fit for "cursor RULE".
pub(super) const RULE: &str = "must be what a page of this list gave as next";

/// The cursor of a place.
pub(super) fn of(place: &str) -> String {
    let mut cursor = String::with_capacity(2 * place.len());
    hex::write(&mut cursor, place.as_bytes()).expect("a string takes all that is written");
    cursor
}

/// The place that a cursor stands for; `None` if it is none of ours. Places are printable ASCII.
pub(super) fn place(cursor: &str) -> Option<String> {
    let place = String::from_utf8(hex::bytes(cursor)?).ok()?;
    let is_place = !place.is_empty() && place.bytes().all(|byte| byte.is_ascii_graphic());
    is_place.then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back_as_its_place_and_nothing_else_does() {
        for text in ["1", "18446744073709551615", "thread-work.42:a", "teams/a/b"] {
            assert_eq!(place(&of(text)).as_deref(), Some(text));
            assert_ne!(of(text), text);
        }
        for bad in ["", "4", "4x", "4A", "20", "00", "0a", "c3bc", "ff", "+1", "7d8a-", "ü"] {
            assert_eq!(place(bad), None, "{bad:?}");
        }
    }
}
