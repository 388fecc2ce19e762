//! One request, from its head to its answer: who asks, what is asked, and what comes back.

use std::str::FromStr;
use std::time::Instant;

use axum::RequestPartsExt;
use axum::body::Bytes;
use axum::extract::{RawPathParams, Request};
use axum::http::{HeaderMap, Method, header};
use axum::response::Response;
use tracing::Instrument as _;

use super::Api;
use super::answer::{self, PEARING_SEQUENCE};
use super::body::{self, JsonBody};
use super::failure::{Failure, Moment};
use super::feed_session;
use super::query::{Query, SCOPE, scope_named};
use super::request::{Arrival, Routed};
use super::routes::Policy;
use crate::clock;
use crate::domain::id::{TicketId, TokenId};
use crate::domain::name::{InvalidName, LockName, UserName};
use crate::domain::scope::{LockKey, Scope};
use crate::metrics::Operation;
use crate::service::Identity;

/// What a handler gets.
pub(super) struct Call {
    arrived: Instant,
    token_id: Option<TokenId>,
    path: Vec<(String, String)>,
    query: String,
    headers: HeaderMap,
    body: Bytes,
}

/// Answers one request, in a span of its own.
pub(super) async fn answer<F>(
    api: Api,
    policy: Policy,
    operation: Operation,
    request: Request,
    handler: impl Fn(Api, Call) -> F,
) -> Response
where
    F: Future<Output = Result<Response, Failure>>,
{
    let arrival = Arrival::of(&request);
    // Who asks is settled before anything else is looked at, and then whether it is too much.
    let identity = match policy {
        Policy::Open => None,
        Policy::Token | Policy::Holder | Policy::TokenOrCookie => {
            authenticate(&api, policy, request.headers())
        }
    };
    let token_id = identity.as_ref().map(|identity| identity.token_id);
    let span = arrival.span(operation, token_id);
    let answering = answer_to(api, policy, identity, arrival.at, request, handler);
    let mut response = answering.instrument(span.clone()).await;
    response.extensions_mut().insert(Routed { operation, span });
    response
}

async fn answer_to<F>(
    api: Api,
    policy: Policy,
    identity: Option<Identity>,
    arrived: Instant,
    request: Request,
    handler: impl Fn(Api, Call) -> F,
) -> Response
where
    F: Future<Output = Result<Response, Failure>>,
{
    let query = request.uri().query().unwrap_or_default();
    let is_stranger = policy != Policy::Open && identity.is_none();
    if is_stranger {
        return Failure::Unauthenticated.render(None);
    }
    let spent = identity.as_ref().map_or(Ok(()), |by| spend(&api, policy, &by.user, query));
    let token_id = identity.map(|identity| identity.token_id);
    let result = match spent {
        Ok(()) => match Call::read(arrived, token_id, request).await {
            Ok(call) => handler(api.clone(), call).await,
            Err(failure) => Err(failure),
        },
        Err(failure) => Err(failure),
    };
    let mut response = result.unwrap_or_else(|failure| {
        // Measured before the lease is, as in every answer with a ticket.
        let answered_after_ms = millis_since(arrived);
        failure.render(Some(Moment { now: api.service.now(), answered_after_ms }))
    });
    if token_id.is_some() && !response.headers().contains_key(PEARING_SEQUENCE) {
        let head = api.service.read(|state| state.head());
        answer::set_sequence(&mut response, head);
    }
    response
}

fn millis_since(arrived: Instant) -> u64 {
    u64::try_from(clock::elapsed(arrived).as_millis()).unwrap_or(u64::MAX)
}

/// Takes a request from the budgets that it is to be paid from.
fn spend(api: &Api, policy: Policy, user: &UserName, query: &str) -> Result<(), Failure> {
    match policy {
        Policy::Open => Ok(()),
        Policy::Holder => api.rates.holders.spend(user),
        Policy::Token | Policy::TokenOrCookie => {
            let person = api.service.read(|state| state.access().account(user));
            api.rates.identities.spend(&person)?;
            let can_read =
                |scope: &Scope| api.service.read(|state| state.access().can_read(user, scope));
            scope_named(query)
                .filter(can_read)
                .map_or(Ok(()), |scope| api.rates.scopes.spend(&scope))
        }
    }
}

