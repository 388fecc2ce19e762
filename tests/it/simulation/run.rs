//! One simulation: a seed's world, its ledger, and the pipeline that serves it.
//!
//! The pipeline is the server's own [`Batch`] on a ledger in memory. What the simulation adds is
//! what the writer's thread adds: a clock, an order within a batch, an append, and its failure.

use std::collections::VecDeque;
use std::fmt;

use pearing::domain::command::{Caller, Command};
use pearing::domain::event::{Event, LedgerOpened};
use pearing::domain::id::{LedgerId, Sequence, TicketId, TokenId};
use pearing::domain::name::Actor;
use pearing::domain::thread::ThreadKey;
use pearing::domain::ticket::TicketInput;
use pearing::domain::time::Time;
use pearing::domain::{Answer, Limits, State};
use pearing::ledger::memory::{Fault, MemoryLedger};
use pearing::ledger::pending::Gap;
use pearing::ledger::{Append, Hash, Ledger, LedgerError};
use pearing::service::batch::Batch;

use super::coverage::Coverage;
use super::judge::{Given, Judge};
use super::naive;
use super::notes;
use super::rng::Rng;
use super::world::World;

/// How many steps a failure tells.
const TOLD_STEPS: usize = 20;
/// 2026-01-01T00:00:00Z, as good as any other.
const START: Time = Time::from_millis(1_767_225_600_000);

/// A simulation.
pub(crate) struct Run {
    pub(super) rng: Rng,
    pub(super) world: World,
    limits: Limits,
    pub(super) now: Time,
    pub(super) ledger: MemoryLedger,
    /// The server's state: ahead of the ledger while a batch is open, and lost in a crash.
    pub(super) live: State,
    pub(super) judge: Judge,
    pub(super) journal: Vec<Entry>,
    /// The writes under request UUIDs that clients were told of, and where they lie.
    pub(super) wrote: Vec<Wrote>,
    /// Up to where the threads have been compared.
    checked: u64,
    told: VecDeque<Told>,
}

/// An answer that a client got.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) token: TokenId,
    pub(super) input: TicketInput,
    pub(super) ticket_id: TicketId,
    pub(super) fence: Option<u64>,
}

/// A write to a thread that a client was told of.
#[derive(Debug, Clone)]
pub(super) struct Wrote {
    pub(super) token: TokenId,
    pub(super) command: Command,
    pub(super) thread: ThreadKey,
    pub(super) sequence: Sequence,
}

/// A step as it is told when something is wrong.
pub(super) enum Told {
    Settled { at: Time, is_all: bool },
    Decided { at: Time, caller: Caller, command: Box<Command>, given: Given },
    Appended { records: usize, fault: Option<Fault> },
    Restarted { at: Time, gap: Option<Gap> },
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settled { at, is_all: true } => write!(f, "at {at} all is settled"),
            Self::Settled { at, is_all: false } => write!(f, "at {at} more is due"),
            Self::Decided { at, caller, command, given } => {
                write!(f, "at {at} {caller:?} {command:?} -> {given:?}")
            }
            Self::Appended { records, fault: None } => write!(f, "{records} records appended"),
            Self::Appended { records, fault: Some(fault) } => {
                write!(f, "{records} records, the append failed: {fault:?}")
            }
            Self::Restarted { at, gap } => write!(f, "at {at} restarted, gap: {gap:?}"),
        }
    }
}

