//! The one integration binary: what no single module can promise alone.

mod cli;
mod crash;
mod feed;
mod http;
mod race;
mod scenario;
mod simulation;
mod support;
mod sync;
mod tidy;
mod timers;
