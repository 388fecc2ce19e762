//! The lane of a lock, and the rows of its tickets.

use super::frame::label;
use super::{MARGIN, Picture, Px, Section, Words, fitted, width_of};
use crate::audit::timeline::marks::Mark;
use crate::audit::timeline::model::{Beats, Ending, Hold, Point, Ticket};
use crate::audit::timeline::paint::{ALARM, FAINT, INK, LINE, PAPER, SHADE};
use crate::audit::timeline::words;
use crate::audit::timeline::xml::Xml;
use crate::domain::ticket::End;
use crate::domain::time::Time;

/// No bar is thinner: what happened can be seen.
const BAR_LEAST: f64 = 1.5;

/// How near marks lie that become one.
const BEATS_APART: f64 = 3.0;
const ATTEMPTS_APART: f64 = 5.0;

/// How wide a reason can be.
const ASIDE_WIDTH: f64 = 320.0;

/// How far apart fence tokens over the lane are, and how large.
const FENCES_APART: f64 = 44.0;
const FENCE_FONT: f64 = 9.0;

/// What lies behind a lock's lane.
pub(super) fn background(xml: &mut Xml, picture: &Picture<'_>, section: &Section<'_>) {
    xml.empty(
        "rect",
        &[
            ("x", &Px(picture.left)),
            ("y", &Px(section.top)),
            ("width", &Px(picture.right() - picture.left)),
            ("height", &Px(picture.sizes.lane)),
            ("fill", &SHADE),
        ],
    );
}

/// Draws a lock: its lane, then its rows.
pub(super) fn section(xml: &mut Xml, picture: &Picture<'_>, section: &Section<'_>) {
    xml.open("g", &[("class", &"lock"), ("data-lock", section.lock_name)]);
    lane(xml, picture, section);
    labels(xml, picture, section);
    for (index, row) in section.rows.iter().enumerate() {
        let middle = section.row(index, picture.sizes);
        xml.open("g", &[("class", &"row"), ("data-owner", row.owner)]);
        for ticket in &row.tickets {
            bars(xml, picture, ticket, middle);
        }
        for ticket in &row.tickets {
            steps(xml, picture, ticket, middle);
        }
        attempts(xml, picture, &row.tickets, middle);
        xml.close();
    }
    xml.close();
}

/// Who held the lock, with the fence tokens.
fn lane(xml: &mut Xml, picture: &Picture<'_>, section: &Section<'_>) {
    let (top, height) = (section.top, picture.sizes.lane);
    xml.open("g", &[("class", &"lane"), ("data-lock", section.lock_name)]);
    let name = fitted(section.lock_name.as_str(), 12.0, picture.left - MARGIN - 10.0);
    Words { is_bold: true, ..Words::at("lock-name", MARGIN, top + height / 2.0 + 4.0) }
        .write(xml, &name);
    let mut free_from = f64::MIN;
    for hold in &section.lock.holds {
        lane_bar(xml, picture, hold, top, height);
        let bar = Bar::new(picture, hold.since.time, hold.until.map(|until| until.time));
        let font = 11.0;
        let fence = hold.fence_token.to_string();
        let said =
            [format!("{}, fence {fence}", hold.owner), format!("fence {fence}"), fence.clone()];
        let fits = |text: &&String| width_of(text, font) + 8.0 <= bar.width;
        if let Some(said) = said.iter().find(fits) {
            let fill = picture.paints.of(&hold.owner).on;
            let words = Words::at("fence", bar.x + 5.0, top + height / 2.0 + 4.0);
            Words { font, fill, ..words }.write(xml, said);
        } else if bar.x >= free_from {
            free_from = bar.x + FENCES_APART.max(width_of(&fence, FENCE_FONT) + 8.0);
            let words = Words::at("fence", bar.x, top - 3.0);
            Words { font: FENCE_FONT, fill: FAINT, ..words }.write(xml, &fence);
        }
    }
    xml.close();
}

