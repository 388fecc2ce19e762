//! Draws what happened to a lock, or to all locks of a scope: who held it when and under which
//! fence token, who waited, and how each ticket ended.
//!
//! [`Timeline::read`] reads the events of just those locks; [`svg`] and [`terminal`] draw what it
//! found. Both draw the same rows on the same axis. A picture depends on the ledger and on what
//! was asked for, never on the clock or the place, so it is the same bytes for ever.
//!
//! Deliberately absent: rules. What is drawn is what the events say.

mod axis;
mod fold;
mod marks;
mod model;
mod paint;
mod rows;
mod svg;
mod terminal;
mod words;
mod xml;

pub use model::{Range, TICKETS_MAX, Timeline, Unread};
pub use svg::svg;
pub use terminal::{COLUMNS, COLUMNS_LEAST, COLUMNS_MOST, Colours, terminal};

#[cfg(test)]
mod reading;
#[cfg(test)]
mod stories;
#[cfg(test)]
mod story;
#[cfg(test)]
mod terminal_tests;
#[cfg(test)]
mod tests;
