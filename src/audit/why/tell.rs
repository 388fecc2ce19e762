//! A ticket's life in words.
//!
//! Whoever may not read the scope is an owner that lost its access: it is told what is about its
//! own tickets, and of others no name, no number and no event. What lies in other scopes, the
//! circle of a deadlock and the event that took an access away, is judged by itself.

mod end;
mod meanwhile;
mod summary;

use super::Asker;
use super::bearing::{Bearing, bearing};
use super::circle::Circle;
use super::life::{Hold, Life};
use super::queue::Waiter;
use super::words::{Writing, full, list, moment, number, quoted, seconds};
use crate::domain::event::{LockAcquired, LockContended, LockQueued, Record};
use crate::domain::name::{Actor, UserName};
use crate::domain::ticket::Ticket;
use crate::domain::time::Time;
use crate::wire::ticket::State;
use crate::wire::why::{Step, Why};
use summary::is_own_place;

/// How many of those who stand ahead are named, if not all of them are.
const NAMED: usize = 3;

impl Life {
    /// The ticket.
    pub fn ticket(&self) -> &Ticket {
        &self.found.ticket
    }

    /// The story, as far as the asker may read it.
    pub fn tell(&self, asker: Asker<'_>) -> Why {
        let ticket = &self.found.ticket;
        let circle = Circle::new(ticket, &self.cycle, asker);
        let is_full = (asker.reads)(&ticket.input.scope);
        let teller = Teller { life: self, asker, is_full, circle };
        let (summary, steps) = (teller.summary(), teller.steps());
        let is_circle = !teller.circle.edges.is_empty();
        Why {
            ticket_id: ticket.id,
            scope: ticket.input.scope.clone(),
            lock_name: ticket.input.lock_name.clone(),
            owner: ticket.owner.clone(),
            state: State::of(&ticket.phase),
            summary,
            steps,
            drawing: is_circle.then(|| teller.circle.drawing()),
            cycle: teller.circle.edges,
            sequence: self.found.head,
        }
    }
}

/// Tells one life to one asker.
struct Teller<'a> {
    life: &'a Life,
    asker: Asker<'a>,
    /// Whether the asker may read the scope.
    is_full: bool,
    circle: Circle,
}

