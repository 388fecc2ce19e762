//! Calls about locks, tickets and events.

use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::LONG_POLL_SECONDS_MAX;
use super::error::{ClientError, Refused};
use super::feed::EventFilter;
use super::transport::{Call, Client, Repeat, Reply};
use crate::domain::id::{FenceToken, RequestUuid, Sequence, TicketId};
use crate::domain::scope::{LockKey, Scope};
use crate::domain::text::ShortText;
use crate::domain::time::{LeaseSeconds, WaitSeconds};
use crate::wire::admin::WhoAmI;
use crate::wire::list::List;
use crate::wire::lock::Lock;
use crate::wire::ticket::{Answer, Ticket};
use crate::wire::why::Why;

/// What an acquire asks for, apart from the lock. What is `None` is left to the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acquire {
    /// The caller's name for the request. A retry has the same one.
    pub request_uuid: RequestUuid,
    /// The lease, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_seconds: Option<LeaseSeconds>,
    /// How long it may wait, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_seconds: Option<WaitSeconds>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<ShortText>,
    /// Whether it may join a hold of its own identity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reentrant: Option<bool>,
}

/// Which part of a list.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// The `next` of the page before.
    pub cursor: Option<String>,
    /// The most items.
    pub limit: Option<u32>,
}

#[derive(Serialize)]
struct HeartbeatBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_seconds: Option<LeaseSeconds>,
}

#[derive(Serialize)]
struct BreakBody<'a> {
    fence_token: FenceToken,
    reason: &'a ShortText,
}

impl Client {
    /// Acquires. A ticket in ANY state is an answer: contended and rejected ones too.
    ///
    /// # Errors
    /// As for every call; a problem only if there is no ticket.
    pub async fn acquire(
        &self,
        lock: &LockKey,
        acquire: &Acquire,
    ) -> Result<Reply<Answer>, ClientError> {
        let path = ["locks", lock.lock_name.as_str(), "tickets"];
        // Harmless: the request UUID makes every repetition the same request.
        let call = Call::send(Method::POST, &path, acquire, Repeat::Harmless).at(&lock.scope);
        match self.call(call).await {
            Err(ClientError::Problem(refused)) => ended_answer(*refused),
            other => other,
        }
    }

    /// Reads a ticket. With `wait_seconds` the answer is held back until the ticket is no longer
    /// waiting, at most [`LONG_POLL_SECONDS_MAX`].
    ///
    /// # Errors
    /// As for every call.
    pub async fn ticket(
        &self,
        lock: &LockKey,
        ticket_id: TicketId,
        wait_seconds: u32,
    ) -> Result<Reply<Answer>, ClientError> {
        let id = ticket_id.to_string();
        let path = ["locks", lock.lock_name.as_str(), "tickets", &id];
        let wait_seconds = wait_seconds.min(LONG_POLL_SECONDS_MAX);
        self.call(Call { wait_seconds, ..Call::get(&path).at(&lock.scope) }).await
    }

    /// Asks why a ticket went as it did.
    ///
    /// # Errors
    /// As for every call.
    pub async fn why(
        &self,
        lock: &LockKey,
        ticket_id: TicketId,
    ) -> Result<Reply<Why>, ClientError> {
        let id = ticket_id.to_string();
        let path = ["locks", lock.lock_name.as_str(), "tickets", &id, "why"];
        self.call(Call::get(&path).at(&lock.scope)).await
    }

    /// Extends the lease of a held ticket.
    ///
    /// # Errors
    /// As for every call; `ticket-not-held` means that ownership is lost.
    pub async fn heartbeat(
        &self,
        lock: &LockKey,
        ticket_id: TicketId,
        lease_seconds: Option<LeaseSeconds>,
    ) -> Result<Reply<Answer>, ClientError> {
        self.beat(lock, ticket_id, lease_seconds, Repeat::Harmless).await
    }

    /// The same with the ticket's own lease, and never repeated: the lease loop has its own pauses.
    pub(super) async fn heartbeat_once(
        &self,
        lock: &LockKey,
        ticket_id: TicketId,
    ) -> Result<Reply<Answer>, ClientError> {
        self.beat(lock, ticket_id, None, Repeat::Never).await
    }

    async fn beat(
        &self,
        lock: &LockKey,
        ticket_id: TicketId,
        lease_seconds: Option<LeaseSeconds>,
        repeat: Repeat,
    ) -> Result<Reply<Answer>, ClientError> {
        let id = ticket_id.to_string();
        let path = ["locks", lock.lock_name.as_str(), "tickets", &id, "heartbeat"];
        let body = HeartbeatBody { lease_seconds };
        self.call(Call::send(Method::POST, &path, &body, repeat).at(&lock.scope)).await
    }

