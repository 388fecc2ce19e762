//! Ledgers for the tests of pictures: made by the real core, in simulated time.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::model::{Range, TICKETS_MAX, Timeline};
use crate::domain::access::{Role, TokenHash};
use crate::domain::command::{Caller, Command};
use crate::domain::event::{Event, LedgerOpened, LedgerRecovered, LedgerRestored, Record};
use crate::domain::id::{LedgerId, RequestUuid, Sequence, TicketId, TokenId};
use crate::domain::name::Actor;
use crate::domain::scope::{LockKey, Scope};
use crate::domain::text::ShortText;
use crate::domain::ticket::TicketInput;
use crate::domain::time::Time;
use crate::domain::{Answer, At, Limits, Past, State, decide, settle};
use crate::ledger::memory::MemoryLedger;
use crate::ledger::{Append, Ledger as _, Stored};
use crate::projection;

pub(super) const REPO: &str = "teams/platform/website";

/// 2026-01-31T12:00:00Z, as good as any other.
const START: i64 = 1_769_860_800_000;

/// A ledger, and the server that writes it.
pub(super) struct Story {
    state: State,
    pub(super) ledger: MemoryLedger,
    tokens: BTreeMap<String, TokenId>,
    now: Time,
    made: u128,
}

/// What an acquire asks for, beside the lock.
pub(super) struct Ask<'a> {
    pub(super) lease: u64,
    pub(super) wait: u64,
    pub(super) note: Option<&'a str>,
    pub(super) reentrant: bool,
}

pub(super) fn lease(lease: u64) -> Ask<'static> {
    Ask { lease, wait: 0, note: None, reentrant: true }
}

pub(super) fn wait(lease: u64, wait: u64) -> Ask<'static> {
    Ask { lease, wait, note: None, reentrant: true }
}

fn name<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
    text.parse().expect("a name")
}

pub(super) fn text(text: &str) -> ShortText {
    text.to_owned().try_into().expect("a short text")
}

fn key(lock: &str) -> LockKey {
    LockKey { scope: name(REPO), lock_name: name(lock) }
}

impl Story {
    /// With users who may write, and `root`, who administers everything.
    pub(super) fn of(users: &[&str]) -> Self {
        let mut story = Self {
            state: State::default(),
            ledger: MemoryLedger::default(),
            tokens: BTreeMap::new(),
            now: Time::from_millis(START),
            made: 0,
        };
        let ledger_id = LedgerId(story.uuid());
        let opened = Event::LedgerOpened(LedgerOpened { ledger_id });
        story.append(Actor::Ledger, vec![(None, opened)]);
        let team = || name("platform");
        story.found(Command::CreateTeam { team: team() });
        for user in users.iter().chain(&["root"]) {
            let token_id = TokenId(story.uuid());
            story.tokens.insert((*user).to_owned(), token_id);
            story.found(Command::CreateUser { user: name(user), admin: *user == "root" });
            story.found(Command::IssueToken {
                token_id,
                user: name(user),
                sha256: TokenHash([0; 32]),
                label: None,
                expires_in_days: None,
            });
            let member = |user| Command::SetTeamMember { team: team(), user, role: Role::Write };
            story.found(member(name(user)));
        }
        story.found(Command::CreateRepo { repo: name(REPO) });
        story
    }

    /// Time goes on to so many milliseconds after the start; what is due on the way ends when it
    /// is due.
    pub(super) fn at(&mut self, millis: i64) -> &mut Self {
        let end = Time::from_millis(START + millis);
        while let Some(due) = self.state.next_deadline().filter(|due| *due <= end) {
            self.now = due.max(self.now);
            self.settle();
        }
        self.now = end.max(self.now);
        self
    }

    /// Time goes on without anybody who looks at deadlines, and then a server starts.
    pub(super) fn restart(&mut self, millis: i64) {
        self.now = Time::from_millis(START + millis);
        let recovered = Event::LedgerRecovered(LedgerRecovered { grace_seconds: 10 });
        self.append(Actor::Ledger, vec![(None, recovered)]);
        self.settle();
    }

    /// Sequences jump.
    pub(super) fn restore(&mut self, reason: &str) {
        let last_sequence = self.state.head();
        let restored = LedgerRestored { last_sequence, reason: text(reason) };
        let jump = Some(Sequence(last_sequence.0 + 1_000_000));
        self.append(Actor::Ledger, vec![(jump, Event::LedgerRestored(restored))]);
    }

