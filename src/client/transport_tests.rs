//! What the client sends and how it repeats, against a server of three lines on loopback.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;
use crate::client::Acquire;
use crate::client::LONG_POLL_SECONDS_MAX;
use crate::domain::id::RequestUuid;
use crate::domain::scope::LockKey;
use crate::wire::problem::Problem;

/// Answers the requests that come with `answers`, one connection each; an empty answer is a
/// connection that breaks. Returns what was asked.
async fn serve(listener: TcpListener, answers: Vec<String>) -> Vec<String> {
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
        socket.write_all(answer.as_bytes()).await.expect("a client that reads");
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

fn answer(status: u16, more: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} X\r\nconnection: close\r\n{more}content-length: {length}\r\n\r\n{body}"
    )
}

async fn start() -> (TcpListener, Client) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let url = format!("http://{address}/base/").parse().expect("an address");
    let client = Client::new(&url, "secret").expect("a client");
    (listener, client)
}

fn lock() -> LockKey {
    LockKey {
        scope: "teams/platform/website".parse().expect("a scope"),
        lock_name: "thread-work.42".parse().expect("a name"),
    }
}

fn acquire() -> Acquire {
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

fn ticket(state: &str) -> String {
    TICKET.replace("STATE", state)
}

#[tokio::test]
async fn a_lost_answer_is_asked_for_again_with_the_same_request_uuid() {
    let (listener, client) = start().await;
    let busy = answer(
        503,
        "retry-after: 0\r\n",
        &json(&Problem { retry_after_seconds: None, ..Problem::new(Code::Busy, "full") }),
    );
    let held = answer(
        201,
        "idempotency-replayed: true\r\n",
        &format!(r#"{{"ticket":{},"answered_after_ms":0}}"#, ticket("held")),
    );
    let server = serve(listener, vec![String::new(), busy, held]);
    let (lock, acquire) = (lock(), acquire());
    let (asked, reply) = tokio::join!(server, client.acquire(&lock, &acquire));
    assert!(reply.expect("the third answer").is_replay);
    assert_eq!(asked.len(), 3);
    for request in asked {
        let line = "POST /base/v1/locks/thread-work.42/tickets?repo=teams%2Fplatform%2Fwebsite ";
        assert!(request.starts_with(line), "{request}");
        let body = r#"{"request_uuid":"00000000-0000-0000-0000-000000000007"}"#;
        assert!(request.ends_with(body), "{request}");
        assert!(request.contains("authorization: Bearer secret\r\n"), "{request}");
    }
}

#[tokio::test]
async fn a_contended_ticket_is_an_answer_and_a_refusal_is_not() {
    let (listener, client) = start().await;
    let problem = json(&Problem::new(Code::LockContended, "held"));
    let contended = problem.replace(
        "\"code\":",
        &format!("\"ticket\":{},\"holder\":null,\"code\":", ticket("contended")),
    );
    let reused = json(&Problem::new(Code::RequestUuidReused, "used"));
    let answers = vec![answer(409, "retry-after: 9\r\n", &contended), answer(422, "", &reused)];
    let server = serve(listener, answers);
    let (lock, acquire) = (lock(), acquire());
    let calls = async {
        let first = client.acquire(&lock, &acquire).await.expect("a ticket");
        assert_eq!(first.body.holder, Some(None));
        assert_eq!(first.body.retry_after_seconds, Some(9));
        assert_eq!(first.json, contended);
        client.acquire(&lock, &acquire).await.expect_err("no ticket")
    };
    let (_, error) = tokio::join!(server, calls);
    assert_eq!((error.exit_code(), error.to_string().as_str()), (2, "request-uuid-reused: used"));
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_a_strange_answer_is_no_success() {
    let (listener, client) = start().await;
    let answers =
        vec![answer(302, "location: http://127.0.0.1:1/\r\n", ""), answer(200, "", "<html>")];
    let server = serve(listener, answers);
    let calls = async {
        let redirect = client.whoami().await.expect_err("a redirect");
        let page = client.whoami().await.expect_err("a page of something else");
        (redirect, page)
    };
    let (_, (redirect, page)) = tokio::join!(server, calls);
    assert!(matches!(redirect, ClientError::Unexpected(_)), "{redirect:?}");
    assert!(matches!(page, ClientError::Unexpected(_)), "{page:?}");
}

#[tokio::test]
async fn a_long_poll_says_how_long_it_may_take() {
    let (listener, client) = start().await;
    let body = format!(r#"{{"ticket":{},"answered_after_ms":0}}"#, ticket("waiting"));
    let id = "6bb65939-0db9-4fe2-83a7-ff6dfc3b00af".parse().expect("a UUID");
    let server = serve(listener, vec![answer(200, "", &body)]);
    let lock = lock();
    let (asked, reply) = tokio::join!(server, client.ticket(&lock, id, 600));
    reply.expect("an answer");
    assert!(asked[0].contains(&format!("prefer: wait={LONG_POLL_SECONDS_MAX}\r\n")), "{asked:?}");
}

#[tokio::test]
async fn nobody_there_is_unreachable_and_says_nothing_of_the_token() {
    let (listener, client) = start().await;
    drop(listener);
    let error = client.whoami().await.expect_err("nobody listens");
    assert_eq!(error.exit_code(), 8);
    assert!(matches!(error, ClientError::NoConnection(_)), "nothing was sent: {error:?}");
    assert!(!format!("{error:?} {client:?}").contains("secret"), "{error:?} {client:?}");
}

#[tokio::test]
async fn a_request_that_may_have_arrived_is_never_called_unsent() {
    let (listener, client) = start().await;
    // The connection breaks after the request; at the repetitions nobody listens any more.
    let (_, answer) = tokio::join!(serve(listener, vec![String::new()]), client.whoami());
    let error = answer.expect_err("nobody answers");
    assert!(matches!(error, ClientError::Unreachable(_)), "{error:?}");
}

#[tokio::test]
async fn a_broken_feed_goes_on_after_its_last_event_and_tells_none_twice() {
    use crate::client::{EventFilter, FeedItem};
    use crate::domain::id::Sequence;

    let (listener, client) = start().await;
    let feed = |body: &str| {
        format!(
            "HTTP/1.1 200 X\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n{body}"
        )
    };
    let answers = vec![
        feed(concat!(
            "retry: 1\n\n",
            "id: 4\nevent: lock.acquired\ndata: {\"n\":4}\n\n",
            "id: 5\nevent: checkpoint\ndata: {\"sequence\":5}\n\n",
        )),
        feed(concat!(
            "id: 4\nevent: lock.acquired\ndata: {\"n\":4}\n\n",
            "id: 6\nevent: lock.released\ndata: {\"n\":6}\n\n",
        )),
        answer(401, "", &json(&Problem::new(Code::Unauthenticated, "revoked"))),
    ];
    let filter = EventFilter {
        scope: Some(lock().scope),
        types: vec!["lock.*".to_owned(), "user.*".to_owned()],
        ..EventFilter::default()
    };
    let calls = async {
        let mut feed = client.feed(filter, Some(Sequence(3)));
        let mut seen = Vec::new();
        loop {
            match feed.next().await {
                Ok(FeedItem::Event { sequence, json }) => seen.push(format!("{sequence} {json}")),
                Ok(FeedItem::Checkpoint(sequence)) => seen.push(format!("{sequence} checkpoint")),
                Ok(FeedItem::Reconnecting(_)) => seen.push("reconnects".to_owned()),
                Ok(other) => panic!("{other:?}"),
                Err(error) => return (seen, error),
            }
        }
    };
    let (asked, (seen, error)) = tokio::join!(serve(listener, answers), calls);
    let expected = ["4 {\"n\":4}", "5 checkpoint", "reconnects", "6 {\"n\":6}", "reconnects"];
    assert_eq!(seen, expected);
    assert_eq!(error.exit_code(), 7);
    let cursors = asked.iter().map(|request| {
        request.lines().find_map(|line| line.strip_prefix("last-event-id: ")).unwrap_or_default()
    });
    assert_eq!(cursors.collect::<Vec<_>>(), ["3", "5", "6"]);
    assert!(
        asked[0].contains("&type=lock.*%2Cuser.*") || asked[0].contains("type=lock.*%2Cuser.*"),
        "{}",
        asked[0]
    );
}

fn json(problem: &Problem) -> String {
    serde_json::to_string(problem).expect("plain values")
}
