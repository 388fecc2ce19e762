//! What users say they are doing: say it, take it back, see what others say.

use axum::http::StatusCode;
use axum::response::Response;

use super::Api;
use super::answer;
use super::body::{Field, JsonBody};
use super::call::Call;
use super::failure::Failure;
use super::query::PAGE;
use crate::domain::command::Command;
use crate::domain::name::UserName;
use crate::domain::text::ActivityText;
use crate::service::ActivityTold;
use crate::wire::activity::Activity;
use crate::wire::request::UpdateUserActivity;

impl JsonBody for UpdateUserActivity {
    const FIELDS: &'static [Field] = &[
        Field::required("activity", ActivityText::RULE),
        Field::optional("request_uuid", "must be a UUID, or null"),
    ];
}

/// `PUT /v1/activity`
pub(super) async fn update(api: Api, call: Call) -> Result<Response, Failure> {
    call.query(&[])?;
    let UpdateUserActivity { activity, request_uuid } = call.body()?;
    let command = Command::UpdateActivity { activity, request_uuid };
    show(&api, &api.service.write_activity(call.token_id(), command).await?)
}

/// `DELETE /v1/activity`
pub(super) async fn clear(api: Api, call: Call) -> Result<Response, Failure> {
    call.no_input()?;
    show(&api, &api.service.write_activity(call.token_id(), Command::ClearActivity).await?)
}

/// `GET /v1/activity`
pub(super) async fn list(api: Api, call: Call) -> Result<Response, Failure> {
    let query = call.query(&[&PAGE])?;
    let after: Option<UserName> = query.cursor()?;
    let page = api.service.activities(call.token_id(), after.as_ref(), query.limit()?)?;
    let now = api.service.now();
    let items = page.items.iter().map(|view| Activity::new(view, now)).collect();
    Ok(answer::page(&call, page.sequence, items, page.next))
}

fn show(api: &Api, told: &ActivityTold) -> Result<Response, Failure> {
    let activity = Activity::new(&told.activity, api.service.now());
    let response = answer::json(StatusCode::OK, told.sequence, &activity);
    Ok(answer::replayed(response, told.is_replay))
}
