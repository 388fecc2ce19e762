//! Which events wake whom, and when one is finished. Pure.
//!
//! Whoever works on a thread under its lock writes to that thread, and that must not wake anybody
//! again: neither what was written under the derived lock nor the marks of finished events do.

use std::str::FromStr;
use std::time::Duration;

use serde_json::Value;

use crate::domain::id::Sequence;
use crate::domain::name::LockName;
use crate::domain::text::ReplyBody;
use crate::domain::thread::{ReplyKind, ThreadNumber};
use crate::wire::cloud_event::CloudEvent;
use crate::wire::thread::{Reply, Thread};

/// What stands for the thread's number in a template.
const THREAD: &str = "{thread}";
/// The kind of the reply that marks a finished event.
const HANDLED: &str = "handled";
/// The pause after a first failure. Each further one doubles it.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// What derives the lock's name from an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct Template(String);

impl Template {
    /// The rule, fit for "lock RULE".
    pub(in crate::cli) const RULE: &str = "must be a lock name with {thread} in it, which stands \
        for the number of the thread, and no other braces";

    /// The name of a thread's lock.
    pub(super) fn lock_name(&self, thread: ThreadNumber) -> LockName {
        self.with(&thread.to_string()).expect("it was tried with the shortest and the longest")
    }

    /// The template as it was given.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    fn with(&self, number: &str) -> Result<LockName, &'static str> {
        self.0.replace(THREAD, number).parse().map_err(|_| Self::RULE)
    }
}

impl FromStr for Template {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let template = Self(text.to_owned());
        // Braces that are left over are in no lock's name.
        template.with("1")?;
        template.with(&ThreadNumber::MAX.to_string())?;
        if text.contains(THREAD) { Ok(template) } else { Err(Self::RULE) }
    }
}

/// Which events, as a glob. Only a thread has a place for the mark.
pub(in crate::cli) fn event_glob(text: &str) -> Result<String, &'static str> {
    let is_thread = text.starts_with("thread.") && !text.contains(',');
    if is_thread { Ok(text.to_owned()) } else { Err("must begin with thread., like thread.*") }
}

/// An event that somebody is to work on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Task {
    pub(super) sequence: Sequence,
    /// Its type, without the prefix.
    pub(super) event_type: String,
    pub(super) thread: ThreadNumber,
    pub(super) lock_name: LockName,
    /// The event, as it came.
    pub(super) json: String,
}

impl Task {
    /// The task of an event; `None` if it wakes nobody.
    ///
    /// # Errors
    /// What is missing in it.
    pub(super) fn of(
        sequence: Sequence,
        json: String,
        lock: &Template,
    ) -> Result<Option<Self>, &'static str> {
        let event: CloudEvent<'_> = serde_json::from_str(&json).map_err(|_| "it can't be read")?;
        let event_type = event.plain_type().to_owned();
        // As a state that is folded from a feed needs it, and no filter of types keeps it back.
        if !event_type.starts_with("thread.") {
            return Ok(None);
        }
        let data: Value = serde_json::from_str(event.data.get()).map_err(|_| "it has no data")?;
        let number = data["number"].as_u64().and_then(|number| number.try_into().ok());
        let thread: ThreadNumber = number.ok_or("it names no thread")?;
        let lock_name = lock.lock_name(thread);
        let is_mark = event_type == "thread.replied" && data["kind"] == HANDLED;
        let is_under_it = data["fence"]["lock_name"] == *lock_name.as_str();
        let task = Self { sequence, event_type, thread, lock_name, json };
        Ok((!is_mark && !is_under_it).then_some(task))
    }
}

/// The kind of the mark of a finished event.
pub(super) fn mark_kind() -> ReplyKind {
    HANDLED.parse().expect("it is one")
}

/// What the mark of a finished event says.
pub(super) fn mark_body(sequence: Sequence) -> ReplyBody {
    mark(sequence).try_into().expect("it is short and plain")
}

fn mark(sequence: Sequence) -> String {
    format!("handled event {sequence}")
}

/// Whether a thread has the mark of an event.
pub(super) fn is_handled(thread: &Thread, sequence: Sequence) -> bool {
    let body = mark(sequence);
    let mut replies: Vec<&Reply> = thread.replies.iter().collect();
    while let Some(reply) = replies.pop() {
        if reply.kind.as_str() == HANDLED && reply.body.as_str().trim() == body {
            return true;
        }
        replies.extend(&reply.replies);
    }
    false
}

