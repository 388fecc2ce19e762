//! Sends requests and reads answers; the rest of the client says which.

use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Method, Response, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::address::ServerUrl;
use super::error::{ClientError, Refused};
use crate::clock::BootTime;
use crate::domain::scope::{Scope, ScopeKind};
use crate::wire::ask::Ask;
use crate::wire::operation;
use crate::wire::problem::{Code, Problem};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an answer may take that is not held back on purpose.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// A feed sends a comment every 15 s; after three of them missing it is dead.
const FEED_SILENCE_MAX: Duration = Duration::from_secs(45);
/// The pauses before a call is repeated. Short: who calls has a lease to think of.
const PAUSES: [Duration; 3] =
    [Duration::from_millis(100), Duration::from_millis(400), Duration::from_millis(1600)];
/// The longest pause that a busy server can ask for within one call.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// The most bytes of an answer that are read. A page of events is far below.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// An answer: its value, and the JSON that it was read from.
#[derive(Debug)]
pub struct Reply<T> {
    /// The value.
    pub body: T,
    /// The JSON as it came.
    pub json: String,
    /// When the request was sent, on the client's clock.
    pub sent_at: BootTime,
    /// Whether an acquire met a request that was made before.
    pub is_replay: bool,
}

/// Whether a call can be repeated when its answer got lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeat {
    /// Twice is the same as once.
    Harmless,
    /// A second time could be answered differently, so only a busy server is asked again.
    WhenBusy,
    /// Whoever calls has its own mind about when.
    Never,
}

/// A call: what is sent, and how.
pub(super) struct Call<'a, B> {
    pub(super) method: Method,
    pub(super) path: &'a [&'a str],
    pub(super) scope: Option<&'a Scope>,
    pub(super) query: Vec<(&'static str, String)>,
    pub(super) body: Option<&'a B>,
    pub(super) repeat: Repeat,
    /// How long the server is asked to hold the answer back, in seconds.
    pub(super) wait_seconds: u32,
    /// The media type of the answer, if it isn't JSON.
    pub(super) accept: Option<&'static str>,
}

impl<'a> Call<'a, ()> {
    pub(super) fn get(path: &'a [&'a str]) -> Self {
        Self {
            method: Method::GET,
            path,
            scope: None,
            query: Vec::new(),
            body: None,
            repeat: Repeat::Harmless,
            wait_seconds: 0,
            accept: None,
        }
    }

    pub(super) fn delete(path: &'a [&'a str]) -> Self {
        Self { method: Method::DELETE, ..Self::get(path) }
    }
}

impl<'a, B> Call<'a, B> {
    pub(super) fn send(method: Method, path: &'a [&'a str], body: &'a B, repeat: Repeat) -> Self {
        let (scope, query, accept) = (None, Vec::new(), None);
        Self { method, path, scope, query, body: Some(body), repeat, wait_seconds: 0, accept }
    }

    pub(super) fn at(self, scope: &'a Scope) -> Self {
        Self { scope: Some(scope), ..self }
    }

    /// Adds a parameter, if it has a value.
    pub(super) fn with(mut self, name: &'static str, value: Option<impl ToString>) -> Self {
        self.query.extend(value.map(|value| (name, value.to_string())));
        self
    }
}

/// A client of one server, with one token.
#[derive(Debug, Clone)]
pub struct Client {
    pub(super) http: reqwest::Client,
    feed_http: reqwest::Client,
    pub(super) base: Url,
}

