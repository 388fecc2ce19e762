//! The cookie by which a browser follows the feed.

use serde_json::json;

use super::{ids, use_lock};
use crate::support::{Client, Feed, Reply, Server};

/// Asks for a cookie, as a page of this origin.
async fn ask(client: &Client, origin: Option<&str>) -> Reply {
    let mut request = client.request("POST", "/v1/feed-session");
    if let Some(origin) = origin {
        request = request.header("Origin", origin);
    }
    Client::send(request).await.expect("it is answered")
}

/// The parts of the one cookie that an answer sets.
fn parts(reply: &Reply) -> Vec<String> {
    assert_eq!(reply.status, 204, "{}", reply.body);
    let mut cookies = reply.headers.get_all("set-cookie").iter();
    let (Some(cookie), None) = (cookies.next(), cookies.next()) else { panic!("{reply:?}") };
    cookie.to_str().expect("it is ASCII").split("; ").map(str::to_owned).collect()
}

/// The header that a browser sends for a client.
async fn cookie_of(client: &Client) -> String {
    format!("Cookie: {}", parts(&ask(client, None).await)[0])
}

async fn open(server: &Server, cookie: &str, last_event_id: Option<&str>) -> Feed {
    Feed::open_with(server, Some(cookie), "", last_event_id).await
}

/// A feed that has caught up by a cookie.
async fn open_live(server: &Server, cookie: &str) -> Feed {
    let mut feed = open(server, cookie, None).await;
    assert_eq!(feed.status(), 200);
    feed.until_caught_up().await;
    feed
}

#[tokio::test]
async fn a_cookie_follows_the_feed_over_a_restart_as_its_token_would() {
    let mut server = Server::start();
    let claude = server.client("claude");
    let cookie = cookie_of(&claude).await;
    let mut feed = open(&server, &cookie, Some("0")).await;
    let by_cookie = feed.until_caught_up().await;
    let mut feed = Feed::open(&server, &claude, "?after=0", None).await;
    assert_eq!(by_cookie, feed.until_caught_up().await);
    assert!(by_cookie.len() > 1, "there was something to see");
    let last = by_cookie.last().expect("it caught up").id;
    server.crash();
    let claude = server.client("claude");
    use_lock(&claude, "x").await;
    let mut feed = open(&server, &cookie, Some(&last.to_string())).await;
    let events = feed.until_caught_up().await;
    assert_eq!(ids(&events), [last + 1, last + 2]);
    assert_eq!(cookie_of(&claude).await, cookie, "there is one for each token");
}

