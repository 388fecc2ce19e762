//! Which tickets stand in one row.
//!
//! Few tickets have a row each, in the order in which they were made, so that a hand-over reads
//! like stairs. Of many, each owner has a row, and further ones where its tickets overlap: the
//! picture is as high as there are owners, not as tickets.

use super::model::{Lock, Ticket, Timeline};
use crate::domain::name::UserName;
use crate::domain::time::Time;

/// Up to how many tickets a picture has a row for each.
const FEW: usize = 20;

/// A row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row<'a> {
    pub(super) owner: &'a UserName,
    pub(super) tickets: Vec<&'a Ticket>,
    /// Whether it is its owner's first one, or has a ticket to itself.
    pub(super) is_first: bool,
}

/// Whether each ticket has a row.
pub(super) fn are_few(timeline: &Timeline) -> bool {
    timeline.tickets().count() <= FEW
}

/// The rows of a lock. `last` is the last moment of the picture.
pub(super) fn rows<'a>(lock: &'a Lock, are_few: bool, last: Time) -> Vec<Row<'a>> {
    let one =
        |ticket: &'a Ticket| Row { owner: &ticket.owner, tickets: vec![ticket], is_first: true };
    if are_few {
        return lock.tickets.iter().map(one).collect();
    }
    let mut owners: Vec<Vec<Row<'a>>> = Vec::new();
    for ticket in &lock.tickets {
        let own = owners.iter_mut().find(|rows| rows[0].owner == &ticket.owner);
        let Some(own) = own else {
            owners.push(vec![one(ticket)]);
            continue;
        };
        let is_free = |row: &&mut Row<'a>| {
            row.tickets.last().is_none_or(|before| before.end_or(last) <= ticket.made.time)
        };
        match own.iter_mut().find(is_free) {
            Some(row) => row.tickets.push(ticket),
            None => own.push(Row { is_first: false, ..one(ticket) }),
        }
    }
    owners.into_iter().flatten().collect()
}
