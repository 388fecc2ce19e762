//! A thread as a tree that a person can read.

use std::fmt::Write as _;

use crate::domain::thread::ThreadKey;
use crate::wire::thread::{Reply, Thread};

/// A thread: what it is, what it is about, and who replied what to whom.
pub(super) fn thread(thread: &Thread) -> String {
    let mut text = format!(
        "{} #{}  {}\n{}\nby {} at {}, {}\n",
        thread.scope,
        thread.number,
        thread.state.as_str(),
        thread.title,
        thread.author,
        thread.created_at,
        match thread.replies_count {
            0 => "no replies".to_owned(),
            1 => "1 reply".to_owned(),
            count => format!("{count} replies"),
        },
    );
    if !thread.body.as_str().is_empty() {
        text.push('\n');
        push_lines(&mut text, "  ", thread.body.as_str());
    }
    if !thread.replies.is_empty() {
        text.push('\n');
        push_replies(&mut text, "", &thread.replies);
    }
    text
}

/// Whether a thread has work left, in one line.
pub(super) fn state(thread: &Thread) -> String {
    format!("{} #{} is {}", thread.scope, thread.number, thread.state.as_str())
}

/// A reply that was just written.
pub(super) fn reply(thread: &ThreadKey, reply: &Reply) -> String {
    let ThreadKey { scope, number } = thread;
    let Reply { kind, author, created_at, reply_id, .. } = reply;
    let mut text = format!("reply {reply_id} to {scope} #{number}\n");
    let _ = writeln!(text, "{kind} by {author} at {created_at}");
    push_said(&mut text, "  ", reply);
    text
}

fn push_replies(text: &mut String, indent: &str, replies: &[Reply]) {
    for (at, reply) in replies.iter().enumerate() {
        let is_last = at + 1 == replies.len();
        let (branch, below) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        let Reply { kind, author, created_at, reply_id, .. } = reply;
        let _ = writeln!(text, "{indent}{branch}{author}  {kind}  {created_at}  {reply_id}");
        let inner = format!("{indent}{below}");
        // The stroke to the replies below goes on beside the text.
        let beside = if reply.replies.is_empty() { "   " } else { "│  " };
        push_said(text, &format!("{inner}{beside}"), reply);
        push_replies(text, &inner, &reply.replies);
    }
}

/// What a reply says, and what it points to.
fn push_said(text: &mut String, indent: &str, reply: &Reply) {
    push_lines(text, indent, reply.body.as_str());
    for link in reply.links.as_slice() {
        let _ = writeln!(text, "{indent}-> {link}");
    }
}

fn push_lines(text: &mut String, indent: &str, lines: &str) {
    for line in lines.split('\n') {
        text.push_str(format!("{indent}{}", line.replace('\t', "    ")).trim_end());
        text.push('\n');
    }
}

/// How long ago something was, in the largest unit that fits.
pub(super) fn age(millis: u64) -> String {
    let seconds = millis / 1000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_reads_as_a_tree() {
        let json = r#"{"scope":"teams/platform/website","number":42,"title":"Slow start",
            "body":"It is slow.\n\nMend it.","state":"open","author":"ana",
            "created_at":"2026-01-02T03:04:05.000Z","updated_at":"2026-01-02T03:04:09.000Z",
            "replies_count":3,"sequence":9,"replies":[
              {"reply_id":"00000000-0000-4000-8000-000000000001","kind":"implementation",
               "body":"Pushed.\nTests follow.","links":["branch:codex/thread-42","pull:7"],
               "author":"codex","created_at":"2026-01-02T03:04:06.000Z","parent":null,"replies":[
                 {"reply_id":"00000000-0000-4000-8000-000000000002","kind":"question",
                  "body":"Which?","links":[],"author":"bo","created_at":"2026-01-02T03:04:07.000Z",
                  "parent":"00000000-0000-4000-8000-000000000001","replies":[]}]},
              {"reply_id":"00000000-0000-4000-8000-000000000003","kind":"review","body":"Good.",
               "links":[],"author":"ana","created_at":"2026-01-02T03:04:08.000Z","parent":null,
               "replies":[]}]}"#;
        let read: Thread = serde_json::from_str(json).expect("a thread");
        let expected = "\
teams/platform/website #42  open
Slow start
by ana at 2026-01-02T03:04:05.000Z, 3 replies

  It is slow.

  Mend it.

├─ codex  implementation  2026-01-02T03:04:06.000Z  00000000-0000-4000-8000-000000000001
│  │  Pushed.
│  │  Tests follow.
│  │  -> branch:codex/thread-42
│  │  -> pull:7
│  └─ bo  question  2026-01-02T03:04:07.000Z  00000000-0000-4000-8000-000000000002
│        Which?
└─ ana  review  2026-01-02T03:04:08.000Z  00000000-0000-4000-8000-000000000003
      Good.
";
        assert_eq!(thread(&read), expected);
        assert_eq!(state(&read), "teams/platform/website #42 is open");
        let key = ThreadKey { scope: read.scope.clone(), number: read.number };
        let expected = "\
reply 00000000-0000-4000-8000-000000000001 to teams/platform/website #42
implementation by codex at 2026-01-02T03:04:06.000Z
  Pushed.
  Tests follow.
  -> branch:codex/thread-42
  -> pull:7
";
        assert_eq!(reply(&key, &read.replies[0]), expected);
    }

    #[test]
    fn an_age_has_one_unit() {
        let minute = 60_000;
        let ages = [59_999, minute, 59 * minute, 60 * minute, 47 * 60 * minute, 48 * 60 * minute];
        let shown = ages.map(age);
        assert_eq!(shown, ["59 s", "1 min", "59 min", "1 h", "1 d", "2 d"]);
    }
}
