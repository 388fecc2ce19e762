//! Takes a lock, joins an own hold, waits, or says why not.
//!
//! The order of the questions is the rule: a retry is answered before access is asked for, and a
//! limit is met only by what would have been held or waiting.

use super::wait_graph::closed_cycle;
use crate::domain::access::Role;
use crate::domain::decide::{Answer, Context};
use crate::domain::event::{
    Event, HolderThen, LockAcquired, LockContended, LockDeadlockRejected, LockQueued,
};
use crate::domain::id::{FenceToken, TicketId};
use crate::domain::name::UserName;
use crate::domain::refusal::Refusal;
use crate::domain::state::Lock;
use crate::domain::ticket::TicketInput;

pub(in crate::domain) fn acquire(
    context: &Context<'_>,
    ticket_id: TicketId,
    input: &TicketInput,
) -> Result<(Vec<Event>, Answer), Refusal> {
    let user = context.user()?;
    if let Some(made) = context.past.request {
        return replay(context, made, input);
    }
    context.require_role(&input.scope, Role::Write)?;
    let event = answer(context, user, ticket_id, input)?;
    Ok((vec![event], Answer::Ticket { ticket_id, is_replay: false }))
}

/// The same request again shows the ticket as it is now, and needs no access: it is a read of
/// one's own ticket. Other input under the same request UUID is a mistake of the caller's.
fn replay(
    context: &Context<'_>,
    made: TicketId,
    input: &TicketInput,
) -> Result<(Vec<Event>, Answer), Refusal> {
    let ticket = context.ticket(made).expect("a recorded request has a ticket");
    if ticket.input != *input {
        context.require_in_service()?;
        return Err(Refusal::RequestUuidReused);
    }
    Ok((Vec::new(), Answer::Ticket { ticket_id: made, is_replay: true }))
}

/// Rules 3 to 7: what becomes of a new ticket.
fn answer(
    context: &Context<'_>,
    user: &UserName,
    ticket_id: TicketId,
    input: &TicketInput,
) -> Result<Event, Refusal> {
    let new = New { context, user, ticket_id, input };
    let Some(lock) = context.state.lock(&input.lock()) else {
        let fence_token = FenceToken(context.at.next_sequence);
        #[cfg(feature = "planted-bugs")]
        let fence_token = crate::domain::planted::fence_of_new_hold(fence_token);
        return new.held(fence_token, 1);
    };
    let is_own = lock.hold.owner == *user;
    if !input.reentrant && (is_own || lock.has_place(user)) {
        return Ok(new.contended(lock));
    }
    if is_own {
        return new.held(lock.hold.fence_token, lock.hold.depth() + 1);
    }
    if input.wait_seconds.get() == 0 {
        return Ok(new.contended(lock));
    }
    if !lock.has_place(user)
        && let Some(others) = closed_cycle(context.state, user, lock)
    {
        return Ok(new.deadlock_rejected(lock, others));
    }
    new.queued(lock)
}

/// A ticket in the making.
struct New<'a> {
    context: &'a Context<'a>,
    user: &'a UserName,
    ticket_id: TicketId,
    input: &'a TicketInput,
}

/// Fills in an event that begins a ticket.
macro_rules! begin {
    ($name:ident, $new:expr, { $($field:ident: $value:expr,)* }) => {
        Event::$name($name {
            ticket_id: $new.ticket_id,
            scope: $new.input.scope.clone(),
            lock_name: $new.input.lock_name.clone(),
            owner: $new.user.clone(),
            request_uuid: $new.input.request_uuid,
            lease_seconds: $new.input.lease_seconds,
            wait_seconds: $new.input.wait_seconds,
            note: $new.input.note.clone(),
            reentrant: $new.input.reentrant,
            $($field: $value,)*
        })
    };
}

impl New<'_> {
    fn held(&self, fence_token: FenceToken, depth: u32) -> Result<Event, Refusal> {
        self.require_room()?;
        let lease = self.input.lease_seconds.get();
        Ok(begin!(LockAcquired, self, {
            fence_token: fence_token,
            depth: depth,
            lease_expires_at: self.context.at.time.plus_seconds(lease),
        }))
    }

    fn queued(&self, lock: &Lock) -> Result<Event, Refusal> {
        self.require_room()?;
        let most = self.context.limits.places_per_lock;
        let position = lock.position_of(self.user);
        if position.is_none() && lock.places_len() >= most {
            return Err(Refusal::LimitReached { limit: "identities waiting for one lock", most });
        }
        let wait = self.input.wait_seconds.get();
        Ok(begin!(LockQueued, self, {
            queue_position: position.unwrap_or(lock.places_len() + 1),
            wait_expires_at: self.context.at.time.plus_seconds(wait),
            holder: holder(lock),
        }))
    }

    fn contended(&self, lock: &Lock) -> Event {
        begin!(LockContended, self, { holder: holder(lock), })
    }

    fn deadlock_rejected(&self, lock: &Lock, others: Vec<TicketId>) -> Event {
        let cycle = std::iter::once(self.ticket_id).chain(others).collect();
        begin!(LockDeadlockRejected, self, { cycle: cycle, holder: holder(lock), })
    }

    fn require_room(&self) -> Result<(), Refusal> {
        let most = self.context.limits.live_tickets_per_identity;
        if self.context.state.tickets_len(self.user) >= most {
            return Err(Refusal::LimitReached { limit: "live tickets of one identity", most });
        }
        let most = self.context.limits.live_tickets_per_scope;
        if self.context.state.tickets_len_in(&self.input.scope) >= most {
            return Err(Refusal::LimitReached { limit: "live tickets in one scope", most });
        }
        Ok(())
    }
}

fn holder(lock: &Lock) -> HolderThen {
    HolderThen { owner: lock.hold.owner.clone(), fence_token: lock.hold.fence_token }
}
