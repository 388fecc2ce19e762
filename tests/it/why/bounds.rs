//! A story stays short, and reads little, however long the history of its lock is.

use std::sync::atomic::{AtomicUsize, Ordering};

use pearing::audit::why::why;
use pearing::domain::access::{Role, TokenHash};
use pearing::domain::command::{Caller, Command};
use pearing::domain::event::{Event, LedgerOpened};
use pearing::domain::id::{LedgerId, RequestUuid, Sequence, TicketId, TokenId};
use pearing::domain::name::Actor;
use pearing::domain::scope::LockKey;
use pearing::domain::ticket::TicketInput;
use pearing::domain::time::Time;
use pearing::domain::{Limits, State};
use pearing::ledger::memory::MemoryLedger;
use pearing::ledger::{Append, Head, Ledger, LedgerError, Pair, Stored, Table};
use pearing::service::batch::Batch;
use pearing::wire::why::Why;
use uuid::Uuid;

/// How many commands share an append.
const BATCH: usize = 1000;

/// 2026-01-01T00:00:00Z
const START_MILLIS: i64 = 1_767_225_600_000;

/// A ledger that counts the records and rows that are read of it.
#[derive(Default)]
struct World {
    ledger: MemoryLedger,
    state: State,
    millis: i64,
    made: u128,
    reads: AtomicUsize,
}

impl World {
    /// A world with these users, who may all take locks in a team.
    fn of(users: &[String]) -> Self {
        let mut world = Self { millis: START_MILLIS, ..Self::default() };
        let event = Event::LedgerOpened(LedgerOpened { ledger_id: LedgerId(Uuid::from_u128(1)) });
        world.batch(|batch| batch.record(Actor::Ledger, event));
        let mut commands = vec![Command::CreateTeam { team: parsed("platform") }];
        for (at, user) in users.iter().enumerate() {
            let user = || parsed(user);
            let (token_id, sha256) = (token(at), TokenHash([0; 32]));
            commands.push(Command::CreateUser { user: user(), admin: false });
            let (label, expires_in_days) = (None, None);
            let token =
                Command::IssueToken { token_id, user: user(), sha256, label, expires_in_days };
            let (team, role) = (parsed("platform"), Role::Write);
            commands.extend([token, Command::SetTeamMember { team, user: user(), role }]);
        }
        world.decide(commands.into_iter().map(|command| (Caller::Ledger, command)).collect());
        world
    }

    fn batch(&mut self, fill: impl FnOnce(&mut Batch<'_>)) {
        let (limits, time) = (Limits::default(), Time::from_millis(self.millis));
        let mut batch = Batch::open(&mut self.state, &self.ledger, &limits, time);
        assert!(batch.settle(usize::MAX));
        fill(&mut batch);
        self.ledger.append(&batch.close().0).expect("the memory doesn't fail");
    }

    /// Decides commands, none of which may be refused.
    fn decide(&mut self, commands: Vec<(Caller, Command)>) {
        for commands in commands.chunks(BATCH) {
            self.batch(|batch| {
                for (caller, command) in commands {
                    let decided = batch.decide(*caller, command).expect("it can be read");
                    decided.expect("it is allowed");
                }
            });
        }
    }

    /// Has a user acquire the lock; returns the ticket.
    fn acquire(&mut self, user: usize, wait: u64) -> TicketId {
        self.made += 1;
        let (ticket_id, uuid) = (TicketId(Uuid::from_u128(self.made)), Uuid::from_u128(self.made));
        let input = TicketInput {
            scope: lock().scope,
            lock_name: lock().lock_name,
            request_uuid: RequestUuid(uuid),
            lease_seconds: 300.try_into().expect("a lease"),
            wait_seconds: wait.try_into().expect("a wait"),
            note: None,
            reentrant: true,
        };
        let command = Command::AcquireLock { ticket_id, input };
        self.decide(vec![(Caller::Token(token(user)), command)]);
        ticket_id
    }

    fn release(&mut self, user: usize, ticket_id: TicketId) {
        let command = Command::ReleaseTicket { lock: lock(), ticket_id };
        self.decide(vec![(Caller::Token(token(user)), command)]);
    }

    fn why(&self, ticket_id: TicketId) -> Why {
        self.reads.store(0, Ordering::Relaxed);
        why(self, &self.state, ticket_id).expect("it can be read").expect("there is a story")
    }

    fn reads(&self) -> usize {
        self.reads.load(Ordering::Relaxed)
    }
}

impl Ledger for World {
    fn head(&self) -> Head {
        self.ledger.head()
    }

