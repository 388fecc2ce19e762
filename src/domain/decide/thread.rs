//! Writes to threads.
//!
//! The order of the questions is the rule: whether the repository exists for the caller, whether
//! this was written before, whether the caller may write, whether there is such a thread, whether
//! the hold that the write is made under is current and the caller's own. That last question is
//! answered by the very state that the write is appended to, so no hold can end in between.

use super::{Answer, Context};
use crate::domain::access::Role;
use crate::domain::event::{Event, Record, ThreadCreated, ThreadReplied, ThreadStateChanged};
use crate::domain::id::{ReplyId, Sequence};
use crate::domain::refusal::Refusal;
use crate::domain::scope::{LockKey, Scope, ScopeKind};
use crate::domain::text::{ShortText, ThreadBody};
use crate::domain::thread::{
    LEVEL_MAX, ReplyInput, ThreadKey, ThreadNumber, ThreadRow, ThreadState, WriteTerms,
};

type Decided = Result<(Vec<Event>, Answer), Refusal>;

/// A thread in the making.
pub(super) struct NewThread<'a> {
    pub(super) scope: &'a Scope,
    /// The number that it mirrors, if any.
    pub(super) number: Option<ThreadNumber>,
    pub(super) title: &'a ShortText,
    pub(super) body: &'a ThreadBody,
}

pub(super) fn create(context: &Context<'_>, new: &NewThread<'_>, terms: &WriteTerms) -> Decided {
    let created = |number| {
        Ok(Event::ThreadCreated(ThreadCreated {
            scope: new.scope.clone(),
            number,
            is_mirror: new.number.is_some(),
            title: new.title.clone(),
            body: new.body.clone(),
            author: context.user()?.clone(),
            request_uuid: terms.request_uuid,
            fence: terms.fence.clone(),
        }))
    };
    context.require_in_service()?;
    if let ScopeKind::User(_) | ScopeKind::Team(_) = new.scope.kind() {
        return Err(Refusal::InvalidArgument { field: "repo", rule: Scope::REPO_RULE });
    }
    context.require_role(new.scope, Role::Read)?;
    if let Some(written) = &context.past.written {
        let number = written.event.thread().map(|thread| thread.number);
        let number = new.number.or(number).expect("a thread was written");
        return replay(written, &created(number)?);
    }
    context.require_role(new.scope, Role::Write)?;
    context.require_hold(new.scope, terms)?;
    let number = match (new.number, context.state.newest_thread(new.scope)) {
        (Some(_), _) if context.past.thread.is_some() => {
            return Err(Refusal::AlreadyExists("thread"));
        }
        (Some(number), _) => number,
        (None, None) => ThreadNumber::FIRST,
        (None, Some(newest)) => newest.next().ok_or(Refusal::InvalidArgument {
            field: "number",
            rule: "must be given: the greatest number is taken, and none comes after it",
        })?,
    };
    let thread = ThreadKey { scope: new.scope.clone(), number };
    Ok((vec![created(number)?], context.written(thread)))
}

pub(super) fn reply(
    context: &Context<'_>,
    thread: &ThreadKey,
    reply_id: ReplyId,
    input: &ReplyInput,
    terms: &WriteTerms,
) -> Decided {
    let replied = |reply_id, level, replies_count| {
        Ok(Event::ThreadReplied(ThreadReplied {
            scope: thread.scope.clone(),
            number: thread.number,
            reply_id,
            kind: input.kind.clone(),
            body: input.body.clone(),
            links: input.links.clone(),
            author: context.user()?.clone(),
            parent: input.parent,
            level,
            replies_count,
            request_uuid: terms.request_uuid,
            fence: terms.fence.clone(),
        }))
    };
    context.require_role(&thread.scope, Role::Read)?;
    if let Some(written) = &context.past.written {
        // What only the ledger chose is the same by being taken from it.
        let Event::ThreadReplied(chosen) = &written.event else {
            unreachable!("a reply's request UUID names a reply")
        };
        let same = replied(chosen.reply_id, chosen.level, chosen.replies_count)?;
        return replay(written, &same);
    }
    context.require_role(&thread.scope, Role::Write)?;
    let row = context.require_thread()?;
    context.require_hold(&thread.scope, terms)?;
    let level = match input.parent {
        None => 1,
        Some(_) => 1 + context.past.parent_level.ok_or(Refusal::NotFound("reply in the thread"))?,
    };
    if level > LEVEL_MAX {
        let rule = "must stand less than 32 replies deep: no reply stands deeper than that";
        return Err(Refusal::InvalidArgument { field: "parent", rule });
    }
    let most = context.limits.replies_per_thread;
    if row.replies_count >= most {
        return Err(Refusal::LimitReached { limit: "replies of one thread", most });
    }
    let event = replied(reply_id, level, row.replies_count + 1)?;
    Ok((vec![event], context.written(thread.clone())))
}