    /// Lets go of a held ticket, or gives up a waiting one.
    ///
    /// # Errors
    /// As for every call; `ticket-ended` means that it was lost before.
    pub async fn release(
        &self,
        lock: &LockKey,
        ticket_id: TicketId,
    ) -> Result<Reply<Answer>, ClientError> {
        let id = ticket_id.to_string();
        let path = ["locks", lock.lock_name.as_str(), "tickets", &id];
        self.call(Call::delete(&path).at(&lock.scope)).await
    }

    /// Reads a lock, as it was at `as_of` (a sequence or a time) if that is given.
    ///
    /// # Errors
    /// As for every call.
    pub async fn lock(
        &self,
        lock: &LockKey,
        as_of: Option<&str>,
    ) -> Result<Reply<Lock>, ClientError> {
        let path = ["locks", lock.lock_name.as_str()];
        self.call(Call::get(&path).at(&lock.scope).with("as_of", as_of)).await
    }

    /// Lists the held locks of a scope.
    ///
    /// # Errors
    /// As for every call.
    pub async fn locks(
        &self,
        scope: &Scope,
        as_of: Option<&str>,
        page: &Page,
    ) -> Result<Reply<List<Lock>>, ClientError> {
        let call = Call::get(&["locks"]).at(scope).with("as_of", as_of).page(page);
        self.call(call).await
    }

    /// Lists one's own live tickets, in one state if that is given.
    ///
    /// # Errors
    /// As for every call.
    pub async fn tickets(
        &self,
        state: Option<&str>,
        page: &Page,
    ) -> Result<Reply<List<Ticket>>, ClientError> {
        self.call(Call::get(&["tickets"]).with("state", state).page(page)).await
    }

    /// Lists a lock's events.
    ///
    /// # Errors
    /// As for every call.
    pub async fn history(
        &self,
        lock: &LockKey,
        page: &Page,
    ) -> Result<Reply<List<Box<RawValue>>>, ClientError> {
        let path = ["locks", lock.lock_name.as_str(), "history"];
        self.call(Call::get(&path).at(&lock.scope).page(page)).await
    }

    /// Ends somebody's hold: the one with this fence token, and no newer one.
    ///
    /// # Errors
    /// As for every call; `stale-fence` if that hold is over.
    pub async fn break_lock(
        &self,
        lock: &LockKey,
        fence_token: FenceToken,
        reason: &ShortText,
    ) -> Result<Reply<Lock>, ClientError> {
        let path = ["locks", lock.lock_name.as_str(), "break"];
        let body = BreakBody { fence_token, reason };
        self.call(Call::send(Method::POST, &path, &body, Repeat::WhenBusy).at(&lock.scope)).await
    }

    /// Lists events, oldest first: those after `after`, from the start without it.
    ///
    /// # Errors
    /// As for every call.
    pub async fn events(
        &self,
        filter: &EventFilter,
        after: Option<Sequence>,
        page: &Page,
    ) -> Result<Reply<List<Box<RawValue>>>, ClientError> {
        // A further page begins at its cursor, wherever the first one began.
        let after = after.filter(|_| page.cursor.is_none());
        self.call(filter.call(&["events"]).with("after", after).page(page)).await
    }

    /// Who the token stands for.
    ///
    /// # Errors
    /// As for every call.
    pub async fn whoami(&self) -> Result<Reply<WhoAmI>, ClientError> {
        self.call(Call::get(&["whoami"])).await
    }
}

impl<B> Call<'_, B> {
    /// Adds the parameters of a page.
    pub(super) fn page(self, page: &Page) -> Self {
        self.with("cursor", page.cursor.as_deref()).with("limit", page.limit)
    }
}

/// The ticket of a problem that is an acquire's answer; any other problem stays one.
fn ended_answer(refused: Refused) -> Result<Reply<Answer>, ClientError> {
    let problem = &refused.problem;
    let ticket = match &problem.ticket {
        Some(ticket) if ticket.state.code() == Some(problem.code) => ticket.clone(),
        Some(_) | None => return Err(ClientError::Problem(Box::new(refused))),
    };
    let body = Answer {
        ticket,
        answered_after_ms: problem.answered_after_ms.unwrap_or(0),
        holder: problem.holder.clone(),
        retry_after_seconds: problem.retry_after_seconds,
        cycle: problem.cycle.clone(),
    };
    let Refused { json, sent_at, is_replay, .. } = refused;
    Ok(Reply { body, json, sent_at, is_replay })
}
