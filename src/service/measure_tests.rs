//! Each number follows from the events of an append, in ledger time.

use super::*;
use crate::domain::Limits;
use crate::domain::command::{Caller, Command};
use crate::domain::event::LedgerOpened;
use crate::domain::id::{LedgerId, RequestUuid, TokenId};
use crate::domain::name::Actor;
use crate::domain::ticket::TicketInput;
use crate::domain::time::{LeaseSeconds, WaitSeconds};
use crate::ledger::memory::MemoryLedger;
use crate::service::batch::Batch;

const ANA: u128 = 1;
const BO: u128 = 2;

/// A service without threads, in which ana and bo administer the server.
#[derive(Default)]
struct World {
    ledger: MemoryLedger,
    state: State,
    metrics: Metrics,
}

fn ticket_id(number: u128) -> TicketId {
    TicketId(uuid::Uuid::from_u128(number))
}

fn token_id(user: u128) -> TokenId {
    TokenId(uuid::Uuid::from_u128(user))
}

/// Asks for the one lock. `number` is that of the ticket.
fn acquire(number: u128, lease: u64, wait: u64) -> Command {
    let input = TicketInput {
        scope: "users/ana".parse().expect("a scope"),
        lock_name: "build".parse().expect("a name"),
        request_uuid: RequestUuid(uuid::Uuid::from_u128(number)),
        lease_seconds: LeaseSeconds::try_from(lease).expect("it is in its range"),
        wait_seconds: WaitSeconds::try_from(wait).expect("it is in its range"),
        note: None,
        reentrant: true,
    };
    Command::AcquireLock { ticket_id: ticket_id(number), input }
}

fn release(number: u128) -> Command {
    let Command::AcquireLock { ticket_id, input } = acquire(number, 60, 0) else {
        unreachable!("it is one")
    };
    Command::ReleaseTicket { lock: input.lock(), ticket_id }
}

impl World {
    fn new() -> Self {
        let mut world = Self::default();
        let mut commands = Vec::new();
        for (user, number) in [("ana", ANA), ("bo", BO)] {
            let user: crate::domain::name::UserName = user.parse().expect("a name");
            commands.push(Command::CreateUser { user: user.clone(), admin: true });
            commands.push(Command::IssueToken {
                token_id: token_id(number),
                user,
                sha256: crate::domain::access::TokenHash([0; 32]),
                label: None,
                expires_in_days: None,
            });
        }
        let opened = LedgerOpened { ledger_id: LedgerId(uuid::Uuid::nil()) };
        world.batch(0, |batch| {
            batch.record(Actor::Ledger, Event::LedgerOpened(opened));
            for command in &commands {
                let decided = batch.decide(Caller::Ledger, command).expect("it can be read");
                decided.expect("nothing stands against the first users");
            }
        });
        world
    }

    /// One append at a second.
    fn batch(&mut self, second: u32, fill: impl FnOnce(&mut Batch<'_>)) {
        let limits = Limits::default();
        let time = Time::from_millis(0).plus_seconds(second);
        let mut batch = Batch::open(&mut self.state, &self.ledger, &limits, time);
        assert!(batch.settle(usize::MAX));
        fill(&mut batch);
        let (append, closed) = batch.close();
        self.ledger.append(&append).expect("the memory doesn't fail");
        count(&self.metrics, &self.ledger, &self.state, &closed).expect("it can be read");
    }

    fn ask(&mut self, second: u32, asks: &[(u128, Command)]) {
        self.batch(second, |batch| {
            for (user, command) in asks {
                let caller = Caller::Token(token_id(*user));
                let decided = batch.decide(caller, command).expect("the memory can be read");
                decided.expect("nothing stands against it");
            }
        });
    }

    /// How many waits and holds were noted, and how many seconds they were together.
    fn spans(&self) -> [(u64, f64); 2] {
        let text = self.metrics.to_text();
        let value = |series: &str| {
            let mut values = text.lines().filter_map(|line| line.strip_prefix(series));
            values.next().expect("the series is there").trim()
        };
        ["wait", "hold"].map(|name| {
            let count = value(&format!("pearing_{name}_seconds_count"));
            let sum = value(&format!("pearing_{name}_seconds_sum"));
            (count.parse().expect("a number"), sum.parse().expect("a number"))
        })
    }
}

#[test]
fn waits_and_holds_are_as_long_as_the_ledger_says() {
    let mut world = World::new();
    world.ask(1, &[(ANA, acquire(1, 60, 0)), (BO, acquire(2, 60, 300))]);
    assert_eq!(world.spans(), [(0, 0.0), (0, 0.0)]);
    world.ask(31, &[(ANA, release(1))]);
    assert_eq!(world.spans(), [(1, 30.0), (1, 30.0)]);
    assert_eq!((world.metrics.promoted.get(), world.metrics.expired.get()), (1, 0));
    // Nobody asks; bo's lease runs out at 91.
    world.ask(100, &[]);
    assert_eq!(world.spans(), [(1, 30.0), (2, 30.0 + 69.0)]);
    assert_eq!((world.metrics.promoted.get(), world.metrics.expired.get()), (1, 1));
}

#[test]
fn a_hold_lasts_from_its_first_ticket_to_the_end_of_its_last() {
    let mut world = World::new();
    world.ask(1, &[(ANA, acquire(1, 60, 0))]);
    world.ask(11, &[(ANA, acquire(2, 60, 0)), (ANA, release(1))]);
    assert_eq!(world.spans()[1], (0, 0.0), "the second ticket goes on with the hold");
    world.ask(21, &[(ANA, release(2))]);
    assert_eq!(world.spans()[1], (1, 20.0));
    // All of it in one append, and one that was promoted together with an earlier ticket.
    world.ask(30, &[(ANA, acquire(3, 60, 0)), (ANA, acquire(4, 60, 0)), (ANA, release(3))]);
    world.ask(40, &[(BO, acquire(5, 60, 300)), (BO, acquire(6, 60, 300)), (ANA, release(4))]);
    assert_eq!(world.spans(), [(2, 0.0), (2, 30.0)]);
    world.ask(45, &[(BO, release(5))]);
    world.ask(50, &[(BO, release(6))]);
    assert_eq!(world.spans()[1], (3, 40.0));
}

#[test]
fn a_wait_that_runs_out_and_one_that_would_deadlock_are_counted() {
    let mut world = World::new();
    world.ask(1, &[(ANA, acquire(1, 60, 0)), (BO, acquire(2, 60, 5))]);
    world.ask(10, &[]);
    let other = |number| match acquire(number, 60, 60) {
        Command::AcquireLock { ticket_id, mut input } => {
            input.lock_name = "other".parse().expect("a name");
            Command::AcquireLock { ticket_id, input }
        }
        _ => unreachable!("it is one"),
    };
    let asks = [(BO, other(3)), (BO, acquire(4, 60, 60)), (ANA, other(5))];
    world.ask(11, &asks);
    let metrics = &world.metrics;
    assert_eq!((metrics.wait_timed_out.get(), metrics.deadlocks.get()), (1, 1));
    assert_eq!(world.spans(), [(0, 0.0), (0, 0.0)]);
}
