//! JSON that leaves the process: one shape for each thing, used by the server and the client.
//!
//! A shape is written down once, so what the server says is what the client reads. Field names
//! and their order are fixed; from the first release on no field is renamed or taken away.
//! Here are also the two tables that every surface takes its words from, [`problem`] and
//! [`operation`], and the documents that are made from all of it, [`contract`].
//! Deliberately absent: rules and access.
pub mod activity;
pub mod admin;
pub mod ask;
pub mod checkpoint;
pub mod cloud_event;
pub mod contract;
pub mod health;
pub mod list;
pub mod lock;
pub mod operation;
pub mod problem;
pub mod request;
pub mod sse;
pub mod state;
pub mod thread;
pub mod ticket;
pub mod token;
pub mod verification;
pub mod view;
pub mod who;
pub mod why;
