//! A lane's asks: each identity has a line of its own, and the lines are taken in turns.
//!
//! So what one identity has waiting delays another's ask by one ask at most. Both ways in and out
//! cost the same however much waits.

use std::collections::{HashMap, VecDeque};

use crate::domain::name::UserName;

/// How many asks a lane holds. At tens of thousands of commands a second this is a fraction of
/// a second of work; more would be answered too late to be of use.
pub(super) const LANE_ASKS_MAX: usize = 8192;

/// One identity may have at most this part, a third, of as many asks as there are places free.
///
/// So one that floods a lane alone gets a quarter of it, and several get less each: whoever has
/// nothing waiting finds a place until the lane is full of others like it.
const FREE_PART: usize = 3;

/// How many places a line keeps while it is free, for whoever takes it next.
const FREE_LINE_PLACES: usize = 8;

/// The asks of a lane.
pub(super) struct Turns<T> {
    /// Those in use have asks.
    lines: Vec<Line<T>>,
    /// The lines that are not in use.
    free: Vec<usize>,
    by_identity: HashMap<UserName, usize>,
    /// The lines in use, the next one first.
    turns: VecDeque<usize>,
    /// How many asks wait, in all lines.
    len: usize,
}

struct Line<T> {
    /// Whose it is, or was.
    identity: UserName,
    asks: VecDeque<T>,
}

impl<T> Turns<T> {
    pub(super) fn new() -> Self {
        let (lines, free, turns) = (Vec::new(), Vec::new(), VecDeque::new());
        Self { lines, free, by_identity: HashMap::new(), turns, len: 0 }
    }

    /// How many asks wait.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Puts an ask at the end of its identity's line; false if that has its share.
    pub(super) fn push(&mut self, identity: &UserName, ask: T) -> bool {
        let found = self.by_identity.get(identity).copied();
        let own = found.map_or(0, |at| self.lines[at].asks.len());
        if own >= (LANE_ASKS_MAX - self.len).div_ceil(FREE_PART) {
            return false;
        }
        let at = found.unwrap_or_else(|| self.open(identity));
        self.lines[at].asks.push_back(ask);
        self.len += 1;
        true
    }

    /// Takes up to `most` asks.
    pub(super) fn take(&mut self, most: usize, into: &mut Vec<T>) {
        for _ in 0..most {
            let Some(at) = self.turns.pop_front() else { return };
            let line = &mut self.lines[at];
            into.push(line.asks.pop_front().expect("a line in use has asks"));
            self.len -= 1;
            if line.asks.is_empty() {
                line.asks.shrink_to(FREE_LINE_PLACES);
                self.by_identity.remove(&line.identity);
                self.free.push(at);
            } else {
                self.turns.push_back(at);
            }
        }
    }

    /// A line for an identity that has none, whose turn comes after all others.
    fn open(&mut self, identity: &UserName) -> usize {
        let identity = identity.clone();
        let at = match self.free.pop() {
            Some(at) => {
                self.lines[at].identity = identity.clone();
                at
            }
            None => {
                self.lines.push(Line { identity: identity.clone(), asks: VecDeque::new() });
                self.lines.len() - 1
            }
        };
        self.by_identity.insert(identity, at);
        self.turns.push_back(at);
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str) -> UserName {
        name.parse().expect("a name")
    }

    fn push_all(turns: &mut Turns<String>, name: &str) -> usize {
        let identity = user(name);
        (0..).take_while(|n| turns.push(&identity, format!("{name}{n}"))).count()
    }

    fn take(turns: &mut Turns<String>, most: usize) -> Vec<String> {
        let mut asks = Vec::new();
        turns.take(most, &mut asks);
        asks
    }

    #[test]
    fn a_flood_delays_nobody_elses_ask_by_more_than_one() {
        let mut turns = Turns::new();
        for n in 0..2000 {
            assert!(turns.push(&user("ana"), format!("ana{n}")));
        }
        for ask in ["bo0", "cy0", "bo1"] {
            assert!(turns.push(&user(&ask[..2]), ask.to_owned()));
        }
        assert_eq!(take(&mut turns, 7), ["ana0", "bo0", "cy0", "ana1", "bo1", "ana2", "ana3"]);
        // Whose turn it is outlasts a batch.
        assert!(turns.push(&user("bo"), "bo2".to_owned()));
        assert_eq!(take(&mut turns, 1), ["ana4"]);
        assert_eq!(take(&mut turns, 2), ["bo2", "ana5"]);
    }

    #[test]
    fn whoever_floods_a_lane_gets_a_quarter_alone_and_less_beside_others() {
        let mut turns = Turns::new();
        assert_eq!(push_all(&mut turns, "ana"), LANE_ASKS_MAX / 4);
        let bo = push_all(&mut turns, "bo");
        let cy = push_all(&mut turns, "cy");
        assert!(LANE_ASKS_MAX / 4 > bo && bo > cy && cy > LANE_ASKS_MAX / 10, "{bo} {cy}");
        assert!(turns.push(&user("dan"), String::new()), "there is room for who has none");
        // What is taken makes room.
        let most = turns.len();
        assert_eq!(take(&mut turns, most + 1).len(), most);
        assert_eq!(push_all(&mut turns, "ana"), LANE_ASKS_MAX / 4);
    }

    #[test]
    fn a_lane_is_full_when_each_of_many_has_one() {
        let mut turns = Turns::new();
        for n in 0..LANE_ASKS_MAX {
            assert!(turns.push(&user(&format!("u{n}")), n.to_string()), "{n}");
        }
        assert!(!turns.push(&user("ana"), String::new()));
        let asks = take(&mut turns, LANE_ASKS_MAX);
        assert!(asks.iter().enumerate().all(|(n, ask)| *ask == n.to_string()));
        assert_eq!((turns.len(), turns.by_identity.len()), (0, 0));
        assert_eq!(turns.free.len(), turns.lines.len());
    }
}
