//! The signals that ask a command to stop, for those commands that have something to put right
//! before they end, or that pass them on. From the first call on, the process no longer ends by
//! them. One that was ignored when the process began stays ignored, as by nohup, and in a job that
//! a script runs in the background.

use std::task::Poll;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that ask a command to stop.
pub(super) struct Stop {
    signals: Vec<(i32, Signal)>,
    last: Option<i32>,
}

impl Stop {
    /// Listens from now on.
    pub(super) fn listen() -> std::io::Result<Self> {
        Self::to(&[
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::hangup(),
            SignalKind::quit(),
        ])
    }

    /// Listens from now on, also to those that mean whatever a program takes them for.
    pub(super) fn listen_for_another() -> std::io::Result<Self> {
        let mut stop = Self::listen()?;
        let more = Self::to(&[SignalKind::user_defined1(), SignalKind::user_defined2()])?;
        stop.signals.extend(more.signals);
        Ok(stop)
    }

    fn to(kinds: &[SignalKind]) -> std::io::Result<Self> {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = ignored(&status);
        let is_heard = |kind: &&SignalKind| ignored >> (kind.as_raw_value() - 1) & 1 == 0;
        let on = |kind: &SignalKind| Ok((kind.as_raw_value(), signal(*kind)?));
        let signals = kinds.iter().filter(is_heard).map(on).collect::<std::io::Result<_>>()?;
        Ok(Self { signals, last: None })
    }

    /// The number of the next signal.
    pub(super) async fn next(&mut self) -> i32 {
        std::future::poll_fn(|cx| {
            for (number, signal) in &mut self.signals {
                if signal.poll_recv(cx).is_ready() {
                    self.last = Some(*number);
                    return Poll::Ready(*number);
                }
            }
            Poll::Pending
        })
        .await
    }

    /// The number of the last signal that came, if one did.
    pub(super) fn last(&self) -> Option<i32> {
        self.last
    }
}

/// The signals that a process ignores, by what the kernel says of it: the lowest bit is signal 1.
fn ignored(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// The exit code of a process that a signal ends.
pub(super) fn killed_by(number: i32) -> u8 {
    u8::try_from(128 + number).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_read_from_what_the_kernel_says() {
        let status = "Name:\tsh\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000007\n";
        assert_eq!(ignored(status), 0b111);
        assert_eq!(ignored("Name:\tsh\n"), 0);
    }
}
