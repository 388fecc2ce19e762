//! From events to what there is to draw.
//!
//! A lock can have any number of events, so everything that is kept has a bound: the newest
//! tickets, the newest attempts, and of a long row of heartbeats a coarser one. What was left out
//! is counted, and the pictures say it.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::model::{Beats, Break, Ending, Held, Hold, Interruption, Lock, Point, Ticket, Timeline};
use crate::domain::event::{Event, Record};
use crate::domain::id::{FenceToken, Sequence, TicketId};
use crate::domain::name::{LockName, UserName};
use crate::domain::scope::Scope;
use crate::domain::ticket::End;
use crate::domain::time::Time;
use crate::projection::as_of::Moment;

/// How many attempts a picture has for each of its tickets: a ticket that ended at once is a dot,
/// and whoever polls for a lock makes many.
const ATTEMPTS_PER_TICKET: usize = 4;

/// How many heartbeats of a ticket are kept apart.
const BEATS_MAX: usize = 512;

/// The newest of what the events tell, in the making.
pub(super) struct Fold {
    most: usize,
    /// By the sequences that made them.
    tickets: BTreeMap<Sequence, (LockName, Ticket)>,
    live: HashMap<TicketId, Sequence>,
    /// In the order in which they ended, so that what is left out is what was over first.
    ended: VecDeque<Sequence>,
    holds: BTreeMap<Sequence, (LockName, Hold)>,
    ended_holds: VecDeque<Sequence>,
    attempts: VecDeque<(LockName, Ticket)>,
    breaks: Vec<Break>,
    tickets_left_out: u64,
    attempts_left_out: u64,
    /// Where the picture begins: where it was asked to, or where the last of what was left out
    /// ended, so that it is whole from there on.
    from: Time,
}

impl Fold {
    pub(super) fn new(from: Time, most: usize) -> Self {
        Self {
            most,
            tickets: BTreeMap::new(),
            live: HashMap::new(),
            ended: VecDeque::new(),
            holds: BTreeMap::new(),
            ended_holds: VecDeque::new(),
            attempts: VecDeque::new(),
            breaks: Vec::new(),
            tickets_left_out: 0,
            attempts_left_out: 0,
            from,
        }
    }

    pub(super) fn take(&mut self, record: &Record) {
        let at = Point { sequence: record.sequence, time: record.time };
        macro_rules! made {
            ($data:expr, $holder:expr) => {
                Ticket {
                    id: $data.ticket_id,
                    owner: $data.owner.clone(),
                    note: $data.note.clone(),
                    made: at,
                    holder: $holder,
                    held: None,
                    heartbeats: Vec::new(),
                    end: None,
                }
            };
        }
        let ending = |how| Ending { at, how, reason: None, deadline: None, cycle: Vec::new() };
        match &record.event {
            Event::LockAcquired(e) => {
                let held = Some(Held { since: at, fence_token: e.fence_token });
                self.make(&e.lock_name, Ticket { held, ..made!(e, None) });
                self.hold(&e.lock_name, &e.owner, e.fence_token, e.depth, at);
            }
            Event::LockQueued(e) => {
                self.make(&e.lock_name, made!(e, Some(e.holder.clone())));
            }
            Event::LockContended(e) => {
                let end = Some(ending(End::Contended));
                self.attempt(&e.lock_name, Ticket { end, ..made!(e, Some(e.holder.clone())) });
            }
            Event::LockDeadlockRejected(e) => {
                let end = Ending { cycle: e.cycle.clone(), ..ending(End::DeadlockRejected) };
                let made = made!(e, Some(e.holder.clone()));
                self.attempt(&e.lock_name, Ticket { end: Some(end), ..made });
            }
            Event::LockHeartbeat(e) => {
                if let Some(ticket) = self.live(e.ticket_id) {
                    ticket.heartbeats.push(Beats { first: at, last: at, count: 1 });
                    thin_out(&mut ticket.heartbeats);
                }
            }
            Event::LockPromoted(e) => {
                if let Some(ticket) = self.live(e.ticket_id) {
                    ticket.held = Some(Held { since: at, fence_token: e.fence_token });
                }
                self.hold(&e.lock_name, &e.owner, e.fence_token, e.depth, at);
            }
            Event::LockReleased(e) => {
                self.end(e.ticket_id, ending(End::Released));
                self.end_hold(e.fence_token, e.depth, at);
            }
            Event::LockExpired(e) => {
                let deadline = Some(e.lease_expires_at);
                self.end(e.ticket_id, Ending { deadline, ..ending(End::Expired) });
                self.end_hold(e.fence_token, e.depth, at);
            }
            Event::LockBroken(e) => {
                let reason = Some(e.reason.clone());
                self.end(e.ticket_id, Ending { reason, ..ending(End::Broken) });
                self.end_hold(e.fence_token, e.depth, at);
            }
            Event::LockWaitCancelled(e) => {
                let reason = e.reason.clone();
                self.end(e.ticket_id, Ending { reason, ..ending(End::Cancelled) });
            }
            Event::LockWaitTimedOut(e) => {
                let deadline = Some(e.wait_expires_at);
                self.end(e.ticket_id, Ending { deadline, ..ending(End::TimedOut) });
            }
            Event::LedgerRecovered(e) => {
                let what = Interruption::Restart { grace_seconds: e.grace_seconds };
                self.breaks.push(Break { at, what });
            }
            Event::LedgerRestored(e) => {
                let (last_sequence, reason) = (e.last_sequence, e.reason.clone());
                self.breaks.push(Break { at, what: Interruption::Gap { last_sequence, reason } });
            }
            Event::LedgerOpened(_)
            | Event::UserCreated(_)
            | Event::UserDisabled(_)
            | Event::UserEnabled(_)
            | Event::TokenIssued(_)
            | Event::TokenRevoked(_)
            | Event::TeamCreated(_)
            | Event::TeamMemberAdded(_)
            | Event::TeamMemberRemoved(_)
            | Event::RepoCreated(_)
            | Event::AccessGranted(_)
            | Event::AccessRevoked(_)
            | Event::ActivityUpdated(_)
            | Event::ActivityCleared(_)
            | Event::ThreadCreated(_)
            | Event::ThreadReplied(_)
            | Event::ThreadClosed(_)
            | Event::ThreadReopened(_) => {}
        }
    }

