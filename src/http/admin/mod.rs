//! Administration: users, tokens, teams, repositories, access, the ledger. One file for each noun.
//!
//! Who may do what is decided by the core; an answer shows the state that the change is in, or a
//! later one.

pub(super) mod access;
pub(super) mod ledger;
pub(super) mod repos;
pub(super) mod teams;
pub(super) mod tokens;
pub(super) mod users;

use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;

use super::Api;
use super::answer;
use super::body::{Field, JsonBody};
use super::call::Call;
use super::failure::Failure;
use super::query::Query;
use crate::domain::State;
use crate::domain::access::Role;
use crate::domain::command::Command;
use crate::domain::name::UserName;
use crate::domain::refusal::Refusal;
use crate::service::query::{Page, require_service};
use crate::wire::request::SetRole;

impl JsonBody for SetRole {
    const FIELDS: &'static [Field] = &[Field::required("role", Role::RULE)];
}

/// Gives a command, then shows what it made of the state.
pub(super) async fn administer<T: Serialize>(
    api: &Api,
    call: &Call,
    status: StatusCode,
    command: Command,
    show: impl FnOnce(&State) -> T,
) -> Result<Response, Failure> {
    api.service.administer(call.token_id(), command).await?;
    let (sequence, body) = api.service.read(|state| (state.head(), show(state)));
    Ok(answer::json(status, sequence, &body))
}

/// A page of a list that is sorted by `key`, which is also its cursor. No list is for a user out
/// of service, not even one that would be empty for it.
fn page<T: Serialize>(
    api: &Api,
    call: &Call,
    query: &Query,
    key: impl Fn(&T) -> String,
    items: impl FnOnce(&State, &UserName) -> Result<Vec<T>, Refusal>,
) -> Result<Response, Failure> {
    let (after, most): (Option<String>, _) = (query.cursor()?, query.limit()?);
    let page = api.service.look(call.token_id(), |state, user| {
        require_service(state, user)?;
        let items = items(state, user)?.into_iter();
        let rest = items.filter(|item| after.as_ref().is_none_or(|after| key(item) > *after));
        Ok(Page::take(rest, most, state.head(), &key))
    })?;
    Ok(answer::page(call, page.sequence, page.items, page.next))
}
