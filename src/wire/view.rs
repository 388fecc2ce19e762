//! What an answer shows of one state, before it becomes JSON.
//!
//! The service fills these from ONE state, so that an answer never mixes two. They hold ledger
//! times; only the JSON turns them into what remains of a lease.
//! Deliberately absent: serde. What leaves the process is in the sibling modules.

use crate::domain::activity::Activity;
use crate::domain::id::{FenceToken, Sequence, TicketId};
use crate::domain::name::{LockName, UserName};
use crate::domain::scope::{LockKey, Scope};
use crate::domain::text::ShortText;
use crate::domain::ticket::Ticket;
use crate::domain::time::Time;
use crate::domain::{Lock, State};

/// A ticket and what only the state around it knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TicketView {
    /// The ticket.
    pub ticket: Ticket,
    /// Held tickets of its hold now; 0 if it is not held.
    pub depth: u32,
    /// The place of its identity in the queue, from 1, if it waits.
    pub queue_position: Option<u32>,
}

/// Who holds a lock now, as those see it who contend or wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HolderView {
    /// The holder.
    pub owner: UserName,
    /// The hold's fence token.
    pub fence_token: FenceToken,
    /// The note of the hold's first ticket.
    pub note: Option<ShortText>,
    /// The latest deadline of the hold's tickets.
    pub lease_expires_at: Time,
}

/// One step of a deadlock's cycle. What the asker may not read is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CycleEdgeView {
    /// Who waits.
    pub owner: Option<UserName>,
    /// For whom.
    pub waits_for: Option<UserName>,
    /// Where the lock lives that it waits for.
    pub scope: Option<Scope>,
    /// The lock that it waits for.
    pub lock_name: Option<LockName>,
    /// The ticket that waits.
    pub ticket_id: Option<TicketId>,
}

/// The answer to a call about one ticket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TicketAnswer {
    /// The ticket as it is now.
    pub ticket: TicketView,
    /// Whether an acquire met a request that was made before.
    pub is_replay: bool,
    /// Who holds the lock now; `None` if it is free, or if the asker may not read the scope.
    pub holder: Option<HolderView>,
    /// The cycle of a rejected deadlock: begins with the rejected owner and returns to it.
    pub cycle: Vec<CycleEdgeView>,
    /// The state that this shows.
    pub sequence: Sequence,
}

/// What a user says it is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActivityView {
    /// Who.
    pub user: UserName,
    /// What it says; `None` if it says nothing.
    pub activity: Option<Activity>,
    /// Whether it holds any lock now.
    pub has_holds: bool,
}

/// A lock: who holds it and who waits, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockView {
    /// The lock.
    pub lock: LockKey,
    /// The held tickets, in the order in which they were made. Empty if the lock is free.
    pub holds: Vec<TicketView>,
    /// The waiting tickets, in the order of their places.
    pub queue: Vec<TicketView>,
    /// The state that this shows.
    pub sequence: Sequence,
}

impl TicketView {
    /// A ticket, with what only the state around it knows.
    pub fn of(state: &State, ticket: &Ticket) -> TicketView {
        TicketView {
            depth: state.depth(ticket),
            queue_position: state.queue_position(ticket),
            ticket: ticket.clone(),
        }
    }
}

impl ActivityView {
    /// What a user says it is doing, and whether it holds anything.
    pub fn of(state: &State, user: &UserName) -> ActivityView {
        ActivityView {
            user: user.clone(),
            activity: state.activity(user).cloned(),
            has_holds: state.is_holder(user),
        }
    }
}

impl LockView {
    /// A lock; a free one has no holds and no queue. `sequence` is the state that it is taken from.
    pub fn of(state: &State, key: &LockKey, sequence: Sequence) -> LockView {
        let view = |id: TicketId| state.ticket(id).map(|ticket| TicketView::of(state, ticket));
        let lock = state.lock(key);
        let held = lock.into_iter().flat_map(|lock| lock.hold.tickets.iter().copied());
        let mut queue = Vec::new();
        // Positions are counted here: to ask for each one's would walk the queue again and again.
        for (position, place) in (1..).zip(lock.into_iter().flat_map(Lock::places)) {
            for ticket in place.tickets.iter().filter_map(|id| state.ticket(*id)) {
                let queue_position = Some(position);
                queue.push(TicketView { ticket: ticket.clone(), depth: 0, queue_position });
            }
        }
        LockView { lock: key.clone(), holds: held.filter_map(view).collect(), queue, sequence }
    }
}
