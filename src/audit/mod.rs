//! Audit: what proves and explains what happened, from the ledger alone.
//!
//! Everything here reads. It runs on a data directory, on a backup, on an exported file, and in a
//! server that holds the directory, since all of them are a [`Ledger`](crate::ledger::Ledger).
