//! Tickets: acquire, read, heartbeat, release, and the list of one's own.

use std::time::Duration;

use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;

use super::Api;
use super::answer::{self, Outcome, PREFERENCE_APPLIED};
use super::body::{Field, JsonBody};
use super::call::Call;
use super::failure::{Failure, render_problem};
use super::query::PAGE;
use crate::domain::id::Sequence;
use crate::domain::text::ShortText;
use crate::domain::ticket::TicketInput;
use crate::domain::time::{LeaseSeconds, WaitSeconds};
use crate::wire::problem::Problem;
use crate::wire::request::{AcquireLock, HeartbeatLockTicket};
use crate::wire::ticket::{Answer, State, Ticket};
use crate::wire::view::TicketAnswer;

/// The longest long poll. Proxies and clients give up on a silent connection after 30 to 60
/// seconds.
const POLL_SECONDS_MAX: u64 = 25;

impl JsonBody for AcquireLock {
    const FIELDS: &'static [Field] = &[
        Field::required("request_uuid", "must be a UUID"),
        Field::optional("lease_seconds", LeaseSeconds::RULE),
        Field::optional("wait_seconds", WaitSeconds::RULE),
        Field::optional("note", ShortText::RULE),
        Field::optional("reentrant", "must be true or false"),
    ];
}

impl JsonBody for HeartbeatLockTicket {
    const FIELDS: &'static [Field] = &[Field::optional("lease_seconds", LeaseSeconds::RULE)];
}

/// `POST /v1/locks/{lock_name}/tickets`
pub(super) async fn acquire(api: Api, call: Call) -> Result<Response, Failure> {
    let lock = call.lock()?;
    let asked: AcquireLock = call.body()?;
    let input = TicketInput {
        scope: lock.scope,
        lock_name: lock.lock_name,
        request_uuid: asked.request_uuid,
        lease_seconds: asked.lease_seconds,
        wait_seconds: asked.wait_seconds,
        note: asked.note,
        reentrant: asked.reentrant,
    };
    let told = api.service.acquire(call.token_id(), input).await?;
    let shown = show(&api, &call, &told);
    let status = match (shown.ticket.state, told.is_replay) {
        (State::Held, false) => StatusCode::CREATED,
        (State::Held, true) => StatusCode::OK,
        // Of all that has ended the problem says the status.
        _ => StatusCode::ACCEPTED,
    };
    let response = match Problem::of_acquire(&shown) {
        Some(problem) => {
            let mut response = render_problem(problem);
            answer::set_sequence(&mut response, told.sequence);
            response
        }
        None => answered(status, &told, &shown),
    };
    Ok(answer::replayed(response, told.is_replay))
}

/// `GET /v1/locks/{lock_name}/tickets/{ticket_id}`, a long poll with `Prefer: wait=N`.
pub(super) async fn get(api: Api, call: Call) -> Result<Response, Failure> {
    let (lock, ticket_id) = (call.lock()?, call.ticket_id()?);
    let seconds = call.header("prefer").and_then(wait_preference);
    let patience = Duration::from_secs(seconds.unwrap_or(0));
    let told = tokio::select! {
        told = api.service.ticket_after_wait(call.token_id(), &lock, ticket_id, patience) => told?,
        () = api.drained(), if seconds.is_some() => {
            api.service.ticket(call.token_id(), &lock, ticket_id)?
        }
    };
    let mut response = answered(StatusCode::OK, &told, &show(&api, &call, &told));
    if let Some(seconds) = seconds {
        let applied = HeaderValue::try_from(format!("wait={seconds}")).expect("digits are text");
        response.headers_mut().insert(PREFERENCE_APPLIED, applied);
    }
    Ok(response)
}

/// `GET /v1/locks/{lock_name}/tickets/{ticket_id}/why`
pub(super) async fn why(api: Api, call: Call) -> Result<Response, Failure> {
    let (lock, ticket_id, caller) = (call.lock()?, call.ticket_id()?, call.token_id());
    // Its lock's history may be long: it is read as the past is.
    let why = api.read_past(move |service| service.why(caller, &lock, ticket_id)).await?;
    Ok(answer::json(StatusCode::OK, why.sequence, &why))
}

/// `POST /v1/locks/{lock_name}/tickets/{ticket_id}/heartbeat`
pub(super) async fn heartbeat(api: Api, call: Call) -> Result<Response, Failure> {
    let (lock, ticket_id) = (call.lock()?, call.ticket_id()?);
    let asked: HeartbeatLockTicket = call.body()?;
    let lease = asked.lease_seconds;
    let told = api.service.heartbeat(call.token_id(), lock, ticket_id, lease).await?;
    Ok(answered(StatusCode::OK, &told, &show(&api, &call, &told)))
}

