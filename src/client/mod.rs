//! The typed client: one method for each call of the server. The command line goes through it.
//!
//! A call has one of three ends: an answer, a [`Problem`](crate::wire::problem::Problem), or no
//! answer. Calls that can be repeated without harm are, a few times, when the answer got lost; an
//! acquire is repeated with its own request UUID, so it can't take the lock twice.
//! Deliberately absent: redirects (a token goes to the server that was named, and nowhere else).

mod activity;
mod address;
mod admin;
mod error;
#[cfg(test)]
mod fake;
mod feed;
mod frames;
mod locks;
mod threads;
mod transport;
mod turn;

pub use address::ServerUrl;
pub use error::{ClientError, Refused};
pub use feed::{EventFilter, Feed, FeedItem};
pub use locks::{Acquire, Page};
pub use threads::{NewReply, NewThread, Terms};
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
