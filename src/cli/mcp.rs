//! The Model Context Protocol over stdin and stdout, for an agent that starts this program.
//!
//! It asks the server through the typed client, with the token of its profile. It can do one thing
//! that the server can't: heartbeat for a model that is busy for minutes, since it lives exactly
//! as long as the agent's session.
//! Deliberately absent: letting go at the end of a session. What was begun may still be going on,
//! so heartbeats end, and the lease by itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::ServiceExt as _;
use serde_json::Value;
use tokio::sync::watch;

use super::connection::Connection;
use super::{Ended, Failure};
use crate::client::{Client, ClientError, LONG_POLL_SECONDS_MAX, Lost, Reply};
use crate::clock::BootTime;
use crate::domain::id::TicketId;
use crate::domain::scope::LockKey;
use crate::mcp::{Api, Mcp, Told};
use crate::wire::ask::Ask;
use crate::wire::problem::EXIT_DONE;
use crate::wire::ticket::{Answer, State, Ticket};

/// The pause before a ticket is looked at again whose server gave no answer.
const PAUSE: Duration = Duration::from_secs(1);

/// Serves one agent until it closes stdin.
pub(super) async fn mcp(connection: &Connection) -> Ended {
    let Connection { server, token } = connection;
    let client = Client::new(&server.url, &token.text)?;
    let (calls, last_call) = watch::channel(BootTime::now());
    let kept = Mutex::default();
    let remote = Remote { client, calls, last_call, kept: Arc::new(kept) };
    let failed = |why: String| Failure::Store(why);
    let served = Mcp::new(remote).serve(rmcp::transport::stdio()).await;
    match served {
        Ok(served) => {
            served.waiting().await.map_err(|error| failed(error.to_string()))?;
            Ok(EXIT_DONE)
        }
        // An agent that goes away before it has said anything has wanted nothing.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Ok(EXIT_DONE),
        Err(error) => Err(failed(format!("no session: {error}"))),
    }
}

/// The API, as the typed client reaches it.
struct Remote {
    client: Client,
    /// When the agent called last.
    calls: watch::Sender<BootTime>,
    last_call: watch::Receiver<BootTime>,
    /// For how many minutes each ticket is kept. A task watches each one.
    kept: Arc<Mutex<HashMap<TicketId, watch::Sender<Duration>>>>,
}

impl Api for Remote {
    const CAN_KEEP_ALIVE: bool = true;

    async fn ask(&self, ask: Ask) -> Told {
        let parsed = |json: &str| serde_json::from_str(json).unwrap_or(Value::Null);
        match self.client.ask(&ask).await {
            Ok(reply) => Told::Answer(parsed(&reply.json)),
            Err(ClientError::Problem(refused)) => Told::Problem(parsed(&refused.json)),
            Err(error) => Told::Nothing(error.to_string()),
        }
    }

    fn is_ending(&self) -> bool {
        false
    }

    fn note_call(&self) {
        self.calls.send_replace(BootTime::now());
    }

    fn keep_alive(&self, ticket: &Value, minutes: u64) {
        let Ok(ticket) = serde_json::from_value::<Ticket>(ticket.clone()) else { return };
        let length = Duration::from_secs(minutes * 60);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // Asked again, as after a lost answer, or for another length: the task is there.
        if let Some(known) = kept.get(&ticket.ticket_id)
            && known.send(length).is_ok()
        {
            return;
        }
        if length.is_zero() {
            return;
        }
        let (tells, told) = watch::channel(length);
        kept.insert(ticket.ticket_id, tells);
        let (client, last_call) = (self.client.clone(), self.last_call.clone());
        let (all, ticket_id) = (Arc::clone(&self.kept), ticket.ticket_id);
        tokio::spawn(async move {
            Keeping { client, last_call, length: told }.keep(ticket).await;
            all.lock().unwrap_or_else(PoisonError::into_inner).remove(&ticket_id);
        });
    }
}

/// Keeps one ticket as long as its agent is about.
struct Keeping {
    client: Client,
    last_call: watch::Receiver<BootTime>,
    length: watch::Receiver<Duration>,
}

impl Keeping {
    /// Until the ticket has ended, or the session.
    async fn keep(&mut self, ticket: Ticket) {
        let lock = LockKey { scope: ticket.scope, lock_name: ticket.lock_name };
        loop {
            // A ticket that waits is kept from its promotion on, whoever is told of it.
            let Some(reply) = self.held(&lock, ticket.ticket_id).await else { return };
            let Some(lease) = self.client.keep(&reply) else { continue };
            let watch = lease.watch();
            tokio::select! {
                lost = watch.lost() => match lost {
                    // The server knows better than the clock here: after an outage it gives grace.
                    Lost::Deadline => continue,
                    Lost::Refused(_) | Lost::LetGo => return,
                },
                () = self.agent_is_away() => {}
            }
            // Dropped, it isn't heartbeaten. It is still held for a while, and the agent's next
            // call goes on with it.
            drop(lease);
            if self.length.borrow().is_zero() || self.last_call.changed().await.is_err() {
                return;
            }
        }
    }

    /// The ticket, once it is held. Looked at at most once a second.
    async fn held(&self, lock: &LockKey, ticket_id: TicketId) -> Option<Reply<Answer>> {
        loop {
            match self.client.ticket(lock, ticket_id, LONG_POLL_SECONDS_MAX).await {
                Ok(reply) if reply.body.ticket.state == State::Held => return Some(reply),
                Ok(reply) if reply.body.ticket.state == State::Waiting => {}
                Err(error) if error.is_passing() => {}
                Ok(_) | Err(_) => return None,
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Ends when the agent has called nothing for too long.
    async fn agent_is_away(&mut self) {
        loop {
            let end = self.last_call.borrow().plus(*self.length.borrow());
            let left = BootTime::now().until(end);
            if left.is_zero() {
                return;
            }
            // A timer stands still while the machine sleeps, so it looks again soon.
            tokio::time::sleep(left.min(PAUSE)).await;
        }
    }
}
