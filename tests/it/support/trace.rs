//! What the kernel saw of a server, as strace wrote it down.
//!
//! In strace's output the order of lines is the order of events: a thread goes on only after its
//! event was written down. So for each answer it can be shown that some sync of the log began
//! after the request had been read and ended before the answer was written.

use std::collections::HashMap;

/// The options of strace that make such a trace.
pub(crate) const OPTIONS: [&str; 5] = [
    "-y",
    "-s",
    "16",
    "-e",
    "trace=fdatasync,fsync,sync_file_range,read,recvfrom,recvmsg,write,writev,sendto,sendmsg",
];

/// A server's commands and syncs.
#[derive(Debug)]
pub(crate) struct Trace {
    /// The calls, in order of their ends.
    calls: Vec<Call>,
    answers: Vec<Answer>,
}

impl Trace {
    /// Reads a trace.
    pub(crate) fn read(text: &str) -> Self {
        let calls = calls(text);
        let answers = answers(&calls);
        Self { calls, answers }
    }

    /// How many answers of 2xx there were to requests that change something.
    pub(crate) fn answers(&self) -> usize {
        self.answers.len()
    }

    /// How often the log was synced.
    pub(crate) fn log_syncs(&self) -> usize {
        self.calls.iter().filter(|call| is_log_sync(call)).count()
    }

    /// How many of the answers were written before a sync that covers them had ended.
    pub(crate) fn unsynced(&self) -> usize {
        let syncs: Vec<&Call> = self.calls.iter().filter(|call| is_log_sync(call)).collect();
        let is_covered = |answer: &&Answer| {
            syncs.iter().any(|sync| sync.began > answer.asked && sync.ended < answer.written)
        };
        self.answers.len() - self.answers.iter().filter(is_covered).count()
    }
}

/// A system call: between which lines of the trace it ran.
#[derive(Debug)]
struct Call {
    name: String,
    /// What its first argument stands for: a path or a socket.
    target: String,
    arguments: String,
    result: i64,
    began: usize,
    ended: usize,
}

/// The calls of a trace, in order of their ends.
fn calls(trace: &str) -> Vec<Call> {
    let mut begun: HashMap<&str, (usize, &str)> = HashMap::new();
    let mut calls = Vec::new();
    for (at, line) in trace.lines().enumerate() {
        // PID, time, what happened.
        let Some((thread, rest)) = line.split_once(' ') else { continue };
        let Some((_time, text)) = rest.trim_start().split_once(' ') else { continue };
        if let Some(beginning) = text.strip_suffix(" <unfinished ...>") {
            begun.insert(thread, (at, beginning));
        } else if let Some(resumed) = text.strip_prefix("<... ") {
            let Some((began, beginning)) = begun.remove(thread) else { continue };
            let (_, end) = resumed.split_once(" resumed>").unwrap_or(("", ""));
            calls.extend(call(&format!("{beginning}{end}"), began, at));
        } else {
            calls.extend(call(text, at, at));
        }
    }
    calls
}

/// `name(3<target>, arguments) = result`
fn call(text: &str, began: usize, ended: usize) -> Option<Call> {
    let (name, rest) = text.split_once('(')?;
    let (head, result) = rest.rsplit_once(" = ")?;
    let (_, target) = head.split_once('<')?;
    let (target, arguments) = target.split_once('>')?;
    Some(Call {
        name: name.to_owned(),
        target: target.to_owned(),
        arguments: arguments.to_owned(),
        result: result.split(' ').next()?.parse().ok()?,
        began,
        ended,
    })
}

/// Whether a call made the log durable.
fn is_log_sync(call: &Call) -> bool {
    let is_sync = matches!(call.name.as_str(), "fdatasync" | "fsync");
    is_sync && call.target.ends_with(".log") && call.result == 0
}

/// An answer, and where the whole of its request had been read.
#[derive(Debug)]
struct Answer {
    asked: usize,
    written: usize,
}

/// Answers of 2xx to requests that change something.
fn answers(calls: &[Call]) -> Vec<Answer> {
    // By socket: where the last piece was read, and whether the request is a command.
    let mut asked: HashMap<&str, (usize, bool)> = HashMap::new();
    let mut answers = Vec::new();
    for call in calls {
        let is_read = matches!(call.name.as_str(), "read" | "recvfrom" | "recvmsg");
        if is_read && call.result > 0 {
            let begins = ["\"POST ", "\"DELETE ", "\"GET "].map(|m| call.arguments.contains(m));
            let request = asked.entry(&call.target).or_default();
            request.0 = call.ended;
            if begins.contains(&true) {
                request.1 = begins[0] || begins[1];
            }
        } else if !is_read && call.arguments.contains("\"HTTP/1.1 2") {
            let request = asked.get(call.target.as_str());
            let (asked, is_command) = *request.expect("an answer follows a request");
            if is_command {
                answers.push(Answer { asked, written: call.began });
            }
        }
    }
    answers
}

#[test]
fn an_answer_before_its_sync_is_found() {
    let read = "1 1.0 recvfrom(9<socket:[7]>, \"POST /v1\", 64, 0, NULL, NULL) = 8\n";
    let write = "1 1.0 writev(9<socket:[7]>, [{iov_base=\"HTTP/1.1 201\", iov_len=12}], 1) = 12\n";
    let sync = "2 1.0 fdatasync(5</d/000004.log>) = 0\n";
    let begun = "2 1.0 fdatasync(5</d/000004.log> <unfinished ...>\n";
    let ended = "2 1.0 <... fdatasync resumed>) = 0\n";
    let failed = "2 1.0 fdatasync(5</d/000004.log>) = -1 EIO (Input/output error) (INJECTED)\n";
    for (trace, expected) in [
        ([read, sync, write, ""], 0),
        ([read, begun, ended, write], 0),
        ([read, write, sync, ""], 1),
        ([read, failed, write, ""], 1),
        ([sync, read, write, ""], 1),
        ([begun, read, ended, write], 1),
        ([read, begun, write, ended], 1),
    ] {
        let read = Trace::read(&trace.concat());
        assert_eq!((read.answers(), read.unsynced()), (1, expected), "{trace:?}");
    }
}
