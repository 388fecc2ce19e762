//! watch-ticket: tells what becomes of a ticket, without keeping it alive.
//!
//! What is told is always read from the ticket itself. Events of its lock only say when to look
//! again; where they can't be had, as after access was lost, it looks every few seconds, since an
//! owner can read its own ticket even then. Without any answer until the lease's end, as far as
//! that was known, nothing can be said any more, and that is an exit code of its own (8).

use std::time::Duration;

use super::args::TicketArgs;
use super::connection::Said;
use super::locks::exit_code;
use super::output::Output;
use super::{Connection, Ended};
use crate::client::{Client, ClientError, EventFilter, Feed, Reply, lease_deadline};
use crate::clock::BootTime;
use crate::wire::problem::{Code, EXIT_DONE};
use crate::wire::ticket::{Answer, State, Ticket};

/// How often it looks where no event says when.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// How often it looks all the same, so that it knows how long the lease goes on.
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_secs(10);
/// How long after a lease's end it looks whether it went on.
const LOOK_AFTER_END: Duration = Duration::from_millis(50);
/// How long it waits for an answer, however near the end is.
const ANSWER_TIMEOUT_MIN: Duration = Duration::from_secs(2);

pub(super) async fn watch(said: Said<'_>, output: &mut Output, args: &TicketArgs) -> Ended {
    let Connection { server, token } = said.connection()?;
    let client = Client::new(&server.url, &token.text)?;
    let lock = args.lock();
    let filter = EventFilter {
        scope: Some(lock.scope.clone()),
        lock: Some(lock.lock_name.to_string()),
        ..EventFilter::default()
    };
    let mut events = Some(client.feed(filter, None));
    let mut last: Option<Reply<Answer>> = None;
    while !output.is_closed() {
        // Without one it is asked once, and what comes of that is the answer.
        let left = last.as_ref().map_or(Duration::MAX, |last| BootTime::now().until(end(last)));
        let asked = client.ticket(&lock, args.ticket_id, 0);
        let answer = tokio::time::timeout(left.max(ANSWER_TIMEOUT_MIN), asked).await;
        match answer.unwrap_or_else(|_| Err(no_answer())) {
            Ok(reply) => {
                if last.as_ref().is_none_or(|last| is_news(last, &reply)) {
                    output.result(&reply.json, || line(&reply.body.ticket))?;
                }
                if let Some(code) = ended(&reply.body.ticket) {
                    return Ok(code);
                }
                last = Some(reply);
            }
            Err(ClientError::Problem(refused)) if refused.problem.code == Code::NotFound => {
                output.message(&format!("pearing-cli: {}", ClientError::Problem(refused)));
                return Ok(Code::TicketNotHeld.exit_code());
            }
            Err(error)
                if error.is_passing()
                    && last.as_ref().is_some_and(|last| BootTime::now() < end(last)) =>
            {
                output.message(&format!("pearing-cli: {error}; it may still be held"));
            }
            Err(error) => return Err(error.into()),
        }
        let left = last.as_ref().map_or(Duration::ZERO, |last| BootTime::now().until(end(last)));
        wait_for_news(&mut events, left + LOOK_AFTER_END).await;
    }
    Ok(EXIT_DONE)
}

/// Whether this is worth a line: another state, or another place in the queue.
fn is_news(last: &Reply<Answer>, now: &Reply<Answer>) -> bool {
    let seen = |reply: &Reply<Answer>| {
        let ticket = &reply.body.ticket;
        (ticket.state, ticket.queue_position)
    };
    seen(last) != seen(now)
}

/// The exit code once there is nothing more to watch.
fn ended(ticket: &Ticket) -> Option<u8> {
    match ticket.state {
        State::Waiting => None,
        // Its deadline has passed, and no heartbeat brings it back.
        State::Held if ticket.lease_remaining_ms == Some(0) => {
            Some(Code::TicketNotHeld.exit_code())
        }
        State::Held => None,
        State::Released => Some(EXIT_DONE),
        State::Contended
        | State::DeadlockRejected
        | State::Expired
        | State::Broken
        | State::Cancelled
        | State::TimedOut => Some(exit_code(ticket.state)),
    }
}

/// Until when an answer says something: to the end of the lease; of a waiting ticket, for as long
/// as its lease would be.
fn end(answer: &Reply<Answer>) -> BootTime {
    let lease = u64::from(answer.body.ticket.lease_seconds) * 1000;
    let until = lease_deadline(&answer.body, answer.sent_at);
    until.unwrap_or_else(|| answer.sent_at.plus_millis(lease))
}

fn no_answer() -> ClientError {
    ClientError::Unreachable("no answer in time".to_owned())
}

/// Waits for an event of the lock, but no longer than that.
async fn wait_for_news(events: &mut Option<Feed>, at_most: Duration) {
    let Some(feed) = events else {
        return tokio::time::sleep(LOOK_EVERY.min(at_most)).await;
    };
    match tokio::time::timeout(LOOK_AT_LEAST_EVERY.min(at_most), feed.next()).await {
        Ok(Ok(_)) | Err(_) => {}
        Ok(Err(_)) => *events = None,
    }
}

/// How a ticket stands, in a line.
fn line(ticket: &Ticket) -> String {
    let mut line = ticket.state.as_str().to_owned();
    if let Some(position) = ticket.queue_position {
        line += &format!(", position {position}");
    }
    if let Some(fence) = ticket.fence_token {
        line += &format!(", fence_token {fence}");
    }
    if let Some(reason) = &ticket.end_reason {
        line += &format!(", {reason}");
    }
    line
}
