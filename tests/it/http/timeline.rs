//! What happened to locks, drawn.

use std::collections::BTreeMap;

use serde_json::json;

use super::assert_problem;
use crate::support::{Client, REPO, Server};

/// A drawing: its headers, and its text.
struct Drawn {
    headers: BTreeMap<String, String>,
    text: String,
}

/// What is drawn at a path, for whoever accepts that.
async fn draw(client: &Client, path: &str, accept: &str) -> Drawn {
    let request = client.request("GET", path).header("accept", accept);
    let response = request.send().await.expect("an answer");
    assert_eq!(response.status().as_u16(), 200, "{path}");
    let text = |value: &reqwest::header::HeaderValue| value.to_str().expect("text").to_owned();
    let headers = response.headers().iter();
    let headers = headers.map(|(name, value)| (name.to_string(), text(value))).collect();
    Drawn { headers, text: response.text().await.expect("it is UTF-8") }
}

/// The tickets that have bars in a picture, and the fence tokens in its lanes.
fn bars(picture: &str) -> (Vec<String>, Vec<u64>) {
    let document = roxmltree::Document::parse(picture).expect("it is well-formed");
    let (mut tickets, mut fences) = (Vec::new(), Vec::new());
    for node in document.descendants() {
        let class = node.attribute("class").unwrap_or_default();
        match (node.attribute("data-ticket"), node.attribute("data-fence")) {
            (Some(ticket), _) if class.starts_with("bar held") => tickets.push(ticket.to_owned()),
            (_, Some(fence)) => fences.push(fence.parse().expect("it is a number")),
            _ => {}
        }
    }
    (tickets, fences)
}

#[tokio::test]
async fn a_lock_and_a_scope_are_drawn_as_a_picture_or_as_text() {
    let server = Server::start();
    let (claude, codex) = (server.client("claude"), server.client("codex"));
    let held = claude.acquire("x", json!({ "note": "<why> & \"how\"" })).await.ticket(201);
    let waiting = codex.wait_for("x", 60).await;
    claude.heartbeat(&held, 60).await.ticket(200);
    claude.release(&held).await.ticket(200);
    let other = codex.hold("y", 60).await;
    let promoted = codex.look(&waiting).await;
    let fence = |ticket: &serde_json::Value| ticket["fence_token"].as_u64().expect("it is held");
    let id = |ticket: &serde_json::Value| ticket["ticket_id"].as_str().expect("an id").to_owned();
    let path = format!("/v1/timeline?repo={REPO}");
    let all = draw(&claude, &path, "*/*").await;
    for (name, value) in [
        ("content-type", "image/svg+xml"),
        ("x-content-type-options", "nosniff"),
        ("cache-control", "no-store"),
        (
            "content-security-policy",
            "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
             sandbox",
        ),
        ("pearing-sequence", &other["sequence"].to_string()),
    ] {
        assert_eq!(all.headers.get(name).map(String::as_str), Some(value), "{name}");
    }
    let (tickets, fences) = bars(&all.text);
    assert_eq!(tickets, [id(&held), id(&waiting), id(&other)]);
    assert_eq!(fences, [fence(&held), fence(&promoted), fence(&other)]);
    assert!(all.text.contains("&lt;why&gt; &amp; &quot;how&quot;"));
    let one = draw(&claude, &format!("{path}&lock=x"), "image/svg+xml").await;
    assert_eq!(bars(&one.text).1, [fence(&held), fence(&promoted)]);
    let (from, to) = (fence(&held), fence(&promoted) - 1);
    let part = draw(&claude, &format!("{path}&lock=x&from={from}&to={from}"), "*/*").await;
    assert_eq!(bars(&part.text).1, [fence(&held)]);
    assert_eq!(part.headers["pearing-sequence"], from.to_string());
    // The release and the promotion are one: what is shown is the end of both.
    let both = draw(&claude, &format!("{path}&lock=x&to={to}"), "*/*").await;
    assert_eq!(both.headers["pearing-sequence"], fence(&promoted).to_string());

    let text = draw(&claude, &format!("{path}&lock=x"), "text/plain").await;
    assert_eq!(text.headers["content-type"], "text/plain; charset=utf-8");
    assert_eq!(text.headers["x-content-type-options"], "nosniff");
    assert!(text.text.starts_with(&format!("x in {REPO}\n")), "{}", text.text);
    assert!(text.text.contains("┃claude ") && text.text.contains("┤ released"), "{}", text.text);
    let narrow = draw(&claude, &format!("{path}&lock=x&width=60"), "text/plain").await;
    let width = |drawn: &Drawn| drawn.text.lines().map(|line| line.chars().count()).max();
    assert_eq!((width(&text), width(&narrow)), (Some(100), Some(60)));
    let nothing = draw(&claude, &format!("{path}&lock=never"), "text/plain").await;
    assert_eq!(nothing.text, format!("never in {REPO}\nNothing happened.\n"));
}

#[tokio::test]
async fn only_who_may_read_a_scope_sees_what_happened_there() {
    let server = Server::start();
    server.client("claude").hold("x", 60).await;
    server.add_user("eve").await;
    let (claude, eve) = (server.client("claude"), server.client("eve"));
    let path = format!("/v1/timeline?repo={REPO}");
    assert_problem(&eve.get(&path).await, 404, "not-found");
    assert_problem(&eve.get(&format!("{path}&lock=x")).await, 404, "not-found");
    assert_problem(&claude.get("/v1/timeline?repo=teams/platform/none").await, 404, "not-found");
    for (query, field) in [
        ("lock=x/y", "lock"),
        ("from=999999", "from"),
        ("from=yesterday", "from"),
        ("from=9&to=8", "from"),
        ("to=999999", "to"),
        ("to=2999-01-01T00:00:00.000Z", "to"),
        ("width=39", "width"),
        ("width=1001", "width"),
        ("width=many", "width"),
        ("limit=5", "limit"),
    ] {
        let reply = claude.get(&format!("{path}&{query}")).await;
        assert_problem(&reply, 422, "invalid-argument");
        assert_eq!(reply.body["field"], field, "{query}");
    }
    assert_problem(&claude.get("/v1/timeline").await, 422, "invalid-argument");
}
