//! What bears on one ticket, gathered from the ledger: whom it met, who stood before it and how
//! they left, what freed it, and how it ended.

use std::ops::ControlFlow;

use super::Found;
use super::bearing::{Bearing, Ended, Gone, Left, bearing};
use super::queue::{Queue, Waiter, queue_before};
use super::read::Past;
use super::turns::{Turn, Turns};
use crate::domain::event::{HolderThen, Record};
use crate::domain::id::{FenceToken, Sequence, TicketId};
use crate::domain::name::UserName;
use crate::domain::text::ShortText;
use crate::domain::ticket::{Phase, Ticket};
use crate::domain::time::Time;
use crate::ledger::LedgerError;

/// How many records are looked at to find the event that took an access away, and at once.
const ACCESS_RECORDS_MAX: u64 = 20_000;
const ACCESS_PAGE: u64 = 500;

/// A ticket's life, and what bears on it.
#[derive(Debug, Clone)]
pub struct Life {
    pub(super) found: Found,
    /// The time of the last event of the state in which it was found.
    pub(super) head_time: Time,
    /// The event that made it.
    pub(super) asked: Record,
    /// The hold that it met; `None` if the lock was free.
    pub(super) met: Option<Hold>,
    /// The place that its identity had in the queue before, by its oldest ticket there.
    pub(super) own_place: Option<Sequence>,
    /// Who stood before it; `None` if that lies too far back, and only their number is known.
    pub(super) ahead: Option<Vec<Waiter>>,
    pub(super) wait: Option<Wait>,
    pub(super) held: Option<Held>,
    pub(super) end: Option<Ending>,
    /// The waiting tickets of the cycle that it would have closed, its own first.
    pub(super) cycle: Vec<Option<Ticket>>,
}

/// A hold, by the event that began it.
#[derive(Debug, Clone)]
pub(super) struct Hold {
    pub(super) owner: UserName,
    pub(super) fence_token: FenceToken,
    pub(super) since: Time,
    /// The note of its first ticket.
    pub(super) note: Option<ShortText>,
}

/// What happened while it waited.
#[derive(Debug, Clone)]
pub(super) struct Wait {
    pub(super) turns: Turns,
    /// Where the telling had to stop.
    pub(super) cut_at: Option<Record>,
    /// Who held the lock when the wait ended, or holds it; `None` if that is not known.
    pub(super) holder: Option<HolderThen>,
    /// Who stood before it still.
    pub(super) still_ahead: Vec<Waiter>,
    /// The event that freed the lock for it, and its promotion.
    pub(super) freed: Option<Box<(Record, Record)>>,
}

/// What happened while it was held.
#[derive(Debug, Clone)]
pub(super) struct Held {
    /// The event since which it was.
    pub(super) since: Record,
    pub(super) beats: u64,
    /// The first heartbeat.
    pub(super) first: Option<Sequence>,
    /// The last one, and the deadline before it.
    pub(super) last: Option<(Record, Time)>,
    pub(super) turns: Turns,
    /// The deadline after the last grace that moved it, unless a heartbeat came later; and that
    /// grace.
    pub(super) lifted: Option<(Sequence, Time)>,
    /// Whether there may be more heartbeats than were counted.
    pub(super) is_cut: bool,
    lease: Lease,
}

/// A deadline, as events move it.
#[derive(Debug, Clone)]
struct Lease {
    deadline: Time,
    is_grace_due: bool,
}

/// How it ended.
#[derive(Debug, Clone)]
pub(super) struct Ending {
    pub(super) record: Record,
    /// The event that took its access away.
    pub(super) taken_away: Option<Record>,
    /// The promotion that followed.
    pub(super) next: Option<Record>,
}

/// Gathers the life of a ticket that was found.
pub(super) fn gather(past: &Past<'_>, found: Found) -> Result<Life, LedgerError> {
    let ticket = &found.ticket;
    let asked = past.record(ticket.made_at)?;
    let head_time = past.record(found.head)?.time;
    let met = met(past, &asked)?;
    let (mut own_place, mut ahead, mut wait_of, mut held_of) = (None, None, None, None);
    match bearing(&asked.event) {
        Bearing::Taken(_) => held_of = Some(held(past, &found, asked.clone())?),
        Bearing::Queued(e) => {
            let queue = queue_before(past, &ticket.lock(), &asked)?;
            own_place = queue.of(&ticket.owner);
            let queue = queue.ahead_of(&ticket.owner);
            let is_all = u32::try_from(queue.len()).is_ok_and(|len| len + 1 == e.queue_position);
            ahead = is_all.then(|| queue.waiters());
            let freed = freed(past, ticket)?;
            if let Some((_, promoted)) = &freed {
                held_of = Some(held(past, &found, promoted.clone())?);
            }
            wait_of = Some(wait(past, &found, queue, met.as_ref(), freed)?);
        }
        Bearing::Contended(e) if !e.reentrant && e.holder.owner != e.owner => {
            own_place = queue_before(past, &ticket.lock(), &asked)?.of(&ticket.owner);
        }
        _ => {}
    }
    let (end, cycle) = match &ticket.phase {
        Phase::Ended { cycle, .. } => {
            let cycle: Result<Vec<_>, _> =
                cycle.iter().map(|id| waiting(past, ticket, *id)).collect();
            (Some(ending(past, ticket)?), cycle?)
        }
        Phase::Held { .. } | Phase::Waiting { .. } => (None, Vec::new()),
    };
    let (wait, held) = (wait_of, held_of);
    Ok(Life { head_time, asked, met, own_place, ahead, wait, held, end, cycle, found })
}

