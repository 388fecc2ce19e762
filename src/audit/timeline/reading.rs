//! Reads a picture back, as far as tests look at it.

use std::collections::BTreeSet;

use roxmltree::{Document, Node};

use super::model::Timeline;
use super::svg;
use crate::domain::id::TicketId;

/// An element that stands for something: a bar or a mark.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Thing {
    pub(super) classes: BTreeSet<String>,
    /// The lock in whose part it stands.
    pub(super) lock: String,
    pub(super) ticket: String,
    pub(super) fence: String,
    pub(super) owner: String,
    /// The sequence that it begins with.
    pub(super) from: u64,
    /// The sequence that it ends with; 0 if it goes on.
    pub(super) to: u64,
    pub(super) count: u64,
    pub(super) x: f64,
    pub(super) width: f64,
    pub(super) title: String,
    pub(super) fill: String,
}

impl Thing {
    pub(super) fn is(&self, class: &str) -> bool {
        self.classes.contains(class)
    }

    pub(super) fn end(&self) -> f64 {
        self.x + self.width
    }
}

/// A text, where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Words {
    pub(super) class: String,
    pub(super) text: String,
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) font: f64,
}

/// What is in a picture.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Seen {
    /// Of the tickets.
    pub(super) bars: Vec<Thing>,
    /// Of the locks.
    pub(super) holds: Vec<Thing>,
    pub(super) marks: Vec<Thing>,
    pub(super) words: Vec<Words>,
    /// The cuts of the axis: where they begin and end.
    pub(super) cuts: Vec<(f64, f64)>,
    pub(super) size: (f64, f64),
}

impl Seen {
    pub(super) fn of(timeline: &Timeline) -> Self {
        Self::in_picture(&svg(timeline))
    }

    pub(super) fn in_picture(picture: &str) -> Self {
        let document = Document::parse(picture).expect("it is well-formed");
        let root = document.root_element();
        assert!(root.has_tag_name(("http://www.w3.org/2000/svg", "svg")));
        let with = |class: &'static str| {
            let nodes = root.descendants();
            nodes.filter(move |node| classes(node).contains(class))
        };
        let is_of_lane = |thing: &Thing| !thing.fence.is_empty();
        let (holds, bars) = with("bar").map(|node| thing(&node)).partition(is_of_lane);
        let words = root.descendants().filter(|node| node.has_tag_name(TEXT));
        let cut = |node: Node<'_, '_>| {
            let rect = node.first_element_child().expect("a cut has a rectangle");
            (number(&rect, "x"), number(&rect, "x") + number(&rect, "width"))
        };
        Self {
            bars,
            holds,
            marks: with("mark").map(|node| thing(&node)).collect(),
            words: words.map(|node| said(&node)).collect(),
            cuts: with("cut").filter(|node| node.has_tag_name(GROUP)).map(cut).collect(),
            size: (number(&root, "width"), number(&root, "height")),
        }
    }

    /// The bars of a ticket, in order.
    pub(super) fn bars_of(&self, ticket: TicketId) -> Vec<&Thing> {
        self.bars.iter().filter(|bar| bar.ticket == ticket.to_string()).collect()
    }

    /// The marks of a class.
    pub(super) fn marks(&self, class: &str) -> Vec<&Thing> {
        self.marks.iter().filter(|mark| mark.is(class)).collect()
    }

    /// The texts of a class.
    pub(super) fn texts(&self, class: &str) -> Vec<&str> {
        let words = self.words.iter().filter(|words| words.class == class);
        words.map(|words| words.text.as_str()).collect()
    }
}

const TEXT: (&str, &str) = ("http://www.w3.org/2000/svg", "text");
const GROUP: (&str, &str) = ("http://www.w3.org/2000/svg", "g");

fn classes(node: &Node<'_, '_>) -> BTreeSet<String> {
    node.attribute("class").unwrap_or_default().split(' ').map(str::to_owned).collect()
}

fn number(node: &Node<'_, '_>, name: &str) -> f64 {
    let text = node.attribute(name).unwrap_or("0");
    text.parse().unwrap_or_else(|_| panic!("{name} is {text}"))
}

fn thing(node: &Node<'_, '_>) -> Thing {
    let text = |name: &str| node.attribute(name).unwrap_or_default().to_owned();
    let whole = |name: &str| text(name).parse().unwrap_or(0);
    let title = node.descendants().find(|node| node.tag_name().name() == "title");
    let lock = node.ancestors().find_map(|node| node.attribute("data-lock"));
    let fill = node.descendants().find_map(|node| node.attribute("fill"));
    Thing {
        classes: classes(node),
        lock: lock.unwrap_or_default().to_owned(),
        ticket: text("data-ticket"),
        fence: text("data-fence"),
        owner: text("data-owner"),
        from: whole("data-from").max(whole("data-sequence")),
        to: whole("data-to"),
        count: whole("data-count"),
        x: number(node, "data-x"),
        width: number(node, "data-width"),
        title: title.and_then(|title| title.text()).unwrap_or_default().to_owned(),
        fill: fill.unwrap_or_default().to_owned(),
    }
}

fn said(node: &Node<'_, '_>) -> Words {
    let font = node.ancestors().find_map(|node| node.attribute("font-size"));
    Words {
        class: node.attribute("class").unwrap_or_default().to_owned(),
        text: node.text().unwrap_or_default().to_owned(),
        x: number(node, "x"),
        y: number(node, "y"),
        font: font.and_then(|font| font.parse().ok()).expect("every text has a size"),
    }
}
