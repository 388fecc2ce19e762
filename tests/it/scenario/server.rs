//! The server of a scenario: the real core, batches and ledger, without threads and clocks.
//!
//! After every event it checks what must be true of any state and any record; after every append,
//! that what was folded from the stored bytes is what is live.

use pearing::domain::command::{Caller, Command};
use pearing::domain::event::{Event, LedgerOpened, Record};
use pearing::domain::id::{LedgerId, ReplyId, Sequence, TicketId};
use pearing::domain::name::Actor;
use pearing::domain::refusal::Refusal;
use pearing::domain::scope::Scope;
use pearing::domain::thread::{Thread, ThreadKey, ThreadNumber};
use pearing::domain::ticket::Ticket;
use pearing::domain::time::Time;
use pearing::domain::{Answer, Limits, Snapshot, State, invariant};
use pearing::ledger::memory::MemoryLedger;
use pearing::ledger::pending::Gap;
use pearing::ledger::{Hash, Ledger, Stored, chain};
use pearing::projection;
use pearing::service::batch::{Batch, Closed};
use pearing::service::recover;
use uuid::Uuid;

use super::audit::Audit;
use super::names::Seen;

/// The server.
#[derive(Debug, Default)]
pub(super) struct Server {
    /// How much there may be.
    pub(super) limits: Limits,
    state: State,
    ledger: MemoryLedger,
    /// Folded from stored bytes only.
    refolded: State,
    audit: Audit,
    /// Every ticket that ended, as the fold gave it back.
    ended: Vec<Ticket>,
    /// The records of the last batch.
    last_batch: Vec<Record>,
}

/// What came of one command, or of settling.
#[derive(Debug)]
pub(super) struct Outcome {
    /// What was answered; `None` where nothing was asked.
    pub(super) result: Option<Result<Answer, Refusal>>,
    /// The ticket that was answered, as it was at that moment.
    pub(super) seen: Option<Seen>,
    /// The records that it made.
    pub(super) records: Vec<Record>,
}

/// A batch that was appended.
#[derive(Debug)]
pub(super) struct Appended {
    /// What was due.
    pub(super) settled: Outcome,
    /// Whether more is due than the append could hold.
    pub(super) is_more_due: bool,
    /// What came of each command, in the order in which they were given.
    pub(super) outcomes: Vec<Outcome>,
}

/// An open batch, which counts what each command adds to it.
pub(super) struct Open<'a> {
    batch: Batch<'a>,
    /// For each command: the answer, the live ticket of the answer, the head after it.
    decided: Vec<(Result<Answer, Refusal>, Option<Seen>, Sequence)>,
}

impl Open<'_> {
    /// Decides a command. Returns the ticket that was answered, if it is live.
    pub(super) fn decide(
        &mut self,
        caller: Caller,
        command: &Command,
    ) -> Result<Option<Seen>, String> {
        let before = self.batch.state().head();
        let result = self.batch.decide(caller, command).map_err(|error| error.to_string())?;
        let state = self.batch.state();
        if result.is_err() && state.head() != before {
            return Err("something was appended for a command that was refused".to_owned());
        }
        let id = match &result {
            Ok(Answer::Ticket { ticket_id, .. }) => Some(*ticket_id),
            Ok(
                Answer::Lock(_) | Answer::Thread { .. } | Answer::Activity { .. } | Answer::Done,
            )
            | Err(_) => None,
        };
        let seen = id.and_then(|id| live(state, id));
        let head = state.head();
        self.decided.push((result, seen.clone(), head));
        Ok(seen)
    }
}

fn live(state: &State, id: TicketId) -> Option<Seen> {
    let ticket = state.ticket(id)?;
    let (depth, position) = (state.depth(ticket), state.queue_position(ticket));
    Some(Seen { ticket: ticket.clone(), depth, position })
}

impl Server {
    /// Opens the ledger: its first event.
    pub(super) fn open(&mut self, time: Time) -> Result<(), String> {
        let event = Event::LedgerOpened(LedgerOpened { ledger_id: LedgerId(Uuid::from_u128(1)) });
        self.start(time, event)
    }

    /// What was written.
    pub(super) fn into_ledger(self) -> MemoryLedger {
        self.ledger
    }

    /// The state now.
    pub(super) fn state(&self) -> &State {
        &self.state
    }

    /// The ledger, and the state at its end.
    pub(super) fn into_parts(self) -> (MemoryLedger, State) {
        (self.ledger, self.state)
    }

