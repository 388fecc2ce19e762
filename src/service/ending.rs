//! How a service ends: it drains first, so that what is in flight is answered.

use std::sync::atomic::Ordering;

use tokio::sync::watch as tokio_watch;

use super::Service;

impl Service {
    /// Takes no new work any more; heartbeats and releases go on until [`stop`](Self::stop).
    pub fn drain(&self) {
        self.0.draining.send_replace(true);
    }

    /// Whether the service takes no new work.
    pub fn is_draining(&self) -> bool {
        *self.0.draining.borrow()
    }

    /// Tells when draining begins: feeds and long polls end then.
    pub fn draining(&self) -> tokio_watch::Receiver<bool> {
        self.0.draining.subscribe()
    }

    /// Has the writer answer what is queued, store a snapshot, and end.
    pub fn stop(&self) {
        self.drain();
        self.0.queue.close();
    }

    /// Ends verifications and backups that go on, and waits for that.
    pub fn end_long_work(&self) {
        self.0.long_work.end();
    }

    /// Whether the writer has ended: after [`stop`](Self::stop), or on a storage error.
    pub fn has_stopped(&self) -> bool {
        self.0.has_stopped.load(Ordering::Acquire)
    }
}
