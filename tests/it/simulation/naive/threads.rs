//! Threads as one flat list of what was ever written, which is read from its start each time.

use pearing::domain::access::Role;
use pearing::domain::command::Command;
use pearing::domain::id::{ReplyId, RequestUuid};
use pearing::domain::name::UserName;
use pearing::domain::scope::{LockKey, Scope};
use pearing::domain::thread::{Fence, ReplyInput, ThreadKey, ThreadNumber, WriteTerms};
use pearing::domain::time::Time;

use super::{Answer, Event, Naive, Outcome, Refused};

/// How deep a reply may stand; one to the thread itself stands 1 deep.
const DEEPEST: u32 = 32;
const GREATEST_NUMBER: u64 = 1_000_000_000;

/// A write to a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ThreadEvent {
    pub(crate) thread: ThreadKey,
    pub(crate) user: UserName,
    pub(crate) request_uuid: Option<RequestUuid>,
    pub(crate) fence: Option<Fence>,
    pub(crate) write: Write,
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Write {
    Created { is_mirror: bool, title: String, body: String },
    Replied { reply_id: ReplyId, input: ReplyInput, level: u32, count: u32 },
    Closed,
    Reopened,
}

/// A thread as a reader sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ThreadView {
    pub(crate) title: String,
    pub(crate) body: String,
    pub(crate) author: UserName,
    pub(crate) created_at: Time,
    pub(crate) is_open: bool,
    pub(crate) updated_at: Time,
    pub(crate) sequence: u64,
    pub(crate) replies: Vec<ReplyView>,
}

/// A reply as a reader sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReplyView {
    pub(crate) reply_id: ReplyId,
    pub(crate) input: ReplyInput,
    pub(crate) author: UserName,
    pub(crate) created_at: Time,
    pub(crate) sequence: u64,
    pub(crate) level: u32,
}

impl Naive {
    /// A write to a thread that isn't a retry.
    pub(super) fn write(&mut self, user: &UserName, command: &Command) -> Outcome {
        self.require_readable(user, command)?;
        match command {
            Command::CreateThread { scope, number, title, body, terms } => {
                self.access.require(user, scope, Role::Write)?;
                self.require_hold(user, scope, terms)?;
                let thread =
                    ThreadKey { scope: scope.clone(), number: self.number_for(scope, *number)? };
                let (title, body) = (title.as_str().to_owned(), body.as_str().to_owned());
                let write = Write::Created { is_mirror: number.is_some(), title, body };
                Ok(self.written(user, command, thread, terms, write))
            }
            Command::CreateReply { thread, reply_id, input, terms } => {
                self.access.require(user, &thread.scope, Role::Write)?;
                let view = self.require_thread(thread)?;
                self.require_hold(user, &thread.scope, terms)?;
                let level = match input.parent {
                    None => 1,
                    Some(parent) => {
                        let parent = view.replies.iter().find(|reply| reply.reply_id == parent);
                        parent.ok_or(Refused::NotFound)?.level + 1
                    }
                };
                let before = u32::try_from(view.replies.len()).expect("a simulation is short");
                if level > DEEPEST {
                    return Err(Refused::InvalidArgument);
                }
                if before >= self.limits.replies_per_thread {
                    return Err(Refused::LimitReached);
                }
                let (reply_id, input) = (*reply_id, input.clone());
                let write = Write::Replied { reply_id, input, level, count: before + 1 };
                Ok(self.written(user, command, thread.clone(), terms, write))
            }
            Command::CloseThread { thread, terms } => {
                self.turn(user, command, thread, terms, Write::Closed)
            }
            Command::ReopenThread { thread, terms } => {
                self.turn(user, command, thread, terms, Write::Reopened)
            }
            other => unreachable!("no write to a thread: {other:?}"),
        }
    }

    fn turn(
        &mut self,
        user: &UserName,
        command: &Command,
        thread: &ThreadKey,
        terms: &WriteTerms,
        write: Write,
    ) -> Outcome {
        self.access.require(user, &thread.scope, Role::Write)?;
        let is_open = self.require_thread(thread)?.is_open;
        self.require_hold(user, &thread.scope, terms)?;
        let has_no_name = terms.request_uuid.is_none();
        if has_no_name && is_open == (write == Write::Reopened) {
            let thread = thread.clone();
            return Ok((Answer::Thread { thread, written: None, is_replay: false }, Vec::new()));
        }
        Ok(self.written(user, command, thread.clone(), terms, write))
    }