impl Client {
    /// A client of the server at `server`, with the text of a token.
    ///
    /// # Errors
    /// The token holds what no header can carry.
    pub fn new(server: &ServerUrl, token: &str) -> Result<Self, ClientError> {
        let base = server.url().clone();
        let mut bearer = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| {
            ClientError::Setup("the token holds characters that no token has".to_owned())
        })?;
        bearer.set_sensitive(true);
        let headers = HeaderMap::from_iter([(AUTHORIZATION, bearer)]);
        let builder = || {
            let builder = reqwest::Client::builder()
                .default_headers(headers.clone())
                .user_agent(concat!("pearing-cli/", env!("CARGO_PKG_VERSION")))
                .redirect(reqwest::redirect::Policy::none())
                .connect_timeout(CONNECT_TIMEOUT)
                .tcp_nodelay(true);
            // Without TLS no certificates are read: a machine that has none can still connect.
            let builder = match base.scheme() {
                "http" => builder.tls_certs_only([]),
                _ => builder,
            };
            // What runs on this machine is never reached through a proxy.
            if server.is_loopback() { builder.no_proxy() } else { builder }
        };
        let build = |builder: reqwest::ClientBuilder| {
            builder
                .build()
                .map_err(|e| ClientError::Setup(format!("no HTTP client: {}", chain(&e))))
        };
        let http = build(builder())?;
        let feed_http = build(builder().read_timeout(FEED_SILENCE_MAX))?;
        Ok(Self { http, feed_http, base })
    }

    /// The address of a call.
    fn url<B>(&self, call: &Call<'_, B>) -> Url {
        let mut url = self.base.clone();
        url.path_segments_mut()
            .expect("an http address has a path")
            .pop_if_empty()
            .push("v1")
            .extend(call.path);
        {
            let mut query = url.query_pairs_mut();
            if let Some(scope) = call.scope {
                let (name, value) = scope_parameter(scope);
                query.append_pair(name, &value);
            }
            query.extend_pairs(&call.query);
        }
        if url.query() == Some("") {
            url.set_query(None);
        }
        url
    }

    /// Makes a call; repeats it where that is harmless and no answer came, or where it was not
    /// sent at all, or the server is busy.
    pub(super) async fn call<T: DeserializeOwned, B: Serialize>(
        &self,
        call: Call<'_, B>,
    ) -> Result<Reply<T>, ClientError> {
        let raw = self.call_raw(call).await?;
        let body = serde_json::from_str(&raw.json)
            .map_err(|e| ClientError::Unexpected(format!("its JSON is not as agreed: {e}")))?;
        Ok(Reply { body, json: raw.json, sent_at: raw.sent_at, is_replay: raw.is_replay })
    }

    /// The same, for an answer that is passed on unread.
    pub(super) async fn call_raw<B: Serialize>(
        &self,
        call: Call<'_, B>,
    ) -> Result<Reply<()>, ClientError> {
        let mut pauses = PAUSES.into_iter();
        let mut was_sent = false;
        loop {
            let error = match self.try_once(&call).await {
                Ok(reply) => return Ok(reply),
                // An attempt before this one may have arrived all the same.
                Err(ClientError::NoConnection(why)) if was_sent => ClientError::Unreachable(why),
                Err(error) => error,
            };
            if call.repeat == Repeat::Never {
                return Err(error);
            }
            was_sent |= !matches!(error, ClientError::NoConnection(_));
            let asked = match &error {
                ClientError::Problem(refused) if refused.problem.code == Code::Busy => {
                    error.retry_after().unwrap_or_default()
                }
                // What was never sent can be sent, whatever it is.
                ClientError::NoConnection(_) => Duration::ZERO,
                ClientError::Unreachable(_) if call.repeat == Repeat::Harmless => Duration::ZERO,
                ClientError::Unreachable(_)
                | ClientError::Problem(_)
                | ClientError::Unexpected(_)
                | ClientError::Setup(_) => return Err(error),
            };
            let Some(pause) = pauses.next() else {
                return Err(error);
            };
            tokio::time::sleep(pause.max(asked).min(PAUSE_MAX)).await;
        }
    }

    /// Makes a call of any operation. Its answer is passed on unread.
    ///
    /// # Errors
    /// As for every call.
    pub async fn ask(&self, ask: &Ask) -> Result<Reply<()>, ClientError> {
        let method = match ask.method {
            operation::Method::Get => Method::GET,
            operation::Method::Post => Method::POST,
            operation::Method::Put => Method::PUT,
            operation::Method::Delete => Method::DELETE,
        };
        let repeat = if ask.is_harmless { Repeat::Harmless } else { Repeat::WhenBusy };
        let (scope, query, body) = (None, ask.query.clone(), ask.body.as_ref());
        let wait_seconds = ask.wait_seconds;
        let parts: Vec<&str> = ask.path.iter().map(String::as_str).collect();
        let path = &parts;
        let call = Call { method, path, scope, query, body, repeat, wait_seconds, accept: None };
        self.call_raw(call).await
    }

    async fn try_once<B: Serialize>(&self, call: &Call<'_, B>) -> Result<Reply<()>, ClientError> {
        let wait = Duration::from_secs(call.wait_seconds.into());
        let mut request =
            self.http.request(call.method.clone(), self.url(call)).timeout(ANSWER_TIMEOUT + wait);
        if call.wait_seconds > 0 {
            request = request.header("prefer", format!("wait={}", call.wait_seconds));
        }
        if let Some(accept) = call.accept {
            request = request.header(ACCEPT, accept);
        }
        if let Some(body) = call.body {
            request = request.json(body);
        }
        let sent_at = BootTime::now();
        let response = request.send().await.map_err(|e| no_answer(&e))?;
        read_answer(response, sent_at).await
    }

    /// Opens an answer that is text, of any length.
    pub(super) async fn open_text(&self, call: &Call<'_, ()>) -> Result<Response, ClientError> {
        let request = self.feed_http.get(self.url(call));
        let response = tokio::time::timeout(ANSWER_TIMEOUT, request.send())
            .await
            .map_err(|_| ClientError::Unreachable("no answer in time".to_owned()))?
            .map_err(|e| no_answer(&e))?;
        if response.status().is_success() {
            return Ok(response);
        }
        match read_answer(response, BootTime::now()).await {
            Ok(_) => Err(ClientError::Unexpected("neither text nor a problem".to_owned())),
            Err(error) => Err(error),
        }
    }

    /// Opens the event feed, after `cursor` if there is one.
    pub(super) async fn open_feed(
        &self,
        call: &Call<'_, ()>,
        cursor: Option<String>,
    ) -> Result<Response, ClientError> {
        let mut request = self.feed_http.get(self.url(call)).header(ACCEPT, "text/event-stream");
        if let Some(cursor) = cursor {
            request = request.header("last-event-id", cursor);
        }
        let response = tokio::time::timeout(ANSWER_TIMEOUT, request.send())
            .await
            .map_err(|_| ClientError::Unreachable("no answer in time".to_owned()))?
            .map_err(|e| no_answer(&e))?;
        let content_type = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        // Whatever else is a success: taken for a feed it would be an empty one, for ever.
        if response.status().is_success()
            && content_type.is_some_and(|it| it.starts_with(b"text/event-stream"))
        {
            return Ok(response);
        }
        match read_answer(response, BootTime::now()).await {
            Ok(_) => Err(ClientError::Unexpected("neither a feed nor a problem".to_owned())),
            Err(error) => Err(error),
        }
    }
}

