//! A process of a test's own: its log as it comes, signals, and its exit code.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};

use rustix::process::{Pid, Signal, kill_process};

use super::PATIENCE;

pub(crate) const SIGKILL: Signal = Signal::KILL;
pub(crate) const SIGTERM: Signal = Signal::TERM;

/// What a process has said on stderr so far.
#[derive(Default)]
struct Log {
    lines: Vec<String>,
    /// The process, and whoever inherited its stderr, is gone.
    is_closed: bool,
}

/// A running process. It is killed when it is dropped.
pub(crate) struct Process {
    child: Child,
    log: Arc<(Mutex<Log>, Condvar)>,
}

impl Process {
    /// Starts a command whose stderr is its log.
    pub(crate) fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        let stderr = child.stderr.take().expect("stderr is piped");
        let log = Arc::new((Mutex::new(Log::default()), Condvar::new()));
        let (writes, reads) = (Arc::clone(&log), BufReader::new(stderr));
        // It ends by itself, with the process.
        let reader = std::thread::Builder::new().name("test-log".to_owned()).spawn(move || {
            let (log, changed) = &*writes;
            for line in reads.lines().map_while(Result::ok) {
                log.lock().expect("no reader panics").lines.push(line);
                changed.notify_all();
            }
            log.lock().expect("no reader panics").is_closed = true;
            changed.notify_all();
        });
        reader.expect("there can be a further thread");
        Self { child, log }
    }

    /// What is found in a line of the log, as soon as there is such a line.
    pub(crate) fn wait_for<T>(&self, what: &str, find: impl Fn(&str) -> Option<T>) -> T {
        let (log, changed) = &*self.log;
        let found = |log: &Log| log.lines.iter().find_map(|line| find(line));
        let log = log.lock().expect("no writer panics");
        let (log, _) = changed
            .wait_timeout_while(log, PATIENCE, |log| found(log).is_none() && !log.is_closed)
            .expect("no writer panics");
        found(&log).unwrap_or_else(|| panic!("no {what} in the log:\n{}", log.lines.join("\n")))
    }

    /// All of the log so far.
    pub(crate) fn log(&self) -> String {
        self.log.0.lock().expect("no writer panics").lines.join("\n")
    }

    /// Its number in the list of processes.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal to this process alone.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("a child that was not waited for can be signalled");
    }

    /// The exit code, once the process has ended; `None` if a signal ended it.
    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        let (log, changed) = &*self.log;
        let log = log.lock().expect("no writer panics");
        let (log, waited) = changed
            .wait_timeout_while(log, PATIENCE, |log| !log.is_closed)
            .expect("no writer panics");
        assert!(!waited.timed_out(), "still running:\n{}", log.lines.join("\n"));
        self.child.wait().expect("a child can be waited for").code()
    }
}

impl Drop for Process {
    #[expect(clippy::print_stderr, reason = "a failed test shows what its server said")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the log of process {}:\n{}", self.child.id(), self.log());
        }
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
