//! What happened to locks, for who may read their scope.

use super::{refused, require_read, stopped};
use crate::audit::timeline::{Range, TICKETS_MAX, Timeline, Unread};
use crate::domain::id::TokenId;
use crate::domain::name::LockName;
use crate::domain::refusal::Refusal;
use crate::domain::scope::Scope;
use crate::service::{Service, ServiceError};

impl Service {
    /// What happened to a lock, or to all locks of a scope if none is named.
    ///
    /// # Errors
    /// [`ServiceError`]
    pub fn timeline(
        &self,
        caller: TokenId,
        scope: &Scope,
        lock_name: Option<&LockName>,
        range: Range,
    ) -> Result<Timeline, ServiceError> {
        let head = self.look(caller, |state, user| {
            require_read(state, user, scope)?;
            Ok(state.head())
        })?;
        let until = (head, self.now());
        let read = Timeline::read(self.ledger(), scope, lock_name, range, until, TICKETS_MAX);
        let invalid = |field, rule| refused(Refusal::InvalidArgument { field, rule }, head);
        read.map_err(|unread| match unread {
            Unread::From => invalid("from", Range::FROM_RULE),
            Unread::To => invalid("to", Range::TO_RULE),
            Unread::Ledger(error) => stopped(error),
        })
    }
}
