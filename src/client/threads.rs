//! Calls about threads.

use reqwest::Method;
use serde::Serialize;

use super::error::ClientError;
use super::locks::Page;
use super::transport::{Call, Client, Repeat, Reply};
use crate::domain::id::{ReplyId, RequestUuid};
use crate::domain::scope::Scope;
use crate::domain::text::{ReplyBody, ShortText, ThreadBody};
use crate::domain::thread::{Fence, Links, ReplyKind, ThreadKey, ThreadNumber, ThreadState};
use crate::wire::list::List;
use crate::wire::thread::{Reply as ThreadReply, Thread, ThreadItem};

/// What a write to a thread is tied to.
#[derive(Debug, Clone, Serialize)]
pub struct Terms {
    /// The caller's name for the write. A retry has the same one.
    pub request_uuid: RequestUuid,
    /// The hold that it is made under; without one it is not fenced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fence: Option<Fence>,
}

/// A thread that is to be made.
#[derive(Debug, Clone)]
pub struct NewThread {
    /// What it is called.
    pub title: ShortText,
    /// What it is about.
    pub body: ThreadBody,
    /// The number that it mirrors; the next one if not given.
    pub number: Option<ThreadNumber>,
}

/// A reply that is to be made.
#[derive(Debug, Clone)]
pub struct NewReply {
    /// What kind it is.
    pub kind: ReplyKind,
    /// What it says.
    pub body: ReplyBody,
    /// What it points to.
    pub links: Links,
    /// The reply that it answers; the thread itself if not given.
    pub parent: Option<ReplyId>,
}

#[derive(Serialize)]
struct CreateThreadBody<'a> {
    title: &'a ShortText,
    body: &'a ThreadBody,
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<ThreadNumber>,
    request_uuid: RequestUuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    fence: Option<&'a Fence>,
}

#[derive(Serialize)]
struct CreateReplyBody<'a> {
    kind: &'a ReplyKind,
    body: &'a ReplyBody,
    links: &'a Links,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<ReplyId>,
    request_uuid: RequestUuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    fence: Option<&'a Fence>,
}

impl Client {
    /// Begins a thread.
    ///
    /// # Errors
    /// As for every call.
    pub async fn create_thread(
        &self,
        repo: &Scope,
        new: &NewThread,
        terms: &Terms,
    ) -> Result<Reply<Thread>, ClientError> {
        let NewThread { title, body, number } = new;
        let (request_uuid, fence) = (terms.request_uuid, terms.fence.as_ref());
        let body = CreateThreadBody { title, body, number: *number, request_uuid, fence };
        self.call(Call::send(Method::POST, &["threads"], &body, Repeat::Harmless).at(repo)).await
    }

    /// Lists the threads of a repository, all or those in one state, as they were at `as_of` (a
    /// sequence or a time) if that is given.
    ///
    /// # Errors
    /// As for every call.
    pub async fn threads(
        &self,
        repo: &Scope,
        state: Option<ThreadState>,
        as_of: Option<&str>,
        page: &Page,
    ) -> Result<Reply<List<ThreadItem>>, ClientError> {
        let state = state.map(ThreadState::as_str);
        let call = Call::get(&["threads"]).at(repo).with("state", state).with("as_of", as_of);
        self.call(call.page(page)).await
    }

    /// Reads a thread with its tree of replies, as it was at `as_of` (a sequence or a time) if
    /// that is given.
    ///
    /// # Errors
    /// As for every call.
    pub async fn thread(
        &self,
        key: &ThreadKey,
        as_of: Option<&str>,
    ) -> Result<Reply<Thread>, ClientError> {
        let number = key.number.to_string();
        let path = ["threads", &number];
        self.call(Call::get(&path).at(&key.scope).with("as_of", as_of)).await
    }

    /// Replies to a thread, or to a reply in it.
    ///
    /// # Errors
    /// As for every call; `stale-fence` means that the hold is over, and nothing was written.
    pub async fn create_reply(
        &self,
        key: &ThreadKey,
        new: &NewReply,
        terms: &Terms,
    ) -> Result<Reply<ThreadReply>, ClientError> {
        let number = key.number.to_string();
        let path = ["threads", &number, "replies"];
        let NewReply { kind, body, links, parent } = new;
        let (request_uuid, fence) = (terms.request_uuid, terms.fence.as_ref());
        let body = CreateReplyBody { kind, body, links, parent: *parent, request_uuid, fence };
        self.call(Call::send(Method::POST, &path, &body, Repeat::Harmless).at(&key.scope)).await
    }

    /// Turns a thread into a state: closes or reopens it.
    ///
    /// # Errors
    /// As for every call; `stale-fence` means that the hold is over, and nothing was written.
    pub async fn turn_thread(
        &self,
        key: &ThreadKey,
        into: ThreadState,
        terms: &Terms,
    ) -> Result<Reply<Thread>, ClientError> {
        let number = key.number.to_string();
        let verb = match into {
            ThreadState::Closed => "close",
            ThreadState::Open => "reopen",
        };
        let path = ["threads", &number, verb];
        self.call(Call::send(Method::POST, &path, terms, Repeat::Harmless).at(&key.scope)).await
    }
}
