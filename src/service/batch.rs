//! The open batch: commands that will share one ledger time and one synced append.
//!
//! Pure but for reads of the past, so the writer and the simulator run the same code. The state
//! that it works on is ahead of what is durable until its append is; nobody else sees that state.

use std::collections::HashMap;

use crate::domain::command::{Caller, Command};
use crate::domain::event::{Event, Record};
use crate::domain::id::{RequestUuid, Sequence, TicketId};
use crate::domain::name::{Actor, UserName};
use crate::domain::refusal::Refusal;
use crate::domain::thread::{ThreadKey, ThreadRow};
use crate::domain::ticket::Ticket;
use crate::domain::time::Time;
use crate::domain::{Answer, At, Limits, Past, State, decide, invariant, settle};
use crate::ledger::keys::Operation;
use crate::ledger::{Append, Hash, Ledger, LedgerError, Put, Stored, Table};
use crate::projection::thread::{level, row};
use crate::projection::{self, request};

/// A batch in the making.
pub struct Batch<'a> {
    state: &'a mut State,
    ledger: &'a dyn Ledger,
    limits: &'a Limits,
    time: Time,
    expected_head: Sequence,
    hash: Hash,
    closed: Closed,
    requests: HashMap<(UserName, RequestUuid), TicketId>,
    written: HashMap<(UserName, Operation, RequestUuid), Sequence>,
    /// What the batch put into the tables of threads, which later commands of it read.
    threads: HashMap<(Table, Vec<u8>), Vec<u8>>,
    stored: Vec<Stored>,
    puts: Vec<Put>,
}

/// What a batch leaves: its records, and the tickets that ended in it.
#[derive(Debug, Default)]
pub struct Closed {
    /// The events, in order.
    pub records: Vec<Record>,
    /// The tickets that ended, by id.
    pub ended: HashMap<TicketId, Ticket>,
}

impl Closed {
    /// The event at a sequence, if it is one of these.
    pub fn record(&self, sequence: Sequence) -> Option<&Record> {
        let found = self.records.binary_search_by_key(&sequence, |record| record.sequence);
        found.ok().and_then(|at| self.records.get(at))
    }
}

impl<'a> Batch<'a> {
    /// Opens a batch at a ledger time, which is never before that of the last event.
    pub fn open(
        state: &'a mut State,
        ledger: &'a dyn Ledger,
        limits: &'a Limits,
        time: Time,
    ) -> Self {
        let head = ledger.head();
        assert_eq!(head.sequence, state.head(), "the state is that of the ledger's head");
        Self {
            time: time.max(state.time()),
            state,
            ledger,
            limits,
            expected_head: head.sequence,
            hash: head.hash,
            closed: Closed::default(),
            requests: HashMap::new(),
            written: HashMap::new(),
            threads: HashMap::new(),
            stored: Vec::new(),
            puts: Vec::new(),
        }
    }

    /// Ends what is due. Stops once the batch has `most_events`: then it returns `false`, more is
    /// due, and no command may be decided before that is settled in a batch with a newer time.
    /// The end of a hold is never parted from its promotion.
    pub fn settle(&mut self, most_events: usize) -> bool {
        while let Some(events) = settle(self.state, self.at()) {
            for event in events {
                self.record(Actor::Ledger, event);
            }
            if self.closed.records.len() >= most_events {
                return settle(self.state, self.at()).is_none();
            }
        }
        true
    }

    /// Decides a command and folds what it makes happen.
    ///
    /// # Errors
    ///
    /// [`LedgerError`] if the past can't be read: then nothing in this batch may be answered.
    pub fn decide(
        &mut self,
        caller: Caller,
        command: &Command,
    ) -> Result<Result<Answer, Refusal>, LedgerError> {
        let past = self.past(caller, command)?;
        let decided = decide(self.state, &past, self.limits, self.at(), caller, command);
        Ok(decided.map(|decision| {
            for event in decision.events {
                self.record(decision.actor.clone(), event);
            }
            decision.answer
        }))
    }

    /// Records an event that no command asked for: start-up, or what is due.
    pub fn record(&mut self, actor: Actor, event: Event) {
        self.record_at(self.state.head().next(), actor, event);
    }

    /// Records an event at a sequence that may leave a gap, which only `ledger.restored` may.
    pub fn record_at(&mut self, sequence: Sequence, actor: Actor, event: Event) {
        let record = Record { sequence, time: self.time, actor, event };
        if let Err(broken) = invariant::check_record(self.state, &record) {
            panic!("the core broke a rule of its own: {broken}");
        }
        let ended = self.state.apply(&record);
        let puts = projection::puts(&record, ended.as_ref());
        if record.event.thread().is_some() {
            let kept = puts.iter().map(|put| ((put.table, put.key.clone()), put.value.clone()));
            self.threads.extend(kept);
        }
        self.puts.extend(puts);
        if let Some(request) = request::request(&record.event) {
            let (user, request_uuid) = (request.user.clone(), request.request_uuid);
            match request.ticket_id {
                Some(ticket_id) => drop(self.requests.insert((user, request_uuid), ticket_id)),
                None => {
                    let key = (user, request.operation, request_uuid);
                    self.written.insert(key, record.sequence);
                }
            }
        }
        let stored = Stored::new(&self.hash, &record);
        self.hash = stored.hash;
        self.stored.push(stored);
        if let Some(ticket) = ended {
            self.closed.ended.insert(ticket.id, ticket);
        }
        self.closed.records.push(record);
    }

    /// The state with everything that the batch did so far.
    pub fn state(&self) -> &State {
        self.state
    }

