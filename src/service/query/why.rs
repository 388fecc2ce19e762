//! The causal story of a ticket, for whoever may read the ticket.

use super::{require_ticket, stopped};
use crate::audit::why::{self, Asker, Found};
use crate::domain::event::HolderThen;
use crate::domain::id::{TicketId, TokenId};
use crate::domain::scope::LockKey;
use crate::feed::filter::may_see;
use crate::service::{Service, ServiceError};
use crate::wire::why::Why;

impl Service {
    /// Why a ticket went as it did, as far as the caller may read it. May take long: not for a
    /// thread that serves others.
    ///
    /// # Errors
    /// [`ServiceError`]
    pub fn why(
        &self,
        caller: TokenId,
        lock: &LockKey,
        ticket_id: TicketId,
    ) -> Result<Why, ServiceError> {
        let answer = self.ticket(caller, lock, ticket_id)?;
        let found = Found {
            ticket: answer.ticket.ticket,
            depth: answer.ticket.depth,
            queue_position: answer.ticket.queue_position,
            holder: answer
                .holder
                .map(|holder| HolderThen { owner: holder.owner, fence_token: holder.fence_token }),
            head: answer.sequence,
        };
        let live = |id| self.read(|state| state.ticket(id).cloned());
        let life = why::read(self.ledger(), &live, found).map_err(stopped)?;
        // Access is judged when all has been read, since that may take a while.
        self.look(caller, |state, user| {
            require_ticket(state, user, lock, Some(life.ticket()))?;
            let access = state.access();
            let is_in_service = access.is_in_service(user);
            Ok(life.tell(Asker {
                user: Some(user),
                reads: &|scope| access.can_read(user, scope),
                sees: &|event| is_in_service && may_see(access, user, event),
            }))
        })
    }
}