impl Run {
    /// A new ledger in a new world. Some worlds are narrow, so that limits are met.
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let limits = match rng.below(3) {
            0 => Limits {
                live_tickets_per_identity: 4,
                live_tickets_per_scope: 6,
                places_per_lock: 2,
                replies_per_thread: 5,
                agents_per_person: 1,
                tokens_per_agent: 2,
            },
            _ => Limits::default(),
        };
        Self {
            rng,
            world: World::new(),
            limits,
            now: START,
            ledger: MemoryLedger::default(),
            live: State::default(),
            judge: Judge::new(naive::Limits {
                live_tickets_per_identity: limits.live_tickets_per_identity,
                live_tickets_per_scope: limits.live_tickets_per_scope,
                places_per_lock: limits.places_per_lock,
                replies_per_thread: limits.replies_per_thread,
                agents_per_person: limits.agents_per_person,
                tokens_per_agent: limits.tokens_per_agent,
            }),
            journal: Vec::new(),
            wrote: Vec::new(),
            checked: 0,
            told: VecDeque::new(),
        }
    }

    /// Plays at least `steps` steps: commands, settlings, restarts.
    pub(crate) fn play(&mut self, steps: u64) -> Result<(), String> {
        self.found()?;
        while self.judge.coverage.steps < steps {
            self.step()?;
        }
        self.crash()?;
        self.check_projections(self.journal.len())
    }

    /// The hash that stands for every byte of the ledger.
    pub(crate) fn hash(&self) -> Hash {
        self.ledger.head().hash
    }

    /// What occurred.
    pub(crate) fn into_coverage(self) -> Coverage {
        self.judge.coverage
    }

    /// The last steps, for whoever has to find out.
    pub(crate) fn tell(&self) -> String {
        self.told.iter().map(|told| format!("  {told}\n")).collect()
    }

    /// Sets the ledger up, as the server does for a new data directory.
    fn found(&mut self) -> Result<(), String> {
        let mut batch = Batch::open(&mut self.live, &self.ledger, &self.limits, self.now);
        let ledger_id = LedgerId(self.rng.uuid());
        batch.record(Actor::Ledger, Event::LedgerOpened(LedgerOpened { ledger_id }));
        let (append, _) = batch.close();
        self.ledger.append(&append).map_err(|error| error.to_string())?;
        self.take()?;
        self.judge.opened()?;
        let commands = self.world.founding(&mut self.rng);
        self.serve(commands)
    }

    fn step(&mut self) -> Result<(), String> {
        if self.rng.percent(1) {
            return self.crash();
        }
        self.now = self.world.next_time(&mut self.rng, &self.judge.naive, self.now);
        let count = if self.rng.percent(60) { 1 } else { self.rng.below(7) };
        let mut commands = Vec::new();
        for _ in 0..count {
            commands.push(self.world.command(&mut self.rng, &self.judge.naive));
        }
        // The writer takes heartbeats and releases first; the sort keeps the rest in order.
        commands.sort_by_key(|(_, command)| !is_urgent(command));
        if self.rng.percent(1) {
            let fault = *self.rng.pick(&[Fault::Lost, Fault::Uncertain]);
            let nth = 1 + self.rng.below(2);
            self.ledger.fail_append(nth, fault);
        }
        self.serve(commands)
    }

    /// Serves commands in one batch, after as many batches as settling takes.
    pub(super) fn serve(&mut self, commands: Vec<(Caller, Command)>) -> Result<(), String> {
        while !self.serve_once(&commands)? {
            self.now = Time::from_millis(self.now.as_millis() + i64::from(self.rng.percent(50)));
        }
        Ok(())
    }

    /// Opens a batch, settles, decides if all is settled, and appends. False if more is due; a
    /// failed append ends it all with a restart, and then no command is left to serve.
    fn serve_once(&mut self, commands: &[(Caller, Command)]) -> Result<bool, String> {
        let now = self.now;
        let most_events = if self.rng.percent(20) { 1 + self.rng.index(3) } else { 1_000 };
        let mut batch = Batch::open(&mut self.live, &self.ledger, &self.limits, now);
        let is_all = batch.settle(most_events);
        let mut given = Vec::new();
        for (caller, command) in commands.iter().filter(|_| is_all) {
            let answer = batch.decide(*caller, command).map_err(|error| error.to_string())?;
            given.push(answer);
        }
        let (append, _) = batch.close();
        self.judge.coverage.steps += 1 + given.len() as u64;
        self.note(Told::Settled { at: now, is_all });
        for ((caller, command), given) in commands.iter().zip(&given) {
            let (command, given) = (Box::new(command.clone()), given.clone());
            self.note(Told::Decided { at: now, caller: *caller, command, given });
        }
        let is_answered = self.append(&append)?;
        if is_answered || self.ledger.head() != self.judge.head() {
            self.take()?;
            self.judge.settled(now, is_all)?;
            self.judge_answers(commands, &given, is_answered)?;
        }
        if is_answered {
            self.judge.end(&self.live)?;
            self.check_notes()?;
            self.judge.coverage.parted_settlings += u64::from(!is_all);
            return Ok(is_all);
        }
        self.restart()?;
        Ok(true)
    }

    /// Appends. False if the append failed: then the server has crashed.
    fn append(&mut self, append: &Append) -> Result<bool, String> {
        let records = append.records.len();
        if records == 0 {
            return Ok(true);
        }
        let fault = self.fault_of(self.ledger.append(append))?;
        self.note(Told::Appended { records, fault });
        Ok(fault.is_none())
    }

    /// What went wrong with an append, if anything. If so, the ledger is what a restart finds.
    pub(super) fn fault_of(
        &mut self,
        appended: Result<(), LedgerError>,
    ) -> Result<Option<Fault>, String> {
        match appended {
            Ok(()) => Ok(None),
            Err(LedgerError::Failed { .. }) => {
                self.ledger = self.ledger.crash();
                if self.ledger.head() == self.judge.head() {
                    self.judge.coverage.lost_appends += 1;
                    Ok(Some(Fault::Lost))
                } else {
                    self.judge.coverage.uncertain_appends += 1;
                    Ok(Some(Fault::Uncertain))
                }
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// Hands the records that became durable to the judge.
    pub(super) fn take(&mut self) -> Result<(), String> {
        let stored = self.ledger.records(self.judge.head().sequence, usize::MAX);
        self.judge.take(&stored.map_err(|error| error.to_string())?)
    }

    /// Has the answers judged, and remembers what clients were told.
    fn judge_answers(
        &mut self,
        commands: &[(Caller, Command)],
        given: &[Given],
        is_answered: bool,
    ) -> Result<(), String> {
        for ((caller, command), given) in commands.iter().zip(given) {
            let view = self.judge.decided(self.now, *caller, command, given)?;
            if let (
                true,
                Caller::Token(token),
                Ok(Answer::Thread { thread, written: Some(sequence), .. }),
            ) = (is_answered, caller, given)
            {
                let (thread, sequence) = (thread.clone(), *sequence);
                let (token, command) = (*token, command.clone());
                self.wrote.push(Wrote { token, command, thread, sequence });
            }
            if let (true, Caller::Token(token), Command::AcquireLock { input, .. }) =
                (is_answered, caller, command)
                && let (Ok(Answer::Ticket { ticket_id, .. }), Some(view)) = (given, view)
            {
                let (token, input, ticket_id) = (*token, input.clone(), *ticket_id);
                self.journal.push(Entry { token, input, ticket_id, fence: view.fence });
            }
        }
        Ok(())
    }

    /// Compares threads, activities and access with the model.
    pub(super) fn check_notes(&mut self) -> Result<(), String> {
        let (users, scopes) = (&self.world.users, &self.world.scopes);
        let (naive, state) = (&self.judge.naive, self.judge.state());
        let (ledger, checked) = (&self.ledger, self.checked);
        notes::check(naive, state, ledger, users, scopes, checked, &mut self.rng)?;
        self.checked = naive.sequence();
        Ok(())
    }

    pub(super) fn note(&mut self, told: Told) {
        if self.told.len() == TOLD_STEPS {
            self.told.pop_front();
        }
        self.told.push_back(told);
    }
}

fn is_urgent(command: &Command) -> bool {
    matches!(command, Command::HeartbeatTicket { .. } | Command::ReleaseTicket { .. })
}
