//! JSON that leaves the process: one shape for each thing, used by the server and the client.
//!
//! A shape is written down once, so what the server says is what the client reads. Field names
//! and their order are fixed; from the first release on no field is renamed or taken away.
//! Deliberately absent: rules, access, and the words of the command line.
pub mod activity;
pub mod admin;
pub mod cloud_event;
pub mod list;
pub mod lock;
pub mod problem;
pub mod sse;
pub mod thread;
pub mod ticket;
pub mod token;
pub mod view;
