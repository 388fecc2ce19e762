//! Real servers, an HTTP client and a feed reader that are not ours, and bounded waiting.
//!
//! Each test starts its own server on a free loopback port with a directory of its own, so no
//! test depends on another. Whatever a test starts, it ends by its process id when it is dropped.

mod client;
mod contract;
mod cutter;
mod feed;
mod process;
mod relay;
mod server;
mod sse;
pub(crate) mod trace;

use std::time::Duration;

use pearing::clock;

pub(crate) use client::{Client, Reply, path_of, uuid};
pub(crate) use cutter::Cutter;
pub(crate) use feed::{Event, Feed, Frame};
pub(crate) use process::{Process, SIGKILL, SIGTERM};
pub(crate) use relay::Relay;
pub(crate) use server::{REPO, Server, pearing, pearing_cli, shell};
pub(crate) use sse::{RawFeed, SseFrame, SseParser};

/// How long anything may take that a test waits for. Far more than it needs, so that a busy
/// machine fails no test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// How long to leave between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Looks again and again until there is something to see.
pub(crate) async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let began = clock::monotonic();
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(clock::elapsed(began) < PATIENCE, "waited in vain: {what}");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