fn lane_bar(xml: &mut Xml, picture: &Picture<'_>, hold: &Hold, top: f64, height: f64) {
    let bar = Bar::new(picture, hold.since.time, hold.until.map(|until| until.time));
    let until = hold.until.map(|until| until.sequence.to_string()).unwrap_or_default();
    xml.titled(
        "path",
        &[
            ("class", &format_args!("bar hold{}", bar.classes())),
            ("d", &bar.path(top, height)),
            ("fill", &picture.paints.of(&hold.owner).fill),
            ("stroke", &PAPER),
            ("stroke-width", &Px(if bar.width > 6.0 { 1.0 } else { 0.3 })),
            ("data-fence", &hold.fence_token),
            ("data-owner", &hold.owner),
            ("data-from", &hold.since.sequence),
            ("data-to", &until),
            ("data-x", &Px(bar.x)),
            ("data-width", &Px(bar.width)),
        ],
        &words::hold(hold, picture.span.1),
    );
}

/// The names of the rows, as many as can be read.
fn labels(xml: &mut Xml, picture: &Picture<'_>, section: &Section<'_>) {
    let sizes = picture.sizes;
    let mut free_from = f64::MIN;
    xml.open("g", &[("class", &"labels")]);
    for (index, row) in section.rows.iter().enumerate() {
        let y = section.row(index, sizes);
        // One colour over all rows of an owner.
        let swatch = if picture.has_row_each { sizes.bar } else { sizes.pitch };
        xml.empty(
            "rect",
            &[
                ("x", &Px(MARGIN)),
                ("y", &Px(y - swatch / 2.0)),
                ("width", &Px(8.0)),
                ("height", &Px(swatch)),
                ("fill", &picture.paints.of(row.owner).fill),
            ],
        );
        if row.is_first && index > 0 && !picture.has_row_each {
            let y = Px(y - sizes.pitch / 2.0);
            let d = format!("M{} {y}H{}", Px(MARGIN), Px(picture.right()));
            xml.empty("path", &[("d", &d), ("stroke", &LINE), ("stroke-width", &Px(0.5))]);
        }
        if !row.is_first || y < free_from {
            continue;
        }
        free_from = y + sizes.font + 1.0;
        let (owner, id) = label(row, picture.has_row_each);
        let (x, right, y) = (MARGIN + 16.0, picture.left - 10.0, y + sizes.font * 0.35);
        let owner = fitted(&owner, sizes.font, right - x - width_of(&id, sizes.font));
        let words = Words { font: sizes.font, ..Words::at("label", x, y) };
        words.write(xml, &owner);
        if !id.is_empty() {
            let words = Words { class: "ticket-id", x: right, fill: FAINT, ..words };
            Words { anchor: "end", ..words }.write(xml, &id);
        }
    }
    xml.close();
}

/// A span of time in the picture.
struct Bar {
    x: f64,
    width: f64,
    /// Whether it began before the picture does.
    is_begun: bool,
    /// Whether it goes on.
    is_open: bool,
}

impl Bar {
    fn new(picture: &Picture<'_>, from: Time, to: Option<Time>) -> Self {
        let x = picture.x(from);
        let width = (picture.x(to.unwrap_or(picture.span.1)) - x).max(BAR_LEAST);
        Self { x, width, is_begun: from < picture.span.0, is_open: to.is_none() }
    }

    fn classes(&self) -> &'static str {
        match (self.is_begun, self.is_open) {
            (false, false) => "",
            (true, false) => " begun",
            (false, true) => " open",
            (true, true) => " begun open",
        }
    }

    /// Its outline. A side that isn't an end is pointed.
    fn path(&self, top: f64, height: f64) -> String {
        let (left, right) = (self.x, self.x + self.width);
        let (middle, bottom) = (top + height / 2.0, top + height);
        let point = (height / 2.0).min(6.0);
        let mut path = format!("M{} {}H{}", Px(left), Px(top), Px(right));
        if self.is_open {
            path += &format!("L{} {}", Px(right + point), Px(middle));
        }
        path += &format!("L{} {}H{}", Px(right), Px(bottom), Px(left));
        if self.is_begun {
            path += &format!("L{} {}", Px(left - point), Px(middle));
        }
        path + "Z"
    }
}

