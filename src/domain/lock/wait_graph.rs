//! Finds the cycle that a new wait would close.
//!
//! Nodes are identities, over all scopes. An identity with a place in a queue waits for the
//! holder AND for every identity ahead of it: one of those will hold the lock first. So no later
//! promotion can make a cycle that nobody checked. Edges are made only when a place is taken, and
//! are checked here, then; leaving a queue only removes edges. The graph is acyclic at all times.

use std::collections::{BTreeMap, VecDeque};

use crate::domain::id::{Sequence, TicketId};
use crate::domain::name::UserName;
use crate::domain::scope::LockKey;
use crate::domain::state::{Lock, State};

/// The waiting tickets of the shortest cycle that `newcomer` would close by taking a place in the
/// queue of `lock`, from the one that it would wait for on; `None` if it would close none.
///
/// Costs no search where nobody waits for the newcomer, so a herd on one lock is not quadratic.
/// Else each identity and each place is looked at once at the most.
pub(super) fn closed_cycle(
    state: &State,
    newcomer: &UserName,
    lock: &Lock,
) -> Option<Vec<TicketId>> {
    if !state.is_waited_for(newcomer) {
        return None;
    }
    let mut search = Search { state, newcomer, reached: BTreeMap::new(), open: VecDeque::new() };
    search.reach(&lock.hold.owner, None);
    for owner in ahead(lock, newcomer, Sequence::ZERO).map(|(_, owner)| owner) {
        search.reach(owner, None);
    }
    search.run()
}

/// The identities ahead of one in a queue, with the events that took their places.
fn ahead<'a>(
    lock: &'a Lock,
    owner: &UserName,
    start: Sequence,
) -> impl Iterator<Item = (Sequence, &'a UserName)> {
    let places =
        lock.places_ahead_of(owner, start).map(|(taken_at, place)| (taken_at, &place.owner));
    #[cfg(feature = "planted-bugs")]
    let places = places.filter(|_| crate::domain::planted::is_queue_ahead_an_edge());
    places
}

/// A breadth-first walk along what waits for what.
struct Search<'a> {
    state: &'a State,
    newcomer: &'a UserName,
    /// How each identity was reached: whose wait, by which ticket; `None` for the newcomer's own.
    reached: BTreeMap<&'a UserName, Option<(&'a UserName, TicketId)>>,
    open: VecDeque<&'a UserName>,
}

impl<'a> Search<'a> {
    fn reach(&mut self, owner: &'a UserName, by: Option<(&'a UserName, TicketId)>) {
        if !self.reached.contains_key(owner) {
            self.reached.insert(owner, by);
            self.open.push_back(owner);
        }
    }

    fn run(mut self) -> Option<Vec<TicketId>> {
        // How far each queue was walked: what stands ahead of one place stands ahead of all later
        // ones, so nothing is walked twice.
        let mut walked: BTreeMap<&LockKey, Sequence> = BTreeMap::new();
        while let Some(owner) = self.open.pop_front() {
            if owner == self.newcomer {
                return Some(self.path());
            }
            for key in self.state.queueing(owner) {
                let lock = self.state.lock(key).expect("an index names held locks");
                let place = lock.place(owner).expect("the index of places is exact");
                let by = Some((owner, place.tickets[0]));
                let start = walked.entry(key).or_insert(Sequence::ZERO);
                self.reach(&lock.hold.owner, by);
                for (taken_at, other) in ahead(lock, owner, *start) {
                    *start = taken_at.next();
                    self.reach(other, by);
                }
            }
        }
        None
    }

    /// The tickets on the way from the newcomer back to itself.
    fn path(&self) -> Vec<TicketId> {
        let mut tickets = Vec::new();
        let mut at = self.newcomer;
        while let Some(Some((owner, ticket))) = self.reached.get(at) {
            tickets.push(*ticket);
            at = owner;
        }
        tickets.reverse();
        tickets
    }
}
