//! HTTP: parses, authenticates, calls the service, renders. It has no rules of its own.
//!
//! Read `routes` first: it is all of the surface on one page. A request goes through
//! `server` (sockets), `call` (one request, from its head to its answer) and the handler of
//! its noun. What the handlers share: `query` and `body` parse, `answer` renders,
//! `failure` says why there is no ordinary answer.
//!
//! Deliberately absent: HTTP/2, TLS, compression and CORS. A proxy in front has the first two, the
//! third would hold back a feed's events, and the last would let other sites' pages in.

mod admin;
mod answer;
mod body;
mod call;
mod events;
mod failure;
mod feeds;
mod locks;
mod operations;
mod pacing;
mod query;
mod routes;
mod server;
#[cfg(test)]
mod tests;
mod tickets;
mod whoami;

use tokio::sync::watch;

use crate::service::{Service, ServiceError};
use failure::Failure;
use feeds::Feeds;

pub use server::serve;

/// What every handler works on.
#[derive(Clone)]
struct Api {
    service: Service,
    feeds: Feeds,
    /// True once the server drains: feeds and long polls end.
    draining: watch::Receiver<bool>,
}

impl Api {
    fn new(service: Service) -> Self {
        let draining = service.draining();
        Self { service, feeds: Feeds::default(), draining }
    }

    /// Reads what may take long: a disk is asked, or a history folded. So on a thread that may
    /// block, where it holds up no other request.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Service) -> Result<T, ServiceError> + Send + 'static,
    ) -> Result<T, Failure> {
        let service = self.service.clone();
        let done = tokio::task::spawn_blocking(move || read(&service)).await;
        Ok(done.expect("a read doesn't panic, and nobody aborts it")?)
    }

    /// Resolves once the server drains.
    async fn drained(&self) {
        // An error means that the service is gone, which ends everything as well.
        let _ = self.draining.clone().wait_for(|is_draining| *is_draining).await;
    }
}
