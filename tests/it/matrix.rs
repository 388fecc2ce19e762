//! Who may do what: every asker, every route and command, every relation to what is asked for.
//!
//! What is expected is worked out from a few rules (`rules`), which know nothing of the server. A
//! route or a command without a row here fails, and so does a row without its route or command.

mod askers;
mod cells;
mod commands;
mod lists;
mod rows;
mod rules;
mod visibility;
mod world;