/// How long to wait after so many failures in a row, at least one.
pub(super) fn pause_after(failures: u32) -> Duration {
    PAUSE_FIRST.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1))).min(PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template() -> Template {
        "thread-work.{thread}".parse().expect("a template")
    }

    #[test]
    fn a_template_gives_a_lock_name_for_every_thread() {
        let number = |n: u64| ThreadNumber::try_from(n).expect("a number");
        assert_eq!(template().lock_name(number(42)).as_str(), "thread-work.42");
        let twice: Template = "{thread}-{thread}".parse().expect("a template");
        assert_eq!(twice.lock_name(number(7)).as_str(), "7-7");
        for bad in [
            "",
            "thread-work",
            "thread-work.{thread",
            "thread-work.{number}",
            "{thread}.{sequence}",
            "a b{thread}",
            "-{thread}",
            &format!("{}{{thread}}", "x".repeat(119)),
        ] {
            assert_eq!(bad.parse::<Template>(), Err(Template::RULE), "{bad}");
        }
        assert!(format!("{}{{thread}}", "x".repeat(118)).parse::<Template>().is_ok());
    }

    #[test]
    fn only_events_of_threads_are_responded_to() {
        for good in ["thread.*", "thread.replied", "thread.c*"] {
            assert!(event_glob(good).is_ok(), "{good}");
        }
        for bad in ["*", "lock.*", "", "thread", "thread.created,lock.*"] {
            assert!(event_glob(bad).is_err(), "{bad}");
        }
    }

    fn task(event_type: &str, data: &str) -> Result<Option<Task>, &'static str> {
        let json = format!(
            r#"{{"specversion":"1.0","id":"7","source":"/ledgers/x","type":"pearing.{event_type}",
            "subject":"s","time":"2026-01-01T00:00:00.000Z","datacontenttype":"application/json",
            "dataschema":"s","actor":"ana","hash":"ab","data":{data}}}"#
        );
        Task::of(Sequence(7), json, &template())
    }

    #[test]
    fn what_is_written_under_the_lock_and_the_marks_wake_nobody() {
        let fence = |lock: &str| format!(r#""fence":{{"lock_name":"{lock}","fence_token":5}}"#);
        let none = r#""fence":null"#.to_owned();
        for (event_type, kind, fence, wakes) in [
            ("thread.created", "", &none, true),
            ("thread.replied", r#""kind":"question","#, &none, true),
            ("thread.replied", r#""kind":"question","#, &fence("thread-work.43"), true),
            ("thread.replied", r#""kind":"question","#, &fence("thread-work.42"), false),
            ("thread.replied", r#""kind":"handled","#, &none, false),
            ("thread.replied", r#""kind":"handled","#, &fence("other"), false),
            ("thread.closed", "", &none, true),
            ("thread.closed", "", &fence("thread-work.42"), false),
            ("ledger.recovered", "", &none, false),
        ] {
            let data = format!(r#"{{"number":42,{kind}{fence}}}"#);
            let task = task(event_type, &data).expect("it can be read");
            assert_eq!(task.is_some(), wakes, "{event_type} {data}");
            if let Some(task) = task {
                assert_eq!(task.lock_name.as_str(), "thread-work.42");
                assert_eq!((task.thread.get(), task.event_type.as_str()), (42, event_type));
            }
        }
        assert_eq!(task("thread.created", "{}"), Err("it names no thread"));
        let no_event = Task::of(Sequence(7), "7".to_owned(), &template());
        assert_eq!(no_event, Err("it can't be read"));
    }

    #[test]
    fn an_event_is_finished_when_a_reply_anywhere_in_its_thread_says_so() {
        let reply = |kind: &str, body: &str, replies: &str| {
            format!(
                r#"{{"reply_id":"00000000-0000-0000-0000-000000000001","kind":"{kind}",
                "body":"{body}","links":[],"author":"ana","parent":null,
                "created_at":"2026-01-01T00:00:00.000Z","replies":[{replies}]}}"#
            )
        };
        let thread = |replies: &str| -> Thread {
            serde_json::from_str(&format!(
                r#"{{"scope":"teams/platform/website","number":42,"title":"t","body":"",
                "state":"open","author":"ana","created_at":"2026-01-01T00:00:00.000Z",
                "updated_at":"2026-01-01T00:00:00.000Z","replies_count":1,"sequence":9,
                "replies":[{replies}]}}"#
            ))
            .expect("a thread")
        };
        let mark = reply("handled", mark_body(Sequence(17)).as_str(), "");
        for (replies, is_finished) in [
            (mark.clone(), true),
            (reply("note", "see below", &mark), true),
            (reply("note", "handled event 17", ""), false),
            (reply("handled", "handled event 170", ""), false),
            (reply("handled", "handled event 1", ""), false),
            (String::new(), false),
        ] {
            let is = is_handled(&thread(&replies), Sequence(17));
            assert_eq!(is, is_finished, "{replies}");
        }
        assert_eq!(mark_kind().as_str(), "handled");
    }

    #[test]
    fn pauses_grow() {
        let pauses: Vec<u64> =
            [1, 2, 3, 6, 7, 99, u32::MAX].map(|n| pause_after(n).as_secs()).to_vec();
        assert_eq!(pauses, [1, 2, 4, 32, 60, 60, 60]);
    }
}
