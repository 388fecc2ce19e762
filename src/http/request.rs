//! A request as logs and metrics know it: its id, the span in which it runs, and how it ended.
//!
//! The id is the caller's, if it sends one that is fit for a log, else a new one. It is on every
//! line that is written for the request, in the answer's header `X-Request-Id`, and in a problem.
//!
//! Deliberately absent: the path, the query and every other header. They may hold anything, a
//! token too, so a log names the route instead.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::response::Response;
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use tracing::Span;

use super::answer::{self, Outcome, PREFERENCE_APPLIED};
use super::failure::Abandoned;
use crate::clock::{self, RateClock};
use crate::domain::id::TokenId;
use crate::metrics::{Answer, Operation};
use crate::random;
use crate::service::Service;
use crate::wire::problem::Problem;

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// How long a caller's id may be: shorter than the secret of a token, so that none gets into a log
/// by a mistake.
const ID_LENGTH_MAX: usize = 63;

/// From how long on an answer is told of at `info`, unless the caller asked for the wait.
const SLOW: Duration = Duration::from_secs(1);

/// How many answers a second are told of at `info`. When all are slow, or all are refused, the
/// metrics say so, and a log that grows as fast as that would make it worse.
const LOUD_PER_SECOND: NonZeroU32 = NonZeroU32::new(10).expect("it is more than 0");

/// A request whose head has been read. Put into its extensions by the server.
#[derive(Debug, Clone)]
pub(super) struct Arrival {
    /// When that was.
    pub(super) at: Instant,
    id: HeaderValue,
    method: &'static str,
}

/// What the route of a request leaves in the extensions of its answer.
#[derive(Debug, Clone)]
pub(super) struct Routed {
    pub(super) operation: Operation,
    pub(super) span: Span,
}

impl Arrival {
    /// A request that arrives now.
    pub(super) fn now<B>(request: &axum::http::Request<B>) -> Self {
        let id = given_id(request.headers()).unwrap_or_else(new_id);
        Self { at: clock::monotonic(), id, method: method_name(request.method()) }
    }

    /// The arrival of a request, which the server has noted.
    pub(super) fn of(request: &Request) -> Self {
        request.extensions().get().cloned().unwrap_or_else(|| Self::now(request))
    }

    /// The span in which everything that is done for the request runs. On at every level, so that
    /// no line is without it.
    pub(super) fn span(&self, operation: Operation, token_id: Option<TokenId>) -> Span {
        tracing::error_span!(
            "request",
            request_id = %self.id(),
            method = %self.method,
            route = %operation.path,
            token_id = token_id.map(tracing::field::display),
        )
    }

    fn id(&self) -> &str {
        self.id.to_str().expect("an id is ASCII")
    }
}

/// A method that a route can have. A request's can be any word.
pub(super) fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

/// The caller's id, if it sends one, once, and it is fit for a log.
fn given_id(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut given = headers.get_all(X_REQUEST_ID).iter();
    let (Some(id), None) = (given.next(), given.next()) else { return None };
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    let is_fit = (1..=ID_LENGTH_MAX).contains(&id.len()) && id.as_bytes().iter().all(is_plain);
    is_fit.then(|| id.clone())
}

fn new_id() -> HeaderValue {
    HeaderValue::try_from(random::uuid().to_string()).expect("a UUID is ASCII")
}

/// Where the ends of requests are told.
#[derive(Clone)]
pub(super) struct Ends {
    service: Service,
    loud: Arc<RateLimiter<NotKeyed, InMemoryState, RateClock, NoOpMiddleware<Instant>>>,
}

impl Ends {
    pub(super) fn new(service: Service) -> Self {
        let quota = Quota::per_second(LOUD_PER_SECOND);
        Self { service, loud: Arc::new(RateLimiter::direct_with_clock(quota, RateClock)) }
    }

