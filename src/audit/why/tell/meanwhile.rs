//! What happened while the ticket waited, and while it was held.

use super::super::bearing::{Bearing, Ended, Gone, bearing};
use super::super::turns::{Between, Kind, Turn, Turns};
use super::super::words::{Writing, between, list, number, quoted, seconds};
use super::Teller;
use crate::domain::event::Record;
use crate::wire::why::Step;

impl Teller<'_> {
    /// The turns of those before it, and how they left.
    pub(super) fn waited(&self) -> Vec<Step> {
        let Some(wait) = &self.life.wait else { return Vec::new() };
        let mut steps = self.turns(&wait.turns);
        if let Some(cut_at) = wait.cut_at.as_ref().filter(|_| self.is_full) {
            let mut writing = Writing::about(cut_at);
            let proof = writing.show(cut_at.sequence);
            writing.say(&format!("The lock had more events after {proof} than are told here."));
            steps.push(writing.done());
        }
        steps
    }

    fn turns(&self, turns: &Turns) -> Vec<Step> {
        let first = turns.first.iter().filter_map(|turn| self.turn(turn));
        let between = turns.between.iter().filter(|_| self.is_full).map(|b| self.between(b));
        let last = turns.last.iter().filter_map(|turn| self.turn(turn));
        first.chain(between).chain(last).collect()
    }

    /// One of them; `None` where it is only about others whom the asker may not know of.
    fn turn(&self, turn: &Turn) -> Option<Step> {
        match turn {
            Turn::Handed(two) => self.is_full.then(|| self.handed(&two.0, &two.1)),
            Turn::Left(record) => self.is_full.then(|| self.left(record)),
            Turn::Recovered(record, lease) => {
                let mut writing = Writing::about(record);
                let (at, proof) = (self.at(record.time), writing.show(record.sequence));
                writing.say(&format!("The server started again at {at} {proof}. "));
                let words = match (lease, bearing(&record.event)) {
                    (Some((before, after)), _) if before < after => format!(
                        "Nobody could send heartbeats meanwhile, so the deadline was moved from \
                         {} to {}.",
                        self.at(*before),
                        self.at(*after)
                    ),
                    (Some((before, _)), _) => {
                        format!("That left the deadline where it was, at {}.", self.at(*before))
                    }
                    (None, Bearing::Recovered(e)) => {
                        let grace = seconds(e.grace_seconds);
                        format!("Holders were given a grace of up to {grace}; waits were not.")
                    }
                    (None, _) => String::new(),
                };
                writing.say(&words);
                Some(writing.done())
            }
            Turn::Restored(record) => {
                let mut writing = Writing::about(record);
                let (at, proof) = (self.at(record.time), writing.show(record.sequence));
                if let Bearing::Restored(e) = bearing(&record.event) {
                    let (last, reason) = (e.last_sequence, quoted(&e.reason));
                    writing.say(&format!(
                        "The ledger went on after a gap at {at} {proof}, for the reason {reason}: \
                         what was written after sequence {last} may be lost."
                    ));
                }
                Some(writing.done())
            }
        }
    }

    /// A hold that ended, and the next one that began, neither of them the ticket's.
    fn handed(&self, over: &Record, promoted: &Record) -> Step {
        let mut writing = Writing::about(over);
        let (words, it) = self.over(&mut writing, over);
        let proof = writing.show(promoted.sequence);
        if let Bearing::Promoted(e) = bearing(&promoted.event) {
            let (next, fence) = (&e.owner, e.fence_token);
            let got = format!("{next} got {it}, under fence token {fence} {proof}");
            writing.say(&format!("{words}, and {got}."));
        }
        writing.done()
    }

    /// The end of somebody's hold, without a full stop, and what the lock is called after it.
    fn over(&self, writing: &mut Writing, record: &Record) -> (String, &'static str) {
        let (at, proof) = (self.at(record.time), writing.show(record.sequence));
        let Bearing::Over(over) = bearing(&record.event) else { return (String::new(), "it") };
        let owner = over.owner;
        match over.how {
            Ended::Released => (format!("{owner} released the lock at {at} {proof}"), "it"),
            Ended::Expired(_) => {
                (format!("The hold of {owner} expired at {at} {proof}"), "the lock")
            }
            Ended::Broken(reason) => {
                let (actor, reason) = (self.actor(record, true, "someone"), quoted(reason));
                let broke = format!("{actor} broke the hold of {owner} at {at} {proof}");
                (format!("{broke}, for {reason}"), "the lock")
            }
        }
    }

    /// An identity that stood ahead, and left the queue.
    fn left(&self, record: &Record) -> Step {
        let mut writing = Writing::about(record);
        let (at, proof) = (self.at(record.time), writing.show(record.sequence));
        if let Bearing::Left(left) = bearing(&record.event) {
            let (owner, how) = (
                left.owner,
                match left.how {
                    Gone::GaveUp => "gave up",
                    Gone::TimedOut(_) => "timed out",
                    Gone::LostAccess => "lost its access",
                },
            );
            writing.say(&format!("{owner}, who stood ahead, {how} at {at} {proof}."));
        }
        writing.done()
    }

    /// What is counted only.
    fn between(&self, between: &Between) -> Step {
        let mut writing = Writing::about(&between.from);
        let (from, to) = (writing.show(between.from.sequence), writing.show(between.to));
        let count = |(kind, count): (&Kind, &u64)| {
            let count = number(*count);
            match kind {
                Kind::Released => format!("{count} released the lock"),
                Kind::Expired => format!("{count} let their lease run out"),
                Kind::Broken => format!("{count} had their hold broken"),
                Kind::Left => format!("{count} left the queue"),
                Kind::Recovered => format!("the server started again {count} times"),
                Kind::Restored => format!("the ledger went on after a gap {count} times"),
            }
        };
        let counts: Vec<String> = between.counts.iter().map(count).collect();
        writing.say(&format!("It went on like this from {from} to {to}: {}.", list(&counts)));
        writing.done()
    }

    /// What freed the lock for it.
    pub(super) fn promoted(&self) -> Option<Step> {
        let (freed, promoted) = &**self.life.wait.as_ref()?.freed.as_ref()?;
        let Bearing::Promoted(e) = bearing(&promoted.event) else { return None };
        let mut writing = Writing::about(promoted);
        let owner = self.owner();
        let waited = between(self.ticket().created_at, promoted.time);
        let lease = seconds(self.ticket().input.lease_seconds.get());
        let until = self.at(e.lease_expires_at);
        let before = if self.is_full {
            let (over, it) = self.over(&mut writing, freed);
            format!(
                "{over}, which freed {it} for {owner}: after {waited} in the queue its \
                     ticket was promoted in the same append"
            )
        } else {
            let at = self.at(promoted.time);
            format!(
                "After {waited} in the queue the lock was free for {owner}: its ticket was \
                     promoted at {at}"
            )
        };
        let proof = writing.show(promoted.sequence);
        let depth = match e.depth {
            1 => String::new(),
            depth => format!(", at depth {depth} of the hold that its tickets share"),
        };
        writing.say(&format!(
            "{before} {proof}, under fence token {}{depth}, with a lease of {lease} until {until}.",
            e.fence_token
        ));
        Some(writing.done())
    }

    /// What happened while it was held.
    pub(super) fn held(&self) -> Vec<Step> {
        let Some(held) = &self.life.held else { return Vec::new() };
        let mut steps = self.turns(&held.turns);
        let Some((last, before)) = &held.last else { return steps };
        let Bearing::Beaten(e) = bearing(&last.event) else { return steps };
        let mut writing = Writing::about(last);
        let (owner, at, until) = (self.owner(), self.at(last.time), self.at(e.lease_expires_at));
        let has_moved = *before < e.lease_expires_at;
        let moved = if has_moved { "moved the deadline to" } else { "left the deadline at" };
        let proof = writing.show(last.sequence);
        let words = if held.beats == 1 {
            format!("{owner} sent a heartbeat at {at} {proof}, which {moved} {until}.")
        } else {
            let count = number(held.beats);
            let least = if held.is_cut { "at least " } else { "" };
            let first = writing.show(held.first.unwrap_or(last.sequence));
            format!(
                "{owner} sent {least}{count} heartbeats, from {first} to {proof}. The last one, at \
                 {at}, {moved} {until}."
            )
        };
        writing.say(&words);
        steps.push(writing.done());
        steps
    }
}
