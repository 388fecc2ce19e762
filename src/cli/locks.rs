//! Commands about locks and tickets, but for acquire-lock.

use super::args::{PageArgs, TicketArgs};
use super::output::Output;
use super::{Ended, text};
use crate::client::{Client, ClientError, LONG_POLL_SECONDS_MAX, Page, Reply};
use crate::clock::BootTime;
use crate::domain::id::TicketId;
use crate::domain::scope::LockKey;
use crate::domain::time::WaitSeconds;
use crate::wire::list::List;
use crate::wire::lock::Lock;
use crate::wire::problem::{EXIT_DONE, EXIT_WAITING};
use crate::wire::ticket::{Answer, State};

impl From<&PageArgs> for Page {
    fn from(page: &PageArgs) -> Self {
        Self { cursor: page.cursor.clone(), limit: page.limit }
    }
}

/// The exit code of a ticket's state.
pub(super) fn exit_code(state: State) -> u8 {
    match state.code() {
        Some(code) => code.exit_code(),
        None if state == State::Waiting => EXIT_WAITING,
        None => EXIT_DONE,
    }
}

pub(super) async fn get_ticket(
    client: &Client,
    output: &mut Output,
    args: &TicketArgs,
    exit_status: bool,
    wait_seconds: WaitSeconds,
) -> Ended {
    let end = BootTime::now().plus_millis(u64::from(wait_seconds) * 1000);
    let reply = read_until(client, &args.lock(), args.ticket_id, end).await?;
    print_ticket(output, &reply)?;
    Ok(if exit_status { exit_code(reply.body.ticket.state) } else { EXIT_DONE })
}

/// Reads a ticket until it has stopped waiting, or `end` has come.
pub(super) async fn read_until(
    client: &Client,
    lock: &LockKey,
    ticket_id: TicketId,
    end: BootTime,
) -> Result<Reply<Answer>, ClientError> {
    loop {
        // Rounded up: a rest of a second is worth one poll more, and never a tight loop.
        let left_ms = BootTime::now().until(end).as_millis();
        let left = u32::try_from(left_ms.div_ceil(1000)).unwrap_or(u32::MAX);
        let reply = client.ticket(lock, ticket_id, left.min(LONG_POLL_SECONDS_MAX)).await?;
        if reply.body.ticket.state != State::Waiting || BootTime::now() >= end {
            return Ok(reply);
        }
    }
}

pub(super) fn print_ticket(output: &mut Output, reply: &Reply<Answer>) -> Ended {
    output.result(&reply.json, || text::ticket(&reply.body.ticket))?;
    Ok(EXIT_DONE)
}

pub(super) fn print_lock(output: &mut Output, reply: &Reply<Lock>) -> Ended {
    output.result(&reply.json, || text::lock(&reply.body))?;
    Ok(EXIT_DONE)
}

/// Prints a page; says where it goes on, or that it is empty, on stderr.
pub(super) fn print_list<T>(
    output: &mut Output,
    reply: &Reply<List<T>>,
    rows: impl FnOnce(&[T]) -> String,
    empty: &str,
) -> Ended {
    let list = &reply.body;
    output.result(&reply.json, || rows(&list.items))?;
    match &list.next {
        Some(next) => output.message(&format!("more: --cursor {next}")),
        None if list.items.is_empty() => output.message(empty),
        None => {}
    }
    Ok(EXIT_DONE)
}
