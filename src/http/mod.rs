//! HTTP: parses, authenticates, calls the service, renders. It has no rules of its own.
//!
//! Read `routes` first: it is all of the surface on one page. A request goes through
//! `server` (sockets), `call` (one request, from its head to its answer) and the handler of
//! its noun. What the handlers share: `query` and `body` parse, `answer` renders,
//! `failure` says why there is no ordinary answer.
//!
//! Deliberately absent: HTTP/2, TLS, compression and CORS. A proxy in front has the first two, the
//! third would hold back a feed's events, and the last would let other sites' pages in.

mod activity;
mod admin;
mod agents;
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
mod threads;
mod tickets;
mod whoami;

use std::sync::Arc;

use tokio::sync::{Semaphore, watch};

use crate::service::{Service, ServiceError};
use failure::Failure;
use feeds::Feeds;

pub use routes::every_route;
pub use server::serve;

/// How many histories may be folded at once: each takes a processor for as long as it lasts, and
/// the writer and the other reads need one too.
const FOLDS_MAX: usize = 2;

/// What every handler works on.
#[derive(Clone)]
struct Api {
    service: Service,
    feeds: Feeds,
    /// One permit for each history that may still be folded.
    folds: Arc<Semaphore>,
    /// True once the server drains: feeds and long polls end.
    draining: watch::Receiver<bool>,
}

impl Api {
    fn new(service: Service) -> Self {
        let draining = service.draining();
        let folds = Arc::new(Semaphore::new(FOLDS_MAX));
        Self { service, feeds: Feeds::default(), folds, draining }
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

    /// Reads the past, which is folded from a history of any length: few at once, the others wait.
    async fn read_past<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Service) -> Result<T, ServiceError> + Send + 'static,
    ) -> Result<T, Failure> {
        // Waited for here, since the threads that may block are there for all reads.
        let permit = self.folds.clone().acquire_owned().await.expect("nobody closes it");
        self.read(move |service| {
            // Kept by the read itself, which goes on when whoever asked has gone.
            let _permit = permit;
            read(service)
        })
        .await
    }

    /// Resolves once the server drains.
    async fn drained(&self) {
        // An error means that the service is gone, which ends everything as well.
        let _ = self.draining.clone().wait_for(|is_draining| *is_draining).await;
    }
}
