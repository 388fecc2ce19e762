//! Leases in simulated time: scenes as they happen, and a random network against a server's clock.

use proptest::prelude::*;

use super::*;

const SECOND: u64 = 1000;
const LEASE: u64 = 60 * SECOND;

fn at(ms: u64) -> BootTime {
    BootTime::default().plus_millis(ms)
}

fn length(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Of a lease of a minute, asked for at 0.
fn keeper() -> Keeper {
    Keeper::new(at(0), length(LEASE), length(20 * SECOND), 0.0)
}

fn held(as_of: u64, remaining: u64) -> Heard {
    Heard::Held { as_of: at(as_of), remaining: length(remaining) }
}

fn nothing(retry_after: Option<u64>) -> Heard {
    Heard::Nothing { why: "away".to_owned(), retry_after: retry_after.map(length) }
}

fn wait(until: u64) -> Next {
    Next::Wait { until: at(until) }
}

fn beat(until: u64) -> Next {
    Next::Beat { until: at(until) }
}

/// In milliseconds.
fn between(from: u64, to: BootTime) -> u64 {
    u64::try_from(at(from).until(to).as_millis()).expect("short")
}

fn in_doubt(deadline: u64) -> LeaseState {
    LeaseState::InDoubt { deadline: at(deadline), why: "away".to_owned() }
}

fn is_held_until(keeper: &Keeper, deadline: u64) -> bool {
    *keeper.state() == LeaseState::Held { deadline: at(deadline) }
}

#[test]
fn it_is_heartbeaten_at_a_third_of_the_lease_counted_from_the_sending() {
    let mut keeper = keeper();
    assert_eq!(keeper.next(at(0)), wait(20_000));
    assert_eq!(keeper.next(at(20_000)), beat(30_000));
    // Sent at 20 s; the answer took 3 s, of which the server had the request for 1 s.
    keeper.hear(held(21_000, LEASE), at(23_000));
    assert!(is_held_until(&keeper, 81_000));
    assert_eq!(keeper.next(at(23_000)), wait(41_000));
}

#[test]
fn one_failed_heartbeat_is_a_doubt_and_an_answer_ends_it() {
    let mut keeper = keeper();
    keeper.hear(nothing(None), at(20_000));
    assert_eq!(*keeper.state(), in_doubt(LEASE));
    assert_eq!(keeper.next(at(20_000)), wait(20_100), "soon again");
    assert_eq!(keeper.next(at(20_100)), beat(30_100));
    keeper.hear(held(20_100, LEASE), at(20_200));
    assert!(is_held_until(&keeper, 80_100));
    assert_eq!(keeper.next(at(20_200)), wait(40_100));
}

/// Plays a server that never answers again, and fails each heartbeat after `takes` or when the
/// keeper's patience ends. Returns the times of the heartbeats, and when the lease was lost.
fn played_alone(mut keeper: Keeper, takes: u64) -> (Vec<BootTime>, BootTime) {
    let (mut now, mut beats) = (at(0), Vec::new());
    loop {
        match keeper.next(now) {
            Next::Wait { until } => now = until,
            Next::Beat { until } => {
                beats.push(now);
                now = now.plus_millis(takes).min(until);
                keeper.hear(nothing(None), now);
            }
            Next::End => {
                assert_eq!(*keeper.state(), LeaseState::Lost(Lost::Deadline));
                return (beats, now);
            }
        }
    }
}

#[test]
fn a_server_that_is_gone_is_asked_until_the_deadline_and_the_lease_is_lost_just_then() {
    let (silent, lost_at) = played_alone(keeper(), u64::MAX);
    assert_eq!(lost_at, at(LEASE));
    let gaps: Vec<Duration> = silent.windows(2).map(|pair| pair[0].until(pair[1])).collect();
    assert!(gaps.iter().all(|gap| *gap < length(11_000)), "{gaps:?}");
    let [.., last] = gaps[..] else { panic!("it asks again") };
    assert!(last < length(1_000), "the less time is left the sooner it asks: {gaps:?}");

    let (refusing, lost_at) = played_alone(keeper(), 0);
    assert_eq!(lost_at, at(LEASE));
    assert!((20..60).contains(&refusing.len()), "short pauses, no tight loop: {}", refusing.len());

    let (_, lost_at) = played_alone(Keeper::new(at(0), length(1), length(1000), 1.0), 0);
    assert_eq!(lost_at, at(1));
}

#[test]
fn two_heartbeats_in_a_row_may_get_lost_for_ever() {
    let (mut keeper, mut now, mut beats) = (keeper(), 0, 0);
    while now < 1000 * LEASE {
        match keeper.next(at(now)) {
            Next::Wait { until } => now += between(now, until),
            Next::Beat { until } if beats % 3 < 2 => {
                now += between(now, until);
                keeper.hear(nothing(None), at(now));
                beats += 1;
            }
            Next::Beat { .. } => {
                keeper.hear(held(now, LEASE), at(now + 900));
                now += 900;
                beats += 1;
            }
            Next::End => panic!("lost after {beats} heartbeats"),
        }
    }
}

#[test]
fn a_machine_that_was_asleep_has_lost_it_before_anything_else_is_judged() {
    for wakes in [LEASE, LEASE + 1, 10 * LEASE] {
        let mut keeper = keeper();
        assert_eq!(keeper.next(at(0)), wait(20_000));
        assert_eq!(keeper.next(at(wakes)), Next::End);
        assert_eq!(*keeper.state(), LeaseState::Lost(Lost::Deadline));
    }
    // It slept while a heartbeat was under way, and the answer was there first.
    let mut keeper = keeper();
    assert_eq!(keeper.next(at(20_000)), beat(30_000));
    keeper.hear(held(20_000, LEASE), at(20 * LEASE));
    assert_eq!(*keeper.state(), LeaseState::Lost(Lost::Deadline));
}

#[test]
fn what_is_lost_stays_lost() {
    let mut broken = keeper();
    broken.hear(Heard::Refused(Code::TicketNotHeld), at(20_000));
    let mut let_go = keeper();
    let_go.hear(Heard::LetGo, at(20_000));
    let mut late = keeper();
    late.hear(nothing(None), at(LEASE));
    for (mut keeper, lost) in [
        (broken, Lost::Refused(Code::TicketNotHeld)),
        (let_go, Lost::LetGo),
        (late, Lost::Deadline),
    ] {
        for heard in [
            held(19_000, LEASE),
            held(LEASE, LEASE),
            nothing(None),
            Heard::Refused(Code::NotFound),
            Heard::LetGo,
        ] {
            keeper.hear(heard, at(LEASE + 1));
            assert_eq!(*keeper.state(), LeaseState::Lost(lost));
            assert_eq!(keeper.next(at(LEASE + 1)), Next::End);
        }
    }
}

#[test]
fn no_answer_moves_the_deadline_earlier() {
    let mut keeper = keeper();
    keeper.hear(held(20_000, LEASE), at(20_100));
    keeper.hear(nothing(None), at(40_000));
    // The answer to a heartbeat that was sent before the one that was answered.
    keeper.hear(held(19_000, LEASE), at(40_001));
    assert_eq!(*keeper.state(), in_doubt(80_000), "it says nothing of now");
    keeper.hear(held(40_000, 30_000), at(40_002));
    assert!(is_held_until(&keeper, 80_000), "{:?}", keeper.state());
}

#[test]
fn an_answer_that_nothing_is_left_is_a_loss() {
    let mut keeper = keeper();
    keeper.hear(held(20_000, 0), at(20_000));
    assert_eq!(*keeper.state(), LeaseState::Lost(Lost::Deadline));
}

#[test]
fn a_server_that_asks_for_time_gets_it_as_far_as_the_lease_has_it() {
    let mut keeper = keeper();
    keeper.hear(nothing(Some(5_000)), at(20_000));
    assert_eq!(keeper.next(at(20_000)), wait(25_000));
    keeper.hear(nothing(Some(3600 * SECOND)), at(25_000));
    assert_eq!(keeper.next(at(25_000)), wait(42_500), "half of what is left");
    keeper.hear(nothing(Some(u64::MAX)), at(42_500));
    assert_eq!(keeper.next(at(42_500)), wait(51_250));
}

#[test]
fn pauses_grow_and_are_spread() {
    let pauses = |spread| {
        let mut keeper = Keeper::new(at(0), length(300_000), length(100_000), spread);
        let mut now = at(100_000);
        let grown = (0..8).map(|_| {
            keeper.hear(nothing(None), now);
            let Next::Wait { until } = keeper.next(now) else { panic!("it pauses") };
            let pause = now.until(until).as_millis();
            now = until;
            pause
        });
        grown.collect::<Vec<_>>()
    };
    assert_eq!(pauses(0.0), [100, 200, 400, 800, 1600, 2000, 2000, 2000]);
    assert_eq!(pauses(1.0), [50, 100, 200, 400, 800, 1000, 1000, 1000]);
}

#[test]
fn what_has_little_left_is_heartbeaten_soon() {
    // An acquire that was asked again: 6 s are left of a minute.
    let mut keeper = Keeper::new(at(0), length(6_000), length(20 * SECOND), 0.0);
    assert_eq!(keeper.next(at(0)), wait(2_000));
    assert_eq!(keeper.next(at(2_000)), beat(4_000));
    // A link on which an answer takes longer than a third of the lease: no tight loop.
    keeper.hear(held(2_000, 5_000), at(5_900));
    assert_eq!(keeper.next(at(5_900)), wait(5_950));
}

/// What happens to one heartbeat.
#[derive(Debug, Clone)]
struct Trip {
    /// How long it takes to the server, there, and back.
    lengths: [u64; 3],
    is_lost: bool,
    /// How long the client is asleep, or held up, before it looks.
    late: u64,
}

fn trips() -> impl Strategy<Value = Vec<Trip>> {
    let delay = || prop_oneof![4 => 0..50_u64, 2 => 0..3_000_u64, 1 => 0..20_000_u64];
    let late = prop_oneof![8 => 0..3_u64, 1 => 0..10_000_u64];
    let trip = ([delay(), delay(), delay()], prop::bool::weighted(0.3), late)
        .prop_map(|(lengths, is_lost, late)| Trip { lengths, is_lost, late });
    prop::collection::vec(trip, 1..60)
}

proptest! {
    #[test]
    fn nothing_is_held_here_that_is_not_held_there(lease in 5_000..300_000_u64, trips in trips()) {
        let [there, at_server, back] = trips[0].lengths;
        // The server's side: when it ends the hold. It began when the acquire arrived.
        let mut ends = there + lease;
        let mut now = there + at_server + back;
        let left = lease.saturating_sub(at_server);
        let mut keeper =
            Keeper::new(at(at_server), length(left), length(lease / 3000 * 1000), 0.5);
        // Answers that nobody waited for, which are heard all the same, at any time later.
        let mut stray = Vec::new();
        for trip in &trips {
            match keeper.next(at(now)) {
                Next::Wait { until } => now += between(now, until) + trip.late,
                Next::Beat { until } => {
                    let [there, at_server, back] = trip.lengths;
                    let arrives = now + there;
                    let is_held = arrives < ends;
                    if is_held && !trip.is_lost {
                        ends = ends.max(arrives + lease);
                    }
                    let remaining = ends.saturating_sub(arrives + at_server);
                    let heard = if is_held {
                        held(now + at_server, remaining)
                    } else {
                        Heard::Refused(Code::TicketNotHeld)
                    };
                    let answered = arrives + at_server + back;
                    let gives_up = now + between(now, until);
                    now = answered.min(gives_up) + trip.late;
                    if trip.is_lost {
                        keeper.hear(nothing(None), at(now));
                    } else if answered < gives_up {
                        keeper.hear(heard, at(now));
                    } else {
                        keeper.hear(nothing(None), at(now));
                        stray.push(heard);
                    }
                }
                Next::End => {
                    for heard in stray.drain(..) {
                        keeper.hear(heard, at(now));
                        prop_assert_eq!(keeper.next(at(now)), Next::End);
                    }
                    break;
                }
            }
            if trip.late % 3 == 0
                && let Some(heard) = stray.pop()
            {
                keeper.hear(heard, at(now));
            }
            if let Some(deadline) = keeper.state().deadline() {
                prop_assert!(deadline <= at(ends), "{deadline:?} is after {ends}");
            }
        }
    }
}
