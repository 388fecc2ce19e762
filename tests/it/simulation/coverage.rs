//! Counts what occurred, since a simulation proves nothing about what never happens in it.

use std::collections::BTreeMap;
use std::fmt;

use pearing::domain::State;
use pearing::domain::command::Command;
use pearing::domain::event::Event;

use super::naive::{Ending, Refused, Stands, View};

/// Every answer that must occur.
const ANSWERS: [&str; 18] = [
    "acquire held",
    "acquire waiting",
    "acquire contended",
    "acquire deadlock_rejected",
    "replay held",
    "replay waiting",
    "replay contended",
    "replay deadlock_rejected",
    "replay released",
    "replay expired",
    "replay broken",
    "replay cancelled",
    "replay timed_out",
    "heartbeat held",
    "release released",
    "release cancelled",
    "break",
    "administer",
];

/// Every refusal that must occur.
const REFUSALS: [Refused; 10] = [
    Refused::Unauthenticated,
    Refused::Forbidden,
    Refused::NotFound,
    Refused::InvalidArgument,
    Refused::RequestUuidReused,
    Refused::TicketNotHeld,
    Refused::TicketEnded,
    Refused::StaleFence,
    Refused::AlreadyExists,
    Refused::LimitReached,
];

/// Combinations that the rules are about, as told by the events.
const SITUATIONS: [&str; 14] = [
    "re-entry",
    "place shared",
    "place shared at a promotion",
    "cycle of 2",
    "cycle of 3",
    "cycle of 4 or more",
    "release that leaves a hold",
    "expiry that leaves a hold",
    "break of several tickets",
    "cancelled by its owner",
    "cancelled: access-revoked",
    "cancelled: user-disabled",
    "heartbeat that moves nothing",
    "expiry that promotes",
];

/// How often each thing occurred.
#[derive(Debug, Clone, Default)]
pub(crate) struct Coverage {
    pub(crate) steps: u64,
    pub(crate) restarts: u64,
    pub(crate) lost_appends: u64,
    pub(crate) uncertain_appends: u64,
    pub(crate) parted_settlings: u64,
    answers: BTreeMap<String, u64>,
    refusals: BTreeMap<Refused, u64>,
    events: BTreeMap<&'static str, u64>,
    situations: BTreeMap<String, u64>,
}

impl Coverage {
    /// Counts an event that is about to be folded into `before`.
    pub(crate) fn count_event(&mut self, before: &State, event: &Event) {
        *self.events.entry(event.type_name()).or_default() += 1;
        if let Some(situation) = situation(before, event) {
            *self.situations.entry(situation).or_default() += 1;
        }
    }

    pub(crate) fn count_refusal(&mut self, refused: Refused) {
        *self.refusals.entry(refused).or_default() += 1;
    }

    /// Counts an answer by what was asked and the state of the ticket that it shows.
    pub(crate) fn count_answer(&mut self, command: &Command, is_replay: bool, view: Option<&View>) {
        let asked = match command {
            Command::AcquireLock { .. } if is_replay => "replay",
            Command::AcquireLock { .. } => "acquire",
            Command::HeartbeatTicket { .. } => "heartbeat",
            Command::ReleaseTicket { .. } => "release",
            Command::BreakLock { .. } => "break",
            Command::CreateUser { .. }
            | Command::DisableUser { .. }
            | Command::EnableUser { .. }
            | Command::IssueToken { .. }
            | Command::RevokeToken { .. }
            | Command::CreateTeam { .. }
            | Command::SetTeamMember { .. }
            | Command::RemoveTeamMember { .. }
            | Command::CreateRepo { .. }
            | Command::GrantAccess { .. }
            | Command::RevokeAccess { .. } => "administer",
        };
        let name = view.map_or(asked.to_owned(), |view| format!("{asked} {}", state_name(view)));
        *self.answers.entry(name).or_default() += 1;
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.steps += other.steps;
        self.restarts += other.restarts;
        self.lost_appends += other.lost_appends;
        self.uncertain_appends += other.uncertain_appends;
        self.parted_settlings += other.parted_settlings;
        for (name, count) in other.answers {
            *self.answers.entry(name).or_default() += count;
        }
        for (refused, count) in other.refusals {
            *self.refusals.entry(refused).or_default() += count;
        }
        for (name, count) in other.events {
            *self.events.entry(name).or_default() += count;
        }
        for (name, count) in other.situations {
            *self.situations.entry(name).or_default() += count;
        }
    }

