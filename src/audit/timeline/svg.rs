//! The picture as an SVG.
//!
//! Everything in it is drawn by attributes: no styles, no scripts, nothing from elsewhere, so it
//! looks the same wherever it is put, and a page that trusts nobody can show it. What is drawn
//! says what it is when it is pointed at, and tells programs by `class` and `data-` attributes.

mod bars;
mod frame;

use super::axis::Axis;
use super::model::{Lock, Timeline};
use super::paint::{INK, PAPER, Paints};
use super::rows::{Row, are_few, rows};
use super::words;
use super::xml::Xml;
use crate::domain::name::LockName;
use crate::domain::time::Time;

/// How wide a picture is, and one of many tickets.
const WIDTH: f64 = 1200.0;
const WIDTH_OF_MANY: f64 = 1600.0;

/// From how many tickets on they are many.
const MANY: usize = 60;

/// The space around everything, and between the edge of the plot and what is in it.
const MARGIN: f64 = 24.0;
const INSET: f64 = 10.0;

/// How wide a cut of the axis is, and how far apart two ticks are.
const CUT_WIDTH: f64 = 30.0;
const TICKS_APART: f64 = 84.0;

/// How large a text is, but for the heading and what is in thin rows.
const SMALL: f64 = 12.0;

/// How high rows are, and what is in them. Many rows are thin.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    lane: f64,
    /// From row to row.
    pitch: f64,
    bar: f64,
    font: f64,
    /// Half the height of a mark.
    mark: f64,
}

impl Sizes {
    fn of(rows: usize) -> Self {
        match rows {
            ..=24 => Self { lane: 24.0, pitch: 24.0, bar: 14.0, font: 12.0, mark: 6.5 },
            25..=60 => Self { lane: 20.0, pitch: 16.0, bar: 10.0, font: 11.0, mark: 5.0 },
            61..=150 => Self { lane: 18.0, pitch: 10.0, bar: 7.0, font: 9.5, mark: 4.0 },
            151.. => Self { lane: 18.0, pitch: 6.0, bar: 4.5, font: 9.5, mark: 3.0 },
        }
    }
}

/// A lock's part of the picture.
struct Section<'a> {
    lock_name: &'a LockName,
    lock: &'a Lock,
    rows: Vec<Row<'a>>,
    /// Where its lane begins.
    top: f64,
}

impl Section<'_> {
    /// Where the middle of a row is.
    fn row(&self, index: usize, sizes: Sizes) -> f64 {
        self.top + sizes.lane + 4.0 + (index as f64 + 0.5) * sizes.pitch
    }

    fn bottom(&self, sizes: Sizes) -> f64 {
        self.top + sizes.lane + 4.0 + self.rows.len() as f64 * sizes.pitch
    }
}

/// What everything that is drawn needs to know.
struct Picture<'a> {
    timeline: &'a Timeline,
    /// The first and the last moment.
    span: (Time, Time),
    axis: Axis,
    sizes: Sizes,
    paints: Paints<'a>,
    width: f64,
    /// Where the plot begins.
    left: f64,
    has_row_each: bool,
}

impl Picture<'_> {
    /// Where a moment lies.
    fn x(&self, time: Time) -> f64 {
        self.left + INSET + self.axis.x(time)
    }

    fn right(&self) -> f64 {
        self.width - MARGIN
    }

    /// Whether a moment is in the picture.
    fn shows(&self, time: Time) -> bool {
        self.span.0 <= time && time <= self.span.1
    }
}

