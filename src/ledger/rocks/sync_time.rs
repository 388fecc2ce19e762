//! How long RocksDB writes and syncs its log during a write.
//!
//! Writing and syncing is one call of RocksDB, and what it does in memory is part of it too. Its
//! own count for the thread that writes tells the log apart from the rest. It can't tell the log's
//! write from its sync: the write goes to the page cache, and takes microseconds.

use rocksdb::perf::{PerfContext, PerfMetric, PerfStatsLevel, set_perf_stats};

/// Counts from its beginning to its end, on this thread only.
pub(super) struct SyncTime {
    context: PerfContext,
    before: u64,
}

impl SyncTime {
    pub(super) fn begin() -> Self {
        // Only for this write: reads need no counting, which would read the clock for each. The
        // levels of the binding are one below those of RocksDB, where this one is
        // kEnableTimeExceptForMutex.
        set_perf_stats(PerfStatsLevel::EnableTimeAndCPUTimeExceptForMutex);
        let context = PerfContext::default();
        let before = context.metric(PerfMetric::WriteWalTime);
        Self { context, before }
    }

    /// The time since then, in nanoseconds.
    pub(super) fn end(self) -> u64 {
        set_perf_stats(PerfStatsLevel::Disable);
        self.context.metric(PerfMetric::WriteWalTime).saturating_sub(self.before)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::super::{Ledger as _, samples::append_to};
    use super::super::RocksLedger;

    #[test]
    fn each_append_says_how_long_its_own_log_took() {
        let base = tempfile::tempdir().expect("a temporary directory");
        let ledger = RocksLedger::create(&base.path().join("a")).expect("a new ledger");
        assert_eq!(ledger.last_sync(), Some(Duration::ZERO));
        let appended = (0..3).map(|_| {
            ledger.append(&append_to(&ledger, 1, Vec::new())).expect("an append");
            ledger.last_sync().expect("it is on disk")
        });
        let appended: Vec<Duration> = appended.collect();
        assert!(appended.iter().all(|sync| !sync.is_zero()), "{appended:?}");
        assert!(appended.windows(2).all(|two| two[0] != two[1]), "each anew: {appended:?}");
    }
}
