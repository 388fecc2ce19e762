//! What the core says, in the naive model's words, so that the two can be compared.
//!
//! Every match is exhaustive, so that a new event, state or refusal can't go unchecked.

use pearing::domain::State;
use pearing::domain::event::{Event, HolderThen};
use pearing::domain::id::{FenceToken, TicketId};
use pearing::domain::name::UserName;
use pearing::domain::refusal::Refusal;
use pearing::domain::text::ShortText;
use pearing::domain::ticket::{End, Phase, Ticket};

use super::naive::{
    self, AccessEvent, ActivityEvent, Ending, Kind, LockEvent, Refused, Stands, View,
};
use super::notes;

/// An event as the model would tell it; `None` for the one that opens a ledger.
pub(crate) fn event(event: &Event) -> Option<naive::Event> {
    let access = match event {
        Event::LedgerOpened(_) => return None,
        Event::LedgerRestored(e) => {
            let (last_sequence, reason) = (e.last_sequence.0, text(&e.reason));
            return Some(naive::Event::Restored { last_sequence, reason });
        }
        Event::LedgerRecovered(e) => {
            return Some(naive::Event::Recovered { grace_seconds: e.grace_seconds });
        }
        Event::UserCreated(e) => {
            let (user, is_admin, person) = (e.user.clone(), e.admin, e.person.clone());
            AccessEvent::UserCreated { user, is_admin, person }
        }
        Event::UserDisabled(e) => AccessEvent::UserDisabled { user: e.user.clone() },
        Event::UserEnabled(e) => AccessEvent::UserEnabled { user: e.user.clone() },
        Event::TokenIssued(e) => AccessEvent::TokenIssued {
            token_id: e.token_id,
            user: e.user.clone(),
            expires_at: e.expires_at,
        },
        Event::TokenRevoked(e) => {
            AccessEvent::TokenRevoked { token_id: e.token_id, user: e.user.clone() }
        }
        Event::TeamCreated(e) => AccessEvent::TeamCreated { team: e.team.clone() },
        Event::TeamMemberAdded(e) => AccessEvent::TeamMemberAdded {
            team: e.team.clone(),
            user: e.user.clone(),
            role: e.role,
        },
        Event::TeamMemberRemoved(e) => {
            AccessEvent::TeamMemberRemoved { team: e.team.clone(), user: e.user.clone() }
        }
        Event::RepoCreated(e) => AccessEvent::RepoCreated { repo: e.repo.clone() },
        Event::AccessGranted(e) => AccessEvent::AccessGranted {
            scope: e.scope.clone(),
            user: e.user.clone(),
            role: e.role,
        },
        Event::AccessRevoked(e) => {
            AccessEvent::AccessRevoked { scope: e.scope.clone(), user: e.user.clone() }
        }
        Event::ActivityUpdated(e) => {
            let (user, text) = (e.user.clone(), e.activity.as_str().to_owned());
            let request_uuid = e.request_uuid;
            return Some(naive::Event::Activity(ActivityEvent::Updated {
                user,
                text,
                request_uuid,
            }));
        }
        Event::ActivityCleared(e) => {
            return Some(naive::Event::Activity(ActivityEvent::Cleared { user: e.user.clone() }));
        }
        Event::ThreadCreated(_)
        | Event::ThreadReplied(_)
        | Event::ThreadClosed(_)
        | Event::ThreadReopened(_) => {
            return Some(naive::Event::Thread(Box::new(notes::thread_event(event))));
        }
        Event::LockAcquired(_)
        | Event::LockQueued(_)
        | Event::LockContended(_)
        | Event::LockDeadlockRejected(_)
        | Event::LockHeartbeat(_)
        | Event::LockPromoted(_)
        | Event::LockReleased(_)
        | Event::LockExpired(_)
        | Event::LockBroken(_)
        | Event::LockWaitCancelled(_)
        | Event::LockWaitTimedOut(_) => {
            return Some(naive::Event::Lock(Box::new(lock_event(event))));
        }
    };
    Some(naive::Event::Access(access))
}