/// A ticket's wait and its hold.
fn bars(xml: &mut Xml, picture: &Picture<'_>, ticket: &Ticket, middle: f64) {
    if ticket.is_attempt() {
        return;
    }
    let (last, end) = (picture.span.1, ticket.end.as_ref().map(|end| end.at));
    let height = picture.sizes.bar;
    let mut draw = |class: &str, from: Point, to: Option<Point>, fill: &str, title: &str| {
        if to.is_some_and(|to| to.time < picture.span.0) {
            return;
        }
        let bar = Bar::new(picture, from.time, to.map(|to| to.time));
        let to = to.map(|to| to.sequence.to_string()).unwrap_or_default();
        xml.titled(
            "path",
            &[
                ("class", &format_args!("bar {class}{}", bar.classes())),
                ("d", &bar.path(middle - height / 2.0, height)),
                ("fill", &fill),
                ("data-ticket", &ticket.id),
                ("data-from", &from.sequence),
                ("data-to", &to),
                ("data-x", &Px(bar.x)),
                ("data-width", &Px(bar.width)),
            ],
            title,
        );
    };
    let held = ticket.held.map(|held| held.since);
    if ticket.held.is_none() || ticket.is_promoted() {
        let hatching = format!("url(#hatching-{})", picture.paints.index(&ticket.owner));
        draw("wait", ticket.made, held.or(end), &hatching, &words::waits(ticket, last));
    }
    if let Some(held) = held {
        let fill = picture.paints.of(&ticket.owner).fill;
        draw("held", held, end, fill, &words::held(ticket, last));
    }
}

/// What happened to a ticket on its way: heartbeats, promotion, end.
fn steps(xml: &mut Xml, picture: &Picture<'_>, ticket: &Ticket, middle: f64) {
    if ticket.is_attempt() {
        return;
    }
    let sizes = picture.sizes;
    let on = picture.paints.of(&ticket.owner).on;
    let apart = if sizes.bar < 8.0 { 4.0 * BEATS_APART } else { BEATS_APART };
    let mut beats: Vec<Beats> = Vec::new();
    for later in &ticket.heartbeats {
        let x = picture.x(later.first.time);
        match beats.last_mut() {
            Some(before) if x - picture.x(before.first.time) < apart => {
                *before = before.with(*later);
            }
            Some(_) | None => beats.push(*later),
        }
    }
    for beats in beats {
        let x = Px(picture.x(beats.first.time));
        let (from, to) = (Px(middle), Px(middle + sizes.bar / 2.0));
        xml.titled(
            "path",
            &[
                ("class", &"mark heartbeat"),
                ("d", &format_args!("M{x} {from}V{to}")),
                ("stroke", &on),
                ("stroke-width", &Px(1.0)),
                ("data-ticket", &ticket.id),
                ("data-sequence", &beats.first.sequence),
                ("data-count", &beats.count),
                ("data-x", &x),
            ],
            &words::heartbeats(ticket, beats),
        );
    }
    if let Some(held) =
        ticket.held.filter(|held| ticket.is_promoted() && picture.shows(held.since.time))
    {
        let what = (Mark::Promoted, held.since, 1);
        mark(xml, picture, what, Some(ticket), middle, &words::promoted(ticket, held.since));
    }
    if let Some(end) = ticket.end.as_ref() {
        let what = (Mark::Ended(end.how), end.at, 1);
        mark(xml, picture, what, Some(ticket), middle, &words::ending(ticket, end));
    }
}

/// Tickets of one row that ended at once. Those of a kind that lie close together are one mark.
fn attempts(xml: &mut Xml, picture: &Picture<'_>, tickets: &[&Ticket], middle: f64) {
    let ended = |ticket: &&Ticket| ticket.is_attempt() && picture.shows(ticket.made.time);
    let ended = tickets.iter().copied().filter(ended);
    let ended = ended.filter_map(|ticket| Some((ticket, ticket.end.as_ref()?)));
    let mut groups: Vec<Vec<(&Ticket, &Ending)>> = Vec::new();
    for (ticket, end) in ended {
        let near = |group: &&mut Vec<(&Ticket, &Ending)>| {
            let (_, first) = group[0];
            let apart = picture.x(end.at.time) - picture.x(first.at.time);
            first.how == end.how && apart < ATTEMPTS_APART
        };
        match groups.iter_mut().rev().find(near) {
            Some(group) => group.push((ticket, end)),
            None => groups.push(vec![(ticket, end)]),
        }
    }
    for group in groups {
        let (ticket, end) = group[0];
        let what = (Mark::Ended(end.how), end.at, group.len());
        let alone = (group.len() == 1).then_some(ticket);
        mark(xml, picture, what, alone, middle, &words::endings(end.how, &group));
    }
}

