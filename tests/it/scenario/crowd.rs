//! A crowd on one lock: that nothing is quadratic, and nobody is overtaken.
//!
//! These play on batches without the checks that the stories make after each event, which cost as
//! much as the state is large. Nothing is timed: were a step to cost as much as the crowd is
//! large, the tests would take minutes.

use pearing::domain::access::TokenHash;
use pearing::domain::command::{Caller, Command};
use pearing::domain::event::Event;
use pearing::domain::id::{RequestUuid, TicketId, TokenId};
use pearing::domain::name::UserName;
use pearing::domain::scope::LockKey;
use pearing::domain::ticket::TicketInput;
use pearing::domain::time::{LeaseSeconds, WaitSeconds};
use pearing::domain::{Answer, Limits, State};
use pearing::ledger::Ledger;
use pearing::ledger::memory::MemoryLedger;
use pearing::service::batch::{Batch, Closed};
use uuid::Uuid;

use super::names::time;

/// How many wait.
const CROWD: u128 = 5000;

struct Server {
    state: State,
    ledger: MemoryLedger,
}

impl Server {
    fn batch(&mut self, millis: i64, play: impl FnOnce(&mut Batch<'_>)) -> Closed {
        let limits = Limits::default();
        let mut batch = Batch::open(&mut self.state, &self.ledger, &limits, time(millis));
        play(&mut batch);
        let (append, closed) = batch.close();
        self.ledger.append(&append).expect("memory is not full");
        closed
    }
}

fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

fn user(number: u128) -> UserName {
    format!("u{number}").parse().expect("a name")
}

fn lock() -> LockKey {
    LockKey {
        scope: "teams/crowd".parse().expect("a scope"),
        lock_name: "door".parse().expect("a name"),
    }
}

fn acquire(number: u128) -> Command {
    let LockKey { scope, lock_name } = lock();
    let input = TicketInput {
        scope,
        lock_name,
        request_uuid: RequestUuid(id(number)),
        lease_seconds: LeaseSeconds::default(),
        wait_seconds: WaitSeconds::try_from(3600).expect("a wait of an hour"),
        note: None,
        reentrant: true,
    };
    Command::AcquireLock { ticket_id: TicketId(id(number)), input }
}

fn decide(batch: &mut Batch<'_>, caller: Caller, command: &Command) -> Answer {
    let decided = batch.decide(caller, command).expect("memory can be read");
    decided.expect("nothing stands against it")
}

/// Everybody asks for one lock: the first holds it, all others wait.
fn crowded() -> Server {
    let mut server = Server { state: State::default(), ledger: MemoryLedger::default() };
    server.batch(0, |batch| {
        let team: pearing::domain::name::TeamName = "crowd".parse().expect("a name");
        decide(batch, Caller::Ledger, &Command::CreateTeam { team: team.clone() });
        for number in 0..=CROWD {
            let (user, team) = (user(number), team.clone());
            let (token_id, sha256) = (TokenId(id(number)), TokenHash([0; 32]));
            let role = pearing::domain::access::Role::Write;
            let create = Command::CreateUser { user: user.clone(), admin: false };
            decide(batch, Caller::Ledger, &create);
            let (label, expires_in_days, owner) = (None, None, user.clone());
            let issue =
                Command::IssueToken { token_id, user: owner, sha256, label, expires_in_days };
            decide(batch, Caller::Ledger, &issue);
            decide(batch, Caller::Ledger, &Command::SetTeamMember { team, user, role });
        }
    });
    server.batch(0, |batch| {
        for number in 0..=CROWD {
            decide(batch, Caller::Token(TokenId(id(number))), &acquire(number));
        }
    });
    let lock = server.state.lock(&lock()).expect("somebody holds the door");
    let queue: Vec<TicketId> = lock.queue().collect();
    let wanted: Vec<TicketId> = (1..=CROWD).map(|number| TicketId(id(number))).collect();
    assert_eq!(lock.hold.owner, user(0));
    assert!(queue == wanted, "the queue is not in the order of arrival");
    server
}

#[test]
fn a_crowd_on_one_lock_is_promoted_in_the_order_in_which_it_came() {
    let mut server = crowded();
    let closed = server.batch(1000, |batch| {
        for number in 0..=CROWD {
            let release = Command::ReleaseTicket { lock: lock(), ticket_id: TicketId(id(number)) };
            decide(batch, Caller::Token(TokenId(id(number))), &release);
        }
    });
    let promoted: Vec<TicketId> = closed
        .records
        .iter()
        .filter(|record| matches!(record.event, Event::LockPromoted(_)))
        .filter_map(|record| record.event.lock_and_ticket())
        .map(|(_, ticket_id)| ticket_id)
        .collect();
    let wanted: Vec<TicketId> = (1..=CROWD).map(|number| TicketId(id(number))).collect();
    assert!(promoted == wanted, "somebody was overtaken");
    assert!(!server.state.has_holds());
}

#[test]
fn a_crowd_whose_waits_end_at_once_is_settled_in_appends_of_bounded_size() {
    const MOST: usize = 512;
    let mut server = crowded();
    let mut ended = Vec::new();
    for append in 0.. {
        let mut is_done = false;
        let closed = server.batch(3_600_000 + append, |batch| is_done = batch.settle(MOST));
        assert!(closed.records.len() <= MOST, "{} events in one append", closed.records.len());
        let waits = closed.records.iter().filter(|r| matches!(r.event, Event::LockWaitTimedOut(_)));
        ended.extend(waits.filter_map(|wait| Some(wait.event.lock_and_ticket()?.1)));
        if is_done {
            break;
        }
    }
    let wanted: Vec<TicketId> = (1..=CROWD).map(|number| TicketId(id(number))).collect();
    assert!(ended == wanted, "the waits didn't end in the order of their making");
    assert!(!server.state.has_holds(), "the holder's lease was over long before");
}
