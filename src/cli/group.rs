//! A command that runs as a process group of its own, which gets every signal that is meant for
//! it, and ends as shells tell it.
//!
//! It is started through this same program (`exec-child`), which first asks the kernel to kill it
//! when its parent dies, and then becomes the command. So a command that is run under a lock
//! doesn't go on when whoever kept the lock was killed. That holds for the command itself, and not
//! for what it has started: those processes end with the group, by [`Group::send`]. Nor does it
//! hold for a program that takes on another user's rights: there the kernel forgets what was asked.
//! At a terminal it is a job as any other: stopped from there, it stops this process with it, so
//! that nobody heartbeats for what doesn't go on.

mod leftover;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::os::unix::process::CommandExt as _;
use std::process::{ExitStatus, Stdio};

use nix::sys::signal::{SigSet, Signal as Blocked};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpgrp, getpid, getppid, kill_process_group,
    set_parent_process_death_signal, test_kill_process_group, waitid,
};
use rustix::termios::{tcgetpgrp, tcsetpgrp};
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, ChildStdin, Command};
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};

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

/// A running command, with whatever it starts in its process group. Killed when it is dropped
/// before its end: then nobody keeps the lock any more.
pub(super) struct Group {
    child: Child,
    id: Pid,
    /// What the command is to read, until it begins.
    input: Option<(ChildStdin, Vec<u8>)>,
    has_ended: bool,
    /// Whether the command was started with the terminal.
    is_at_terminal: bool,
    /// Tells that a child has ended, or was stopped.
    of_children: Signals,
}

impl Group {
    /// Starts a command. One that can't be run ends at once, with the exit code that shells give.
    /// A command that has an input waits for [`Group::begin`]: were this process killed before
    /// that, it would never begin.
    ///
    /// # Errors
    /// No process can be made.
    pub(super) fn start(order: Order<'_>) -> io::Result<Self> {
        // Whoever started this process may have had the ends of its children ignored.
        let of_children = signal(SignalKind::child())?;
        let is_at_terminal = order.input.is_none() && has_terminal();
        let mut command = Command::new(OWN_PROGRAM);
        command.arg0("pearing-cli").arg("exec-child").arg(getpid().as_raw_nonzero().to_string());
        if is_at_terminal {
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
        let input = child.stdin.take().zip(order.input);
        Ok(Self { child, id, input, has_ended: false, is_at_terminal, of_children })
    }

    /// The process group.
    pub(super) fn id(&self) -> Pid {
        self.id
    }

    /// Lets a command begin that has an input.
    pub(super) fn begin(&mut self) {
        if let Some((mut stdin, input)) = self.input.take() {
            tokio::spawn(async move {
                let all = [&[WORD], &input[..]].concat();
                // A command that doesn't read its input is no fault.
                let _ = stdin.write_all(&all).await;
            });
        }
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

    /// Passes a signal on. A command that is stopped is woken to end by it.
    pub(super) fn forward(&self, signal: Signal) {
        self.send(signal);
        if [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT].contains(&signal) {
            self.send(Signal::CONT);
        }
    }

    /// Whether a process of the group is left that has not ended.
    pub(super) fn is_alive(&self) -> bool {
        test_kill_process_group(self.id).is_ok()
            && !leftover::members(self.id.as_raw_nonzero().get()).is_empty()
    }

    /// Waits until the command has ended; what it left behind in its group may go on. Says the
    /// exit code as shells do: its own, or 128 and the number of the signal. With `None` it was
    /// stopped, at the terminal.
    ///
    /// # Errors
    /// It can't be waited for.
    pub(super) async fn ended(&mut self) -> io::Result<Option<u8>> {
        let status = loop {
            tokio::select! {
                status = self.child.wait() => break status?,
                _ = self.of_children.recv() => match stopped_by(self.id) {
                    Some(_) if self.is_at_terminal => return Ok(None),
                    // It wants to read from the terminal, which this process has after all.
                    Some(signal) if [Signal::TTIN, Signal::TTOU].contains(&signal) => {
                        if is_in_foreground() {
                            self.is_at_terminal = true;
                            self.carry_on();
                        }
                    }
                    Some(_) | None => {}
                }
            }
        };
        self.has_ended = true;
        if self.is_at_terminal {
            take_back_terminal(self.id);
        }
        Ok(Some(exit_code(status)))
    }

    /// Stops this process too, as the terminal's shell expects it of a job, and returns when it is
    /// continued. Where no shell would continue it, it isn't stopped.
    pub(super) fn stop_with_it(&self) {
        take_back_terminal(self.id);
        send(getpgrp(), Signal::TSTP);
    }

    /// Continues the command, with the terminal if this process has it again.
    pub(super) fn carry_on(&self) {
        if is_in_foreground() {
            hand_terminal_to(self.id);
        }
        self.send(Signal::CONT);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.has_ended {
            self.send(Signal::KILL);
        }
    }
}

/// What stopped a child since this was last asked, if it was stopped.
fn stopped_by(child: Pid) -> Option<Signal> {
    let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
    let status = waitid(WaitId::Pid(child), options).ok()??;
    Signal::from_named_raw(status.stopping_signal()?)
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

/// The terminal that this process can be controlled from.
fn terminal() -> Option<File> {
    File::options().read(true).write(true).open("/dev/tty").ok()
}

/// Whether a command is to have the terminal from its beginning: where results go elsewhere, to a
/// pager for one, another program may want to read from it.
fn has_terminal() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal() && is_in_foreground()
}

/// Whether it is this process's group that reads from the terminal.
fn is_in_foreground() -> bool {
    terminal().is_some_and(|terminal| tcgetpgrp(terminal) == Ok(getpgrp()))
}

/// Takes the terminal back, so that whoever started this process reads from it again; unless
/// somebody else has it by now.
fn take_back_terminal(from: Pid) {
    if terminal().is_some_and(|terminal| tcgetpgrp(terminal) == Ok(from)) {
        hand_terminal_to(getpgrp());
    }
}

/// Has the terminal read by a process group.
fn hand_terminal_to(group: Pid) {
    // A process in the background is stopped for this, unless it has that signal blocked.
    let mut blocked = SigSet::empty();
    blocked.add(Blocked::SIGTTOU);
    if let Some(terminal) = terminal()
        && blocked.thread_block().is_ok()
    {
        let _ = tcsetpgrp(terminal, group);
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
        hand_terminal_to(getpgrp());
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
