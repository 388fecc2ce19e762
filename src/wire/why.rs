//! A ticket's causal story: as JSON, with its evidence as numbers, and as text for people.
//!
//! The same ledger gives the same bytes, whenever and wherever it is asked: no clock is read, and
//! times are in UTC.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ticket::{CycleEdge, State};
use crate::domain::id::{Sequence, TicketId};
use crate::domain::name::{LockName, UserName};
use crate::domain::scope::Scope;
use crate::domain::time::Time;

/// How wide the text for people is, in characters.
const WIDTH: usize = 100;

/// Why a ticket went as it did. Of what the asker may not read it says "someone", or nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Why {
    /// The ticket.
    pub ticket_id: TicketId,
    /// Where the lock lives.
    pub scope: Scope,
    /// The lock.
    pub lock_name: LockName,
    /// The identity that it belongs to.
    pub owner: UserName,
    /// Where it stands.
    pub state: State,
    /// The story in one sentence.
    pub summary: String,
    /// The story, in the order of its events.
    pub steps: Vec<Step>,
    /// Of a rejected deadlock: the cycle. Else empty.
    pub cycle: Vec<CycleEdge>,
    /// Of a rejected deadlock: the cycle, drawn in lines of text.
    pub drawing: Option<String>,
    /// The state that this shows.
    pub sequence: Sequence,
}

/// A part of a story.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "WhyStep")]
pub struct Step {
    /// The event that it is about.
    pub sequence: Sequence,
    /// The ledger time of that event.
    pub time: Time,
    /// What happened, in one or more sentences. Numbers in parentheses are sequences.
    pub text: String,
    /// The events that show it, that one included.
    pub evidence: Vec<Sequence>,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in wrapped(&self.summary, WIDTH) {
            writeln!(f, "{line}")?;
        }
        writeln!(f)?;
        let numbers: Vec<String> =
            self.steps.iter().map(|step| step.sequence.to_string()).collect();
        let widest = numbers.iter().map(String::len).max().unwrap_or(0);
        for (number, step) in numbers.iter().zip(&self.steps) {
            let mut gutter = number.as_str();
            for line in wrapped(&step.text, WIDTH.saturating_sub(widest + 4)) {
                writeln!(f, "  {gutter:>widest$}  {line}")?;
                gutter = "";
            }
        }
        match &self.drawing {
            Some(drawing) => write!(f, "\n{}", indented(drawing)),
            None => Ok(()),
        }
    }
}

fn indented(drawing: &str) -> String {
    drawing.lines().map(|line| format!("  {line}\n")).collect()
}

/// The words of a text in lines of up to `width` characters. A longer word has a line of its own.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let Some(line) = lines.last_mut() else { break };
        let length = |text: &str| text.chars().count();
        if line.is_empty() {
            line.push_str(word);
        } else if length(line) + 1 + length(word) <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_never_cut_and_lines_are_no_wider_than_they_may_be() {
        assert_eq!(wrapped("a bc def", 4), ["a bc", "def"]);
        assert_eq!(wrapped("a bc def", 8), ["a bc def"]);
        assert_eq!(wrapped("ab ünïcödé c", 3), ["ab", "ünïcödé", "c"]);
        assert_eq!(wrapped("", 3), [""]);
    }
}
