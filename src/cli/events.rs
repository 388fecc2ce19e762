//! Commands about events.

use serde_json::value::RawValue;

use super::args::FilterArgs;
use super::output::{Format, Output};
use super::{Ended, text};
use crate::client::{Client, EventFilter, FeedItem};
use crate::domain::id::Sequence;
use crate::wire::problem::EXIT_DONE;

impl From<&FilterArgs> for EventFilter {
    fn from(args: &FilterArgs) -> Self {
        Self {
            scope: args.scope.scope(),
            lock: args.lock.as_ref().map(ToString::to_string),
            types: args.types.clone(),
            exclude_types: args.exclude_types.clone(),
            actor: args.actor.clone(),
        }
    }
}

/// Events, one a line.
pub(super) fn lines(events: &[Box<RawValue>]) -> String {
    events.iter().map(|event| text::event(event.get()) + "\n").collect()
}

/// Prints events as they happen. Ends when the server ends the feed for good, or when nobody
/// reads what is printed.
pub(super) async fn watch(
    client: &Client,
    output: &mut Output,
    args: &FilterArgs,
    after: Option<Sequence>,
) -> Ended {
    let mut feed = client.feed(args.into(), after);
    while !output.is_closed() {
        match feed.next().await? {
            FeedItem::Event { json, .. } => output.result(&json, || text::event(&json))?,
            FeedItem::CaughtUp(sequence) if output.format() == Format::Text => {
                output.message(&format!("caught up at {sequence}; waiting for what comes"));
            }
            FeedItem::CaughtUp(_) | FeedItem::Checkpoint(_) => {}
            FeedItem::Reset(sequence) => output.message(&format!(
                "the ledger was restored: events after {sequence} that were printed may be gone"
            )),
            FeedItem::Reconnecting(why) => output.message(&format!("reconnecting: {why}")),
        }
    }
    Ok(EXIT_DONE)
}
