//! What is in the pictures. With `PEARING_DRAW_TIMELINES=DIR` they are written there, to be looked
//! at.

use std::collections::BTreeSet;

use super::model::TICKETS_MAX;
use super::reading::{Seen, Thing};
use super::stories::{
    NAMES, deadlock, expiry_with_restart, five_locks, hand_over, herd, many, reentrancy, two_bursts,
};
use super::story::{Ask, REPO, Story, lease, wait};
use super::*;
use crate::domain::event::{Event, Record};
use crate::domain::id::Sequence;
use crate::ledger::Ledger as _;
use crate::projection::as_of::AsOf;

fn records(story: &Story) -> Vec<Record> {
    let stored = story.ledger.records(Sequence::ZERO, usize::MAX).expect("it can be read");
    stored.iter().map(|stored| stored.decode().expect("it was written here")).collect()
}

/// The sequences of the events of a type.
fn sequences(story: &Story, type_name: &str) -> Vec<u64> {
    let records = records(story);
    let of_type = records.iter().filter(|record| record.event.type_name() == type_name);
    of_type.map(|record| record.sequence.0).collect()
}

#[track_caller]
fn assert_near(x: f64, expected: f64) {
    assert!((x - expected).abs() < 0.2, "{x} is not at {expected}");
}

#[test]
fn bars_lie_where_their_times_are_and_fences_stand_in_the_lane() {
    let story = hand_over();
    let seen = Seen::of(&story.timeline(Some("thread-work.42")));
    let acquired = sequences(&story, "lock.acquired");
    let promoted = sequences(&story, "lock.promoted");
    let queued = sequences(&story, "lock.queued");
    let released = sequences(&story, "lock.released");
    let expired = sequences(&story, "lock.expired");
    let bars =
        |class: &str| -> Vec<&Thing> { seen.bars.iter().filter(|bar| bar.is(class)).collect() };
    let (held, waits) = (bars("held"), bars("wait"));
    let spans = |bars: &[&Thing]| bars.iter().map(|bar| (bar.from, bar.to)).collect::<Vec<_>>();
    let held_spans = [(acquired[0], released[0]), (promoted[0], expired[0]), (promoted[1], 0)];
    assert_eq!(spans(&held), held_spans);
    assert_eq!(spans(&waits), [(queued[0], promoted[0]), (queued[1], promoted[1])]);
    // The picture is 70 seconds wide.
    let (left, second) = (held[0].x, (held[2].end() - held[0].x) / 70.0);
    for (bar, from, to) in [
        (held[0], 0.0, 31.5),
        (waits[0], 4.0, 31.5),
        (held[1], 31.5, 46.5),
        (waits[1], 9.0, 46.5),
        (held[2], 46.5, 70.0),
        (&seen.holds[0], 0.0, 31.5),
        (&seen.holds[1], 31.5, 46.5),
        (&seen.holds[2], 46.5, 70.0),
    ] {
        assert_near(bar.x, left + from * second);
        assert_near(bar.end(), left + to * second);
    }
    let fences: Vec<String> = [acquired[0], promoted[0], promoted[1]].map(|f| f.to_string()).into();
    let lane: Vec<&str> = seen.holds.iter().map(|hold| hold.fence.as_str()).collect();
    assert_eq!(lane, fences);
    let owners = ["ana", "bo", "cy"];
    let said: Vec<String> = owners
        .iter()
        .zip(&fences)
        .map(|(owner, fence)| format!("{owner}, fence {fence}"))
        .collect();
    assert_eq!(seen.texts("fence"), said);
    let is_open = |thing: &Thing| thing.is("open");
    assert_eq!(seen.bars.iter().chain(&seen.holds).filter(|bar| is_open(bar)).count(), 2);
    let beats = seen.marks("heartbeat");
    assert_eq!(beats.len(), 3);
    for (beat, at) in beats.iter().zip([10.0, 20.0, 60.0]) {
        assert_near(beat.x, left + at * second);
    }
    assert_eq!(seen.marks("contended")[0].x, held[2].end(), "at the very end");
}

