//! The invariants, checked on the events alone.
//!
//! A third opinion beside the core's own functions and the naive model: it knows no rule about
//! who may do what or when, only what must never be seen in a ledger.

use std::collections::{BTreeMap, BTreeSet};

use pearing::domain::event::{Event, Record};
use pearing::domain::id::{ReplyId, RequestUuid, TicketId};
use pearing::domain::name::UserName;
use pearing::domain::scope::LockKey;
use pearing::domain::thread::{Fence, ThreadKey};
use pearing::domain::time::Time;

use super::naive::{self, Kind, LockEvent, ThreadEvent, Write};
use super::translate;

/// What the events so far add up to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Auditor {
    sequence: u64,
    time: Time,
    newest_fence: u64,
    locks: BTreeMap<LockKey, Lock>,
    /// Whether each ticket has ended.
    tickets: BTreeMap<TicketId, bool>,
    requests: BTreeSet<(UserName, RequestUuid)>,
    /// Whether each thread is open, and how deep its replies stand.
    threads: BTreeMap<ThreadKey, (bool, BTreeMap<ReplyId, u32>)>,
}

#[derive(Debug, Clone, Default)]
struct Lock {
    hold: Option<Hold>,
    /// The places in order, each with its waiting tickets.
    queue: Vec<(UserName, Vec<TicketId>)>,
}

#[derive(Debug, Clone)]
struct Hold {
    owner: UserName,
    fence: u64,
    tickets: Vec<TicketId>,
}

impl Auditor {
    /// Takes the next event in.
    pub(crate) fn see(&mut self, record: &Record) -> Result<(), String> {
        let is_gap_allowed = matches!(record.event, Event::LedgerRestored(_));
        ensure(
            record.sequence.0 == self.sequence + 1
                || is_gap_allowed && record.sequence.0 > self.sequence,
            "invariant 7: the sequences have a gap or a repeat",
        )?;
        ensure(record.time >= self.time, "invariant 7: ledger time went back")?;
        (self.sequence, self.time) = (record.sequence.0, record.time);
        match translate::event(&record.event) {
            Some(naive::Event::Lock(event)) => self.see_lock_event(&event),
            Some(naive::Event::Thread(event)) => self.see_thread_event(&event),
            Some(
                naive::Event::Restored { .. }
                | naive::Event::Recovered { .. }
                | naive::Event::Access(_)
                | naive::Event::Activity(_),
            )
            | None => Ok(()),
        }
    }

    fn see_lock_event(&mut self, event: &LockEvent) -> Result<(), String> {
        self.count_ticket(event)?;
        let sequence = self.sequence;
        let lock = self.locks.entry(event.lock.clone()).or_default();
        match event.kind {
            Kind::Acquired => {
                let is_new = lock.hold.is_none();
                ensure(is_new || lock.is_held_by(&event.owner), "invariant 1: two holders")?;
                ensure(lock.queue.is_empty() || !is_new, "invariant 1: a waiter was passed by")?;
            }
            Kind::Promoted => lock.promote(event)?,
            Kind::Queued => lock.queue(event)?,
            Kind::Released | Kind::Expired | Kind::Broken => lock.end_held(event)?,
            Kind::WaitCancelled | Kind::WaitTimedOut => lock.leave(event)?,
            Kind::Contended | Kind::DeadlockRejected => {
                ensure(lock.hold.is_some(), "turned away from a free lock")?;
            }
            Kind::Heartbeat => {
                let is_held = |hold: &Hold| {
                    hold.tickets.contains(&event.ticket_id) && Some(hold.fence) == event.fence
                };
                ensure(lock.hold.as_ref().is_some_and(is_held), "a heartbeat of nothing held")?;
            }
        }
        let is_held = matches!(event.kind, Kind::Acquired | Kind::Promoted);
        if is_held && lock.join(event)? {
            ensure(event.fence == Some(sequence), "a hold's fence is not its sequence")?;
            ensure(sequence > self.newest_fence, "invariant 2: a fence came back")?;
            self.newest_fence = sequence;
        }
        let depth = lock.hold.as_ref().map_or(0, |hold| hold.tickets.len());
        let is_right = event.depth.is_none_or(|said| said as usize == depth);
        ensure(is_right, "invariant 3: the depth is not the number of held tickets")
    }

