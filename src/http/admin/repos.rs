//! Repositories.

use axum::http::StatusCode;
use axum::response::Response;

use super::{administer, page};
use crate::domain::command::Command;
use crate::domain::scope::Scope;
use crate::http::Api;
use crate::http::body::{Field, JsonBody};
use crate::http::call::Call;
use crate::http::failure::Failure;
use crate::http::query::PAGE;
use crate::wire::admin::Repo;
use crate::wire::request::CreateRepo;

impl JsonBody for CreateRepo {
    const FIELDS: &'static [Field] = &[Field::required("repo", Scope::REPO_RULE)];
}

/// `GET /v1/admin/repos`: those that one may read.
pub(in crate::http) async fn list(api: Api, call: Call) -> Result<Response, Failure> {
    let query = call.query(&[&PAGE])?;
    let key = |repo: &Repo| repo.repo.to_string();
    page(&api, &call, &query, key, |state, asker| {
        let access = state.access();
        let repos = access.repos().filter(|(scope, _)| access.can_read(asker, scope));
        Ok(repos.map(|(scope, created_at)| Repo { repo: scope.clone(), created_at }).collect())
    })
}

/// `POST /v1/admin/repos`
pub(in crate::http) async fn create(api: Api, call: Call) -> Result<Response, Failure> {
    call.query(&[])?;
    let CreateRepo { repo } = call.body()?;
    let command = Command::CreateRepo { repo: repo.clone() };
    administer(&api, &call, StatusCode::CREATED, command, |state| {
        let created_at = state.access().repo(&repo).expect("repositories are never deleted");
        Repo { repo, created_at }
    })
    .await
}
