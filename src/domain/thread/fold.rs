//! A thread as its events made it, up to any one of them.

use super::{ThreadKey, ThreadRow, ThreadState};
use crate::domain::event::{Event, Record, ThreadCreated, ThreadReplied};
use crate::domain::id::{ReplyId, Sequence};
use crate::domain::name::UserName;
use crate::domain::text::{ShortText, ThreadBody};
use crate::domain::time::Time;

/// A thread at some sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Which.
    pub key: ThreadKey,
    /// What it is called.
    pub title: ShortText,
    /// What it is about.
    pub body: ThreadBody,
    /// Who began it.
    pub author: UserName,
    /// When.
    pub created_at: Time,
    /// Whether there is work left.
    pub state: ThreadState,
    /// When it last changed.
    pub updated_at: Time,
    /// Its last event.
    pub sequence: Sequence,
    /// Its replies, in the order in which they were written.
    pub replies: Vec<Reply>,
}

/// A reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// What was written.
    pub data: ThreadReplied,
    /// When.
    pub created_at: Time,
    /// The event that wrote it.
    pub sequence: Sequence,
}

impl Thread {
    /// Folds an event into a thread, which the first one makes. The caller hands in that thread's
    /// events and no others.
    pub fn apply(thread: &mut Option<Self>, record: Record) {
        let Record { sequence, time, event, .. } = record;
        if let Event::ThreadCreated(e) = event {
            *thread = Some(Self::begin(e, time, sequence));
            return;
        }
        let Some(thread) = thread else { return };
        (thread.updated_at, thread.sequence) = (time, sequence);
        thread.state = ThreadState::after(&event).unwrap_or(thread.state);
        if let Event::ThreadReplied(data) = event {
            thread.replies.push(Reply { data, created_at: time, sequence });
        }
    }

    /// The reply that the event at a sequence wrote.
    pub fn reply_at(&self, sequence: Sequence) -> Option<ReplyId> {
        let reply = self.replies.iter().find(|reply| reply.sequence == sequence);
        reply.map(|reply| reply.data.reply_id)
    }

    fn begin(e: ThreadCreated, time: Time, sequence: Sequence) -> Self {
        Self {
            key: ThreadKey { scope: e.scope, number: e.number },
            title: e.title,
            body: e.body,
            author: e.author,
            created_at: time,
            state: ThreadState::Open,
            updated_at: time,
            sequence,
            replies: Vec::new(),
        }
    }
}

impl ThreadRow {
    /// Folds an event into what is known of a thread, as [`Thread::apply`] does into the thread.
    pub fn apply(row: &mut Option<Self>, record: Record) {
        let Record { sequence, time, event, .. } = record;
        if let Event::ThreadCreated(e) = event {
            *row = Some(Self {
                title: e.title,
                author: e.author,
                created_at: time,
                state: ThreadState::Open,
                replies_count: 0,
                updated_at: time,
                sequence,
            });
            return;
        }
        let Some(row) = row else { return };
        (row.updated_at, row.sequence) = (time, sequence);
        row.state = ThreadState::after(&event).unwrap_or(row.state);
        if let Event::ThreadReplied(data) = event {
            row.replies_count = data.replies_count;
        }
    }
}

impl ThreadState {
    /// The state that an event turns a thread into, if it turns it.
    pub fn after(event: &Event) -> Option<Self> {
        if matches!(event, Event::ThreadClosed(_)) {
            return Some(Self::Closed);
        }
        matches!(event, Event::ThreadReopened(_)).then_some(Self::Open)
    }
}
