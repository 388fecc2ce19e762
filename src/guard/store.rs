//! Where the newest fence token of each lock is kept.
//!
//! A service that keeps its state in a database had better guard there, where a claim and a write
//! are one transaction; these are for one that doesn't.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, PoisonError};

use crate::domain::id::FenceToken;
use crate::domain::scope::LockKey;

/// The store can't say which fence token is the newest, so nothing can be admitted.
#[derive(Debug, thiserror::Error)]
#[error("the newest fence token can't be kept: {0}")]
pub struct StoreError(#[from] pub io::Error);

/// Keeps the newest fence token of each lock.
pub trait FenceStore: Send + Sync + 'static {
    /// Raises the newest fence token of a lock to `fence`, unless it is as great already, and says
    /// which is the newest now. One step, whoever else asks; what it has said is not forgotten.
    ///
    /// # Errors
    /// It can't be kept, or not be found out.
    fn raise(
        &self,
        lock: &LockKey,
        fence: FenceToken,
    ) -> impl Future<Output = Result<FenceToken, StoreError>> + Send;
}

/// Keeps them in memory: enough where the state that is guarded doesn't outlive the process either.
/// After a restart it takes any fence token for the newest, so whoever was late gets through until
/// the present holder has claimed again.
#[derive(Debug, Default)]
pub struct MemoryStore(Mutex<HashMap<LockKey, FenceToken>>);

impl FenceStore for MemoryStore {
    async fn raise(&self, lock: &LockKey, fence: FenceToken) -> Result<FenceToken, StoreError> {
        // Nothing panics while it is locked.
        let mut newest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let newest = newest.entry(lock.clone()).or_insert(fence);
        *newest = fence.max(*newest);
        Ok(*newest)
    }
}
