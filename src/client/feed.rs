//! Follows the event feed: each matching event once and in order, over broken connections.
//!
//! The cursor is the last sequence looked at. A reconnect names it, and the server goes on after
//! it; what comes twice all the same is dropped here.
//! Deliberately absent: giving up. Once the feed has been open it is reopened until the server
//! says that it is over (the token ended, access was lost).

use std::pin::Pin;
use std::time::Duration;

use eventsource_stream::{Event, Eventsource as _};
use serde::Deserialize;
use tokio_stream::{Stream, StreamExt as _};

use super::error::ClientError;
use super::transport::{Call, Client};
use crate::domain::id::Sequence;
use crate::domain::scope::Scope;

const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// How often the feed is tried that was never open.
const FIRST_TRIES_MAX: u32 = 4;

/// Which events. Those without a value let everything through.
#[derive(Debug, Clone, Default)]
pub struct EventFilter {
    /// In this scope.
    pub scope: Option<Scope>,
    /// About the lock of this name.
    pub lock: Option<String>,
    /// Of a type that one of these globs matches, like `lock.*`.
    pub types: Vec<String>,
    /// Of no type that one of these globs matches.
    pub exclude_types: Vec<String>,
    /// Caused by this user, or by `ledger`.
    pub actor: Option<String>,
}

impl EventFilter {
    pub(super) fn call<'a>(&'a self, path: &'a [&'a str]) -> Call<'a, ()> {
        let globs = |globs: &[String]| (!globs.is_empty()).then(|| globs.join(","));
        let mut call = Call::get(path)
            .with("lock", self.lock.as_deref())
            .with("type", globs(&self.types))
            .with("exclude_type", globs(&self.exclude_types))
            .with("actor", self.actor.as_deref());
        call.scope = self.scope.as_ref();
        call
    }
}

/// What the feed yields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeedItem {
    /// An event, as the JSON of a CloudEvent.
    Event {
        /// Its place.
        sequence: Sequence,
        /// The JSON as it came.
        json: String,
    },
    /// History has met the present.
    CaughtUp(Sequence),
    /// Nothing matched up to here.
    Checkpoint(Sequence),
    /// Events after this one were lost in a restore: read the state again.
    Reset(Sequence),
    /// The connection broke; it is opened again.
    Reconnecting(String),
}

#[derive(Deserialize)]
struct Control {
    sequence: Sequence,
}

type Frames = Pin<Box<dyn Stream<Item = Result<Event, String>>>>;

/// An event feed.
pub struct Feed<'a> {
    client: &'a Client,
    filter: EventFilter,
    cursor: Option<Sequence>,
    frames: Option<Frames>,
    was_open: bool,
    failures: u32,
}

impl Client {
    /// The feed of what `filter` lets through, after `after`; from now on without it.
    pub fn feed(&self, filter: EventFilter, after: Option<Sequence>) -> Feed<'_> {
        let (cursor, frames) = (after, None);
        Feed { client: self, filter, cursor, frames, was_open: false, failures: 0 }
    }
}

impl Feed<'_> {
    /// What comes next. Waits for it as long as it takes.
    ///
    /// # Errors
    /// The server refuses the feed, or it could not be opened in the first place.
    pub async fn next(&mut self) -> Result<FeedItem, ClientError> {
        loop {
            if self.frames.is_none() {
                self.open().await?;
            }
            let frame = match &mut self.frames {
                Some(frames) => frames.next().await,
                None => None,
            };
            match frame {
                Some(Ok(frame)) => {
                    self.failures = 0;
                    if let Some(item) = self.read(&frame)? {
                        return Ok(item);
                    }
                }
                Some(Err(why)) => return Ok(self.broken(why)),
                None => return Ok(self.broken("the server ended it".to_owned())),
            }
        }
    }

    fn broken(&mut self, why: String) -> FeedItem {
        self.frames = None;
        // An end right after an end is a failure too, so that no server is asked in a tight loop.
        self.failures += 1;
        FeedItem::Reconnecting(why)
    }

    /// Opens the feed after the cursor, with growing pauses between tries.
    async fn open(&mut self) -> Result<(), ClientError> {
        loop {
            if self.failures > 0 {
                let doublings = self.failures.saturating_sub(1).min(16);
                tokio::time::sleep((PAUSE_FIRST * 2_u32.pow(doublings)).min(PAUSE_MAX)).await;
            }
            let cursor = self.cursor.map(|sequence| sequence.to_string());
            let opened = self.client.open_feed(&self.filter.call(&["events"]), cursor).await;
            let error = match opened {
                Ok(response) => {
                    self.was_open = true;
                    let frames = response.bytes_stream().eventsource();
                    self.frames = Some(Box::pin(frames.map(|f| f.map_err(|e| e.to_string()))));
                    return Ok(());
                }
                Err(error) => error,
            };
            self.failures = self.failures.saturating_add(1);
            if !error.is_passing() || (!self.was_open && self.failures >= FIRST_TRIES_MAX) {
                return Err(error);
            }
        }
    }

    /// Takes a frame; `None` if it tells nothing new.
    fn read(&mut self, frame: &Event) -> Result<Option<FeedItem>, ClientError> {
        let control = || {
            serde_json::from_str(&frame.data)
                .map(|control: Control| control.sequence)
                .map_err(|e| ClientError::Unexpected(format!("a frame of the feed: {e}")))
        };
        Ok(match frame.event.as_str() {
            "caught-up" => Some(FeedItem::CaughtUp(self.advance(control()?))),
            "checkpoint" => Some(FeedItem::Checkpoint(self.advance(control()?))),
            "reset" => {
                // The cursor may be past events that are gone: it does go back, this once.
                let sequence = control()?;
                self.cursor = Some(sequence);
                Some(FeedItem::Reset(sequence))
            }
            _ => {
                let sequence = frame.id.parse().map(Sequence).map_err(|_| {
                    ClientError::Unexpected("an event of the feed has no sequence".to_owned())
                })?;
                if self.cursor.is_some_and(|cursor| sequence <= cursor) {
                    return Ok(None);
                }
                self.cursor = Some(sequence);
                Some(FeedItem::Event { sequence, json: frame.data.clone() })
            }
        })
    }

    fn advance(&mut self, sequence: Sequence) -> Sequence {
        self.cursor = self.cursor.max(Some(sequence));
        sequence
    }
}
