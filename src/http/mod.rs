//! HTTP: parses, authenticates, calls the service, renders. It has no rules of its own.
//!
//! Read `routes` first: it is all of the surface on one page. A request goes through
//! `server` (sockets), `hosts` (is it meant for this server), `call` (one request, from its head
//! to its answer), `rates` (is it too much) and the handler of its noun. `request` is what logs and
//! metrics know of it. What the handlers share:
//! `query` and `body` parse, `answer` renders, `failure` says why there is no ordinary answer.
//!
//! Deliberately absent: HTTP/2, TLS, compression and CORS. A proxy in front has the first two, the
//! third would hold back a feed's events, and the last would let other sites' pages in.

mod activity;
mod admin;
mod agents;
mod answer;
mod body;
mod call;
mod cursor;
mod docs;
mod events;
mod failure;
mod feed_session;
mod feeds;
mod hosts;
mod large;
mod locks;
mod mcp;
mod operations;
mod pacing;
mod query;
mod rates;
mod request;
mod routes;
mod server;
#[cfg(test)]
mod tests;
mod threads;
mod tickets;
mod timeline;
mod whoami;

use std::num::NonZeroU32;
use std::sync::Arc;

use tokio::sync::{Semaphore, watch};
use tracing::Span;

use crate::clock::RateClock;
use crate::service::{Service, ServiceError};
use failure::Failure;
use feeds::Feeds;
use large::Large;
use rates::Rates;

pub use routes::every_route;
pub use server::serve;

/// How many histories may be folded at once: each takes a processor for as long as it lasts, and
/// the writer and the other reads need one too.
const FOLDS_MAX: usize = 2;

/// What the surface takes, beside what the service does.
#[derive(Debug, Clone)]
pub struct Options {
    /// Requests a second of one identity; as many heartbeats and releases beside them.
    pub requests_per_second_per_identity: NonZeroU32,
    /// Requests a second that name one scope, without heartbeats and releases.
    pub requests_per_second_per_scope: NonZeroU32,
    /// Feeds that one identity may have open.
    pub feeds_per_identity: usize,
    /// Hosts that the server is known by, beside those of the loopback if it listens there; if
    /// there are none, and it listens elsewhere, it answers to any.
    pub allowed_hosts: Vec<String>,
}

/// What every handler works on.
#[derive(Clone)]
struct Api {
    service: Service,
    feeds: Feeds,
    rates: Arc<Rates>,
    large: Large,
    /// One permit for each history that may still be folded.
    folds: Arc<Semaphore>,
    /// True once the server drains: feeds and long polls end.
    draining: watch::Receiver<bool>,
}

impl Api {
    fn new(service: Service, options: &Options) -> Self {
        let rates = Rates::new(
            options.requests_per_second_per_identity,
            options.requests_per_second_per_scope,
            &RateClock,
        );
        Self {
            feeds: Feeds::new(options.feeds_per_identity),
            rates: Arc::new(rates),
            large: Large::default(),
            folds: Arc::new(Semaphore::new(FOLDS_MAX)),
            draining: service.draining(),
            service,
        }
    }

    /// Reads what may take long: a disk is asked, or a history folded. So on a thread that may
    /// block, where it holds up no other request.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Service) -> Result<T, ServiceError> + Send + 'static,
    ) -> Result<T, Failure> {
        let (service, span) = (self.service.clone(), Span::current());
        let done = tokio::task::spawn_blocking(move || span.in_scope(|| read(&service))).await;
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
