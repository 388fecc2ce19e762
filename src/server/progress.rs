//! Shows on a terminal how far long work has come. Elsewhere it says nothing.

use indicatif::{ProgressBar, ProgressStyle};

use crate::audit::Progress;
use crate::domain::id::Sequence;

/// A line on stderr that shows how far the work is.
pub(super) struct Bar {
    verb: &'static str,
    bar: ProgressBar,
}

impl Bar {
    /// For work of this name.
    pub(super) fn new(verb: &'static str) -> Self {
        Self { verb, bar: ProgressBar::hidden() }
    }
}

impl Progress for Bar {
    fn begin(&mut self, last: Option<Sequence>) {
        // It draws nothing where stderr is no terminal.
        let (bar, form) = match last {
            Some(last) => {
                (ProgressBar::new(last.0), "{msg} {wide_bar} record {pos} of {len}, {eta} left")
            }
            None => (ProgressBar::no_length(), "{msg} {spinner} record {pos}, {elapsed}"),
        };
        let style = ProgressStyle::with_template(form).expect("the forms are right");
        self.bar = bar.with_style(style).with_message(self.verb);
    }

    fn reach(&mut self, sequence: Sequence) {
        self.bar.set_position(sequence.0);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