    /// What should have occurred and didn't.
    pub(crate) fn missing(&self) -> Vec<String> {
        let events = Event::TYPES.iter().map(|(name, _)| *name);
        let events = events.filter(|name| !self.events.contains_key(name)).map(str::to_owned);
        let answers = ANSWERS.iter().filter(|name| !self.answers.contains_key(**name));
        let refusals = REFUSALS.iter().filter(|refused| !self.refusals.contains_key(refused));
        let situations = SITUATIONS.iter().filter(|name| !self.situations.contains_key(**name));
        let faults = [
            ("restart", self.restarts),
            ("lost append", self.lost_appends),
            ("uncertain append", self.uncertain_appends),
            ("parted settling", self.parted_settlings),
        ];
        let faults = faults.iter().filter(|(_, count)| *count == 0);
        events
            .chain(answers.map(|name| format!("answer {name}")))
            .chain(refusals.map(|refused| format!("refusal {refused:?}")))
            .chain(situations.map(|name| (*name).to_owned()))
            .chain(faults.map(|(name, _)| (*name).to_owned()))
            .collect()
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "steps: {}", self.steps)?;
        writeln!(
            f,
            "restarts: {}, lost appends: {}, uncertain appends: {}, parted settlings: {}",
            self.restarts, self.lost_appends, self.uncertain_appends, self.parted_settlings
        )?;
        writeln!(f, "answers: {:#?}", self.answers)?;
        writeln!(f, "refusals: {:#?}", self.refusals)?;
        writeln!(f, "events: {:#?}", self.events)?;
        write!(f, "situations: {:#?}", self.situations)
    }
}

/// What is special about an event, if anything is.
fn situation(before: &State, event: &Event) -> Option<String> {
    let (lock, ticket_id) = event.lock_and_ticket()?;
    let lock = before.lock(&lock);
    let name = match event {
        Event::LockAcquired(e) => (e.depth > 1).then_some("re-entry"),
        Event::LockQueued(e) => {
            lock.is_some_and(|lock| lock.has_place(&e.owner)).then_some("place shared")
        }
        Event::LockDeadlockRejected(e) => Some(match e.cycle.len() {
            0..=2 => "cycle of 2",
            3 => "cycle of 3",
            _ => "cycle of 4 or more",
        }),
        Event::LockHeartbeat(e) => {
            let deadline = before.ticket(ticket_id)?.lease_deadline();
            (deadline == Some(e.lease_expires_at)).then_some("heartbeat that moves nothing")
        }
        Event::LockPromoted(e) => (e.depth > 1).then_some("place shared at a promotion"),
        Event::LockReleased(e) => (e.depth > 0).then_some("release that leaves a hold"),
        Event::LockExpired(e) if e.depth > 0 => Some("expiry that leaves a hold"),
        Event::LockExpired(_) => {
            lock.is_some_and(|lock| lock.places_len() > 0).then_some("expiry that promotes")
        }
        Event::LockBroken(e) => (e.depth > 0).then_some("break of several tickets"),
        Event::LockWaitCancelled(e) => match &e.reason {
            Some(reason) => return Some(format!("cancelled: {reason}")),
            None => Some("cancelled by its owner"),
        },
        _ => None,
    };
    name.map(str::to_owned)
}

fn state_name(view: &View) -> &'static str {
    match &view.stands {
        Stands::Held { .. } => "held",
        Stands::Waiting { .. } => "waiting",
        Stands::Ended { ending, .. } => match ending {
            Ending::Released => "released",
            Ending::Expired => "expired",
            Ending::Broken => "broken",
            Ending::Cancelled => "cancelled",
            Ending::TimedOut => "timed_out",
            Ending::Contended => "contended",
            Ending::DeadlockRejected => "deadlock_rejected",
        },
    }
}
