//! Extends the lease of a held ticket. The deadline only ever moves later.

use crate::domain::decide::{Answer, Context};
use crate::domain::event::{Event, LockHeartbeat};
use crate::domain::id::TicketId;
use crate::domain::refusal::Refusal;
use crate::domain::scope::LockKey;
use crate::domain::time::LeaseSeconds;

pub(in crate::domain) fn heartbeat(
    context: &Context<'_>,
    lock: &LockKey,
    ticket_id: TicketId,
    lease: Option<LeaseSeconds>,
) -> Result<(Vec<Event>, Answer), Refusal> {
    context.require_in_service()?;
    let ticket = context.own_ticket(lock, ticket_id)?;
    if !context.state.access().can_write(&ticket.owner, &lock.scope) {
        return Err(Refusal::Forbidden(
            "a heartbeat needs the role write in the scope: the lease can't be extended any more",
        ));
    }
    let deadline = ticket.lease_deadline();
    #[cfg(feature = "planted-bugs")]
    let deadline = deadline.or_else(|| crate::domain::planted::deadline_of_expired(ticket));
    let Some(deadline) = deadline else { return Err(Refusal::TicketNotHeld(ticket_id)) };
    let at = context.at;
    // Due deadlines are settled before any command is decided, so a held ticket has time left.
    #[cfg(not(feature = "planted-bugs"))]
    assert!(at.time < deadline, "ticket {ticket_id} is overdue, but held");
    let lease = lease.unwrap_or(ticket.input.lease_seconds);
    let event = Event::LockHeartbeat(LockHeartbeat {
        ticket_id,
        scope: lock.scope.clone(),
        lock_name: lock.lock_name.clone(),
        owner: ticket.owner.clone(),
        fence_token: ticket.fence_token.expect("a held ticket has a fence token"),
        depth: context.state.depth(ticket),
        lease_seconds: lease,
        lease_expires_at: deadline.max(at.time.plus_seconds(lease.get())),
    });
    Ok((vec![event], Answer::Ticket { ticket_id, is_replay: false }))
}
