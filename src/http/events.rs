//! Events: the feed as server-sent events, or a page of them.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;
use tokio_stream::StreamExt as _;
use tracing::{Instrument as _, Span};

use super::Api;
use super::answer;
use super::call::Call;
use super::failure::Failure;
use super::query::{PAGE, Query, SCOPE, SEQUENCE_RULE, sequence};
use crate::domain::id::{LedgerId, Sequence};
use crate::domain::name::{Actor, LockName};
use crate::domain::refusal::Refusal;
use crate::feed::filter::{Filter, Reader, TypeGlob};
use crate::feed::subscription::{Frame, Start};
use crate::ledger::Stored;
use crate::random;
use crate::service::ServiceError;
use crate::service::query::Page;
use crate::wire::cloud_event::CloudEvent;
use crate::wire::sse;

const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// A comment comes at least so often. Each feed takes up to a fifth off, so that ten thousand of
/// them don't speak in one instant.
const COMMENT_EVERY: Duration = Duration::from_secs(15);

/// After how long a reader comes back that lost its connection: a second, and up to two more by
/// chance, so that a restart isn't met by all readers at once.
const RETRY_LEAST: Duration = Duration::from_secs(1);
const RETRY_SPREAD: Duration = Duration::from_secs(2);

/// `GET /v1/events`
pub(super) async fn get(api: Api, call: Call) -> Result<Response, Failure> {
    let wants_feed = call.header("accept").is_some_and(|accept| {
        accept.split(',').any(|media| media.trim_start().starts_with("text/event-stream"))
    });
    // A feed has no pages.
    let places: &[&str] = if wants_feed { &[] } else { &PAGE };
    let query =
        call.query(&[&SCOPE, &["lock", "type", "exclude_type", "actor", "after"], places])?;
    let reader = Reader { token_id: call.token_id(), filter: filter(&query)? };
    let (start, name) = start(&call, &query)?;
    let answer = if wants_feed {
        feed(&api, reader, start)
    } else {
        page(&api, &call, &query, reader, start).await
    };
    answer.map_err(|failure| blamed_on(name, failure))
}

/// A page of events as CloudEvents.
pub(super) fn event_list(
    api: &Api,
    call: &Call,
    page: Page<Stored, Sequence>,
) -> Result<Response, Failure> {
    let ledger_id = ledger_id(api)?;
    let events = page.items.iter().map(|stored| cloud_event(stored, ledger_id));
    let events = events.collect::<Result<Vec<_>, _>>()?;
    Ok(answer::page(call, page.sequence, events, page.next))
}

/// The failure, in which a start that was refused has the name that the caller gave it by: the
/// service knows it as `after`.
fn blamed_on(name: &'static str, failure: Failure) -> Failure {
    match failure {
        Failure::Service(ServiceError::Refused(mut refused)) => {
            if let Refusal::InvalidArgument { field, .. } = &mut refused.refusal
                && *field == "after"
            {
                *field = name;
            }
            ServiceError::Refused(refused).into()
        }
        other => other,
    }
}

async fn page(
    api: &Api,
    call: &Call,
    query: &Query,
    reader: Reader,
    start: Start,
) -> Result<Response, Failure> {
    let (cursor, most) = (query.sequence_cursor()?, query.limit()?);
    let after = match start {
        Start::After(_) if cursor.is_some() => {
            return Err(Failure::invalid("cursor", "must not stand beside another start"));
        }
        Start::After(after) => after,
        Start::Now => cursor.unwrap_or(Sequence::ZERO),
    };
    event_list(api, call, api.read(move |service| service.events(&reader, after, most)).await?)
}

