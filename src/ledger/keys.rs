//! The keys of the tables.
//!
//! Each text in a key is preceded by its length, and numbers have a fixed width and are
//! big-endian, so that no name can reach into another's keys, no key is the beginning of another
//! in its table, and the order of the keys is the order of the sequences.

use crate::domain::id::{RequestUuid, Sequence, TicketId};
use crate::domain::name::UserName;
use crate::domain::scope::{LockKey, Scope};

/// What a request UUID was given for. One UUID may serve once for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// An acquire, which made a ticket.
    AcquireLock,
}

impl Operation {
    /// Its number in a key, for ever.
    fn number(self) -> u8 {
        match self {
            Self::AcquireLock => 1,
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

/// The sequence at the end of a key of `History`; `None` if it is no such key.
pub fn history_sequence(key: &[u8]) -> Option<Sequence> {
    key.last_chunk().map(|bytes| Sequence(u64::from_be_bytes(*bytes)))
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