    /// Ends the batch: what to append, and what to tell those who wait for it.
    pub fn close(self) -> (Append, Closed) {
        let append =
            Append { expected_head: self.expected_head, records: self.stored, puts: self.puts };
        (append, self.closed)
    }

    fn at(&self) -> At {
        At { time: self.time, next_sequence: self.state.head().next() }
    }

    /// What is over and bears on a command, through the overlay of this batch.
    fn past(&self, caller: Caller, command: &Command) -> Result<Past, LedgerError> {
        let mut past = Past::default();
        match command {
            Command::AcquireLock { input, .. } => {
                past.request = self.request(caller, input.request_uuid)?;
                past.ticket = past.request.map_or(Ok(None), |id| self.ended(id))?;
            }
            Command::HeartbeatTicket { ticket_id, .. }
            | Command::ReleaseTicket { ticket_id, .. } => past.ticket = self.ended(*ticket_id)?,
            Command::UpdateActivity { request_uuid, .. } => {
                past.written = self.written(caller, Operation::UpdateActivity, *request_uuid)?;
            }
            Command::CreateThread { scope, number, terms, .. } => {
                let named = number.map(|number| ThreadKey { scope: scope.clone(), number });
                past.thread = named.map_or(Ok(None), |thread| self.thread(&thread))?;
                past.written = self.written(caller, Operation::CreateThread, terms.request_uuid)?;
            }
            Command::CreateReply { thread, input, terms, .. } => {
                past.thread = self.thread(thread)?;
                let parent = |id| level(thread, id, |table, key| self.thread_part(table, key));
                past.parent_level = input.parent.map_or(Ok(None), parent)?;
                past.written = self.written(caller, Operation::CreateReply, terms.request_uuid)?;
            }
            Command::CloseThread { thread, terms } => {
                past.thread = self.thread(thread)?;
                past.written = self.written(caller, Operation::CloseThread, terms.request_uuid)?;
            }
            Command::ReopenThread { thread, terms } => {
                past.thread = self.thread(thread)?;
                past.written = self.written(caller, Operation::ReopenThread, terms.request_uuid)?;
            }
            Command::BreakLock { .. }
            | Command::CreateUser { .. }
            | Command::DisableUser { .. }
            | Command::EnableUser { .. }
            | Command::IssueToken { .. }
            | Command::RevokeToken { .. }
            | Command::CreateAgent { .. }
            | Command::RevokeAgentTokens { .. }
            | Command::CreateTeam { .. }
            | Command::SetTeamMember { .. }
            | Command::RemoveTeamMember { .. }
            | Command::CreateRepo { .. }
            | Command::GrantAccess { .. }
            | Command::RevokeAccess { .. }
            | Command::ClearActivity => {}
        }
        Ok(past)
    }

    fn thread(&self, thread: &ThreadKey) -> Result<Option<ThreadRow>, LedgerError> {
        row(thread, |table, key| self.thread_part(table, key))
    }

    fn thread_part(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, LedgerError> {
        match self.threads.get(&(table, key.to_vec())) {
            Some(value) => Ok(Some(value.clone())),
            None => self.ledger.get(table, key),
        }
    }

    /// What the caller wrote under a request UUID, if it gives one.
    fn written(
        &self,
        caller: Caller,
        operation: Operation,
        request_uuid: Option<RequestUuid>,
    ) -> Result<Option<Record>, LedgerError> {
        let (Some(user), Some(request_uuid)) = (self.user(caller), request_uuid) else {
            return Ok(None);
        };
        let known = self.written.get(&(user.clone(), operation, request_uuid)).copied();
        let known = match known {
            Some(sequence) => Some(sequence),
            None => request::written(self.ledger, user, operation, request_uuid)?,
        };
        let Some(sequence) = known else { return Ok(None) };
        match self.closed.record(sequence) {
            Some(record) => Ok(Some(record.clone())),
            None => request::record(self.ledger, sequence).map(Some),
        }
    }

    fn user(&self, caller: Caller) -> Option<&UserName> {
        let Caller::Token(token) = caller else { return None };
        self.state.access().token(token).map(|token| &token.user)
    }

    /// A ticket that has ended.
    fn ended(&self, id: TicketId) -> Result<Option<Ticket>, LedgerError> {
        if self.state.ticket(id).is_some() {
            return Ok(None);
        }
        match self.closed.ended.get(&id) {
            Some(ticket) => Ok(Some(ticket.clone())),
            None => projection::ticket::ended(self.ledger, id),
        }
    }

    fn request(
        &self,
        caller: Caller,
        request_uuid: RequestUuid,
    ) -> Result<Option<TicketId>, LedgerError> {
        let Some(user) = self.user(caller) else { return Ok(None) };
        #[cfg(feature = "planted-bugs")]
        if let Some(id) = self.request_of_anybody(request_uuid) {
            return Ok(Some(id));
        }
        match self.requests.get(&(user.clone(), request_uuid)) {
            Some(id) => Ok(Some(*id)),
            None => projection::ticket::by_request(self.ledger, user, request_uuid),
        }
    }

    #[cfg(feature = "planted-bugs")]
    fn request_of_anybody(&self, request_uuid: RequestUuid) -> Option<TicketId> {
        use crate::domain::planted::{Planted, is_planted};
        is_planted(Planted::RequestUuidWithoutIdentity).then_some(())?;
        let is_same = |ticket: &&Ticket| ticket.input.request_uuid == request_uuid;
        self.state.tickets().find(is_same).map(|ticket| ticket.id)
    }
}
