//! Read models: what is looked up about the past, written in the same append as its events.
//!
//! Each can be worked out from the ledger alone. Live tickets are not here: they are in the
//! state.

pub mod as_of;
pub mod history;
pub mod request;
pub mod snapshot;
pub mod thread;
pub mod ticket;

use crate::domain::event::{Record, Subject};
use crate::domain::ticket::Ticket;
use crate::ledger::{Put, Table, keys};

/// What a record adds to the tables, together with the ticket that it ended.
pub fn puts(record: &Record, ended: Option<&Ticket>) -> Vec<Put> {
    let mut puts = Vec::new();
    if let Some(ticket) = ended {
        puts.push(ticket::put(ticket));
    }
    if let Some(request) = request::request(&record.event) {
        puts.push(request::put(record, &request));
    }
    if let Some(key) = history_key(record) {
        puts.push(Put { table: Table::History, key, value: Vec::new() });
    }
    puts.extend(thread::puts(record));
    puts
}

/// Where an event stands in the history of its lock, or of the ledger, whose events bear on every
/// lock.
fn history_key(record: &Record) -> Option<Vec<u8>> {
    match record.event.concerns() {
        Subject::Ledger => Some(keys::history_of_ledger(record.sequence)),
        Subject::User(_) | Subject::Activity(_) | Subject::Scope(_) => {
            let (lock, _) = record.event.lock_and_ticket()?;
            Some(keys::history(&lock, record.sequence))
        }
    }
}
