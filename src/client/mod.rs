//! The typed client: one method for each call of the server. The command line goes through it.
//!
//! A call has one of three ends: an answer, a [`Problem`](crate::wire::problem::Problem), or no
//! answer. Calls that can be repeated without harm are, a few times, when the answer got lost; an
//! acquire is repeated with its own request UUID, so it can't take the lock twice.
//! Deliberately absent: redirects (a token goes to the server that was named, and nowhere else).
//!
//! # Work under a lock, on events
//!
//! [`Client::hold`] waits its turn and then keeps the lease: it heartbeats at a third of it, and
//! knows at any moment whether it is held, in doubt (heartbeats go unanswered, but there is time
//! left) or lost. [`Client::feed`] follows events over reconnects, from where it was saved.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use pearing::client::{Acquire, Client, EventFilter, FeedItem, Lease, LeaseState};
//! use pearing::domain::id::{RequestUuid, Sequence};
//! use pearing::domain::scope::LockKey;
//! use pearing::random;
//!
//! # async fn save(_cursor: Option<Sequence>) {}
//! # async fn work(_lease: &Lease) {}
//! # async fn clean_up() {}
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::new(&"http://127.0.0.1:7420".parse()?, &std::env::var("PEARING_TOKEN")?)?;
//! let scope: pearing::domain::scope::Scope = "teams/platform/website".parse()?;
//! let filter = EventFilter {
//!     scope: Some(scope.clone()),
//!     types: vec!["thread.*".to_owned()],
//!     ..EventFilter::default()
//! };
//! let mut feed = client.feed(filter, Some(Sequence(0)));
//! loop {
//!     let FeedItem::Event { .. } = feed.next().await? else { continue };
//!     let lock = LockKey { scope: scope.clone(), lock_name: "thread-work.42".parse()? };
//!     let ask = Acquire {
//!         request_uuid: RequestUuid(random::uuid()),
//!         lease_seconds: None,
//!         wait_seconds: Some(600_u64.try_into()?),
//!         note: None,
//!         reentrant: Some(false),
//!     };
//!     let stop = async { tokio::signal::ctrl_c().await };
//!     let mut lease = client.hold(&lock, &ask, stop).await?;
//!     // Ten seconds before the lease would run out, work ends in good order.
//!     let watch = lease.watch();
//!     tokio::select! {
//!         () = work(&lease) => {}
//!         state = watch.until(Duration::from_secs(10)) => match state {
//!             LeaseState::Held { .. } | LeaseState::InDoubt { .. } => clean_up().await,
//!             LeaseState::Lost(_) => {}
//!         }
//!     }
//!     lease.release().await?;
//!     save(feed.cursor()).await;
//! }
//! # }
//! ```
//!
//! Every write to the outside carries [`Lease::fence_token`], so that its target can refuse a late
//! one: no client can see its own pause between a look at the lease and a write.

mod activity;
mod address;
mod admin;
mod error;
#[cfg(test)]
mod fake;
mod feed;
mod frames;
mod health;
mod lease;
mod ledger;
mod locks;
mod threads;
mod timeline;
mod transport;
mod turn;

pub use address::ServerUrl;
pub use error::{ClientError, Refused};
pub use feed::{EventFilter, Feed, FeedItem};
pub use health::{Seen, mcp_hello};
pub use lease::{Lease, LeaseState, LeaseWatch, Lost, NotHeld, sleep_until};
pub use locks::{Acquire, Page};
pub use threads::{NewReply, NewThread, Terms};
pub use timeline::{Drawing, Timeline};
pub use transport::{Client, Reply};
pub use turn::{GivenUp, Turn};

use crate::clock::BootTime;
use crate::wire::ticket::Answer;

/// The longest that one call asks the server to hold an answer back, in seconds.
pub const LONG_POLL_SECONDS_MAX: u32 = 25;

/// When a lease ends on the client's own clock: counted from when the request was SENT, so that
/// the way there and back is on the safe side. `None` if the ticket is not held.
pub fn lease_deadline(answer: &Answer, sent_at: BootTime) -> Option<BootTime> {
    let remaining_ms = answer.ticket.lease_remaining_ms?;
    Some(sent_at.plus_millis(answer.answered_after_ms.saturating_add(remaining_ms)))
}
