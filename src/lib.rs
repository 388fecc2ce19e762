//! Pearing: an event-sourced lock ledger.
pub mod domain;
pub mod ledger;
pub mod random;
pub mod wire;