    fn live(&mut self, id: TicketId) -> Option<&mut Ticket> {
        let made = self.live.get(&id)?;
        self.tickets.get_mut(made).map(|(_, ticket)| ticket)
    }

    fn make(&mut self, lock_name: &LockName, ticket: Ticket) {
        if self.tickets.len() >= self.most {
            self.tickets_left_out += 1;
            // With none that has ended the newcomer stays out: it is the last in the queue.
            let Some(oldest) = self.ended.pop_front() else { return };
            if let Some((_, oldest)) = self.tickets.remove(&oldest) {
                self.from = self.from.max(oldest.end_or(oldest.made.time));
            }
        }
        self.live.insert(ticket.id, ticket.made.sequence);
        self.tickets.insert(ticket.made.sequence, (lock_name.clone(), ticket));
    }

    fn attempt(&mut self, lock_name: &LockName, ticket: Ticket) {
        if ticket.made.time < self.from {
            return;
        }
        if self.attempts.len() >= ATTEMPTS_PER_TICKET * self.most {
            self.attempts_left_out += 1;
            self.attempts.pop_front();
        }
        self.attempts.push_back((lock_name.clone(), ticket));
    }

    fn end(&mut self, id: TicketId, ending: Ending) {
        let Some(made) = self.live.remove(&id) else { return };
        if ending.at.time < self.from {
            self.tickets.remove(&made);
        } else if let Some((_, ticket)) = self.tickets.get_mut(&made) {
            ticket.end = Some(ending);
            self.ended.push_back(made);
        }
    }

    /// A hold begins, or gets a further ticket.
    fn hold(
        &mut self,
        lock_name: &LockName,
        owner: &UserName,
        fence_token: FenceToken,
        depth: u32,
        at: Point,
    ) {
        if let Some((_, hold)) = self.holds.get_mut(&fence_token.0) {
            hold.depth = hold.depth.max(depth);
            return;
        }
        // A hold that began among what was left out has no beginning here.
        if fence_token.0 != at.sequence {
            return;
        }
        if self.holds.len() >= self.most {
            let Some(oldest) = self.ended_holds.pop_front() else { return };
            if let Some((_, oldest)) = self.holds.remove(&oldest) {
                self.from = self.from.max(oldest.end_or(oldest.since.time));
            }
        }
        let hold = Hold { owner: owner.clone(), fence_token, since: at, until: None, depth };
        self.holds.insert(fence_token.0, (lock_name.clone(), hold));
    }

    fn end_hold(&mut self, fence_token: FenceToken, depth: u32, at: Point) {
        if depth > 0 {
            return;
        }
        if at.time < self.from {
            self.holds.remove(&fence_token.0);
        } else if let Some((_, hold)) = self.holds.get_mut(&fence_token.0) {
            hold.until = Some(at);
            self.ended_holds.push_back(fence_token.0);
        }
    }

    pub(super) fn finish(self, scope: Scope, lock_name: Option<LockName>, to: Moment) -> Timeline {
        let from = self.from;
        let mut locks: BTreeMap<LockName, Lock> = BTreeMap::new();
        let tickets = self.tickets.into_values().chain(self.attempts);
        for (name, mut ticket) in tickets.filter(|(_, ticket)| ticket.end_or(to.time) >= from) {
            ticket.heartbeats.retain(|beats| beats.first.time >= from);
            locks.entry(name).or_default().tickets.push(ticket);
        }
        for (name, hold) in self.holds.into_values() {
            if hold.end_or(to.time) >= from {
                locks.entry(name).or_default().holds.push(hold);
            }
        }
        for lock in locks.values_mut() {
            lock.tickets.sort_by_key(|ticket| ticket.made.sequence);
        }
        let mut timeline = Timeline {
            scope,
            lock_name,
            locks,
            breaks: self.breaks,
            span: None,
            sequence: to.sequence,
            tickets_left_out: self.tickets_left_out,
            attempts_left_out: self.attempts_left_out,
        };
        let begins = timeline.tickets().map(|ticket| ticket.made.time);
        let begins = begins.chain(timeline.holds().map(|hold| hold.since.time));
        let ends = timeline.tickets().map(|ticket| ticket.end_or(to.time));
        let ends = ends.chain(timeline.holds().map(|hold| hold.end_or(to.time)));
        timeline.span = begins.min().map(|first| first.max(from)).zip(ends.max());
        let is_within =
            |time: Time| timeline.span.is_some_and(|(first, last)| first <= time && time <= last);
        timeline.breaks.retain(|interruption| is_within(interruption.at.time));
        timeline
    }
}

/// Puts neighbours together once there are too many.
fn thin_out(heartbeats: &mut Vec<Beats>) {
    if heartbeats.len() < 2 * BEATS_MAX {
        return;
    }
    let pairs = heartbeats.chunks(2);
    *heartbeats = pairs.filter_map(|pair| pair.iter().copied().reduce(Beats::with)).collect();
}
