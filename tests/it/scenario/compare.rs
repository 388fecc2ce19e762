//! Compares what came of a line with what the line expects: all of it, in order, nothing more.

use pearing::domain::Answer;
use pearing::domain::command::Command;
use pearing::domain::event::Record;
use pearing::domain::id::Sequence;
use pearing::domain::name::Actor;
use pearing::domain::refusal::Refusal;
use serde_json::json;

use super::names::{Names, Seen};
use super::notes::Unchanged;
use super::notes_command::terms_of;
use super::notes_look;
use super::script::{Expected, State};
use super::server::{Appended, Outcome, Server};

/// The code of a refusal, as every surface shows it.
fn code(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Unauthenticated => "unauthenticated",
        Refusal::Forbidden(_) => "forbidden",
        Refusal::NotFound(_) => "not-found",
        Refusal::InvalidArgument { .. } => "invalid-argument",
        Refusal::RequestUuidReused => "request-uuid-reused",
        Refusal::TicketNotHeld(_) => "ticket-not-held",
        Refusal::TicketEnded(_) => "ticket-ended",
        Refusal::StaleFence { .. } => "stale-fence",
        Refusal::AlreadyExists(_) => "already-exists",
        Refusal::LimitReached { .. } => "limit-reached",
    }
}

/// What is expected of a line, with its events taken out one by one.
struct Line<'a> {
    names: &'a mut Names,
    records: std::slice::Iter<'a, Record>,
}

impl Line<'_> {
    /// Takes the next event, and compares it with one that is expected.
    fn event(&mut self, type_name: &str, expected: &Expected) -> Result<(), String> {
        let Expected::Event { facts, .. } = expected else { return Ok(()) };
        let Some(record) = self.records.next() else {
            return Err(format!("{type_name} didn't happen"));
        };
        let (found, data) = shown(record)?;
        if record.event.type_name() != type_name {
            return Err(format!("{type_name} was expected, but this happened: {found}"));
        }
        self.names.check(facts, &data).map_err(|why| format!("{why}: {found}"))
    }

    fn greater(&self, left: &str, right: &str) -> Result<(), String> {
        match self.names.is_greater(left, right)? {
            true => Ok(()),
            false => Err(format!("{left} isn't greater than {right}")),
        }
    }

    /// Fails if something happened that the line doesn't mention.
    fn end(mut self) -> Result<(), String> {
        match self.records.next() {
            Some(record) => Err(format!("this happened too: {}", shown(record)?.0)),
            None => Ok(()),
        }
    }
}

fn shown(record: &Record) -> Result<(String, serde_json::Value), String> {
    let data = serde_json::to_value(&record.event).map_err(|error| error.to_string())?;
    let name = record.event.type_name();
    Ok((format!("{} {name} by {}: {data}", record.sequence, record.actor), data))
}

fn unfit(expected: &Expected) -> String {
    format!("this doesn't come of such a line: {expected:?}")
}

fn by(records: &[Record], actor: &Actor) -> Result<(), String> {
    match records.iter().find(|record| record.actor != *actor) {
        Some(record) => Err(format!("{actor} should have caused {}", shown(record)?.0)),
        None => Ok(()),
    }
}

/// Compares what a start appended.
pub(super) fn start(
    names: &mut Names,
    records: &[Record],
    expected: &[Expected],
) -> Result<(), String> {
    by(records, &Actor::Ledger)?;
    events(names, records, expected, false)
}

/// Compares what was due at the start of a batch.
pub(super) fn settled(
    names: &mut Names,
    appended: &Appended,
    expected: &[Expected],
) -> Result<(), String> {
    by(&appended.settled.records, &Actor::Ledger)?;
    events(names, &appended.settled.records, expected, appended.is_more_due)
}

