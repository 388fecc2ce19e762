//! Follows the stored records and says whether they are what they should be.
//!
//! It sees what a reader of the ledger sees: bytes. From them it folds a state of its own, lets
//! the naive model and the auditor say what must stand there, and compares at every event.

use std::collections::{HashMap, VecDeque};

use pearing::domain::command::{Caller, Command};
use pearing::domain::event::{Event, Record};
use pearing::domain::id::TicketId;
use pearing::domain::name::Actor;
use pearing::domain::refusal::Refusal;
use pearing::domain::scope::LockKey;
use pearing::domain::ticket::Ticket;
use pearing::domain::time::Time;
use pearing::domain::{Answer, State, invariant};
use pearing::ledger::chain::link;
use pearing::ledger::{Head, Stored};

use super::auditor::Auditor;
use super::coverage::Coverage;
use super::naive::{self, Kind, Naive, View};
use super::translate;

/// What the pipeline answered to a command.
pub(crate) type Given = Result<Answer, Refusal>;

/// Follows a ledger.
pub(crate) struct Judge {
    pub(crate) naive: Naive,
    pub(crate) coverage: Coverage,
    /// Folded from the stored bytes.
    state: State,
    ended: HashMap<TicketId, Ticket>,
    auditor: Auditor,
    head: Head,
    /// The records of the append that is being judged, those seen taken off.
    records: VecDeque<Record>,
}

impl Judge {
    pub(crate) fn new(limits: naive::Limits) -> Self {
        Self {
            naive: Naive::new(limits),
            coverage: Coverage::default(),
            state: State::default(),
            ended: HashMap::new(),
            auditor: Auditor::default(),
            head: Head::default(),
            records: VecDeque::new(),
        }
    }

    /// The state that the stored bytes fold into.
    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// The head of what was judged.
    pub(crate) fn head(&self) -> Head {
        self.head
    }

    /// A ticket, live or ended, as the stored bytes made it.
    pub(crate) fn ticket(&self, ticket_id: TicketId) -> Option<&Ticket> {
        self.state.ticket(ticket_id).or_else(|| self.ended.get(&ticket_id))
    }

    /// Takes up what became durable.
    pub(crate) fn take(&mut self, records: &[Stored]) -> Result<(), String> {
        for stored in records {
            let record = stored.decode().map_err(|error| error.to_string())?;
            if stored.hash != link(&self.head.hash, &stored.bytes) {
                return Err(format!("the chain breaks at {}", stored.sequence));
            }
            self.head = stored.head();
            self.records.push_back(record);
        }
        Ok(())
    }

    /// Expects the event that opens a ledger.
    pub(crate) fn opened(&mut self) -> Result<(), String> {
        let record = self.records.pop_front().ok_or("a new ledger isn't opened")?;
        if !matches!(record.event, Event::LedgerOpened(_)) {
            return Err(format!("opened with {record:?}"));
        }
        self.fold(&record)
    }

    /// Expects what a start appends before all else: first that events may be lost, if so.
    pub(crate) fn resumed(&mut self, now: Time, gap: Option<&str>) -> Result<(), String> {
        if let Some(reason) = gap {
            let expected = self.naive.restore(now, reason);
            self.happened(now, &Actor::Ledger, vec![expected])?;
        }
        let expected = self.naive.recover(now);
        self.happened(now, &Actor::Ledger, expected.into_iter().collect())
    }

    /// Expects what comes due by `now`: all of it, or as much as the append has.
    pub(crate) fn settled(&mut self, now: Time, is_all: bool) -> Result<(), String> {
        while is_all || !self.records.is_empty() {
            let Some(expected) = self.naive.settle_next(now) else {
                return if is_all { Ok(()) } else { Err("settling goes on for nothing".into()) };
            };
            self.happened(now, &Actor::Ledger, expected)?;
        }
        let is_more_due = self.naive.next_deadline().is_some_and(|deadline| deadline <= now);
        if is_more_due { Ok(()) } else { Err("settling stopped with nothing more due".into()) }
    }

