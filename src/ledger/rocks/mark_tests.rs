//! The mark is never ahead, survives the loss of one slot, and keeps a second process out.

use std::fs;

use super::*;

const SEQUENCES: [u64; 3] = [5, 9, 12];

/// A directory whose mark was moved to each of `SEQUENCES`.
fn marked() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut mark = Mark::create(dir.path()).expect("a new mark");
    for sequence in SEQUENCES {
        mark.write(Sequence(sequence)).expect("a mark can be written");
    }
    dir
}

fn read(dir: &Path, is_loss_accepted: bool) -> Result<Option<Sequence>, LedgerError> {
    Mark::open(dir, true, is_loss_accepted).map(|(_, sequence)| sequence)
}

#[test]
fn a_spoiled_slot_gives_the_mark_before_it_and_two_are_refused() {
    let dir = marked();
    let path = dir.path().join(FILE_NAME);
    let whole = fs::read(&path).expect("the mark");
    assert_eq!(read(dir.path(), false), Ok(Some(Sequence(12))));
    let spoil = |slots: &[usize]| {
        let mut bytes = whole.clone();
        for slot in slots {
            bytes[slot * 4096 + 17] ^= 1;
        }
        fs::write(&path, bytes).expect("the mark can be written");
        read(dir.path(), false)
    };
    // Two writes at the creation, then three: the fifth went to slot 1.
    assert_eq!(spoil(&[0]), Ok(Some(Sequence(12))));
    assert_eq!(spoil(&[1]), Ok(Some(Sequence(9))));
    assert!(matches!(spoil(&[0, 1]), Err(LedgerError::Corrupt { .. })));
    assert_eq!(read(dir.path(), true), Ok(None), "unless a loss is accepted");
    fs::write(&path, &whole[..4096 + 31]).expect("the mark can be written");
    assert_eq!(read(dir.path(), false), Ok(Some(Sequence(9))), "a slot cut off");
}

#[test]
fn a_missing_mark_beside_a_database_is_damage_and_nothing_is_made() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let missing = Mark::open(dir.path(), false, true).map(|_| ());
    assert_eq!(missing, Err(LedgerError::Missing { path: dir.path().to_owned() }));
    assert!(matches!(read(dir.path(), false), Err(LedgerError::Corrupt { .. })));
    assert!(!dir.path().join(FILE_NAME).exists());
    assert_eq!(read(dir.path(), true), Ok(None));
}

#[test]
fn a_mark_is_open_once() {
    let dir = marked();
    let first = Mark::open(dir.path(), true, false).expect("a mark");
    assert_eq!(read(dir.path(), false), Err(LedgerError::InUse { path: dir.path().to_owned() }));
    drop(first);
    assert_eq!(read(dir.path(), false), Ok(Some(Sequence(12))));
}

#[test]
fn the_keeper_has_written_the_last_wish_when_it_is_closed() {
    let dir = marked();
    let (mark, _) = Mark::open(dir.path(), true, false).expect("a mark");
    let keeper = MarkKeeper::start(mark).expect("a thread");
    for sequence in 13..500 {
        keeper.move_to(Sequence(sequence)).expect("no move has failed");
    }
    drop(keeper);
    assert_eq!(read(dir.path(), false), Ok(Some(Sequence(499))));
}
