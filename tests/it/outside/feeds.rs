//! The feed over broken connections and a restart of the server, as clients read it that others
//! wrote: each event once and in order.

use std::process::Command;

use pearing::domain::event::Event;
use serde_json::{Value, json};

use super::browser::Page;
use super::{file, node_script, python_script};
use crate::support::{Client, Process, Relay, SIGTERM, Server, eventually};

/// The names of the control frames, which are no events.
const CONTROLS: [&str; 3] = ["caught-up", "checkpoint", "reset"];

/// The names that a frame can have.
fn names() -> impl Iterator<Item = &'static str> {
    Event::TYPES.iter().map(|(name, _)| *name).chain(CONTROLS)
}

/// Makes events.
async fn write(server: &Server) {
    let client = server.client("claude");
    for _ in 0..5 {
        let held = client.hold("x", 60).await;
        client.release(&held).await.ticket(200);
    }
}

/// The id and the name of each event that there is.
async fn written(reader: &Client) -> Vec<String> {
    let line = |event: &Value| {
        let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
        format!("{} {}", text("id"), text("type").trim_start_matches("pearing."))
    };
    reader.events("").await.iter().map(line).collect()
}

/// Leads a follower through cuts and restarts. `seen` says what it has seen so far: a line with an
/// id and a name for each frame.
async fn lead_through(server: &mut Server, relay: &Relay, seen: impl AsyncFn() -> String) {
    let mut trials = ["cut", "cut twice as it begins", "kill -9", "SIGTERM"].into_iter();
    loop {
        let expected = written(&server.client("admin")).await;
        let last = expected.last().expect("there are events");
        let what = format!("the follower to see {last}");
        let mut lines: Vec<String> = eventually(&what, async || {
            let lines: Vec<String> = seen().await.lines().map(str::to_owned).collect();
            lines.contains(last).then_some(lines)
        })
        .await;
        let is_control = |line: &String| CONTROLS.iter().any(|name| line.ends_with(name));
        lines.retain(|line| !is_control(line));
        assert_eq!(lines, expected, "each event once, and in order");

        match trials.next() {
            None => break,
            Some("kill -9") => {
                server.kill();
                server.serve();
            }
            Some("SIGTERM") => {
                server.process().signal(SIGTERM);
                assert_eq!(server.exit_code(), Some(0));
                server.serve();
            }
            Some(trial) => {
                // Somewhere within the fourth event or so.
                relay.cut_after(2_000);
                relay.cut_early(if trial == "cut" { 0 } else { 2 });
            }
        }
        relay.lead_to(server.url());
        write(server).await;
    }
    assert_eq!(relay.cuts(), 2 + 2);
}

/// The same with a program that prints what it sees.
async fn follow(program: impl FnOnce(&str) -> Command) {
    let mut server = Server::start();
    write(&server).await;
    let relay = Relay::before(server.url()).await;
    let mut command = program(&format!("{}/v1/events?after=0", relay.url()));
    let process = Process::start(command.env("TOKEN", server.client("admin").token()));
    lead_through(&mut server, &relay, async || process.log()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn httpx_sse_follows_the_feed_without_gap_or_repeat() {
    follow(|url| {
        let mut command = python_script("follow.py");
        command.arg(url);
        command
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eventsource_of_node_follows_the_feed_without_gap_or_repeat() {
    follow(|url| {
        let mut command = node_script("follow.cjs");
        command.arg(url).args(names());
        command
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn curl_follows_the_feed_without_gap_or_repeat() {
    follow(|url| {
        let mut command = Command::new(file("follow.sh"));
        command.arg(url);
        command
    })
    .await;
}

/// Has a page follow the feed from the first event on.
fn follow_in(page: &Page, reader: &Client) {
    let names: Vec<&str> = names().collect();
    page.call(include_str!("../../outside/follow.js"), &[json!(reader.token()), json!(names)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chromium_follows_the_feed_without_gap_or_repeat() {
    let mut server = Server::start();
    write(&server).await;
    let relay = Relay::before(server.url()).await;
    let page = Page::open(&format!("{}/livez", relay.url()));
    follow_in(&page, &server.client("admin"));
    let seen = async || page.value("seen").as_str().unwrap_or_default().to_owned();
    lead_through(&mut server, &relay, seen).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_reads_no_cookie_and_its_feed_ends_for_good_with_the_token() {
    let server = Server::start();
    let (admin, reader) = (server.client("admin"), server.add_token("claude").await);
    let page = Page::open(&format!("{}/livez", server.url()));
    follow_in(&page, &reader);
    eventually("history to be read", async || {
        page.value("seen.includes('caught-up')").as_bool().filter(|seen| *seen)
    })
    .await;
    assert_eq!(page.value("document.cookie"), "");
    assert_eq!(page.value("fetch('/v1/events').then((answer) => answer.status)"), 200);
    assert_eq!(page.value("fetch('/v1/whoami').then((answer) => answer.status)"), 401);

    let id = reader.get("/v1/whoami").await.body["token_id"].clone();
    let path = format!("/v1/admin/tokens/{}", id.as_str().expect("an id"));
    assert_eq!(admin.delete(&path).await.status, 200);
    eventually("the page to give up", async || {
        page.value("source.readyState === EventSource.CLOSED").as_bool().filter(|closed| *closed)
    })
    .await;
}
