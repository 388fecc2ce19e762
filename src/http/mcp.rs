//! `/mcp`: the Model Context Protocol over HTTP, without sessions.
//!
//! Who asks is settled first, so nobody without a working token reaches a parser. A tool's call
//! then goes through the server's own routes, as a request with the same token: it is judged,
//! counted and told of as every other one. `hosts` has judged `Host` and `Origin` before.
//!
//! Deliberately absent: anything that outlives a request. A client that goes away in the middle of
//! a wait leaves its ticket in the queue, and finds it there by the same request UUID.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tower::ServiceExt as _;
use tracing::Instrument as _;

use super::body::BODY_BYTES_MAX;
use super::call::authenticate;
use super::failure::{Abandoned, Failure};
use super::request::{Arrival, Ends, Routed, method_name};
use super::routes::Policy;
use super::{Api, answer, body};
use crate::mcp::{self, Mcp, Told};
use crate::metrics::Operation;
use crate::wire::ask::Ask;

/// Where it is.
pub(super) const PATH: &str = "/mcp";

/// How often something is sent on a stream that has nothing to say, so that nothing in between
/// takes it for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The most bytes of an answer that a tool reads. The largest page is far below.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// What the path leads to.
#[derive(Clone)]
pub(super) struct Door {
    api: Api,
    calls: Router,
    ends: Ends,
}

impl Door {
    /// In front of these routes.
    pub(super) fn new(api: Api, calls: Router) -> Self {
        let ends = Ends::new(api.service.clone());
        Self { api, calls, ends }
    }

    /// Answers one message.
    pub(super) async fn answer(self, request: Request) -> Response {
        let arrival = Arrival::of(&request);
        let operation = Operation { method: method_name(request.method()), path: PATH };
        let identity = authenticate(&self.api, Policy::Token, request.headers());
        let token_id = identity.map(|identity| identity.token_id);
        let span = arrival.span(operation, token_id);
        let mut response = match token_id {
            Some(_) => self.serve(request).instrument(span.clone()).await,
            None => Failure::Unauthenticated.render(None),
        };
        response.extensions_mut().insert(Routed { operation, span });
        response
    }

    async fn serve(self, request: Request) -> Response {
        let (parts, content) = request.into_parts();
        let body = match body::read(&parts.headers, content).await {
            Ok(body) => body,
            Err(failure) => return failure.render(None),
        };
        if !body::is_json(&parts.headers) && parts.method == Method::POST {
            return Failure::malformed("the content-type must be application/json").render(None);
        }
        if parts.method == Method::POST && serde_json::from_slice::<IgnoredAny>(&body).is_err() {
            return Failure::malformed("the body is no JSON").render(None);
        }
        let authorization = parts.headers.get(header::AUTHORIZATION).cloned();
        let own = Own { door: self, authorization };
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(BODY_BYTES_MAX)
            .with_sse_keep_alive(Some(KEEP_ALIVE))
            // That was judged for every path, by what the server is known as.
            .disable_allowed_hosts();
        let service = StreamableHttpService::new(
            move || Ok(Mcp::new(own.clone())),
            Arc::new(NeverSessionManager::default()),
            config,
        );
        let response = service.handle(Request::from_parts(parts, Body::from(body))).await;
        let mut response = match response.status() {
            // How rmcp says that it is no message of the protocol, once it is known to be JSON.
            StatusCode::UNSUPPORTED_MEDIA_TYPE => no_message(),
            _ => response.map(Body::new),
        };
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
        response
    }
}

/// The answer to JSON that is no message: a batch, for instance, which the newer revisions of the
/// protocol don't have.
fn no_message() -> Response {
    let error = json!({ "code": -32600, "message": "it is no single message of JSON-RPC 2.0" });
    let body = json!({ "jsonrpc": "2.0", "id": null, "error": error });
    let body = Body::from(body.to_string());
    answer::with_body(StatusCode::BAD_REQUEST, "application/json", body)
}

/// The API, as the server asks itself for one caller.
#[derive(Clone)]
struct Own {
    door: Door,
    authorization: Option<HeaderValue>,
}

impl mcp::Api for Own {
    const CAN_KEEP_ALIVE: bool = false;

    async fn ask(&self, ask: Ask) -> Told {
        let mut request = axum::http::Request::builder()
            .method(ask.method.as_str())
            .uri(ask.target())
            .header(header::CONTENT_TYPE, "application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        if ask.wait_seconds > 0 {
            request = request.header("prefer", format!("wait={}", ask.wait_seconds));
        }
        let body = ask.body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let mut request = request.body(body).expect("a target has only what a URL may have");
        let arrival = Arrival::now(&request);
        request.extensions_mut().insert(arrival.clone());
        let calls = self.door.calls.clone();
        let response = calls.oneshot(request).await.unwrap_or_else(|never| match never {});
        let response = self.door.ends.tell(arrival, response);
        if response.extensions().get::<Abandoned>().is_some() {
            return Told::Nothing("the storage failed".to_owned());
        }
        let is_success = response.status().is_success();
        let json = axum::body::to_bytes(response.into_body(), ANSWER_BYTES_MAX).await;
        match json.ok().and_then(|json| serde_json::from_slice::<Value>(&json).ok()) {
            Some(value) if is_success => Told::Answer(value),
            Some(value) => Told::Problem(value),
            None => Told::Nothing("the answer is too long".to_owned()),
        }
    }

    fn is_ending(&self) -> bool {
        *self.door.api.draining.borrow()
    }
}
