//! Users: make one, take it out of service, put it back.

use axum::http::StatusCode;
use axum::response::Response;

use super::{administer, page};
use crate::domain::State;
use crate::domain::command::Command;
use crate::domain::name::UserName;
use crate::http::Api;
use crate::http::body::{Field, JsonBody};
use crate::http::call::Call;
use crate::http::failure::Failure;
use crate::http::query::PAGE;
use crate::service::query::require_server_admin;
use crate::wire::admin::User;
use crate::wire::request::CreateUser;

impl JsonBody for CreateUser {
    const FIELDS: &'static [Field] = &[
        Field::required("user", UserName::RULE),
        Field::optional("admin", "must be true or false"),
    ];
}

/// `GET /v1/admin/users`
pub(in crate::http) async fn list(api: Api, call: Call) -> Result<Response, Failure> {
    let query = call.query(&[&PAGE])?;
    let key = |user: &User| user.user.to_string();
    page(&api, &call, &query, key, |state, asker| {
        require_server_admin(state, asker)?;
        Ok(state.access().users().map(|(name, user)| User::new(name, user)).collect())
    })
}

/// `POST /v1/admin/users`
pub(in crate::http) async fn create(api: Api, call: Call) -> Result<Response, Failure> {
    call.query(&[])?;
    let CreateUser { user, admin } = call.body()?;
    let command = Command::CreateUser { user: user.clone(), admin };
    administer(&api, &call, StatusCode::CREATED, command, |state| show(state, &user)).await
}

/// `POST /v1/admin/users/{user}/disable`
pub(in crate::http) async fn disable(api: Api, call: Call) -> Result<Response, Failure> {
    call.no_input()?;
    let user: UserName = call.name("user")?;
    let command = Command::DisableUser { user: user.clone() };
    administer(&api, &call, StatusCode::OK, command, |state| show(state, &user)).await
}

/// `POST /v1/admin/users/{user}/enable`
pub(in crate::http) async fn enable(api: Api, call: Call) -> Result<Response, Failure> {
    call.no_input()?;
    let user: UserName = call.name("user")?;
    let command = Command::EnableUser { user: user.clone() };
    administer(&api, &call, StatusCode::OK, command, |state| show(state, &user)).await
}

fn show(state: &State, name: &UserName) -> User {
    let user = state.access().user(name).expect("users are never deleted");
    User::new(name, user)
}
