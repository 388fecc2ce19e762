//! Audit: what proves and explains what happened, from the ledger alone.
//!
//! What proves and explains only reads; `copy`, `rebuild` and `export` write what can be verified
//! in its turn. All of it runs on a data directory, on a backup, on an exported file, and in a
//! server that holds the directory, since all of them are a [`Ledger`](crate::ledger::Ledger).

mod check;
pub mod checkpoint;
mod copy;
mod difference;
mod export;
mod fault;
mod lines;
mod progress;
mod rebuild;
mod replay;
mod source;
mod tables;
pub mod timeline;
pub mod verify;
pub mod who;
pub mod why;

pub use copy::{Copied, backup, copy};
pub use difference::{Change, Divergence, differences, divergence};
pub use export::{Form, LineWriter, export, export_to_file};
pub use fault::{AuditError, Fault, FaultKind};
pub use lines::{Line, Lines};
pub use progress::{Progress, Silent};
pub use rebuild::rebuild;
pub use replay::{Replay, Step};
pub use source::{Records, Source};