    /// Plays one batch: settles, and lets `commands` decide.
    pub(super) fn batch(
        &mut self,
        time: Time,
        settle_most: usize,
        commands: impl FnOnce(&mut Open<'_>) -> Result<(), String>,
    ) -> Result<Appended, String> {
        let before = self.state.head();
        let mut batch = Batch::open(&mut self.state, &self.ledger, &self.limits, time);
        let is_more_due = !batch.settle(settle_most);
        let settled_head = batch.state().head();
        let mut open = Open { batch, decided: Vec::new() };
        commands(&mut open)?;
        if is_more_due && !open.decided.is_empty() {
            return Err("no command may be decided while more is due".to_owned());
        }
        let (append, closed) = open.batch.close();
        let count = |from: Sequence, to: Sequence| usize::try_from(to.0 - from.0);
        let length = count(before, settled_head).map_err(|error| error.to_string())?;
        let mut rest = closed.records.clone().into_iter();
        let mut settled = Outcome { result: None, seen: None, records: Vec::new() };
        settled.records.extend(rest.by_ref().take(length));
        let mut outcomes = Vec::new();
        let mut from = settled_head;
        for (result, seen, to) in open.decided {
            let length = count(from, to).map_err(|error| error.to_string())?;
            let records = rest.by_ref().take(length).collect();
            outcomes.push(Outcome { result: Some(result), seen, records });
            from = to;
        }
        self.ledger.append(&append).map_err(|error| error.to_string())?;
        self.check_append(&append.records, &closed, settled_head, &outcomes)?;
        self.last_batch = closed.records;
        for outcome in &mut outcomes {
            self.see_ended(outcome)?;
        }
        Ok(Appended { settled, is_more_due, outcomes })
    }

    /// A ticket that wasn't live when it was answered has ended for ever: the tables have it.
    fn see_ended(&self, outcome: &mut Outcome) -> Result<(), String> {
        if let (Some(Ok(Answer::Ticket { ticket_id, .. })), None) = (&outcome.result, &outcome.seen)
        {
            outcome.seen = Some(self.ticket(*ticket_id)?);
        }
        Ok(())
    }

    /// A ticket now, live or ended.
    pub(super) fn ticket(&self, id: TicketId) -> Result<Seen, String> {
        if let Some(seen) = live(&self.state, id) {
            return Ok(seen);
        }
        let ended =
            projection::ticket::ended(&self.ledger, id).map_err(|error| error.to_string())?;
        let ticket = ended.ok_or_else(|| format!("ticket {id} is neither live nor recorded"))?;
        Ok(Seen { ticket, depth: 0, position: None })
    }

    /// The records of the last batch.
    pub(super) fn last_batch(&self) -> &[Record] {
        &self.last_batch
    }

    /// A record by its sequence.
    pub(super) fn record(&self, sequence: Sequence) -> Result<Record, String> {
        projection::request::record(&self.ledger, sequence).map_err(|error| error.to_string())
    }

    /// A thread as it was at a sequence.
    pub(super) fn thread(&self, key: &ThreadKey, last: Sequence) -> Result<Option<Thread>, String> {
        projection::thread::read(&self.ledger, key, last).map_err(|error| error.to_string())
    }

    /// The numbers of a repository's threads.
    pub(super) fn threads(&self, repo: &Scope) -> Result<Vec<ThreadNumber>, String> {
        let numbers = projection::thread::numbers(&self.ledger, repo, None, usize::MAX);
        numbers.map_err(|error| error.to_string())
    }

    /// The last sequence before a reply was written.
    pub(super) fn before_reply(&self, reply_id: ReplyId) -> Result<Sequence, String> {
        for stored in self.stored()? {
            let record = stored.decode().map_err(|error| error.to_string())?;
            if matches!(&record.event, Event::ThreadReplied(e) if e.reply_id == reply_id) {
                return Ok(Sequence(record.sequence.0 - 1));
            }
        }
        Err("that reply was never written".to_owned())
    }

    /// Goes down and comes up again, with a gap if events may have been lost meanwhile. Returns the
    /// records of the start.
    pub(super) fn restart(&mut self, time: Time, gap: Option<Gap>) -> Result<Vec<Record>, String> {
        self.ledger = self.ledger.crash();
        self.state = recover::replay(&self.ledger).map_err(|error| error.to_string())?;
        if self.state != self.refolded {
            return Err("the restarted server has another state".to_owned());
        }
        let before = self.state.head();
        recover::resume(&mut self.state, &self.ledger, gap, time)
            .map_err(|error| error.to_string())?;
        let stored = self.ledger.records(before, usize::MAX).map_err(|error| error.to_string())?;
        let mut closed = Closed::default();
        for stored in &stored {
            closed.records.push(stored.decode().map_err(|error| error.to_string())?);
        }
        self.check_append(&stored, &closed, self.state.head(), &[])?;
        Ok(closed.records)
    }

    /// Appends the first event.
    fn start(&mut self, time: Time, event: Event) -> Result<(), String> {
        let mut batch = Batch::open(&mut self.state, &self.ledger, &self.limits, time);
        batch.record(Actor::Ledger, event);
        let head = batch.state().head();
        let (append, closed) = batch.close();
        self.ledger.append(&append).map_err(|error| error.to_string())?;
        self.check_append(&append.records, &closed, head, &[])
    }

    fn stored(&self) -> Result<Vec<Stored>, String> {
        self.ledger.records(Sequence::ZERO, usize::MAX).map_err(|error| error.to_string())
    }

    /// Folds what was stored, record by record, and checks all that must be true meanwhile.
    fn check_append(
        &mut self,
        stored: &[Stored],
        closed: &Closed,
        settled_head: Sequence,
        outcomes: &[Outcome],
    ) -> Result<(), String> {
        let ends = outcomes.iter().filter_map(|outcome| outcome.records.last());
        let ends: Vec<Sequence> =
            ends.map(|record| record.sequence).chain([settled_head]).collect();
        for (stored, record) in stored.iter().zip(&closed.records) {
            let read = stored.decode().map_err(|error| error.to_string())?;
            if read != *record {
                return Err(format!("{record:?} reads back as {read:?}"));
            }
            invariant::check_record(&self.refolded, &read)?;
            self.audit.read(&read)?;
            self.ended.extend(self.refolded.apply(&read));
            if ends.contains(&read.sequence) {
                invariant::check(&self.refolded)?;
                self.audit.end_of_append()?;
            }
        }
        if stored.len() != closed.records.len() || self.refolded != self.state {
            return Err("what was stored doesn't give the live state".to_owned());
        }
        Ok(())
    }

    /// Checks at the end of a story that the ledger alone gives the same state again: at once,
    /// twice, and from a stored snapshot of any moment; that the chain holds; and that every
    /// ticket that ever ended can be read as it ended.
    pub(super) fn check_ledger(&self) -> Result<(), String> {
        let stored = self.stored()?;
        let mut hash = Hash::ZERO;
        for record in &stored {
            hash = chain::link(&hash, &record.bytes);
            if record.hash != hash {
                return Err(format!("the chain breaks at record {}", record.sequence));
            }
        }
        for middle in [0, 0, stored.len() / 2, stored.len()] {
            let half = fold(&stored[..middle], State::default())?;
            let text = serde_json::to_string(&half.to_snapshot()).map_err(|e| e.to_string())?;
            let snapshot: Snapshot = serde_json::from_str(&text).map_err(|e| e.to_string())?;
            if fold(&stored[middle..], State::from(snapshot))? != self.state {
                return Err(format!("a replay from record {middle} gives another state"));
            }
        }
        self.check_rows(&stored)?;
        for ticket in &self.ended {
            let read = self.ticket(ticket.id)?.ticket;
            if read != *ticket {
                return Err(format!("{ticket:?} is recorded as {read:?}"));
            }
        }
        Ok(())
    }

    /// What is known of each thread without reading it is what reading it gives.
    fn check_rows(&self, stored: &[Stored]) -> Result<(), String> {
        for stored in stored {
            let record = stored.decode().map_err(|error| error.to_string())?;
            let Some(key) = record.event.thread() else { continue };
            let get = |table, key: &[u8]| self.ledger.get(table, key);
            let row = projection::thread::row(&key, get).map_err(|error| error.to_string())?;
            let thread = self.thread(&key, self.state.head())?;
            let (Some(row), Some(thread)) = (row, thread) else {
                return Err(format!("there is no thread {key:?}"));
            };
            let is_same = (&row.title, &row.author, row.created_at, row.state, row.updated_at)
                == (
                    &thread.title,
                    &thread.author,
                    thread.created_at,
                    thread.state,
                    thread.updated_at,
                )
                && (row.replies_count as usize, row.sequence)
                    == (thread.replies.len(), thread.sequence);
            if !is_same {
                return Err(format!("{row:?} is not what {thread:?} is"));
            }
        }
        Ok(())
    }
}

fn fold(stored: &[Stored], mut state: State) -> Result<State, String> {
    for record in stored {
        state.apply(&record.decode().map_err(|error| error.to_string())?);
    }
    Ok(state)
}
