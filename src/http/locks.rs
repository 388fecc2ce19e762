//! Locks: who holds, who waits, what happened, and breaking a hold.

use axum::http::StatusCode;
use axum::response::Response;

use super::Api;
use super::answer;
use super::body::{Field, JsonBody};
use super::call::Call;
use super::events::event_list;
use super::failure::Failure;
use super::query::{PAGE, SCOPE};
use crate::domain::id::Sequence;
use crate::domain::text::ShortText;
use crate::service::Service;
use crate::wire::lock::Lock;
use crate::wire::request::BreakLock;

impl JsonBody for BreakLock {
    const FIELDS: &'static [Field] = &[
        Field::required("fence_token", "must be the fence token of the hold, a whole number"),
        Field::required("reason", ShortText::RULE),
    ];
}

/// `GET /v1/locks`: the held ones of a scope.
pub(super) async fn list(api: Api, call: Call) -> Result<Response, Failure> {
    let query = call.query(&[&SCOPE, &["as_of"], &PAGE])?;
    let (scope, moment) = (query.scope()?, query.moment()?);
    let (after, most): (Option<String>, _) = (query.cursor()?, query.limit()?);
    let caller = call.token_id();
    let locks =
        move |service: &Service| service.locks(caller, &scope, moment, after.as_deref(), most);
    let shown = match moment {
        None => api.read(locks).await?,
        Some(_) => api.read_past(locks).await?,
    };
    let items = shown.what.items.iter().map(|view| Lock::new(view, shown.time)).collect();
    Ok(answer::page(&call, shown.sequence, items, shown.what.next))
}

/// `GET /v1/locks/{lock_name}`
pub(super) async fn get(api: Api, call: Call) -> Result<Response, Failure> {
    let query = call.query(&[&SCOPE, &["as_of"]])?;
    let (lock, moment) = (call.lock_in(&query)?, query.moment()?);
    let caller = call.token_id();
    let shown = match moment {
        None => api.service.lock(caller, &lock, None)?,
        Some(_) => api.read_past(move |service| service.lock(caller, &lock, moment)).await?,
    };
    Ok(answer::json(StatusCode::OK, shown.sequence, &Lock::new(&shown.what, shown.time)))
}

/// `GET /v1/locks/{lock_name}/history`
pub(super) async fn history(api: Api, call: Call) -> Result<Response, Failure> {
    let query = call.query(&[&SCOPE, &PAGE])?;
    let lock = call.lock_in(&query)?;
    let (caller, most) = (call.token_id(), query.limit()?);
    let after = query.sequence_cursor()?.unwrap_or(Sequence::ZERO);
    let page = api.read(move |service| service.history(caller, &lock, after, most)).await?;
    event_list(&api, &call, page)
}

/// `POST /v1/locks/{lock_name}/break`
pub(super) async fn break_hold(api: Api, call: Call) -> Result<Response, Failure> {
    let lock = call.lock()?;
    let BreakLock { fence_token, reason } = call.body()?;
    let view = api.service.break_lock(call.token_id(), lock, fence_token, reason).await?;
    Ok(answer::json(StatusCode::OK, view.sequence, &Lock::new(&view, api.service.now())))
}
