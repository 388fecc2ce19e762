//! What was done in threads.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::id::{ReplyId, RequestUuid};
use super::super::name::UserName;
use super::super::scope::Scope;
use super::super::text::{ReplyBody, ShortText, ThreadBody};
use super::super::thread::{Fence, Links, ReplyKind, ThreadNumber};

data! {
    /// `thread.created`
    ThreadCreated {
        /// The repository.
        #[schemars(transform = Scope::repo_only)]
        scope: Scope,
        /// The thread's number there.
        number: ThreadNumber,
        /// Whether the number was asked for, since it mirrors one from elsewhere.
        is_mirror: bool,
        /// What it is called.
        title: ShortText,
        /// What it is about.
        body: ThreadBody,
        /// Who began it.
        author: UserName,
        /// The caller's name for the request, if it gave one.
        request_uuid: Option<RequestUuid>,
        /// The hold that it was written under.
        fence: Option<Fence>,
    }
}
data! {
    /// `thread.replied`
    ThreadReplied {
        /// The repository.
        #[schemars(transform = Scope::repo_only)]
        scope: Scope,
        /// The thread's number there.
        number: ThreadNumber,
        /// The reply.
        reply_id: ReplyId,
        /// What kind it is.
        kind: ReplyKind,
        /// What it says.
        body: ReplyBody,
        /// What it points to.
        links: Links,
        /// Who wrote it.
        author: UserName,
        /// The reply that it answers; the thread itself if null.
        parent: Option<ReplyId>,
        /// How deep it stands: 1 for a reply to the thread itself.
        level: u32,
        /// How many replies the thread has after this.
        replies_count: u32,
        /// The caller's name for the request, if it gave one.
        request_uuid: Option<RequestUuid>,
        /// The hold that it was written under.
        fence: Option<Fence>,
    }
}
data! {
    /// `thread.closed` and `thread.reopened`
    ThreadStateChanged {
        /// The repository.
        #[schemars(transform = Scope::repo_only)]
        scope: Scope,
        /// The thread's number there.
        number: ThreadNumber,
        /// Who did it.
        user: UserName,
        /// The caller's name for the request, if it gave one.
        request_uuid: Option<RequestUuid>,
        /// The hold that it was done under.
        fence: Option<Fence>,
    }
}
