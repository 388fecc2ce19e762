//! Follows the event feed: each matching event once and in order, over broken connections.
//!
//! The cursor is the last sequence looked at. A reconnect names it, and the server goes on after
//! it; what comes twice all the same is dropped here. A connection that broke is dropped whole,
//! with whatever of it was not yet read, before the next one is opened.
//! Deliberately absent: giving up. Once the feed has been open it is reopened until the server
//! says that it is over (the token ended, access was lost, the cursor can't be resumed).

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use tokio_stream::{Stream, StreamExt};

use super::error::ClientError;
use super::frames::{Frame, Frames};
use super::transport::{Call, Client, no_answer};
use crate::clock::BootTime;
use crate::domain::id::Sequence;
use crate::domain::scope::Scope;
use crate::random;

/// The first pause, until the server has said what it wants it to be. Each failure doubles it.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
/// The longest pause, unless the server asks for a longer one. A connection that lasted longer
/// was no failure.
const PAUSE_MAX: Duration = Duration::from_secs(30);
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

type Answer = Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>;

/// How the feed is connected.
enum Link {
    /// Not yet, or not any more: this opens it, after a pause.
    Opening(Pin<Box<dyn Future<Output = Result<Answer, ClientError>> + Send>>),
    Open(Connection),
    /// For good.
    Over,
}

struct Connection {
    answer: Answer,
    frames: Frames,
    /// Whole frames that were not looked at yet.
    unread: std::vec::IntoIter<Frame>,
    opened_at: BootTime,
}

/// An event feed. As a stream it ends after an error, and only then.
pub struct Feed {
    client: Client,
    filter: EventFilter,
    cursor: Option<Sequence>,
    link: Link,
    /// The pause after a first failure: the server's, once it has said so.
    pause: Duration,
    was_open: bool,
    /// Failures in a row.
    failures: u32,
}

impl Client {
    /// The feed of what `filter` lets through, after `after`; from now on without it.
    pub fn feed(&self, filter: EventFilter, after: Option<Sequence>) -> Feed {
        let mut feed = Feed {
            client: self.clone(),
            filter,
            cursor: after,
            link: Link::Over,
            pause: PAUSE_FIRST,
            was_open: false,
            failures: 0,
        };
        feed.reopen(Duration::ZERO);
        feed
    }
}

impl Feed {
    /// What comes next. Waits for it as long as it takes; dropped while it waits, it loses nothing.
    ///
    /// # Errors
    /// The server refuses the feed, or it could not be opened in the first place. The feed is over
    /// then.
    pub async fn next(&mut self) -> Result<FeedItem, ClientError> {
        match StreamExt::next(self).await {
            Some(item) => item,
            None => Err(ClientError::Unexpected("the feed is over".to_owned())),
        }
    }

    /// Up to where everything was yielded. Save it once the last item was handled, not before: a
    /// feed after it goes on with the next one.
    pub fn cursor(&self) -> Option<Sequence> {
        self.cursor
    }

    /// Opens the feed after the cursor and a pause.
    fn reopen(&mut self, pause: Duration) {
        let (client, filter) = (self.client.clone(), self.filter.clone());
        let cursor = self.cursor.map(|sequence| sequence.to_string());
        self.link = Link::Opening(Box::pin(async move {
            tokio::time::sleep(pause).await;
            let response = client.open_feed(&filter.call(&["events"]), cursor).await?;
            Ok(Box::pin(response.bytes_stream()) as Answer)
        }));
    }

    /// Opens it again after one more failure.
    fn retry(&mut self, retry_after: Option<Duration>) {
        let doubled = self.pause.saturating_mul(2_u32.pow(self.failures.min(16)));
        let pause = doubled.min(PAUSE_MAX).max(retry_after.unwrap_or_default());
        self.failures = self.failures.saturating_add(1);
        // Never earlier than the server wants it, and not all readers at once.
        let spread = pause.min(PAUSE_MAX).mul_f64(random::chance() / 2.0);
        self.reopen(pause.saturating_add(spread));
    }

    fn broken(&mut self, opened_at: BootTime, why: String) -> FeedItem {
        if opened_at.until(BootTime::now()) > PAUSE_MAX {
            self.failures = 0;
        }
        self.retry(None);
        FeedItem::Reconnecting(why)
    }

    /// Takes a frame; `None` if it tells nothing new.
    fn read(&mut self, frame: Frame) -> Result<Option<FeedItem>, ClientError> {
        if let Some(retry) = frame.retry {
            self.pause = retry.min(PAUSE_MAX);
        }
        // Without data it is nothing more than that.
        if frame.data.is_empty() {
            return Ok(None);
        }
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
                self.cursor = self.cursor.min(Some(sequence));
                Some(FeedItem::Reset(sequence))
            }
            _ => {
                let sequence = frame.id.parse().map(Sequence).map_err(|_| {
                    ClientError::Unexpected("an event of the feed has no sequence".to_owned())
                })?;
                if self.cursor.is_some_and(|cursor| sequence <= cursor) {
                    return Ok(None);
                }
                self.advance(sequence);
                Some(FeedItem::Event { sequence, json: frame.data })
            }
        })
    }

    /// Moves the cursor on, which is what a connection is for: one that does isn't a failure.
    fn advance(&mut self, sequence: Sequence) -> Sequence {
        if self.cursor < Some(sequence) {
            self.cursor = Some(sequence);
            self.failures = 0;
        }
        sequence
    }
}

impl Stream for Feed {
    type Item = Result<FeedItem, ClientError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let feed = &mut *self;
        loop {
            let result = match &mut feed.link {
                Link::Over => return Poll::Ready(None),
                Link::Opening(opening) => match ready!(opening.as_mut().poll(cx)) {
                    Ok(answer) => {
                        feed.was_open = true;
                        feed.link = Link::Open(Connection::new(answer));
                        continue;
                    }
                    Err(error) => {
                        let may_try = feed.was_open || feed.failures + 1 < FIRST_TRIES_MAX;
                        if error.is_passing() && may_try {
                            feed.retry(error.retry_after());
                            continue;
                        }
                        Err(error)
                    }
                },
                Link::Open(connection) => match ready!(connection.poll_frame(cx)) {
                    Ok(frame) => match feed.read(frame).transpose() {
                        Some(result) => result,
                        None => continue,
                    },
                    Err(why) => {
                        let opened_at = connection.opened_at;
                        Ok(feed.broken(opened_at, why))
                    }
                },
            };
            if result.is_err() {
                feed.link = Link::Over;
            }
            return Poll::Ready(Some(result));
        }
    }
}

impl Connection {
    fn new(answer: Answer) -> Self {
        let (frames, unread) = (Frames::default(), Vec::new().into_iter());
        Self { answer, frames, unread, opened_at: BootTime::now() }
    }

    /// The next frame, or why there is none.
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Result<Frame, String>> {
        loop {
            if let Some(frame) = self.unread.next() {
                return Poll::Ready(Ok(frame));
            }
            match ready!(self.answer.as_mut().poll_next(cx)) {
                Some(Ok(bytes)) => match self.frames.push(&bytes) {
                    Ok(frames) => self.unread = frames.into_iter(),
                    Err(why) => return Poll::Ready(Err(why.to_owned())),
                },
                Some(Err(error)) => return Poll::Ready(Err(no_answer(&error).to_string())),
                None => return Poll::Ready(Err("the server ended it".to_owned())),
            }
        }
    }
}

#[cfg(test)]
#[path = "feed_tests.rs"]
mod tests;
