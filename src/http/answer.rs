//! Renders answers.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::Serialize;

use super::call::Call;
use super::cursor;
use crate::domain::id::Sequence;
use crate::wire::list::List;

/// The state that an answer shows. Following the feed from it on leaves no gap.
pub(super) const PEARING_SEQUENCE: HeaderName = HeaderName::from_static("pearing-sequence");

/// How long the caller asked to be held back, as far as it was granted.
pub(super) const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// In the extensions of an answer with a ticket: its state.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outcome(pub(super) &'static str);

const IDEMPOTENCY_REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// An answer in JSON, which shows the state at `sequence`.
pub(super) fn json(status: StatusCode, sequence: Sequence, body: &impl Serialize) -> Response {
    let mut response = bare(status, "application/json", body);
    set_sequence(&mut response, sequence);
    response
}

/// A page of a list, which shows the state at `sequence`. `next` is the place of its last item, if
/// more come after it.
pub(super) fn page<T: Serialize>(
    call: &Call,
    sequence: Sequence,
    items: Vec<T>,
    next: Option<impl ToString>,
) -> Response {
    let next = next.map(|place| cursor::of(&place.to_string()));
    let link = next.as_ref().map(|cursor| format!("<{}>; rel=\"next\"", call.with_cursor(cursor)));
    let mut response = json(StatusCode::OK, sequence, &List { items, next, sequence });
    if let Some(link) = link {
        let link = HeaderValue::try_from(link).expect("a query that was parsed fits a header");
        response.headers_mut().insert(header::LINK, link);
    }
    response
}

/// Says of an answer that its request had been carried out before, if it had.
pub(super) fn replayed(mut response: Response, is_replay: bool) -> Response {
    if is_replay {
        response.headers_mut().insert(IDEMPOTENCY_REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

/// Says which state an answer shows.
pub(super) fn set_sequence(response: &mut Response, sequence: Sequence) {
    response.headers_mut().insert(PEARING_SEQUENCE, HeaderValue::from(sequence.0));
}

/// An answer in JSON that shows no state.
pub(super) fn bare(
    status: StatusCode,
    media_type: &'static str,
    body: &impl Serialize,
) -> Response {
    with_body(status, media_type, Body::from(bytes(body)))
}

/// The bytes of an answer in JSON.
pub(super) fn bytes(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).expect("an answer has text keys and finite numbers only")
}

/// An answer with a body that was rendered before, which shows no state.
pub(super) fn with_body(status: StatusCode, media_type: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    // What is shown is true now, and only for who asks.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
