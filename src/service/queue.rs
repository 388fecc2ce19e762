//! The bounded queue in front of the writer.
//!
//! Two lanes: heartbeats and releases have their own, and go first, so that a flood of acquires
//! costs no holder its lease. Within a lane the identities take turns, so that a flood of one costs
//! no other its place. A full lane refuses at once: waiting would only hide the overload.

mod turns;

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::domain::name::UserName;

use turns::Turns;

/// Which lane an ask takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// Heartbeats and releases.
    Holders,
    /// All else.
    Others,
}

/// Why an ask was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rejected {
    /// The lane is full, or the identity has its share of it.
    Full,
    /// The writer takes no more.
    Closed,
}

/// What the writer took.
pub(super) struct Taken<T> {
    /// Heartbeats and releases first, then the rest, of each identity in order of arrival.
    pub(super) asks: Vec<T>,
    /// Whether no more will ever come.
    pub(super) is_closed: bool,
}

pub(super) struct Queue<T> {
    lanes: Mutex<Lanes<T>>,
    arrived: Condvar,
}

/// How long the writer waits for more asks than the first one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Company {
    /// How many asks are enough not to wait any longer.
    pub(super) enough: usize,
    /// How long at most.
    pub(super) patience: Duration,
}

struct Lanes<T> {
    holders: Turns<T>,
    others: Turns<T>,
    is_closed: bool,
    /// How many asks wake the writer. A wake-up for each one would cost more than the ask.
    wake_at: usize,
}

impl<T> Lanes<T> {
    fn len(&self) -> usize {
        self.holders.len() + self.others.len()
    }

    fn is_worth_waking(&self) -> bool {
        self.is_closed || self.len() >= self.wake_at
    }
}

impl<T> Queue<T> {
    pub(super) fn new() -> Self {
        let (holders, others) = (Turns::new(), Turns::new());
        let lanes = Lanes { holders, others, is_closed: false, wake_at: 1 };
        Self { lanes: Mutex::new(lanes), arrived: Condvar::new() }
    }

    /// Puts an ask at the end of its identity's line in its lane.
    pub(super) fn push(&self, lane: Lane, identity: &UserName, ask: T) -> Result<(), Rejected> {
        let mut lanes = self.lock();
        if lanes.is_closed {
            return Err(Rejected::Closed);
        }
        let turns = match lane {
            Lane::Holders => &mut lanes.holders,
            Lane::Others => &mut lanes.others,
        };
        if !turns.push(identity, ask) {
            return Err(Rejected::Full);
        }
        let is_worth_waking = lanes.is_worth_waking();
        drop(lanes);
        if is_worth_waking {
            self.arrived.notify_one();
        }
        Ok(())
    }

    /// Takes up to `most` asks. Waits for the first one for at most `patience`, without end if
    /// `None`, and then for its company.
    pub(super) fn take(
        &self,
        most: usize,
        patience: Option<Duration>,
        company: Company,
    ) -> Taken<T> {
        let mut lanes = self.wait_for(self.lock(), 1, patience);
        if lanes.len() > 0 {
            lanes = self.wait_for(lanes, company.enough.min(most), Some(company.patience));
        }
        // A flood of heartbeats must not keep out for ever what could end it: a quarter is theirs
        // who wait in the other lane.
        let kept = lanes.others.len().min(most / 4);
        let holders = lanes.holders.len().min(most - kept);
        let others = lanes.others.len().min(most - holders);
        let mut asks = Vec::with_capacity(holders + others);
        lanes.holders.take(holders, &mut asks);
        lanes.others.take(others, &mut asks);
        Taken { asks, is_closed: lanes.is_closed && lanes.len() == 0 }
    }

