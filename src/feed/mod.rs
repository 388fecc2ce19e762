//! The feed: every event, once and in order, to whoever may see it.
//!
//! Deliberately absent: a queue for each reader. There is the ledger and the end of it in memory,
//! which all share, so that a slow reader costs nobody anything.
pub mod filter;
pub mod live;
pub mod subscription;
