//! How many feeds are open, in all and of each identity, so that one can't take the others' place.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use super::failure::Failure;
use crate::domain::name::UserName;

/// How many feeds may be open at once. Each costs a task and a batch of records while it reads.
const FEEDS_MAX: usize = 10_000;

/// The open feeds.
#[derive(Debug, Clone)]
pub(super) struct Feeds {
    open: Arc<Mutex<Open>>,
    /// How many of them one identity may have open.
    per_identity: usize,
}

#[derive(Debug, Default)]
struct Open {
    total: usize,
    /// Only identities that have any.
    by_identity: BTreeMap<UserName, usize>,
}

/// The place of one feed, free again when it is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    feeds: Feeds,
    user: UserName,
}

impl Feeds {
    /// None yet, and so many at most of one identity.
    pub(super) fn new(per_identity: usize) -> Self {
        Self { open: Arc::default(), per_identity }
    }

    /// Takes a place for a further feed.
    pub(super) fn enter(&self, user: UserName) -> Result<Seat, Failure> {
        let mut open = self.lock();
        let own = open.by_identity.get(&user).copied().unwrap_or(0);
        if own >= self.per_identity {
            return Err(Failure::OwnFeedsExhausted(self.per_identity));
        }
        if open.total >= FEEDS_MAX {
            return Err(Failure::FeedsExhausted);
        }
        open.total += 1;
        open.by_identity.insert(user.clone(), own + 1);
        Ok(Seat { feeds: self.clone(), user })
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().expect("counting feeds doesn't panic")
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut open = self.feeds.lock();
        open.total -= 1;
        let own = open.by_identity.get_mut(&self.user).expect("an open feed is counted");
        *own -= 1;
        if *own == 0 {
            open.by_identity.remove(&self.user);
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{StatusCode, header};

    use super::*;

    fn enter(feeds: &Feeds, user: &str) -> Result<Seat, Failure> {
        feeds.enter(user.parse().expect("a name"))
    }

    #[test]
    fn one_identity_leaves_the_others_their_feeds() {
        let feeds = Feeds::new(3);
        let mut seats: Vec<Seat> =
            (0..3).map(|_| enter(&feeds, "ana").expect("there is room")).collect();
        let failure = enter(&feeds, "ana").expect_err("it has as many as it may");
        let response = failure.render(None);
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert!(response.headers().contains_key(header::RETRY_AFTER));
        enter(&feeds, "bo").expect("bo has none");
        seats.pop();
        enter(&feeds, "ana").expect("one of its own has ended");
    }

    #[test]
    fn all_feeds_together_have_a_bound_and_leave_nothing_behind() {
        let feeds = Feeds::new(1000);
        let user = |n: usize| format!("user{}", n / 1000);
        let seats: Vec<Seat> =
            (0..FEEDS_MAX).map(|n| enter(&feeds, &user(n)).expect("there is room")).collect();
        let failure = enter(&feeds, "ana").expect_err("there is no more room");
        assert_eq!(failure.render(None).status(), StatusCode::SERVICE_UNAVAILABLE);
        drop(seats);
        let open = feeds.lock();
        assert_eq!((open.total, open.by_identity.len()), (0, 0));
    }
}
