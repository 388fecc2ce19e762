//! The circle that a rejected wait would have closed: as edges, in words, and drawn.

use std::fmt::Write as _;

use super::Asker;
use super::words::{Writing, clauses};
use crate::domain::id::Sequence;
use crate::domain::scope::Scope;
use crate::domain::ticket::Ticket;
use crate::wire::ticket::CycleEdge;

/// How many edges are told in words; of more, the drawing tells.
const TOLD_EDGES: usize = 4;

/// How many edges are drawn at the top, and at the bottom.
const DRAWN_FIRST: usize = 16;
const DRAWN_LAST: usize = 4;

/// Who waits for whom, around. Begins with the rejected ticket and returns to it.
pub(super) struct Circle {
    pub(super) edges: Vec<CycleEdge>,
    /// The event that made each waiting ticket, where it may be shown.
    made_at: Vec<Option<Sequence>>,
    /// The scope that needn't be named.
    scope: Scope,
}

impl Circle {
    /// The circle of the waiting tickets, with nothing that the asker may not read.
    pub(super) fn new(own: &Ticket, tickets: &[Option<Ticket>], asker: Asker<'_>) -> Self {
        let is_shown = |ticket: &&Ticket| {
            asker.user == Some(&ticket.owner) || (asker.reads)(&ticket.input.scope)
        };
        let shown: Vec<Option<&Ticket>> =
            tickets.iter().map(|ticket| ticket.as_ref().filter(is_shown)).collect();
        let edge = |(at, waiting): (usize, &Option<&Ticket>)| CycleEdge {
            owner: waiting.map(|ticket| ticket.owner.clone()),
            waits_for: shown[(at + 1) % shown.len()].map(|next| next.owner.clone()),
            scope: waiting.map(|ticket| ticket.input.scope.clone()),
            lock_name: waiting.map(|ticket| ticket.input.lock_name.clone()),
            ticket_id: waiting.map(|ticket| ticket.id),
        };
        Self {
            edges: shown.iter().enumerate().map(edge).collect(),
            made_at: shown.iter().map(|ticket| ticket.map(|ticket| ticket.made_at)).collect(),
            scope: own.input.scope.clone(),
        }
    }

    /// The circle in words.
    pub(super) fn words(&self, writing: &mut Writing) -> String {
        if self.edges.len() > TOLD_EDGES {
            return format!("a circle of {} that wait for each other", self.edges.len());
        }
        let edge = |(edge, made_at): (&CycleEdge, &Option<Sequence>)| {
            let (owner, next) = (name(&edge.owner), name(&edge.waits_for));
            let lock = self.lock(edge).map(|lock| format!(" over {lock}")).unwrap_or_default();
            let proof = made_at.map(|at| format!(" {}", writing.show(at))).unwrap_or_default();
            format!("{owner} waits for {next}{lock}{proof}")
        };
        let edges: Vec<String> = self.edges.iter().zip(&self.made_at).map(edge).collect();
        format!("a circle: {}", clauses(&edges))
    }

    /// The circle in lines of text: each line is a wait, and the last one leads to the first.
    pub(super) fn drawing(&self) -> String {
        let owners = self.edges.iter().map(|edge| name(&edge.owner).chars().count());
        let width = owners.max().unwrap_or(0);
        let len = self.edges.len();
        let mut text = String::new();
        for (at, (edge, made_at)) in self.edges.iter().zip(&self.made_at).enumerate() {
            if at == DRAWN_FIRST && len > DRAWN_FIRST + DRAWN_LAST {
                let _ = writeln!(text, "│   … and {} more …", len - DRAWN_FIRST - DRAWN_LAST);
            }
            if at >= DRAWN_FIRST && at + DRAWN_LAST < len {
                continue;
            }
            let rail = match at {
                0 => "┌─▶",
                _ if at + 1 == len => "└──",
                _ => "│  ",
            };
            let (owner, next) = (name(&edge.owner), name(&edge.waits_for));
            let _ = write!(text, "{rail} {owner:width$} waits for {next:width$}");
            if let Some(lock) = self.lock(edge) {
                let _ = write!(text, " over {lock}");
            }
            if let Some(made_at) = made_at {
                let _ = write!(text, " ({made_at})");
            }
            // Padding of a name with nothing after it.
            text.truncate(text.trim_end().len());
            text.push_str(if at == 0 { ", rejected\n" } else { "\n" });
        }
        text
    }

    /// The lock of a wait; its scope is named where it is another than the rejected ticket's.
    fn lock(&self, edge: &CycleEdge) -> Option<String> {
        let (lock_name, scope) = (edge.lock_name.as_ref()?, edge.scope.as_ref()?);
        let is_same = *scope == self.scope;
        Some(if is_same { lock_name.to_string() } else { format!("{lock_name} in {scope}") })
    }
}

fn name(owner: &Option<crate::domain::name::UserName>) -> String {
    owner.as_ref().map_or("someone".to_owned(), ToString::to_string)
}