    /// Waits until `enough` asks are there, none will come any more, or patience has ended.
    fn wait_for<'a>(
        &self,
        mut lanes: MutexGuard<'a, Lanes<T>>,
        enough: usize,
        patience: Option<Duration>,
    ) -> MutexGuard<'a, Lanes<T>> {
        lanes.wake_at = enough;
        let is_idle = |lanes: &mut Lanes<T>| !lanes.is_worth_waking();
        match patience {
            None => self.arrived.wait_while(lanes, is_idle).unwrap_or_else(PoisonError::into_inner),
            Some(patience) => {
                let waited = self.arrived.wait_timeout_while(lanes, patience, is_idle);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        }
    }

    /// How many asks wait in a lane.
    pub(super) fn depth(&self, lane: Lane) -> usize {
        let lanes = self.lock();
        match lane {
            Lane::Holders => lanes.holders.len(),
            Lane::Others => lanes.others.len(),
        }
    }

    /// Takes no more asks; what is queued is still handed out.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.arrived.notify_all();
    }

    /// Drops what is queued, whose senders then see that no answer will come.
    pub(super) fn abandon(&self) {
        let mut lanes = self.lock();
        lanes.is_closed = true;
        (lanes.holders, lanes.others) = (Turns::new(), Turns::new());
    }

    fn lock(&self) -> MutexGuard<'_, Lanes<T>> {
        // No code panics while it holds the lock, and each change leaves the lanes whole.
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::turns::LANE_ASKS_MAX;
    use super::*;

    /// An ask of ana's.
    fn push<T>(queue: &Queue<T>, lane: Lane, ask: T) -> Result<(), Rejected> {
        queue.push(lane, &"ana".parse().expect("a name"), ask)
    }

    #[test]
    fn identities_take_turns_within_each_lane() {
        let queue = Queue::new();
        let bo = "bo".parse().expect("a name");
        for ask in 0..2000 {
            assert_eq!(push(&queue, Lane::Others, ask), Ok(()));
            assert_eq!(push(&queue, Lane::Holders, 10_000 + ask), Ok(()));
        }
        assert_eq!(queue.push(Lane::Others, &bo, 8), Ok(()));
        assert_eq!(queue.push(Lane::Holders, &bo, 9), Ok(()));
        let asks = queue.take(8, None, Company::default()).asks;
        assert_eq!(asks, [10_000, 9, 10_001, 10_002, 10_003, 10_004, 0, 8]);
    }

    #[test]
    fn holders_go_first_and_each_lane_keeps_its_order() {
        let queue = Queue::new();
        for (lane, ask) in
            [(Lane::Others, 1), (Lane::Holders, 2), (Lane::Others, 3), (Lane::Holders, 4)]
        {
            assert_eq!(push(&queue, lane, ask), Ok(()));
        }
        assert_eq!(queue.take(3, None, Company::default()).asks, [2, 4, 1]);
        assert_eq!(queue.take(3, None, Company::default()).asks, [3]);
    }

    #[test]
    fn a_flood_of_holders_leaves_a_quarter_to_the_others() {
        let queue = Queue::new();
        for ask in 0..8 {
            assert_eq!(push(&queue, Lane::Holders, ask), Ok(()));
        }
        for ask in [8, 9] {
            assert_eq!(push(&queue, Lane::Others, ask), Ok(()));
        }
        assert_eq!(queue.take(4, None, Company::default()).asks, [0, 1, 2, 8]);
        assert_eq!(queue.take(4, None, Company::default()).asks, [3, 4, 5, 9]);
    }

    #[test]
    fn a_share_that_is_full_refuses_and_leaves_the_other_lane_open() {
        let queue = Queue::new();
        let taken = (0..LANE_ASKS_MAX).take_while(|n| push(&queue, Lane::Others, *n).is_ok());
        assert_eq!(taken.count(), LANE_ASKS_MAX / 4, "one identity has a quarter");
        assert_eq!(push(&queue, Lane::Others, 0), Err(Rejected::Full));
        assert_eq!(push(&queue, Lane::Holders, 0), Ok(()));
    }

    #[test]
    fn what_was_queued_before_closing_is_still_handed_out() {
        let queue = Queue::new();
        assert_eq!(push(&queue, Lane::Others, 1), Ok(()));
        queue.close();
        assert_eq!(push(&queue, Lane::Others, 2), Err(Rejected::Closed));
        let taken = queue.take(10, None, Company::default());
        assert_eq!((taken.asks, taken.is_closed), (vec![1], true));
    }

    #[test]
    fn company_that_is_there_is_not_waited_for_and_missing_company_not_for_long() {
        let queue = Queue::new();
        let company = Company { enough: 2, patience: Duration::from_secs(3600) };
        for ask in [1, 2] {
            assert_eq!(push(&queue, Lane::Others, ask), Ok(()));
        }
        assert_eq!(queue.take(10, None, company).asks, [1, 2]);
        let company = Company { enough: 2, patience: Duration::ZERO };
        assert_eq!(push(&queue, Lane::Others, 3), Ok(()));
        assert_eq!(queue.take(10, None, company).asks, [3]);
    }
}