/// Who a request's token stands for, if it works. A cookie counts where the policy says so, and
/// where there is no token beside it.
pub(super) fn authenticate(api: &Api, policy: Policy, headers: &HeaderMap) -> Option<Identity> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let value = match (given.next(), given.next()) {
        (Some(value), None) => value,
        (None, _) if policy == Policy::TokenOrCookie => {
            let mut sessions = feed_session::sessions(headers);
            return sessions.find_map(|session| api.service.authenticate_feed(session));
        }
        (Some(_) | None, _) => return None,
    };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    let is_bearer = scheme.eq_ignore_ascii_case("bearer");
    if is_bearer { api.service.authenticate(token.trim()) } else { None }
}

impl Call {
    async fn read(
        arrived: Instant,
        token_id: Option<TokenId>,
        request: Request,
    ) -> Result<Self, Failure> {
        let has_no_body = matches!(*request.method(), Method::GET | Method::HEAD | Method::DELETE);
        let (mut parts, content) = request.into_parts();
        let path = parts
            .extract::<RawPathParams>()
            .await
            .map_err(|_| Failure::malformed("the path holds an escape that is no UTF-8"))?;
        let path = path.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let body = body::read(&parts.headers, content).await?;
        if has_no_body && !body.is_empty() {
            return Err(Failure::malformed("this call takes no body"));
        }
        let query = parts.uri.query().unwrap_or_default().to_owned();
        Ok(Self { arrived, token_id, path, query, headers: parts.headers, body })
    }

    /// Who asks.
    ///
    /// # Panics
    /// On a route that is open to anyone.
    pub(super) fn token_id(&self) -> TokenId {
        self.token_id.expect("the route's policy demands a token")
    }

    /// How long the server has had the request, in milliseconds.
    pub(super) fn answered_after_ms(&self) -> u64 {
        millis_since(self.arrived)
    }

    /// The query, in which only these parameters may stand.
    pub(super) fn query(&self, known: &[&[&str]]) -> Result<Query, Failure> {
        Query::parse(&self.query, known)
    }

    /// A reference to the same call with another cursor, relative to this call: whatever a proxy
    /// has put before the path stays there. A start that was given by `after` is left behind.
    pub(super) fn with_cursor(&self, cursor: &str) -> String {
        let is_kept = |pair: &&str| !matches!(pair.split('=').next(), Some("cursor" | "after"));
        let mut reference = "?".to_owned();
        for pair in self.query.split('&').filter(|pair| !pair.is_empty()).filter(is_kept) {
            reference.push_str(pair);
            reference.push('&');
        }
        reference + "cursor=" + cursor
    }

    /// A part of the path. `rule` says what a text that can't be read breaks.
    pub(super) fn part<T: FromStr>(&self, name: &str, rule: &str) -> Result<T, Failure> {
        let found = self.path.iter().find(|(known, _)| known == name);
        let (_, text) = found.expect("a handler asks for the parts of its own path");
        text.parse().map_err(|_| Failure::invalid(name, rule))
    }

    /// The lock: its name in the path, its scope in the query, in which nothing else may stand.
    pub(super) fn lock(&self) -> Result<LockKey, Failure> {
        self.lock_in(&self.query(&[&SCOPE])?)
    }

    /// The lock: its name in the path, its scope in `query`.
    pub(super) fn lock_in(&self, query: &Query) -> Result<LockKey, Failure> {
        let lock_name: LockName = self.name("lock_name")?;
        Ok(LockKey { scope: query.scope()?, lock_name })
    }

    /// A name in the path.
    pub(super) fn name<T: FromStr<Err = InvalidName>>(&self, name: &str) -> Result<T, Failure> {
        let text: String = self.part(name, "")?;
        text.parse().map_err(|error: InvalidName| Failure::invalid(name, error.rule))
    }

    /// The ticket in the path.
    pub(super) fn ticket_id(&self) -> Result<TicketId, Failure> {
        self.part("ticket_id", "must be a UUID")
    }

    /// The body.
    pub(super) fn body<T: JsonBody>(&self) -> Result<T, Failure> {
        body::parse(&self.headers, &self.body)
    }

    /// Makes sure that nothing is asked for beside the path.
    pub(super) fn no_input(&self) -> Result<(), Failure> {
        /// An object without fields.
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Nothing {}

        impl JsonBody for Nothing {
            const FIELDS: &'static [body::Field] = &[];
        }

        self.query(&[])?;
        self.body().map(|Nothing {}| ())
    }

    /// A header's text; `None` if it is absent or empty. One that isn't ASCII is there, but says
    /// nothing that any header can say.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let text = self.headers.get(name)?.to_str().unwrap_or("\u{fffd}").trim();
        (!text.is_empty()).then_some(text)
    }
}
