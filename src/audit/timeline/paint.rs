//! Colours: one for each owner, told apart by colour-blind readers too.

use std::collections::BTreeMap;

use super::model::Timeline;
use crate::domain::name::UserName;

pub(super) const PAPER: &str = "#ffffff";
pub(super) const INK: &str = "#1f2933";
pub(super) const FAINT: &str = "#66727f";
pub(super) const LINE: &str = "#dde2e7";
pub(super) const SHADE: &str = "#f3f5f7";
pub(super) const ALARM: &str = "#b3261e";

/// A colour, and how it is used.
pub(super) struct Paint {
    pub(super) fill: &'static str,
    /// Behind the hatching.
    pub(super) tint: &'static str,
    /// What can be read on it.
    pub(super) on: &'static str,
    /// Its number among a terminal's 256 colours.
    pub(super) ansi: u8,
}

const fn paint(fill: &'static str, tint: &'static str, on: &'static str, ansi: u8) -> Paint {
    Paint { fill, tint, on, ansi }
}

/// Paul Tol's "muted" scheme, made to be told apart with each kind of colour blindness.
const PAINTS: [Paint; 9] = [
    paint("#332288", "#dedbec", PAPER, 61),
    paint("#ddcc77", "#f9f6e8", INK, 186),
    paint("#117733", "#d7e8dd", PAPER, 28),
    paint("#cc6677", "#f7e4e7", INK, 168),
    paint("#88ccee", "#ebf6fc", INK, 117),
    paint("#882255", "#ead7e1", PAPER, 125),
    paint("#44aa99", "#def1ee", INK, 73),
    paint("#aa4499", "#f1dfee", PAPER, 133),
    paint("#999933", "#eeeedb", INK, 143),
];

/// Which colour each owner has.
pub(super) struct Paints<'a>(BTreeMap<&'a UserName, usize>);

impl<'a> Paints<'a> {
    /// An owner has the colour of its name, the same in every picture, unless an owner before it
    /// has that one and another is free.
    pub(super) fn new(timeline: &'a Timeline) -> Self {
        let (mut chosen, mut taken) = (BTreeMap::new(), [0_u32; PAINTS.len()]);
        for owner in timeline.owners() {
            let own = hash(owner.as_str()) % PAINTS.len();
            let least = taken.iter().copied().min().unwrap_or(0);
            let near = (0..PAINTS.len()).map(|step| (own + step) % PAINTS.len());
            let free = near.clone().find(|index| taken[*index] == least).unwrap_or(own);
            taken[free] += 1;
            chosen.insert(owner, free);
        }
        Self(chosen)
    }

    pub(super) fn of(&self, owner: &UserName) -> &'static Paint {
        &PAINTS[self.index(owner)]
    }

    /// The number of an owner's colour.
    pub(super) fn index(&self, owner: &UserName) -> usize {
        self.0.get(owner).copied().unwrap_or(0)
    }

    /// The colours that are used, by their numbers.
    pub(super) fn used(&self) -> Vec<(usize, &'static Paint)> {
        let mut used: Vec<usize> = self.0.values().copied().collect();
        used.sort_unstable();
        used.dedup();
        used.into_iter().map(|index| (index, &PAINTS[index])).collect()
    }
}

/// FNV-1a: the same for a name for ever.
fn hash(text: &str) -> usize {
    let mixed = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    // Folded, so that a small remainder depends on every bit.
    let hash = text.bytes().fold(0x811c_9dc5, mixed);
    (hash ^ hash >> 16) as usize
}
