//! The keys of the tables.
//!
//! Each text in a key is preceded by its length, and numbers have a fixed width and are
//! big-endian, so that no name can reach into another's keys, no key is the beginning of another
//! in its table, and the order of the keys is the order of the sequences.

use crate::domain::id::{ReplyId, RequestUuid, Sequence, TicketId};
use crate::domain::name::UserName;
use crate::domain::scope::{LockKey, Scope};
use crate::domain::thread::{ThreadKey, ThreadNumber};

/// What a request UUID was given for. One UUID may serve once for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// An acquire, which made a ticket.
    AcquireLock,
    /// A thread was begun.
    CreateThread,
    /// A thread was replied to.
    CreateReply,
    /// A thread was closed.
    CloseThread,
    /// A thread was reopened.
    ReopenThread,
    /// A user said what it is doing.
    UpdateActivity,
}

impl Operation {
    /// Its number in a key, for ever.
    fn number(self) -> u8 {
        match self {
            Self::AcquireLock => 1,
            Self::CreateThread => 2,
            Self::CreateReply => 3,
            Self::CloseThread => 4,
            Self::ReopenThread => 5,
            Self::UpdateActivity => 6,
        }
    }
}

/// In `Tickets`: a ticket.
pub fn ticket(ticket_id: TicketId) -> Vec<u8> {
    ticket_id.0.as_bytes().to_vec()
}

/// In `Requests`: what an identity did under a request UUID.
pub fn request(owner: &UserName, operation: Operation, request_uuid: RequestUuid) -> Vec<u8> {
    let mut key = Vec::new();
    push_text(&mut key, owner.as_str());
    key.push(operation.number());
    key.extend_from_slice(request_uuid.0.as_bytes());
    key
}

/// In `History`: an event of a lock.
pub fn history(lock: &LockKey, sequence: Sequence) -> Vec<u8> {
    let mut key = history_prefix_of_lock(lock);
    key.extend_from_slice(&sequence.0.to_be_bytes());
    key
}

/// In `History`: an event of the ledger itself, which bears on every lock. No scope is empty, so
/// no lock's key begins like this.
pub fn history_of_ledger(sequence: Sequence) -> Vec<u8> {
    let mut key = history_prefix_of_ledger();
    key.extend_from_slice(&sequence.0.to_be_bytes());
    key
}

/// In `History`: what the keys of the ledger's own events begin with, and no others.
pub fn history_prefix_of_ledger() -> Vec<u8> {
    let mut key = Vec::new();
    push_text(&mut key, "");
    key
}

/// In `History`: what the keys of a lock's events begin with, and no others.
pub fn history_prefix_of_lock(lock: &LockKey) -> Vec<u8> {
    let mut key = history_prefix_of_scope(&lock.scope);
    push_text(&mut key, lock.lock_name.as_str());
    key
}

/// In `History`: what the keys of the events of a scope's own locks begin with, and no others:
/// a team's prefix is not that of its repositories.
pub fn history_prefix_of_scope(scope: &Scope) -> Vec<u8> {
    let mut key = Vec::new();
    push_text(&mut key, scope.as_str());
    key
}

/// The sequence at the end of a key of `History` or `ThreadEvents`; `None` if it is none.
pub fn history_sequence(key: &[u8]) -> Option<Sequence> {
    key.last_chunk().map(|bytes| Sequence(u64::from_be_bytes(*bytes)))
}

/// Which part of what is known of a thread. Each is written by one kind of event alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadPart {
    /// What it began with.
    Beginning,
    /// Whether it is open.
    State,
    /// How many replies it has.
    Replies,
}

impl ThreadPart {
    /// Its number in a key, for ever.
    fn number(self) -> u8 {
        match self {
            Self::Beginning => 1,
            Self::State => 2,
            Self::Replies => 3,
        }
    }
}

/// In `Threads`: a part of what is known of a thread.
pub fn thread(thread: &ThreadKey, part: ThreadPart) -> Vec<u8> {
    let mut key = thread_prefix(thread);
    key.push(part.number());
    key
}

/// In `ThreadEvents`: an event of a thread.
pub fn thread_event(thread: &ThreadKey, sequence: Sequence) -> Vec<u8> {
    let mut key = thread_prefix(thread);
    key.extend_from_slice(&sequence.0.to_be_bytes());
    key
}

/// In `Replies`: a reply.
pub fn reply(thread: &ThreadKey, reply_id: ReplyId) -> Vec<u8> {
    let mut key = thread_prefix(thread);
    key.extend_from_slice(reply_id.0.as_bytes());
    key
}

/// In `Threads`, `ThreadEvents` and `Replies`: what the keys of a thread begin with, and no
/// others.
pub fn thread_prefix(thread: &ThreadKey) -> Vec<u8> {
    let mut key = threads_prefix(&thread.scope);
    key.extend_from_slice(&thread.number.get().to_be_bytes());
    key
}

