//! What pictures say in words.

use std::fmt::Write as _;

use super::model::{Beats, Break, Ending, Hold, Interruption, Point, Ticket, Timeline};
use crate::domain::ticket::End;
use crate::domain::time::Time;

/// A length of time, in two units at most.
pub(super) fn length(from: Time, to: Time) -> String {
    let millis = from.millis_until(to);
    let (seconds, minutes) = (millis / 1_000, millis / 60_000);
    let (hours, days) = (minutes / 60, minutes / (60 * 24));
    let two = |whole: u64, unit: &str, rest: u64, rest_unit: &str| match rest {
        0 => format!("{whole} {unit}"),
        rest => format!("{whole} {unit} {rest} {rest_unit}"),
    };
    match (days, hours, minutes, seconds) {
        (1.., ..) => two(days, "d", hours % 24, "h"),
        (_, 1.., ..) => two(hours, "h", minutes % 60, "min"),
        (_, _, 1.., _) => two(minutes, "min", seconds % 60, "s"),
        (.., 1..) if millis % 1_000 >= 100 => format!("{seconds}.{} s", millis % 1_000 / 100),
        (.., 1..) => format!("{seconds} s"),
        (.., 0) => format!("{millis} ms"),
    }
}

/// So many of something.
pub(super) fn count(number: usize, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}

/// What is drawn.
pub(super) fn title(timeline: &Timeline) -> String {
    match &timeline.lock_name {
        Some(lock_name) => format!("{lock_name} in {}", timeline.scope),
        None => format!("Locks of {}", timeline.scope),
    }
}

/// From when to when, and how much it is.
pub(super) fn subtitle(timeline: &Timeline) -> String {
    let Some((first, last)) = timeline.span else {
        return "Nothing happened.".to_owned();
    };
    let (from, to) = (moment(first), moment(last));
    // The day isn't said twice.
    let to = match (from.split_once(' '), to.split_once(' ')) {
        (Some((day, _)), Some((same, clock))) if day == same => clock.to_owned(),
        (_, _) => to,
    };
    let mut text = format!("{from} to {to} UTC ({}), ", length(first, last));
    if timeline.lock_name.is_none() {
        let _ = write!(text, "{}, ", count(timeline.locks.len(), "lock", "locks"));
    }
    let attempts = timeline.tickets().filter(|ticket| ticket.is_attempt()).count();
    let tickets = timeline.tickets().count();
    let _ = write!(
        text,
        "{} of {}, {}",
        count(tickets, "ticket", "tickets"),
        count(timeline.owners().len(), "user", "users"),
        count(timeline.holds().count(), "hold", "holds"),
    );
    if attempts > 0 {
        let _ = write!(text, ", {attempts} ended at once");
    }
    text
}

