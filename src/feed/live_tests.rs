//! The end of the ledger in memory has no hole, knows where it begins, and has a bound.

use super::*;
use crate::domain::event::{Event, TeamCreated};
use crate::domain::name::Actor;
use crate::domain::time::Time;
use crate::ledger::Hash;

fn record(sequence: u64) -> Stored {
    let event = Event::TeamCreated(TeamCreated { team: "a".parse().expect("a team") });
    let (sequence, time, actor) = (Sequence(sequence), Time::default(), Actor::Ledger);
    Stored::new(&Hash::ZERO, &Record { sequence, time, actor, event })
}

fn large(sequence: u64, bytes: usize) -> Stored {
    Stored { bytes: vec![b'x'; bytes].into(), ..record(sequence) }
}

fn publish(live: &Live, after: u64, records: Vec<Stored>) {
    live.publish(Append { expected_head: Sequence(after), records, puts: Vec::new() });
}

/// What a reader is given, by sequence.
fn after(live: &Live, cursor: u64, published: u64) -> Option<Vec<u64>> {
    let taken = live.after(Sequence(cursor), Sequence(published))?;
    Some(taken.iter().map(|entry| entry.sequence().0).collect())
}

#[test]
fn a_reader_gets_what_comes_after_its_cursor_or_is_told_to_read_the_ledger() {
    let live = Live::new(Sequence(10));
    assert_eq!(after(&live, 10, 10), Some(vec![]));
    assert_eq!(after(&live, 9, 10), None, "what the start found is in the ledger alone");
    publish(&live, 10, vec![record(11), record(12)]);
    // After a gap, which only a restore leaves.
    publish(&live, 12, vec![record(100)]);
    for (cursor, published, expected) in [
        (10, 100, Some(vec![11, 12, 100])),
        (11, 100, Some(vec![12, 100])),
        (12, 100, Some(vec![100])),
        (50, 100, Some(vec![100])),
        (100, 100, Some(vec![])),
        (10, 12, Some(vec![11, 12])),
        (10, 11, Some(vec![11])),
        (0, 100, None),
        (9, 100, None),
    ] {
        assert_eq!(after(&live, cursor, published), expected, "{cursor} to {published}");
    }
}

#[test]
fn the_oldest_are_let_go_and_nothing_between() {
    let live = Live::new(Sequence::ZERO);
    let most = RECORDS_MAX as u64;
    for sequence in 1..=most + 3 {
        publish(&live, sequence - 1, vec![record(sequence)]);
    }
    assert_eq!(after(&live, 2, most + 3), None);
    let mut cursor = 3;
    while cursor < most + 3 {
        let taken = after(&live, cursor, most + 3).expect("it is in memory");
        assert!(taken.len() <= TAKEN_RECORDS_MAX);
        let expected: Vec<u64> = (cursor + 1..).take(taken.len()).collect();
        assert_eq!(taken, expected);
        cursor = *taken.last().expect("there are more");
    }
}

#[test]
fn large_records_take_no_more_room_than_small_ones() {
    let live = Live::new(Sequence::ZERO);
    let half = BYTES_MAX / 2;
    publish(&live, 0, vec![large(1, half), large(2, half)]);
    assert_eq!(after(&live, 0, 2), Some(vec![1]), "one is enough at once");
    publish(&live, 2, vec![record(3)]);
    assert_eq!(after(&live, 0, 3), None, "the oldest had to go");
    assert_eq!(after(&live, 1, 3), Some(vec![2]));
    publish(&live, 3, vec![large(4, 2 * BYTES_MAX)]);
    assert_eq!(after(&live, 2, 4), None);
    assert_eq!(after(&live, 3, 4), Some(vec![4]), "the newest is there, however large it is");
    publish(&live, 4, vec![record(5)]);
    assert_eq!(after(&live, 4, 5), Some(vec![5]));
    assert_eq!(after(&live, 3, 5), None);
}

#[test]
#[should_panic(expected = "an append is left out of the feed")]
fn an_append_that_leaves_a_hole_is_a_bug() {
    let live = Live::new(Sequence::ZERO);
    publish(&live, 0, vec![record(1)]);
    publish(&live, 2, vec![record(3)]);
}

#[test]
fn a_frame_is_written_once_for_all_readers() {
    let live = Live::new(Sequence::ZERO);
    publish(&live, 0, vec![record(1)]);
    let id = LedgerId(uuid::Uuid::nil());
    let frame = || {
        let taken = live.after(Sequence::ZERO, Sequence(1)).expect("it is in memory");
        taken[0].frame(id).expect("it can be written")
    };
    assert_eq!(frame().as_ptr(), frame().as_ptr());
    assert!(Entry::new(large(2, 10)).frame(id).is_none(), "this is no record");
    assert!(Entry::new(large(2, 10)).record().is_none());
}
