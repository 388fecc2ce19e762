//! The feed: every event, once and in order, to whoever may see it.
//!
//! Deliberately absent: frames on the wire, which the surface writes; and any copy of events
//! besides the ledger, so that a slow reader costs nobody anything.
pub mod filter;
pub mod subscription;
