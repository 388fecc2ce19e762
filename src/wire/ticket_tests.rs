//! The JSON of tickets and answers: names, order and numbers are fixed.

use super::*;
use crate::domain::ticket::{self, TicketInput};
use crate::domain::time::{LeaseSeconds, WaitSeconds};

const T0: Time = Time::from_millis(1_767_225_600_000);

fn lease(seconds: u64) -> LeaseSeconds {
    LeaseSeconds::try_from(seconds).expect("a lease")
}

pub(in crate::wire) fn view(phase: Phase) -> TicketView {
    let is_held = matches!(phase, Phase::Held { .. });
    let is_waiting = matches!(phase, Phase::Waiting { .. });
    let input = TicketInput {
        scope: "teams/platform/website".parse().expect("a scope"),
        lock_name: "thread-work.42".parse().expect("a name"),
        request_uuid: "E41B7608-1FE8-4F54-A5F3-67E8605F480C".parse().expect("a UUID"),
        lease_seconds: lease(60),
        wait_seconds: WaitSeconds::try_from(30).expect("a wait"),
        note: None,
        reentrant: true,
    };
    let ticket = ticket::Ticket {
        id: "6bb65939-0db9-4fe2-83a7-ff6dfc3b00af".parse().expect("a UUID"),
        owner: "claude".parse().expect("a name"),
        input,
        made_at: Sequence(41),
        created_at: T0,
        held_at: is_held.then_some(T0),
        fence_token: is_held.then_some(FenceToken(Sequence(41))),
        sequence: Sequence(41),
        phase,
    };
    TicketView { ticket, depth: u32::from(is_held), queue_position: is_waiting.then_some(1) }
}

pub(in crate::wire) fn held() -> TicketView {
    view(Phase::Held { lease_expires_at: T0.plus_seconds(60), is_grace_due: true })
}

pub(in crate::wire) fn ended(end: End) -> TicketView {
    let reason = (end == End::Broken)
        .then(|| ShortText::try_from("stuck".to_owned()).expect("a short text"));
    let deadline = Some(T0.plus_seconds(60));
    view(Phase::Ended { end, at: T0.plus_seconds(2), reason, deadline, cycle: Vec::new() })
}

pub(in crate::wire) fn answer(ticket: TicketView) -> TicketAnswer {
    let holder = HolderView {
        owner: "codex".parse().expect("a name"),
        fence_token: FenceToken(Sequence(40)),
        note: Some(ShortText::try_from("deploys".to_owned()).expect("a short text")),
        lease_expires_at: T0.plus_seconds(9),
    };
    let edge = CycleEdgeView {
        owner: Some("claude".parse().expect("a name")),
        waits_for: None,
        scope: None,
        lock_name: None,
        ticket_id: None,
    };
    TicketAnswer {
        ticket,
        is_replay: false,
        holder: Some(holder),
        cycle: vec![edge],
        sequence: Sequence(41),
    }
}

fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("plain values")
}

#[test]
fn a_held_ticket_has_the_fixed_names_in_their_order() {
    let now = Time::from_millis(T0.as_millis() + 1);
    let expected = concat!(
        r#"{"ticket_id":"6bb65939-0db9-4fe2-83a7-ff6dfc3b00af","scope":"teams/platform/website","#,
        r#""lock_name":"thread-work.42","owner":"claude","#,
        r#""request_uuid":"e41b7608-1fe8-4f54-a5f3-67e8605f480c","state":"held","note":null,"#,
        r#""fence_token":41,"depth":1,"queue_position":null,"lease_seconds":60,"wait_seconds":30,"#,
        r#""lease_expires_at":"2026-01-01T00:01:00.000Z","lease_remaining_ms":59999,"#,
        r#""wait_expires_at":null,"heartbeat_every_seconds":20,"#,
        r#""created_at":"2026-01-01T00:00:00.000Z","held_at":"2026-01-01T00:00:00.000Z","#,
        r#""ended_at":null,"end_reason":null,"sequence":41}"#,
    );
    assert_eq!(json(&Ticket::new(&held(), now)), expected);
}

