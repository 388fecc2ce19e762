//! What acquire-lock prints and how it exits, from answers as the server gives them.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use super::*;
use crate::client::ClientError;
use crate::wire::problem::Problem;

#[derive(Clone, Default)]
struct Printed(Rc<RefCell<Vec<u8>>>);

impl Printed {
    fn text(&self) -> String {
        String::from_utf8(self.0.borrow().clone()).expect("UTF-8")
    }
}

impl Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const TICKET: &str = concat!(
    r#"{"ticket_id":"6bb65939-0db9-4fe2-83a7-ff6dfc3b00af","scope":"teams/platform/website","#,
    r#""lock_name":"thread-work.42","owner":"claude","#,
    r#""request_uuid":"00000000-0000-0000-0000-000000000007","state":"STATE","note":null,"#,
    r#""fence_token":FENCE,"depth":1,"queue_position":POSITION,"lease_seconds":60,"#,
    r#""wait_seconds":0,"lease_expires_at":null,"lease_remaining_ms":REMAINING,"#,
    r#""wait_expires_at":null,"heartbeat_every_seconds":20,"#,
    r#""created_at":"2026-01-01T00:00:00.000Z","held_at":null,"ended_at":null,"end_reason":null,"#,
    r#""sequence":41}"#,
);

fn reply(state: &str) -> Reply<Answer> {
    let is_held = state == "held";
    let ticket = TICKET
        .replace("STATE", state)
        .replace("FENCE", if is_held { "41" } else { "null" })
        .replace("REMAINING", if is_held { "60000" } else { "null" })
        .replace("POSITION", if state == "waiting" { "1" } else { "null" });
    let more = match state {
        "waiting" | "contended" => {
            concat!(
                r#","holder":{"owner":"codex","fence_token":977,"note":"deploys","#,
                r#""lease_remaining_ms":8999},"retry_after_seconds":9"#,
            )
        }
        "deadlock_rejected" => {
            concat!(
                r#","cycle":[{"owner":"claude","waits_for":"codex","scope":null,"#,
                r#""lock_name":null,"ticket_id":null},{"owner":"codex","waits_for":"claude","#,
                r#""scope":null,"lock_name":null,"ticket_id":null}]"#,
            )
        }
        _ => "",
    };
    let json = format!(r#"{{"ticket":{ticket},"answered_after_ms":1{more}}}"#);
    let body: Answer = serde_json::from_str(&json).expect("an answer");
    Reply { body, json, sent_at: BootTime::now(), is_replay: false }
}

/// The exit code, stdout and stderr of an acquire that gets this answer.
fn ran(format: Format, state: &str) -> (u8, String, String) {
    ended(format, &reply(state))
}

fn ended(format: Format, reply: &Reply<Answer>) -> (u8, String, String) {
    let (out, err) = (Printed::default(), Printed::default());
    let mut output = Output::to(format, Box::new(out.clone()), Box::new(err.clone()));
    let lock = LockKey {
        scope: reply.body.ticket.scope.clone(),
        lock_name: reply.body.ticket.lock_name.clone(),
    };
    let code = finish(&mut output, &lock, reply).unwrap_or_else(|failure| failure.exit_code());
    (code, out.text(), err.text())
}

const NOT_HELD: [(&str, u8, &str); 8] = [
    ("waiting", 10, "waiting: position 1"),
    ("contended", 3, "lock-contended: "),
    ("deadlock_rejected", 4, "deadlock-rejected: "),
    ("cancelled", 9, "wait-ended: "),
    ("timed_out", 9, "wait-ended: "),
    ("released", 5, "ticket-ended: "),
    ("expired", 5, "ticket-ended: "),
    ("broken", 5, "ticket-ended: "),
];

#[test]
fn only_a_held_ticket_exits_0_and_is_printed_on_stdout() {
    let (code, out, err) = ran(Format::Text, "held");
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("fence_token   41\n"), "{out}");
    for (state, expected, words) in NOT_HELD {
        let (code, out, err) = ran(Format::Text, state);
        assert_eq!((code, out.as_str()), (expected, ""), "{state}");
        assert!(err.starts_with(words), "{state}: {err}");
        assert!(!err.contains("977"), "the holder's fence token is not the asker's: {err}");
    }
}