    fn written(
        &mut self,
        user: &UserName,
        command: &Command,
        thread: ThreadKey,
        terms: &WriteTerms,
        write: Write,
    ) -> (Answer, Vec<Event>) {
        let sequence = self.next_sequence();
        let answer =
            Answer::Thread { thread: thread.clone(), written: Some(sequence), is_replay: false };
        let WriteTerms { request_uuid, fence } = terms.clone();
        let event = ThreadEvent { thread, user: user.clone(), request_uuid, fence, write };
        self.thread_events.push((sequence, self.now, event.clone()));
        self.remember(user, command, &answer);
        (answer, vec![Event::Thread(Box::new(event))])
    }

    /// Who writes under a fence must hold that very lock, under that very fence, right now.
    fn require_hold(
        &self,
        user: &UserName,
        scope: &Scope,
        terms: &WriteTerms,
    ) -> Result<(), Refused> {
        let Some(Fence { lock_name, fence_token }) = &terms.fence else { return Ok(()) };
        let lock = LockKey { scope: scope.clone(), lock_name: lock_name.clone() };
        if self.holder(&lock) == Some((user.clone(), fence_token.0.0)) {
            Ok(())
        } else {
            Err(Refused::StaleFence)
        }
    }

    fn require_thread(&self, thread: &ThreadKey) -> Result<ThreadView, Refused> {
        self.thread_at(thread, self.sequence).ok_or(Refused::NotFound)
    }

    /// The number of a new thread: the one that is asked for, or one above the greatest.
    fn number_for(
        &self,
        scope: &Scope,
        number: Option<ThreadNumber>,
    ) -> Result<ThreadNumber, Refused> {
        let taken = self.thread_numbers(scope);
        match number {
            Some(number) if taken.contains(&number) => Err(Refused::AlreadyExists),
            Some(number) => Ok(number),
            None => {
                let greatest = taken.last().map_or(0, |number| number.get());
                if greatest >= GREATEST_NUMBER {
                    return Err(Refused::InvalidArgument);
                }
                Ok(ThreadNumber::try_from(greatest + 1).expect("it isn't too great"))
            }
        }
    }

    /// The numbers of a repository's threads, in order.
    pub(crate) fn thread_numbers(&self, repo: &Scope) -> Vec<ThreadNumber> {
        let events = self.thread_events.iter().map(|(_, _, event)| event);
        let created = events.filter(|event| matches!(event.write, Write::Created { .. }));
        let here = created.filter(|event| event.thread.scope == *repo);
        let mut numbers: Vec<ThreadNumber> = here.map(|event| event.thread.number).collect();
        numbers.sort();
        numbers
    }

    /// Every thread, in the order of their making.
    pub(crate) fn threads(&self) -> Vec<ThreadKey> {
        let events = self.thread_events.iter().map(|(_, _, event)| event);
        let created = events.filter(|event| matches!(event.write, Write::Created { .. }));
        created.map(|event| event.thread.clone()).collect()
    }

    /// The thread that was written last, and the sequence of that.
    pub(crate) fn newest_write(&self) -> Option<(u64, ThreadKey)> {
        let newest = self.thread_events.last();
        newest.map(|(sequence, _, event)| (*sequence, event.thread.clone()))
    }

    /// The sequence of one of the writes to threads, of which there must be some.
    pub(crate) fn a_write(&self, number: usize) -> u64 {
        self.thread_events[number % self.thread_events.len()].0
    }

    /// A thread as it was at a sequence; `None` if it wasn't there yet.
    pub(crate) fn thread_at(&self, thread: &ThreadKey, last: u64) -> Option<ThreadView> {
        let mut view: Option<ThreadView> = None;
        let until = self.thread_events.iter().take_while(|(sequence, ..)| *sequence <= last);
        for (sequence, time, event) in until.filter(|(_, _, event)| event.thread == *thread) {
            if let Write::Created { title, body, .. } = &event.write {
                view = Some(ThreadView {
                    title: title.clone(),
                    body: body.clone(),
                    author: event.user.clone(),
                    created_at: *time,
                    is_open: true,
                    updated_at: *time,
                    sequence: *sequence,
                    replies: Vec::new(),
                });
            }
            let view = view.as_mut().expect("a thread begins with its making");
            (view.updated_at, view.sequence) = (*time, *sequence);
            match &event.write {
                Write::Created { .. } => {}
                Write::Closed => view.is_open = false,
                Write::Reopened => view.is_open = true,
                Write::Replied { reply_id, input, level, .. } => view.replies.push(ReplyView {
                    reply_id: *reply_id,
                    input: input.clone(),
                    author: event.user.clone(),
                    created_at: *time,
                    sequence: *sequence,
                    level: *level,
                }),
            }
        }
        view
    }
}