#[test]
fn an_overdue_hold_has_nothing_left_but_is_still_held() {
    let ticket = Ticket::new(&held(), T0.plus_seconds(61));
    assert_eq!((ticket.state, ticket.lease_remaining_ms), (State::Held, Some(0)));
}

#[test]
fn a_waiting_ticket_has_no_lease_deadline_and_no_fence_token() {
    let ticket = Ticket::new(&view(Phase::Waiting { wait_expires_at: T0.plus_seconds(30) }), T0);
    assert_eq!((ticket.lease_expires_at, ticket.lease_remaining_ms), (None, None));
    assert_eq!((ticket.fence_token, ticket.depth), (None, 0));
    assert_eq!(ticket.queue_position, Some(1));
    assert_eq!(ticket.wait_expires_at, Some(T0.plus_seconds(30)));
}

#[test]
fn an_ended_ticket_shows_no_deadline_that_counts_no_more() {
    let ticket = Ticket::new(&ended(End::Broken), T0.plus_seconds(3));
    assert_eq!((ticket.lease_expires_at, ticket.lease_remaining_ms), (None, None));
    assert_eq!(ticket.wait_expires_at, None);
    assert_eq!(ticket.ended_at, Some(T0.plus_seconds(2)));
    assert_eq!(ticket.end_reason.as_ref().map(ShortText::as_str), Some("stuck"));
}

#[test]
fn a_heartbeat_is_due_every_third_of_the_lease() {
    let due = [5, 6, 60, 299, 300].map(heartbeat_every_seconds);
    assert_eq!(due, [1, 2, 20, 99, 100]);
    assert_eq!(heartbeat_every_seconds(2), 1);
}

#[test]
fn only_contended_and_waiting_answers_name_the_holder() {
    let waiting = view(Phase::Waiting { wait_expires_at: T0.plus_seconds(30) });
    let now = Time::from_millis(T0.as_millis() + 1);
    for ticket in [waiting, ended(End::Contended)] {
        let text = json(&Answer::new(&answer(ticket), now, 3));
        let expected = concat!(
            r#""answered_after_ms":3,"holder":{"owner":"codex","fence_token":40,"#,
            r#""note":"deploys","lease_remaining_ms":8999},"retry_after_seconds":9}"#,
        );
        assert!(text.ends_with(expected), "{text}");
    }
    for ticket in [held(), ended(End::Released), ended(End::TimedOut)] {
        let text = json(&Answer::new(&answer(ticket), now, 3));
        assert!(text.ends_with(r#""sequence":41},"answered_after_ms":3}"#), "{text}");
    }
    let text = json(&Answer::new(&answer(ended(End::DeadlockRejected)), now, 3));
    let expected = concat!(
        r#""answered_after_ms":3,"cycle":[{"owner":"claude","waits_for":null,"scope":null,"#,
        r#""lock_name":null,"ticket_id":null}]}"#,
    );
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn a_free_lock_is_told_from_an_answer_without_a_holder() {
    let mut contended = answer(ended(End::Contended));
    contended.holder = None;
    for answer in [Answer::new(&contended, T0, 0), Answer::new(&answer(held()), T0, 0)] {
        let read: Answer = serde_json::from_str(&json(&answer)).expect("what was written");
        assert_eq!(read, answer);
    }
    let text = json(&Answer::new(&contended, T0, 0));
    assert!(text.ends_with(r#""holder":null,"retry_after_seconds":1}"#), "{text}");
}

#[test]
fn the_word_of_a_state_is_its_json() {
    use State::*;
    for state in
        [Held, Waiting, Contended, DeadlockRejected, Released, Expired, Broken, Cancelled, TimedOut]
    {
        assert_eq!(json(&state), format!("\"{}\"", state.as_str()));
    }
}
