//! The pipeline. Read this first.
//!
//! One thread owns the state and is the only one that appends. A round: take what waits, read the
//! clock once, settle what is due, decide and fold each command, append all events in one synced
//! write, make the new state readable, then answer, then wake the feed. Nothing is visible before
//! it is durable: no answer, no read, no event. Refusals and replays wait for the sync of their
//! batch too, since they may rest on what an earlier command of it did.
//!
//! A storage error ends the thread. Nothing is acknowledged after it and nothing is tried again:
//! whoever waits for an answer sees a broken connection, and asks again with the same request
//! UUID.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::batch::{Batch, Closed};
use super::queue::Company;
use super::{ActivityTold, Refused, Shared, ThreadTold, Told, measure, show};
use crate::clock;
use crate::domain::command::{Caller, Command};
use crate::domain::event::Event;
use crate::domain::id::{Sequence, TicketId};
use crate::domain::name::UserName;
use crate::domain::refusal::Refusal;
use crate::domain::ticket::{Phase, Ticket};
use crate::domain::{Answer, Limits, State};
use crate::ledger::{Append, LedgerError};
use crate::projection::{self, snapshot};
use crate::wire::view::{ActivityView, LockView, TicketView};

/// How many commands share one append at most. More would keep the first of them waiting.
const BATCH_COMMANDS_MAX: usize = 1024;

/// Which part of the last round's time a round waits for its company, and how long at most.
///
/// Whoever was just answered often asks again at once. Without a little patience the first of
/// them has a sync of its own, and all the others wait for two. One who is alone waits for nobody,
/// and nobody waits for longer than a fraction of the sync that follows.
const COMPANY_PART: u32 = 2;
const COMPANY_PATIENCE_MAX: Duration = Duration::from_millis(2);

/// How many events one append settles at most (a hold's end and its promotion stay together), so
/// that a million deadlines at once don't make one endless append.
const SETTLE_EVENTS_MAX: usize = 4096;

/// A command, and where its answer goes.
pub(super) struct Ask {
    pub(super) caller: Caller,
    pub(super) command: Command,
    pub(super) reply: oneshot::Sender<Result<Told, Refused>>,
}

/// A command that was decided and waits for its batch to be durable.
struct Decided {
    caller: Caller,
    outcome: Result<Answer, Refusal>,
    reply: oneshot::Sender<Result<Told, Refused>>,
}

