//! A tower layer that admits requests by the fence token that they carry.
//!
//! The headers `Pearing-Scope`, `Pearing-Lock-Name` and `Pearing-Fence-Token` say under which hold
//! a request is made. Each request that has them claims its fence token first, reads too: so the
//! holder's first read is its claim. A lower one than the newest is answered 409 `stale-fence`.
//! Without them a request that can change nothing (GET, HEAD, OPTIONS, TRACE) passes, and any other
//! is answered 428 `fence-required`.
//!
//! A newer request waits until the older ones of its lock have ended, and meanwhile no older one
//! is admitted. A request ends when its answer's head is there, or when it is dropped; what a
//! handler goes on to do after that (a task, a body that is written as it is sent) isn't seen.
//! It waits as long as they take, so let the service bound that, within this layer.
//! That wait is within one process. Where several serve the same state, a store that all of them
//! share still refuses an old fence token at each, but an old request that was admitted at one
//! isn't waited for at another; there let the database guard, in the transaction that writes.
//! Deliberately absent: whether a client holds what it says. Tokens of the service decide who may
//! ask; this decides who is late.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use tower_layer::Layer;
use tower_service::Service;

use super::gate::{Gates, Visit};
use super::lock_text;
use super::store::{FenceStore, MemoryStore};
use crate::domain::id::{FenceToken, Sequence};
use crate::domain::scope::LockKey;

/// The header that has the lock's scope, like `teams/platform/website`.
pub const SCOPE_HEADER: HeaderName = HeaderName::from_static("pearing-scope");
/// The header that has the lock's name.
pub const LOCK_HEADER: HeaderName = HeaderName::from_static("pearing-lock-name");
/// The header that has the fence token.
pub const TOKEN_HEADER: HeaderName = HeaderName::from_static("pearing-fence-token");

/// All fence tokens are below it, so that no JSON number of any language loses one.
const FENCE_TOKEN_END: u64 = 1 << 53;

/// Admits requests by their fence tokens. All services that one layer makes share its gates.
#[derive(Debug)]
pub struct FenceLayer<F> {
    shared: Arc<Shared<F>>,
}

#[derive(Debug)]
struct Shared<F> {
    store: F,
    gates: Gates,
}

impl<F: FenceStore> FenceLayer<F> {
    /// Keeps the newest fence tokens in this store.
    pub fn new(store: F) -> Self {
        Self { shared: Arc::new(Shared { store, gates: Gates::default() }) }
    }
}

impl Default for FenceLayer<MemoryStore> {
    fn default() -> Self {
        Self::new(MemoryStore::default())
    }
}

impl<F> Clone for FenceLayer<F> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<S, F> Layer<S> for FenceLayer<F> {
    type Service = FenceService<S, F>;

    fn layer(&self, inner: S) -> Self::Service {
        FenceService { inner, shared: Arc::clone(&self.shared) }
    }
}

/// A service behind a [`FenceLayer`].
#[derive(Debug)]
pub struct FenceService<S, F> {
    inner: S,
    shared: Arc<Shared<F>>,
}

impl<S: Clone, F> Clone for FenceService<S, F> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), shared: Arc::clone(&self.shared) }
    }
}

impl<S, F, B, R> Service<Request<B>> for FenceService<S, F>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    F: FenceStore,
    B: Send + 'static,
    R: From<String>,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<R>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The one that was made ready goes with the request, and its copy stays.
        let copy = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, copy);
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            let visit = match shared.admit(request.method(), request.headers()).await {
                Ok(visit) => visit,
                Err(refused) => return Ok(refused.answer()),
            };
            let answer = inner.call(request).await;
            drop(visit);
            answer
        })
    }
}

