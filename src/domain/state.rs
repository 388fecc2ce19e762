//! What is alive: held and waiting tickets, the locks that they are for, and who may do what.
//!
//! An idle lock and an ended ticket cost nothing here. Every index can be derived from the
//! tickets and the places; they exist so that no command walks what it doesn't need. All maps are
//! ordered, so that nothing can depend on a hash seed.
//!
//! Deliberately absent: decisions. [`State::apply`] (in `apply.rs`) folds what has happened.

use std::collections::{BTreeMap, BTreeSet};

use super::access::Access;
use super::activity::Activity;
use super::id::{FenceToken, LedgerId, Sequence, TicketId};
use super::name::UserName;
use super::scope::{LockKey, Scope};
use super::thread::ThreadNumber;
use super::ticket::Ticket;
use super::time::Time;

mod apply;
mod snapshot;

pub use snapshot::Snapshot;

/// The live state at one sequence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    ledger_id: Option<LedgerId>,
    head: Sequence,
    time: Time,
    /// The newest fence token given to any hold; every later one is greater.
    newest_fence: Option<FenceToken>,
    access: Access,
    /// What each user says it is doing; only users who say something.
    activities: BTreeMap<UserName, Activity>,
    /// The greatest number of a thread in each repository that has any.
    newest_threads: BTreeMap<Scope, ThreadNumber>,
    tickets: BTreeMap<TicketId, Ticket>,
    locks: BTreeMap<LockKey, Lock>,
    /// Live tickets of each identity, in the order in which they were made.
    by_owner: BTreeMap<UserName, BTreeSet<(Sequence, TicketId)>>,
    /// How many live tickets there are in each scope.
    by_scope: BTreeMap<Scope, u32>,
    /// The locks that each identity holds.
    holding: BTreeMap<UserName, BTreeSet<LockKey>>,
    /// The locks in whose queue each identity has a place.
    queueing: BTreeMap<UserName, BTreeSet<LockKey>>,
    wait_deadlines: BTreeSet<(Time, Sequence, TicketId)>,
    lease_deadlines: BTreeSet<(Time, Sequence, TicketId)>,
}

/// A lock that is held. A free one is not in the state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lock {
    /// Who holds it.
    pub hold: Hold,
    /// The event that last changed it.
    pub sequence: Sequence,
    /// Places by the sequence of the event that took them, so in order.
    places: BTreeMap<Sequence, Place>,
    place_of: BTreeMap<UserName, Sequence>,
}

/// An identity's unbroken ownership of a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// The holder.
    pub owner: UserName,
    /// One for the whole hold.
    pub fence_token: FenceToken,
    /// The held tickets, in the order in which they joined. Never empty.
    pub tickets: Vec<TicketId>,
}

impl Hold {
    /// The number of held tickets.
    pub fn depth(&self) -> u32 {
        u32::try_from(self.tickets.len()).expect("tickets are limited to far fewer")
    }
}

/// An identity's place in a queue, shared by all of its waiting tickets there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Who waits.
    pub owner: UserName,
    /// Its waiting tickets, in the order in which they were made. Never empty.
    pub tickets: Vec<TicketId>,
}

impl Lock {
    /// The places of the queue, first one first.
    pub fn places(&self) -> impl DoubleEndedIterator<Item = &Place> {
        self.places.values()
    }

    /// The waiting tickets in order of their places.
    pub fn queue(&self) -> impl Iterator<Item = TicketId> {
        self.places().flat_map(|place| place.tickets.iter().copied())
    }

    /// The number of waiting identities.
    pub fn places_len(&self) -> u32 {
        u32::try_from(self.places.len()).expect("places are limited to far fewer")
    }

    /// The place of an identity in the queue, from 1.
    pub fn position_of(&self, owner: &UserName) -> Option<u32> {
        let place = self.place_of.get(owner)?;
        let ahead = self.places.range(..place).count();
        Some(u32::try_from(ahead).expect("places are limited to far fewer") + 1)
    }