#[tokio::test]
async fn a_cookie_is_kept_from_scripts_from_other_sites_and_from_other_paths() {
    let server = Server::start();
    let (admin, claude) = (server.client("admin"), server.client("claude"));
    let plain = parts(&ask(&claude, None).await);
    let (name, session) = plain[0].split_once('=').expect("a name and a value");
    assert_eq!(name, "pearing_feed");
    assert!(session.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'), "{session}");
    assert!(!session.contains(&claude.token()[48..98]), "it isn't the token");
    assert_eq!(plain[1..], ["HttpOnly", "SameSite=Strict", "Path=/v1/events"]);
    assert_eq!(parts(&ask(&claude, Some("http://localhost")).await), plain);
    let over_tls = parts(&ask(&claude, Some("https://localhost")).await);
    assert_eq!(over_tls[..4], plain);
    assert_eq!(over_tls[4..], ["Secure"]);
    assert_eq!(ask(&claude, Some("https://evil.example")).await.status, 403);
    let fields = json!({ "user": "claude", "expires_in_days": 1 });
    let made = admin.post("/v1/admin/tokens", fields).await;
    let short = server.client_with(made.body["token"].as_str().expect("it is shown"));
    let cookie = parts(&ask(&short, None).await);
    let seconds = cookie[4].strip_prefix("Max-Age=").and_then(|text| text.parse::<u32>().ok());
    assert!(seconds.is_some_and(|left| (86_000..=86_400).contains(&left)), "{cookie:?}");

    let body = claude.post("/v1/feed-session", json!({ "x": 1 })).await;
    assert_eq!(body.says(), (422, "invalid-argument"));
    let query = claude.call("POST", "/v1/feed-session?x=1", None).await;
    assert_eq!(query.says(), (422, "invalid-argument"));
    let ok = ask(&claude, None).await;
    assert_eq!(ok.header("cache-control"), Some("no-store"));
    assert!(ok.sequence() > 0, "it shows a state, as each answer does");
}

#[tokio::test]
async fn a_cookie_is_good_for_nothing_but_the_feed_and_counts_less_than_a_token() {
    let server = Server::start();
    let (claude, codex) = (server.client("claude"), server.client("codex"));
    let cookie = cookie_of(&claude).await;
    let (_, value) = cookie.split_once(": ").expect("a header");
    let nobody = server.client_without_token();
    for (method, path) in pearing::http::every_route() {
        let path = path.replace(['{', '}'], "");
        let bare = Client::send(nobody.request(&method, &path)).await.expect("it is answered");
        let with_cookie = nobody.request(&method, &path).header("Cookie", value);
        let reply = Client::send(with_cookie).await.expect("it is answered");
        let expected = if path == "/v1/events" { 200 } else { bare.status };
        assert_eq!(reply.status, expected, "{method} {path}");
        assert!(bare.status == 401 || !path.starts_with("/v1/"), "{method} {path}");
    }
    // A wrong token isn't made good by a cookie, and a good one is whom it is asked for.
    let wrong = server.client_with("pearing_x").request("GET", "/v1/events");
    let reply = Client::send(wrong.header("Cookie", value)).await.expect("it is answered");
    assert_eq!(reply.status, 401);
    let fields = json!({ "request_uuid": crate::support::uuid() });
    codex.post("/v1/locks/own/tickets?user=codex", fields).await.ticket(201);
    let both = codex.request("GET", "/v1/events?user=codex").header("Cookie", value);
    let reply = Client::send(both).await.expect("it is answered");
    assert_eq!(reply.status, 200, "claude couldn't: {}", reply.body);
    for bad in ["Cookie: pearing_feed=", "Cookie: pearing_feed=x_y", &cookie[..cookie.len() - 1]] {
        assert_eq!(open(&server, bad, None).await.status(), 401, "{bad}");
    }
    let other = format!("Cookie: pearing_feed=x; theme=dark; {value}");
    assert_eq!(open(&server, &other, None).await.status(), 200, "it stands among others");
}

#[tokio::test]
async fn a_cookie_ends_with_its_token_and_with_its_users_service() {
    let server = Server::start();
    let admin = server.client("admin");
    let (revoked, kept) = (server.add_token("claude").await, server.client("claude"));
    let codex = server.client("codex");
    let cookies = [cookie_of(&revoked).await, cookie_of(&kept).await, cookie_of(&codex).await];
    let [of_revoked, of_kept, of_codex] = cookies.each_ref();
    let mut feeds = [
        open_live(&server, of_revoked).await,
        open_live(&server, of_codex).await,
        open_live(&server, of_kept).await,
    ];
    let id = revoked.get("/v1/whoami").await.body["token_id"].clone();
    let path = format!("/v1/admin/tokens/{}", id.as_str().expect("an id"));
    let at = admin.delete(&path).await.sequence();
    let got = ids(&feeds[0].until_its_end().await);
    assert!(got.iter().all(|sequence| *sequence <= at), "{got:?}");
    assert_eq!(open(&server, of_revoked, None).await.status(), 401);
    let disabled = admin.post("/v1/admin/users/codex/disable", json!({})).await;
    assert_eq!(disabled.status, 200);
    assert!(ids(&feeds[1].until_its_end().await).is_empty());
    assert_eq!(open(&server, of_codex, None).await.status(), 401);
    use_lock(&kept, "x").await;
    feeds[2].until(|event| event.name == "lock.released").await;
}

#[tokio::test]
async fn feeds_by_cookie_and_by_token_have_one_share() {
    let mut server = Server::start();
    server.kill();
    server.serve_with(&["--feeds-per-identity", "2"]);
    let claude = server.client("claude");
    let cookie = cookie_of(&claude).await;
    let _feeds = [open_live(&server, &cookie).await, Feed::open(&server, &claude, "", None).await];
    assert_eq!(open(&server, &cookie, None).await.status(), 429);
    assert_eq!(Feed::open(&server, &claude, "", None).await.status(), 429);
}
