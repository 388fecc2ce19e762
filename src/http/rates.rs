//! How many requests a second are taken: of each identity, and for each scope.
//!
//! An identity has two budgets, one for what goes on with its holds and ends them, and one for all
//! else: so whatever else it floods the server with, its heartbeats arrive. A scope's budget is for
//! all else too, and only whoever may see the scope spends it: a stranger would otherwise use up
//! what is its members'. Over a budget nothing is done but the answer, which says when to ask
//! again.
//!
//! Deliberately absent: a budget for tokens that don't work, by the address that they come from.
//! Whether a token works is known only after it was hashed, and hashing is a small part of what a
//! request costs before it. So a budget would have to refuse an address before its token is looked
//! at, and then whoever shares that address with somebody who guesses, behind one proxy, would be
//! kept out with a good token. Guessing itself is hopeless: a token has 256 random bits.

use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};

use super::failure::Failure;
use crate::clock::RateClock;
use crate::domain::name::UserName;
use crate::domain::scope::Scope;

/// How many budgets are kept at least before those are looked for that nobody spends from.
const KEPT_LEAST: usize = 1024;

/// All budgets.
pub(super) struct Rates<C: Clock = RateClock> {
    /// Of each identity, for heartbeats and releases.
    pub(super) holders: Budgets<UserName, C>,
    /// Of each identity, for all else.
    pub(super) identities: Budgets<UserName, C>,
    /// For each scope that a request names, but for heartbeats and releases.
    pub(super) scopes: Budgets<Scope, C>,
}

impl<C: Clock + Clone> Rates<C> {
    pub(super) fn new(per_identity: NonZeroU32, per_scope: NonZeroU32, clock: &C) -> Self {
        let holders = "heartbeats and releases a second of one identity";
        Self {
            holders: Budgets::new(per_identity, holders, clock.clone()),
            identities: Budgets::new(
                per_identity,
                "requests a second of one identity",
                clock.clone(),
            ),
            scopes: Budgets::new(per_scope, "requests a second for one scope", clock.clone()),
        }
    }
}

/// A budget for each key. One that rests is as full as a new one after a second, and then needs no
/// keeping.
pub(super) struct Budgets<K: Hash + Eq + Clone, C: Clock> {
    limiter: RateLimiter<K, HashMapStateStore<K>, C, NoOpMiddleware<C::Instant>>,
    most: NonZeroU32,
    /// What there is at most so many of, fit for "at most 100 THINGS".
    things: &'static str,
    /// After how many more requests those are dropped that need no keeping. Each request adds one
    /// at most, so this bounds how many there are.
    until_pruned: AtomicI64,
}

impl<K: Hash + Eq + Clone, C: Clock> Budgets<K, C> {
    fn new(most: NonZeroU32, things: &'static str, clock: C) -> Self {
        let limiter = RateLimiter::hashmap_with_clock(Quota::per_second(most), clock);
        Self { limiter, most, things, until_pruned: AtomicI64::new(pause(0)) }
    }

    /// Takes one request from the budget of `key`.
    pub(super) fn spend(&self, key: &K) -> Result<(), Failure> {
        if self.until_pruned.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.limiter.retain_recent();
            self.until_pruned.store(pause(self.limiter.len()), Ordering::Relaxed);
        }
        self.limiter.check_key(key).map_err(|until| {
            let wait = until.wait_time_from(self.limiter.clock().now());
            Failure::TooFast {
                most: self.most,
                things: self.things,
                retry_after_seconds: whole_seconds_up(wait),
            }
        })
    }
}

/// After how many requests to look again when so many budgets are kept: twice as many, so that
/// looking costs each request the same, however many there are.
fn pause(kept: usize) -> i64 {
    i64::try_from(kept.saturating_mul(2).max(KEPT_LEAST)).unwrap_or(i64::MAX)
}

/// Rounded up, since a client that comes back too early is refused again.
fn whole_seconds_up(wait: Duration) -> u64 {
    (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1)
}

#[cfg(test)]
mod tests {
    use governor::clock::FakeRelativeClock;

    use super::*;

    fn rates(per_identity: u32, per_scope: u32) -> (Rates<FakeRelativeClock>, FakeRelativeClock) {
        let clock = FakeRelativeClock::default();
        let most = |most| NonZeroU32::new(most).expect("a test's rate");
        (Rates::new(most(per_identity), most(per_scope), &clock), clock)
    }

    fn user(name: &str) -> UserName {
        name.parse().expect("a name")
    }

    /// How many of a thousand requests at this instant are taken.
    fn taken<K: Hash + Eq + Clone>(budgets: &Budgets<K, FakeRelativeClock>, key: &K) -> usize {
        (0..1000).filter(|_| budgets.spend(key).is_ok()).count()
    }

    #[test]
    fn a_budget_is_a_seconds_worth_and_fills_up_by_the_second() {
        let (rates, clock) = rates(100, 300);
        let ana = user("ana");
        assert_eq!(taken(&rates.identities, &ana), 100);
        clock.advance(Duration::from_millis(500));
        assert_eq!(taken(&rates.identities, &ana), 50);
        clock.advance(Duration::from_secs(3600));
        assert_eq!(taken(&rates.identities, &ana), 100, "rest isn't saved up");
    }

    #[test]
    fn budgets_are_apart() {
        let (rates, _clock) = rates(100, 300);
        let ana = user("ana");
        assert_eq!(taken(&rates.identities, &ana), 100);
        assert_eq!(taken(&rates.holders, &ana), 100, "a flood costs no heartbeat");
        assert_eq!(taken(&rates.identities, &user("bo")), 100);
        assert_eq!(taken(&rates.scopes, &"teams/a".parse().expect("a scope")), 300);
        assert_eq!(taken(&rates.scopes, &"teams/a/b".parse().expect("a scope")), 300);
    }

    #[test]
    fn a_refusal_says_in_whole_seconds_when_there_is_room_again() {
        let (rates, clock) = rates(1, 1);
        let ana = user("ana");
        let said = || rates.identities.spend(&ana).map_err(|failure| failure.to_string());
        assert_eq!(said(), Ok(()));
        let refused = "limit-reached: at most 1 requests a second of one identity, retry after 1";
        assert_eq!(said(), Err(refused.to_owned()));
        clock.advance(Duration::from_millis(999));
        assert_eq!(said(), Err(refused.to_owned()));
        clock.advance(Duration::from_millis(1));
        assert_eq!(said(), Ok(()));
        for (millis, seconds) in [(0, 1), (1, 1), (1000, 1), (1001, 2), (2000, 2)] {
            assert_eq!(whole_seconds_up(Duration::from_millis(millis)), seconds, "{millis}");
        }
    }

    #[test]
    fn budgets_that_nobody_spends_from_are_dropped() {
        let (rates, clock) = rates(100, 100);
        for n in 0..20 * KEPT_LEAST {
            clock.advance(Duration::from_millis(100));
            rates.identities.spend(&user(&format!("user{n}"))).expect("each asks once");
            let kept = rates.identities.limiter.len();
            assert!(kept <= KEPT_LEAST + 1, "{kept} after {n}");
        }
        // Those that are spent from stay, since they aren't full.
        let (rates, _clock) = self::rates(100, 100);
        let ana = user("ana");
        for _ in 0..10 * KEPT_LEAST {
            let _ = rates.identities.spend(&ana);
        }
        assert!(rates.identities.spend(&ana).is_err());
    }
}
