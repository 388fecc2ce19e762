//! A command that runs as a process group of its own, which gets every signal that is meant for
//! it, and ends as shells tell it.
//!
//! It is started through this same program (`exec-child`), which first asks the kernel to kill it
//! when its parent dies, and then becomes the command. So a command that is run under a lock
//! doesn't go on when whoever kept the lock was killed. That holds for the command itself, and not
//! for what it has started: those processes end with the group, by [`Group::send`]. Nor does it
//! hold for a program that takes on another user's rights: there the kernel forgets what was asked.

mod leftover;

use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::os::unix::process::CommandExt as _;
use std::process::{ExitStatus, Stdio};

use nix::sys::signal::{SigSet, Signal as Blocked};
use rustix::process::{
    Pid, Signal, getpgrp, getpid, getppid, kill_process_group, set_parent_process_death_signal,
    test_kill_process_group,
};
use rustix::termios::{tcgetpgrp, tcsetpgrp};
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};

use super::signals::killed_by;
pub(super) use leftover::Leftover;

/// The exit code of a command that is there and can't be run, as shells give it.
const EXIT_NOT_RUN: u8 = 126;
/// The exit code of a command that isn't there, as shells give it.
const EXIT_NOT_FOUND: u8 = 127;
/// This program, also when its file has been replaced meanwhile.
const OWN_PROGRAM: &str = "/proc/self/exe";
/// What a process reads, before it becomes a command that has an input.
const WORD: u8 = b'\n';

/// A command, and what it finds.
pub(super) struct Order<'a> {
    /// The program and its arguments.
    pub(super) command: &'a [OsString],
    /// What it finds in its environment besides what this process has.
    pub(super) variables: Vec<(&'static str, String)>,
    /// What it reads on its stdin; left out, it reads what this process would.
    pub(super) input: Option<Vec<u8>>,
}

/// What a process is to do before it becomes a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Before {
    /// Whose death is to be its own.
    pub(super) parent: i32,
    /// Take the terminal, which this process has.
    pub(super) takes_terminal: bool,
    /// Wait for a word on stdin, ahead of the input. Without it, there is no command.
    pub(super) waits: bool,
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
    /// A command that has an input begins only after `is_made` was told its process group; were
    /// this process killed before that, it would never begin.
    ///
    /// # Errors
    /// No process can be made, or `is_made` fails: then the command doesn't begin.
    pub(super) fn start<E: From<io::Error>>(
        order: Order<'_>,
        is_made: impl FnOnce(Pid) -> Result<(), E>,
    ) -> Result<Self, E> {
        let has_terminal = order.input.is_none() && has_terminal();
        let mut command = Command::new(OWN_PROGRAM);
        command.arg0("pearing-cli").arg("exec-child").arg(getpid().as_raw_nonzero().to_string());
        if has_terminal {
            command.arg("--takes-terminal");
        }
        if order.input.is_some() {
            command.arg("--waits").stdin(Stdio::piped());
        }
        command.arg("--").args(order.command);
        command.envs(order.variables);
        command.process_group(0);
        let mut child = command.spawn()?;
        let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let id = pid.expect("it has not been waited for");
        is_made(id)?;
        if let (Some(input), Some(mut stdin)) = (order.input, child.stdin.take()) {
            tokio::spawn(async move {
                let all = [&[WORD], &input[..]].concat();
                // A command that doesn't read its input is no fault.
                let _ = stdin.write_all(&all).await;
            });
        }
        Ok(Self { child, id, has_terminal })
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
            take_back_terminal(self.id);
        }
        Ok(exit_code(status))
    }
}

/// Sends a signal to a process group. One that is gone is none to be sent to.
fn send(group: Pid, signal: Signal) {
    let _ = kill_process_group(group, signal);
}

fn exit_code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt as _;

    match (status.code(), status.signal()) {
        (Some(code), _) => u8::try_from(code).unwrap_or(u8::MAX),
        (None, signal) => killed_by(signal.unwrap_or_default()),
    }
}

/// Whether this process has the terminal, and has it for the command alone: where its results go
/// elsewhere, a pager for one, that program may want to read from it.
fn has_terminal() -> bool {
    let stdin = io::stdin();
    stdin.is_terminal() && io::stdout().is_terminal() && tcgetpgrp(&stdin) == Ok(getpgrp())
}

/// Takes the terminal back, so that whoever started this process reads from it again; unless
/// somebody else has it by now.
fn take_back_terminal(from: Pid) {
    if tcgetpgrp(io::stdin()) == Ok(from) {
        take_terminal();
    }
}

/// Has the terminal read by this process's group.
fn take_terminal() {
    // A process in the background is stopped for this, unless it has that signal blocked.
    let mut blocked = SigSet::empty();
    blocked.add(Blocked::SIGTTOU);
    if blocked.thread_block().is_ok() {
        let _ = tcsetpgrp(io::stdin(), getpgrp());
        let _ = blocked.thread_unblock();
    }
}

/// Becomes the command. Returns only if that can't be: the exit code that shells give, and why.
pub(super) fn become_command(before: Before, command: &[OsString]) -> (u8, String) {
    let Some((program, arguments)) = command.split_first() else {
        return (EXIT_NOT_FOUND, "there is no command".to_owned());
    };
    let name = program.to_string_lossy();
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return (EXIT_NOT_RUN, format!("{name}: {error}"));
    }
    let orphaned = || (killed_by(Signal::KILL.as_raw()), format!("{name}: its parent is gone"));
    // It may have died before that was asked for.
    if getppid().is_none_or(|now| now.as_raw_nonzero().get() != before.parent) {
        return orphaned();
    }
    // By the command's own process, so that it never finds itself without.
    if before.takes_terminal {
        take_terminal();
    }
    // No more than the word: what follows is the command's.
    if before.waits && rustix::io::read(io::stdin(), &mut [0; 1]) != Ok(1) {
        return orphaned();
    }
    let error = std::process::Command::new(program).args(arguments).exec();
    let is_missing = error.kind() == io::ErrorKind::NotFound;
    let code = if is_missing { EXIT_NOT_FOUND } else { EXIT_NOT_RUN };
    (code, format!("{name}: {error}"))
}
