//! The protocol's conformance suite, on `/mcp`. It knows no tokens, so a proxy adds one.

use std::collections::BTreeSet;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::outside::{node_script, succeed};
use crate::support::Server;

/// What needs nothing but a server of the protocol.
const SCENARIOS: [&str; 7] = [
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "prompts-list",
    "completion-complete",
    "dns-rebinding-protection",
];

/// What can't be asked of this server, and why.
const OTHERS: [(&str, &[&str]); 5] = [
    (
        "they call tools of a fixture server, which answer fixed text, pictures and sounds",
        &[
            "tools-call-simple-text",
            "tools-call-image",
            "tools-call-audio",
            "tools-call-embedded-resource",
            "tools-call-mixed-content",
            "tools-call-error",
            "tools-call-with-progress",
            "json-schema-2020-12",
        ],
    ),
    (
        "they read resources and prompts of a fixture server",
        &[
            "resources-read-text",
            "resources-read-binary",
            "resources-templates-read",
            "prompts-get-simple",
            "prompts-get-with-args",
            "prompts-get-embedded-resource",
            "prompts-get-with-image",
        ],
    ),
    (
        "the server declares neither subscriptions nor logging: the feed is for that",
        &[
            "resources-subscribe",
            "resources-unsubscribe",
            "logging-set-level",
            "tools-call-with-logging",
        ],
    ),
    (
        "the server asks its client nothing",
        &[
            "tools-call-sampling",
            "tools-call-elicitation",
            "elicitation-sep1034-defaults",
            "elicitation-sep1330-enums",
        ],
    ),
    (
        "there are no sessions, so none of their streams is resumed",
        &["server-sse-polling", "server-sse-multiple-streams"],
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_needs_no_fixture_passes_and_the_rest_is_listed() {
    let server = Server::start();
    let proxy = Proxy::before(server.url(), server.client("claude").token()).await;
    let mut listing = node_script("conformance.mjs");
    listing.args(["list", "--server"]);
    let listed = tokio::task::spawn_blocking(move || succeed(&listing, 60)).await.expect("it ran");
    let listed: BTreeSet<String> = listed
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- ")?.split(' ').next())
        .map(str::to_owned)
        .collect();
    let others = OTHERS.iter().flat_map(|(_, names)| names.iter());
    let known: BTreeSet<String> =
        SCENARIOS.iter().chain(others).map(|name| (*name).to_owned()).collect();
    assert_eq!(listed, known, "each scenario is played, or listed with the reason why not");
    for scenario in SCENARIOS {
        let mut command = node_script("conformance.mjs");
        command.args(["server", "--url", &proxy.url, "--scenario", scenario]);
        command.current_dir(server.home());
        let said = tokio::task::spawn_blocking(move || succeed(&command, 60)).await;
        let said = said.expect("it ran");
        println!("{scenario}: {}", said.lines().last().unwrap_or_default());
    }
}

/// A proxy on the loopback that adds a token to each request, and passes on all else as it is.
struct Proxy {
    url: String,
    accepting: tokio::task::JoinHandle<()>,
}

impl Proxy {
    async fn before(url: &str, token: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let own = listener.local_addr().expect("it is bound");
        let target = url.trim_start_matches("http://").to_owned();
        let line = format!("authorization: Bearer {token}\r\nconnection: close\r\n\r\n");
        let accepting = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let (target, line) = (target.clone(), line.clone());
                connections.spawn(async move {
                    // A client that goes away is none to be told.
                    let _ = pass(client, &target, &line).await;
                });
            }
        });
        Self { url: format!("http://{own}/mcp"), accepting }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Passes one request on: each has a connection of its own.
async fn pass(mut client: TcpStream, target: &str, line: &str) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await?);
    }
    head.truncate(head.len() - 2);
    // Said by the client of this connection; the next one has another.
    let head = String::from_utf8_lossy(&head).into_owned();
    let is_kept = |text: &&str| !text.to_ascii_lowercase().starts_with("connection:");
    let head: String = head.split_inclusive("\r\n").filter(is_kept).collect();
    let mut server = TcpStream::connect(target).await?;
    server.write_all(head.as_bytes()).await?;
    server.write_all(line.as_bytes()).await?;
    tokio::io::copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}