/// The query parameter that names a scope.
fn scope_parameter(scope: &Scope) -> (&'static str, String) {
    match scope.kind() {
        ScopeKind::Repo(_) => ("repo", scope.to_string()),
        ScopeKind::Team(team) => ("team", team.to_string()),
        ScopeKind::User(user) => ("user", user.to_string()),
    }
}

/// Reads an answer to its end: the JSON of a success, or what went wrong.
async fn read_answer(response: Response, sent_at: BootTime) -> Result<Reply<()>, ClientError> {
    let status = response.status();
    let headers = response.headers();
    let retry_after: Option<u64> =
        headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let is_replay =
        headers.get("idempotency-replayed").is_some_and(|value| value.as_bytes() == b"true");
    let json = read_text(response).await?;
    if status.is_success() {
        return Ok(Reply { body: (), json, sent_at, is_replay });
    }
    match serde_json::from_str::<Problem>(&json) {
        Ok(mut problem) => {
            problem.retry_after_seconds = problem.retry_after_seconds.or(retry_after);
            Err(ClientError::Problem(Box::new(Refused { problem, json, sent_at, is_replay })))
        }
        // A proxy that can't reach the server: whether it was reached before is unknown.
        Err(_) if matches!(status.as_u16(), 502..=504) => {
            Err(ClientError::Unreachable(format!("HTTP {status} from something in between")))
        }
        Err(_) => Err(ClientError::Unexpected(format!("HTTP {status} without a problem"))),
    }
}

async fn read_text(mut response: Response) -> Result<String, ClientError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|e| no_answer(&e))? {
        if bytes.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err(ClientError::Unexpected("it is too long".to_owned()));
        }
        bytes.extend_from_slice(&chunk);
    }
    String::from_utf8(bytes).map_err(|_| ClientError::Unexpected("it is no UTF-8".to_owned()))
}

/// Why a request, or an answer that had begun, broke off.
pub(super) fn no_answer(error: &reqwest::Error) -> ClientError {
    let why = chain(error);
    if error.is_connect() { ClientError::NoConnection(why) } else { ClientError::Unreachable(why) }
}

/// An error and its causes in one line. The address is left out: the caller knows it.
fn chain(error: &reqwest::Error) -> String {
    let mut text = String::from(if error.is_timeout() {
        "no answer in time"
    } else if error.is_connect() {
        "no connection"
    } else {
        "the connection broke"
    });
    let mut cause = std::error::Error::source(error);
    let mut last = None;
    while let Some(inner) = cause {
        last = Some(inner.to_string());
        cause = inner.source();
    }
    if let Some(last) = last {
        text.push_str(": ");
        text.push_str(&last);
    }
    text
}

#[cfg(test)]
#[path = "transport_tests.rs"]
mod tests;
