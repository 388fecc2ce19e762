//! Why a command was not carried out. Nothing is appended for a refusal.

use super::id::{FenceToken, TicketId};

/// A refusal: the caller's business, never a fault of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The token is unknown, revoked or expired.
    Unauthenticated,
    /// The caller may see the object, but not do this to it. Says which rule stands against it.
    Forbidden(&'static str),
    /// It doesn't exist, or the caller may not know that it does. Says what was looked for.
    NotFound(&'static str),
    /// A value breaks a rule that only the state can judge.
    InvalidArgument {
        /// The field.
        field: &'static str,
        /// The rule, fit for "field RULE".
        rule: &'static str,
    },
    /// The request UUID was used before, with other input.
    RequestUuidReused,
    /// The ticket waits or has ended, so it has no lease to extend.
    TicketNotHeld(TicketId),
    /// The ticket ended by expiry, timeout, breaking or an answer: there is nothing to let go.
    TicketEnded(TicketId),
    /// The fence token named is not that of the current hold.
    StaleFence {
        /// The fence token of the current hold, if there is one.
        current: Option<FenceToken>,
    },
    /// It exists already. Says what.
    AlreadyExists(&'static str),
    /// One more would be too many.
    LimitReached {
        /// Which limit.
        limit: &'static str,
        /// How many there may be.
        most: u32,
    },
}