fn feed(api: &Api, reader: Reader, start: Start) -> Result<Response, Failure> {
    // A person's agents take from the person's: else a hundred of them would take everybody's.
    let person = api.service.look(reader.token_id, |state, user| Ok(state.access().account(user)));
    let seat = api.feeds.enter(person?)?;
    let ledger_id = ledger_id(api)?;
    let comment_every = comment_every(random::chance());
    let mut frames = Box::pin(api.service.feed(reader, start, comment_every)?);
    let (drained, span) = (api.clone(), Span::current());
    let body = async_stream::stream! {
        let _seat = seat;
        // Sent at once, and with it the headers: the reader knows that it is connected.
        yield Ok::<_, Infallible>(sse::retry(retry_after(random::chance())));
        loop {
            let frame = tokio::select! {
                // The answer has ended for the server once its body begins.
                frame = frames.next().instrument(span.clone()) => frame,
                () = drained.drained() => None,
            };
            let Some(frame) = frame else { return };
            let Some(text) = render(&frame, ledger_id) else { return };
            yield Ok(text);
        }
    };
    let mut response = Response::new(Body::from_stream(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    Ok(response)
}

/// The bytes of a frame; `None` for a record that can't be read, which ends the feed.
fn render(frame: &Frame, ledger_id: LedgerId) -> Option<Bytes> {
    Some(match frame {
        Frame::Event(entry) => entry.frame(ledger_id)?,
        Frame::CaughtUp(sequence) => sse::control("caught-up", *sequence),
        Frame::Checkpoint(sequence) => sse::control("checkpoint", *sequence),
        Frame::Reset(sequence) => sse::control("reset", *sequence),
        Frame::Comment => sse::COMMENT,
    })
}

fn comment_every(chance: f64) -> Duration {
    COMMENT_EVERY.mul_f64(1.0 - 0.2 * chance)
}

fn retry_after(chance: f64) -> Duration {
    RETRY_LEAST + RETRY_SPREAD.mul_f64(chance)
}

fn cloud_event(stored: &Stored, ledger_id: LedgerId) -> Result<CloudEvent<'_>, Failure> {
    CloudEvent::from_stored(&stored.bytes, &stored.hash, ledger_id).map_err(|error| {
        tracing::error!(sequence = stored.sequence.0, %error, "a record can't be read");
        Failure::Service(ServiceError::Stopped)
    })
}

/// The ledger's name.
pub(super) fn ledger_id(api: &Api) -> Result<LedgerId, Failure> {
    let id = api.service.read(|state| state.ledger_id());
    id.ok_or(Failure::Service(ServiceError::Busy))
}

fn filter(query: &Query) -> Result<Filter, Failure> {
    Ok(Filter {
        scope: query.scope_if_any()?,
        lock_name: query
            .text("lock")
            .map(|text| {
                text.parse::<LockName>().map_err(|error| Failure::invalid("lock", error.rule))
            })
            .transpose()?,
        types: globs(query, "type")?,
        excluded_types: globs(query, "exclude_type")?,
        actor: query
            .text("actor")
            .map(|text| {
                Actor::try_from(text.to_owned()).map_err(|e| Failure::invalid("actor", e.rule))
            })
            .transpose()?,
    })
}

fn globs(query: &Query, name: &'static str) -> Result<Vec<TypeGlob>, Failure> {
    let parts = query.text(name).into_iter().flat_map(|text| text.split(','));
    parts.map(|part| part.parse().map_err(|rule: &str| Failure::invalid(name, rule))).collect()
}

/// Where a reader goes on, and by which name it says so. The header is what an `EventSource` sends
/// by itself when it comes back with the URL that it began with, so it is the newer of the two.
fn start(call: &Call, query: &Query) -> Result<(Start, &'static str), Failure> {
    let resumed = call.header("last-event-id").map(|text| (text, "Last-Event-ID"));
    let Some((text, name)) = resumed.or_else(|| query.text("after").map(|text| (text, "after")))
    else {
        // A page may still begin at a cursor.
        return Ok((Start::Now, "cursor"));
    };
    let sequence = sequence(text).ok_or_else(|| Failure::invalid(name, SEQUENCE_RULE))?;
    Ok((Start::After(sequence), name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feeds_neither_speak_nor_come_back_all_at_once() {
        for (chance, comment_ms, retry_ms) in
            [(0.0, 15_000, 1000), (0.5, 13_500, 2000), (1.0, 12_000, 3000)]
        {
            assert_eq!(comment_every(chance).as_millis(), comment_ms);
            assert_eq!(retry_after(chance).as_millis(), retry_ms);
        }
        let drawn: std::collections::BTreeSet<u128> =
            (0..100).map(|_| retry_after(random::chance()).as_millis()).collect();
        assert!(drawn.len() > 50, "{drawn:?}");
    }
}
