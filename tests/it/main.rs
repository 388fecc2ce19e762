//! The one integration binary: what no single module can promise alone.
#![cfg(feature = "server")]

mod scenario;
mod simulation;
mod tidy;