/// Compares events that no command asked for.
fn events(
    names: &mut Names,
    records: &[Record],
    expected: &[Expected],
    is_more_due: bool,
) -> Result<(), String> {
    let mut line = Line { names, records: records.iter() };
    let mut says_more_due = false;
    for expected in expected {
        match expected {
            Expected::Event { type_name, .. } => line.event(type_name, expected)?,
            Expected::Greater { left, right } => line.greater(left, right)?,
            Expected::MoreDue => says_more_due = true,
            // Whatever happened would be left over at the end.
            Expected::Nothing => {}
            Expected::Replay(_)
            | Expected::Still(_)
            | Expected::Unchanged { .. }
            | Expected::Refused { .. }
            | Expected::Invalid { .. } => return Err(unfit(expected)),
        }
    }
    line.end()?;
    if says_more_due == is_more_due { Ok(()) } else { Err(format!("more due: {is_more_due}")) }
}

/// Compares an input that no type lets through.
pub(super) fn invalid(field: &str, expected: &[Expected]) -> Result<(), String> {
    match expected {
        [Expected::Invalid { field: wanted }] if wanted == field => Ok(()),
        _ => Err(format!("{field} is invalid here")),
    }
}

/// Compares what came of a command.
pub(super) fn command(
    names: &mut Names,
    server: &Server,
    outcome: &Outcome,
    actor: &Actor,
    command: &Command,
    expected: &[Expected],
) -> Result<(), String> {
    by(&outcome.records, actor)?;
    let result = outcome.result.as_ref().ok_or("a command was not answered")?;
    answer_fits(command, outcome, result)?;
    if let Ok(answer) = result {
        write_fits(server, actor, command, answer)?;
    }
    let mut line = Line { names, records: outcome.records.iter() };
    // What was answered must be said, where no event says it.
    let mut is_answer_said = !outcome.records.is_empty();
    for expected in expected {
        match expected {
            Expected::Event { type_name, .. } => line.event(type_name, expected)?,
            Expected::Greater { left, right } => line.greater(left, right)?,
            Expected::Refused { code: wanted, current } => {
                let Err(refusal) = result else { return Err(format!("not refused: {outcome:?}")) };
                if code(refusal) != wanted {
                    return Err(format!("the refusal is {refusal:?}"));
                }
                if let (Some(wanted), Refusal::StaleFence { current }) = (current, refusal)
                    && !line.names.is_fence(wanted, *current)
                {
                    return Err(format!("the current fence token is {current:?}"));
                }
                is_answer_said = true;
            }
            Expected::Replay(wanted) => {
                is_answer_said = true;
                ticket(line.names, wanted, outcome, true)?;
            }
            Expected::Still(wanted) => {
                is_answer_said = true;
                ticket(line.names, wanted, outcome, false)?;
            }
            Expected::Unchanged { is_replay, unchanged } => {
                is_answer_said = true;
                self::unchanged(line.names, server, outcome, *is_replay, unchanged)?;
            }
            Expected::Nothing if *result == Ok(Answer::Done) => is_answer_said = true,
            Expected::Nothing | Expected::Invalid { .. } | Expected::MoreDue => {
                return Err(format!("{}: {result:?}", unfit(expected)));
            }
        }
    }
    line.end()?;
    if is_answer_said { Ok(()) } else { Err(format!("the answer was {result:?}")) }
}

/// Checks that the answer is of the command's kind, and about what was asked.
fn answer_fits(
    command: &Command,
    outcome: &Outcome,
    result: &Result<Answer, Refusal>,
) -> Result<(), String> {
    let is_quiet = outcome.records.is_empty();
    let Ok(answer) = result else {
        return if is_quiet { Ok(()) } else { Err("a refused command has events".to_owned()) };
    };
    let fits = match (command, answer) {
        (Command::AcquireLock { ticket_id, .. }, Answer::Ticket { ticket_id: id, is_replay }) => {
            *is_replay == is_quiet && *is_replay == (id != ticket_id)
        }
        (
            Command::HeartbeatTicket { ticket_id, .. } | Command::ReleaseTicket { ticket_id, .. },
            Answer::Ticket { ticket_id: id, is_replay },
        ) => id == ticket_id && !is_replay,
        (Command::BreakLock { lock, .. }, Answer::Lock(answered)) => lock == answered && !is_quiet,
        (
            Command::CreateThread { .. }
            | Command::CreateReply { .. }
            | Command::CloseThread { .. }
            | Command::ReopenThread { .. },
            Answer::Thread { written, is_replay, .. },
        ) => {
            let made: Vec<Sequence> = outcome.records.iter().map(|r| r.sequence).collect();
            if is_quiet { *is_replay == written.is_some() } else { made.iter().eq(written) }
        }
        (Command::UpdateActivity { .. }, Answer::Activity { is_replay, .. }) => {
            *is_replay == is_quiet
        }
        (Command::ClearActivity, Answer::Activity { is_replay, .. }) => !is_replay,
        (
            Command::AcquireLock { .. }
            | Command::HeartbeatTicket { .. }
            | Command::ReleaseTicket { .. }
            | Command::BreakLock { .. }
            | Command::CreateThread { .. }
            | Command::CreateReply { .. }
            | Command::CloseThread { .. }
            | Command::ReopenThread { .. }
            | Command::UpdateActivity { .. }
            | Command::ClearActivity,
            _,
        ) => false,
        (_, answer) => *answer == Answer::Done,
    };
    if fits { Ok(()) } else { Err(format!("{command:?} was answered by {answer:?}")) }
}

