//! The picture as text, for a terminal: a column is a stretch of time.
//!
//! Where several things fall into one column, the one is shown that says most: an end before a
//! promotion, a promotion before a heartbeat. Of more rows than fit on a screen the last ones are
//! drawn; how many waited is then seen from a line of its own.

mod cells;

use super::axis::{Axis, Tick};
use super::marks::Mark;
use super::model::{Hold, Interruption, Lock, Ticket, Timeline};
use super::paint::Paints;
use super::rows::{Row, are_few, rows};
use super::words;
use crate::domain::name::UserName;
use crate::domain::time::Time;
use cells::{Line, joined, wrapped};

/// How many columns a drawing has if nobody says it.
pub const COLUMNS: usize = 100;

/// How many columns a drawing has at least.
pub const COLUMNS_LEAST: usize = 40;

/// How many columns a drawing has at most.
pub const COLUMNS_MOST: usize = 1000;

/// How many rows a lock has, alone and beside others.
const ROWS_MAX: usize = 24;
const ROWS_OF_ONE_MAX: usize = 8;

/// How many cuts the legend tells the lengths of.
const CUTS_SAID: usize = 3;

/// How wide a cut of the axis is, and how far apart two ticks are.
const CUT_WIDTH: f64 = 3.0;
const TICKS_APART: f64 = 14.0;

/// A hold's beginning in the lane, its length, and where several holds are in one column.
const HOLD_EDGE: char = '┃';
const HOLD: char = '━';
const HOLDS: char = '▒';

/// How much of a ticket's id is shown, and how wide the labels are at least.
const ID_LENGTH: usize = 8;
const LABELS_LEAST: usize = 10;

/// What begins before the picture, and what goes on after it.
const BEGUN: char = '…';
const OPEN: char = '→';

/// Whether owners have colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colours {
    /// No: the text is plain.
    Plain,
    /// Yes, by ANSI escapes.
    Ansi,
}

struct Drawing<'a> {
    timeline: &'a Timeline,
    span: (Time, Time),
    axis: Axis,
    paints: Paints<'a>,
    columns: usize,
    /// How long the longest name of an owner is.
    owners: usize,
    has_row_each: bool,
}

/// Draws a timeline as text, at most `width` columns wide, but at least [`COLUMNS_LEAST`].
pub fn terminal(timeline: &Timeline, width: usize, colours: Colours) -> String {
    let width = width.clamp(COLUMNS_LEAST, COLUMNS_MOST);
    let mut text = wrapped(&words::title(timeline), width);
    text += &wrapped(&words::subtitle(timeline), width);
    if let Some(left_out) = words::left_out(timeline) {
        text += &wrapped(&left_out, width);
    }
    let Some(span) = timeline.span else { return text };
    let has_row_each = are_few(timeline);
    let rows_of: Vec<_> = timeline
        .locks
        .iter()
        .map(|(lock_name, lock)| (lock_name, lock, rows(lock, has_row_each, span.1)))
        .collect();
    let owners = timeline.owners().iter().map(|owner| owner.as_str().len()).max().unwrap_or(0);
    let rows = owners + if has_row_each { 1 + ID_LENGTH } else { 0 };
    let locks = timeline.locks.keys().map(|lock_name| lock_name.as_str().len());
    let labels = locks.chain([rows]).max().unwrap_or(0).clamp(LABELS_LEAST, width / 3);
    let columns = width - labels - 1;
    // The last column is for what ends with the picture, or goes on after it.
    let axis = Axis::new(timeline, (columns - 1) as f64, CUT_WIDTH, TICKS_APART);
    let paints = Paints::new(timeline);
    let drawing = Drawing { timeline, span, axis, paints, columns, owners, has_row_each };

    let (scale, mut lines) = (drawing.scale(), Vec::new());
    let rows_most = if rows_of.len() == 1 { ROWS_MAX } else { ROWS_OF_ONE_MAX };
    for (lock_name, lock, rows) in &rows_of {
        lines.push(Line::new("", columns));
        lines.extend(drawing.lane(lock_name.as_str(), lock));
        if !has_row_each {
            lines.extend(drawing.waiting(lock));
        }
        let kept = last_rows(rows, rows_most, span.1);
        lines.extend(kept.iter().map(|row| drawing.row(row)));
        if kept.len() < rows.len() {
            let more = rows.len() - kept.len();
            let said = words::count(more, "row before these", "rows before these");
            lines.push(Line::said(&format!("(+ {said})"), columns));
        }
    }
    drawing.interrupt(&mut lines);
    text.push('\n');
    for line in scale.iter().chain(&lines) {
        text += &line.text(labels, colours);
    }
    text.push('\n');
    text + &joined(&drawing.legend(&lines, width), "   ", width)
}