#[test]
fn each_colour_is_its_owners_in_the_lane_and_in_the_rows_and_in_every_picture() {
    let seen = Seen::of(&hand_over().timeline(None));
    for hold in &seen.holds {
        let of_hold = |bar: &&Thing| bar.is("held") && bar.from == hold.from;
        let bar = seen.bars.iter().find(of_hold).expect("a hold has a ticket");
        assert_eq!(bar.fill, hold.fill);
    }
    let fills: BTreeSet<&str> = seen.holds.iter().map(|hold| hold.fill.as_str()).collect();
    assert_eq!(fills.len(), 3, "three owners have three colours");
    let mut alone = Story::of(&["ana"]);
    alone.at(0).acquire("ana", "x", lease(30));
    assert_eq!(Seen::of(&alone.timeline(None)).holds[0].fill, seen.holds[0].fill);
    let all = Seen::of(&many(60, &NAMES).timeline(None));
    let fills: BTreeSet<&str> = all.holds.iter().map(|hold| hold.fill.as_str()).collect();
    assert_eq!(fills.len(), NAMES.len(), "eight owners have eight colours");
}

#[test]
fn each_kind_of_end_has_its_mark() {
    let mut story = Story::of(&["ana", "bo", "cy"]);
    let released = story.at(0).acquire("ana", "x", lease(30));
    let timed_out = story.at(1_000).acquire("bo", "x", wait(30, 5));
    let cancelled = story.at(2_000).acquire("bo", "x", wait(30, 60));
    let contended = story.at(3_000).acquire("cy", "x", lease(30));
    let expired = story.at(4_000).acquire("cy", "x", wait(20, 60));
    story.at(10_000).release("bo", cancelled);
    story.at(12_000).release("ana", released);
    story.at(40_000);
    let broken = story.acquire("ana", "x", lease(60));
    let other = story.acquire("bo", "y", lease(60));
    let waits = story.acquire("bo", "x", wait(30, 60));
    let rejected = story.at(44_000).acquire("ana", "y", wait(30, 60));
    story.at(50_000).break_lock("x", "it \"hangs\"");
    story.at(55_000).release("bo", other);
    let seen = Seen::of(&story.timeline(None));
    let ends = [
        (released, "released", "lock.released"),
        (timed_out, "timed-out", "lock.wait_timed_out"),
        (cancelled, "cancelled", "lock.wait_cancelled"),
        (contended, "contended", "lock.contended"),
        (expired, "expired", "lock.expired"),
        (broken, "broken", "lock.broken"),
        (rejected, "deadlock-rejected", "lock.deadlock_rejected"),
    ];
    let classes: BTreeSet<&str> = ends.iter().map(|(_, class, _)| *class).collect();
    for (ticket, class, type_name) in ends {
        let of_ticket = seen.marks.iter().filter(|mark| mark.ticket == ticket.to_string());
        let of_ticket: Vec<&Thing> =
            of_ticket.filter(|mark| classes.iter().any(|class| mark.is(class))).collect();
        let [mark] = of_ticket[..] else { panic!("{class}: {of_ticket:?}") };
        assert!(mark.is(class), "{class}: {mark:?}");
        let record = records(&story).into_iter().find(|record| record.sequence.0 == mark.from);
        let record = record.expect("its event is in the ledger");
        assert_eq!(record.event.type_name(), type_name);
        let (_, of_event) = record.event.lock_and_ticket().expect("it is about a ticket");
        assert_eq!(of_event, ticket);
        let word = class.replace('-', " ");
        let told = format!("{word} at {} (sequence {})", record.time, mark.from);
        assert!(mark.title.contains(&told), "{}", mark.title);
        assert!(mark.title.contains(&ticket.to_string()), "{}", mark.title);
        let is_attempt = ["contended", "deadlock-rejected"].contains(&class);
        assert_eq!(seen.bars_of(ticket).is_empty(), is_attempt, "{class}");
        let legend: Vec<&str> = seen.words.iter().map(|words| words.text.as_str()).collect();
        assert!(legend.contains(&word.as_str()), "{legend:?}");
    }
    assert_eq!(seen.bars_of(timed_out).iter().filter(|bar| bar.is("held")).count(), 0);
    assert_eq!(seen.bars_of(expired).len(), 2);
    assert_eq!(seen.bars_of(waits).iter().filter(|bar| bar.is("open")).count(), 1);
    let promoted = seen.marks("promoted");
    let promotions: Vec<u64> = promoted.iter().map(|mark| mark.from).collect();
    assert_eq!(promotions, sequences(&story, "lock.promoted"));
    let cycle = &seen.marks("deadlock-rejected")[0].title;
    assert!(cycle.contains(&format!("the cycle: {rejected}, {waits}")), "{cycle}");
    assert!(seen.marks("broken")[0].title.contains("reason: it \"hangs\""));
    let asides = seen.texts("aside");
    assert!(asides.contains(&"it \"hangs\""), "{asides:?}");
}