/// In `Threads`, `ThreadEvents` and `Replies`: what the keys of a repository's threads begin
/// with, and no others. They are in the order of the numbers.
pub fn threads_prefix(repo: &Scope) -> Vec<u8> {
    let mut key = Vec::new();
    push_text(&mut key, repo.as_str());
    key
}

/// The number of the thread that a key of `Threads` is about, whose repository is known; `None`
/// if it is no such key.
pub fn thread_number(repo: &Scope, key: &[u8]) -> Option<ThreadNumber> {
    let rest = key.strip_prefix(threads_prefix(repo).as_slice())?;
    let number = u64::from_be_bytes(*rest.first_chunk()?);
    ThreadNumber::try_from(number).ok()
}

/// In `Meta`: a small fact.
pub fn meta(name: &str) -> Vec<u8> {
    let mut key = Vec::new();
    push_text(&mut key, name);
    key
}

fn push_text(key: &mut Vec<u8>, text: &str) {
    key.push(u8::try_from(text.len()).expect("a name or scope has at most 255 bytes"));
    key.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    fn user() -> impl Strategy<Value = UserName> {
        "[a-c0-1][a-b._-]{0,3}".prop_map(|text| text.parse().expect("a user name"))
    }

    fn lock() -> impl Strategy<Value = LockKey> {
        // Few letters and short names, so that one is often the beginning of another.
        ("(users|teams)/[ab]{1,3}(/[ab]{1,3})?", "[abB][ab.:-]{0,3}").prop_map(|(scope, name)| {
            LockKey {
                scope: scope.parse().expect("a scope"),
                lock_name: name.parse().expect("a lock name"),
            }
        })
    }

    proptest! {
        #[test]
        fn history_keys_are_injective_and_prefix_free(
            (a, b) in (lock(), lock()),
            (m, n) in (0_u64..3, 0_u64..3),
        ) {
            let (x, y) = (history(&a, Sequence(m)), history(&b, Sequence(n)));
            let is_same = (&a, m) == (&b, n);
            prop_assert_eq!(x == y, is_same);
            prop_assert_eq!(x.starts_with(&y), is_same);
            prop_assert_eq!(x.starts_with(&history_prefix_of_lock(&b)), a == b);
            prop_assert_eq!(x.starts_with(&history_prefix_of_scope(&b.scope)), a.scope == b.scope);
            prop_assert_eq!(history_sequence(&x), Some(Sequence(m)));
        }

        #[test]
        fn history_keys_of_a_lock_are_in_the_order_of_its_events(
            lock in lock(), m in any::<u64>(), n in any::<u64>(),
        ) {
            let keys = (history(&lock, Sequence(m)), history(&lock, Sequence(n)));
            prop_assert_eq!(keys.0.cmp(&keys.1), m.cmp(&n));
        }

        #[test]
        fn request_keys_are_injective_and_prefix_free(
            (a, b) in (user(), user()),
            (m, n) in (0_u128..2, 0_u128..2),
        ) {
            let key = |owner, id| {
                request(owner, Operation::AcquireLock, RequestUuid(Uuid::from_u128(id)))
            };
            let (x, y) = (key(&a, m), key(&b, n));
            let is_same = (&a, m) == (&b, n);
            prop_assert_eq!(x == y, is_same);
            prop_assert_eq!(x.starts_with(&y), is_same);
        }

        #[test]
        fn thread_keys_are_injective_and_prefix_free(
            (a, b) in (lock(), lock()),
            (m, n) in (1_u64..300, 1_u64..300),
            (i, j) in (0_u64..2, 0_u64..2),
        ) {
            let thread = |lock: &LockKey, number| ThreadKey {
                scope: lock.scope.clone(),
                number: ThreadNumber::try_from(number).expect("a number"),
            };
            let (x, y) = (thread(&a, m), thread(&b, n));
            let keys = (thread_event(&x, Sequence(i)), thread_event(&y, Sequence(j)));
            prop_assert_eq!(keys.0.starts_with(&keys.1), (&x, i) == (&y, j));
            prop_assert_eq!(keys.0.starts_with(&thread_prefix(&y)), x == y);
            prop_assert_eq!(keys.0.starts_with(&threads_prefix(&b.scope)), a.scope == b.scope);
            prop_assert_eq!(thread_number(&a.scope, &keys.0), Some(x.number));
            let in_order = thread_prefix(&thread(&a, m)).cmp(&thread_prefix(&thread(&a, n)));
            prop_assert_eq!(in_order, m.cmp(&n));
        }

        #[test]
        fn ticket_and_meta_keys_are_injective_and_prefix_free(
            (m, n) in (0_u128..3, 0_u128..3),
            (a, b) in ("[ab]{0,3}", "[ab]{0,3}"),
        ) {
            let key = |id| ticket(TicketId(Uuid::from_u128(id)));
            let (x, y) = (key(m), key(n));
            prop_assert_eq!(x.starts_with(&y), m == n);
            prop_assert_eq!(meta(&a).starts_with(&meta(&b)), a == b);
        }
    }
}
