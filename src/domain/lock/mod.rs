//! The life of a ticket: one file per operation.

pub(super) mod acquire;
pub(super) mod heartbeat;
mod promote;
pub(super) mod release;
mod settle;
mod wait_graph;

pub use settle::settle;
