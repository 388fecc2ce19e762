//! The state in a form that can be stored, so that a start needn't replay the whole ledger.
//!
//! Only what can't be derived is stored: tickets, the order of holds and queues, access,
//! activities, the numbers of threads. Indexes
//! are rebuilt, so a snapshot can't disagree with itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Hold, Lock, Place, State};
use crate::domain::access::Access;
use crate::domain::activity::Activity;
use crate::domain::id::{FenceToken, LedgerId, Sequence, TicketId};
use crate::domain::name::{LockName, UserName};
use crate::domain::scope::{LockKey, Scope};
use crate::domain::thread::ThreadNumber;
use crate::domain::ticket::{Phase, Ticket};
use crate::domain::time::Time;

/// A stored state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    ledger_id: Option<LedgerId>,
    head: Sequence,
    time: Time,
    newest_fence: Option<FenceToken>,
    access: Access,
    activities: BTreeMap<UserName, Activity>,
    newest_threads: BTreeMap<Scope, ThreadNumber>,
    tickets: Vec<Ticket>,
    locks: Vec<LockSnapshot>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LockSnapshot {
    scope: Scope,
    lock_name: LockName,
    sequence: Sequence,
    owner: UserName,
    fence_token: FenceToken,
    held: Vec<TicketId>,
    places: Vec<PlaceSnapshot>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlaceSnapshot {
    taken_at: Sequence,
    owner: UserName,
    tickets: Vec<TicketId>,
}

impl State {
    /// The state as a snapshot.
    pub fn to_snapshot(&self) -> Snapshot {
        let lock_snapshot = |(key, lock): (&LockKey, &Lock)| LockSnapshot {
            scope: key.scope.clone(),
            lock_name: key.lock_name.clone(),
            sequence: lock.sequence,
            owner: lock.hold.owner.clone(),
            fence_token: lock.hold.fence_token,
            held: lock.hold.tickets.clone(),
            places: lock.places.iter().map(place_snapshot).collect(),
        };
        Snapshot {
            ledger_id: self.ledger_id,
            head: self.head,
            time: self.time,
            newest_fence: self.newest_fence,
            access: self.access.clone(),
            activities: self.activities.clone(),
            newest_threads: self.newest_threads.clone(),
            tickets: self.tickets.values().cloned().collect(),
            locks: self.locks.iter().map(lock_snapshot).collect(),
        }
    }
}

fn place_snapshot((taken_at, place): (&Sequence, &Place)) -> PlaceSnapshot {
    PlaceSnapshot {
        taken_at: *taken_at,
        owner: place.owner.clone(),
        tickets: place.tickets.clone(),
    }
}

impl From<Snapshot> for State {
    fn from(snapshot: Snapshot) -> Self {
        let mut state = State {
            ledger_id: snapshot.ledger_id,
            head: snapshot.head,
            time: snapshot.time,
            newest_fence: snapshot.newest_fence,
            access: snapshot.access,
            activities: snapshot.activities,
            newest_threads: snapshot.newest_threads,
            ..State::default()
        };
        state.access.index();
        for ticket in snapshot.tickets {
            state.index_ticket(&ticket);
            state.tickets.insert(ticket.id, ticket);
        }
        for lock in snapshot.locks {
            state.restore_lock(lock);
        }
        state
    }
}

impl State {
    fn index_ticket(&mut self, ticket: &Ticket) {
        let owned = self.by_owner.entry(ticket.owner.clone()).or_default();
        owned.insert((ticket.made_at, ticket.id));
        self.count_in_scope(&ticket.input.scope);
        match ticket.phase {
            Phase::Held { lease_expires_at, .. } => {
                self.lease_deadlines.insert((lease_expires_at, ticket.made_at, ticket.id));
            }
            Phase::Waiting { wait_expires_at } => {
                self.wait_deadlines.insert((wait_expires_at, ticket.made_at, ticket.id));
            }
            Phase::Ended { .. } => {}
        }
    }

    fn restore_lock(&mut self, stored: LockSnapshot) {
        let key = LockKey { scope: stored.scope, lock_name: stored.lock_name };
        let mut lock = Lock {
            hold: Hold {
                owner: stored.owner.clone(),
                fence_token: stored.fence_token,
                tickets: stored.held,
            },
            sequence: stored.sequence,
            places: Default::default(),
            place_of: Default::default(),
        };
        for place in stored.places {
            self.queueing.entry(place.owner.clone()).or_default().insert(key.clone());
            lock.place_of.insert(place.owner.clone(), place.taken_at);
            let restored = Place { owner: place.owner, tickets: place.tickets };
            lock.places.insert(place.taken_at, restored);
        }
        self.holding.entry(stored.owner).or_default().insert(key.clone());
        self.locks.insert(key, lock);
    }
}
