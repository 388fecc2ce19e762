//! Crashes, and what a start must find after them.
//!
//! The start is the server's own: it replays the ledger and appends what it has to say. Then some
//! clients that lost touch send their acquires again.

use pearing::domain::command::{Caller, Command};
use pearing::domain::id::{ReplyId, TicketId};
use pearing::domain::time::Time;
use pearing::domain::{Snapshot, State};
use pearing::ledger::memory::Fault;
use pearing::ledger::pending::Gap;
use pearing::projection::{request, ticket};
use pearing::service::recover;

use super::run::{Entry, Run, Told, Wrote};

impl Run {
    /// Kills the server between two batches, and starts it again.
    pub(super) fn crash(&mut self) -> Result<(), String> {
        self.ledger = self.ledger.crash();
        self.restart()
    }

    /// Starts on what the ledger has, after a while, until a start gets through.
    pub(super) fn restart(&mut self) -> Result<(), String> {
        loop {
            self.judge.coverage.restarts += 1;
            self.judge.coverage.steps += 1;
            self.live = self.rebuild()?;
            self.check_journal()?;
            self.stay_away();
            if self.resume()? {
                break;
            }
        }
        let retries = self.retries();
        self.serve(retries)
    }

    /// Lets time pass by a wall clock that may have been set back meanwhile.
    fn stay_away(&mut self) {
        let away_ms = match self.rng.below(10) {
            0..4 => 0,
            4..8 => self.rng.span_ms(12_000),
            8 => self.rng.span_ms(600_000),
            _ => -self.rng.span_ms(5_000),
        };
        self.now = Time::from_millis(self.now.as_millis() + away_ms).max(self.live.time());
    }

    /// Appends what a start has to say; false if that failed, so that it must start again.
    fn resume(&mut self) -> Result<bool, String> {
        let now = self.now;
        let gaps = [Gap::TornTailDropped, Gap::LossAccepted, Gap::Restored, Gap::Imported];
        let gap = self.rng.percent(5).then(|| *self.rng.pick(&gaps));
        self.note(Told::Restarted { at: now, gap });
        if self.rng.percent(10) {
            self.ledger.fail_append(1, *self.rng.pick(&[Fault::Lost, Fault::Uncertain]));
        }
        let appended = recover::resume(&mut self.live, &self.ledger, gap, now);
        let fault = self.fault_of(appended)?;
        if fault != Some(Fault::Lost) {
            self.take()?;
            let reason = gap.map(|gap| match gap {
                Gap::TornTailDropped => "torn-tail-dropped",
                Gap::LossAccepted => "loss-accepted",
                Gap::Restored => "restored",
                Gap::Imported => "imported",
            });
            self.judge.resumed(now, reason)?;
        }
        if fault.is_none() {
            self.judge.end(&self.live)?;
            self.check_notes()?;
        }
        Ok(fault.is_none())
    }

    /// The state that the ledger's bytes fold into, from the first on. Sometimes it goes through
    /// a snapshot, and what follows runs on what is left of it.
    fn rebuild(&mut self) -> Result<State, String> {
        let state = recover::replay(&self.ledger).map_err(|error| error.to_string())?;
        let is_snapshot = self.rng.percent(50);
        let state = if is_snapshot { through_a_snapshot(&state)? } else { state };
        if state == *self.judge.state() {
            return Ok(state);
        }
        let (live, how) = (self.judge.state(), if is_snapshot { "read back" } else { "rebuilt" });
        Err(format!("invariant 8: live {live:#?}\nbut {how} {state:#?}"))
    }

    /// What every client was told is in the ledger still.
    fn check_journal(&mut self) -> Result<(), String> {
        for entry in &self.journal {
            let ticket = self.judge.ticket(entry.ticket_id);
            let is_there = ticket.is_some_and(|ticket| {
                let fence = ticket.fence_token.map(|fence_token| fence_token.0.0);
                ticket.input == entry.input && (entry.fence.is_none() || entry.fence == fence)
            });
            if !is_there {
                return Err(format!("invariant 9: answered {entry:?}, but found {ticket:?}"));
            }
        }
        for wrote in self.wrote.iter().rev().take(4) {
            let record = request::record(&self.ledger, wrote.sequence);
            let record = record.map_err(|error| error.to_string())?;
            if record.event.thread().as_ref() != Some(&wrote.thread) {
                return Err(format!("invariant 9: answered {wrote:?}, but found {record:?}"));
            }
        }
        self.check_projections(4)
    }

    /// The newest answers are found by their requests, and those that ended by their ids.
    pub(super) fn check_projections(&self, most: usize) -> Result<(), String> {
        for entry in self.journal.iter().rev().take(most) {
            let expected =
                self.judge.ticket(entry.ticket_id).ok_or("an answered ticket is gone")?;
            let request_uuid = entry.input.request_uuid;
            let found = ticket::by_request(&self.ledger, &expected.owner, request_uuid)
                .map_err(|error| error.to_string())?;
            let ended =
                ticket::ended(&self.ledger, entry.ticket_id).map_err(|error| error.to_string())?;
            let is_live = expected.is_held() || expected.is_waiting();
            let is_right = if is_live { ended.is_none() } else { ended.as_ref() == Some(expected) };
            if found != Some(entry.ticket_id) || !is_right {
                return Err(format!("{expected:?}\n  is projected as {found:?}, {ended:?}"));
            }
        }
        Ok(())
    }

    /// Some of what was answered before, sent again by clients that lost touch.
    fn retries(&mut self) -> Vec<(Caller, Command)> {
        let mut commands = Vec::new();
        for _ in 0..self.rng.below(4) {
            if self.journal.is_empty() {
                break;
            }
            let Entry { token, input, .. } = self.rng.pick(&self.journal).clone();
            let ticket_id = TicketId(self.rng.uuid());
            commands.push((Caller::Token(token), Command::AcquireLock { ticket_id, input }));
        }
        for _ in 0..self.rng.below(3) {
            if self.wrote.is_empty() {
                break;
            }
            let Wrote { token, mut command, .. } = self.rng.pick(&self.wrote).clone();
            if let Command::CreateReply { reply_id, .. } = &mut command {
                *reply_id = ReplyId(self.rng.uuid());
            }
            commands.push((Caller::Token(token), command));
        }
        commands
    }
}

/// The state that is left after it was stored and read back.
fn through_a_snapshot(state: &State) -> Result<State, String> {
    let bytes = serde_json::to_vec(&state.to_snapshot()).map_err(|error| error.to_string())?;
    let snapshot: Snapshot = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    Ok(State::from(snapshot))
}
