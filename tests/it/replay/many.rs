//! A ledger of many locks, each used once: long, and at its end as if nothing had ever been held.

use pearing::audit::{Form, Replay, Silent, export};
use pearing::domain::access::{Role, TokenHash};
use pearing::domain::command::{Caller, Command};
use pearing::domain::event::{Event, LedgerOpened};
use pearing::domain::id::{LedgerId, RequestUuid, Sequence, TicketId, TokenId};
use pearing::domain::name::{Actor, TeamName, UserName};
use pearing::domain::scope::LockKey;
use pearing::domain::ticket::TicketInput;
use pearing::domain::time::{LeaseSeconds, Time, WaitSeconds};
use pearing::domain::{Limits, State};
use pearing::ledger::Ledger;
use pearing::ledger::memory::MemoryLedger;
use pearing::projection::snapshot;
use pearing::service::batch::Batch;
use pearing::service::recover;
use uuid::Uuid;

/// When it begins: 2026-01-01T00:00:00Z.
const START: Time = Time::from_millis(1_767_225_600_000);

/// How many rounds share a batch.
const AT_ONCE: usize = 100;

fn lock(round: usize) -> LockKey {
    LockKey {
        scope: "teams/crowd".parse().expect("a scope"),
        lock_name: format!("job-{round}").parse().expect("a name"),
    }
}

fn id(round: usize) -> Uuid {
    // Odd, so that no two are equal; and nothing else has the upper half.
    Uuid::from_u128((1 << 100) + (round as u128).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

fn decide(batch: &mut Batch<'_>, caller: Caller, command: &Command) {
    let decided = batch.decide(caller, command).expect("memory can be read");
    decided.unwrap_or_else(|refusal| panic!("{command:?}: {refusal:?}"));
}

/// A ledger in which one user takes and lets go of so many locks. Of the last `left`, the lease
/// runs out.
fn ledger(rounds: usize, left: usize) -> (MemoryLedger, State) {
    let (ledger, mut state, limits) =
        (MemoryLedger::default(), State::default(), Limits::default());
    let token_id = TokenId(Uuid::from_u128(1));
    let mut append = |time: Time, play: &mut dyn FnMut(&mut Batch<'_>)| {
        let mut batch = Batch::open(&mut state, &ledger, &limits, time);
        play(&mut batch);
        let (append, _) = batch.close();
        ledger.append(&append).expect("memory is not full");
    };
    append(START, &mut |batch| {
        let ledger_id = LedgerId(Uuid::from_u128(1));
        batch.record(Actor::Ledger, Event::LedgerOpened(LedgerOpened { ledger_id }));
        let (user, team): (UserName, TeamName) =
            ("busy".parse().expect("a name"), "crowd".parse().expect("a name"));
        let (sha256, label, expires_in_days) = (TokenHash([7; 32]), None, None);
        for command in [
            Command::CreateUser { user: user.clone(), admin: false },
            Command::IssueToken { token_id, user: user.clone(), sha256, label, expires_in_days },
            Command::CreateTeam { team: team.clone() },
            Command::SetTeamMember { team, user, role: Role::Write },
        ] {
            decide(batch, Caller::Ledger, &command);
        }
    });
    for first in (0..rounds).step_by(AT_ONCE) {
        let time = START.plus_seconds(u32::try_from(first / AT_ONCE).expect("few"));
        append(time, &mut |batch| {
            assert!(batch.settle(usize::MAX), "no bound, nothing left");
            for round in first..rounds.min(first + AT_ONCE) {
                let (LockKey { scope, lock_name }, ticket_id) = (lock(round), TicketId(id(round)));
                let input = TicketInput {
                    scope,
                    lock_name,
                    request_uuid: RequestUuid(id(round)),
                    lease_seconds: LeaseSeconds::try_from(5).expect("the shortest"),
                    wait_seconds: WaitSeconds::default(),
                    note: None,
                    reentrant: true,
                };
                let acquire = Command::AcquireLock { ticket_id, input };
                decide(batch, Caller::Token(token_id), &acquire);
                if round + left < rounds {
                    let release = Command::ReleaseTicket { lock: lock(round), ticket_id };
                    decide(batch, Caller::Token(token_id), &release);
                }
            }
        });
    }
    append(START.plus_seconds(86_400), &mut |batch| {
        assert!(batch.settle(usize::MAX), "no bound, nothing left");
    });
    (ledger, state)
}

/// Such a ledger as text, with two records for each round.
pub(super) fn text(rounds: usize) -> Vec<u8> {
    let (ledger, _) = ledger(rounds, 0);
    let mut text = Vec::new();
    export(&ledger, Form::Text, Sequence::ZERO, &mut text, &mut Silent).expect("it is in memory");
    text
}

#[test]
fn locks_that_are_over_leave_nothing_in_the_state_that_a_start_reads() {
    let sizes = [10, 10_000].map(|rounds| {
        let (ledger, state) = ledger(rounds, rounds / 2);
        let shown = Replay::to(&ledger, None, true).and_then(|replay| replay.shown());
        assert_eq!(shown.expect("it is in memory").locks, []);
        assert_eq!(recover::replay(&ledger).expect("it is good"), state);
        snapshot::save(&ledger, &state).expect("memory is not full");
        // From the snapshot nothing is left to be read.
        let (from_snapshot, head) = snapshot::load(&ledger).expect("it is good");
        assert_eq!((from_snapshot, head), (state.clone(), ledger.head()));
        serde_json::to_string(&state.to_snapshot()).expect("its keys are text").len()
    });
    // Only numbers in it have more digits.
    assert!(sizes[1] < sizes[0] + 100, "{sizes:?} bytes");
}
