//! How the ticket ended, and where it stands if it didn't.

use super::super::bearing::{Access, Bearing, Ended, Gone, Over, bearing};
use super::super::life::Ending;
use super::super::words::{Writing, between, number, quoted};
use super::Teller;
use crate::domain::event::Record;
use crate::domain::name::UserName;
use crate::domain::ticket::Phase;
use crate::domain::time::Time;
use crate::wire::why::Step;

impl Teller<'_> {
    /// Its end; `None` if it hasn't ended, or ended where it began.
    pub(super) fn ended(&self) -> Option<Step> {
        let end = self.life.end.as_ref()?;
        let mut writing = Writing::about(&end.record);
        let words = match bearing(&end.record.event) {
            Bearing::Over(over) => self.let_go(&mut writing, end, &over),
            Bearing::Left(left) => match left.how {
                Gone::GaveUp => {
                    let (at, proof) = self.when(&mut writing, &end.record);
                    let waited = self.waited_until(end.record.time);
                    let then = self.then(&mut writing);
                    format!("{} gave up at {at} {proof}, after {waited}.{then}", self.owner())
                }
                Gone::TimedOut(deadline) => self.timed_out(&mut writing, end, deadline),
                Gone::LostAccess => self.cancelled(&mut writing, end),
            },
            _ => return None,
        };
        writing.say(&words);
        Some(writing.done())
    }

    /// Whether its wait was cancelled since its user, or its user's person, was disabled.
    pub(super) fn is_by_disabling(&self) -> bool {
        match &self.ticket().phase {
            Phase::Ended { reason: Some(reason), .. } => reason.to_string() == "user-disabled",
            Phase::Held { .. } | Phase::Waiting { .. } | Phase::Ended { .. } => false,
        }
    }

    fn when(&self, writing: &mut Writing, record: &Record) -> (String, String) {
        (self.at(record.time), writing.show(record.sequence))
    }

    fn waited_until(&self, time: Time) -> String {
        between(self.ticket().created_at, time)
    }

    /// The end of a held ticket.
    fn let_go(&self, writing: &mut Writing, end: &Ending, over: &Over<'_>) -> String {
        let owner = self.owner();
        let held = between(self.ticket().held_at.unwrap_or_default(), end.record.time);
        let words = match over.how {
            Ended::Released => {
                let (at, proof) = self.when(writing, &end.record);
                format!("{owner} released it at {at} {proof}, after holding it for {held}.")
            }
            Ended::Expired(deadline) => self.expired(writing, end, deadline),
            Ended::Broken(reason) => {
                let (at, proof) = self.when(writing, &end.record);
                let actor = self.actor(&end.record, self.is_full, "An administrator");
                let reason = quoted(reason);
                format!("{actor} broke the hold at {at} {proof}, after {held}, for {reason}.")
            }
        };
        let is_broken = matches!(over.how, Ended::Broken(_));
        let after = match (over.depth, &end.next) {
            (depth, _) if depth > 0 && !is_broken => {
                format!(" The hold went on, at depth {depth}.")
            }
            _ if !self.is_full => String::new(),
            (_, Some(next)) => match bearing(&next.event) {
                Bearing::Promoted(e) => {
                    let proof = writing.show(next.sequence);
                    format!(
                        " {} was next, and got it under fence token {} {proof}.",
                        e.owner, e.fence_token
                    )
                }
                _ => String::new(),
            },
            (_, None) => " Nobody waited, so the lock was free.".to_owned(),
        };
        words + &after
    }

    fn expired(&self, writing: &mut Writing, end: &Ending, deadline: Time) -> String {
        let Some(held) = &self.life.held else { return String::new() };
        let until = self.at(deadline);
        let lifted = held.lifted.filter(|(_, lifted)| *lifted == deadline);
        let cause = match (lifted, &held.last) {
            (Some((grace, _)), _) => {
                let proof = writing.show(grace);
                format!(
                    "The grace that the start gave {proof} was over at {until}, and no heartbeat \
                     had come."
                )
            }
            (None, Some((last, _))) => {
                let (proof, after) = (writing.show(last.sequence), between(last.time, deadline));
                format!("The lease ran out at {until}, {after} after the last heartbeat {proof}.")
            }
            (None, None) => {
                let since = &held.since;
                let (proof, after) = (writing.show(since.sequence), between(since.time, deadline));
                format!(
                    "The lease ran out at {until}, {after} after it began {proof}, and no \
                     heartbeat had come."
                )
            }
        };
        format!("{cause} The ticket expired {}.", self.late(writing, end, deadline))
    }

    /// How late the end came after its deadline.
    fn late(&self, writing: &mut Writing, end: &Ending, deadline: Time) -> String {
        let (at, proof) = self.when(writing, &end.record);
        if end.record.time == deadline {
            format!("at that moment {proof}")
        } else {
            format!("{} later, at {at} {proof}", between(deadline, end.record.time))
        }
    }

    fn timed_out(&self, writing: &mut Writing, end: &Ending, deadline: Time) -> String {
        let (until, waited) = (self.at(deadline), self.waited_until(deadline));
        let late = self.late(writing, end, deadline);
        let then = self.then(writing);
        format!("The wait was over at {until}, after {waited}. The ticket timed out {late}.{then}")
    }

    /// A wait that ended with its identity's access.
    fn cancelled(&self, writing: &mut Writing, end: &Ending) -> String {
        let owner = self.owner();
        let waited = self.waited_until(end.record.time);
        let taken = end.taken_away.as_ref().filter(|taken| (self.asker.sees)(&taken.event));
        let taken = taken.and_then(|taken| Some((taken, self.access(taken)?)));
        let Some((taken, (user, access))) = taken else {
            let (at, proof) = self.when(writing, &end.record);
            let lost = if self.is_by_disabling() { "was disabled" } else { "lost its access" };
            return format!(
                "{owner} {lost}, so its wait was cancelled at {at} {proof}, after {waited}."
            );
        };
        let (at, by) = self.when(writing, taken);
        let proof = writing.show(end.record.sequence);
        let agent =
            if user == owner { String::new() } else { format!("; {owner} is an agent of {user}") };
        let cause = if self.is_by_disabling() {
            "Whoever is disabled can't wait"
        } else {
            "Whoever may not write there can't wait"
        };
        format!(
            "{access} at {at} {by}{agent}. {cause}, so the wait of {owner} was cancelled in the \
             same append {proof}, after {waited}."
        )
    }

    /// What took the access away.
    fn access<'a>(&self, taken: &'a Record) -> Option<(&'a UserName, String)> {
        let actor = self.actor(taken, true, "someone");
        let Bearing::Access(access) = bearing(&taken.event) else { return None };
        Some(match access {
            Access::Disabled(user) => (user, format!("{actor} disabled {user}")),
            Access::Member(team, user, None) => {
                (user, format!("{actor} took {user} out of the team {team}"))
            }
            Access::Member(team, user, Some(role)) => {
                (user, format!("{actor} gave {user} only the role {role} in the team {team}"))
            }
            Access::Grant(scope, user, None) => {
                (user, format!("{actor} took back what {user} had been granted in {scope}"))
            }
            Access::Grant(scope, user, Some(role)) => {
                (user, format!("{actor} granted {user} only the role {role} in {scope}"))
            }
        })
    }

    /// Who held the lock at the end of a wait, and who stood ahead.
    fn then(&self, writing: &mut Writing) -> String {
        let Some(wait) = self.life.wait.as_ref().filter(|_| self.is_full) else {
            return String::new();
        };
        let Some(holder) = &wait.holder else { return String::new() };
        let proof = writing.show(holder.fence_token.0);
        let (owner, fence) = (&holder.owner, holder.fence_token);
        let ahead = match &wait.still_ahead[..] {
            [] => String::new(),
            ahead => format!(", and {} stood ahead", self.waiters(writing, ahead)),
        };
        format!(" {owner} held the lock then, under fence token {fence} {proof}{ahead}.")
    }

    /// Where it stands, if it hasn't ended.
    pub(super) fn now(&self) -> Option<Step> {
        let found = &self.life.found;
        let ticket = &found.ticket;
        let mut writing = Writing::at(found.head, self.life.head_time);
        let (head, owner) = (found.head, self.owner());
        writing.mark(ticket.sequence);
        let words = match &ticket.phase {
            Phase::Ended { .. } => return None,
            Phase::Held { lease_expires_at, .. } => {
                let until = self.at(*lease_expires_at);
                format!(
                    "As of sequence {head} the ticket is still held, at depth {}. Its lease ends \
                     at {until} if no heartbeat comes.",
                    found.depth
                )
            }
            Phase::Waiting { wait_expires_at } => {
                let place = number(found.queue_position.unwrap_or_default().into());
                let until = self.at(*wait_expires_at);
                let now = self.present(&mut writing);
                format!(
                    "As of sequence {head} {owner} still waits, at place {place} in the \
                     queue{now}. The wait ends at {until}."
                )
            }
        };
        writing.say(&words);
        Some(writing.done())
    }

    /// Who holds the lock, and who stands ahead.
    fn present(&self, writing: &mut Writing) -> String {
        let Some(wait) = self.life.wait.as_ref().filter(|_| self.is_full) else {
            return String::new();
        };
        let ahead = match &wait.still_ahead[..] {
            [] => String::new(),
            ahead => format!(", behind {}", self.waiters(writing, ahead)),
        };
        let Some(holder) = &wait.holder else { return ahead };
        let proof = writing.show(holder.fence_token.0);
        let (owner, fence) = (&holder.owner, holder.fence_token);
        format!("{ahead}. {owner} holds the lock, under fence token {fence} {proof}")
    }
}