#[test]
fn a_restart_and_a_gap_go_through_everything() {
    let story = expiry_with_restart();
    let seen = Seen::of(&story.timeline(Some("deploy")));
    for (class, type_name) in [("restart", "ledger.recovered"), ("gap", "ledger.restored")] {
        let found: Vec<u64> = seen.marks(class).iter().map(|mark| mark.from).collect();
        assert_eq!(found, sequences(&story, type_name), "{class}");
        let said = if class == "gap" { "sequences jump" } else { class };
        assert!(seen.words.iter().any(|words| words.text == said));
    }
    // Before and after everything that is drawn they aren't drawn either.
    let mut early = Story::of(&["ana"]);
    early.restore("imported");
    early.at(60_000).acquire("ana", "x", lease(5));
    early.at(70_000).restore("imported");
    assert!(Seen::of(&early.timeline(None)).marks("gap").is_empty());
}

#[test]
fn tickets_of_one_hold_have_bars_of_their_own_and_one_fence() {
    let story = reentrancy();
    let timeline = story.timeline(Some("build"));
    let seen = Seen::of(&timeline);
    let (acquired, promoted) =
        (sequences(&story, "lock.acquired"), sequences(&story, "lock.promoted"));
    let lane: Vec<(u64, String)> =
        seen.holds.iter().map(|hold| (hold.from, hold.fence.clone())).collect();
    let first = |sequences: &[u64]| (sequences[0], sequences[0].to_string());
    assert_eq!(lane, [first(&acquired), first(&promoted)]);
    let held: Vec<u64> =
        seen.bars.iter().filter(|bar| bar.is("held")).map(|bar| bar.from).collect();
    assert_eq!(held, [acquired, promoted].concat());
    for hold in &seen.holds {
        assert!(hold.title.contains("up to 2 tickets at once"), "{}", hold.title);
        let of_hold = seen.bars.iter().filter(|bar| {
            bar.is("held") && bar.title.contains(&format!("fence token {}\n", hold.fence))
        });
        let ends: Vec<f64> = of_hold.clone().map(Thing::end).collect();
        assert_eq!(ends.len(), 2);
        assert_near(hold.x, of_hold.map(|bar| bar.x).fold(f64::MAX, f64::min));
        assert_near(hold.end(), ends.into_iter().fold(0.0, f64::max));
    }
    assert_eq!(seen.marks("contended").len(), 1, "the one that may not join");
}

/// How many tickets of a ledger are drawn by bars, and its holds' fences.
fn expected(story: &Story) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut tickets, mut fences) = (BTreeSet::new(), BTreeSet::new());
    for record in records(story) {
        match &record.event {
            Event::LockAcquired(e) => {
                tickets.insert(e.ticket_id.to_string());
                fences.insert(e.fence_token.to_string());
            }
            Event::LockQueued(e) => drop(tickets.insert(e.ticket_id.to_string())),
            Event::LockPromoted(e) => drop(fences.insert(e.fence_token.to_string())),
            _ => {}
        }
    }
    (tickets, fences)
}

/// No text lies on another one, and none is too small.
#[track_caller]
fn assert_legible(seen: &Seen) {
    let width = |words: &reading::Words| words.text.chars().count() as f64 * words.font * 0.5;
    for class in ["fence", "tick", "date", "label"] {
        let words: Vec<_> = seen.words.iter().filter(|words| words.class == class).collect();
        for two in words.windows(2).filter(|two| (two[0].y - two[1].y).abs() < two[1].font) {
            let apart = (two[0].x - two[1].x).abs();
            assert!(apart >= width(two[0]), "{:?} lies on {:?}", two[0], two[1]);
        }
    }
    for words in &seen.words {
        assert!(words.font >= 9.0, "{words:?} is too small");
        assert!((0.0..seen.size.0).contains(&words.x), "{words:?} is outside");
        assert!((0.0..seen.size.1).contains(&words.y), "{words:?} is outside");
    }
    for thing in seen.bars.iter().chain(&seen.holds) {
        assert!(thing.width >= 1.0, "{thing:?} can't be seen");
        assert!(thing.x > 0.0 && thing.end() < seen.size.0, "{thing:?} is outside");
    }
}