/// Closes or reopens a thread. Where it is so already nothing happens, unless the write has a
/// request UUID: its retry, however late, must find it done, and not turn the thread again.
pub(super) fn set_state(
    context: &Context<'_>,
    thread: &ThreadKey,
    into: ThreadState,
    terms: &WriteTerms,
) -> Decided {
    let data = || {
        Ok(ThreadStateChanged {
            scope: thread.scope.clone(),
            number: thread.number,
            user: context.user()?.clone(),
            request_uuid: terms.request_uuid,
            fence: terms.fence.clone(),
        })
    };
    let event = match into {
        ThreadState::Closed => Event::ThreadClosed(data()?),
        ThreadState::Open => Event::ThreadReopened(data()?),
    };
    context.require_role(&thread.scope, Role::Read)?;
    if let Some(written) = &context.past.written {
        return replay(written, &event);
    }
    context.require_role(&thread.scope, Role::Write)?;
    let row = context.require_thread()?;
    context.require_hold(&thread.scope, terms)?;
    if row.state == into && terms.request_uuid.is_none() {
        let answer = Answer::Thread { thread: thread.clone(), written: None, is_replay: false };
        return Ok((Vec::new(), answer));
    }
    Ok((vec![event], context.written(thread.clone())))
}

/// The same request again finds what it wrote. Other input under the same request UUID is a
/// mistake of the caller's.
fn replay(written: &Record, same: &Event) -> Decided {
    if written.event != *same {
        return Err(Refusal::RequestUuidReused);
    }
    let thread = written.event.thread().expect("a write to a thread names it");
    let written = Some(written.sequence);
    Ok((Vec::new(), Answer::Thread { thread, written, is_replay: true }))
}

impl Context<'_> {
    /// Needs the hold that the write is made under, if it is made under one.
    fn require_hold(&self, scope: &Scope, terms: &WriteTerms) -> Result<(), Refusal> {
        let Some(fence) = &terms.fence else { return Ok(()) };
        let key = LockKey { scope: scope.clone(), lock_name: fence.lock_name.clone() };
        let hold = self.state.lock(&key).map(|lock| &lock.hold);
        let user = self.user()?;
        let is_own =
            hold.is_some_and(|hold| hold.fence_token == fence.fence_token && hold.owner == *user);
        #[cfg(feature = "planted-bugs")]
        let is_own = is_own
            || crate::domain::planted::is_fence_of_anybody_accepted()
                && hold.is_some_and(|hold| hold.fence_token == fence.fence_token);
        let current = hold.map(|hold| hold.fence_token);
        if is_own { Ok(()) } else { Err(Refusal::StaleFence { current }) }
    }

    fn require_thread(&self) -> Result<&ThreadRow, Refusal> {
        self.past.thread.as_ref().ok_or(Refusal::NotFound("thread"))
    }

    /// The answer about a thread that the decision's only event changes.
    fn written(&self, thread: ThreadKey) -> Answer {
        let written: Option<Sequence> = Some(self.at.next_sequence);
        Answer::Thread { thread, written, is_replay: false }
    }
}
