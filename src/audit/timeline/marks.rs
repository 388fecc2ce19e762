//! The signs of a picture: their names, their shapes, and what the legend says of them.

use super::model::{Interruption, Timeline};
use super::words;
use crate::domain::ticket::End;

/// A sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Held,
    Waits,
    Heartbeat,
    Promoted,
    Ended(End),
    Restart,
    Gap,
    Cut,
}

/// All signs, in the order of the legend.
const ALL: [Mark; 14] = [
    Mark::Held,
    Mark::Waits,
    Mark::Heartbeat,
    Mark::Promoted,
    Mark::Ended(End::Released),
    Mark::Ended(End::Expired),
    Mark::Ended(End::Broken),
    Mark::Ended(End::TimedOut),
    Mark::Ended(End::Cancelled),
    Mark::Ended(End::Contended),
    Mark::Ended(End::DeadlockRejected),
    Mark::Restart,
    Mark::Gap,
    Mark::Cut,
];

impl Mark {
    /// The signs that a picture has.
    pub(super) fn used(timeline: &Timeline, has_cuts: bool) -> Vec<Self> {
        let is_used = |mark: &Self| match mark {
            Self::Held => timeline.holds().next().is_some(),
            Self::Waits => timeline.tickets().any(|t| t.held.is_none() || t.is_promoted()),
            Self::Heartbeat => timeline.tickets().any(|ticket| !ticket.heartbeats.is_empty()),
            Self::Promoted => timeline.tickets().any(super::model::Ticket::is_promoted),
            Self::Ended(how) => {
                timeline.tickets().any(|t| t.end.as_ref().is_some_and(|end| end.how == *how))
            }
            Self::Restart => timeline.breaks.iter().any(|interruption| match interruption.what {
                Interruption::Restart { .. } => true,
                Interruption::Gap { .. } => false,
            }),
            Self::Gap => timeline.breaks.iter().any(|interruption| match interruption.what {
                Interruption::Gap { .. } => true,
                Interruption::Restart { .. } => false,
            }),
            Self::Cut => has_cuts,
        };
        ALL.into_iter().filter(is_used).collect()
    }

    /// What the legend says.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Waits => "waits",
            Self::Heartbeat => "heartbeat",
            Self::Promoted => "promoted",
            Self::Ended(how) => words::end(how),
            Self::Restart => "restart",
            Self::Gap => "sequences jump",
            Self::Cut => "nothing happened",
        }
    }

    /// Its class in an SVG.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Held => "hold",
            Self::Waits => "wait",
            Self::Heartbeat => "heartbeat",
            Self::Promoted => "promoted",
            Self::Ended(End::Released) => "released",
            Self::Ended(End::Expired) => "expired",
            Self::Ended(End::Broken) => "broken",
            Self::Ended(End::TimedOut) => "timed-out",
            Self::Ended(End::Cancelled) => "cancelled",
            Self::Ended(End::Contended) => "contended",
            Self::Ended(End::DeadlockRejected) => "deadlock-rejected",
            Self::Restart => "restart",
            Self::Gap => "gap",
            Self::Cut => "cut",
        }
    }

    /// Its character on a terminal: one column wide everywhere.
    pub(super) fn character(self) -> char {
        match self {
            Self::Held => '█',
            Self::Waits => '░',
            Self::Heartbeat => '▌',
            Self::Promoted => '▶',
            Self::Ended(End::Released) => '┤',
            Self::Ended(End::Expired) => '✗',
            Self::Ended(End::Broken) => '╳',
            Self::Ended(End::TimedOut) => '◷',
            Self::Ended(End::Cancelled) => '○',
            Self::Ended(End::Contended) => '◇',
            Self::Ended(End::DeadlockRejected) => '⊗',
            Self::Restart => '╎',
            Self::Gap => '║',
            Self::Cut => '┊',
        }
    }
}