/// Checks that what a write was answered with is what the ledger holds of it, be it from now or
/// from before.
fn write_fits(
    server: &Server,
    actor: &Actor,
    command: &Command,
    answer: &Answer,
) -> Result<(), String> {
    match answer {
        Answer::Activity { user, .. } => match actor {
            Actor::User(of) if of == user => Ok(()),
            Actor::User(_) | Actor::Ledger => Err(format!("{answer:?} is not about {actor}")),
        },
        Answer::Thread { thread, written: Some(sequence), .. } => {
            let record = server.record(*sequence)?;
            let is_of = record.event.thread().as_ref() == Some(thread) && record.actor == *actor;
            let request_uuid = terms_of(&mut command.clone()).and_then(|terms| terms.request_uuid);
            let data = serde_json::to_value(&record.event).map_err(|error| error.to_string())?;
            if is_of && data["request_uuid"] == json!(request_uuid) {
                return Ok(());
            }
            Err(format!("{answer:?} was written as {record:?}"))
        }
        Answer::Thread { written: None, .. }
        | Answer::Ticket { .. }
        | Answer::Lock(_)
        | Answer::Done => Ok(()),
    }
}

/// Compares a write that was answered without an event, as it is after its batch.
fn unchanged(
    names: &mut Names,
    server: &Server,
    outcome: &Outcome,
    must_be_replay: bool,
    wanted: &Unchanged,
) -> Result<(), String> {
    let fails = || Err(format!("it was answered otherwise: {outcome:?}"));
    if !outcome.records.is_empty() {
        return fails();
    }
    match (&outcome.result, wanted) {
        (
            Some(Ok(Answer::Thread { thread, is_replay, .. })),
            Unchanged::Thread { number, shown },
        ) if *is_replay == must_be_replay && thread.number.get() == *number => {
            notes_look::at(names, server, thread, server.state().head(), Some(shown))
        }
        (Some(Ok(Answer::Activity { user, is_replay })), Unchanged::Activity(said))
            if *is_replay == must_be_replay =>
        {
            notes_look::activity(server.state(), user, said.as_ref())
        }
        _ => fails(),
    }
}

/// Compares a ticket that was answered without an event.
fn ticket(
    names: &mut Names,
    wanted: &State,
    outcome: &Outcome,
    must_be_replay: bool,
) -> Result<(), String> {
    let Some(Ok(Answer::Ticket { is_replay, .. })) = &outcome.result else {
        return Err(format!("no ticket was answered: {:?}", outcome.result));
    };
    if *is_replay != must_be_replay || !outcome.records.is_empty() {
        return Err(format!("it was carried out: {outcome:?}"));
    }
    let seen = outcome.seen.as_ref().ok_or("the ticket that was answered is nowhere")?;
    state(names, wanted, seen)
}

/// Compares a ticket.
pub(super) fn state(names: &mut Names, wanted: &State, seen: &Seen) -> Result<(), String> {
    let found = seen.facts();
    if seen.state() != wanted.state {
        return Err(format!("the ticket is {}: {found}", seen.state()));
    }
    names.check(&wanted.facts, &found).map_err(|why| format!("{why}: {found}"))
}
