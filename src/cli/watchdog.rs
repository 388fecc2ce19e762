//! Ends a command that hangs where no timer of its own can end it: in a call of the system that
//! waits, for a file on a server that is gone, say.

use std::io::{self, Write as _};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Builder;
use std::time::Duration;

use super::output::visible;

/// Ends the process in time, unless it is dropped before.
pub(super) struct Watchdog(#[expect(dead_code, reason = "its end is the word")] Sender<()>);

impl Watchdog {
    /// Watches from now on. The process ends with this exit code, and says why.
    ///
    /// # Errors
    /// There can be no thread.
    pub(super) fn start(after: Duration, exit_code: u8, why: &'static str) -> io::Result<Self> {
        let (word, heard) = channel();
        Builder::new().name("watchdog".to_owned()).spawn(move || {
            if hangs(&heard, after) {
                // Nobody may read it; the exit code counts.
                let _ = writeln!(io::stderr(), "pearing-cli: {}", visible(why));
                std::process::exit(exit_code.into());
            }
        })?;
        Ok(Self(word))
    }
}

/// Whether no word has come in time.
fn hangs(heard: &Receiver<()>, after: Duration) -> bool {
    heard.recv_timeout(after) == Err(RecvTimeoutError::Timeout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_in_time_is_left_alone() {
        let (word, heard) = channel();
        assert!(hangs(&heard, Duration::ZERO));
        drop(word);
        assert!(!hangs(&heard, Duration::MAX));
    }
}
