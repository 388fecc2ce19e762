//! The one integration binary: what no single module can promise alone.
#![expect(clippy::print_stdout, reason = "tests tell what they measured")]

mod agents;
mod canary;
mod checkpoint;
mod cli;
mod client;
mod crash;
mod docs;
mod feed;
mod frozen;
mod guard;
mod http;
mod logs;
mod long_work;
mod loss;
mod matrix;
mod mcp;
mod metrics;
mod outside;
mod race;
mod replay;
mod respond;
mod scenario;
mod simulation;
mod support;
mod sync;
mod tidy;
mod timers;
mod why;
