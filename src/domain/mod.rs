//! The pure core: no clock, no random number, no IO.
pub mod access;
pub mod command;
pub mod event;
pub mod id;
pub mod name;
pub mod refusal;
pub mod scope;
pub mod text;
pub mod ticket;
pub mod time;