#[test]
fn three_hundred_tickets_are_all_there_and_can_be_read() {
    for story in [many(300, &NAMES), herd(300)] {
        let seen = Seen::of(&story.timeline(None));
        let (tickets, fences) = expected(&story);
        let drawn: BTreeSet<String> = seen.bars.iter().map(|bar| bar.ticket.clone()).collect();
        assert_eq!(drawn, tickets);
        let lane: Vec<&String> = seen.holds.iter().map(|hold| &hold.fence).collect();
        assert_eq!(lane.len(), fences.len(), "each hold has one bar");
        assert_eq!(lane.into_iter().cloned().collect::<BTreeSet<_>>(), fences);
        let attempts: u64 = seen.marks("contended").iter().map(|mark| mark.count).sum();
        assert_eq!(attempts, sequences(&story, "lock.contended").len() as u64);
        assert_eq!(seen.marks("promoted").len(), sequences(&story, "lock.promoted").len());
        assert_legible(&seen);
        let shown = seen.texts("fence").len();
        assert!((20..=fences.len()).contains(&shown), "{shown} fences are written");
        assert!(seen.size.1 < 2_100.0, "{:?}", seen.size);
    }
}

#[test]
fn each_lock_of_a_scope_has_its_part() {
    let story = deadlock();
    let seen = Seen::of(&story.timeline(None));
    let locks: Vec<(&str, &str)> =
        seen.holds.iter().map(|hold| (hold.lock.as_str(), hold.owner.as_str())).collect();
    assert_eq!(locks, [("x", "ana"), ("y", "bo"), ("y", "ana")]);
    let (of_x, of_y): (Vec<&Thing>, Vec<&Thing>) =
        seen.bars.iter().partition(|bar| bar.lock == "x");
    assert_eq!((of_x.len(), of_y.len()), (1, 3));
    assert_eq!(seen.marks("deadlock-rejected")[0].lock, "x");
    let alone = Seen::of(&story.timeline(Some("y")));
    assert!(alone.holds.iter().chain(&alone.bars).all(|thing| thing.lock == "y"));
    assert_eq!((alone.holds.len(), alone.bars.len()), (2, 3));
    let all = five_locks();
    let seen = Seen::of(&all.timeline(None));
    let (tickets, fences) = expected(&all);
    let drawn: BTreeSet<String> = seen.bars.iter().map(|bar| bar.ticket.clone()).collect();
    assert_eq!((drawn, seen.holds.len()), (tickets, fences.len()));
    assert_legible(&seen);
}

#[test]
fn a_long_pause_is_cut_and_short_ones_are_not() {
    let story = two_bursts();
    let timeline = story.timeline(Some("nightly"));
    let seen = Seen::of(&timeline);
    let [(from, to)] = seen.cuts[..] else { panic!("{:?}", seen.cuts) };
    assert!(to - from < 40.0, "it is short");
    let (before, after): (Vec<&Thing>, Vec<&Thing>) =
        seen.holds.iter().partition(|hold| hold.end() <= from + 0.2);
    assert_eq!((before.len(), after.len()), (12, 12));
    assert!(after.iter().all(|hold| hold.x >= to - 0.2));
    // The same work is as wide on both days.
    for (first, second) in before.iter().zip(&after) {
        assert_near(first.width, second.width);
    }
    assert_eq!(seen.texts("date"), ["2026-01-31", "2026-02-01"]);
    assert!(seen.words.iter().any(|words| words.text == "23 h 58 min"));
    assert!(Seen::of(&hand_over().timeline(None)).cuts.is_empty());
}