impl<F: FenceStore> Shared<F> {
    /// Admits a request, or says why not. It counts as at work until what is returned is dropped.
    async fn admit(&self, method: &Method, headers: &HeaderMap) -> Result<Option<Visit>, Refused> {
        let Some((lock, fence)) = hold(headers)? else {
            return if method.is_safe() { Ok(None) } else { Err(Refused::Required) };
        };
        let mut visit = self.gates.arrive(lock.clone(), fence);
        let newest = match self.store.raise(&lock, fence).await {
            Ok(newest) if newest > fence => Err(newest),
            Ok(_) => visit.begin().await,
            Err(_) => return Err(Refused::Unknown),
        };
        match newest {
            Ok(()) => Ok(Some(visit)),
            Err(newest) => Err(Refused::Stale { lock: Box::new(lock), fence, newest }),
        }
    }
}

/// The hold that a request is made under; `None` if it says nothing of one.
fn hold(headers: &HeaderMap) -> Result<Option<(LockKey, FenceToken)>, Refused> {
    let names = [SCOPE_HEADER, LOCK_HEADER, TOKEN_HEADER];
    if !names.iter().any(|name| headers.contains_key(name)) {
        return Ok(None);
    }
    let [scope, lock_name, fence] = names.map(|name| only(headers, name));
    let scope = scope?.parse().map_err(|_| Refused::Invalid("Pearing-Scope"))?;
    let lock_name = lock_name?.parse().map_err(|_| Refused::Invalid("Pearing-Lock-Name"))?;
    let fence = fence?.parse().ok().filter(|fence| (1..FENCE_TOKEN_END).contains(fence));
    let fence = fence.ok_or(Refused::Invalid("Pearing-Fence-Token"))?;
    Ok(Some((LockKey { scope, lock_name }, FenceToken(Sequence(fence)))))
}

/// The one value of a header. What is there twice says nothing for sure.
fn only(headers: &HeaderMap, name: HeaderName) -> Result<&str, Refused> {
    let mut values = headers.get_all(&name).into_iter();
    match (values.next(), values.next()) {
        (None, _) => Err(Refused::Required),
        (Some(value), None) => Ok(value.to_str().unwrap_or_default()),
        (Some(_), Some(_)) => Ok(""),
    }
}

/// Why a request isn't admitted.
#[derive(Debug)]
enum Refused {
    /// A newer holder has claimed.
    Stale { lock: Box<LockKey>, fence: FenceToken, newest: FenceToken },
    /// It doesn't say under which hold it is made.
    Required,
    /// A header has no value that it can have.
    Invalid(&'static str),
    /// The store can't say.
    Unknown,
}

impl Refused {
    /// The answer, as Pearing's own server would word it.
    fn answer<R: From<String>>(self) -> Response<R> {
        let (status, code, title, detail) = match self {
            Self::Stale { lock, fence, newest } => (
                StatusCode::CONFLICT,
                "stale-fence",
                "Fence token is not current",
                format!(
                    "{} is claimed with fence token {newest}, and {fence} is lower",
                    lock_text(&lock)
                ),
            ),
            Self::Required => (
                StatusCode::PRECONDITION_REQUIRED,
                "fence-required",
                "Fence token is required",
                "Pearing-Scope, Pearing-Lock-Name and Pearing-Fence-Token say under which hold it \
                 is made; all three are required here"
                    .to_owned(),
            ),
            Self::Invalid(header) => (
                StatusCode::UNPROCESSABLE_ENTITY,
                "invalid-argument",
                "Invalid argument",
                format!("{header} must be there once, with a value that it can have"),
            ),
            Self::Unknown => (
                StatusCode::SERVICE_UNAVAILABLE,
                "busy",
                "Server is busy",
                "the newest fence token can't be kept now".to_owned(),
            ),
        };
        let body = serde_json::json!({
            "type": format!("urn:pearing:problem:{code}"),
            "title": title,
            "status": status.as_u16(),
            "detail": detail,
            "code": code,
        });
        let mut answer = Response::new(R::from(body.to_string()));
        *answer.status_mut() = status;
        let kind = HeaderValue::from_static("application/problem+json");
        answer.headers_mut().insert(CONTENT_TYPE, kind);
        answer
    }
}

#[cfg(test)]
#[path = "layer_tests.rs"]
mod tests;
