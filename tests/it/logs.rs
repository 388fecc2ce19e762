//! What the server logs of requests: each line with the request's id, and nothing that a request
//! could forge.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{Client, SIGTERM, Server, pearing};

/// A server that logs all there is.
fn start(format: &str, filter: &str) -> Server {
    let mut server = Server::stopped();
    server.run(pearing(["dev", "--log", filter, "--log-format", format]));
    server
}

/// All that a server has logged when it has ended.
fn log_of(mut server: Server) -> String {
    server.process().signal(SIGTERM);
    let process = server.process();
    assert_eq!(process.exit_code(), Some(0));
    process.log()
}

/// Sends bytes on a connection of their own; what comes back doesn't matter.
async fn send_raw(server: &Server, bytes: &[u8]) {
    let address = server.url().strip_prefix("http://").expect("it is spoken to in the clear");
    let mut socket = TcpStream::connect(address).await.expect("the server listens");
    socket.write_all(bytes).await.expect("so few bytes fit");
    let mut answer = Vec::new();
    // A connection that is torn off is as good an answer.
    let _ = socket.read_to_end(&mut answer).await;
}

/// The lines of a log in JSON that were written in the span of a request.
fn lines_of(log: &str, request_id: &str) -> Vec<Value> {
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).expect(line));
    lines.filter(|line| line["span"]["request_id"] == request_id).collect()
}

#[tokio::test]
async fn each_answer_is_one_line_with_the_id_that_it_was_given() {
    let server = start("json", "info,pearing::http::request=debug");
    let claude = server.client("claude");
    let whoami = claude.get("/v1/whoami").await;
    let token_id = whoami.body["token_id"].clone();
    let own = whoami.header("x-request-id").expect("each answer has an id").to_owned();
    let with = |path: &str, id: &str| claude.request("GET", path).header("x-request-id", id);
    let named = Client::send(with("/v1/locks/a?user=nobody", "story-1")).await;
    let named = named.expect("it is answered");
    assert_eq!((named.says(), named.header("x-request-id")), ((404, "not-found"), Some("story-1")));
    let nowhere = Client::send(with("/v1/nowhere", "story-2")).await.expect("it is answered");
    assert_eq!((nowhere.status, nowhere.header("x-request-id")), (404, Some("story-2")));
    let unfit = Client::send(with("/v1/whoami", "story 3")).await.expect("it is answered");
    let unfit = unfit.header("x-request-id").expect("each answer has an id").to_owned();
    let foreign = with("/v1/whoami", "story-4").header("host", "evil.example");
    assert_eq!(Client::send(foreign).await.expect("it is answered").status, 403);
    let log = log_of(server);
    for (id, route, status, outcome, token_id) in [
        (own.as_str(), "/v1/whoami", 200, "ok", &token_id),
        ("story-1", "/v1/locks/{lock_name}", 404, "not-found", &token_id),
        ("story-2", "none", 404, "not-found", &Value::Null),
        (&unfit, "/v1/whoami", 200, "ok", &token_id),
        ("story-4", "none", 403, "forbidden", &Value::Null),
    ] {
        let lines = lines_of(&log, id);
        assert_eq!(lines.len(), 1, "{id}: {log}");
        let (span, fields) = (&lines[0]["span"], &lines[0]["fields"]);
        assert_eq!((&span["method"], &span["route"]), (&json!("GET"), &json!(route)), "{id}");
        assert_eq!(&span["token_id"], token_id, "{id}");
        assert_eq!(fields["message"], "answered");
        assert_eq!((&fields["status"], &fields["outcome"]), (&json!(status), &json!(outcome)));
        assert!(fields["elapsed_us"].is_u64(), "{fields}");
    }
    assert!(uuid::Uuid::parse_str(&own).is_ok() && uuid::Uuid::parse_str(&unfit).is_ok());
    assert!(!log.contains("story 3") && !log.contains("nobody"), "{log}");
}

#[tokio::test]
async fn the_default_log_is_not_flooded_by_answers() {
    let server = start("json", "info");
    let claude = server.client("claude");
    for _ in 0..20 {
        assert_eq!(claude.get("/v1/whoami").await.status, 200);
        assert_eq!(claude.get("/v1/nowhere").await.status, 404);
    }
    let log = log_of(server);
    // On a very busy machine some may take longer than a second.
    assert!(log.matches("answered").count() < 20, "{log}");
}

#[tokio::test]
async fn no_request_can_forge_a_line() {
    for format in ["json", "text"] {
        let server = start(format, "trace");
        let token = server.client("claude").token().to_owned();
        let auth = format!("authorization: Bearer {token}\r\nhost: localhost\r\n");
        for (target, headers) in [
            ("/v1/locks/a%0d%0aforged", ""),
            ("/v1/locks/a\x1b[31mforged", ""),
            ("/v1/locks/a\nforged", ""),
            ("/v1/whoami?a=%1b%5b31mforged", ""),
            ("/v1/whoami?\x7fforged", ""),
            ("/v1/whoami", "x-request-id: a\x1b[31mforged\r\n"),
            ("/v1/whoami", "x-request-id: a\rforged\r\n"),
            ("/v1/whoami", "x-request-id: a\n forged\r\n"),
            ("/v1/whoami", "x-request-id: a\u{85}forged\u{2028}\r\n"),
            ("/v1/whoami", "x-request-id: a\tforged\r\n"),
            ("/v1/whoami", "x-request-id: {\"forged\":1}\r\n"),
            ("/v1/events", "last-event-id: 1\u{9b}31mforged\r\n"),
            ("/v1/whoami", "origin: http://forged\x1b[31m\r\n"),
            ("/v1/whoami", "origin: http://forged.example\r\n"),
        ] {
            for method in ["GET", "FORGED", "G\x1b[31mforged"] {
                let request = format!(
                    "{method} {target} HTTP/1.1\r\n{auth}{headers}connection: close\r\n\r\n"
                );
                send_raw(&server, request.as_bytes()).await;
            }
        }
        send_raw(&server, b"forged\x1b[31m\r\n\r\n").await;
        let close = "x-request-id: plain\r\nconnection: close\r\n";
        let plain = format!("GET /v1/whoami HTTP/1.1\r\n{auth}{close}\r\n");
        send_raw(&server, plain.as_bytes()).await;
        let log = log_of(server);
        assert!(log.contains("plain"), "what is written is looked at: {log}");
        assert!(!log.to_lowercase().contains("forged"), "{log}");
        assert!(!log.contains(|c: char| c.is_control() && c != '\n'), "{log:?}");
        for line in log.lines() {
            match format {
                "json" => drop(serde_json::from_str::<Value>(line).expect(line)),
                // Each line begins with its time.
                _ => assert!(line.starts_with("20") && line.contains('Z'), "{line}"),
            }
        }
    }
}