#[test]
fn what_is_older_than_the_newest_is_left_out_and_it_is_said() {
    let story = many(300, &NAMES);
    let whole = Seen::of(&story.timeline(None));
    let timeline = story.timeline_of(None, Range::default(), 20);
    let seen = Seen::of(&timeline);
    let tickets: BTreeSet<&str> = seen.bars.iter().map(|bar| bar.ticket.as_str()).collect();
    assert!((10..=20).contains(&tickets.len()), "{} tickets", tickets.len());
    let [said] = seen.texts("left-out")[..] else { panic!("{:?}", seen.words) };
    assert!(said.starts_with("Left out: ") && said.contains("tickets that were over"), "{said}");
    assert!(whole.texts("left-out").is_empty());
    // From where it begins on, nothing is missing.
    let (first, _) = timeline.span.expect("something happened");
    let complete: Vec<String> = story
        .timeline(None)
        .holds()
        .filter(|hold| hold.end_or(first) >= first)
        .map(|hold| hold.fence_token.to_string())
        .collect();
    let lane: Vec<String> = seen.holds.iter().map(|hold| hold.fence.clone()).collect();
    assert_eq!(lane, complete);
    let text = terminal(&timeline, COLUMNS, Colours::Plain);
    assert!(text.contains("Left out: "), "{text}");
    // Whoever polls makes no holder invisible.
    let mut polled = Story::of(&["ana", "bo"]);
    let held = polled.at(0).acquire("ana", "x", lease(300));
    for n in 0..400 {
        polled.at(1_000 + n).acquire("bo", "x", lease(5));
    }
    let timeline = polled.timeline_of(None, Range::default(), 20);
    let seen = Seen::of(&timeline);
    assert_eq!((seen.holds.len(), seen.bars_of(held).len()), (1, 1));
    let attempts: u64 = seen.marks("contended").iter().map(|mark| mark.count).sum();
    assert_eq!((attempts, timeline.attempts_left_out), (80, 320));
    assert!(seen.texts("left-out")[0].contains("320 attempts"));
}

#[test]
fn many_heartbeats_are_put_together_and_none_is_lost() {
    let mut story = Story::of(&["ana"]);
    let held = story.at(0).acquire("ana", "x", lease(60));
    for n in 1..=5_000 {
        story.at(n * 1_000).heartbeat("ana", held);
    }
    let seen = Seen::of(&story.timeline(None));
    let beats = seen.marks("heartbeat");
    assert!(beats.len() < 500, "{} marks", beats.len());
    assert_eq!(beats.iter().map(|mark| mark.count).sum::<u64>(), 5_000);
    assert!(beats.windows(2).all(|two| two[1].x - two[0].x >= 2.9), "they can be told apart");
}

#[test]
fn a_range_shows_what_lived_in_it() {
    let story = hand_over();
    let fence = |index: usize| {
        let holds: Vec<_> = story.timeline(None).holds().cloned().collect();
        holds[index].since
    };
    let second = fence(1);
    let range = Range { from: Some(AsOf::Sequence(second.sequence)), to: None };
    let seen = Seen::of(&story.timeline_of(None, range, TICKETS_MAX));
    // Ana's hold ended in that very moment.
    assert_eq!(seen.holds.len(), 3);
    assert!(seen.holds[0].is("begun") && !seen.holds[1].is("begun"));
    let cut = seen.bars.iter().filter(|bar| bar.is("begun")).count();
    assert_eq!(cut, 3, "what began before: ana's hold, and both waits");
    assert_eq!(seen.marks("heartbeat").len(), 1, "cy's");
    let until = Range { from: None, to: Some(AsOf::Sequence(second.sequence)) };
    let seen = Seen::of(&story.timeline_of(None, until, TICKETS_MAX));
    let open = |things: &[Thing]| things.iter().filter(|thing| thing.is("open")).count();
    assert_eq!((seen.holds.len(), open(&seen.holds), open(&seen.bars)), (2, 1, 2));
    assert!(seen.marks("expired").is_empty() && seen.marks("contended").is_empty());
    let by_time = Range { from: Some(AsOf::Time(second.time)), to: range.to };
    assert_eq!(
        story.timeline_of(None, by_time, TICKETS_MAX),
        story.timeline_of(None, range, TICKETS_MAX)
    );
    let read = |range: Range| {
        let until = (story.head(), second.time);
        Timeline::read(&story.ledger, &REPO.parse().expect("a scope"), None, range, until, 9)
    };
    let at = |sequence: u64| Some(AsOf::Sequence(Sequence(sequence)));
    let head = story.head().0;
    for (from, to, is_from) in [
        (at(head), at(head - 1), true),
        (at(head + 1), None, true),
        (None, at(head + 1), false),
        (None, Some(AsOf::Time(second.time.plus_seconds(1))), false),
    ] {
        match read(Range { from, to }) {
            Err(Unread::From) => assert!(is_from, "{from:?} {to:?}"),
            Err(Unread::To) => assert!(!is_from, "{from:?} {to:?}"),
            other => panic!("{from:?} {to:?}: {other:?}"),
        }
    }
    assert!(read(Range { from: at(0), to: at(head) }).is_ok());
}