/// A `lock.*` event; the cycle of a rejected one is checked apart, since several may be right.
fn lock_event(event: &Event) -> LockEvent {
    /// What all of them have, and then what this one has.
    macro_rules! of {
        ($data:ident, $kind:ident, { $($field:ident: $value:expr),* $(,)? }) => {
            LockEvent { $($field: $value,)* ..plain(event, Kind::$kind, $data.owner.clone()) }
        };
    }
    match event {
        Event::LockAcquired(e) => of!(e, Acquired, {
            input: Some(e.input()), fence: Some(fence(e.fence_token)), depth: Some(e.depth),
            until: Some(e.lease_expires_at),
        }),
        Event::LockQueued(e) => of!(e, Queued, {
            input: Some(e.input()), position: Some(e.queue_position),
            until: Some(e.wait_expires_at), holder: Some(holder(&e.holder)),
        }),
        Event::LockContended(e) => of!(e, Contended, {
            input: Some(e.input()), holder: Some(holder(&e.holder)),
        }),
        Event::LockDeadlockRejected(e) => of!(e, DeadlockRejected, {
            input: Some(e.input()), holder: Some(holder(&e.holder)),
        }),
        Event::LockHeartbeat(e) => of!(e, Heartbeat, {
            fence: Some(fence(e.fence_token)), depth: Some(e.depth),
            lease_seconds: Some(e.lease_seconds.get()), until: Some(e.lease_expires_at),
        }),
        Event::LockPromoted(e) => of!(e, Promoted, {
            fence: Some(fence(e.fence_token)), depth: Some(e.depth),
            until: Some(e.lease_expires_at),
        }),
        Event::LockReleased(e) => of!(e, Released, {
            fence: Some(fence(e.fence_token)), depth: Some(e.depth),
        }),
        Event::LockExpired(e) => of!(e, Expired, {
            fence: Some(fence(e.fence_token)), depth: Some(e.depth),
            until: Some(e.lease_expires_at),
        }),
        Event::LockBroken(e) => of!(e, Broken, {
            fence: Some(fence(e.fence_token)), depth: Some(e.depth), reason: Some(text(&e.reason)),
        }),
        Event::LockWaitCancelled(e) => of!(e, WaitCancelled, {
            reason: e.reason.as_ref().map(text),
        }),
        Event::LockWaitTimedOut(e) => of!(e, WaitTimedOut, { until: Some(e.wait_expires_at) }),
        Event::LedgerOpened(_)
        | Event::LedgerRecovered(_)
        | Event::LedgerRestored(_)
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
        | Event::ThreadReopened(_) => unreachable!("no lock event: {event:?}"),
    }
}

fn plain(event: &Event, kind: Kind, owner: UserName) -> LockEvent {
    let (lock, ticket_id) = event.lock_and_ticket().expect("a lock event has a lock");
    LockEvent {
        kind,
        ticket_id,
        lock,
        owner,
        input: None,
        fence: None,
        depth: None,
        until: None,
        position: None,
        holder: None,
        lease_seconds: None,
        reason: None,
    }
}

fn fence(fence_token: FenceToken) -> u64 {
    fence_token.0.0
}

fn holder(holder: &HolderThen) -> (UserName, u64) {
    (holder.owner.clone(), fence(holder.fence_token))
}

fn text(text: &ShortText) -> String {
    text.as_str().to_owned()
}

/// A ticket of the core, as its owner would see it.
pub(crate) fn view(state: &State, ticket: &Ticket) -> View {
    let stands = match &ticket.phase {
        Phase::Held { lease_expires_at, is_grace_due } => {
            Stands::Held { until: *lease_expires_at, is_grace_due: *is_grace_due }
        }
        Phase::Waiting { wait_expires_at } => Stands::Waiting { until: *wait_expires_at },
        Phase::Ended { end, at, reason, deadline, cycle: _ } => Stands::Ended {
            ending: ending(*end),
            at: *at,
            reason: reason.as_ref().map(text),
            deadline: *deadline,
        },
    };
    let is_live = ticket.is_held() || ticket.is_waiting();
    View {
        owner: ticket.owner.clone(),
        input: ticket.input.clone(),
        fence: ticket.fence_token.map(fence),
        stands,
        depth: if ticket.is_held() { state.depth(ticket) } else { 0 },
        position: if is_live { state.queue_position(ticket) } else { None },
    }
}

fn ending(end: End) -> Ending {
    match end {
        End::Released => Ending::Released,
        End::Expired => Ending::Expired,
        End::Broken => Ending::Broken,
        End::Cancelled => Ending::Cancelled,
        End::TimedOut => Ending::TimedOut,
        End::Contended => Ending::Contended,
        End::DeadlockRejected => Ending::DeadlockRejected,
    }
}

/// A refusal's kind.
pub(crate) fn refused(refusal: &Refusal) -> Refused {
    match refusal {
        Refusal::Unauthenticated => Refused::Unauthenticated,
        Refusal::Forbidden(_) => Refused::Forbidden,
        Refusal::NotFound(_) => Refused::NotFound,
        Refusal::InvalidArgument { .. } => Refused::InvalidArgument,
        Refusal::RequestUuidReused => Refused::RequestUuidReused,
        Refusal::TicketNotHeld(_) => Refused::TicketNotHeld,
        Refusal::TicketEnded(_) => Refused::TicketEnded,
        Refusal::StaleFence { .. } => Refused::StaleFence,
        Refusal::AlreadyExists(_) => Refused::AlreadyExists,
        Refusal::LimitReached { .. } => Refused::LimitReached,
    }
}

/// The ticket that a refusal shows, which must be the one that was named.
pub(crate) fn shown_ticket(refusal: &Refusal) -> Option<TicketId> {
    match refusal {
        Refusal::TicketNotHeld(ticket_id) | Refusal::TicketEnded(ticket_id) => Some(*ticket_id),
        Refusal::Unauthenticated
        | Refusal::Forbidden(_)
        | Refusal::NotFound(_)
        | Refusal::InvalidArgument { .. }
        | Refusal::RequestUuidReused
        | Refusal::StaleFence { .. }
        | Refusal::AlreadyExists(_)
        | Refusal::LimitReached { .. } => None,
    }
}
