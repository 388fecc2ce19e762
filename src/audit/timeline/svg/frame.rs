//! What stands around the bars: the heading, the legend, the axis, and what cuts through all.

use super::bars::shape;
use super::{INSET, MARGIN, Picture, Px, SMALL, Sizes, TICKS_APART, Words, fitted, width_of};
use crate::audit::timeline::marks::Mark;
use crate::audit::timeline::model::{Interruption, Lock};
use crate::audit::timeline::paint::{ALARM, FAINT, INK, LINE, PAPER, Paints, SHADE};
use crate::audit::timeline::rows::Row;
use crate::audit::timeline::words;
use crate::audit::timeline::xml::Xml;
use crate::domain::name::LockName;

/// How wide the labels at the left are, at least and at most.
const LABELS_WIDTH: (f64, f64) = (70.0, 240.0);

const HEADING: f64 = 18.0;
const LEGEND_LINE: f64 = 20.0;

/// How far apart two words over the plot are.
const WORDS_APART: f64 = 64.0;

/// The label of a row: its owner, and the ticket if it has one to itself.
pub(super) fn label(row: &Row<'_>, has_row_each: bool) -> (String, String) {
    let id = row.tickets.first().map(|ticket| ticket.id.to_string());
    let id = id.filter(|_| has_row_each).and_then(|id| id.get(..8).map(str::to_owned));
    (row.owner.to_string(), id.unwrap_or_default())
}

/// The hatchings: one for each colour, and that of the legend, which is nobody's.
pub(super) fn hatchings(xml: &mut Xml, paints: &Paints<'_>) {
    let of_owners = paints
        .used()
        .into_iter()
        .map(|(index, paint)| (format!("hatching-{index}"), paint.fill, paint.tint));
    xml.open("defs", &[]);
    for (id, fill, tint) in of_owners.chain([("hatching".to_owned(), FAINT, SHADE)]) {
        let size = &Px(5.0);
        xml.open(
            "pattern",
            &[
                ("id", &id),
                ("width", size),
                ("height", size),
                ("patternUnits", &"userSpaceOnUse"),
                ("patternTransform", &"rotate(45)"),
            ],
        );
        xml.empty("rect", &[("width", size), ("height", size), ("fill", &tint)]);
        xml.empty("rect", &[("width", &Px(1.8)), ("height", size), ("fill", &fill)]);
        xml.close();
    }
    xml.close();
}