    fn append(&self, append: &Append) -> Result<(), LedgerError> {
        Ledger::append(&self.ledger, append)
    }

    fn frozen(&self) -> Result<Box<dyn Ledger + '_>, LedgerError> {
        self.ledger.frozen()
    }

    fn records_within(
        &self,
        after: Sequence,
        most: usize,
        bytes: usize,
    ) -> Result<Vec<Stored>, LedgerError> {
        let found = self.ledger.records_within(after, most, bytes)?;
        self.reads.fetch_add(found.len(), Ordering::Relaxed);
        Ok(found)
    }

    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, LedgerError> {
        self.ledger.get(table, key)
    }

    fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        after: &[u8],
        most: usize,
    ) -> Result<Vec<Pair>, LedgerError> {
        let found = self.ledger.scan(table, prefix, after, most)?;
        self.reads.fetch_add(found.len(), Ordering::Relaxed);
        Ok(found)
    }
}

fn parsed<T: std::str::FromStr>(text: &str) -> T {
    text.parse().ok().expect("a name that keeps the rules")
}

fn lock() -> LockKey {
    LockKey { scope: parsed("teams/platform"), lock_name: parsed("build") }
}

fn token(user: usize) -> TokenId {
    TokenId(Uuid::from_u128(1_000_000 + user as u128))
}

#[test]
fn a_story_with_thousands_ahead_is_summed_up() {
    const AHEAD: usize = 5000;
    let users: Vec<String> = (0..=AHEAD + 1).map(|n| format!("u{n}")).collect();
    let mut world = World::of(&users);
    let tickets: Vec<TicketId> = (0..=AHEAD + 1).map(|user| world.acquire(user, 3600)).collect();
    let last = tickets[AHEAD + 1];
    let waiting = world.why(last);
    assert!(waiting.steps[0].text.contains("u1 ("), "{waiting}");
    let named = "u3 (15012) and 4,997 others, and would wait for up to 1 h";
    assert!(waiting.steps[0].text.contains(named), "{waiting}");
    assert_eq!(waiting.steps.len(), 2, "{waiting}");
    // Each has it for a while, but for some, who leave.
    for (user, ticket) in tickets[..=AHEAD].iter().enumerate() {
        world.millis += 50;
        if user % 10 == 9 {
            world.release(user + 1, tickets[user + 1]);
        }
        if user % 10 != 0 || user == 0 {
            world.release(user, *ticket);
        }
    }
    let told = world.why(last);
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("thousands_ahead", told.to_string());
    });
    assert!(world.reads() < 100_000, "{} records and rows were read", world.reads());
}

#[test]
fn a_story_stops_reading_where_a_history_is_too_long_and_says_so() {
    const BEATS: usize = 150_000;
    let users: Vec<String> = ["ana", "bo"].map(str::to_owned).to_vec();
    let mut world = World::of(&users);
    let held = world.acquire(0, 0);
    let waiting = world.acquire(1, 3600);
    let beat = Command::HeartbeatTicket { lock: lock(), ticket_id: held, lease: None };
    for _ in 0..BEATS / BATCH {
        world.millis += 1000;
        world.decide(vec![(Caller::Token(token(0)), beat.clone()); BATCH]);
    }
    world.millis += 400_000;
    world.batch(|_| ());
    // Of the holder: not how many heartbeats, but which was the last one, and what it led to.
    let told = world.why(held);
    let text = told.to_string();
    assert!(text.contains("ana sent at least 50,"), "{text}");
    assert!(text.contains("5 min after the last heartbeat (150010)"), "{text}");
    assert!(world.reads() < 160_000, "{} records and rows were read", world.reads());
    // Of the waiter: who was there when it came, and what freed the lock.
    let told = world.why(waiting);
    let text = told.to_string();
    assert!(text.contains("more events after (50010) than are told here"), "{text}");
    assert!(
        text.contains("expired at 00:09:10.000 (150011), which freed the lock for bo"),
        "{text}"
    );
    assert!(world.reads() < 160_000, "{} records and rows were read", world.reads());
}