    /// Expects what a command makes happen, and its answer. Gives back the ticket that the
    /// answer shows.
    pub(crate) fn decided(
        &mut self,
        now: Time,
        caller: Caller,
        command: &Command,
        given: &Given,
    ) -> Result<Option<View>, String> {
        let actor = match caller {
            Caller::Ledger => Actor::Ledger,
            Caller::Token(token) => self.naive.token_user(token).map_or(Actor::Ledger, Actor::User),
        };
        let expected = self.naive.decide(now, caller, command);
        let (given, expected) = match (given, expected) {
            (Err(refusal), Err(refused)) if translate::refused(refusal) == refused => {
                self.coverage.count_refusal(command, refused);
                return self.check_refusal(command, refusal).map(|()| None);
            }
            (Ok(answer), Ok(outcome)) => (answer, outcome),
            (given, expected) => return Err(differs("answer", &expected, &given)),
        };
        let (answer, events) = expected;
        self.happened(now, &actor, events)?;
        let view = self.check_answer(command, given, &answer)?;
        self.coverage.count_answer(command, &answer, view.as_ref());
        Ok(view)
    }

    /// Ends an append: nothing is left over, and the live state is what the bytes fold into.
    pub(crate) fn end(&mut self, live: &State) -> Result<(), String> {
        if let Some(record) = self.records.front() {
            return Err(format!("the model knows nothing of {record:?}"));
        }
        if *live != self.state {
            let folded = &self.state;
            return Err(format!("invariant 8: live {live:#?}\nbut folded {folded:#?}"));
        }
        if self.naive.sequence() != self.state.head().0 {
            return Err(differs("head", &self.naive.sequence(), &self.state.head()));
        }
        if self.naive.next_deadline() != self.state.next_deadline() {
            let (expected, found) = (self.naive.next_deadline(), self.state.next_deadline());
            return Err(differs("next deadline", &expected, &found));
        }
        self.check_live_tickets()
    }

    fn check_live_tickets(&self) -> Result<(), String> {
        let mut count = 0;
        for ticket in self.naive.tickets().iter().filter(|ticket| ticket.is_live()) {
            count += 1;
            self.check_ticket(ticket.id)?;
        }
        if count != self.state.tickets().count() {
            return Err(differs("number of live tickets", &count, &self.state.tickets().count()));
        }
        Ok(())
    }

    /// Compares a ticket with the model's, and gives it back as the model sees it.
    pub(crate) fn check_ticket(&self, ticket_id: TicketId) -> Result<View, String> {
        let expected = self.naive.view(ticket_id);
        let found = self.ticket(ticket_id).map(|ticket| translate::view(&self.state, ticket));
        match expected {
            Some(view) if found.as_ref() == Some(&view) => Ok(view),
            expected => Err(differs("ticket", &expected, &found)),
        }
    }

    fn check_answer(
        &self,
        command: &Command,
        given: &Answer,
        expected: &naive::Answer,
    ) -> Result<Option<View>, String> {
        let found = match given {
            Answer::Ticket { ticket_id, is_replay } => {
                naive::Answer::Ticket { ticket_id: *ticket_id, is_replay: *is_replay }
            }
            Answer::Lock(_) => naive::Answer::Lock,
            Answer::Thread { thread, written, is_replay } => naive::Answer::Thread {
                thread: thread.clone(),
                written: written.map(|sequence| sequence.0),
                is_replay: *is_replay,
            },
            Answer::Activity { user, is_replay } => {
                naive::Answer::Activity { user: user.clone(), is_replay: *is_replay }
            }
            Answer::Done => naive::Answer::Done,
        };
        if found != *expected {
            return Err(differs("answer", expected, given));
        }
        match (given, command) {
            (Answer::Ticket { ticket_id, .. }, _) => self.check_ticket(*ticket_id).map(Some),
            (Answer::Lock(shown), Command::BreakLock { lock, .. }) if shown == lock => Ok(None),
            (Answer::Lock(_), _) => Err(format!("{given:?} is not the lock asked about")),
            (Answer::Thread { .. } | Answer::Activity { .. } | Answer::Done, _) => Ok(None),
        }
    }

