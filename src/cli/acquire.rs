//! acquire-lock: takes a lock, or says why not, and with `--block` waits its turn.
//!
//! The request UUID is on stderr before anything is sent, so whatever happens afterwards, the
//! caller can ask again and get the same ticket. Exit code 0 means HELD and nothing less, and in
//! text nothing but a held ticket is printed on stdout: `acquire-lock … && work` is safe, and no
//! failure can be taken for a fence token.

use super::args::AcquireArgs;
use super::locks::exit_code;
use super::output::{Format, Output, name_request};
use super::signals::{Stop, killed_by};
use super::{Ended, text};
use crate::client::{Acquire, Client, GivenUp, LONG_POLL_SECONDS_MAX, Reply, Turn, lease_deadline};
use crate::clock::BootTime;
use crate::domain::scope::LockKey;
use crate::wire::problem::{Code, EXIT_DONE};
use crate::wire::ticket::{Answer, State};

pub(super) async fn acquire(client: &Client, output: &mut Output, args: &AcquireArgs) -> Ended {
    let lock = args.lock.lock();
    let ask = Acquire {
        request_uuid: name_request(output, args.request_uuid),
        lease_seconds: args.lease_seconds,
        wait_seconds: args.wait_seconds,
        note: args.note.clone(),
        reentrant: args.no_reentrant.then_some(false),
    };
    if args.block {
        return block(client, output, &lock, &ask).await;
    }
    let reply = client.acquire(&lock, &ask).await?;
    finish(output, &lock, &reply)
}

/// Prints the answer: on stdout if the lock is held, else the reason on stderr.
///
/// A lease that has run out on the way here is no lease, whatever the answer says: what would
/// follow on success must not run.
fn finish(output: &mut Output, lock: &LockKey, reply: &Reply<Answer>) -> Ended {
    let ticket = &reply.body.ticket;
    let deadline = lease_deadline(&reply.body, reply.sent_at);
    let is_lost = deadline.is_some_and(|deadline| BootTime::now() >= deadline);
    let code = if is_lost { Code::TicketNotHeld.exit_code() } else { exit_code(ticket.state) };
    if code == EXIT_DONE || output.format() == Format::Json {
        output.result(&reply.json, || text::ticket(ticket))?;
    }
    if is_lost {
        output.message("the lease ran out before the answer arrived: the lock is lost");
    } else if ticket.state == State::Held && ticket.depth > 1 && !reply.is_replay {
        output.message(&format!(
            "joined your own hold, now {} tickets: --no-reentrant contends instead",
            ticket.depth
        ));
    }
    for line in why_not(lock, &reply.body).lines() {
        output.message(line);
    }
    Ok(code)
}

/// Why the lock is not held, and what can be done.
pub(super) fn why_not(lock: &LockKey, answer: &Answer) -> String {
    say_why_not(lock, answer, " with a new request UUID")
}

/// The same, where each run is a new request by itself.
pub(super) fn why_not_run(lock: &LockKey, answer: &Answer) -> String {
    say_why_not(lock, answer, "")
}

fn say_why_not(lock: &LockKey, answer: &Answer, anew: &str) -> String {
    let ticket = &answer.ticket;
    let holder = answer.holder.iter().flatten().next();
    let held_by = holder.map(|h| format!("; {}", text::holder(h))).unwrap_or_default();
    let code = ticket.state.code().map_or("waiting", |code| code.as_str());
    let LockKey { scope, lock_name } = lock;
    match ticket.state {
        State::Held => String::new(),
        State::Waiting => format!(
            "{code}: position {} for {lock_name} in {scope}{held_by}\nask again: {}\ngive up:   {}",
            ticket.queue_position.unwrap_or(0),
            text::ticket_command("get-lock-ticket", lock, ticket.ticket_id)
                + &format!(" --wait {LONG_POLL_SECONDS_MAX} --exit-status"),
            text::ticket_command("release-lock-ticket", lock, ticket.ticket_id),
        ),
        State::Contended => {
            let retry = answer.retry_after_seconds.unwrap_or(1);
            let again = format!("try again in {retry} s{anew}");
            let is_own = holder.is_some_and(|holder| holder.owner == ticket.owner);
            let advice = if is_own {
                let owner = &ticket.owner;
                format!("another session of {owner} has it, which can't be waited for: {again}")
            } else if ticket.wait_seconds > 0 {
                // It asked to wait already, so its own identity waits, and it would not join.
                format!("another session of {} waits for it already: {again}", ticket.owner)
            } else {
                format!("{again}, or wait for it: --wait-seconds N")
            };
            format!("{code}: {lock_name} in {scope} is taken{held_by}\n{advice}")
        }
        State::DeadlockRejected => format!(
            "{code}: waiting for {lock_name} in {scope} would never end\n{}\
             release what you hold, then try again{anew}",
            text::cycle(answer.cycle.as_deref().unwrap_or_default())
        ),
        State::Released | State::Expired | State::Broken | State::Cancelled | State::TimedOut => {
            let reason = ticket.end_reason.as_ref().map(|r| format!(" ({r})")).unwrap_or_default();
            format!(
                "{code}: ticket {} for {lock_name} in {scope} is {}{reason}\ntry again{anew}",
                ticket.ticket_id,
                ticket.state.as_str()
            )
        }
    }
}

/// Acquires and waits its turn. A signal meanwhile gives the ticket up.
async fn block(client: &Client, output: &mut Output, lock: &LockKey, ask: &Acquire) -> Ended {
    // Before the request is sent: a signal must not find a ticket that nobody gives up.
    let mut stop = Stop::listen()?;
    let mut waiting = None;
    let turn = client.acquire_in_turn(lock, ask, stop.next(), |answer| {
        if waiting.replace(answer.ticket.ticket_id).is_none() {
            for line in why_not(lock, answer).lines().take(1) {
                output.message(line);
            }
        }
    });
    match turn.await {
        Ok(Turn::Answered(reply)) => finish(output, lock, &reply),
        Ok(Turn::Stopped { by, ticket }) => {
            if let Some(message) = given_up(lock, ask, ticket) {
                output.message(&message);
            }
            Ok(killed_by(by))
        }
        Err(error) => {
            if let Some(ticket_id) = waiting {
                output.message(&format!("ticket {ticket_id} may still be waiting"));
            }
            Err(error.into())
        }
    }
}

/// What there is to say of a ticket after a signal; which it is if it could not be given up.
pub(super) fn given_up(lock: &LockKey, ask: &Acquire, ticket: GivenUp) -> Option<String> {
    match ticket {
        GivenUp::Done(ticket_id) => Some(format!("ticket {ticket_id} given up")),
        // Over already is as good.
        GivenUp::Over(_) | GivenUp::NoTicket => None,
        GivenUp::Failed(ticket_id) => Some(format!(
            "ticket {ticket_id} could not be given up: {}",
            text::ticket_command("release-lock-ticket", lock, ticket_id)
        )),
        GivenUp::Unknown => Some(format!(
            "no answer: request {} may have made a ticket that is not given up",
            ask.request_uuid
        )),
    }
}

#[cfg(test)]
#[path = "acquire_tests.rs"]
mod tests;