    /// Counts an answer, tells of it, and gives it the request's id.
    pub(super) fn tell(&self, arrival: Arrival, mut response: Response) -> Response {
        let extensions = response.extensions_mut();
        let routed = extensions.remove::<Routed>();
        let Routed { operation, span } = routed.unwrap_or_else(|| {
            let operation = Operation::NONE;
            Routed { operation, span: arrival.span(operation, None) }
        });
        let problem = extensions.remove::<Problem>();
        let outcome = match (&problem, extensions.get(), extensions.get()) {
            (Some(problem), _, _) => problem.code.as_str(),
            (None, Some(Outcome(state)), _) => state,
            (None, None, Some(Abandoned)) => "abandoned",
            (None, None, None) => "ok",
        };
        self.service.metrics().answers.get_or_create(&Answer { operation, outcome }).inc();
        span.in_scope(|| self.write_line(&arrival, &response, outcome));
        if let Some(mut problem) = problem {
            problem.instance = Some(format!("urn:pearing:request:{}", arrival.id()));
            *response.body_mut() = Body::from(answer::bytes(&problem));
            // The router has said how long the body was that wasn't there yet.
            response.headers_mut().remove(header::CONTENT_LENGTH);
        }
        response.headers_mut().insert(X_REQUEST_ID, arrival.id);
        response
    }

    fn write_line(&self, arrival: &Arrival, response: &Response, outcome: &'static str) {
        let took = clock::elapsed(arrival.at);
        let elapsed_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let status = response.status().as_u16();
        if is_loud(response, took) && self.loud.check().is_ok() {
            tracing::info!(status, outcome = %outcome, elapsed_us, "answered");
        } else {
            tracing::debug!(status, outcome = %outcome, elapsed_us, "answered");
        }
    }
}

/// Whether an answer that took so long is worth a line in everybody's log.
fn is_loud(response: &Response, took: Duration) -> bool {
    let was_held_back = response.headers().contains_key(PREFERENCE_APPLIED);
    response.status().is_server_error() || (took >= SLOW && !was_held_back)
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;

    use super::*;

    #[test]
    fn what_failed_is_loud_and_what_was_slow_without_being_asked_to() {
        let mut response = Response::new(Body::empty());
        assert!(!is_loud(&response, Duration::ZERO) && is_loud(&response, SLOW));
        response.headers_mut().insert(PREFERENCE_APPLIED, HeaderValue::from_static("wait=25"));
        assert!(!is_loud(&response, SLOW));
        for (status, expected) in [
            (StatusCode::CONFLICT, false),
            (StatusCode::TOO_MANY_REQUESTS, false),
            (StatusCode::SERVICE_UNAVAILABLE, true),
        ] {
            *response.status_mut() = status;
            assert_eq!(is_loud(&response, Duration::ZERO), expected, "{status}");
        }
    }

    fn given(ids: &[&[u8]]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for id in ids {
            let value = HeaderValue::from_bytes(id).expect("a value that HTTP allows");
            headers.append(X_REQUEST_ID, value);
        }
        given_id(&headers).map(|id| id.to_str().expect("it is plain").to_owned())
    }

    #[test]
    fn an_id_is_taken_over_if_it_is_one_plain_word() {
        let long = "a".repeat(ID_LENGTH_MAX);
        for id in ["a", "0191d1f0-0000-7000-8000-000000000001", "A.b_c-9", &long] {
            assert_eq!(given(&[id.as_bytes()]).as_deref(), Some(id));
        }
        let too_long = "a".repeat(ID_LENGTH_MAX + 1);
        for id in ["", " ", "a b", "a\tb", "a;b", "a=b", "a/b", "{}", "\u{e4}", &too_long] {
            assert_eq!(given(&[id.as_bytes()]), None, "{id:?}");
        }
        assert_eq!(given(&[b"\xff"]), None);
        assert_eq!(given(&[b"a", b"a"]), None);
        assert_eq!(given(&[]), None);
    }
}
