//! Direct grants in a scope.

use axum::http::StatusCode;
use axum::response::Response;

use super::{administer, page};
use crate::domain::command::Command;
use crate::domain::name::UserName;
use crate::http::Api;
use crate::http::call::Call;
use crate::http::failure::Failure;
use crate::http::query::{PAGE, SCOPE};
use crate::service::query::require_read;
use crate::wire::admin::{FormerGrant, Grant};
use crate::wire::request::SetRole;

/// `GET /v1/admin/access`
pub(in crate::http) async fn list(api: Api, call: Call) -> Result<Response, Failure> {
    let query = call.query(&[&SCOPE, &PAGE])?;
    let scope = query.scope()?;
    let key = |grant: &Grant| grant.user.to_string();
    page(&api, &call, &query, key, |state, asker| {
        require_read(state, asker, &scope)?;
        let grants = state.access().grants(&scope);
        Ok(grants
            .map(|(user, role)| Grant { scope: scope.clone(), user: user.clone(), role })
            .collect())
    })
}

/// `PUT /v1/admin/access/{user}`
pub(in crate::http) async fn grant(api: Api, call: Call) -> Result<Response, Failure> {
    let scope = call.query(&[&SCOPE])?.scope()?;
    let user: UserName = call.name("user")?;
    let SetRole { role } = call.body()?;
    let command = Command::GrantAccess { scope: scope.clone(), user: user.clone(), role };
    administer(&api, &call, StatusCode::OK, command, |_| Grant { scope, user, role }).await
}

/// `DELETE /v1/admin/access/{user}`
pub(in crate::http) async fn revoke(api: Api, call: Call) -> Result<Response, Failure> {
    let scope = call.query(&[&SCOPE])?.scope()?;
    let user: UserName = call.name("user")?;
    let command = Command::RevokeAccess { scope: scope.clone(), user: user.clone() };
    let former = FormerGrant { scope, user, role: () };
    administer(&api, &call, StatusCode::OK, command, |_| former).await
}