/// What was left out, if anything was.
pub(super) fn left_out(timeline: &Timeline) -> Option<String> {
    let (tickets, attempts) = (timeline.tickets_left_out, timeline.attempts_left_out);
    let number = |number: u64, one: &str, many: &str| {
        (number > 0).then(|| count(usize::try_from(number).unwrap_or(usize::MAX), one, many))
    };
    let parts = [
        number(tickets, "ticket that was over before", "tickets that were over before"),
        number(attempts, "attempt that ended at once", "attempts that ended at once"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("Left out: {}.", parts.join(", ")))
}

/// A moment, for people.
fn moment(time: Time) -> String {
    time.to_string().trim_end_matches('Z').trim_end_matches(".000").replace('T', " ")
}

fn at(point: Point) -> String {
    format!("{} (sequence {})", point.time, point.sequence)
}

/// What is told of a ticket beside what it is doing.
fn who(ticket: &Ticket) -> String {
    let mut text = format!("ticket {}", ticket.id);
    if let Some(note) = &ticket.note {
        let _ = write!(text, "\nnote: {note}");
    }
    text
}

pub(super) fn hold(hold: &Hold, last: Time) -> String {
    let Hold { owner, fence_token, since, until, depth } = hold;
    let end = match until {
        Some(until) => format!("to {}", at(*until)),
        None => "and goes on".to_owned(),
    };
    let mut text = format!(
        "{owner} holds, fence token {fence_token}\nfrom {}\n{end}: {}",
        at(*since),
        length(since.time, hold.end_or(last)),
    );
    if *depth > 1 {
        let _ = write!(text, "\nup to {depth} tickets at once");
    }
    text
}

pub(super) fn held(ticket: &Ticket, last: Time) -> String {
    let Some(held) = ticket.held else { return String::new() };
    let end = match &ticket.end {
        Some(end) => format!("to {}", at(end.at)),
        None => "and goes on".to_owned(),
    };
    format!(
        "{} holds, fence token {}\nfrom {}\n{end}: {}\n{}",
        ticket.owner,
        held.fence_token,
        at(held.since),
        length(held.since.time, ticket.end_or(last)),
        who(ticket),
    )
}

pub(super) fn waits(ticket: &Ticket, last: Time) -> String {
    let end = match (&ticket.held, &ticket.end) {
        (Some(held), _) => Some(held.since),
        (None, Some(end)) => Some(end.at),
        (None, None) => None,
    };
    let (until, length) = match end {
        Some(end) => (format!("to {}", at(end)), length(ticket.made.time, end.time)),
        None => ("and goes on".to_owned(), length(ticket.made.time, last)),
    };
    let made = at(ticket.made);
    format!(
        "{} waits\nfrom {made}\n{until}: {length}{}\n{}",
        ticket.owner,
        met(ticket),
        who(ticket)
    )
}

/// Whom a ticket met.
fn met(ticket: &Ticket) -> String {
    let Some(holder) = &ticket.holder else { return String::new() };
    format!("\nit was held by {}, fence token {}", holder.owner, holder.fence_token)
}

pub(super) fn heartbeats(ticket: &Ticket, beats: Beats) -> String {
    let when = match beats.count {
        1 => format!("heartbeat at {}", at(beats.last)),
        count => format!("{count} heartbeats\nfrom {}\nto {}", at(beats.first), at(beats.last)),
    };
    format!("{}: {when}\nticket {}", ticket.owner, ticket.id)
}

pub(super) fn promoted(ticket: &Ticket, since: Point) -> String {
    let waited = length(ticket.made.time, since.time);
    format!("{} promoted at {}\nafter {waited}\n{}", ticket.owner, at(since), who(ticket))
}

/// How a ticket ended, in a word or two.
pub(super) fn end(end: End) -> &'static str {
    match end {
        End::Released => "released",
        End::Expired => "expired",
        End::Broken => "broken",
        End::Cancelled => "cancelled",
        End::TimedOut => "timed out",
        End::Contended => "contended",
        End::DeadlockRejected => "deadlock rejected",
    }
}

pub(super) fn ending(ticket: &Ticket, ending: &Ending) -> String {
    let mut text = format!("{} {} at {}", ticket.owner, end(ending.how), at(ending.at));
    if let Some(deadline) = ending.deadline {
        let _ = write!(text, "\nthe deadline was {deadline}");
    }
    if let Some(reason) = &ending.reason {
        let _ = write!(text, "\nreason: {reason}");
    }
    if ticket.is_attempt() {
        text += &met(ticket);
    }
    if !ending.cycle.is_empty() {
        let ids: Vec<String> = ending.cycle.iter().map(ToString::to_string).collect();
        let _ = write!(text, "\nthe cycle: {}", ids.join(", "));
    }
    let _ = write!(text, "\n{}", who(ticket));
    text
}

/// Why a ticket ended, in short, where that isn't plain.
pub(super) fn aside(ticket: &Ticket) -> Option<String> {
    let end = ticket.end.as_ref()?;
    match (&end.reason, &ticket.holder) {
        (Some(reason), _) => Some(reason.to_string()),
        (None, Some(holder)) if ticket.is_attempt() => Some(format!(
            "{}, {} held it, fence {}",
            self::end(end.how),
            holder.owner,
            holder.fence_token
        )),
        (None, _) => None,
    }
}

/// Some endings of one kind that lie too close together to be told apart.
pub(super) fn endings(how: End, ones: &[(&Ticket, &Ending)]) -> String {
    match ones {
        [(ticket, one)] => ending(ticket, one),
        _ => {
            let first = ones.first().map(|(_, one)| at(one.at)).unwrap_or_default();
            let last = ones.last().map(|(_, one)| at(one.at)).unwrap_or_default();
            format!("{} {}\nfrom {first}\nto {last}", ones.len(), end(how))
        }
    }
}

pub(super) fn interruption(interruption: &Break) -> String {
    let when = at(interruption.at);
    match &interruption.what {
        Interruption::Restart { grace_seconds } => {
            format!("The server started again at {when}\ngrace: up to {grace_seconds} s")
        }
        Interruption::Gap { last_sequence, reason } => {
            format!("Sequences jump at {when}\nfrom {last_sequence}: {reason}")
        }
    }
}
