//! The feed over connections that break, against a server that answers what a test wants.
//!
//! In paused time: what waits only for time goes on at once, and how long it waited can be told.

use tokio::time::Instant;

use super::*;
use crate::client::fake::{HANGS, answer, json, lock, serve, start};
use crate::wire::problem::{Code, Problem};

fn feed(body: &str) -> String {
    format!("HTTP/1.1 200 X\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n{body}")
}

fn event(sequence: u64) -> String {
    format!("id: {sequence}\nevent: lock.acquired\ndata: {{\"n\":{sequence}}}\n\n")
}

fn control(name: &str, sequence: u64) -> String {
    format!("id: {sequence}\nevent: {name}\ndata: {{\"sequence\":{sequence}}}\n\n")
}

fn refusal(code: Code, retry_after_seconds: Option<u64>) -> String {
    answer(code.status(), "", &json(&Problem { retry_after_seconds, ..Problem::new(code, "no") }))
}

/// Now, in paused time.
fn now() -> Instant {
    tokio::time::sleep(Duration::ZERO).deadline()
}

/// What a feed yields to its end, as text, with the cursor behind it, and when.
async fn read_to_its_end(feed: &mut Feed) -> (Vec<String>, Vec<Instant>) {
    let (mut seen, mut times) = (Vec::new(), Vec::new());
    while let Some(item) = StreamExt::next(feed).await {
        let what = match item {
            Ok(FeedItem::Event { sequence, json }) => format!("{sequence} {json}"),
            Ok(FeedItem::CaughtUp(sequence)) => format!("{sequence} caught up"),
            Ok(FeedItem::Checkpoint(sequence)) => format!("{sequence} checkpoint"),
            Ok(FeedItem::Reset(sequence)) => format!("{sequence} reset"),
            Ok(FeedItem::Reconnecting(_)) => "reconnects".to_owned(),
            Err(error) => error.to_string(),
        };
        let cursor = feed.cursor().map_or("-".to_owned(), |cursor| cursor.to_string());
        seen.push(format!("{what} @{cursor}"));
        times.push(now());
    }
    (seen, times)
}

/// What came of `answers`, and the cursors that were asked for.
async fn played(after: Option<u64>, answers: Vec<String>) -> (Vec<String>, Vec<Instant>, String) {
    let (listener, client) = start().await;
    let calls = async {
        let mut feed = client.feed(EventFilter::default(), after.map(Sequence));
        read_to_its_end(&mut feed).await
    };
    let (asked, (seen, times)) = tokio::join!(serve(listener, answers), calls);
    let cursors = asked.iter().map(|request| {
        request.lines().find_map(|line| line.strip_prefix("last-event-id: ")).unwrap_or("-")
    });
    (seen, times, cursors.collect::<Vec<_>>().join(" "))
}

