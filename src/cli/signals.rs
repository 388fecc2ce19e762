//! The signals that ask a command to stop, for those commands that have something to put right
//! before they end. From the first call on, the process no longer ends by them.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that ask a command to stop.
pub(super) struct Stop([(i32, Signal); 4]);

impl Stop {
    /// Listens from now on.
    pub(super) fn listen() -> std::io::Result<Self> {
        let on = |kind: SignalKind| Ok::<_, std::io::Error>((kind.as_raw_value(), signal(kind)?));
        Ok(Self([
            on(SignalKind::interrupt())?,
            on(SignalKind::terminate())?,
            on(SignalKind::hangup())?,
            on(SignalKind::quit())?,
        ]))
    }

    /// The number of the next signal.
    pub(super) async fn next(&mut self) -> i32 {
        let [(int, on_int), (term, on_term), (hup, on_hup), (quit, on_quit)] = &mut self.0;
        tokio::select! {
            _ = on_int.recv() => *int,
            _ = on_term.recv() => *term,
            _ = on_hup.recv() => *hup,
            _ = on_quit.recv() => *quit,
        }
    }
}

/// The exit code of a process that a signal ends.
pub(super) fn killed_by(number: i32) -> u8 {
    u8::try_from(128 + number).unwrap_or(u8::MAX)
}
