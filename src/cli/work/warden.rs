//! Decides when a command that runs under a lease must end. Pure: no clock, no IO, no process.
//!
//! Told that the lock is lost, the command is asked to end at once, and killed a grace later.
//! Without any word it is asked a grace before the lease's deadline, and killed at the deadline,
//! so that it is gone before somebody else can have the lock. Both are for its whole process group,
//! also when the command itself has ended meanwhile.
//! Deliberately absent: a way back. A command that was asked to end has its end, whatever is heard
//! of the lease afterwards.

use std::time::Duration;

use crate::cli::text;
use crate::client::{LeaseState, Lost};
use crate::clock::BootTime;

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing until then, or until something is heard.
    Wait { until: Option<BootTime> },
    /// Ask the whole group to end, and say why.
    Ask { why: String },
    /// Kill the whole group.
    Kill { why: String },
    /// It is over.
    Done(Outcome),
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) enum Outcome {
    /// The command ended by itself, with this exit code, and under the lock all the time.
    Ended(u8),
    /// It was made to end.
    MadeToEnd(Cause),
}

/// Why a command is made to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Cause {
    /// The lock is lost.
    Lost(Lost),
    /// No heartbeat was answered for so long that it would be lost soon.
    InDoubt,
}

#[derive(Debug)]
enum Phase {
    Running,
    /// The group is to be gone by `kill_at`.
    Ending {
        cause: Cause,
        kill_at: BootTime,
        was_asked: bool,
    },
    Killed {
        cause: Cause,
    },
}

/// Watches over one command.
#[derive(Debug)]
pub(super) struct Warden {
    grace: Duration,
    /// When the lease ends, as far as is known.
    deadline: BootTime,
    /// What came instead of the last answer.
    doubt: Option<String>,
    phase: Phase,
    /// The command's own end.
    ended: Option<u8>,
}

impl Warden {
    /// Of a command that begins under a lease with this deadline.
    pub(super) fn new(deadline: BootTime, grace: Duration) -> Self {
        Self { grace, deadline, doubt: None, phase: Phase::Running, ended: None }
    }

    /// Takes in where the lease stands at `now`.
    pub(super) fn hear(&mut self, lease: &LeaseState, now: BootTime) {
        match lease {
            LeaseState::Held { deadline } => {
                (self.deadline, self.doubt) = (*deadline, None);
            }
            LeaseState::InDoubt { deadline, why } => {
                (self.deadline, self.doubt) = (*deadline, Some(why.clone()));
            }
            LeaseState::Lost(lost) => {
                let cause = Cause::Lost(*lost);
                match lost {
                    Lost::Refused(_) => self.end(cause, now.plus(self.grace)),
                    // By our own clock: there is no more time than until the deadline.
                    Lost::Deadline | Lost::LetGo => {
                        self.end(cause, self.deadline.min(now.plus(self.grace)));
                    }
                }
            }
        }
    }

    /// Takes in that the command itself has ended.
    pub(super) fn ended(&mut self, code: u8) {
        self.ended = Some(code);
    }

    /// Whether the command itself has ended, and what it left behind must end too.
    pub(super) fn awaits_rest(&self) -> bool {
        self.ended.is_some() && matches!(self.phase, Phase::Ending { .. })
    }

    /// Takes in that no process of the group is left.
    pub(super) fn gone(&mut self) {
        if let Phase::Ending { cause, .. } = self.phase {
            self.phase = Phase::Killed { cause };
        }
    }

    /// What to do at `now`. Each thing is said once.
    pub(super) fn next(&mut self, now: BootTime) -> Next {
        if matches!(self.phase, Phase::Running) {
            match self.ended {
                Some(code) if now < self.deadline => return Next::Done(Outcome::Ended(code)),
                _ if now >= self.deadline => {
                    self.end(Cause::Lost(Lost::Deadline), self.deadline);
                }
                _ if now >= self.deadline.minus(self.grace) => {
                    self.end(Cause::InDoubt, self.deadline);
                }
                _ => {}
            }
        }
        let why = self.why(now);
        match &mut self.phase {
            Phase::Running => Next::Wait { until: Some(self.deadline.minus(self.grace)) },
            Phase::Ending { cause, kill_at, .. } if now >= *kill_at => {
                self.phase = Phase::Killed { cause: *cause };
                Next::Kill { why }
            }
            Phase::Ending { kill_at, was_asked, .. } => {
                if std::mem::replace(was_asked, true) {
                    Next::Wait { until: Some(*kill_at) }
                } else {
                    Next::Ask { why }
                }
            }
            Phase::Killed { cause } => match self.ended {
                Some(_) => Next::Done(Outcome::MadeToEnd(*cause)),
                None => Next::Wait { until: None },
            },
        }
    }

    /// Sees to it that the group is gone by then. What was decided before is only made stricter.
    fn end(&mut self, cause: Cause, by: BootTime) {
        match &mut self.phase {
            Phase::Running => {
                self.phase = Phase::Ending { cause, kill_at: by, was_asked: false };
            }
            Phase::Ending { cause: known, kill_at, .. } => {
                (*known, *kill_at) = (cause, by.min(*kill_at));
            }
            Phase::Killed { .. } => {}
        }
    }

    /// Why the command is made to end, for people.
    fn why(&self, now: BootTime) -> String {
        let cause = match &self.phase {
            Phase::Running => return String::new(),
            Phase::Ending { cause, .. } | Phase::Killed { cause } => cause,
        };
        match cause {
            Cause::Lost(lost) => format!("the lock is lost: {lost}"),
            Cause::InDoubt => {
                let left = now.until(self.deadline).as_millis();
                let left = text::seconds(u64::try_from(left).unwrap_or(u64::MAX));
                let doubt = self.doubt.as_deref().unwrap_or("no answer in time");
                format!("the lock may be lost in {left}: {doubt}")
            }
        }
    }
}

#[cfg(test)]
#[path = "warden_tests.rs"]
mod tests;