#[tokio::test(start_paused = true)]
async fn a_broken_feed_goes_on_after_its_last_event_and_tells_none_twice() {
    let answers = vec![
        feed(&(event(4) + &control("checkpoint", 5) + "id: 6\nevent: lock.acquired\ndata: {\"n")),
        feed(&(event(4) + &event(6))),
        feed(&(event(6) + &event(7) + &event(7) + &control("caught-up", 7))),
        refusal(Code::Unauthenticated, None),
    ];
    let (seen, _, cursors) = played(Some(3), answers).await;
    let expected = [
        "4 {\"n\":4} @4",
        "5 checkpoint @5",
        "reconnects @5",
        "6 {\"n\":6} @6",
        "reconnects @6",
        "7 {\"n\":7} @7",
        "7 caught up @7",
        "reconnects @7",
        "unauthenticated: no @7",
    ];
    assert_eq!((&seen[..], cursors.as_str()), (&expected.map(str::to_owned)[..], "3 5 6 7"));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_cut_at_any_byte_is_told_whole() {
    let stream = "retry: 1\n\n".to_owned() + &event(4) + &control("checkpoint", 5) + &event(6);
    for cut in 0..=stream.len() {
        let answers =
            vec![feed(&stream[..cut]), feed(&stream), refusal(Code::InvalidArgument, None)];
        let (seen, _, _) = played(Some(3), answers).await;
        let mut told: Vec<&str> = seen.iter().map(String::as_str).collect();
        told.retain(|item| item.contains('{'));
        assert_eq!(told, ["4 {\"n\":4} @4", "6 {\"n\":6} @6"], "cut at {cut}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_only_ends_is_asked_for_less_and_less() {
    // The frames of a feed that is resumed, but none that leads on.
    let empty = || feed(&("retry: 1000\n\n".to_owned() + &control("caught-up", 3)));
    let mut answers: Vec<String> = (0..8).map(|_| empty()).collect();
    answers.push(refusal(Code::NotFound, None));
    let (seen, times, _) = played(Some(3), answers).await;
    assert_eq!(seen.len(), 17);
    let breaks: Vec<Instant> = times.iter().copied().skip(1).step_by(2).collect();
    let pauses: Vec<f64> = breaks.windows(2).map(|two| (two[1] - two[0]).as_secs_f64()).collect();
    for (pause, least) in pauses.iter().zip([1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]) {
        assert!((least..least * 1.51).contains(pause), "{pauses:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_makes_the_next_pause_short_again() {
    let leads_on = |n| feed(&("retry: 1000\n\n".to_owned() + &event(n)));
    let mut answers: Vec<String> = (4..12).map(leads_on).collect();
    answers.push(refusal(Code::NotFound, None));
    let (_, times, _) = played(Some(3), answers).await;
    let took = times[times.len() - 1] - times[0];
    assert!(took < Duration::from_secs(13), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_time_gets_it() {
    let began = now();
    let answers = vec![
        refusal(Code::Busy, Some(7)),
        refusal(Code::LimitReached, Some(50)),
        feed(&event(4)),
        refusal(Code::Forbidden, None),
    ];
    let (seen, times, _) = played(None, answers).await;
    assert_eq!(seen, ["4 {\"n\":4} @4", "reconnects @4", "forbidden: no @4"]);
    let took = (times[0] - began).as_secs_f64();
    assert!((57.0..76.0).contains(&took), "{took}");
}

#[tokio::test(start_paused = true)]
async fn what_can_not_be_resumed_or_is_no_feed_ends_it() {
    let page = "HTTP/1.1 200 X\r\nconnection: close\r\ncontent-type: text/html\r\n\r\n<html>";
    for (last, says) in [
        (refusal(Code::Unauthenticated, None), "unauthenticated: no"),
        (refusal(Code::NotFound, None), "not-found: no"),
        (refusal(Code::InvalidArgument, None), "invalid-argument: no"),
        (page.to_owned(), "unexpected answer: neither a feed nor a problem"),
        (feed("event: x\ndata: {}\n\n"), "unexpected answer: an event of the feed has no sequence"),
    ] {
        let (seen, _, _) = played(Some(3), vec![feed(&event(4)), last]).await;
        assert_eq!(seen, ["4 {\"n\":4} @4", "reconnects @4", &format!("{says} @4")]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_reset_takes_the_cursor_back_to_before_the_gap() {
    let answers = vec![
        feed(&control("reset", 40)),
        feed(&(event(41) + &event(60))),
        refusal(Code::NotFound, None),
    ];
    let (seen, _, cursors) = played(Some(50), answers).await;
    assert_eq!(seen[..2], ["40 reset @40", "reconnects @40"]);
    assert_eq!(seen[2..4], ["41 {\"n\":41} @41", "60 {\"n\":60} @60"]);
    assert_eq!(cursors, "50 40 60");
}

#[tokio::test(start_paused = true)]
async fn a_feed_without_a_sign_of_life_is_dead_after_three_comments() {
    let began = now();
    let answers = vec![feed(&event(4)) + HANGS, refusal(Code::NotFound, None)];
    let (seen, times, _) = played(Some(3), answers).await;
    assert_eq!(seen[1..], ["reconnects @4", "not-found: no @4"]);
    assert_eq!((times[1] - began).as_secs(), 45);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_turns_away_while_it_waits_loses_nothing() {
    let (listener, client) = start().await;
    let answers =
        vec![feed("retry: 5000\n\n"), feed(&(event(4) + &event(5))), refusal(Code::NotFound, None)];
    let reads = async {
        let mut feed = client.feed(EventFilter::default(), Some(Sequence(3)));
        let mut sequences = Vec::new();
        loop {
            // Shorter than the pauses: a pause that began anew each time would never end.
            match tokio::time::timeout(Duration::from_millis(10), feed.next()).await {
                Ok(Ok(FeedItem::Event { sequence, .. })) => sequences.push(sequence.0),
                Ok(Ok(_)) | Err(_) => {}
                Ok(Err(error)) => {
                    assert_eq!(error.exit_code(), 6);
                    assert!(feed.next().await.is_err(), "it stays over");
                    return sequences;
                }
            }
        }
    };
    let (_, sequences) = tokio::join!(serve(listener, answers), reads);
    assert_eq!(sequences, [4, 5]);
}

#[tokio::test]
async fn filters_are_sent_and_a_task_can_own_the_feed() {
    let (listener, client) = start().await;
    let filter = EventFilter {
        scope: Some(lock().scope),
        types: vec!["lock.*".to_owned(), "user.*".to_owned()],
        ..EventFilter::default()
    };
    let mut feed = client.feed(filter, None);
    drop(client);
    let reads = tokio::spawn(async move { feed.next().await });
    let asked = serve(listener, vec![refusal(Code::NotFound, None)]).await;
    assert!(reads.await.expect("it ends").is_err());
    assert!(asked[0].contains("type=lock.*%2Cuser.*"), "{}", asked[0]);
    assert!(asked[0].contains("repo=teams%2Fplatform%2Fwebsite"), "{}", asked[0]);
}