fn waiting(past: &Past<'_>, own: &Ticket, id: TicketId) -> Result<Option<Ticket>, LedgerError> {
    if id == own.id { Ok(Some(own.clone())) } else { past.ticket(id) }
}

/// The hold that a new ticket met.
fn met(past: &Past<'_>, asked: &Record) -> Result<Option<Hold>, LedgerError> {
    let (owner, fence_token) = match bearing(&asked.event) {
        Bearing::Taken(e) if e.depth == 1 => return Ok(None),
        Bearing::Taken(e) => (e.owner.clone(), e.fence_token),
        Bearing::Queued(e) => (e.holder.owner.clone(), e.holder.fence_token),
        Bearing::Contended(e) => (e.holder.owner.clone(), e.holder.fence_token),
        Bearing::Rejected(e) => (e.holder.owner.clone(), e.holder.fence_token),
        _ => return Err(damage(asked.sequence, "makes no ticket")),
    };
    let began = past.record(fence_token.0)?;
    let note = match bearing(&began.event) {
        Bearing::Taken(e) => e.note.clone(),
        Bearing::Promoted(e) => past.ticket(e.ticket_id)?.and_then(|ticket| ticket.input.note),
        _ => return Err(damage(fence_token.0, "begins no hold")),
    };
    Ok(Some(Hold { owner, fence_token, since: began.time, note }))
}

/// The event that freed the lock for a ticket that waited, and its promotion: the first of its
/// hold, or one of those right after it. `None` if it was never promoted.
fn freed(past: &Past<'_>, ticket: &Ticket) -> Result<Option<(Record, Record)>, LedgerError> {
    let Some(FenceToken(mut at)) = ticket.fence_token else { return Ok(None) };
    let freed = past.record(Sequence(at.0.saturating_sub(1)))?;
    loop {
        let record = past.record(at)?;
        match bearing(&record.event) {
            Bearing::Promoted(e) if e.ticket_id == ticket.id => return Ok(Some((freed, record))),
            Bearing::Promoted(_) => at = at.next(),
            _ => return Err(damage(at, "is not the promotion that a ticket had")),
        }
    }
}

/// Reads what happened while it waited. `queue` is who stands before it.
fn wait(
    past: &Past<'_>,
    found: &Found,
    mut queue: Queue,
    met: Option<&Hold>,
    freed: Option<(Record, Record)>,
) -> Result<Wait, LedgerError> {
    let ticket = &found.ticket;
    let is_waiting = matches!(ticket.phase, Phase::Waiting { .. });
    let last = match &freed {
        Some((freed, _)) => before(freed.sequence),
        None if is_waiting => past.head,
        None => before(ticket.sequence),
    };
    let mut turns = Turns::default();
    let mut holder =
        met.map(|hold| HolderThen { owner: hold.owner.clone(), fence_token: hold.fence_token });
    let mut over = None;
    let cut_at =
        past.walk(&ticket.lock(), ticket.made_at, last, |record| match bearing(&record.event) {
            Bearing::Over(ended) if ended.depth == 0 => over = Some(record),
            Bearing::Promoted(e) => {
                queue.leave(e.ticket_id);
                if e.fence_token.0 == record.sequence {
                    let (owner, fence_token) = (e.owner.clone(), e.fence_token);
                    holder = Some(HolderThen { owner, fence_token });
                    if let Some(over) = over.take() {
                        turns.push(Turn::Handed(Box::new((over, record))));
                    }
                }
            }
            Bearing::Queued(e) if queue.has(&e.owner) => {
                queue.join(&e.owner, e.ticket_id, record.sequence);
            }
            // Told only when its identity's last ticket there has left, and it stood before this.
            Bearing::Left(left) if queue.leave(left.ticket_id) => turns.push(Turn::Left(record)),
            Bearing::Recovered(_) => turns.push(Turn::Recovered(record, None)),
            Bearing::Restored(_) => turns.push(Turn::Restored(record)),
            _ => {}
        })?;
    let cut_at = cut_at.map(|at| past.record(at)).transpose()?;
    let holder =
        if is_waiting { found.holder.clone() } else { holder.filter(|_| cut_at.is_none()) };
    let still_ahead = if cut_at.is_none() { queue.waiters() } else { Vec::new() };
    Ok(Wait { turns, cut_at, holder, still_ahead, freed: freed.map(Box::new) })
}

