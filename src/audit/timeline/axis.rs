//! Where a moment lies in a picture.
//!
//! The axis is cut where nothing happened for long: two bursts of work a day apart would else be
//! two lines. Nothing is long by itself, only beside the time in which something happened.

use super::model::Timeline;
use crate::domain::time::Time;

/// How many cuts there are, at most: of more pauses only the longest are cut.
const CUTS_MAX: usize = 40;

/// A pause is cut if it is longer than this part of all the time in which something happened.
const CUT_PART: i64 = 3;

/// How much of the picture the cuts take, at most.
const CUTS_PART_MAX: f64 = 0.3;

/// Lengths, in milliseconds, that a reader can count in.
const STEPS: [i64; 34] = {
    const SECOND: i64 = 1_000;
    const MINUTE: i64 = 60 * SECOND;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    [
        1,
        2,
        5,
        10,
        20,
        50,
        100,
        200,
        500,
        SECOND,
        2 * SECOND,
        5 * SECOND,
        10 * SECOND,
        15 * SECOND,
        30 * SECOND,
        MINUTE,
        2 * MINUTE,
        5 * MINUTE,
        10 * MINUTE,
        15 * MINUTE,
        30 * MINUTE,
        HOUR,
        2 * HOUR,
        3 * HOUR,
        6 * HOUR,
        12 * HOUR,
        DAY,
        2 * DAY,
        7 * DAY,
        14 * DAY,
        30 * DAY,
        90 * DAY,
        365 * DAY,
        3650 * DAY,
    ]
};

/// The axis of a picture.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Axis {
    pieces: Vec<Piece>,
    /// Between two ticks, in milliseconds.
    step: i64,
}

/// A part of the axis in which time passes evenly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Piece {
    pub(super) from: Time,
    pub(super) to: Time,
    pub(super) x: f64,
    pub(super) width: f64,
    /// Whether it stands for a pause that was cut.
    pub(super) is_cut: bool,
}

/// A moment that is written at the axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tick {
    pub(super) time: Time,
    pub(super) x: f64,
    /// The time of the day.
    pub(super) clock: String,
    /// The day, where it is another one than at the tick before.
    pub(super) date: Option<String>,
}

impl Piece {
    fn x(&self, time: Time) -> f64 {
        let part = millis(self.from, time) as f64 / millis(self.from, self.to).max(1) as f64;
        self.x + part.clamp(0.0, 1.0) * self.width
    }
}

impl Axis {
    /// An axis of a width, in which a cut takes up to `cut`, and two ticks are at least `apart`.
    pub(super) fn new(timeline: &Timeline, width: f64, cut: f64, apart: f64) -> Self {
        let (first, last) = timeline.span.unwrap_or_default();
        let last = last.max(Time::from_millis(first.as_millis().saturating_add(1)));
        let cuts = cuts(&busy(timeline, last));
        let cut = cut.min(CUTS_PART_MAX * width / cuts.len().max(1) as f64);
        let bounds = [first].into_iter().chain(cuts.iter().flat_map(|(from, to)| [*from, *to]));
        let bounds: Vec<Time> = bounds.chain([last]).collect();
        // Between the first two is no cut, then one, and so on.
        let is_cut = |index: usize| index % 2 == 1;
        let lengths: Vec<i64> = bounds.windows(2).map(|two| millis(two[0], two[1])).collect();
        let whole = |(index, _): &(usize, &i64)| !is_cut(*index);
        let drawn: i64 = lengths.iter().enumerate().filter(whole).map(|(_, length)| length).sum();
        let scale = (width - cut * cuts.len() as f64) / drawn.max(1) as f64;
        let (mut x, mut pieces) = (0.0, Vec::new());
        for (index, two) in bounds.windows(2).enumerate() {
            let is_cut = is_cut(index);
            let width = if is_cut { cut } else { lengths[index] as f64 * scale };
            pieces.push(Piece { from: two[0], to: two[1], x, width, is_cut });
            x += width;
        }
        let is_apart = |step: &&i64| **step as f64 * scale >= apart;
        let step = *STEPS.iter().find(is_apart).unwrap_or(&STEPS[STEPS.len() - 1]);
        Self { pieces, step }
    }

