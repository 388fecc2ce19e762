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
use crate::domain::ticket::Ticket;
use crate::domain::time::Time;
use crate::domain::{Answer, At, Limits, Past, State, decide, invariant, settle};
use crate::ledger::{Append, Hash, Ledger, LedgerError, Put, Stored};
use crate::projection;

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
        self.puts.extend(projection::puts(&record, ended.as_ref()));
        if let Some(made) = projection::made(&record.event) {
            self.requests.insert((made.owner.clone(), made.request_uuid), made.ticket_id);
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
        let (request, named) = match command {
            Command::AcquireLock { input, .. } => {
                let request = self.request(caller, input.request_uuid)?;
                (request, request)
            }
            Command::HeartbeatTicket { ticket_id, .. }
            | Command::ReleaseTicket { ticket_id, .. } => (None, Some(*ticket_id)),
            Command::BreakLock { .. }
            | Command::CreateUser { .. }
            | Command::DisableUser { .. }
            | Command::EnableUser { .. }
            | Command::IssueToken { .. }
            | Command::RevokeToken { .. }
            | Command::CreateTeam { .. }
            | Command::SetTeamMember { .. }
            | Command::RemoveTeamMember { .. }
            | Command::CreateRepo { .. }
            | Command::GrantAccess { .. }
            | Command::RevokeAccess { .. } => (None, None),
        };
        let ended = named.filter(|id| self.state.ticket(*id).is_none());
        let ticket = ended.map_or(Ok(None), |id| self.ended(id))?;
        Ok(Past { request, ticket })
    }

    fn ended(&self, id: TicketId) -> Result<Option<Ticket>, LedgerError> {
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
        let Caller::Token(token) = caller else { return Ok(None) };
        let Some(token) = self.state.access().token(token) else { return Ok(None) };
        #[cfg(feature = "planted-bugs")]
        if let Some(id) = self.request_of_anybody(request_uuid) {
            return Ok(Some(id));
        }
        match self.requests.get(&(token.user.clone(), request_uuid)) {
            Some(id) => Ok(Some(*id)),
            None => projection::ticket::by_request(self.ledger, &token.user, request_uuid),
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