/// Draws a timeline.
pub fn svg(timeline: &Timeline) -> String {
    let has_row_each = are_few(timeline);
    let span = timeline.span.unwrap_or_default();
    let rows_of: Vec<_> = timeline
        .locks
        .iter()
        .map(|(lock_name, lock)| (lock_name, lock, rows(lock, has_row_each, span.1)))
        .collect();
    let sizes = Sizes::of(rows_of.iter().map(|(.., rows)| rows.len()).sum());
    let width = if timeline.tickets().count() > MANY { WIDTH_OF_MANY } else { WIDTH };
    let left = MARGIN + frame::labels_width(&rows_of, sizes, has_row_each);
    let plot = width - MARGIN - left - 2.0 * INSET;
    let axis = Axis::new(timeline, plot, CUT_WIDTH, TICKS_APART);
    let paints = Paints::new(timeline);
    let picture = Picture { timeline, span, axis, sizes, paints, width, left, has_row_each };

    let header = frame::Header::new(&picture);
    let (mut top, mut sections) = (header.plot_top(), Vec::new());
    for (lock_name, lock, rows) in rows_of {
        let section = Section { lock_name, lock, rows, top };
        top = section.bottom(sizes) + 16.0;
        sections.push(section);
    }
    let bottom = sections.last().map_or(MARGIN, |last| last.bottom(sizes)) + 4.0;
    let height = if sections.is_empty() { header.plot_top() } else { bottom + 48.0 };

    let mut xml = Xml::default();
    xml.open(
        "svg",
        &[
            ("xmlns", &"http://www.w3.org/2000/svg"),
            ("class", &"timeline"),
            ("width", &Px(width)),
            ("height", &Px(height)),
            ("viewBox", &format_args!("0 0 {} {}", Px(width), Px(height))),
            ("role", &"img"),
            ("aria-labelledby", &"title desc"),
            (
                "font-family",
                &"system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif",
            ),
            ("data-sequence", &timeline.sequence()),
        ],
    );
    xml.words("title", &[("id", &"title")], &words::title(timeline));
    xml.words("desc", &[("id", &"desc")], &words::subtitle(timeline));
    frame::hatchings(&mut xml, &picture.paints);
    xml.empty("rect", &[("width", &Px(width)), ("height", &Px(height)), ("fill", &PAPER)]);
    header.draw(&mut xml, &picture);
    if timeline.span.is_some() {
        for section in &sections {
            bars::background(&mut xml, &picture, section);
        }
        frame::grid(&mut xml, &picture, header.plot_top(), bottom);
        for section in &sections {
            bars::section(&mut xml, &picture, section);
        }
        frame::interruptions(&mut xml, &picture, header.plot_top(), bottom);
    }
    xml.finish()
}

/// A text of the picture: its class, where it stands, and how it looks.
#[derive(Debug, Clone, Copy)]
struct Words<'a> {
    class: &'a str,
    x: f64,
    y: f64,
    font: f64,
    fill: &'a str,
    /// Which part of it is at `x`.
    anchor: &'a str,
    is_bold: bool,
}

impl<'a> Words<'a> {
    fn at(class: &'a str, x: f64, y: f64) -> Self {
        Self { class, x, y, font: SMALL, fill: INK, anchor: "start", is_bold: false }
    }

    fn write(&self, xml: &mut Xml, text: &str) {
        let Self { class, x, y, font, fill, anchor, is_bold } = self;
        let weight = if *is_bold { "600" } else { "400" };
        xml.words(
            "text",
            &[
                ("class", class),
                ("x", &Px(*x)),
                ("y", &Px(*y)),
                ("font-size", &Px(*font)),
                ("font-weight", &weight),
                ("fill", fill),
                ("text-anchor", anchor),
                // What lies behind says what it is.
                ("pointer-events", &"none"),
            ],
            text,
        );
    }
}

/// A length, as exact as a screen is.
struct Px(f64);

impl std::fmt::Display for Px {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Never a negative zero.
        let tenths = (self.0 * 10.0).round() / 10.0 + 0.0;
        write!(f, "{tenths}")
    }
}

/// How wide a text is, about, and rather too wide: which font is used isn't known.
fn width_of(text: &str, font: f64) -> f64 {
    let units: f64 = text
        .chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | '.' | ',' | ' ' | '-' | '\'' | ':' => 0.32,
            'f' | 'r' | 't' | '(' | ')' => 0.42,
            'm' | 'w' | 'M' | 'W' => 0.95,
            'A'..='Z' => 0.7,
            c if c.is_ascii() => 0.63,
            _ => 1.0,
        })
        .sum();
    units * font
}

/// The text, cut to a width.
fn fitted(text: &str, font: f64, width: f64) -> String {
    if width_of(text, font) <= width {
        return text.to_owned();
    }
    let (mut fitted, mut used) = (String::new(), font);
    for c in text.chars() {
        used += width_of(c.encode_utf8(&mut [0; 4]), font);
        if used > width {
            break;
        }
        fitted.push(c);
    }
    fitted + "…"
}
