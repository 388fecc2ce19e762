//! Threads: what is known of each without reading it, and each as its events made it.
//!
//! A part of what is known is written whole by one event, so nothing has to be read first. A
//! thread is read by folding its events up to a sequence, so its past is told as its present is.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::history;
use crate::domain::event::{Event, Record};
use crate::domain::id::{ReplyId, Sequence};
use crate::domain::name::UserName;
use crate::domain::scope::Scope;
use crate::domain::text::ShortText;
use crate::domain::thread::{Thread, ThreadKey, ThreadNumber, ThreadRow, ThreadState};
use crate::domain::time::Time;
use crate::ledger::keys::{self, ThreadPart};
use crate::ledger::{Ledger, LedgerError, Put, Table};

/// How many keys are read at once.
const KEYS_MAX: usize = 1000;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Beginning {
    title: ShortText,
    author: UserName,
    at: Time,
    sequence: Sequence,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Turned {
    state: ThreadState,
    at: Time,
    sequence: Sequence,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Replies {
    count: u32,
    at: Time,
    sequence: Sequence,
}

/// What a record adds to the tables of threads.
pub(super) fn puts(record: &Record) -> Vec<Put> {
    let Some(thread) = record.event.thread() else { return Vec::new() };
    let (at, sequence) = (record.time, record.sequence);
    let key = keys::thread_event(&thread, sequence);
    let mut puts = vec![Put { table: Table::ThreadEvents, key, value: Vec::new() }];
    if let Event::ThreadCreated(e) = &record.event {
        let (title, author) = (e.title.clone(), e.author.clone());
        let beginning = Beginning { title, author, at, sequence };
        puts.push(part(&thread, ThreadPart::Beginning, &beginning));
    }
    if let Event::ThreadReplied(e) = &record.event {
        let replies = Replies { count: e.replies_count, at, sequence };
        puts.push(part(&thread, ThreadPart::Replies, &replies));
        let (key, value) = (keys::reply(&thread, e.reply_id), e.level.to_be_bytes().to_vec());
        puts.push(Put { table: Table::Replies, key, value });
    }
    if let Some(state) = ThreadState::after(&record.event) {
        puts.push(part(&thread, ThreadPart::State, &Turned { state, at, sequence }));
    }
    puts
}

fn part(thread: &ThreadKey, part: ThreadPart, value: &impl Serialize) -> Put {
    let value = serde_json::to_vec(value).expect("its keys are names of fields");
    Put { table: Table::Threads, key: keys::thread(thread, part), value }
}

/// What is known of a thread; `None` if there is none. `get` reads a key of a table, so that an
/// open batch can be read through.
///
/// # Errors
///
/// What `get` fails with, and [`LedgerError::Corrupt`] if something else lies there.
pub fn row(
    thread: &ThreadKey,
    get: impl Fn(Table, &[u8]) -> Result<Option<Vec<u8>>, LedgerError>,
) -> Result<Option<ThreadRow>, LedgerError> {
    let get = |part| get(Table::Threads, &keys::thread(thread, part));
    let Some(beginning) = get(ThreadPart::Beginning)? else { return Ok(None) };
    let beginning: Beginning = parse(thread, &beginning)?;
    let mut row = ThreadRow {
        title: beginning.title,
        author: beginning.author,
        created_at: beginning.at,
        state: ThreadState::Open,
        replies_count: 0,
        updated_at: beginning.at,
        sequence: beginning.sequence,
    };
    let touch = |row: &mut ThreadRow, at: Time, sequence: Sequence| {
        (row.updated_at, row.sequence) = (row.updated_at.max(at), row.sequence.max(sequence));
    };
    if let Some(turned) = get(ThreadPart::State)? {
        let turned: Turned = parse(thread, &turned)?;
        row.state = turned.state;
        touch(&mut row, turned.at, turned.sequence);
    }
    if let Some(replies) = get(ThreadPart::Replies)? {
        let replies: Replies = parse(thread, &replies)?;
        row.replies_count = replies.count;
        touch(&mut row, replies.at, replies.sequence);
    }
    Ok(Some(row))
}

/// How deep a reply of a thread stands; `None` if the thread has no such reply.
///
/// # Errors
///
/// As [`row`].
pub fn level(
    thread: &ThreadKey,
    reply_id: ReplyId,
    get: impl Fn(Table, &[u8]) -> Result<Option<Vec<u8>>, LedgerError>,
) -> Result<Option<u32>, LedgerError> {
    let Some(value) = get(Table::Replies, &keys::reply(thread, reply_id))? else { return Ok(None) };
    let level = value.try_into().map(u32::from_be_bytes).map_err(|_| corrupt(thread, "a level"))?;
    Ok(Some(level))
}

/// The numbers of a repository's threads after `after`, in order, up to `most` of them.
///
/// # Errors
///
/// [`LedgerError`] if the ledger can't be read.
pub fn numbers(
    ledger: &dyn Ledger,
    repo: &Scope,
    after: Option<ThreadNumber>,
    most: usize,
) -> Result<Vec<ThreadNumber>, LedgerError> {
    let prefix = keys::threads_prefix(repo);
    let past = |number| keys::thread_prefix(&ThreadKey { scope: repo.clone(), number });
    // Past every key of that thread: its parts come right after this.
    let mut after = after.map_or(Vec::new(), |number| [past(number), vec![u8::MAX]].concat());
    let mut numbers = Vec::new();
    while numbers.len() < most {
        let pairs = ledger.scan(Table::Threads, &prefix, &after, KEYS_MAX)?;
        let Some((last, _)) = pairs.last() else { break };
        after.clone_from(last);
        for (key, _) in &pairs {
            let number = keys::thread_number(repo, key).ok_or_else(|| LedgerError::Corrupt {
                what: format!("a key of the threads of {repo}"),
            })?;
            if numbers.last() != Some(&number) {
                numbers.push(number);
            }
        }
    }
    numbers.truncate(most);
    Ok(numbers)
}

/// A thread as its events up to `last` made it; `None` if it had none.
///
/// # Errors
///
/// [`LedgerError`] if the ledger can't be read.
pub fn read(
    ledger: &dyn Ledger,
    key: &ThreadKey,
    last: Sequence,
) -> Result<Option<Thread>, LedgerError> {
    let mut thread: Option<Thread> = None;
    each_event(ledger, key, last, |record| Thread::apply(&mut thread, record))?;
    Ok(thread)
}

/// What was known of a thread at `last`, and how many events it had; `None` if it had none.
///
/// # Errors
///
/// [`LedgerError`] if the ledger can't be read.
pub fn row_at(
    ledger: &dyn Ledger,
    key: &ThreadKey,
    last: Sequence,
) -> Result<Option<(ThreadRow, usize)>, LedgerError> {
    let mut row: Option<ThreadRow> = None;
    let events = each_event(ledger, key, last, |record| ThreadRow::apply(&mut row, record))?;
    Ok(row.map(|row| (row, events)))
}

/// Hands on a thread's events up to `last`, in order, and tells how many they were.
fn each_event(
    ledger: &dyn Ledger,
    key: &ThreadKey,
    last: Sequence,
    mut take: impl FnMut(Record),
) -> Result<usize, LedgerError> {
    let prefix = keys::thread_prefix(key);
    let (mut sequences, mut after) = (Vec::new(), Vec::new());
    loop {
        let page = ledger.scan(Table::ThreadEvents, &prefix, &after, KEYS_MAX)?;
        let Some((end, _)) = page.last() else { break };
        after.clone_from(end);
        for (row, _) in &page {
            sequences.push(keys::history_sequence(row).ok_or_else(|| corrupt(key, "an event"))?);
        }
    }
    sequences.retain(|sequence| *sequence <= last);
    history::each_record(ledger, &sequences, |stored| {
        take(stored.decode().map_err(|error| corrupt(key, error))?);
        Ok(())
    })?;
    Ok(sequences.len())
}

fn parse<T: DeserializeOwned>(thread: &ThreadKey, value: &[u8]) -> Result<T, LedgerError> {
    serde_json::from_slice(value).map_err(|error| corrupt(thread, error))
}

fn corrupt(thread: &ThreadKey, what: impl std::fmt::Display) -> LedgerError {
    let ThreadKey { scope, number } = thread;
    LedgerError::Corrupt { what: format!("thread {number} of {scope}: {what}") }
}
