//! What must be true of every state and every record, whatever was asked for.
//!
//! They are functions of a state and a record, so that the server asserts what is cheap, and the
//! simulator all of it after every event. The rules hold where an append ends: between the end of
//! a hold and its promotion a lock may have waiters and no holder.

use std::collections::{BTreeMap, BTreeSet};

use super::event::{Event, LockAcquired, LockPromoted, Record};
use super::id::FenceToken;
use super::name::UserName;
use super::scope::LockKey;
use super::state::{Lock, State};

/// Checks that `record` may follow on `state`: sequences have no gap and no repeat but for
/// `ledger.restored`, ledger time never goes back, and a new hold's fence token is its own
/// sequence, greater than that of every earlier hold. Costs nothing that grows.
///
/// # Errors
///
/// The rule that is broken.
pub fn check_record(state: &State, record: &Record) -> Result<(), String> {
    let next = state.head().next();
    let may_jump = matches!(record.event, Event::LedgerRestored(_));
    let is_next = record.sequence == next || may_jump && record.sequence > next;
    if !is_next {
        return Err(format!("sequence {} after {}", record.sequence, state.head()));
    }
    if record.time < state.time() {
        return Err(format!("ledger time {} after {}", record.time, state.time()));
    }
    let (Event::LockAcquired(LockAcquired { fence_token, depth, .. })
    | Event::LockPromoted(LockPromoted { fence_token, depth, .. })) = &record.event
    else {
        return Ok(());
    };
    let (fence_token, depth) = (*fence_token, *depth);
    let is_right = if depth == 1 {
        fence_token == FenceToken(record.sequence) && Some(fence_token) > state.newest_fence()
    } else {
        let (lock, _) = record.event.lock_and_ticket().expect("a lock event has a lock");
        state.lock(&lock).is_some_and(|lock| lock.hold.fence_token == fence_token)
    };
    if is_right { Ok(()) } else { Err(format!("fence token {fence_token} at {}", record.sequence)) }
}

/// Checks a whole state: one holder per lock, no free lock with a queue, depth = number of held
/// tickets, places in order, no cycle of waits, exact indexes. Costs as much as the state is large.
///
/// # Errors
///
/// The rule that is broken.
pub fn check(state: &State) -> Result<(), String> {
    for (key, lock) in state.locks() {
        check_hold(state, key, lock)?;
        check_queue(state, key, lock)?;
    }
    for ticket in state.tickets() {
        let lock = state.lock(&ticket.lock());
        let is_listed = lock.is_some_and(|lock| {
            let held = lock.hold.tickets.iter().filter(|id| **id == ticket.id).count();
            let waiting = lock.queue().filter(|id| *id == ticket.id).count();
            (held, waiting) == (usize::from(ticket.is_held()), usize::from(ticket.is_waiting()))
        });
        if !is_listed || ticket.is_held() == ticket.is_waiting() {
            return Err(format!("ticket {} is neither held nor waiting just once", ticket.id));
        }
    }
    if State::from(state.to_snapshot()) != *state {
        return Err("an index disagrees with what it is derived from".to_owned());
    }
    check_acyclic(state)
}

fn check_hold(state: &State, key: &LockKey, lock: &Lock) -> Result<(), String> {
    if lock.hold.tickets.is_empty() {
        return Err(format!("{key:?} is in the state, but not held"));
    }
    for id in &lock.hold.tickets {
        let ticket = state.ticket(*id).ok_or_else(|| format!("held ticket {id} isn't live"))?;
        let belongs = ticket.is_held()
            && ticket.owner == lock.hold.owner
            && ticket.fence_token == Some(lock.hold.fence_token)
            && ticket.lock() == *key;
        if !belongs {
            return Err(format!("ticket {id} doesn't belong to the hold of {key:?}"));
        }
    }
    if Some(lock.hold.fence_token) > state.newest_fence() {
        return Err(format!("{key:?} has a fence token newer than the newest"));
    }
    Ok(())
}

fn check_queue(state: &State, key: &LockKey, lock: &Lock) -> Result<(), String> {
    let mut owners = BTreeSet::from([&lock.hold.owner]);
    for place in lock.places() {
        if !owners.insert(&place.owner) {
            return Err(format!("{} holds or waits twice for {key:?}", place.owner));
        }
        let mut made_at = None;
        for id in &place.tickets {
            let ticket = state.ticket(*id).ok_or_else(|| format!("waiting {id} isn't live"))?;
            let belongs = ticket.is_waiting()
                && ticket.owner == place.owner
                && ticket.lock() == *key
                && ticket.fence_token.is_none()
                && made_at < Some(ticket.made_at);
            if !belongs {
                return Err(format!("ticket {id} doesn't belong to its place for {key:?}"));
            }
            made_at = Some(ticket.made_at);
        }
        if place.tickets.is_empty() {
            return Err(format!("an empty place for {key:?}"));
        }
    }
    Ok(())
}

/// Walks from each identity along what it waits for. Each waits for everybody ahead of it in a
/// queue; one step ahead at a time leads to the same places, so the walk is no longer than the
/// queues are.
fn check_acyclic(state: &State) -> Result<(), String> {
    let mut waits_for: BTreeMap<&UserName, Vec<&UserName>> = BTreeMap::new();
    for (_, lock) in state.locks() {
        let mut ahead = &lock.hold.owner;
        for place in lock.places() {
            waits_for.entry(&place.owner).or_default().push(ahead);
            ahead = &place.owner;
        }
    }
    let mut done: BTreeSet<&UserName> = BTreeSet::new();
    for start in waits_for.keys().copied() {
        // The way from `start`, each with how many of its edges were walked.
        let mut way: Vec<(&UserName, usize)> = vec![(start, 0)];
        let mut on_way: BTreeSet<&UserName> = BTreeSet::from([start]);
        while let Some((owner, walked)) = way.last_mut() {
            let edges = waits_for.get(*owner).map_or(&[][..], Vec::as_slice);
            let Some(next) = edges.get(*walked).copied() else {
                on_way.remove(*owner);
                done.insert(*owner);
                way.pop();
                continue;
            };
            *walked += 1;
            if on_way.contains(next) {
                return Err(format!("a cycle of waits through {next}"));
            }
            if !done.contains(next) {
                on_way.insert(next);
                way.push((next, 0));
            }
        }
    }
    Ok(())
}