pub(super) struct Writer {
    shared: Arc<Shared>,
    /// Ahead of what is readable while a batch is open.
    state: State,
    limits: Limits,
    /// What the newest snapshot stands on.
    snapshot: Sequence,
    company: Company,
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>, state: State, limits: Limits) -> Self {
        let company = Company::default();
        Self { shared, state, limits, snapshot: Sequence::ZERO, company }
    }

    /// Runs until the queue is closed and empty.
    pub(super) fn run(mut self) -> Result<(), LedgerError> {
        self.snapshot = snapshot::last(&*self.shared.ledger)?;
        loop {
            let taken = self.shared.queue.take(BATCH_COMMANDS_MAX, self.patience(), self.company);
            let (enough, began) = (taken.asks.len(), clock::monotonic());
            self.round(taken.asks)?;
            let patience = (clock::elapsed(began) / COMPANY_PART).min(COMPANY_PATIENCE_MAX);
            self.company = Company { enough, patience };
            if taken.is_closed {
                return snapshot::save(&*self.shared.ledger, &self.state);
            }
            if snapshot::is_due(self.snapshot, &self.state) {
                snapshot::save(&*self.shared.ledger, &self.state)?;
                self.snapshot = self.state.head();
            }
        }
    }

    /// How long nothing is due.
    fn patience(&self) -> Option<Duration> {
        let deadline = self.state.next_deadline()?;
        Some(Duration::from_millis(self.shared.clock.now().millis_until(deadline)))
    }

    fn round(&mut self, asks: Vec<Ask>) -> Result<(), LedgerError> {
        let shared = Arc::clone(&self.shared);
        loop {
            // After the asks were taken: a process that was paused in between judges them by the
            // time at which it went on.
            let now = shared.clock.now();
            let mut batch = Batch::open(&mut self.state, &*shared.ledger, &self.limits, now);
            if batch.settle(SETTLE_EVENTS_MAX) {
                if !asks.is_empty() {
                    shared.metrics.batch_commands.observe(asks.len() as f64);
                }
                let mut decided = Vec::with_capacity(asks.len());
                for ask in asks {
                    let outcome = batch.decide(ask.caller, &ask.command)?;
                    decided.push(Decided { caller: ask.caller, outcome, reply: ask.reply });
                }
                let batch = batch.close();
                let closed = self.commit(batch)?;
                self.answer(&closed, decided)?;
                self.wake(&closed);
                return Ok(());
            }
            let batch = batch.close();
            let closed = self.commit(batch)?;
            self.wake(&closed);
        }
    }

    /// Makes a batch durable, then readable.
    fn commit(&mut self, (append, closed): (Append, Closed)) -> Result<Closed, LedgerError> {
        if closed.records.is_empty() {
            return Ok(closed);
        }
        let began = clock::monotonic();
        self.shared.ledger.append(&append)?;
        self.shared.note_append(&closed, clock::elapsed(began));
        self.shared.publish(&closed.records);
        // After the state that its readers are judged by, and before they are woken.
        self.shared.live.publish(append);
        // Before anybody is answered: whoever was, finds it counted.
        measure::count(&self.shared.metrics, &*self.shared.ledger, &self.state, &closed)?;
        Ok(closed)
    }

    /// Answers each command from the state at the end of its append.
    fn answer(&self, closed: &Closed, decided: Vec<Decided>) -> Result<(), LedgerError> {
        for Decided { caller, outcome, reply } in decided {
            let told = match outcome {
                Ok(answer) => Ok(self.tell(closed, caller, answer)?),
                Err(refusal) => Err(self.refuse(closed, refusal)?),
            };
            // Whoever asked may be gone; the ledger has the answer.
            let _ = reply.send(told);
        }
        Ok(())
    }

    /// Wakes whoever waits for what a batch did: long polls, and the feed.
    fn wake(&self, closed: &Closed) {
        if let Some(last) = closed.records.last() {
            let stopped = closed.records.iter().filter_map(|record| stops_waiting(&record.event));
            self.shared.watch.wake(stopped);
            self.shared.head.send_replace(last.sequence);
        }
    }

    fn tell(&self, closed: &Closed, caller: Caller, answer: Answer) -> Result<Told, LedgerError> {
        match answer {
            Answer::Ticket { ticket_id, is_replay } => {
                let ticket = self.ticket(closed, ticket_id)?.expect("an answer's ticket exists");
                let asker = self.asker(caller, &ticket);
                let cycle = self.cycle(closed, &ticket)?;
                let find = |id| cycle.iter().find(|ticket| ticket.id == id).cloned();
                let answer = show::ticket_answer(&self.state, &asker, &ticket, is_replay, find);
                Ok(Told::Ticket(Box::new(answer)))
            }
            Answer::Lock(lock) => {
                let view = LockView::of(&self.state, &lock, self.state.head());
                Ok(Told::Lock(Box::new(view)))
            }
            Answer::Thread { thread, written, is_replay } => {
                // A replay shows what there is now, even if this very batch wrote it.
                let fresh = written.filter(|_| !is_replay);
                let record = fresh.and_then(|sequence| closed.record(sequence)).cloned();
                let sequence = self.state.head();
                Ok(Told::Thread(Box::new(ThreadTold {
                    thread,
                    record,
                    written,
                    is_replay,
                    sequence,
                })))
            }
            Answer::Activity { user, is_replay } => {
                let activity = ActivityView::of(&self.state, &user);
                let sequence = self.state.head();
                Ok(Told::Activity(Box::new(ActivityTold { activity, is_replay, sequence })))
            }
            Answer::Done => Ok(Told::Done(self.state.head())),
        }
    }

    fn refuse(&self, closed: &Closed, refusal: Refusal) -> Result<Refused, LedgerError> {
        let id = match refusal {
            Refusal::TicketNotHeld(id) | Refusal::TicketEnded(id) => Some(id),
            Refusal::Unauthenticated
            | Refusal::Forbidden(_)
            | Refusal::NotFound(_)
            | Refusal::InvalidArgument { .. }
            | Refusal::RequestUuidReused
            | Refusal::StaleFence { .. }
            | Refusal::AlreadyExists(_)
            | Refusal::LimitReached { .. } => None,
        };
        let ticket = id.map_or(Ok(None), |id| self.ticket(closed, id))?;
        let ticket = ticket.map(|ticket| TicketView::of(&self.state, &ticket));
        Ok(Refused { refusal, ticket, sequence: self.state.head() })
    }

    /// A ticket, live, ended in this batch, or ended before.
    fn ticket(&self, closed: &Closed, id: TicketId) -> Result<Option<Ticket>, LedgerError> {
        match self.state.ticket(id).or_else(|| closed.ended.get(&id)) {
            Some(ticket) => Ok(Some(ticket.clone())),
            None => projection::ticket::ended(&*self.shared.ledger, id),
        }
    }

    /// The tickets of the cycle that a rejected ticket would have closed.
    fn cycle(&self, closed: &Closed, ticket: &Ticket) -> Result<Vec<Ticket>, LedgerError> {
        let Phase::Ended { cycle, .. } = &ticket.phase else { return Ok(Vec::new()) };
        let found = cycle.iter().map(|id| self.ticket(closed, *id));
        found.filter_map(Result::transpose).collect()
    }

    /// The identity that asks. Only a ticket's owner gets an answer with a ticket.
    fn asker(&self, caller: Caller, ticket: &Ticket) -> UserName {
        match caller {
            Caller::Token(id) => {
                self.state.access().token(id).map_or(&ticket.owner, |token| &token.user).clone()
            }
            Caller::Ledger => ticket.owner.clone(),
        }
    }
}

/// The tickets that stop waiting by an event: those whose readers are woken.
fn stops_waiting(event: &Event) -> Option<TicketId> {
    match event {
        Event::LockPromoted(e) => Some(e.ticket_id),
        Event::LockWaitCancelled(e) => Some(e.ticket_id),
        Event::LockWaitTimedOut(e) => Some(e.ticket_id),
        Event::LedgerOpened(_)
        | Event::LedgerRecovered(_)
        | Event::LedgerRestored(_)
        | Event::UserCreated(_)
        | Event::UserDisabled(_)
        | Event::UserEnabled(_)
        | Event::TokenIssued(_)
        | Event::TokenRevoked(_)
        | Event::TeamCreated(_)
        | Event::TeamMemberAdded(_)
        | Event::TeamMemberRemoved(_)
        | Event::RepoCreated(_)
        | Event::AccessGranted(_)
        | Event::AccessRevoked(_)
        | Event::LockAcquired(_)
        | Event::LockQueued(_)
        | Event::LockContended(_)
        | Event::LockDeadlockRejected(_)
        | Event::LockHeartbeat(_)
        | Event::LockReleased(_)
        | Event::LockExpired(_)
        | Event::LockBroken(_)
        | Event::ActivityUpdated(_)
        | Event::ActivityCleared(_)
        | Event::ThreadCreated(_)
        | Event::ThreadReplied(_)
        | Event::ThreadClosed(_)
        | Event::ThreadReopened(_) => None,
    }
}
