//! A command under a lease, in simulated time.

use super::*;
use crate::wire::problem::Code;

const LEASE: u64 = 60_000;
const GRACE: u64 = 20_000;

fn at(ms: u64) -> BootTime {
    BootTime::default().plus_millis(ms)
}

/// Of a lease of a minute, with a grace of a third.
fn warden() -> Warden {
    Warden::new(at(LEASE), Duration::from_millis(GRACE))
}

fn held(deadline: u64) -> LeaseState {
    LeaseState::Held { deadline: at(deadline) }
}

fn in_doubt(deadline: u64) -> LeaseState {
    LeaseState::InDoubt { deadline: at(deadline), why: "away".to_owned() }
}

const REFUSED: Lost = Lost::Refused(Code::TicketNotHeld);

fn wait(until: u64) -> Next {
    Next::Wait { until: Some(at(until)) }
}

fn is_asked(warden: &mut Warden, now: u64) -> bool {
    matches!(warden.next(at(now)), Next::Ask { .. })
}

fn is_killed(warden: &mut Warden, now: u64) -> bool {
    matches!(warden.next(at(now)), Next::Kill { .. })
}

fn made_to_end(cause: Cause) -> Next {
    Next::Done(Outcome::MadeToEnd(cause))
}

#[test]
fn a_command_that_ends_under_its_lock_has_its_own_exit_code() {
    let mut warden = warden();
    assert_eq!(warden.next(at(0)), wait(LEASE - GRACE));
    warden.hear(&held(80_000), at(20_000));
    assert_eq!(warden.next(at(59_999)), wait(60_000));
    warden.ended(3);
    assert_eq!(warden.next(at(79_999)), Next::Done(Outcome::Ended(3)), "not asked before it did");
}

#[test]
fn without_a_word_it_is_asked_a_grace_before_the_deadline_and_killed_at_it() {
    let mut warden = warden();
    warden.hear(&in_doubt(LEASE), at(20_000));
    assert_eq!(warden.next(at(39_999)), wait(40_000));
    let Next::Ask { why } = warden.next(at(40_000)) else { panic!("it is asked") };
    assert_eq!(why, "the lock may be lost in 20.0 s: away");
    assert_eq!(warden.next(at(40_000)), wait(LEASE), "once");
    // An answer that comes now is too late for the command, which may be half at its end.
    warden.hear(&held(120_000), at(41_000));
    assert_eq!(warden.next(at(59_999)), wait(LEASE));
    assert!(is_killed(&mut warden, LEASE));
    assert_eq!(warden.next(at(LEASE)), Next::Wait { until: None }, "once, and for its end");
    warden.ended(137);
    assert_eq!(warden.next(at(LEASE)), made_to_end(Cause::InDoubt));
}

#[test]
fn told_of_the_loss_it_is_asked_at_once_and_killed_a_grace_later() {
    let mut warden = warden();
    warden.hear(&LeaseState::Lost(REFUSED), at(7_000));
    assert!(is_asked(&mut warden, 7_000));
    assert_eq!(warden.next(at(7_000)), wait(27_000));
    // However often it is told.
    warden.hear(&LeaseState::Lost(REFUSED), at(20_000));
    assert_eq!(warden.next(at(20_000)), wait(27_000));
    assert!(is_killed(&mut warden, 27_000));
    warden.ended(143);
    assert_eq!(warden.next(at(27_001)), made_to_end(Cause::Lost(REFUSED)));
}

#[test]
fn told_of_the_loss_in_doubt_it_gets_no_more_time() {
    let mut warden = warden();
    assert!(is_asked(&mut warden, 45_000));
    warden.hear(&LeaseState::Lost(REFUSED), at(50_000));
    assert_eq!(warden.next(at(50_000)), wait(LEASE));
    assert!(is_killed(&mut warden, LEASE));
}

#[test]
fn what_the_command_left_behind_is_killed_in_its_time() {
    let mut warden = warden();
    warden.hear(&LeaseState::Lost(REFUSED), at(1_000));
    assert!(is_asked(&mut warden, 1_000) && !warden.awaits_rest());
    warden.ended(143);
    assert!(warden.awaits_rest());
    assert_eq!(warden.next(at(2_000)), wait(21_000));
    assert!(is_killed(&mut warden, 21_000));
    assert_eq!(warden.next(at(21_000)), made_to_end(Cause::Lost(REFUSED)));
}

#[test]
fn when_nothing_is_left_it_is_over_before_its_time() {
    let mut warden = warden();
    warden.hear(&LeaseState::Lost(REFUSED), at(1_000));
    assert!(is_asked(&mut warden, 1_000));
    warden.ended(0);
    warden.gone();
    assert_eq!(warden.next(at(1_500)), made_to_end(Cause::Lost(REFUSED)));
}

#[test]
fn a_machine_that_was_asleep_kills_at_once() {
    for ended in [None, Some(0)] {
        let mut warden = warden();
        warden.hear(&LeaseState::Lost(Lost::Deadline), at(10 * LEASE));
        // It had its end after the deadline, for all that is known.
        if let Some(code) = ended {
            warden.ended(code);
        }
        assert!(is_killed(&mut warden, 10 * LEASE));
        warden.ended(137);
        let lost = Cause::Lost(Lost::Deadline);
        assert_eq!(warden.next(at(10 * LEASE)), made_to_end(lost));
    }
    // Before anything was heard.
    let mut warden = warden();
    warden.ended(0);
    assert!(is_killed(&mut warden, LEASE));
}

#[test]
fn a_server_that_says_that_nothing_is_left_leaves_no_more_time_than_its_deadline() {
    let mut warden = warden();
    warden.hear(&LeaseState::Lost(Lost::Deadline), at(50_000));
    assert!(is_asked(&mut warden, 50_000));
    assert_eq!(warden.next(at(50_000)), wait(LEASE));
}

#[test]
fn without_a_grace_it_is_killed_and_not_asked() {
    let mut warden = Warden::new(at(LEASE), Duration::ZERO);
    assert_eq!(warden.next(at(0)), wait(LEASE));
    warden.hear(&LeaseState::Lost(REFUSED), at(1_000));
    assert!(is_killed(&mut warden, 1_000));
}