#[test]
fn in_json_every_ticket_is_one_line_on_stdout_without_a_fence_token_of_its_own() {
    let (code, out, err) = ran(Format::Json, "held");
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(out.lines().count(), 1);
    for (state, expected, words) in NOT_HELD {
        let (code, out, err) = ran(Format::Json, state);
        assert_eq!((code, out.lines().count()), (expected, 1), "{state}");
        assert!(err.starts_with(words), "{state}: {err}");
        let json: serde_json::Value = serde_json::from_str(&out).expect("one line of JSON");
        assert!(json["ticket"]["fence_token"].is_null(), "{out}");
    }
}

#[test]
fn who_waits_is_told_how_to_ask_again_and_how_to_give_up() {
    let (_, _, err) = ran(Format::Text, "waiting");
    let expected = "waiting: position 1 for thread-work.42 in teams/platform/website; \
        held by codex (deploys), 8.9 s left\n\
        ask again: pearing-cli get-lock-ticket thread-work.42 \
        6bb65939-0db9-4fe2-83a7-ff6dfc3b00af --repo teams/platform/website --wait 25 \
        --exit-status\n\
        give up:   pearing-cli release-lock-ticket thread-work.42 \
        6bb65939-0db9-4fe2-83a7-ff6dfc3b00af --repo teams/platform/website\n";
    assert_eq!(err, expected);
}

#[test]
fn who_joins_its_own_hold_is_told_so_once() {
    let mut joined = reply("held");
    joined.body.ticket.depth = 2;
    let (code, _, err) = ended(Format::Text, &joined);
    assert_eq!(code, 0);
    assert_eq!(err, "joined your own hold, now 2 tickets: --no-reentrant contends instead\n");
    joined.is_replay = true;
    assert_eq!(ended(Format::Text, &joined).2, "", "it was told before");
}

#[test]
fn who_contends_is_told_to_wait_only_if_it_could() {
    let mut contended = reply("contended");
    let (_, _, err) = ended(Format::Text, &contended);
    assert!(err.contains("request UUID, or wait for it: --wait-seconds N\n"), "{err}");
    contended.body.ticket.wait_seconds = 30;
    let (_, _, err) = ended(Format::Text, &contended);
    assert!(err.contains("another session of claude waits for it already"), "{err}");
    contended.body.ticket.owner = "codex".parse().expect("a name");
    let (_, _, err) = ended(Format::Text, &contended);
    assert!(err.contains("another session of codex has it, which can't be waited for"), "{err}");
    assert!(!err.contains("--wait-seconds"), "{err}");
}

#[test]
fn a_deadlock_is_told_as_who_waits_for_whom() {
    let (_, _, err) = ran(Format::Text, "deadlock_rejected");
    assert!(err.contains("  claude waits for codex\n  codex waits for claude\n"), "{err}");
}

#[test]
fn a_lease_that_ran_out_on_the_way_is_no_success() {
    let mut late = reply("held");
    late.body.ticket.lease_remaining_ms = Some(0);
    late.body.answered_after_ms = 0;
    let (code, out, err) = ended(Format::Text, &late);
    assert_eq!((code, out.as_str()), (5, ""));
    assert!(err.contains("the lock is lost"), "{err}");
}

#[test]
fn a_signal_while_it_waits_exits_with_128_and_its_number() {
    assert_eq!([1, 2, 15].map(killed_by), [129, 130, 143]);
}

#[test]
fn only_what_passes_by_itself_is_polled_again() {
    let problem = |code| {
        let problem = Problem::new(code, "");
        let (json, sent_at) = (String::new(), BootTime::now());
        let refused = crate::client::Refused { problem, json, sent_at, is_replay: false };
        ClientError::Problem(Box::new(refused))
    };
    assert!(ClientError::Unreachable(String::new()).is_passing());
    assert!(problem(Code::Busy).is_passing() && problem(Code::LimitReached).is_passing());
    assert!(!problem(Code::NotFound).is_passing());
    assert!(!problem(Code::Unauthenticated).is_passing());
}
