//! For tests: a server of some lines on loopback, and what it answers.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::locks::Acquire;
use super::transport::Client;
use crate::domain::id::RequestUuid;
use crate::domain::scope::LockKey;
use crate::wire::problem::Problem;

/// At the end of an answer: nothing more comes, and the connection stays open.
pub(super) const HANGS: &str = "(hangs)";

/// Answers the requests that come with `answers`, one connection each; an empty answer is a
/// connection that breaks. Returns what was asked.
pub(super) async fn serve(listener: TcpListener, answers: Vec<String>) -> Vec<String> {
    let mut asked = Vec::new();
    for answer in answers {
        let (mut socket, _) = listener.accept().await.expect("a connection");
        let mut request = Vec::new();
        while !is_whole(&request) {
            let mut part = [0; 4096];
            let count = socket.read(&mut part).await.expect("a request");
            assert!(count > 0, "the request broke off");
            request.extend_from_slice(&part[..count]);
        }
        asked.push(String::from_utf8(request).expect("UTF-8"));
        let told = answer.strip_suffix(HANGS).unwrap_or(&answer);
        socket.write_all(told.as_bytes()).await.expect("a client that reads");
        if told.len() < answer.len() {
            // Until the client goes away, in whichever way.
            let _ = socket.read(&mut [0; 1]).await;
        }
    }
    asked
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    body.len() >= length.map_or(0, |n| n.parse().expect("a number"))
}

pub(super) fn answer(status: u16, more: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} X\r\nconnection: close\r\n{more}content-length: {length}\r\n\r\n{body}"
    )
}

pub(super) async fn start() -> (TcpListener, Client) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let url = format!("http://{address}/base/").parse().expect("an address");
    let client = Client::new(&url, "secret").expect("a client");
    (listener, client)
}

pub(super) fn lock() -> LockKey {
    LockKey {
        scope: "teams/platform/website".parse().expect("a scope"),
        lock_name: "thread-work.42".parse().expect("a name"),
    }
}

pub(super) fn acquire() -> Acquire {
    let request_uuid = RequestUuid(uuid::Uuid::from_u128(7));
    Acquire { request_uuid, lease_seconds: None, wait_seconds: None, note: None, reentrant: None }
}

const TICKET: &str = concat!(
    r#"{"ticket_id":"6bb65939-0db9-4fe2-83a7-ff6dfc3b00af","scope":"teams/platform/website","#,
    r#""lock_name":"thread-work.42","owner":"claude","#,
    r#""request_uuid":"00000000-0000-0000-0000-000000000007","state":"STATE","note":null,"#,
    r#""fence_token":null,"depth":0,"queue_position":null,"lease_seconds":60,"wait_seconds":0,"#,
    r#""lease_expires_at":null,"lease_remaining_ms":null,"wait_expires_at":null,"#,
    r#""heartbeat_every_seconds":20,"created_at":"2026-01-01T00:00:00.000Z","held_at":null,"#,
    r#""ended_at":null,"end_reason":null,"sequence":41}"#,
);

pub(super) fn ticket(state: &str) -> String {
    TICKET.replace("STATE", state)
}

pub(super) fn json(problem: &Problem) -> String {
    serde_json::to_string(problem).expect("plain values")
}