/// How wide the labels are.
pub(super) fn labels_width(
    sections: &[(&LockName, &Lock, Vec<Row<'_>>)],
    sizes: Sizes,
    has_row_each: bool,
) -> f64 {
    let rows = sections.iter().flat_map(|(.., rows)| rows).map(|row| {
        let (owner, id) = label(row, has_row_each);
        width_of(&owner, sizes.font) + width_of(&id, sizes.font) + 36.0
    });
    let locks = sections.iter().map(|(name, ..)| width_of(name.as_str(), SMALL) * 1.1 + 12.0);
    rows.chain(locks).fold(LABELS_WIDTH.0, f64::max).min(LABELS_WIDTH.1)
}

/// What stands above the plot.
pub(super) struct Header {
    legend: Vec<(Mark, f64, f64)>,
    left_out: Option<String>,
    bottom: f64,
}

impl Header {
    pub(super) fn new(picture: &Picture<'_>) -> Self {
        let left_out = words::left_out(picture.timeline);
        let mut y = MARGIN + HEADING + 22.0 + if left_out.is_some() { 18.0 } else { 0.0 };
        let (mut x, mut legend) = (MARGIN, Vec::new());
        y += 24.0;
        for mark in Mark::used(picture.timeline, picture.axis.cuts().next().is_some()) {
            let width = 40.0 + width_of(mark.words(), SMALL);
            if x + width > picture.right() {
                (x, y) = (MARGIN, y + LEGEND_LINE);
            }
            legend.push((mark, x, y));
            x += width;
        }
        Self { legend, left_out, bottom: y }
    }

    /// Where the plot begins: the axis and the words over the plot come before.
    pub(super) fn plot_top(&self) -> f64 {
        self.bottom + 66.0
    }

    pub(super) fn draw(&self, xml: &mut Xml, picture: &Picture<'_>) {
        let width = picture.right() - MARGIN;
        let y = MARGIN + HEADING;
        let title = fitted(&words::title(picture.timeline), HEADING, width);
        Words { font: HEADING, is_bold: true, ..Words::at("heading", MARGIN, y) }
            .write(xml, &title);
        let mut line = |class: &str, y: f64, fill: &str, text: &str| {
            let font = SMALL + 1.0;
            let words = Words { font, fill, ..Words::at(class, MARGIN, y) };
            words.write(xml, &fitted(text, font, width));
        };
        line("subheading", y + 22.0, FAINT, &words::subtitle(picture.timeline));
        if let Some(left_out) = &self.left_out {
            line("left-out", y + 40.0, ALARM, left_out);
        }
        for (mark, x, y) in &self.legend {
            sample(xml, *mark, *x, *y);
            Words::at("legend", x + 24.0, *y).write(xml, mark.words());
        }
    }
}

/// A sign as the legend shows it.
fn sample(xml: &mut Xml, mark: Mark, x: f64, y: f64) {
    let middle = y - 4.0;
    let bar = |xml: &mut Xml, fill: &str, x: f64, width: f64| {
        let (top, height) = (Px(middle - 6.0), Px(12.0));
        let (x, width) = (Px(x), Px(width));
        xml.empty(
            "rect",
            &[("x", &x), ("y", &top), ("width", &width), ("height", &height), ("fill", &fill)],
        );
    };
    let line = |xml: &mut Xml, x: f64, stroke: &str, dashes: &str| {
        let (x, from, to) = (Px(x), Px(middle - 7.0), Px(middle + 7.0));
        xml.empty(
            "path",
            &[
                ("d", &format_args!("M{x} {from}V{to}")),
                ("stroke", &stroke),
                ("stroke-width", &Px(1.5)),
                ("stroke-dasharray", &dashes),
            ],
        );
    };
    match mark {
        Mark::Held => bar(xml, FAINT, x, 18.0),
        Mark::Waits => bar(xml, "url(#hatching)", x, 18.0),
        Mark::Heartbeat => {
            bar(xml, FAINT, x, 18.0);
            for step in [5.0, 9.0, 13.0] {
                let (x, from, to) = (Px(x + step), Px(middle), Px(middle + 6.0));
                let d = format!("M{x} {from}V{to}");
                xml.empty("path", &[("d", &d), ("stroke", &PAPER)]);
            }
        }
        Mark::Promoted | Mark::Ended(_) => shape(xml, mark, x + 9.0, middle, 6.5),
        Mark::Restart => line(xml, x + 9.0, INK, "4 3"),
        Mark::Gap => {
            line(xml, x + 7.5, ALARM, "none");
            line(xml, x + 10.5, ALARM, "none");
        }
        Mark::Cut => bar(xml, LINE, x + 2.0, 14.0),
    }
}

/// The axis, its lines, and its cuts.
pub(super) fn grid(xml: &mut Xml, picture: &Picture<'_>, top: f64, bottom: f64) {
    let (top, left, right) = (top - 18.0, picture.left, picture.right());
    for cut in picture.axis.cuts() {
        let x = picture.x(cut.from);
        let length = words::length(cut.from, cut.to);
        xml.open("g", &[("class", &"cut"), ("data-from", &cut.from), ("data-to", &cut.to)]);
        xml.titled(
            "rect",
            &[
                ("x", &Px(x)),
                ("y", &Px(top)),
                ("width", &Px(cut.width)),
                ("height", &Px(bottom - top)),
                ("fill", &SHADE),
            ],
            &format!("nothing happened for {length}\nfrom {}\nto {}", cut.from, cut.to),
        );
        for x in [x, x + cut.width] {
            let d = format!("M{} {}V{}", Px(x), Px(top), Px(bottom));
            let dashes = "2 3";
            xml.empty("path", &[("d", &d), ("stroke", &FAINT), ("stroke-dasharray", &dashes)]);
        }
        if cut.width > SMALL + 4.0 && bottom - top > width_of(&length, SMALL) {
            let (x, y) = (x + cut.width / 2.0, (top + bottom) / 2.0);
            let turn = format!("rotate(-90 {} {})", Px(x), Px(y));
            xml.open("g", &[("transform", &turn)]);
            let words = Words::at("pause", x, y + SMALL * 0.35);
            Words { fill: FAINT, anchor: "middle", ..words }.write(xml, &length);
            xml.close();
        }
        xml.close();
    }
    xml.open("g", &[("class", &"axis")]);
    let d = format!(
        "M{} {}H{}M{} {}H{}",
        Px(left),
        Px(top),
        Px(right),
        Px(left),
        Px(bottom),
        Px(right)
    );
    xml.empty("path", &[("d", &d), ("stroke", &LINE)]);
    // A tall picture has the times at both ends.
    let is_tall = bottom - top > 320.0;
    for tick in picture.axis.ticks(TICKS_APART) {
        let x = Px(picture.left + INSET + tick.x);
        let d = format!("M{x} {}V{}", Px(top - 4.0), Px(bottom + 4.0));
        xml.empty("path", &[("d", &d), ("stroke", &LINE), ("data-time", &tick.time)]);
        let mut word = |y: f64, class: &str, text: &str| {
            let words = Words::at(class, picture.left + INSET + tick.x, y);
            Words { fill: FAINT, anchor: "middle", ..words }.write(xml, text);
        };
        word(top - 9.0, "tick", &tick.clock);
        if is_tall {
            word(bottom + 18.0, "tick", &tick.clock);
        }
        if let Some(date) = &tick.date {
            word(top - 24.0, "date", date);
            if is_tall {
                word(bottom + 33.0, "date", date);
            }
        }
    }
    xml.close();
}

/// Restarts and gaps, through all rows.
pub(super) fn interruptions(xml: &mut Xml, picture: &Picture<'_>, top: f64, bottom: f64) {
    let mut free_from = f64::MIN;
    for interruption in &picture.timeline.breaks {
        let x = picture.x(interruption.at.time);
        let (mark, stroke, dashes, offsets) = match interruption.what {
            Interruption::Restart { .. } => (Mark::Restart, INK, "5 4", [0.0, 0.0]),
            Interruption::Gap { .. } => (Mark::Gap, ALARM, "none", [-1.5, 1.5]),
        };
        let [first, second] = offsets.map(|offset| Px(x + offset));
        let (from, to) = (Px(top - 6.0), Px(bottom));
        let class = format!("mark {}", mark.class());
        let sequence = &interruption.at.sequence;
        xml.open(
            "g",
            &[("class", &class), ("data-sequence", sequence), ("data-time", &interruption.at.time)],
        );
        xml.titled(
            "path",
            &[
                ("d", &format_args!("M{first} {from}V{to}M{second} {from}V{to}")),
                ("stroke", &stroke),
                ("stroke-width", &Px(1.3)),
                ("stroke-dasharray", &dashes),
                ("fill", &"none"),
            ],
            &words::interruption(interruption),
        );
        if x >= free_from {
            free_from = x + WORDS_APART;
            let words =
                Words { fill: stroke, anchor: "middle", ..Words::at("break", x, top - 8.0) };
            Words { font: SMALL - 1.0, ..words }.write(xml, mark.words());
        }
        xml.close();
    }
}
