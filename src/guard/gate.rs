//! Orders the requests of each lock by their fence tokens: a newer one waits until the older ones
//! that were admitted have ended, and from its arrival on no older one is admitted.
//!
//! Without that, an older holder's request that is still at work could write after the newer
//! holder has read. Only locks that have a request here take memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::domain::id::FenceToken;
use crate::domain::scope::LockKey;

/// The gates of all locks that have a request here.
#[derive(Debug, Clone, Default)]
pub(super) struct Gates(Arc<Mutex<HashMap<LockKey, Gate>>>);

#[derive(Debug, Default)]
struct Gate {
    /// Requests that have arrived and not left.
    present: usize,
    /// The newest fence token of those that came up to the gate.
    newest: Option<FenceToken>,
    /// How many of each fence token are at work.
    at_work: BTreeMap<FenceToken, usize>,
    /// Told when one of them has ended.
    ended: Arc<Notify>,
}

/// A request that has arrived. It leaves by being dropped.
///
/// It arrives before its fence token is claimed, so that its gate is there, and remembers a newer
/// one that overtakes it, until it has been decided.
#[derive(Debug)]
pub(super) struct Visit {
    gates: Gates,
    lock: LockKey,
    fence: FenceToken,
    is_at_work: bool,
}

impl Gates {
    fn locked(&self) -> MutexGuard<'_, HashMap<LockKey, Gate>> {
        // Nothing panics while it is locked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.locked().is_empty()
    }

    /// Takes in a request.
    pub(super) fn arrive(&self, lock: LockKey, fence: FenceToken) -> Visit {
        self.locked().entry(lock.clone()).or_default().present += 1;
        Visit { gates: self.clone(), lock, fence, is_at_work: false }
    }
}

impl Visit {
    /// Waits until no older request is at work, and begins. `Err` is a newer fence token.
    pub(super) async fn begin(&mut self) -> Result<(), FenceToken> {
        loop {
            let ended = {
                let mut gates = self.gates.locked();
                let gate = gates.get_mut(&self.lock).expect("it is there while somebody is");
                let newest = gate.newest.map_or(self.fence, |newest| newest.max(self.fence));
                gate.newest = Some(newest);
                if newest > self.fence {
                    return Err(newest);
                }
                if gate.at_work.first_key_value().is_none_or(|(oldest, _)| *oldest >= self.fence) {
                    *gate.at_work.entry(self.fence).or_default() += 1;
                    self.is_at_work = true;
                    return Ok(());
                }
                // Made while none can end, so that none is missed.
                Arc::clone(&gate.ended).notified_owned()
            };
            ended.await;
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let mut gates = self.gates.locked();
        let gate = gates.get_mut(&self.lock).expect("it is there while somebody is");
        if self.is_at_work {
            let left = gate.at_work.get_mut(&self.fence).expect("it was counted");
            *left -= 1;
            if *left == 0 {
                gate.at_work.remove(&self.fence);
            }
            gate.ended.notify_waiters();
        }
        gate.present -= 1;
        if gate.present == 0 {
            gates.remove(&self.lock);
        }
    }
}
