//! Pearing: an event-sourced lock ledger.
#[cfg(feature = "client")]
pub mod cli;
#[cfg(feature = "client")]
pub mod client;
pub mod clock;
pub mod domain;
#[cfg(feature = "server")]
pub mod feed;
#[cfg(feature = "server")]
pub mod http;
pub mod ledger;
#[cfg(feature = "server")]
pub mod projection;
pub mod random;
#[cfg(feature = "server")]
pub mod service;
pub mod wire;