/// The rows in which something happened last, as many as there is room for.
fn last_rows<'a>(rows: &'a [Row<'a>], most: usize, last: Time) -> Vec<&'a Row<'a>> {
    let last_of = |row: &Row<'_>| row.tickets.iter().map(|ticket| ticket.end_or(last)).max();
    let mut kept: Vec<(usize, &Row<'_>)> = rows.iter().enumerate().collect();
    kept.sort_by_key(|(index, row)| std::cmp::Reverse((last_of(row), *index)));
    kept.truncate(most);
    kept.sort_by_key(|(index, _)| *index);
    kept.into_iter().map(|(_, row)| row).collect()
}

impl Drawing<'_> {
    /// The column of a moment.
    fn column(&self, time: Time) -> usize {
        // Never negative, and far below what an integer holds.
        (self.axis.x(time) as usize).min(self.columns - 1)
    }

    /// The columns from one moment to another one, without the last but if it is the only one.
    fn columns(&self, from: Time, to: Option<Time>) -> std::ops::Range<usize> {
        let first = self.column(from);
        let end = to.map_or(self.columns, |to| self.column(to));
        first..end.max(first + 1)
    }

    fn colour(&self, owner: &UserName) -> Option<u8> {
        Some(self.paints.of(owner).ansi)
    }

    /// The times, the days if there are several, and the line below them.
    fn scale(&self) -> Vec<Line> {
        let ticks = self.axis.ticks(TICKS_APART);
        let mut lines = Vec::new();
        let column = |tick: &Tick| (tick.x as usize).min(self.columns - 1);
        if ticks.iter().filter(|tick| tick.date.is_some()).count() > 1 {
            let mut dates = Line::new("", self.columns);
            for tick in &ticks {
                let date = tick.date.as_deref().unwrap_or_default();
                dates.write(column(tick).min(self.columns - date.len()), date);
            }
            lines.push(dates);
        }
        let (mut clocks, mut rule) = (Line::new("UTC", self.columns), Line::new("", self.columns));
        rule.fill(0..self.columns, '─', None);
        for tick in &ticks {
            clocks.write(column(tick), &tick.clock);
            rule.put(column(tick), '┴', None);
        }
        for cut in self.axis.cuts() {
            let first = cut.x as usize;
            rule.fill(first..(first + cut.width as usize).max(first + 1), '≈', None);
        }
        lines.extend([clocks, rule]);
        lines
    }

    /// Who held a lock, with the fence tokens; those for which there was no room stand over the
    /// lane, as many as can be read.
    fn lane(&self, lock_name: &str, lock: &Lock) -> Vec<Line> {
        let mut lane = Line::new(lock_name, self.columns);
        let mut fences = Line::new("fences", self.columns);
        let mut begun = None;
        for hold in &lock.holds {
            let Hold { owner, fence_token, since, until, .. } = hold;
            let colour = self.colour(owner);
            let columns = self.columns(since.time, until.map(|until| until.time));
            lane.fill(columns.clone(), HOLD, colour);
            if until.is_some() && columns.end < self.columns {
                lane.put(columns.end, HOLD_EDGE, None);
            }
            let is_shared = begun == Some(columns.start);
            begun = Some(columns.start);
            let edge = if is_shared { HOLDS } else { HOLD_EDGE };
            let edge = if since.time < self.span.0 { BEGUN } else { edge };
            lane.put(columns.start, edge, colour);
            let room = columns.len() - 1;
            let said = [format!("{owner} {fence_token}"), fence_token.to_string()];
            match said.iter().find(|said| said.len() <= room) {
                Some(said) => lane.write_in(columns.start + 1, said, colour),
                None => fences.write(columns.start, &said[1]),
            }
            if until.is_none() {
                lane.put(self.columns - 1, OPEN, colour);
            }
        }
        if fences.is_empty() { vec![lane] } else { vec![fences, lane] }
    }

    /// How many waited.
    fn waiting(&self, lock: &Lock) -> Option<Line> {
        const HEIGHTS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let mut counts = vec![0_usize; self.columns];
        for ticket in lock.tickets.iter().filter(|ticket| !ticket.is_attempt()) {
            for column in self.wait_columns(ticket).into_iter().flatten() {
                counts[column] += 1;
            }
        }
        let most = counts.iter().copied().max().filter(|most| *most > 0)?;
        let mut line = Line::new(&format!("waits ≤{most}"), self.columns);
        for (column, count) in counts.into_iter().enumerate() {
            line.put(column, HEIGHTS[(count * 8).div_ceil(most)], None);
        }
        Some(line)
    }

    /// Where a ticket waits, if it ever did.
    fn wait_columns(&self, ticket: &Ticket) -> Option<std::ops::Range<usize>> {
        let end = ticket.end.as_ref().map(|end| end.at.time);
        let until = ticket.held.map(|held| held.since.time).or(end);
        let has_waited = ticket.held.is_none() || ticket.is_promoted();
        has_waited.then(|| self.columns(ticket.made.time, until))
    }

    /// A row; its label is its owner, and the ticket if it has one to itself.
    fn row(&self, row: &Row<'_>) -> Line {
        let id = row.tickets.first().map(|ticket| ticket.id.to_string());
        let label = match id.as_ref().and_then(|id| id.get(..ID_LENGTH)) {
            Some(id) if self.has_row_each => format!("{:1$} {id}", row.owner, self.owners),
            _ if row.is_first => row.owner.to_string(),
            _ => String::new(),
        };
        let mut line = Line::new(&label, self.columns);
        for ticket in &row.tickets {
            self.ticket(&mut line, ticket);
        }
        line
    }

    fn ticket(&self, line: &mut Line, ticket: &Ticket) {
        let colour = self.colour(&ticket.owner);
        let end = ticket.end.as_ref().map(|end| end.at.time);
        if !ticket.is_attempt() {
            if let Some(columns) = self.wait_columns(ticket) {
                line.fill(columns, Mark::Waits.character(), colour);
            }
            if let Some(held) = ticket.held {
                let columns = self.columns(held.since.time, end);
                line.fill(columns.clone(), Mark::Held.character(), colour);
                for beats in &ticket.heartbeats {
                    let column = self.column(beats.first.time);
                    if columns.contains(&column) {
                        line.put(column, Mark::Heartbeat.character(), colour);
                    }
                }
                if ticket.is_promoted() && held.since.time >= self.span.0 {
                    line.put(columns.start, Mark::Promoted.character(), colour);
                }
            }
            if ticket.made.time < self.span.0 {
                line.put(0, BEGUN, colour);
            }
            if end.is_none() {
                line.put(self.columns - 1, OPEN, colour);
            }
        }
        let Some(ending) = &ticket.end else { return };
        let column = self.column(ending.at.time);
        line.put(column, Mark::Ended(ending.how).character(), colour);
        if let Some(said) = words::aside(ticket).filter(|_| self.has_row_each) {
            line.aside(column, &said);
        }
    }

    /// Draws restarts, gaps and cuts through what is empty.
    fn interrupt(&self, lines: &mut [Line]) {
        for line in lines {
            for cut in self.axis.cuts() {
                let middle = (cut.x + cut.width / 2.0) as usize;
                line.put_if_empty(middle.min(self.columns - 1), Mark::Cut.character());
            }
            for interruption in &self.timeline.breaks {
                let mark = match interruption.what {
                    Interruption::Restart { .. } => Mark::Restart,
                    Interruption::Gap { .. } => Mark::Gap,
                };
                line.put_if_empty(self.column(interruption.at.time), mark.character());
            }
        }
    }

    /// What the signs mean that are in the drawing.
    fn legend(&self, lines: &[Line], width: usize) -> Vec<String> {
        let is_drawn = |sign: char| lines.iter().any(|line| line.has(sign));
        let marks = Mark::used(self.timeline, false);
        let signs = marks.into_iter().map(|mark| (mark.character(), mark.words()));
        let others = [(HOLDS, "several holds"), (BEGUN, "began before"), (OPEN, "goes on")];
        let lane = format!("{HOLD_EDGE}USER FENCE{HOLD} holds the lock");
        let signs = signs.chain(others).filter(|(sign, _)| is_drawn(*sign));
        let signs = signs.map(|(sign, said)| format!("{sign} {said}"));
        let cuts: Vec<_> = self.axis.cuts().map(|cut| words::length(cut.from, cut.to)).collect();
        let nothing = format!("{} {}", Mark::Cut.character(), Mark::Cut.words());
        // As many lengths as a line has room for.
        let said = |most: usize| {
            let mut said = cuts.iter().take(most).cloned().collect::<Vec<_>>().join(", ");
            if cuts.len() > most {
                said.push_str(", …");
            }
            format!("{nothing} for {said}")
        };
        let fits = |text: &String| text.chars().count() <= width;
        let cuts = (!cuts.is_empty())
            .then(|| (1..=CUTS_SAID).rev().map(said).find(fits).unwrap_or(nothing.clone()));
        [lane].into_iter().chain(signs).chain(cuts).collect()
    }
}
