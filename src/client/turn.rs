//! Acquires, and waits its turn until the ticket stops waiting or somebody stops it.
//!
//! By long polls: nobody has to be told of a promotion to learn of it. A server that is away for a
//! while is waited for, as in a restart; the ticket is durable.

use std::time::Duration;

use super::LONG_POLL_SECONDS_MAX;
use super::error::ClientError;
use super::locks::Acquire;
use super::transport::{Client, Reply};
use crate::clock::BootTime;
use crate::domain::id::TicketId;
use crate::domain::scope::LockKey;
use crate::wire::problem::Code;
use crate::wire::ticket::{Answer, State};

/// How long giving up may take.
const GIVE_UP_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause between two polls, so that a server that is away, or that doesn't hold its answer
/// back, is not asked in a tight loop.
const POLL_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause that a server can ask for: a lease may begin meanwhile.
const POLL_PAUSE_MAX: Duration = Duration::from_secs(5);
/// How long after the end of its wait a ticket is still polled that no answer comes about.
const POLL_GRACE_MS: u64 = 30_000;

/// How an acquire that waits its turn ended.
#[derive(Debug)]
pub enum Turn<S> {
    /// The ticket doesn't wait: it is held, or has ended.
    Answered(Box<Reply<Answer>>),
    /// It was stopped.
    Stopped {
        /// What it was stopped by.
        by: S,
        /// What became of its ticket.
        ticket: GivenUp,
    },
}

/// What became of a ticket that was to be given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GivenUp {
    /// It is given up.
    Done(TicketId),
    /// It had ended before.
    Over(TicketId),
    /// It can't be given up, and may be waiting or held.
    Failed(TicketId),
    /// None was made.
    NoTicket,
    /// No answer came, so there may be one.
    Unknown,
}

impl Client {
    /// Acquires, and waits until the ticket no longer waits. When `stop` comes first, the ticket
    /// is given up. While it waits, `on_waiting` is told where it stands: at once, and after each
    /// poll.
    ///
    /// # Errors
    /// As for every call; after `on_waiting` the ticket may wait on.
    pub async fn acquire_in_turn<S>(
        &self,
        lock: &LockKey,
        ask: &Acquire,
        stop: impl Future<Output = S>,
        mut on_waiting: impl FnMut(&Answer),
    ) -> Result<Turn<S>, ClientError> {
        tokio::pin!(stop);
        let first = {
            let acquiring = self.acquire(lock, ask);
            tokio::pin!(acquiring);
            tokio::select! {
                reply = &mut acquiring => reply?,
                by = &mut stop => {
                    // The answer may be on its way, and with it a ticket to give up.
                    let ticket = match tokio::time::timeout(GIVE_UP_TIMEOUT, acquiring).await {
                        Ok(Ok(reply)) => self.give_up(lock, reply.body.ticket.ticket_id).await,
                        Ok(Err(ClientError::Problem(_))) => GivenUp::NoTicket,
                        Ok(Err(_)) | Err(_) => GivenUp::Unknown,
                    };
                    return Ok(Turn::Stopped { by, ticket });
                }
            }
        };
        if first.body.ticket.state != State::Waiting {
            return Ok(Turn::Answered(Box::new(first)));
        }
        on_waiting(&first.body);
        tokio::select! {
            reply = self.wait_turn(lock, &first, on_waiting) => {
                Ok(Turn::Answered(Box::new(reply?)))
            }
            by = &mut stop => {
                let ticket = self.give_up(lock, first.body.ticket.ticket_id).await;
                Ok(Turn::Stopped { by, ticket })
            }
        }
    }

    /// Polls until the ticket has stopped waiting.
    async fn wait_turn(
        &self,
        lock: &LockKey,
        first: &Reply<Answer>,
        mut on_waiting: impl FnMut(&Answer),
    ) -> Result<Reply<Answer>, ClientError> {
        let ticket = &first.body.ticket;
        let wait_ms = u64::from(ticket.wait_seconds) * 1000;
        let patience_ends = first.sent_at.plus_millis(wait_ms + POLL_GRACE_MS);
        loop {
            let asked = match self.ticket(lock, ticket.ticket_id, LONG_POLL_SECONDS_MAX).await {
                Ok(reply) if reply.body.ticket.state != State::Waiting => return Ok(reply),
                Ok(reply) => {
                    on_waiting(&reply.body);
                    None
                }
                Err(error) if error.is_passing() && BootTime::now() < patience_ends => {
                    error.retry_after()
                }
                Err(error) => return Err(error),
            };
            let pause = asked.unwrap_or_default().clamp(POLL_PAUSE, POLL_PAUSE_MAX);
            tokio::time::sleep(pause).await;
        }
    }

    /// Gives a ticket up, in a bounded time.
    async fn give_up(&self, lock: &LockKey, ticket_id: TicketId) -> GivenUp {
        match tokio::time::timeout(GIVE_UP_TIMEOUT, self.release(lock, ticket_id)).await {
            Ok(Ok(_)) => GivenUp::Done(ticket_id),
            Ok(Err(ClientError::Problem(refused))) if refused.problem.code == Code::TicketEnded => {
                GivenUp::Over(ticket_id)
            }
            Ok(Err(_)) | Err(_) => GivenUp::Failed(ticket_id),
        }
    }
}
