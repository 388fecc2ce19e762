//! Threads, activities and who may see them: what the tables and the state say, compared with
//! what the model says.

use std::fmt::Debug;

use pearing::domain::State;
use pearing::domain::event::Event;
use pearing::domain::id::{ReplyId, Sequence};
use pearing::domain::name::UserName;
use pearing::domain::scope::Scope;
use pearing::domain::thread::{Reply, ReplyInput, Thread, ThreadKey, ThreadRow, ThreadState};
use pearing::ledger::{Ledger, LedgerError, Table};
use pearing::projection::thread;

use super::naive::{Activity, Naive, ReplyView, ThreadEvent, ThreadView, Write};
use super::rng::Rng;

/// A `thread.*` event in the model's words.
pub(crate) fn thread_event(event: &Event) -> ThreadEvent {
    let (user, request_uuid, fence, write) = match event {
        Event::ThreadCreated(e) => {
            let (title, body) = (e.title.as_str().to_owned(), e.body.as_str().to_owned());
            let write = Write::Created { is_mirror: e.is_mirror, title, body };
            (&e.author, e.request_uuid, &e.fence, write)
        }
        Event::ThreadReplied(e) => {
            let input = ReplyInput {
                kind: e.kind.clone(),
                body: e.body.clone(),
                links: e.links.clone(),
                parent: e.parent,
            };
            let (reply_id, level, count) = (e.reply_id, e.level, e.replies_count);
            (&e.author, e.request_uuid, &e.fence, Write::Replied { reply_id, input, level, count })
        }
        Event::ThreadClosed(e) => (&e.user, e.request_uuid, &e.fence, Write::Closed),
        Event::ThreadReopened(e) => (&e.user, e.request_uuid, &e.fence, Write::Reopened),
        other => unreachable!("no write to a thread: {other:?}"),
    };
    let thread = event.thread().expect("a write to a thread names it");
    ThreadEvent { thread, user: user.clone(), request_uuid, fence: fence.clone(), write }
}

/// Compares what is said of one thread, one user and one pair of users. The thread is the one
/// that was written since `checked`, if there is one; else any of them has its turn.
pub(crate) fn check(
    naive: &Naive,
    state: &State,
    ledger: &dyn Ledger,
    users: &[UserName],
    scopes: &[Scope],
    checked: u64,
    rng: &mut Rng,
) -> Result<(), String> {
    check_activities(naive, state)?;
    check_user(naive, state, rng.pick(users), rng.pick(users), rng.pick(scopes))?;
    let threads = naive.threads();
    if threads.is_empty() {
        return Ok(());
    }
    let written = naive.newest_write().filter(|(sequence, _)| *sequence > checked);
    let is_due = written.is_some() || rng.percent(25);
    let key = written.map_or_else(|| rng.pick(&threads).clone(), |(_, key)| key);
    let row = check_row(naive, ledger, &key, rng).map_err(|error| error.to_string())?;
    // To read a thread costs as much as it is long.
    let trees = is_due.then(|| check_trees(naive, ledger, &key, rng));
    let trees = trees.unwrap_or(Ok(Ok(()))).map_err(|error| error.to_string())?;
    row.and(trees)
}

fn check_activities(naive: &Naive, state: &State) -> Result<(), String> {
    let found = state.activities_after(None).map(|(user, activity)| Activity {
        user: user.clone(),
        text: activity.text.as_str().to_owned(),
        set_at: activity.set_at,
        sequence: activity.sequence.0,
    });
    same("activities", &naive.activities(), &found.collect())
}

fn check_user(
    naive: &Naive,
    state: &State,
    user: &UserName,
    other: &UserName,
    scope: &Scope,
) -> Result<(), String> {
    let access = state.access();
    same("holder", &naive.is_holder(user), &state.is_holder(user))?;
    same("in service", &naive.is_in_service(user), &access.is_in_service(user))?;
    same("role", &naive.role(user, scope), &access.role(user, scope))?;
    if access.user(user).is_none() || access.user(other).is_none() {
        return Ok(());
    }
    let (expected, found) = (naive.share(user, other), access.circle_of(user).includes(other));
    same("share", &(user, other, expected), &(user, other, found))
}

type Compared = Result<Result<(), String>, LedgerError>;