    /// Where a moment lies; one outside of the picture lies at its edge.
    pub(super) fn x(&self, time: Time) -> f64 {
        let piece = self.pieces.iter().find(|piece| time <= piece.to);
        piece.or(self.pieces.last()).map_or(0.0, |piece| piece.x(time))
    }

    /// The cuts.
    pub(super) fn cuts(&self) -> impl Iterator<Item = &Piece> {
        self.pieces.iter().filter(|piece| piece.is_cut)
    }

    /// What is written at the axis, in order, each at least `apart` from the one before. A piece
    /// in which no round moment lies is written with its first one.
    pub(super) fn ticks(&self, apart: f64) -> Vec<Tick> {
        // With whether it is the first one of its piece.
        let mut chosen: Vec<(Time, f64, i64, bool)> = Vec::new();
        for piece in self.pieces.iter().filter(|piece| !piece.is_cut) {
            let (moments, step) = self.moments(piece);
            for (index, time) in moments.into_iter().enumerate() {
                let (x, is_first) = (piece.x(time), index == 0);
                if let Some((_, before, _, was_first)) = chosen.last()
                    && x - before < apart
                {
                    // After a cut it matters more where one is than where one was.
                    if *was_first || !is_first {
                        continue;
                    }
                    chosen.pop();
                }
                chosen.push((time, x, step, is_first));
            }
        }
        let mut before = None;
        let tick = |(time, x, step, _): (Time, f64, i64, bool)| {
            let text = time.to_string();
            let day = text.get(..10).unwrap_or(&text).to_owned();
            let is_new = before.replace(day.clone()) != Some(day.clone());
            Tick { time, x, clock: clock(&text, step), date: is_new.then_some(day) }
        };
        chosen.into_iter().map(tick).collect()
    }

    /// The round moments of a piece, or its first moment if there are none; and how exactly they
    /// are written.
    fn moments(&self, piece: &Piece) -> (Vec<Time>, i64) {
        let first = piece.from.as_millis().div_euclid(self.step);
        let first = first + i64::from(first * self.step < piece.from.as_millis());
        let last = piece.to.as_millis().div_euclid(self.step);
        let round = (first..=last).map(|count| Time::from_millis(count * self.step));
        let round: Vec<Time> = round.collect();
        if round.is_empty() { (vec![piece.from], self.step.min(1_000)) } else { (round, self.step) }
    }
}

/// The time of the day, as exact as ticks so far apart need it.
fn clock(time: &str, step: i64) -> String {
    let end = match step {
        ..1_000 => 23,
        1_000..60_000 => 19,
        60_000.. => 16,
    };
    time.get(11..end).unwrap_or(time).to_owned()
}

fn millis(from: Time, to: Time) -> i64 {
    to.as_millis().saturating_sub(from.as_millis())
}

/// When something lived, from the first moment to the last, in order and without overlap.
fn busy(timeline: &Timeline, last: Time) -> Vec<(Time, Time)> {
    let (first, _) = timeline.span.unwrap_or_default();
    let tickets = timeline.tickets().map(|ticket| (ticket.made.time, ticket.end_or(last)));
    let holds = timeline.holds().map(|hold| (hold.since.time, hold.end_or(last)));
    let mut lives: Vec<(Time, Time)> = tickets.chain(holds).collect();
    lives.sort_unstable();
    let mut busy: Vec<(Time, Time)> = Vec::new();
    for (from, to) in lives {
        let from = from.max(first);
        match busy.last_mut() {
            Some(before) if from <= before.1 => before.1 = to.max(before.1),
            Some(_) | None => busy.push((from, to)),
        }
    }
    busy
}

/// The pauses that are cut.
fn cuts(busy: &[(Time, Time)]) -> Vec<(Time, Time)> {
    let spent: i64 = busy.iter().map(|(from, to)| millis(*from, *to)).sum();
    let pauses = busy.windows(2).map(|two| (two[0].1, two[1].0));
    let mut lengths: Vec<i64> = pauses.clone().map(|(from, to)| millis(from, to)).collect();
    lengths.sort_unstable_by(|a, b| b.cmp(a));
    // With too many of one length none of them is cut: the picture is an even comb.
    let least = lengths.get(CUTS_MAX).copied().unwrap_or(0).max(spent / CUT_PART);
    pauses.filter(|(from, to)| millis(*from, *to) > least).collect()
}