    /// A thread begins once; each reply stands one below what it answers, and is counted; what is
    /// closed is not closed again; who writes under a fence token holds that lock.
    fn see_thread_event(&mut self, event: &ThreadEvent) -> Result<(), String> {
        if let Some(Fence { lock_name, fence_token }) = &event.fence {
            let (scope, lock_name) = (event.thread.scope.clone(), lock_name.clone());
            let lock = self.locks.get(&LockKey { scope, lock_name });
            let is_own = lock
                .and_then(|lock| lock.hold.as_ref())
                .is_some_and(|hold| hold.owner == event.user && hold.fence == fence_token.0.0);
            ensure(is_own, "a write under a hold that the writer doesn't have")?;
        }
        if let Write::Created { .. } = event.write {
            let before = self.threads.insert(event.thread.clone(), (true, BTreeMap::new()));
            return ensure(before.is_none(), "a number was given twice");
        }
        let thread = self.threads.get_mut(&event.thread);
        let (is_open, replies) = thread.ok_or("a write to a thread that there isn't")?;
        match &event.write {
            Write::Created { .. } => Ok(()),
            Write::Replied { reply_id, input, level, count } => {
                let above = input.parent.map_or(Some(0), |parent| replies.get(&parent).copied());
                ensure(Some(*level) == above.map(|above| above + 1), "a reply hangs in the air")?;
                ensure(*level <= 32, "a reply stands too deep")?;
                ensure(replies.insert(*reply_id, *level).is_none(), "a reply was made twice")?;
                ensure(*count as usize == replies.len(), "the replies are miscounted")
            }
            Write::Closed | Write::Reopened => {
                let was_open = std::mem::replace(is_open, event.write == Write::Reopened);
                // One that has a name is recorded all the same, so that its retry finds it.
                let is_right = was_open != *is_open || event.request_uuid.is_some();
                ensure(is_right, "what was closed was closed again, or what was open opened")
            }
        }
    }

    /// Each ticket begins once and ends once; each request makes one ticket.
    fn count_ticket(&mut self, event: &LockEvent) -> Result<(), String> {
        let is_end = match event.kind {
            Kind::Acquired | Kind::Queued | Kind::Heartbeat | Kind::Promoted => false,
            Kind::Contended
            | Kind::DeadlockRejected
            | Kind::Released
            | Kind::Expired
            | Kind::Broken
            | Kind::WaitCancelled
            | Kind::WaitTimedOut => true,
        };
        let before = self.tickets.insert(event.ticket_id, is_end);
        if let Some(input) = &event.input {
            let request = (event.owner.clone(), input.request_uuid);
            ensure(before.is_none(), "invariant 6: a ticket was made twice")?;
            ensure(self.requests.insert(request), "invariant 6: a request made two tickets")
        } else {
            ensure(before == Some(false), "invariant 6: an ended ticket lived again")
        }
    }

    /// What must be so wherever no promotion is due to follow.
    pub(crate) fn check_rest(&self) -> Result<(), String> {
        let is_kept = |lock: &Lock| lock.hold.is_some() || lock.queue.is_empty();
        ensure(self.locks.values().all(is_kept), "invariant 1: a free lock has a queue")?;
        self.check_waits()
    }

