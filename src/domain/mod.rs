//! The pure core: no clock, no random number, no IO.
//!
//! [`decide`] turns a command into events or a refusal; [`settle`] says what comes due; [`State`]
//! folds events. Time, ids and what is over come in as arguments, so the same ledger gives the
//! same state on every machine, for ever.

pub mod access;
pub mod activity;
pub mod command;
mod decide;
pub mod event;
pub(crate) mod hex;
pub mod id;
pub mod invariant;
pub mod lawful;
mod lock;
pub mod name;
#[cfg(feature = "planted-bugs")]
pub mod planted;
pub mod refusal;
pub mod scope;
mod state;
pub mod text;
pub mod thread;
pub mod ticket;
pub mod time;

pub use decide::{Answer, At, Decision, Limits, Past, decide};
pub use lock::settle;
pub use state::{Hold, Lock, Place, Snapshot, State};