impl Teller<'_> {
    fn ticket(&self) -> &Ticket {
        self.life.ticket()
    }

    fn owner(&self) -> &UserName {
        &self.ticket().owner
    }

    /// Whether the asker may know what an identity did at this lock.
    fn knows(&self, owner: &UserName) -> bool {
        self.is_full || self.asker.user == Some(owner)
    }

    /// A time, as short as it can be.
    fn at(&self, time: Time) -> String {
        moment(self.ticket().created_at, time)
    }

    fn steps(&self) -> Vec<Step> {
        let mut steps = vec![self.asked()];
        let mut meanwhile = self.waited();
        meanwhile.extend(self.promoted());
        meanwhile.extend(self.held());
        meanwhile.sort_by_key(|step| step.sequence);
        steps.extend(meanwhile);
        steps.extend(self.ended());
        steps.extend(self.now());
        steps
    }

    /// What was asked for, and what was met.
    fn asked(&self) -> Step {
        let asked = &self.life.asked;
        let input = &self.ticket().input;
        let mut writing = Writing::about(asked);
        let (proof, at) = (writing.show(asked.sequence), full(asked.time));
        let (owner, lock, scope) = (self.owner(), &input.lock_name, &input.scope);
        writing.say(&format!("{owner} asked for {lock} in {scope} at {at} {proof}"));
        let words = match bearing(&asked.event) {
            Bearing::Taken(e) => self.taken(&mut writing, e),
            Bearing::Queued(e) => self.queued(&mut writing, e),
            Bearing::Contended(e) => self.contended(&mut writing, e),
            Bearing::Rejected(_) => self.rejected(&mut writing),
            _ => String::new(),
        };
        writing.say(&words);
        if let Some(note) = &input.note {
            writing.say(&format!(" Its note: {}.", quoted(note)));
        }
        writing.done()
    }

    fn taken(&self, writing: &mut Writing, e: &LockAcquired) -> String {
        let lease = seconds(e.lease_seconds.get());
        let until = self.at(e.lease_expires_at);
        match &self.life.met {
            None => format!(
                ". The lock was free, so the ticket was held at once, under fence token {}, with a \
                 lease of {lease} until {until}.",
                e.fence_token
            ),
            Some(hold) => format!(
                ", while it held the lock itself, {}. So the ticket joined that hold, at depth {}, \
                 with a lease of {lease} until {until}.",
                self.under(writing, hold),
                e.depth
            ),
        }
    }

    fn queued(&self, writing: &mut Writing, e: &LockQueued) -> String {
        let owner = self.owner();
        let held = self.held_by(writing);
        let behind = match &self.life.ahead {
            Some(ahead) if self.is_full && !ahead.is_empty() => {
                format!(", behind {}", self.waiters(writing, ahead))
            }
            Some(_) | None => String::new(),
        };
        let place = match (self.life.own_place, e.queue_position) {
            (Some(own), place) => {
                let (proof, place) = (writing.show(own), number(place.into()));
                format!(
                    "{owner} had place {place} in the queue already {proof}{behind}; the ticket \
                     shared it"
                )
            }
            (None, 1) => format!("{owner} took the first place in the queue"),
            (None, place) => {
                format!("{owner} took place {} in the queue{behind}", number(place.into()))
            }
        };
        let (wait, until) = (seconds(e.wait_seconds.get()), self.at(e.wait_expires_at));
        format!(", while {held}. {place}, and would wait for up to {wait}, until {until}.")
    }

    fn contended(&self, writing: &mut Writing, e: &LockContended) -> String {
        let (owner, held) = (self.owner(), self.held_by(writing));
        let end = "So the ticket ended at once, as contended.";
        if e.holder.owner == *owner {
            let hold = self.life.met.as_ref().map(|hold| self.under(writing, hold));
            let under = hold.unwrap_or_default();
            return format!(
                ", and would not join a hold of its own. But it held the lock itself, {under}. \
                 {end}"
            );
        }
        if is_own_place(e) {
            let proof = self.life.own_place.map(|own| format!(" {}", writing.show(own)));
            let proof = proof.unwrap_or_default();
            return format!(
                ", and would not share a place of its own. But {held}, and {owner} stood in the \
                 queue already{proof}. {end}"
            );
        }
        format!(", and would not wait, while {held}. {end}")
    }

    fn rejected(&self, writing: &mut Writing) -> String {
        let held = self.held_by(writing);
        let circle = self.circle.words(writing);
        format!(
            ", while {held}. Its wait would have closed {circle}. The newest wait is the one that \
             is rejected, so the ticket ended at once; nothing else changed."
        )
    }

    /// Who held the lock when it was asked for.
    fn held_by(&self, writing: &mut Writing) -> String {
        match &self.life.met {
            Some(hold) if self.knows(&hold.owner) => {
                format!("{} held it {}", hold.owner, self.under(writing, hold))
            }
            Some(_) | None => "someone held it".to_owned(),
        }
    }

    fn under(&self, writing: &mut Writing, hold: &Hold) -> String {
        let (fence, since) = (hold.fence_token, self.at(hold.since));
        let proof = writing.show(fence.0);
        let note = hold.note.as_ref().map(|note| format!(", with the note {}", quoted(note)));
        let note = note.unwrap_or_default();
        format!("under fence token {fence}, since {since} {proof}{note}")
    }

    /// Those who wait, by name.
    fn waiters(&self, writing: &mut Writing, waiters: &[Waiter]) -> String {
        let named = if waiters.len() > NAMED + 1 { NAMED } else { waiters.len() };
        let mut words: Vec<String> = Vec::new();
        for (owner, at) in &waiters[..named] {
            words.push(format!("{owner} {}", writing.show(*at)));
        }
        if named < waiters.len() {
            let others = u64::try_from(waiters.len() - named).unwrap_or(u64::MAX);
            words.push(format!("{} others", number(others)));
        }
        list(&words)
    }

    /// Who did what an event says, where it may be told.
    fn actor(&self, record: &Record, is_shown: bool, or: &str) -> String {
        match &record.actor {
            Actor::User(user) if is_shown => user.to_string(),
            Actor::Ledger if is_shown => "the server".to_owned(),
            Actor::User(_) | Actor::Ledger => or.to_owned(),
        }
    }
}