    pub(super) fn acquire(&mut self, user: &str, lock: &str, ask: Ask<'_>) -> TicketId {
        let LockKey { scope, lock_name } = key(lock);
        let (ticket_id, request_uuid) = (TicketId(self.uuid()), RequestUuid(self.uuid()));
        let input = TicketInput {
            scope,
            lock_name,
            request_uuid,
            lease_seconds: ask.lease.try_into().expect("a lease"),
            wait_seconds: ask.wait.try_into().expect("a wait"),
            note: ask.note.map(text),
            reentrant: ask.reentrant,
        };
        self.command(user, Command::AcquireLock { ticket_id, input });
        ticket_id
    }

    pub(super) fn heartbeat(&mut self, user: &str, ticket_id: TicketId) {
        let lock = self.lock_of(ticket_id);
        self.command(user, Command::HeartbeatTicket { lock, ticket_id, lease: None });
    }

    pub(super) fn release(&mut self, user: &str, ticket_id: TicketId) {
        let lock = self.lock_of(ticket_id);
        self.command(user, Command::ReleaseTicket { lock, ticket_id });
    }

    pub(super) fn break_lock(&mut self, lock: &str, reason: &str) {
        let lock = key(lock);
        let fence_token = self.state.lock(&lock).expect("it is held").hold.fence_token;
        self.command("root", Command::BreakLock { lock, fence_token, reason: text(reason) });
    }

    pub(super) fn remove(&mut self, user: &str) {
        self.command(
            "root",
            Command::RemoveTeamMember { team: name("platform"), user: name(user) },
        );
    }

    /// Who holds a lock, by its first ticket.
    pub(super) fn holder(&self, lock: &str) -> Option<(String, TicketId)> {
        let hold = &self.state.lock(&key(lock))?.hold;
        Some((hold.owner.to_string(), *hold.tickets.first()?))
    }

    /// The whole of a lock's story, or of all locks'.
    pub(super) fn timeline(&self, lock: Option<&str>) -> Timeline {
        self.timeline_of(lock, Range::default(), TICKETS_MAX)
    }

    pub(super) fn timeline_of(&self, lock: Option<&str>, range: Range, most: usize) -> Timeline {
        let (scope, lock): (Scope, _) = (name(REPO), lock.map(name));
        let until = (self.state.head(), self.now);
        Timeline::read(&self.ledger, &scope, lock.as_ref(), range, until, most)
            .expect("it can be read")
    }

    pub(super) fn head(&self) -> Sequence {
        self.state.head()
    }

    fn lock_of(&self, ticket_id: TicketId) -> LockKey {
        self.state.ticket(ticket_id).expect("it lives").lock()
    }

    fn found(&mut self, command: Command) {
        self.decide(Caller::Ledger, &command);
    }

    fn command(&mut self, user: &str, command: Command) {
        let token = *self.tokens.get(user).expect("a user of the story");
        self.decide(Caller::Token(token), &command);
    }

    fn decide(&mut self, caller: Caller, command: &Command) -> Answer {
        let (at, past) = (self.place(), Past::default());
        let decided = decide(&self.state, &past, &Limits::default(), at, caller, command);
        let decision = decided.unwrap_or_else(|refusal| panic!("{command:?}: {refusal:?}"));
        let events = decision.events.into_iter().map(|event| (None, event)).collect();
        self.append(decision.actor, events);
        decision.answer
    }

    fn settle(&mut self) {
        while let Some(events) = settle(&self.state, self.place()) {
            self.append(Actor::Ledger, events.into_iter().map(|event| (None, event)).collect());
        }
    }

    fn place(&self) -> At {
        At { time: self.now, next_sequence: self.state.head().next() }
    }

    fn append(&mut self, actor: Actor, events: Vec<(Option<Sequence>, Event)>) {
        let head = self.ledger.head();
        let (mut hash, mut records, mut puts) = (head.hash, Vec::new(), Vec::new());
        for (sequence, event) in events {
            let sequence = sequence.unwrap_or(self.state.head().next());
            let (time, actor) = (self.now, actor.clone());
            let record = Record { sequence, time, actor, event };
            let ended = self.state.apply(&record);
            puts.extend(projection::puts(&record, ended.as_ref()));
            let stored = Stored::new(&hash, &record);
            hash = stored.hash;
            records.push(stored);
        }
        let append = Append { expected_head: head.sequence, records, puts };
        self.ledger.append(&append).expect("the memory doesn't fail");
    }

    /// Another id, which looks like any other.
    fn uuid(&mut self) -> Uuid {
        self.made += 1;
        Uuid::from_u128(self.made.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
    }
}
