//! HTTP as anyone would speak it: none of our own types on the way.

use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::{Value, json};

use super::{PATIENCE, REPO, contract};

/// What came back.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    /// Null if it is no JSON.
    pub(crate) body: Value,
}

impl Reply {
    /// A header's text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("our headers are ASCII"))
    }

    /// The sequence of the state that it shows.
    pub(crate) fn sequence(&self) -> u64 {
        let text = self.header("pearing-sequence").expect("an authenticated answer has it");
        text.parse().expect("it is a number")
    }

    /// A problem's code.
    pub(crate) fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or("")
    }

    /// Status and code at once, for tables.
    pub(crate) fn says(&self) -> (u16, &str) {
        (self.status, self.code())
    }

    /// The ticket in an answer that must have this status.
    #[track_caller]
    pub(crate) fn ticket(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.body);
        assert!(self.body["ticket"].is_object(), "{}", self.body);
        self.body["ticket"].clone()
    }
}

/// One identity at one server.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    url: String,
    token: Option<String>,
}

/// A fresh UUID.
pub(crate) fn uuid() -> String {
    pearing::random::uuid().to_string()
}

/// The path and query of a ticket, with `rest` behind its path.
pub(crate) fn path_of(ticket: &Value, rest: &str) -> String {
    let text = |field: &str| ticket[field].as_str().expect("a ticket has this text").to_owned();
    let (lock_name, ticket_id, scope) = (text("lock_name"), text("ticket_id"), text("scope"));
    let scope = match scope.split('/').collect::<Vec<_>>()[..] {
        ["teams", team] => format!("team={team}"),
        ["users", user] => format!("user={user}"),
        _ => format!("repo={scope}"),
    };
    format!("/v1/locks/{lock_name}/tickets/{ticket_id}{rest}?{scope}")
}

impl Client {
    pub(super) fn new(http: reqwest::Client, url: &str, token: Option<&str>) -> Self {
        Self { http, url: url.to_owned(), token: token.map(str::to_owned) }
    }

    /// The same identity by another way to the server.
    pub(crate) fn by_way_of(&self, http: reqwest::Client, url: &str) -> Self {
        Self::new(http, url, self.token_if_any())
    }

    /// The token, which must be there.
    pub(crate) fn token(&self) -> &str {
        self.token.as_deref().expect("this client has a token")
    }

    /// The token, if there is one.
    pub(crate) fn token_if_any(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// A request to be completed by hand. It has the token.
    pub(crate) fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let method: Method = method.parse().expect("a method");
        let request = self.http.request(method, format!("{}{path}", self.url));
        let request = match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        request.timeout(PATIENCE)
    }

    /// Sends a request; fails if the connection breaks.
    pub(crate) async fn send(request: reqwest::RequestBuilder) -> reqwest::Result<Reply> {
        let response = request.send().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let mut body = serde_json::from_slice(&response.bytes().await?).unwrap_or(Value::Null);
        // A problem names its request, which makes no two of them alike. Here it is looked at for
        // all tests, and taken out.
        let media_type = headers.get("content-type").map(HeaderValue::as_bytes);
        if media_type == Some(b"application/problem+json") {
            let id = headers["x-request-id"].to_str().expect("our headers are ASCII");
            let instance = body.as_object_mut().and_then(|problem| problem.remove("instance"));
            assert_eq!(instance, Some(format!("urn:pearing:request:{id}").into()), "{body}");
        }
        Ok(Reply { status, headers, body })
    }

    /// Sends a request with or without a body to a server that must answer, and as the contract
    /// says.
    pub(crate) async fn call(&self, method: &str, path: &str, body: Option<Value>) -> Reply {
        let request = self.request(method, path);
        let request = match body {
            Some(body) => request.json(&body),
            None => request,
        };
        let sent = Self::send(request).await;
        let reply = sent.unwrap_or_else(|error| panic!("{method} {path}: {error:?}"));
        contract::check(method, path, &reply);
        reply
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.call("GET", path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Reply {
        self.call("POST", path, Some(body)).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Reply {
        self.call("PUT", path, Some(body)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Reply {
        self.call("DELETE", path, None).await
    }

    /// Asks for a lock in the repository. Without a request UUID it gets a fresh one.
    pub(crate) async fn acquire(&self, lock_name: &str, mut fields: Value) -> Reply {
        if fields.get("request_uuid").is_none() {
            fields["request_uuid"] = uuid().into();
        }
        self.post(&format!("/v1/locks/{lock_name}/tickets?repo={REPO}"), fields).await
    }

    /// The ticket of a lock that must be free.
    pub(crate) async fn hold(&self, lock_name: &str, lease_seconds: u32) -> Value {
        self.acquire(lock_name, json!({ "lease_seconds": lease_seconds })).await.ticket(201)
    }

    /// The ticket of a lock that must be taken.
    pub(crate) async fn wait_for(&self, lock_name: &str, lease_seconds: u32) -> Value {
        let fields = json!({ "lease_seconds": lease_seconds, "wait_seconds": 600 });
        self.acquire(lock_name, fields).await.ticket(202)
    }

    pub(crate) async fn heartbeat(&self, ticket: &Value, lease_seconds: u32) -> Reply {
        let fields = json!({ "lease_seconds": lease_seconds });
        self.post(&path_of(ticket, "/heartbeat"), fields).await
    }

    pub(crate) async fn release(&self, ticket: &Value) -> Reply {
        self.delete(&path_of(ticket, "")).await
    }

    /// A ticket as it is now.
    pub(crate) async fn look(&self, ticket: &Value) -> Value {
        self.get(&path_of(ticket, "")).await.ticket(200)
    }

    /// A lock of the repository as it is now.
    pub(crate) async fn lock(&self, lock_name: &str) -> Value {
        let reply = self.get(&format!("/v1/locks/{lock_name}?repo={REPO}")).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply.body
    }

    /// Every event that one may see, from the first one on, page by page.
    pub(crate) async fn events(&self, filter: &str) -> Vec<Value> {
        let mut events = Vec::new();
        let mut start = "after=0".to_owned();
        loop {
            let path = format!("/v1/events?limit=1000&{start}{filter}");
            let page = self.get(&path).await;
            assert_eq!(page.status, 200, "{}", page.body);
            events.extend(page.body["items"].as_array().expect("a list has items").clone());
            match page.body["next"].as_str() {
                Some(next) => start = format!("cursor={next}"),
                None => return events,
            }
        }
    }
}
