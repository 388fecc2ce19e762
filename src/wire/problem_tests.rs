//! The one table of problems, and their JSON.

use super::*;
use crate::domain::id::{FenceToken, Sequence};
use crate::domain::ticket::End;
use crate::domain::time::Time;
use crate::wire::ticket::tests::{answer, ended, held};

#[test]
fn each_code_has_its_fixed_status_and_exit_code() {
    let table: Vec<String> = Code::ALL
        .iter()
        .map(|code| format!("{code} {} {}", code.status(), code.exit_code()))
        .collect();
    let expected = [
        "unauthenticated 401 7",
        "forbidden 403 7",
        "not-found 404 6",
        "method-not-allowed 405 2",
        "malformed 400 2",
        "too-large 413 2",
        "invalid-argument 422 2",
        "request-uuid-reused 422 2",
        "lock-contended 409 3",
        "deadlock-rejected 409 4",
        "wait-ended 409 9",
        "ticket-ended 409 5",
        "ticket-not-held 409 5",
        "stale-fence 409 5",
        "already-exists 409 1",
        "limit-reached 429 8",
        "busy 503 8",
        "disk-full 507 8",
    ];
    assert_eq!(table, expected);
}

#[test]
fn the_word_of_a_code_is_its_json() {
    for code in Code::ALL {
        let json = serde_json::to_string(code).expect("a plain value");
        assert_eq!(json, format!("\"{code}\""));
    }
}

#[test]
fn an_invalid_argument_names_the_field_and_the_rule() {
    let refusal = Refusal::InvalidArgument { field: "role", rule: "must not fall" };
    let json = serde_json::to_string(&Problem::refused(&refusal)).expect("plain values");
    let expected = concat!(
        r#"{"type":"urn:pearing:problem:invalid-argument","title":"Invalid argument","#,
        r#""status":422,"detail":"role must not fall","code":"invalid-argument","#,
        r#""field":"role","rule":"must not fall"}"#,
    );
    assert_eq!(json, expected);
}

#[test]
fn a_stale_fence_says_which_is_current() {
    let current = Some(FenceToken(Sequence(12)));
    let problem = Problem::refused(&Refusal::StaleFence { current });
    assert_eq!(problem.code, Code::StaleFence);
    assert!(problem.detail.contains("12"), "{}", problem.detail);
}

#[test]
fn an_acquire_that_ended_is_a_problem_with_its_ticket() {
    let now = Time::from_millis(1_767_225_600_000);
    let expected = [
        (End::Contended, Code::LockContended),
        (End::DeadlockRejected, Code::DeadlockRejected),
        (End::TimedOut, Code::WaitEnded),
        (End::Cancelled, Code::WaitEnded),
        (End::Released, Code::TicketEnded),
        (End::Expired, Code::TicketEnded),
        (End::Broken, Code::TicketEnded),
    ];
    for (end, code) in expected {
        let problem = Problem::of_acquire(&Answer::new(&answer(ended(end)), now, 4))
            .expect("an ended ticket is a problem");
        assert_eq!((problem.code, problem.status), (code, 409));
        assert_eq!(problem.answered_after_ms, Some(4));
        assert_eq!(problem.holder.is_some(), end == End::Contended);
        assert_eq!(problem.cycle.is_some(), end == End::DeadlockRejected);
        let ticket = problem.ticket.as_ref().expect("the ticket stands beside the code");
        assert_eq!(ticket.fence_token, None, "a failed acquire has no fence token");
        let json = serde_json::to_string(&problem).expect("plain values");
        assert_eq!(serde_json::from_str::<Problem>(&json).expect("what was written"), problem);
    }
    assert_eq!(Problem::of_acquire(&Answer::new(&answer(held()), now, 4)), None);
}

#[test]
fn what_passes_by_itself_says_when_to_ask_again() {
    for code in Code::ALL {
        let is_passing = matches!(code, Code::Busy | Code::LimitReached | Code::DiskFull);
        assert_eq!(Problem::new(*code, "").retry_after_seconds.is_some(), is_passing, "{code}");
    }
}
