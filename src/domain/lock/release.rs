//! Ends tickets before their time: release and cancel by the owner, breaking by an administrator.

use super::promote::promote;
use crate::domain::access::Role;
use crate::domain::decide::{Answer, Context};
use crate::domain::event::{Event, LockBroken, LockReleased, LockWaitCancelled};
use crate::domain::id::{FenceToken, TicketId};
use crate::domain::refusal::Refusal;
use crate::domain::scope::LockKey;
use crate::domain::text::ShortText;
use crate::domain::ticket::{End, Phase, Ticket};

/// Lets go of a held ticket, or gives up a waiting one. It needs no access to the scope: the
/// owner of a ticket can always let go.
pub(in crate::domain) fn release(
    context: &Context<'_>,
    lock: &LockKey,
    ticket_id: TicketId,
) -> Result<(Vec<Event>, Answer), Refusal> {
    let ticket = context.own_ticket(lock, ticket_id)?;
    let events = match &ticket.phase {
        Phase::Held { .. } => released(context, lock, ticket),
        Phase::Waiting { .. } => vec![Event::LockWaitCancelled(LockWaitCancelled {
            ticket_id,
            scope: lock.scope.clone(),
            lock_name: lock.lock_name.clone(),
            owner: ticket.owner.clone(),
            reason: None,
        })],
        Phase::Ended { end: End::Released | End::Cancelled, .. } => Vec::new(),
        // The caller must learn that it lost the lock before it let go.
        Phase::Ended { end: End::Expired | End::Broken | End::TimedOut, .. }
        | Phase::Ended { end: End::Contended | End::DeadlockRejected, .. } => {
            return Err(Refusal::TicketEnded(ticket_id));
        }
    };
    Ok((events, Answer::Ticket { ticket_id, is_replay: false }))
}

fn released(context: &Context<'_>, key: &LockKey, ticket: &Ticket) -> Vec<Event> {
    let lock = context.state.lock(key).expect("a held ticket's lock is held");
    let depth = lock.hold.depth() - 1;
    let mut events = vec![Event::LockReleased(LockReleased {
        ticket_id: ticket.id,
        scope: key.scope.clone(),
        lock_name: key.lock_name.clone(),
        owner: ticket.owner.clone(),
        fence_token: lock.hold.fence_token,
        depth,
    })];
    if depth == 0 {
        let first = context.at.next_sequence.next();
        events.extend(promote(context.state, lock, context.at.time, first));
    }
    events
}

/// Ends the current hold, which the caller names by its fence token, so that no newer hold is
/// broken by mistake.
pub(in crate::domain) fn break_lock(
    context: &Context<'_>,
    key: &LockKey,
    fence_token: FenceToken,
    reason: &ShortText,
) -> Result<(Vec<Event>, Answer), Refusal> {
    context.require_role(&key.scope, Role::Admin)?;
    let lock = context.state.lock(key);
    let current = lock.map(|lock| lock.hold.fence_token);
    let Some(lock) = lock.filter(|_| current == Some(fence_token)) else {
        return Err(Refusal::StaleFence { current });
    };
    let mut events: Vec<Event> = (0..lock.hold.depth())
        .rev()
        .zip(in_order_of_making(context, &lock.hold.tickets))
        .map(|(depth, ticket_id)| {
            Event::LockBroken(LockBroken {
                ticket_id,
                scope: key.scope.clone(),
                lock_name: key.lock_name.clone(),
                owner: lock.hold.owner.clone(),
                fence_token,
                depth,
                reason: reason.clone(),
            })
        })
        .collect();
    let first = context.at.next_sequence.plus(u64::from(lock.hold.depth()));
    events.extend(promote(context.state, lock, context.at.time, first));
    Ok((events, Answer::Lock(key.clone())))
}

/// Held tickets by the events that made them. They joined in this order too, since all waiting
/// tickets of an identity are promoted together; sorting says what is meant.
fn in_order_of_making(context: &Context<'_>, tickets: &[TicketId]) -> Vec<TicketId> {
    let mut ordered = tickets.to_vec();
    ordered.sort_by_key(|id| context.state.ticket(*id).map(|ticket| ticket.made_at));
    ordered
}
