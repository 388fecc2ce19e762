//! What is due happens by itself: no request has to come in.

use serde_json::Value;

use crate::support::{Event, Feed, Server};

fn text<'a>(event: &'a Event, field: &str) -> &'a str {
    event.data["data"][field].as_str().expect("the event has this text")
}

/// From one time on the wire to another, in milliseconds.
fn millis_between(earlier: &Value, later: &Value) -> i64 {
    let time = |value: &Value| -> jiff::Timestamp {
        value.as_str().expect("a time").parse().expect("RFC 3339")
    };
    time(later).as_millisecond() - time(earlier).as_millisecond()
}

#[tokio::test]
async fn leases_and_waits_run_out_and_the_next_is_promoted_with_no_request() {
    let server = Server::start();
    let (claude, codex) = (server.client("claude"), server.client("codex"));
    let dee = server.add_writer("dee").await;
    let mut feed = Feed::open(&server, &dee, "?type=lock.*", None).await;
    feed.until_caught_up().await;
    let first = claude.hold("x", 5).await;
    let second = codex.wait_for("x", 5).await;
    let fields = serde_json::json!({ "lease_seconds": 5, "wait_seconds": 2 });
    let third = dee.acquire("x", fields).await.ticket(202);
    let began = pearing::clock::monotonic();
    // From here on nothing is sent: whatever comes is the server's own doing.
    let events =
        feed.until(|event| event.name == "lock.expired" && text(event, "owner") == "codex").await;
    let told_after = pearing::clock::elapsed(began);
    let said: Vec<(&str, &str)> =
        events.iter().map(|event| (event.name.as_str(), text(event, "owner"))).collect();
    let expected = [
        ("lock.acquired", "claude"),
        ("lock.queued", "codex"),
        ("lock.queued", "dee"),
        ("lock.wait_timed_out", "dee"),
        ("lock.expired", "claude"),
        ("lock.promoted", "codex"),
        ("lock.expired", "codex"),
    ];
    assert_eq!(said, expected);
    assert!(events[3..].iter().all(|event| event.data["actor"] == "ledger"));
    assert_eq!(events[5].id, events[4].id + 1, "nobody finds the lock free in between");
    let promoted = &events[5].data["data"];
    let delays = [
        ("wait timeout", &third["wait_expires_at"], &events[3]),
        ("expiry", &first["lease_expires_at"], &events[4]),
        ("second expiry", &promoted["lease_expires_at"], &events[6]),
    ]
    .map(|(what, deadline, event)| (what, millis_between(deadline, &event.data["time"])));
    println!("from deadline to event, in ms: {delays:?}; all seen after {told_after:?}");
    for (what, delay) in delays {
        assert!((0..2000).contains(&delay), "{what}: {delay} ms");
    }
    let granted = millis_between(&events[5].data["time"], &promoted["lease_expires_at"]);
    assert_eq!(granted, 5000, "waiting costs no lease");
    assert!((9..13).contains(&told_after.as_secs()), "{told_after:?}");
    assert_eq!(codex.look(&second).await["state"], "expired");
}