    /// A refusal that shows something must show what is so.
    fn check_refusal(&self, command: &Command, refusal: &Refusal) -> Result<(), String> {
        let named = match command {
            Command::HeartbeatTicket { ticket_id, .. }
            | Command::ReleaseTicket { ticket_id, .. } => Some(*ticket_id),
            _ => None,
        };
        let shown = translate::shown_ticket(refusal);
        if shown.is_some() && shown != named {
            return Err(differs("ticket in the refusal", &named, refusal));
        }
        let Refusal::StaleFence { current } = refusal else { return Ok(()) };
        let lock = fenced_lock(command).ok_or("no fence token was given that could be stale")?;
        let expected = self.naive.fence(&lock);
        if current.map(|fence| fence.0.0) == expected {
            return Ok(());
        }
        Err(differs("current fence", &expected, current))
    }

    /// Compares the next records with what the model says that happened.
    fn happened(
        &mut self,
        now: Time,
        actor: &Actor,
        expected: Vec<naive::Event>,
    ) -> Result<(), String> {
        let count = expected.len() as u64;
        let first = self.naive.sequence() + 1 - count;
        for (index, event) in expected.into_iter().enumerate() {
            let Some(record) = self.records.pop_front() else {
                return Err(differs("event", &event, &None::<Record>));
            };
            let is_in_place = record.sequence.0 == first + index as u64;
            let is_same = translate::event(&record.event).as_ref() == Some(&event);
            if !(is_in_place && is_same && record.time == now && record.actor == *actor) {
                return Err(differs("event", &(first + index as u64, now, actor, event), &record));
            }
            self.fold(&record)?;
        }
        Ok(())
    }

    /// Folds a record in, with all that must be true of it and of the state after it.
    fn fold(&mut self, record: &Record) -> Result<(), String> {
        if let Event::LockDeadlockRejected(e) = &record.event
            && !(e.cycle.first() == Some(&e.ticket_id) && self.naive.is_cycle(&e.cycle))
        {
            return Err(format!("no cycle of waits: {record:?}"));
        }
        invariant::check_record(&self.state, record)?;
        self.auditor.see(record).map_err(|broken| format!("{broken}: {record:?}"))?;
        self.coverage.count_event(&self.state, &record.event);
        if let Some(ticket) = self.state.apply(record) {
            self.ended.insert(ticket.id, ticket);
        }
        // Between the end of a hold and its promotion a lock may be free and have a queue.
        if !self.records.front().is_some_and(|next| is_promotion(&next.event)) {
            invariant::check(&self.state)?;
            self.auditor.check_rest().map_err(|broken| format!("{broken}: {record:?}"))?;
        }
        Ok(())
    }
}

/// The lock whose fence token a command gives.
fn fenced_lock(command: &Command) -> Option<LockKey> {
    let (scope, terms) = match command {
        Command::BreakLock { lock, .. } => return Some(lock.clone()),
        Command::CreateThread { scope, terms, .. } => (scope, terms),
        Command::CreateReply { thread, terms, .. }
        | Command::CloseThread { thread, terms }
        | Command::ReopenThread { thread, terms } => (&thread.scope, terms),
        _ => return None,
    };
    let lock_name = terms.fence.as_ref()?.lock_name.clone();
    Some(LockKey { scope: scope.clone(), lock_name })
}

fn is_promotion(event: &Event) -> bool {
    matches!(
        translate::event(event),
        Some(naive::Event::Lock(event)) if event.kind == Kind::Promoted
    )
}

fn differs(what: &str, expected: &dyn std::fmt::Debug, found: &dyn std::fmt::Debug) -> String {
    format!("{what}\n  model: {expected:?}\n  core:  {found:?}")
}