    /// Whether the identity has a place in the queue.
    pub fn has_place(&self, owner: &UserName) -> bool {
        self.place_of.contains_key(owner)
    }

    /// Whether somebody stands behind the identity in the queue.
    fn has_followers(&self, owner: &UserName) -> bool {
        let last = self.places.last_key_value().map(|(place, _)| place);
        self.place_of.get(owner).is_some_and(|place| Some(place) != last)
    }

    /// The places ahead of an identity (all of them, if it has none), from `start` on, each with
    /// the event that took it.
    pub(super) fn places_ahead_of(
        &self,
        owner: &UserName,
        start: Sequence,
    ) -> impl Iterator<Item = (Sequence, &Place)> {
        let end = self.place_of.get(owner).copied().unwrap_or(Sequence(u64::MAX));
        self.places.range(start..end.max(start)).map(|(taken_at, place)| (*taken_at, place))
    }

    /// The first place of the queue.
    pub(super) fn first_place(&self) -> Option<&Place> {
        self.places.first_key_value().map(|(_, place)| place)
    }

    /// The place of an identity.
    pub(super) fn place(&self, owner: &UserName) -> Option<&Place> {
        self.place_of.get(owner).and_then(|place| self.places.get(place))
    }
}

impl State {
    /// The ledger's name; `None` before it was opened.
    pub fn ledger_id(&self) -> Option<LedgerId> {
        self.ledger_id
    }

    /// The sequence of the last event.
    pub fn head(&self) -> Sequence {
        self.head
    }

    /// The ledger time of the last event.
    pub fn time(&self) -> Time {
        self.time
    }

    /// The newest fence token given to any hold.
    pub fn newest_fence(&self) -> Option<FenceToken> {
        self.newest_fence
    }

    /// Who may do what.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// What a user says it is doing.
    pub fn activity(&self, user: &UserName) -> Option<&Activity> {
        self.activities.get(user)
    }

    /// What each user says it is doing, by name, for those after `after` who say something.
    pub fn activities_after(
        &self,
        after: Option<&UserName>,
    ) -> impl Iterator<Item = (&UserName, &Activity)> {
        use std::ops::Bound::{Excluded, Unbounded};
        self.activities.range((after.map_or(Unbounded, Excluded), Unbounded))
    }

    /// The greatest number of a thread in a repository; `None` if it has no threads.
    pub fn newest_thread(&self, repo: &Scope) -> Option<ThreadNumber> {
        self.newest_threads.get(repo).copied()
    }

    /// Whether an identity holds any lock.
    pub fn is_holder(&self, user: &UserName) -> bool {
        self.holding.contains_key(user)
    }

    /// A live ticket.
    pub fn ticket(&self, id: TicketId) -> Option<&Ticket> {
        self.tickets.get(&id)
    }

    /// All live tickets, by id.
    pub fn tickets(&self) -> impl Iterator<Item = &Ticket> {
        self.tickets.values()
    }

    /// The live tickets of an identity, in the order in which they were made.
    pub fn tickets_of(&self, owner: &UserName) -> impl Iterator<Item = &Ticket> {
        self.by_owner.get(owner).into_iter().flatten().map(|(_, id)| self.live(*id))
    }

    /// The number of live tickets of an identity.
    pub fn tickets_len(&self, owner: &UserName) -> u32 {
        let len = self.by_owner.get(owner).map_or(0, BTreeSet::len);
        u32::try_from(len).expect("tickets are limited to far fewer")
    }

    /// The number of live tickets in a scope.
    pub fn tickets_len_in(&self, scope: &Scope) -> u32 {
        self.by_scope.get(scope).copied().unwrap_or(0)
    }

    /// A held lock.
    pub fn lock(&self, lock: &LockKey) -> Option<&Lock> {
        self.locks.get(lock)
    }

