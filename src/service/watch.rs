//! Wakes those who wait for a ticket to stop waiting.
//!
//! No wake-up is lost: a watcher registers first, creates the future that it will wait on, and
//! only then looks at the state. A change that it doesn't see there is published later, and the
//! writer wakes after it has published; from its creation on, the future sees every wake-up.
//! Only the tickets that changed are looked up, so a herd on one lock wakes one of its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::domain::id::TicketId;

/// The tickets that somebody watches.
#[derive(Default)]
pub(crate) struct TicketWatch {
    watched: Mutex<HashMap<TicketId, Watched>>,
}

/// A ticket that somebody watches.
#[derive(Default)]
struct Watched {
    notify: Arc<Notify>,
    /// Counted under the lock, since the last one to leave removes the entry: of two that leave at
    /// once each could still see the other's `Arc`.
    watchers: usize,
}

/// One who watches a ticket. Dropping it leaves nothing behind.
pub(crate) struct Watcher<'a> {
    watch: &'a TicketWatch,
    ticket_id: TicketId,
    notify: Arc<Notify>,
}

impl TicketWatch {
    /// Registers for a ticket's wake-ups.
    pub(crate) fn register(&self, ticket_id: TicketId) -> Watcher<'_> {
        let mut watched = self.lock();
        let entry = watched.entry(ticket_id).or_default();
        entry.watchers += 1;
        Watcher { watch: self, ticket_id, notify: Arc::clone(&entry.notify) }
    }

    /// Wakes everyone who watches one of the tickets.
    pub(super) fn wake(&self, tickets: impl Iterator<Item = TicketId>) {
        let watched = self.lock();
        if watched.is_empty() {
            return;
        }
        for ticket_id in tickets {
            if let Some(entry) = watched.get(&ticket_id) {
                entry.notify.notify_waiters();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TicketId, Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watcher<'_> {
    /// The next wake-up from now on. Create it before looking at the state.
    pub(crate) fn woken(&self) -> Notified<'_> {
        self.notify.notified()
    }
}

impl Drop for Watcher<'_> {
    fn drop(&mut self) {
        let mut watched = self.watch.lock();
        if let Some(entry) = watched.get_mut(&self.ticket_id) {
            entry.watchers -= 1;
            if entry.watchers == 0 {
                watched.remove(&self.ticket_id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_watcher_of_a_ticket_leaves_nothing_behind() {
        let watch = TicketWatch::default();
        let id = TicketId(uuid::Uuid::nil());
        let (first, second) = (watch.register(id), watch.register(id));
        drop(first);
        assert_eq!(watch.lock().len(), 1);
        drop(second);
        assert_eq!(watch.lock().len(), 0);
    }

    #[tokio::test]
    async fn a_wake_up_between_looking_and_waiting_is_not_lost() {
        let watch = TicketWatch::default();
        let id = TicketId(uuid::Uuid::nil());
        let watcher = watch.register(id);
        let woken = watcher.woken();
        watch.wake([id].into_iter());
        woken.await;
    }
}