/// Compares a thread now, and as it was at an earlier time.
fn check_trees(naive: &Naive, ledger: &dyn Ledger, key: &ThreadKey, rng: &mut Rng) -> Compared {
    let read = |last: u64| Ok(thread::read(ledger, key, Sequence(last))?.map(of_thread));
    let now = naive.sequence();
    // Around one of the events of threads, or the views would seldom differ.
    let then = naive.a_write(rng.index(usize::MAX)) - rng.below(2);
    let (tree, earlier) = (read(now)?, read(then)?);
    Ok(same("thread", &naive.thread_at(key, now), &tree)
        .and_then(|()| same("earlier thread", &naive.thread_at(key, then), &earlier)))
}

/// Compares a thread's row, where one of its replies or another's stands, and some numbers.
fn check_row(naive: &Naive, ledger: &dyn Ledger, key: &ThreadKey, rng: &mut Rng) -> Compared {
    let get = |table: Table, key: &[u8]| ledger.get(table, key);
    let now = naive.thread_at(key, naive.sequence());
    let row = thread::row(key, get)?.map(of_row);
    let is_other = rng.percent(20);
    let other = is_other.then(|| rng.pick(&naive.threads()).clone());
    let reply = some_reply(naive, other.as_ref().unwrap_or(key), rng);
    let level = reply.map_or(Ok(None), |reply| thread::level(key, reply, get))?;
    let is_it = |view: &&ReplyView| Some(view.reply_id) == reply;
    let stands = now.as_ref().and_then(|now| now.replies.iter().find(is_it).map(|r| r.level));
    let numbers = naive.thread_numbers(&key.scope);
    let after = rng.percent(50).then(|| *rng.pick(&numbers));
    let most = 1 + rng.index(3);
    let page = thread::numbers(ledger, &key.scope, after, most)?;
    let expected = numbers.into_iter().filter(|number| Some(*number) > after).take(most).collect();
    Ok(same("row", &now.map(bare), &row)
        .and_then(|()| same("level", &stands, &level))
        .and_then(|()| same("numbers", &expected, &page)))
}

fn some_reply(naive: &Naive, thread: &ThreadKey, rng: &mut Rng) -> Option<ReplyId> {
    let view = naive.thread_at(thread, naive.sequence())?;
    (!view.replies.is_empty()).then(|| rng.pick(&view.replies).reply_id)
}

/// What a row says: all but the texts and the replies themselves.
#[derive(Debug, PartialEq, Eq)]
struct Bare {
    thread: ThreadView,
    replies_count: usize,
}

fn bare(thread: ThreadView) -> Bare {
    let replies_count = thread.replies.len();
    let (body, replies) = (String::new(), Vec::new());
    Bare { thread: ThreadView { body, replies, ..thread }, replies_count }
}

fn of_row(row: ThreadRow) -> Bare {
    let thread = ThreadView {
        title: row.title.as_str().to_owned(),
        body: String::new(),
        author: row.author,
        created_at: row.created_at,
        is_open: row.state == ThreadState::Open,
        updated_at: row.updated_at,
        sequence: row.sequence.0,
        replies: Vec::new(),
    };
    Bare { thread, replies_count: row.replies_count as usize }
}

fn of_thread(thread: Thread) -> ThreadView {
    ThreadView {
        title: thread.title.as_str().to_owned(),
        body: thread.body.as_str().to_owned(),
        author: thread.author,
        created_at: thread.created_at,
        is_open: thread.state == ThreadState::Open,
        updated_at: thread.updated_at,
        sequence: thread.sequence.0,
        replies: thread.replies.into_iter().map(of_reply).collect(),
    }
}

fn of_reply(reply: Reply) -> ReplyView {
    let Reply { data, created_at, sequence } = reply;
    ReplyView {
        reply_id: data.reply_id,
        input: ReplyInput {
            kind: data.kind,
            body: data.body,
            links: data.links,
            parent: data.parent,
        },
        author: data.author,
        created_at,
        sequence: sequence.0,
        level: data.level,
    }
}

fn same<T: PartialEq + Debug>(what: &str, expected: &T, found: &T) -> Result<(), String> {
    if expected == found {
        return Ok(());
    }
    Err(format!("{what}\n  model: {expected:?}\n  core:  {found:?}"))
}