/// Reads what happened while it was held.
fn held(past: &Past<'_>, found: &Found, since: Record) -> Result<Held, LedgerError> {
    let ticket = &found.ticket;
    let last = match &ticket.phase {
        Phase::Ended { .. } => before(ticket.sequence),
        Phase::Held { .. } | Phase::Waiting { .. } => past.head,
    };
    let deadline = match bearing(&since.event) {
        Bearing::Taken(e) => e.lease_expires_at,
        Bearing::Promoted(e) => e.lease_expires_at,
        _ => return Err(damage(since.sequence, "begins no hold")),
    };
    let after = since.sequence;
    let mut held = Held {
        since,
        beats: 0,
        first: None,
        last: None,
        turns: Turns::default(),
        lifted: None,
        is_cut: false,
        lease: Lease { deadline, is_grace_due: true },
    };
    let lock = ticket.lock();
    let Some(cut_at) = past.walk(&lock, after, last, |record| held.see(ticket, record))? else {
        return Ok(held);
    };
    // What counts for the end is the last heartbeat, however many there were.
    held.is_cut = true;
    let mut beaten = None;
    past.walk_back(&lock, last.next(), |record| match bearing(&record.event) {
        _ if record.sequence <= cut_at => ControlFlow::Break(()),
        Bearing::Beaten(e) if e.ticket_id == ticket.id => {
            beaten = Some(record.clone());
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    })?;
    let after = beaten.as_ref().map_or(cut_at, |beaten| beaten.sequence);
    if let Some(beaten) = beaten {
        held.see(ticket, beaten);
    }
    past.walk(&lock, after, last, |record| held.see(ticket, record))?;
    Ok(held)
}

impl Held {
    fn see(&mut self, ticket: &Ticket, record: Record) {
        match bearing(&record.event) {
            Bearing::Beaten(e) if e.ticket_id == ticket.id => {
                let before = self.lease.deadline;
                self.lease = Lease { deadline: e.lease_expires_at, is_grace_due: true };
                self.lifted = None;
                self.beats += 1;
                self.first.get_or_insert(record.sequence);
                self.last = Some((record, before));
            }
            Bearing::Recovered(e) => {
                let before = self.lease.deadline;
                if std::mem::take(&mut self.lease.is_grace_due) {
                    let (time, grace) = (record.time, e.grace_seconds);
                    let after = ticket.input.deadline_after_grace(before, time, grace);
                    self.lease.deadline = after;
                    self.lifted = (after > before).then_some((record.sequence, after));
                }
                let moved = Some((before, self.lease.deadline));
                self.turns.push(Turn::Recovered(record, moved));
            }
            Bearing::Restored(_) => self.turns.push(Turn::Restored(record)),
            _ => {}
        }
    }
}

/// How it ended, and what followed.
fn ending(past: &Past<'_>, ticket: &Ticket) -> Result<Ending, LedgerError> {
    let record = past.record(ticket.sequence)?;
    let (mut taken_away, mut next) = (None, None);
    match bearing(&record.event) {
        Bearing::Left(left) => {
            if matches!(left.how, Gone::LostAccess) {
                taken_away = access_event(past, record.sequence)?;
            }
        }
        Bearing::Over(over) => {
            // A hold is broken as a whole, ticket after ticket, and then handed over.
            let others = if let Ended::Broken(_) = over.how { over.depth.into() } else { 0 };
            next = past.record_after(record.sequence.plus(others))?;
        }
        _ => {}
    }
    let lock = ticket.lock();
    let is_of_the_lock = |next: &Record| match bearing(&next.event) {
        Bearing::Promoted(e) => {
            e.fence_token.0 == next.sequence
                && (&e.scope, &e.lock_name) == (&lock.scope, &lock.lock_name)
        }
        _ => false,
    };
    Ok(Ending { record, taken_away, next: next.filter(is_of_the_lock) })
}

/// The event that took an access away, in the append in which the wait at `cancelled` was
/// cancelled for it: the last one before all that were. `None` if there are too many of those.
fn access_event(past: &Past<'_>, cancelled: Sequence) -> Result<Option<Record>, LedgerError> {
    let least = Sequence(cancelled.0.saturating_sub(ACCESS_RECORDS_MAX));
    let page = usize::try_from(ACCESS_PAGE).expect("a page is short");
    let mut end = cancelled;
    while end > least {
        let start = Sequence(end.0.saturating_sub(ACCESS_PAGE));
        let found = past.ledger.records(before(start), page)?;
        for stored in found.iter().rev().filter(|stored| stored.sequence < end) {
            let record = stored.record()?;
            match bearing(&record.event) {
                Bearing::Left(Left { how: Gone::LostAccess, .. }) => {}
                _ => return Ok(Some(record)),
            }
        }
        end = start;
    }
    Ok(None)
}

fn before(sequence: Sequence) -> Sequence {
    Sequence(sequence.0.saturating_sub(1))
}

fn damage(sequence: Sequence, what: &str) -> LedgerError {
    LedgerError::Corrupt { what: format!("record {sequence} {what}") }
}
