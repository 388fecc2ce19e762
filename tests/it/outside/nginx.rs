//! The service behind nginx as it is when nothing is set: it speaks HTTP/1.0 to what is behind it
//! and gathers answers before it passes them on.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;
use tempfile::TempDir;

use crate::support::{Client, Process, Server, eventually};

/// A running nginx in a folder of its own. It is killed when it is dropped.
struct Nginx {
    _process: Process,
    http: reqwest::Client,
    /// Deleted at the end.
    _home: TempDir,
}

/// All that is set beside where to listen and where to pass requests on is what it needs to run
/// as a single process that writes nowhere but into its folder.
fn settings(home: &Path, target: &str) -> String {
    let home = home.display();
    let folder = |name: &str| format!("{name}_temp_path {home}/{name};");
    let folders = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(folder).join(" ");
    format!(
        "daemon off; master_process off; pid {home}/pid; error_log stderr;
         events {{}}
         http {{
             access_log off; {folders}
             server {{
                 listen unix:{home}/socket;
                 location / {{ proxy_pass {target}; }}
             }}
         }}"
    )
}

impl Nginx {
    async fn before(server: &Server) -> Self {
        let home = tempfile::tempdir().expect("there can be a temporary directory");
        let file = home.path().join("nginx.conf");
        fs::write(&file, settings(home.path(), server.url())).expect("the folder is ours");
        // Where Debian has it, which isn't on everyone's PATH.
        let program = Path::new("/usr/sbin/nginx");
        let program = if program.exists() { program } else { Path::new("nginx") };
        let mut command = Command::new(program);
        command.args(["-e", "stderr", "-p"]).arg(home.path()).arg("-c").arg(file);
        let process = Process::start(&mut command);
        // No port that somebody else could take in between.
        let http = reqwest::Client::builder().unix_socket(home.path().join("socket"));
        let http = http.build().expect("plain settings");
        let nginx = Self { _process: process, http, _home: home };
        let client = nginx.client(&server.client("claude"));
        eventually("nginx to pass on", async || {
            Client::send(client.request("GET", "/livez")).await.ok()
        })
        .await;
        nginx
    }

    fn client(&self, client: &Client) -> Client {
        client.by_way_of(self.http.clone(), "http://localhost")
    }
}

/// Reads on until the feed's text has a frame with this line.
async fn read_until(feed: &mut reqwest::Response, text: &mut String, line: &str) {
    let line = format!("{line}\n");
    while !text.split_inclusive("\n\n").any(|frame| frame.contains(&line)) {
        let more = feed.chunk().await.unwrap_or_else(|error| panic!("{error}: {text}"));
        text.push_str(&String::from_utf8_lossy(&more.expect("the feed goes on")));
    }
}

#[tokio::test]
async fn a_single_event_needs_no_second_one_to_push_it() {
    let server = Server::start();
    let nginx = Nginx::before(&server).await;
    let claude = server.client("claude");
    for (way, reader, coding) in [
        ("nginx", nginx.client(&claude), "identity"),
        ("nginx and gzip", nginx.client(&claude), "gzip"),
        ("gzip", claude.clone(), "gzip"),
    ] {
        let feed = reader.request("GET", "/v1/events").header("Accept", "text/event-stream");
        // The head of the answer comes before any event does.
        let feed = feed.header("Accept-Encoding", coding).send().await;
        let mut feed = feed.unwrap_or_else(|error| panic!("{way}: {error}"));
        assert_eq!(feed.headers().get("content-encoding"), None, "{way}");
        let mut text = String::new();
        read_until(&mut feed, &mut text, "event: caught-up").await;
        let held = claude.hold(&format!("lock-of-{}", way.replace(' ', "-")), 60).await;
        read_until(&mut feed, &mut text, &format!("id: {}", held["sequence"])).await;
    }
}

#[tokio::test]
async fn a_hold_begins_goes_on_and_ends_through_nginx() {
    let server = Server::start();
    let nginx = Nginx::before(&server).await;
    let claude = nginx.client(&server.client("claude"));
    let held = claude.hold("x", 30).await;
    let extended = claude.heartbeat(&held, 60).await.ticket(200);
    assert_eq!(extended["fence_token"], held["fence_token"]);
    let codex = nginx.client(&server.client("codex"));
    let contended = codex.acquire("x", json!({})).await;
    assert_eq!(contended.says(), (409, "lock-contended"));
    assert!(contended.header("retry-after").is_some(), "{contended:?}");
    assert_eq!(claude.release(&held).await.ticket(200)["state"], "released");
    assert_eq!(claude.heartbeat(&held, 60).await.says(), (409, "ticket-not-held"));
}
