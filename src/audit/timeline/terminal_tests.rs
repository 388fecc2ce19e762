//! What the drawings as text look like, and that they fit.

use super::stories::{
    NAMES, deadlock, expiry_with_restart, five_locks, hand_over, herd, many, reentrancy, two_bursts,
};
use super::{COLUMNS, COLUMNS_LEAST, Colours, Range, Timeline, terminal};

fn all() -> Vec<Timeline> {
    vec![
        hand_over().timeline(Some("thread-work.42")),
        deadlock().timeline(None),
        expiry_with_restart().timeline(Some("deploy")),
        reentrancy().timeline(Some("build")),
        many(30, &NAMES).timeline(None),
        many(300, &NAMES).timeline(None),
        many(300, &NAMES).timeline_of(None, Range::default(), 40),
        herd(300).timeline(None),
        two_bursts().timeline(None),
        five_locks().timeline(None),
        deadlock().timeline(Some("z")),
    ]
}

fn drawn(timeline: &Timeline) -> String {
    terminal(timeline, 80, Colours::Plain)
}

#[test]
fn a_hand_over() {
    insta::assert_snapshot!(drawn(&hand_over().timeline(Some("thread-work.42"))));
}

#[test]
fn a_deadlock() {
    insta::assert_snapshot!(drawn(&deadlock().timeline(None)));
}

#[test]
fn a_restart_a_gap_and_a_broken_hold() {
    insta::assert_snapshot!(drawn(&expiry_with_restart().timeline(Some("deploy"))));
}

#[test]
fn tickets_of_one_hold() {
    insta::assert_snapshot!(drawn(&reentrancy().timeline(Some("build"))));
}

#[test]
fn two_days() {
    insta::assert_snapshot!(drawn(&two_bursts().timeline(Some("nightly"))));
}

#[test]
fn more_than_fits_a_screen() {
    insta::assert_snapshot!(drawn(&herd(100).timeline(Some("migration"))));
}

#[test]
fn nothing() {
    insta::assert_snapshot!(drawn(&deadlock().timeline(Some("z"))));
}

#[test]
fn the_readme_shows_a_true_drawing() {
    let readme = include_str!("../../../README.md");
    let drawing = drawn(&hand_over().timeline(Some("thread-work.42")));
    let indented: String = drawing
        .lines()
        .map(|line| if line.is_empty() { "\n".to_owned() } else { format!("    {line}\n") })
        .collect();
    assert!(readme.contains(&indented), "the README has another one than\n{indented}");
}

#[test]
fn every_drawing_fits_its_width() {
    for timeline in all() {
        for width in [0, 40, 41, 57, 80, COLUMNS, 213] {
            let text = terminal(&timeline, width, Colours::Plain);
            let most = width.max(COLUMNS_LEAST);
            for line in text.lines() {
                let columns = line.chars().count();
                assert!(columns <= most, "{columns} columns, not {most}: {line}");
                assert_eq!(line, line.trim_end());
            }
        }
    }
}

#[test]
fn a_drawing_has_at_most_so_many_rows() {
    let lines = |timeline: &Timeline| drawn(timeline).lines().count();
    assert!(lines(&herd(300).timeline(None)) < 45);
    assert!(lines(&many(300, &NAMES).timeline(None)) < 45);
}

#[test]
fn colours_change_nothing_else() {
    for timeline in all() {
        let plain = terminal(&timeline, COLUMNS, Colours::Plain);
        assert!(!plain.contains('\u{1b}'));
        let coloured = terminal(&timeline, COLUMNS, Colours::Ansi);
        let mut pieces = coloured.split('\u{1b}');
        let mut bare = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let (escape, rest) = piece.split_once('m').expect("an escape ends");
            assert!(escape == "[0" || escape.starts_with("[38;5;"), "{escape}");
            bare.push_str(rest);
        }
        assert_eq!(bare, plain);
    }
    assert!(terminal(&hand_over().timeline(None), COLUMNS, Colours::Ansi).contains("\u{1b}[38;5;"));
}
