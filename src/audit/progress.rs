//! Where long work tells how far it has come.

use crate::domain::id::Sequence;

/// Hears how far long work has come.
pub trait Progress {
    /// It begins, and goes as far as `last`, if that is known.
    fn begin(&mut self, last: Option<Sequence>);
    /// It has come as far as `sequence`.
    fn reach(&mut self, sequence: Sequence);
    /// Whether the work is to end before it is done.
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Nobody listens.
pub struct Silent;

impl Progress for Silent {
    fn begin(&mut self, _: Option<Sequence>) {}

    fn reach(&mut self, _: Sequence) {}
}
