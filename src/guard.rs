//! What makes a target refuse a late write: guards for PostgreSQL, Redis and Git, as the programs
//! that run there, and a tower layer for HTTP services.
//!
//! One rule for all. A target keeps the newest fence token that it has seen of a lock. A lower one
//! is refused, an equal one accepted, and a holder CLAIMS its own, which makes it the newest,
//! before it reads what it is going to change. So whatever an older holder writes was written
//! before that reading, or is refused.
//!
//! Each guard compares and writes in one step of its target: a row that is locked until the
//! transaction ends, a script, a transaction of refs, a gate that waits. Fence tokens are below
//! 2^53 everywhere.
//! Deliberately absent: asking the server of Pearing. A target knows all that it needs from the
//! fence tokens themselves, and goes on when the server is away.

#[cfg(feature = "guard")]
mod file;
#[cfg(feature = "guard")]
mod gate;
#[cfg(feature = "guard")]
mod layer;
#[cfg(feature = "guard")]
mod store;

use crate::domain::scope::LockKey;

#[cfg(feature = "guard")]
pub use file::FileStore;
#[cfg(feature = "guard")]
pub use layer::{FenceLayer, FenceService, LOCK_HEADER, SCOPE_HEADER, TOKEN_HEADER};
#[cfg(feature = "guard")]
pub use store::{FenceStore, MemoryStore, StoreError};

/// SQL that makes `pearing.claim` and `pearing.guard`; how to use them is in it.
pub const POSTGRES: &str = include_str!("guard/postgres.sql");
/// The Redis script that claims, and that runs a command under a fence token.
pub const REDIS: &str = include_str!("guard/redis.lua");
/// The hook of a Git repository that is pushed to.
pub const GIT_HOOK: &str = include_str!("guard/pre-receive");

/// What the Git hook says first of a push that it refuses for its fence token.
pub const GIT_STALE: &str = "pearing: stale-fence: ";
/// What it says of a push that it lets through, which without it nobody would have judged.
pub const GIT_GUARDED: &str = "pearing: guarded";

/// A lock as one text, which names it at every target: `teams/platform/website/locks/deploy`.
pub fn lock_text(lock: &LockKey) -> String {
    format!("{}/locks/{}", lock.scope, lock.lock_name)
}

/// The ref that has a lock's newest fence token. What no ref may have in it is escaped, and between
/// scope and name stands what no scope has in it: no ref can be the folder of another.
pub fn git_fence_ref(lock: &LockKey) -> String {
    let text = format!("{}/=/{}", lock.scope, lock.lock_name);
    format!("refs/pearing/fence/{}", text.replace('.', "%2E").replace(':', "%3A"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_has_one_text_and_a_ref_that_git_takes() {
        let lock = LockKey {
            scope: "teams/platform/web.site".parse().expect("a scope"),
            lock_name: "a..b:c.lock".parse().expect("a name"),
        };
        assert_eq!(lock_text(&lock), "teams/platform/web.site/locks/a..b:c.lock");
        let name = git_fence_ref(&lock);
        assert_eq!(name, "refs/pearing/fence/teams/platform/web%2Esite/=/a%2E%2Eb%3Ac%2Elock");
        assert!(GIT_HOOK.contains(GIT_STALE.strip_prefix("pearing: ").expect("it says who")));
        assert!(GIT_HOOK.contains(GIT_GUARDED));
    }
}
