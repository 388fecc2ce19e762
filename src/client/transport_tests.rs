//! What the client sends and how it repeats.

use super::*;
use crate::client::LONG_POLL_SECONDS_MAX;
use crate::client::fake::{acquire, answer, json, lock, serve, start, ticket};
use crate::wire::problem::Problem;

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
