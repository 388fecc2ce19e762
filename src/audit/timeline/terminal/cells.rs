//! Lines of cells, each of which is a character of one column.
//!
//! Text that comes from elsewhere can't steer a terminal: what would is replaced.

use std::fmt::Write as _;
use std::ops::Range;

use super::Colours;

/// The second column of a wide character.
const REST: char = '\0';

#[derive(Debug, Clone, Copy)]
struct Cell {
    sign: char,
    /// Of a terminal's 256 colours.
    colour: Option<u8>,
}

const EMPTY: Cell = Cell { sign: ' ', colour: None };

/// A line: its label, and its cells.
#[derive(Debug)]
pub(super) struct Line {
    label: String,
    cells: Vec<Cell>,
    /// Whether it is words alone, through which nothing is drawn.
    is_said: bool,
}

impl Line {
    pub(super) fn new(label: &str, columns: usize) -> Self {
        Self { label: harmless(label), cells: vec![EMPTY; columns], is_said: false }
    }

    /// A line of words.
    pub(super) fn said(text: &str, columns: usize) -> Self {
        let mut line = Self { is_said: true, ..Self::new("", columns) };
        line.write_in(0, text, None);
        line
    }

    pub(super) fn put(&mut self, column: usize, sign: char, colour: Option<u8>) {
        if let Some(cell) = self.cells.get_mut(column) {
            *cell = Cell { sign, colour };
        }
    }

    pub(super) fn put_if_empty(&mut self, column: usize, sign: char) {
        if !self.is_said && self.cells.get(column).is_some_and(|cell| cell.sign == ' ') {
            self.put(column, sign, None);
        }
    }

    pub(super) fn fill(&mut self, columns: Range<usize>, sign: char, colour: Option<u8>) {
        for column in columns {
            self.put(column, sign, colour);
        }
    }

    /// Writes a text, if it has room before the end, and a blank before it after what is there.
    pub(super) fn write(&mut self, column: usize, text: &str) {
        let columns = column.saturating_sub(1)..column + width(text);
        let is_free = |cells: &[Cell]| cells.iter().all(|cell| cell.sign == ' ');
        if self.cells.get(columns).is_some_and(is_free) {
            self.write_in(column, text, None);
        }
    }

    /// Writes a text over what is there, as far as there is room.
    pub(super) fn write_in(&mut self, column: usize, text: &str, colour: Option<u8>) {
        let mut column = column;
        for sign in harmless(text).chars() {
            self.put(column, sign, colour);
            if !sign.is_ascii() {
                self.put(column + 1, REST, colour);
            }
            column += if sign.is_ascii() { 1 } else { 2 };
        }
    }

    /// Says something beside a sign: after it, or before it where no room is left; in short if
    /// there is no room for all of it.
    pub(super) fn aside(&mut self, column: usize, text: &str) {
        let is_free = |columns: Range<usize>| {
            self.cells.get(columns).is_some_and(|cells| cells.iter().all(|c| c.sign == ' '))
        };
        let length = width(text);
        if is_free(column + 1..column + 2 + length) {
            self.write_in(column + 2, text, None);
        } else if column > length && is_free(column - length - 1..column) {
            self.write_in(column - length - 1, text, None);
        } else {
            let free = (column + 1..self.cells.len()).take_while(|c| is_free(*c..c + 1)).count();
            let mut short = String::new();
            for sign in text.chars() {
                if width(&short) + 5 > free {
                    break;
                }
                short.push(sign);
            }
            if !short.is_empty() {
                self.write_in(column + 2, &(short + "…"), None);
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.cells.iter().all(|cell| cell.sign == ' ')
    }

    pub(super) fn has(&self, sign: char) -> bool {
        self.cells.iter().any(|cell| cell.sign == sign)
    }

    /// The line, with its label in so many columns.
    pub(super) fn text(&self, labels: usize, colours: Colours) -> String {
        let mut label: String = self.label.chars().take(labels).collect();
        if self.label.chars().count() > labels {
            label.pop();
            label.push('…');
        }
        let mut line = format!("{label:labels$} ");
        let end = self.cells.iter().rposition(|cell| cell.sign != ' ').map_or(0, |last| last + 1);
        let mut colour = None;
        for cell in &self.cells[..end] {
            if colours == Colours::Ansi && cell.colour != colour {
                match cell.colour {
                    Some(colour) => drop(write!(line, "\u{1b}[38;5;{colour}m")),
                    None => line.push_str("\u{1b}[0m"),
                }
                colour = cell.colour;
            }
            if cell.sign != REST {
                line.push(cell.sign);
            }
        }
        if colour.is_some() {
            line.push_str("\u{1b}[0m");
        }
        line.truncate(line.trim_end().len());
        line.push('\n');
        line
    }
}

/// How many columns a text takes, at most: beyond ASCII a character may be wide.
fn width(text: &str) -> usize {
    text.chars().map(|sign| if sign.is_ascii() { 1 } else { 2 }).sum()
}

/// The text without what would steer a terminal.
fn harmless(text: &str) -> String {
    let is_steering = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{feff}')
            || matches!(c, '\u{2060}'..='\u{206f}' | '\u{61c}')
    };
    text.chars().map(|c| if is_steering(c) { '\u{fffd}' } else { c }).collect()
}

/// The text in lines of at most so many columns, broken at blanks.
pub(super) fn wrapped(text: &str, columns: usize) -> String {
    let words: Vec<String> = harmless(text).split(' ').map(str::to_owned).collect();
    joined(&words, " ", columns)
}

/// Parts in lines of at most so many columns, if no part is longer.
pub(super) fn joined(parts: &[String], between: &str, columns: usize) -> String {
    let (mut lines, mut line) = (String::new(), String::new());
    for part in parts {
        let length = [&line, between, part].map(|text| text.chars().count()).iter().sum::<usize>();
        if line.is_empty() {
            line.push_str(part);
        } else if length <= columns {
            line.push_str(between);
            line.push_str(part);
        } else {
            lines.push_str(&line);
            lines.push('\n');
            line.clone_from(part);
        }
    }
    lines + &line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_written_can_steer_a_terminal() {
        let mut line = Line::new("a\u{1b}[31m", 30);
        line.write(0, "b\u{202e}\u{7}c");
        line.aside(10, "\u{9b}d\u{200f}\u{2066}e\n");
        let text = line.text(10, Colours::Plain);
        assert_eq!(
            text,
            "a\u{fffd}[31m     b\u{fffd}\u{fffd}c      \u{fffd}d\u{fffd}\u{fffd}e\u{fffd}\n"
        );
        assert_eq!(wrapped("a\u{1b}\tb\n", 10), "a\u{fffd}\u{fffd}b\u{fffd}\n");
    }

    #[test]
    fn words_are_broken_where_the_line_ends() {
        assert_eq!(wrapped("one two three", 8), "one two\nthree\n");
        assert_eq!(wrapped("", 8), "\n");
        assert_eq!(wrapped("unbreakable words", 4), "unbreakable\nwords\n");
    }
}