#[test]
fn text_of_others_stays_text() {
    const NOTE: &str = "<script>alert('x')</script> \" ]]> &lt; \u{ffff} \u{fdd0} é 漢字";
    let mut story = Story::of(&["ana", "bo"]);
    story.at(0).acquire("ana", "x", Ask { note: Some(NOTE), ..lease(30) });
    story.at(5_000).acquire("bo", "x", Ask { note: Some(NOTE), ..wait(30, 60) });
    story.at(9_000).break_lock("x", NOTE);
    story.at(60_000);
    let timeline = story.timeline(None);
    let picture = svg(&timeline);
    assert!(!picture.contains("<script") && !picture.contains("]]>"));
    let seen = Seen::in_picture(&picture);
    let shown = NOTE.replace('\u{ffff}', "\u{fffd}");
    let titles = seen.bars.iter().chain(&seen.marks).filter(|thing| thing.title.contains(&shown));
    assert!(titles.count() >= 4, "the notes are told whole");
    let own = picture.replace("http://www.w3.org/2000/svg", "").replace("url(#hatching", "");
    for foreign in ["style=", "<style", "href=", "://", "url(", "<image", "<use"] {
        assert!(!own.contains(foreign), "{foreign}");
    }
    let text = terminal(&timeline, COLUMNS, Colours::Plain);
    assert!(text.contains("<script>alert('x')</script>"), "{text}");
}

#[test]
fn a_picture_is_the_same_bytes_every_time_and_says_what_it_is() {
    for timeline in [many(40, &NAMES).timeline(None), many(40, &NAMES).timeline(Some("build"))] {
        assert_eq!(svg(&timeline), svg(&timeline.clone()));
        let picture = svg(&timeline);
        let document = roxmltree::Document::parse(&picture).expect("it is well-formed");
        let root = document.root_element();
        assert_eq!(root.attribute("role"), Some("img"));
        assert_eq!(root.attribute("aria-labelledby"), Some("title desc"));
        for (id, text) in [("title", REPO), ("desc", "2026-01-31 12:00:")] {
            let node = root.children().find(|node| node.attribute("id") == Some(id));
            let said = node.and_then(|node| node.text()).unwrap_or_default();
            assert!(said.contains(text), "{id}: {said}");
        }
        let sequence = timeline.sequence().to_string();
        assert_eq!(root.attribute("data-sequence"), Some(sequence.as_str()));
    }
    assert_eq!(svg(&many(40, &NAMES).timeline(None)), svg(&many(40, &NAMES).timeline(None)));
    let nothing = Story::of(&["ana"]).timeline(Some("x"));
    assert!(Seen::of(&nothing).words.iter().any(|words| words.text == "Nothing happened."));
}

/// Draws all stories; writes them where somebody wants to look at them.
#[test]
fn every_picture_is_drawn() {
    for (name, timeline) in [
        ("hand-over", hand_over().timeline(Some("thread-work.42"))),
        ("deadlock", deadlock().timeline(None)),
        ("restart", expiry_with_restart().timeline(Some("deploy"))),
        ("reentrancy", reentrancy().timeline(Some("build"))),
        ("30", many(30, &NAMES).timeline(Some("build"))),
        ("300", many(300, &NAMES).timeline(Some("build"))),
        ("newest", many(300, &NAMES).timeline_of(Some("build"), Range::default(), 40)),
        ("herd", herd(300).timeline(Some("migration"))),
        ("bursts", two_bursts().timeline(Some("nightly"))),
        ("scope", five_locks().timeline(None)),
        ("nothing", deadlock().timeline(Some("z"))),
    ] {
        let picture = svg(&timeline);
        assert_legible(&Seen::in_picture(&picture));
        if let Some(folder) = std::env::var_os("PEARING_DRAW_TIMELINES") {
            let path = std::path::Path::new(&folder);
            let text = terminal(&timeline, COLUMNS, Colours::Plain);
            std::fs::write(path.join(format!("{name}.svg")), picture).expect("it can be written");
            std::fs::write(path.join(format!("{name}.txt")), text).expect("it can be written");
        }
    }
}
