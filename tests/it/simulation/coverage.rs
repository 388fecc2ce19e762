//! Counts what occurred, since a simulation proves nothing about what never happens in it.

use std::collections::BTreeMap;
use std::fmt;

use pearing::domain::State;
use pearing::domain::command::Command;
use pearing::domain::event::{Event, LockDeadlockRejected};
use pearing::domain::name::UserName;

use super::naive::{Answer, Ending, Refused, Stands, View};

/// Every answer that must occur.
const ANSWERS: [&str; 35] = [
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
    "create agent",
    "revoke agent's tokens",
    "activity",
    "activity again",
    "clear activity",
    "create thread",
    "create thread again",
    "create thread under a fence",
    "reply",
    "reply again",
    "reply under a fence",
    "close",
    "close again",
    "close for nothing",
    "reopen",
    "reopen again",
    "reopen for nothing",
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

/// Every refusal of those that only these commands meet, or for reasons of their own.
const REFUSALS_OF: [&str; 27] = [
    "create agent: Forbidden",
    "create agent: InvalidArgument",
    "create agent: AlreadyExists",
    "create agent: LimitReached",
    "revoke agent's tokens: NotFound",
    "activity: Forbidden",
    "activity: RequestUuidReused",
    "clear activity: Forbidden",
    "create thread: Forbidden",
    "create thread: NotFound",
    "create thread: InvalidArgument",
    "create thread: RequestUuidReused",
    "create thread: StaleFence",
    "create thread: AlreadyExists",
    "reply: Forbidden",
    "reply: NotFound",
    "reply: InvalidArgument",
    "reply: RequestUuidReused",
    "reply: StaleFence",
    "reply: LimitReached",
    "close: Forbidden",
    "close: NotFound",
    "close: RequestUuidReused",
    "close: StaleFence",
    "reopen: NotFound",
    "reopen: RequestUuidReused",
    "reopen: StaleFence",
];

/// Combinations that the rules are about, as told by the events.
const SITUATIONS: [&str; 21] = [
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
    "access-revoked: an agent with its person",
    "user-disabled: an agent with its person",
    "cycle of agents of one person",
    "thread that mirrors a number",
    "thread after a number that was mirrored",
    "reply as deep as may be",
    "activity after one of before",
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
    refusals_of: BTreeMap<String, u64>,
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

    pub(crate) fn count_refusal(&mut self, command: &Command, refused: Refused) {
        *self.refusals.entry(refused).or_default() += 1;
        let name = format!("{}: {refused:?}", asked_name(command));
        *self.refusals_of.entry(name).or_default() += 1;
    }

    /// Counts an answer by what was asked, how it was answered, and the state of the ticket that
    /// it shows.
    pub(crate) fn count_answer(&mut self, command: &Command, answer: &Answer, view: Option<&View>) {
        let asked = asked_name(command);
        let name = match (answer, view) {
            (Answer::Ticket { is_replay: true, .. }, Some(view)) => {
                format!("replay {}", state_name(view))
            }
            (_, Some(view)) => format!("{asked} {}", state_name(view)),
            (
                Answer::Thread { is_replay: true, .. } | Answer::Activity { is_replay: true, .. },
                None,
            ) => format!("{asked} again"),
            (Answer::Thread { written: None, .. }, None) => format!("{asked} for nothing"),
            (Answer::Thread { .. }, None) if is_fenced(command) => {
                *self.answers.entry(format!("{asked} under a fence")).or_default() += 1;
                asked.to_owned()
            }
            (_, None) => asked.to_owned(),
        };
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
        for (name, count) in other.refusals_of {
            *self.refusals_of.entry(name).or_default() += count;
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
        let of = REFUSALS_OF.iter().filter(|name| !self.refusals_of.contains_key(**name));
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
            .chain(of.map(|name| format!("refusal {name}")))
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
        writeln!(f, "refusals by command: {:#?}", self.refusals_of)?;
        writeln!(f, "events: {:#?}", self.events)?;
        write!(f, "situations: {:#?}", self.situations)
    }
}

/// What a command is called here.
fn asked_name(command: &Command) -> &'static str {
    match command {
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
        Command::CreateAgent { .. } => "create agent",
        Command::RevokeAgentTokens { .. } => "revoke agent's tokens",
        Command::UpdateActivity { .. } => "activity",
        Command::ClearActivity => "clear activity",
        Command::CreateThread { .. } => "create thread",
        Command::CreateReply { .. } => "reply",
        Command::CloseThread { .. } => "close",
        Command::ReopenThread { .. } => "reopen",
    }
}

/// Whether a write to a thread is made under a hold.
fn is_fenced(command: &Command) -> bool {
    match command {
        Command::CreateThread { terms, .. }
        | Command::CreateReply { terms, .. }
        | Command::CloseThread { terms, .. }
        | Command::ReopenThread { terms, .. } => terms.fence.is_some(),
        _ => false,
    }
}

/// What is special about an event that is no lock's, if anything is.
fn situation_beside_locks(before: &State, event: &Event) -> Option<&'static str> {
    match event {
        Event::ThreadCreated(e) => match before.newest_thread(&e.scope) {
            _ if e.is_mirror => Some("thread that mirrors a number"),
            Some(newest) if newest.get() > 100 => Some("thread after a number that was mirrored"),
            Some(_) | None => None,
        },
        Event::ThreadReplied(e) => (e.level == 32).then_some("reply as deep as may be"),
        Event::ActivityUpdated(e) => {
            before.activity(&e.user).map(|_| "activity after one of before")
        }
        _ => None,
    }
}

/// Whether it is an agent that was not disabled itself.
fn is_enabled_agent(state: &State, user: &UserName) -> bool {
    let user = state.access().user(user);
    user.is_some_and(|user| user.person.is_some() && !user.is_disabled)
}

/// Whether all who wait in a cycle are agents of one person.
fn is_of_one_person(state: &State, e: &LockDeadlockRejected) -> bool {
    let person = state.access().person_of(&e.owner);
    let mut others = e.cycle.iter().filter_map(|id| state.ticket(*id));
    person.is_some() && others.all(|ticket| state.access().person_of(&ticket.owner) == person)
}

/// What is special about an event, if anything is.
fn situation(before: &State, event: &Event) -> Option<String> {
    let Some((lock, ticket_id)) = event.lock_and_ticket() else {
        return situation_beside_locks(before, event).map(str::to_owned);
    };
    let lock = before.lock(&lock);
    let name = match event {
        Event::LockAcquired(e) => (e.depth > 1).then_some("re-entry"),
        Event::LockQueued(e) => {
            lock.is_some_and(|lock| lock.has_place(&e.owner)).then_some("place shared")
        }
        Event::LockDeadlockRejected(e) => Some(match e.cycle.len() {
            _ if is_of_one_person(before, e) => "cycle of agents of one person",
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
            Some(reason) if is_enabled_agent(before, &e.owner) => {
                return Some(format!("{reason}: an agent with its person"));
            }
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