    /// All held locks, by scope and name.
    pub fn locks(&self) -> impl Iterator<Item = (&LockKey, &Lock)> {
        self.locks.iter()
    }

    /// The held locks of a scope, by name.
    pub fn locks_in(&self, scope: &Scope) -> impl Iterator<Item = (&LockKey, &Lock)> {
        let least: super::name::LockName = "0".parse().expect("0 is the least lock name");
        let from = LockKey { scope: scope.clone(), lock_name: least };
        let scope = from.scope.clone();
        self.locks.range(from..).take_while(move |(lock, _)| lock.scope == scope)
    }

    /// The locks in whose queue an identity has a place.
    pub fn queueing(&self, owner: &UserName) -> impl Iterator<Item = &LockKey> {
        self.queueing.get(owner).into_iter().flatten()
    }

    /// The depth of a ticket's hold now; 0 if it isn't held.
    pub fn depth(&self, ticket: &Ticket) -> u32 {
        if !ticket.is_held() {
            return 0;
        }
        self.locks.get(&ticket.lock()).map_or(0, |lock| lock.hold.depth())
    }

    /// The place of a waiting ticket, from 1; `None` if it doesn't wait.
    pub fn queue_position(&self, ticket: &Ticket) -> Option<u32> {
        if !ticket.is_waiting() {
            return None;
        }
        self.locks.get(&ticket.lock())?.position_of(&ticket.owner)
    }

    /// The latest deadline of a hold.
    pub fn hold_deadline(&self, hold: &Hold) -> Time {
        let deadlines = hold.tickets.iter().filter_map(|id| self.live(*id).lease_deadline());
        deadlines.max().expect("a hold has at least one held ticket")
    }

    /// When the next wait or lease comes due.
    pub fn next_deadline(&self) -> Option<Time> {
        let wait = self.wait_deadlines.first().map(|(time, ..)| *time);
        let lease = self.lease_deadlines.first().map(|(time, ..)| *time);
        wait.into_iter().chain(lease).min()
    }

    /// The number of held locks.
    pub fn locks_len(&self) -> usize {
        self.locks.len()
    }

    /// The number of held tickets.
    pub fn held_tickets_len(&self) -> usize {
        self.lease_deadlines.len()
    }

    /// The number of waiting tickets.
    pub fn waiting_tickets_len(&self) -> usize {
        self.wait_deadlines.len()
    }

    /// Whether any lock is held.
    pub fn has_holds(&self) -> bool {
        !self.locks.is_empty()
    }

    /// The first wait that is due at `time`, by (deadline, making event).
    pub(super) fn due_wait(&self, time: Time) -> Option<&Ticket> {
        let (deadline, _, id) = self.wait_deadlines.first()?;
        (*deadline <= time).then(|| self.live(*id))
    }

    /// The first lease that is due at `time`, by (deadline, making event).
    pub(super) fn due_lease(&self, time: Time) -> Option<&Ticket> {
        let (deadline, _, id) = self.lease_deadlines.first()?;
        (*deadline <= time).then(|| self.live(*id))
    }

    /// Whether any identity waits for this one: behind it in a queue, or for a lock that it
    /// holds.
    pub(super) fn is_waited_for(&self, owner: &UserName) -> bool {
        let lock_of = |lock: &LockKey| self.locks.get(lock).expect("an index names held locks");
        let holds = self.holding.get(owner).into_iter().flatten();
        holds.map(lock_of).any(|lock| !lock.places.is_empty())
            || self.queueing(owner).map(lock_of).any(|lock| lock.has_followers(owner))
    }

    /// Counts a ticket that begins to live.
    fn count_in_scope(&mut self, scope: &Scope) {
        match self.by_scope.get_mut(scope) {
            Some(count) => *count += 1,
            None => drop(self.by_scope.insert(scope.clone(), 1)),
        }
    }

    fn live(&self, id: TicketId) -> &Ticket {
        self.tickets.get(&id).expect("an index names live tickets")
    }
}
