//! The story in one sentence.

use super::super::bearing::{Bearing, Ended, Gone, bearing};
use super::super::words::{between, number};
use super::Teller;
use crate::domain::event::LockContended;
use crate::domain::id::FenceToken;
use crate::domain::name::UserName;
use crate::domain::ticket::Phase;
use crate::domain::time::Time;

impl Teller<'_> {
    pub(super) fn summary(&self) -> String {
        let ticket = self.ticket();
        match (ticket.held_at, ticket.fence_token) {
            (Some(held_at), Some(fence)) => self.of_a_hold(held_at, fence),
            _ => self.of_no_hold(),
        }
    }

    /// Of a ticket that was held.
    fn of_a_hold(&self, held_at: Time, fence: FenceToken) -> String {
        let (ticket, owner) = (self.ticket(), self.owner());
        let lock = &ticket.input.lock_name;
        let waited = between(ticket.created_at, held_at);
        let (begin, it) = match &self.life.wait {
            Some(_) => (format!("{owner} waited {waited} for {lock}"), "it"),
            None => (owner.to_string(), lock.as_str()),
        };
        let Phase::Ended { at, .. } = &ticket.phase else {
            let and = if self.life.wait.is_some() { " and" } else { "" };
            return format!("{begin}{and} holds {it}, under fence token {fence}.");
        };
        let end = self.life.end.as_ref().map(|end| bearing(&end.record.event));
        let how = match end {
            Some(Bearing::Over(over)) => match over.how {
                Ended::Released => "and released it",
                Ended::Expired(_) => "and lost it when its lease ran out",
                Ended::Broken(_) => "until the hold was broken",
            },
            _ => "",
        };
        let comma = if self.life.wait.is_some() { "," } else { "" };
        let held = between(held_at, *at);
        format!("{begin}{comma} held {it} for {held} under fence token {fence}, {how}.")
    }

    /// Of a ticket that never was.
    fn of_no_hold(&self) -> String {
        let (ticket, owner) = (self.ticket(), self.owner());
        let lock = &ticket.input.lock_name;
        let at = match &ticket.phase {
            Phase::Ended { at, .. } => *at,
            Phase::Held { .. } | Phase::Waiting { .. } => {
                let place = number(self.life.found.queue_position.unwrap_or_default().into());
                return format!("{owner} waits for {lock}, at place {place} in the queue.");
            }
        };
        let waited = format!("{owner} waited {} for {lock}", between(ticket.created_at, at));
        match self.life.end.as_ref().map(|end| bearing(&end.record.event)) {
            Some(Bearing::Left(left)) => match left.how {
                Gone::GaveUp => format!("{waited}, and gave up."),
                Gone::TimedOut(_) => format!("{waited}, in vain."),
                Gone::LostAccess => {
                    let is_disabled = self.is_by_disabling();
                    let lost = if is_disabled { "was disabled" } else { "lost its access" };
                    format!("{waited}, until it {lost}.")
                }
            },
            Some(Bearing::Rejected(_)) => format!(
                "{owner} didn't get {lock}: its wait would have closed a circle of {}.",
                self.circle.edges.len()
            ),
            Some(Bearing::Contended(e)) if e.holder.owner == *owner => {
                format!("{owner} held {lock} already, and the ticket would not join that hold.")
            }
            Some(Bearing::Contended(e)) if is_own_place(e) => {
                format!("{owner} waited for {lock} already, and the ticket would not share that.")
            }
            _ => {
                let holder = self.life.met.as_ref().map(|hold| &hold.owner);
                let holder = holder.filter(|holder| self.knows(holder));
                let holder = holder.map_or("someone", UserName::as_str);
                format!("{owner} didn't get {lock}: {holder} held it.")
            }
        }
    }
}

/// Whether a ticket contended since its identity had a place in the queue: else, as it would wait,
/// it would have waited.
pub(super) fn is_own_place(e: &LockContended) -> bool {
    !e.reentrant && e.wait_seconds.get() > 0 && e.holder.owner != e.owner
}