/// `DELETE /v1/locks/{lock_name}/tickets/{ticket_id}`
pub(super) async fn release(api: Api, call: Call) -> Result<Response, Failure> {
    let (lock, ticket_id) = (call.lock()?, call.ticket_id()?);
    let told = api.service.release(call.token_id(), lock, ticket_id).await?;
    Ok(answered(StatusCode::OK, &told, &show(&api, &call, &told)))
}

/// `GET /v1/tickets`: one's own live ones.
pub(super) async fn list_own(api: Api, call: Call) -> Result<Response, Failure> {
    let query = call.query(&[&["state"], &PAGE])?;
    let wanted = match query.text("state") {
        None => None,
        Some("held") => Some(State::Held),
        Some("waiting") => Some(State::Waiting),
        Some(_) => return Err(Failure::invalid("state", "must be held or waiting")),
    };
    let after = query.sequence_cursor()?.unwrap_or(Sequence::ZERO);
    let is_wanted = |ticket: &crate::domain::ticket::Ticket| {
        wanted.is_none_or(|wanted| wanted == State::of(&ticket.phase))
    };
    let page = api.service.tickets(call.token_id(), is_wanted, after, query.limit()?)?;
    let now = api.service.now();
    let items = page.items.iter().map(|view| Ticket::new(view, now)).collect();
    Ok(answer::page(&call, page.sequence, items, page.next))
}

fn show(api: &Api, call: &Call, told: &TicketAnswer) -> Answer {
    // Measured before the lease is: what passes between the two shortens the client's deadline,
    // and never lengthens it.
    let answered_after_ms = call.answered_after_ms();
    Answer::new(told, api.service.now(), answered_after_ms)
}

fn answered(status: StatusCode, told: &TicketAnswer, shown: &Answer) -> Response {
    let mut response = answer::json(status, told.sequence, shown);
    response.extensions_mut().insert(Outcome(shown.ticket.state.as_str()));
    response
}

/// The seconds in `Prefer: wait=N`, as far as they are granted. A preference that can't be read
/// is none: so RFC 7240 has it.
fn wait_preference(prefer: &str) -> Option<u64> {
    let mut preferences = prefer.split([',', ';']).filter_map(|text| text.trim().split_once('='));
    let (_, value) = preferences.find(|(name, _)| name.trim().eq_ignore_ascii_case("wait"))?;
    let seconds: u64 = value.trim().trim_matches('"').parse().ok()?;
    Some(seconds.min(POLL_SECONDS_MAX))
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, header};

    use super::super::body;
    use super::*;

    fn acquire_says(json: &str) -> String {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
        match body::parse::<AcquireLock>(&headers, json.as_bytes()) {
            Ok(asked) => format!("{} {}", asked.lease_seconds.get(), asked.wait_seconds.get()),
            Err(failure) => failure.to_string(),
        }
    }

    #[test]
    fn a_lease_is_a_whole_number_in_its_range_and_nothing_else() {
        let uuid = "0191D1F0-0000-7000-8000-000000000001";
        for lease in ["4", "301", "5.5", "5.0", "\"60\"", "1e9", "-1", "null", "0", "\"NaN\""] {
            let json = format!(r#"{{"request_uuid":"{uuid}","lease_seconds":{lease}}}"#);
            let rule = "invalid-argument: lease_seconds must be a whole number from 5 to 300";
            assert_eq!(acquire_says(&json), rule, "{lease}");
        }
        let json = format!(r#"{{"request_uuid":"{uuid}","lease_seconds":300,"note":null}}"#);
        assert_eq!(acquire_says(&json), "300 0");
        assert_eq!(acquire_says(&format!(r#"{{"request_uuid":"{uuid}"}}"#)), "60 0");
        for (field, value) in
            [("wait_seconds", "3601"), ("note", "\"\""), ("reentrant", "1"), ("fence_token", "1")]
        {
            let said = acquire_says(&format!(r#"{{"request_uuid":"{uuid}","{field}":{value}}}"#));
            assert!(said.starts_with(&format!("invalid-argument: {field} ")), "{said}");
        }
        assert_eq!(
            acquire_says(r#"{"request_uuid":"x"}"#),
            "invalid-argument: request_uuid must be a UUID"
        );
    }

    #[test]
    fn a_wait_is_granted_up_to_the_most() {
        for (prefer, seconds) in [
            ("wait=10", Some(10)),
            ("respond-async, Wait = \"7\"", Some(7)),
            ("wait=600", Some(POLL_SECONDS_MAX)),
            ("wait=0", Some(0)),
            ("wait=soon", None),
            ("wait=-1", None),
            ("return=minimal", None),
        ] {
            assert_eq!(wait_preference(prefer), seconds, "{prefer}");
        }
    }
}
