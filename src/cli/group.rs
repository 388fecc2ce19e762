//! A command that runs as a process group of its own, which gets every signal that is meant for
//! it, and ends as shells tell it.
//!
//! It is started through this same program (`exec-child`), which first asks the kernel to kill it
//! when its parent dies, and then becomes the command. So a command that is run under a lock
//! doesn't go on when whoever kept the lock was killed. That holds for the command itself, and not
//! for what it has started: those processes end with the group, by [`Group::send`].
//! Deliberately absent: stopping. A command that is stopped from the terminal keeps its lease.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::os::unix::process::CommandExt as _;
use std::process::{ExitStatus, Stdio};

use nix::sys::signal::{SigSet, Signal as Blocked};
use rustix::process::{
    Pid, Signal, getpid, getppid, kill_process_group, set_parent_process_death_signal,
    test_kill_process_group,
};
use rustix::termios::{tcgetpgrp, tcsetpgrp};
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};

use super::signals::killed_by;

/// The exit code of a command that is there and can't be run, as shells give it.
const EXIT_NOT_RUN: u8 = 126;
/// The exit code of a command that isn't there, as shells give it.
const EXIT_NOT_FOUND: u8 = 127;

/// A command, and what it finds.
pub(super) struct Order<'a> {
    /// The program and its arguments.
    pub(super) command: &'a [OsString],
    /// What it finds in its environment besides what this process has.
    pub(super) variables: &'a [(&'static str, String)],
    /// What it reads on its stdin; left out, it reads what this process would.
    pub(super) input: Option<Vec<u8>>,
}

/// A running command, with whatever it starts in its process group.
pub(super) struct Group {
    child: Child,
    id: Pid,
    /// Whether the terminal was handed to the command.
    has_terminal: bool,
}

impl Group {
    /// Starts a command. One that can't be run ends at once, with the exit code that shells give.
    ///
    /// # Errors
    /// No process can be made.
    pub(super) fn start(order: Order<'_>) -> io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("exec-child").arg(getpid().as_raw_nonzero().to_string());
        command.arg("--").args(order.command);
        command.envs(order.variables.iter().map(|(name, value)| (*name, value)));
        command.process_group(0);
        if order.input.is_some() {
            command.stdin(Stdio::piped());
        }
        let mut child = command.spawn()?;
        let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let id = pid.expect("it has not been waited for");
        if let (Some(input), Some(mut stdin)) = (order.input, child.stdin.take()) {
            tokio::spawn(async move {
                // A command that doesn't read its input is no fault.
                let _ = stdin.write_all(&input).await;
            });
        }
        let has_terminal = hand_over_terminal(id);
        Ok(Self { child, id, has_terminal })
    }

    /// The process group.
    pub(super) fn id(&self) -> Pid {
        self.id
    }

    /// Sends a signal to every process of the group that is left.
    pub(super) fn send(&self, signal: Signal) {
        send(self.id, signal);
    }

    /// Asks every process to end. One that is stopped is woken to hear it.
    pub(super) fn ask_to_end(&self) {
        self.send(Signal::TERM);
        self.send(Signal::CONT);
    }

    /// Whether a process of the group is left.
    pub(super) fn is_alive(&self) -> bool {
        test_kill_process_group(self.id).is_ok()
    }

    /// Waits until the command has ended; what it left behind in its group may go on. Says the
    /// exit code as shells do: its own, or 128 and the number of the signal.
    ///
    /// # Errors
    /// It can't be waited for.
    pub(super) async fn ended(&mut self) -> io::Result<u8> {
        let status = self.child.wait().await?;
        if std::mem::take(&mut self.has_terminal) {
            take_back_terminal();
        }
        Ok(exit_code(status))
    }
}

/// Sends a signal to a process group. One that is gone is none to be sent to.
pub(super) fn send(group: Pid, signal: Signal) {
    let _ = kill_process_group(group, signal);
}

fn exit_code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt as _;

    match (status.code(), status.signal()) {
        (Some(code), _) => u8::try_from(code).unwrap_or(u8::MAX),
        (None, signal) => killed_by(signal.unwrap_or_default()),
    }
}

/// Lets a command read from the terminal, if this process may.
fn hand_over_terminal(to: Pid) -> bool {
    let stdin = io::stdin();
    let own = rustix::process::getpgrp();
    stdin.is_terminal() && tcgetpgrp(&stdin) == Ok(own) && tcsetpgrp(&stdin, to).is_ok()
}

/// Takes the terminal back, so that whoever started this process reads from it again.
fn take_back_terminal() {
    // A process in the background is stopped for this, unless it has that signal blocked.
    let mut blocked = SigSet::empty();
    blocked.add(Blocked::SIGTTOU);
    if blocked.thread_block().is_ok() {
        let _ = tcsetpgrp(io::stdin(), rustix::process::getpgrp());
        let _ = blocked.thread_unblock();
    }
}

/// Becomes the command, which is killed when `parent` dies. Returns only if that can't be: the
/// exit code that shells give, and why.
pub(super) fn become_command(parent: i32, command: &[OsString]) -> (u8, String) {
    let Some((program, arguments)) = command.split_first() else {
        return (EXIT_NOT_FOUND, "there is no command".to_owned());
    };
    let name = program.to_string_lossy();
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return (EXIT_NOT_RUN, format!("{name}: {error}"));
    }
    // It may have died before that was asked for.
    if getppid().is_none_or(|now| now.as_raw_nonzero().get() != parent) {
        return (killed_by(Signal::KILL.as_raw()), format!("{name}: its parent is gone"));
    }
    let error = std::process::Command::new(program).args(arguments).exec();
    let is_missing = error.kind() == io::ErrorKind::NotFound;
    let code = if is_missing { EXIT_NOT_FOUND } else { EXIT_NOT_RUN };
    (code, format!("{name}: {error}"))
}