/// Draws a mark, of one ticket or of several.
fn mark(
    xml: &mut Xml,
    picture: &Picture<'_>,
    (mark, at, count): (Mark, Point, usize),
    ticket: Option<&Ticket>,
    middle: f64,
    title: &str,
) {
    let x = picture.x(at.time);
    let id = ticket.map(|ticket| ticket.id.to_string()).unwrap_or_default();
    xml.open(
        "g",
        &[
            ("class", &format_args!("mark {}", mark.class())),
            ("data-ticket", &id),
            ("data-sequence", &at.sequence),
            ("data-count", &count),
            ("data-x", &Px(x)),
        ],
    );
    xml.words("title", &[], title);
    shape(xml, mark, x, middle, picture.sizes.mark);
    if matches!(mark, Mark::Ended(_))
        && let Some(said) = ticket.filter(|_| picture.has_row_each).and_then(words::aside)
    {
        aside(xml, picture, x, middle, &said);
    }
    xml.close();
}

/// What is said beside a mark: after it, or before it where no room is left.
fn aside(xml: &mut Xml, picture: &Picture<'_>, x: f64, middle: f64, said: &str) {
    let font = picture.sizes.font - 1.0;
    let said = fitted(said, font, ASIDE_WIDTH);
    let away = picture.sizes.mark + 5.0;
    let has_room = x + away + width_of(&said, font) <= picture.right();
    let (x, anchor) = if has_room { (x + away, "start") } else { (x - away, "end") };
    let words = Words::at("aside", x, middle + font * 0.35);
    Words { font, fill: FAINT, anchor, ..words }.write(xml, &said);
}

/// The shape of a mark around a point; `size` is half of its height.
pub(super) fn shape(xml: &mut Xml, mark: Mark, x: f64, y: f64, size: f64) {
    let place = format!("translate({} {}) scale({})", Px(x), Px(y), size / 6.5);
    let bare = |xml: &mut Xml, d: &str, fill: &str, stroke: &str| {
        xml.empty(
            "path",
            &[
                ("d", &d),
                ("transform", &place),
                ("fill", &fill),
                ("stroke", &stroke),
                ("stroke-width", &Px(1.6)),
                ("stroke-linejoin", &"round"),
            ],
        );
    };
    let badge = |xml: &mut Xml, stroke: &str, d: &str, fill: &str| {
        xml.empty(
            "circle",
            &[
                ("r", &Px(6.5)),
                ("transform", &place),
                ("fill", &PAPER),
                ("stroke", &stroke),
                ("stroke-width", &Px(1.2)),
            ],
        );
        bare(xml, d, fill, if fill == "none" { stroke } else { "none" });
    };
    match mark {
        Mark::Promoted => bare(xml, "M-4 -6L5 0L-4 6Z", INK, PAPER),
        Mark::Ended(End::Released) => bare(xml, "M0 -7V7", "none", INK),
        Mark::Ended(End::Expired) => badge(xml, ALARM, "M-3 -3L3 3M-3 3L3 -3", "none"),
        Mark::Ended(End::Broken) => {
            badge(xml, ALARM, "M1.5 -5L-3.2 1H-.3L-1.5 5L3.2 -1H.3Z", ALARM);
        }
        Mark::Ended(End::TimedOut) => badge(xml, INK, "M-3 -4H3L-3 4H3Z", INK),
        Mark::Ended(End::Cancelled) => badge(xml, INK, "M-3.2 0H3.2", "none"),
        Mark::Ended(End::Contended) => bare(xml, "M0 -6L6 0L0 6L-6 0Z", PAPER, INK),
        Mark::Ended(End::DeadlockRejected) => {
            let d = "M2.2 -2.6A3.4 3.4 0 1 0 3.4 .4M3.6 -5V-2H.6";
            badge(xml, ALARM, d, "none");
        }
        // These are no signs at a point.
        Mark::Held | Mark::Waits | Mark::Heartbeat | Mark::Restart | Mark::Gap | Mark::Cut => {}
    }
}
