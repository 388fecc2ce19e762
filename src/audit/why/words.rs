//! The words of a story: times, lengths of time, and a sentence that gathers its evidence.

use crate::domain::event::Record;
use crate::domain::id::Sequence;
use crate::domain::text::ShortText;
use crate::domain::time::Time;
use crate::wire::why::Step;

/// A step that is being written.
pub(super) struct Writing {
    step: Step,
}

impl Writing {
    /// A step about an event.
    pub(super) fn about(record: &Record) -> Self {
        Self::at(record.sequence, record.time)
    }

    /// A step about the event at a sequence.
    pub(super) fn at(sequence: Sequence, time: Time) -> Self {
        let (text, evidence) = (String::new(), vec![sequence]);
        Self { step: Step { sequence, time, text, evidence } }
    }

    /// Adds words.
    pub(super) fn say(&mut self, words: &str) {
        self.step.text.push_str(words);
    }

    /// Names an event as evidence, in parentheses.
    pub(super) fn show(&mut self, sequence: Sequence) -> String {
        self.mark(sequence);
        format!("({sequence})")
    }

    /// Adds an event to the evidence.
    pub(super) fn mark(&mut self, sequence: Sequence) {
        if !self.step.evidence.contains(&sequence) {
            self.step.evidence.push(sequence);
        }
    }

    pub(super) fn done(self) -> Step {
        self.step
    }
}

/// The day of a time, and the time of that day.
fn parts(time: Time) -> (String, String) {
    let text = time.to_string();
    match text.strip_suffix('Z').and_then(|text| text.split_once('T')) {
        Some((day, clock)) => (day.to_owned(), clock.to_owned()),
        None => (String::new(), text),
    }
}

/// A time, with its day.
pub(super) fn full(time: Time) -> String {
    let (day, clock) = parts(time);
    format!("{clock} UTC on {day}")
}

/// A time in a story that begins on the day of `start`: the day is named if it is another.
pub(super) fn moment(start: Time, time: Time) -> String {
    let (day, clock) = parts(time);
    if day == parts(start).0 { clock } else { format!("{clock} on {day}") }
}

/// A length of time in milliseconds, exactly.
pub(super) fn span(millis: u64) -> String {
    let (hours, minutes) = (millis / 3_600_000, millis / 60_000 % 60);
    let (seconds, rest) = (millis / 1000 % 60, millis % 1000);
    if millis < 1000 {
        return format!("{millis} ms");
    }
    let mut words = Vec::new();
    if hours > 0 {
        words.push(format!("{hours} h"));
    }
    if minutes > 0 {
        words.push(format!("{minutes} min"));
    }
    if rest > 0 {
        words.push(format!("{seconds}.{} s", format!("{rest:03}").trim_end_matches('0')));
    } else if seconds > 0 {
        words.push(format!("{seconds} s"));
    }
    words.join(" ")
}

/// A length of time in seconds.
pub(super) fn seconds(seconds: u32) -> String {
    span(u64::from(seconds) * 1000)
}

/// How much later a time is.
pub(super) fn between(from: Time, to: Time) -> String {
    span(from.millis_until(to))
}

/// A text that somebody wrote.
pub(super) fn quoted(text: &ShortText) -> String {
    format!("“{text}”")
}

/// `a`, `a and b`, `a, b and c`.
pub(super) fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The same for whole clauses: `a, and b`.
pub(super) fn clauses(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{}, and {last}", first.join(", ")),
    }
}

/// A number with a mark at the thousands.
pub(super) fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_exact_and_short() {
        let spans = [
            (0, "0 ms"),
            (999, "999 ms"),
            (1000, "1 s"),
            (12_500, "12.5 s"),
            (59_007, "59.007 s"),
            (60_000, "1 min"),
            (3_600_000, "1 h"),
            (3_661_010, "1 h 1 min 1.01 s"),
            (90_000_500, "25 h 0.5 s"),
        ];
        for (millis, words) in spans {
            assert_eq!(span(millis), words);
        }
    }

    #[test]
    fn a_day_is_named_where_it_is_another() {
        let start = Time::from_millis(1_767_225_600_000);
        assert_eq!(full(start), "00:00:00.000 UTC on 2026-01-01");
        assert_eq!(moment(start, start.plus_seconds(2)), "00:00:02.000");
        assert_eq!(moment(start, start.plus_seconds(86_400)), "00:00:00.000 on 2026-01-02");
    }

    #[test]
    fn numbers_and_lists_read_well() {
        let numbers = [0, 12, 999, 1000, 12_345, 1_234_567].map(number);
        assert_eq!(numbers, ["0", "12", "999", "1,000", "12,345", "1,234,567"]);
        let names =
            |names: &[&str]| list(&names.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(names(&["a"]), "a");
        assert_eq!(names(&["a", "b"]), "a and b");
        assert_eq!(names(&["a", "b", "c"]), "a, b and c");
    }
}