    /// Takes away, again and again, whoever waits only for those already taken away. What can't
    /// be taken away waits in a circle.
    fn check_waits(&self) -> Result<(), String> {
        let mut edges: Vec<(&UserName, &UserName)> = Vec::new();
        for lock in self.locks.values() {
            let Some(hold) = &lock.hold else { continue };
            for (index, (waiter, _)) in lock.queue.iter().enumerate() {
                edges.push((waiter, &hold.owner));
                edges.extend(lock.queue[..index].iter().map(|(ahead, _)| (waiter, ahead)));
            }
        }
        loop {
            let blocked = |user: &UserName| edges.iter().any(|(waiter, _)| *waiter == user);
            let left: Vec<_> = edges.iter().copied().filter(|(_, ahead)| blocked(ahead)).collect();
            if left.is_empty() {
                return Ok(());
            }
            ensure(left.len() < edges.len(), "invariant 5: the waits close a circle")?;
            edges = left;
        }
    }
}

impl Lock {
    fn is_held_by(&self, owner: &UserName) -> bool {
        self.hold.as_ref().is_some_and(|hold| hold.owner == *owner)
    }

    /// Adds a held ticket; true if a hold begins with it.
    fn join(&mut self, event: &LockEvent) -> Result<bool, String> {
        let fence = event.fence.ok_or("a hold without a fence")?;
        if let Some(hold) = &mut self.hold {
            ensure(hold.fence == fence, "invariant 2: the fence changed within a hold")?;
            hold.tickets.push(event.ticket_id);
            return Ok(false);
        }
        let (owner, tickets) = (event.owner.clone(), vec![event.ticket_id]);
        self.hold = Some(Hold { owner, fence, tickets });
        Ok(true)
    }

    fn queue(&mut self, event: &LockEvent) -> Result<(), String> {
        ensure(self.hold.is_some(), "invariant 1: it waits for a free lock")?;
        ensure(!self.is_held_by(&event.owner), "a holder waits for itself")?;
        let index = match self.queue.iter().position(|(owner, _)| *owner == event.owner) {
            Some(index) => index,
            None => {
                self.queue.push((event.owner.clone(), Vec::new()));
                self.queue.len() - 1
            }
        };
        self.queue[index].1.push(event.ticket_id);
        let is_right = event.position.is_some_and(|position| position as usize == index + 1);
        ensure(is_right, "the position is not the place")
    }

    /// Takes a ticket out of the first place, where it must be the oldest.
    fn promote(&mut self, event: &LockEvent) -> Result<(), String> {
        ensure(
            self.hold.is_none() || self.is_held_by(&event.owner),
            "invariant 1: promoted over a holder",
        )?;
        // The place is gone with its first ticket, and the others of it follow at once.
        let is_first = self.queue.first().is_some_and(|(owner, tickets)| {
            *owner == event.owner && tickets.first() == Some(&event.ticket_id)
        });
        ensure(is_first, "invariant 4: the first place was passed by")?;
        self.leave(event)
    }

    fn leave(&mut self, event: &LockEvent) -> Result<(), String> {
        let before: usize = self.queue.iter().map(|(_, tickets)| tickets.len()).sum();
        for (_, tickets) in &mut self.queue {
            tickets.retain(|ticket_id| *ticket_id != event.ticket_id);
        }
        self.queue.retain(|(_, tickets)| !tickets.is_empty());
        let after: usize = self.queue.iter().map(|(_, tickets)| tickets.len()).sum();
        ensure(before == after + 1, "it left a queue where it didn't wait")
    }

    fn end_held(&mut self, event: &LockEvent) -> Result<(), String> {
        let hold = self.hold.as_mut().ok_or("a hold ended that there wasn't")?;
        ensure(Some(hold.fence) == event.fence, "invariant 2: it ended under another fence")?;
        let before = hold.tickets.len();
        hold.tickets.retain(|ticket_id| *ticket_id != event.ticket_id);
        ensure(before == hold.tickets.len() + 1, "a ticket ended that wasn't held")?;
        if hold.tickets.is_empty() {
            self.hold = None;
        }
        Ok(())
    }
}

fn ensure(is_so: bool, otherwise: &str) -> Result<(), String> {
    if is_so { Ok(()) } else { Err(otherwise.to_owned()) }
}
