//! Threads as JSON: an item of a list, and a whole one with its tree of replies.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::event::ThreadReplied;
use crate::domain::id::{ReplyId, Sequence};
use crate::domain::name::UserName;
use crate::domain::scope::Scope;
use crate::domain::text::{ReplyBody, ShortText, ThreadBody};
use crate::domain::thread::{
    self, Links, ReplyKind, ThreadKey, ThreadNumber, ThreadRow, ThreadState,
};
use crate::domain::time::Time;

/// A thread in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadItem {
    /// The repository.
    pub scope: Scope,
    /// Its number there.
    pub number: ThreadNumber,
    /// What it is called.
    pub title: ShortText,
    /// Whether there is work left.
    pub state: ThreadState,
    /// Who began it.
    pub author: UserName,
    /// When.
    pub created_at: Time,
    /// When it last changed.
    pub updated_at: Time,
    /// How many replies it has.
    pub replies_count: u32,
}

impl ThreadItem {
    /// A thread by what is known of it.
    pub fn new(key: &ThreadKey, row: &ThreadRow) -> Self {
        Self {
            scope: key.scope.clone(),
            number: key.number,
            title: row.title.clone(),
            state: row.state,
            author: row.author.clone(),
            created_at: row.created_at,
            updated_at: row.updated_at,
            replies_count: row.replies_count,
        }
    }
}

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Thread {
    /// The repository.
    pub scope: Scope,
    /// Its number there.
    pub number: ThreadNumber,
    /// What it is called.
    pub title: ShortText,
    /// What it is about.
    pub body: ThreadBody,
    /// Whether there is work left.
    pub state: ThreadState,
    /// Who began it.
    pub author: UserName,
    /// When.
    pub created_at: Time,
    /// When it last changed.
    pub updated_at: Time,
    /// How many replies it has, at every depth.
    pub replies_count: u32,
    /// The replies to the thread itself, each with the replies to it, oldest first.
    pub replies: Vec<Reply>,
    /// The state that this shows.
    pub sequence: Sequence,
}

/// A reply, and the replies to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reply {
    /// Which.
    pub reply_id: ReplyId,
    /// What kind it is.
    pub kind: ReplyKind,
    /// What it says.
    pub body: ReplyBody,
    /// What it points to.
    pub links: Links,
    /// Who wrote it.
    pub author: UserName,
    /// When.
    pub created_at: Time,
    /// The reply that it answers; null for the thread itself.
    pub parent: Option<ReplyId>,
    /// The replies to it, oldest first.
    pub replies: Vec<Reply>,
}

impl Reply {
    /// A reply without those to it.
    pub fn new(data: &ThreadReplied, created_at: Time) -> Self {
        Self {
            reply_id: data.reply_id,
            kind: data.kind.clone(),
            body: data.body.clone(),
            links: data.links.clone(),
            author: data.author.clone(),
            created_at,
            parent: data.parent,
            replies: Vec::new(),
        }
    }
}

impl Thread {
    /// A thread as it was at `sequence`.
    pub fn new(thread: &thread::Thread, sequence: Sequence) -> Self {
        let replies_count = u32::try_from(thread.replies.len()).expect("replies are limited");
        Self {
            scope: thread.key.scope.clone(),
            number: thread.key.number,
            title: thread.title.clone(),
            body: thread.body.clone(),
            state: thread.state,
            author: thread.author.clone(),
            created_at: thread.created_at,
            updated_at: thread.updated_at,
            replies_count,
            replies: tree(&thread.replies),
            sequence,
        }
    }

    /// A reply in the tree.
    pub fn reply(&self, reply_id: ReplyId) -> Option<&Reply> {
        let mut found = self.replies.iter().collect::<Vec<_>>();
        while let Some(reply) = found.pop() {
            if reply.reply_id == reply_id {
                return Some(reply);
            }
            found.extend(&reply.replies);
        }
        None
    }
}

/// The tree of replies that stand in the order in which they were written: each after the one
/// that it answers.
fn tree(replies: &[thread::Reply]) -> Vec<Reply> {
    let mut to: BTreeMap<Option<ReplyId>, Vec<Reply>> = BTreeMap::new();
    // From the last one on: when a reply's turn comes, all replies to it have been seen.
    for reply in replies.iter().rev() {
        let mut shown = Reply::new(&reply.data, reply.created_at);
        shown.replies = to.remove(&Some(shown.reply_id)).unwrap_or_default();
        shown.replies.reverse();
        to.entry(shown.parent).or_default().push(shown);
    }
    let mut top = to.remove(&None).unwrap_or_default();
    top.reverse();
    top
}
