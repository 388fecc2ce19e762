//! Problems: one table from code to HTTP status, exit code and title, and the RFC 9457 body.
//!
//! Every surface takes its numbers from [`Code`], so they can't disagree. A code is stable; its
//! detail is for people, and may change.
//! `type` is `urn:pearing:problem:CODE`: it names the problem without promising a page.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ticket::{Answer, CycleEdge, Holder, Ticket, present};
use crate::domain::refusal::Refusal;

/// The exit code of success: for an acquire, the ticket is HELD.
pub const EXIT_DONE: u8 = 0;
/// The exit code of any error that has no code of its own.
pub const EXIT_OTHER: u8 = 1;
/// The exit code of a wrong command line. Same as that of an invalid argument.
pub const EXIT_USAGE: u8 = 2;
/// The exit code when no answer came: retry with the same request UUID.
pub const EXIT_UNREACHABLE: u8 = 8;
/// The exit code of an acquire that waits.
pub const EXIT_WAITING: u8 = 10;

macro_rules! codes {
    ($(
        $(#[$doc:meta])*
        $variant:ident = $text:literal, $status:literal, $exit:literal, $title:literal;
    )*) => {
        /// What went wrong, as a stable word.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
        #[schemars(rename = "ProblemCode")]
        pub enum Code {
            $($(#[$doc])* #[serde(rename = $text)] $variant,)*
        }

        impl Code {
            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The code on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// The HTTP status.
            pub const fn status(self) -> u16 {
                match self { $(Self::$variant => $status,)* }
            }

            /// The exit code of the command line.
            pub const fn exit_code(self) -> u8 {
                match self { $(Self::$variant => $exit,)* }
            }

            /// The problem in a few words, the same each time.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)* }
            }
        }
    };
}

codes! {
    /// No token, or one that is unknown, revoked or expired.
    Unauthenticated = "unauthenticated", 401, 7, "Not authenticated";
    /// The caller may see it, but not do this to it.
    Forbidden = "forbidden", 403, 7, "Not allowed";
    /// It doesn't exist, or the caller may not know that it does.
    NotFound = "not-found", 404, 6, "Not found";
    /// The path exists, but not with this method.
    MethodNotAllowed = "method-not-allowed", 405, 2, "Method not allowed";
    /// No JSON, or no UTF-8.
    Malformed = "malformed", 400, 2, "Malformed request";
    /// The body is too long.
    TooLarge = "too-large", 413, 2, "Request too large";
    /// A value breaks a rule; `field` and `rule` say which.
    InvalidArgument = "invalid-argument", 422, 2, "Invalid argument";
    /// The request UUID was used before, with other input.
    RequestUuidReused = "request-uuid-reused", 422, 2, "Request UUID used before";
    /// Another identity has the lock, or one's own did and re-entry was not wanted.
    LockContended = "lock-contended", 409, 3, "Lock is taken";
    /// Waiting would have closed a cycle.
    DeadlockRejected = "deadlock-rejected", 409, 4, "Waiting would deadlock";
    /// The wait timed out or was cancelled.
    WaitEnded = "wait-ended", 409, 9, "Wait has ended";
    /// The ticket was released, has expired or was broken.
    TicketEnded = "ticket-ended", 409, 5, "Ticket has ended";
    /// The ticket has no lease to extend.
    TicketNotHeld = "ticket-not-held", 409, 5, "Ticket is not held";
    /// The fence token is not that of the current hold.
    StaleFence = "stale-fence", 409, 5, "Fence token is not current";
    /// It exists already.
    AlreadyExists = "already-exists", 409, 1, "Already exists";
    /// One more would be too many.
    LimitReached = "limit-reached", 429, 8, "Limit reached";
    /// Too much at once, or the server is about to stop.
    Busy = "busy", 503, 8, "Server is busy";
    /// The disk is nearly full: nothing new is taken on.
    DiskFull = "disk-full", 507, 8, "Disk is nearly full";
}

impl Code {
    /// After how many seconds it is worth asking again, for problems that pass by themselves.
    /// A contended lock says it by its own hold.
    pub const fn retry_after_seconds(self) -> Option<u64> {
        match self {
            Self::Busy => Some(1),
            Self::LimitReached => Some(5),
            Self::DiskFull => Some(30),
            Self::Unauthenticated
            | Self::Forbidden
            | Self::NotFound
            | Self::MethodNotAllowed
            | Self::Malformed
            | Self::TooLarge
            | Self::InvalidArgument
            | Self::RequestUuidReused
            | Self::LockContended
            | Self::DeadlockRejected
            | Self::WaitEnded
            | Self::TicketEnded
            | Self::TicketNotHeld
            | Self::StaleFence
            | Self::AlreadyExists => None,
        }
    }

    /// The code of a refusal.
    pub const fn of(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::Unauthenticated => Self::Unauthenticated,
            Refusal::Forbidden(_) => Self::Forbidden,
            Refusal::NotFound(_) => Self::NotFound,
            Refusal::InvalidArgument { .. } => Self::InvalidArgument,
            Refusal::RequestUuidReused => Self::RequestUuidReused,
            Refusal::TicketNotHeld(_) => Self::TicketNotHeld,
            Refusal::TicketEnded(_) => Self::TicketEnded,
            Refusal::StaleFence { .. } => Self::StaleFence,
            Refusal::AlreadyExists(_) => Self::AlreadyExists,
            Refusal::LimitReached { .. } => Self::LimitReached,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The body of an answer that is no success: `application/problem+json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// `urn:pearing:problem:CODE`
    #[serde(rename = "type")]
    #[schemars(extend("pattern" = "^urn:pearing:problem:[a-z-]+$"))]
    pub type_uri: String,
    /// The problem in a few words, the same each time.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What happened this time, for people.
    pub detail: String,
    /// The stable word.
    pub code: Code,
    /// `urn:pearing:request:ID`: the request, as the server's log has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub instance: Option<String>,
    /// Which field broke a rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub field: Option<String>,
    /// Which rule it broke, fit for "field RULE".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub rule: Option<String>,
    /// The ticket as it is now, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Ticket")]
    pub ticket: Option<Ticket>,
    /// Beside a ticket: how long the server had the request, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub answered_after_ms: Option<u64>,
    /// Of a contended ticket: who holds the lock now; null if it is free, or if the asker may not
    /// read the scope.
    // `Some(None)` is null.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub holder: Option<Option<Holder>>,
    /// When it is worth asking again; also the header `Retry-After`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub retry_after_seconds: Option<u64>,
    /// Of a rejected deadlock: the cycle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<CycleEdge>")]
    pub cycle: Option<Vec<CycleEdge>>,
}

impl Problem {
    /// The media type of a problem.
    pub const MEDIA_TYPE: &str = "application/problem+json";

    /// A problem without particulars.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            type_uri: format!("urn:pearing:problem:{code}"),
            title: code.title().to_owned(),
            status: code.status(),
            detail: detail.into(),
            code,
            instance: None,
            field: None,
            rule: None,
            ticket: None,
            answered_after_ms: None,
            holder: None,
            retry_after_seconds: code.retry_after_seconds(),
            cycle: None,
        }
    }

    /// A value that breaks a rule. `rule` is fit for "field RULE".
    pub fn invalid(field: &str, rule: &str) -> Self {
        Self {
            field: Some(field.to_owned()),
            rule: Some(rule.to_owned()),
            ..Self::new(Code::InvalidArgument, format!("{field} {rule}"))
        }
    }

    /// A refusal. Its ticket, if it has one, is added by [`with_ticket`](Self::with_ticket).
    pub fn refused(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::InvalidArgument { field, rule } => Self::invalid(field, rule),
            Refusal::Unauthenticated
            | Refusal::Forbidden(_)
            | Refusal::NotFound(_)
            | Refusal::RequestUuidReused
            | Refusal::TicketNotHeld(_)
            | Refusal::TicketEnded(_)
            | Refusal::StaleFence { .. }
            | Refusal::AlreadyExists(_)
            | Refusal::LimitReached { .. } => Self::new(Code::of(refusal), detail(refusal)),
        }
    }

    /// Adds the ticket that the refusal is about, as it is now.
    #[must_use]
    pub fn with_ticket(self, ticket: Ticket, answered_after_ms: u64) -> Self {
        Self { ticket: Some(ticket), answered_after_ms: Some(answered_after_ms), ..self }
    }

    /// The answer to an acquire whose ticket has ended; `None` if the ticket is alive.
    pub fn of_acquire(answer: &Answer) -> Option<Self> {
        let code = answer.ticket.state.code()?;
        let detail = ended_detail(answer, code);
        Some(Self {
            ticket: Some(answer.ticket.clone()),
            answered_after_ms: Some(answer.answered_after_ms),
            holder: answer.holder.clone(),
            retry_after_seconds: answer.retry_after_seconds,
            cycle: answer.cycle.clone(),
            ..Self::new(code, detail)
        })
    }
}

/// Why an acquire's ticket is over, for people.
fn ended_detail(answer: &Answer, code: Code) -> String {
    let ticket = &answer.ticket;
    let state = ticket.state.as_str().replace('_', " ");
    let reason = ticket.end_reason.as_ref().map(|r| format!(" ({r})")).unwrap_or_default();
    match (code, answer.holder.iter().flatten().next()) {
        (Code::LockContended, Some(holder)) if holder.owner == ticket.owner => format!(
            "{} is already held or awaited by {}, and re-entry was not wanted",
            ticket.lock_name, ticket.owner
        ),
        (Code::LockContended, Some(holder)) => {
            format!("{} is held by {}", ticket.lock_name, holder.owner)
        }
        (Code::LockContended, None) => {
            format!("{} was taken; the ticket ended at once", ticket.lock_name)
        }
        (Code::DeadlockRejected, _) => format!(
            "waiting for {} would have closed a cycle of identities that wait for each other",
            ticket.lock_name
        ),
        (Code::WaitEnded, _) => {
            format!("the wait for {} has ended: {state}{reason}", ticket.lock_name)
        }
        _ => format!("the ticket for {} has ended: {state}{reason}", ticket.lock_name),
    }
}

/// A refusal in a sentence, for people.
fn detail(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Unauthenticated => "the token is missing, unknown, revoked or expired".to_owned(),
        Refusal::Forbidden(rule) => (*rule).to_owned(),
        Refusal::NotFound(what) => format!("no such {what}"),
        Refusal::InvalidArgument { field, rule } => format!("{field} {rule}"),
        Refusal::RequestUuidReused => {
            "the request UUID was used before with other input: take a new one for a new request"
                .to_owned()
        }
        Refusal::TicketNotHeld(ticket) => {
            format!("ticket {ticket} is not held, so it has no lease to extend")
        }
        Refusal::TicketEnded(ticket) => {
            format!("ticket {ticket} ended before it was released: the lock may be another's")
        }
        Refusal::StaleFence { current: Some(current) } => {
            format!(
                "the hold that is named is not the current one, or not yours: \
                 the current fence token is {current}"
            )
        }
        Refusal::StaleFence { current: None } => {
            "there is no such hold: the lock is free".to_owned()
        }
        Refusal::AlreadyExists(what) => format!("the {what} exists already"),
        Refusal::LimitReached { limit, most } => format!("at most {most} {limit}"),
    }
}

#[cfg(test)]
#[path = "problem_tests.rs"]
mod tests;
