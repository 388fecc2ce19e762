//! Tokens: issue one, end one. A token's text is shown once, here, and kept nowhere.

use axum::http::StatusCode;
use axum::response::Response;

use super::{administer, page};
use crate::domain::command::Command;
use crate::domain::id::TokenId;
use crate::domain::name::UserName;
use crate::domain::text::ShortText;
use crate::http::Api;
use crate::http::body::{Field, JsonBody};
use crate::http::call::Call;
use crate::http::failure::Failure;
use crate::http::query::PAGE;
use crate::service::draw::Drawn;
use crate::service::query::require_server_admin;
use crate::wire::admin::{NewToken, Token};
use crate::wire::request::{CreateToken, Days};

impl JsonBody for CreateToken {
    const FIELDS: &'static [Field] = &[
        Field::required("user", UserName::RULE),
        Field::optional("label", ShortText::RULE),
        Field::optional("expires_in_days", Days::RULE),
    ];
}

/// `GET /v1/admin/tokens`
pub(in crate::http) async fn list(api: Api, call: Call) -> Result<Response, Failure> {
    let query = call.query(&[&PAGE])?;
    let key = |token: &Token| token.token_id.to_string();
    page(&api, &call, &query, key, |state, asker| {
        require_server_admin(state, asker)?;
        let used = |id| api.service.token_last_used_at(id);
        Ok(state.access().tokens().map(|(id, token)| Token::new(id, token, used(id))).collect())
    })
}

/// `POST /v1/admin/tokens`
pub(in crate::http) async fn issue(api: Api, call: Call) -> Result<Response, Failure> {
    call.query(&[])?;
    let CreateToken { user, label, expires_in_days } = call.body()?;
    let Drawn { token_id, text, sha256 } = Drawn::draw();
    let command = Command::IssueToken {
        token_id,
        user: user.clone(),
        sha256,
        label: label.clone(),
        expires_in_days: expires_in_days.map(Days::get),
    };
    administer(&api, &call, StatusCode::CREATED, command, |state| {
        let expires_at = state.access().token(token_id).and_then(|token| token.expires_at);
        NewToken { token_id, token: text, user, label, expires_at }
    })
    .await
}

/// `DELETE /v1/admin/tokens/{token_id}`
pub(in crate::http) async fn revoke(api: Api, call: Call) -> Result<Response, Failure> {
    call.no_input()?;
    let token_id: TokenId = call.part("token_id", "must be a UUID")?;
    let command = Command::RevokeToken { token_id };
    administer(&api, &call, StatusCode::OK, command, |state| {
        let token = state.access().token(token_id).expect("tokens are never deleted");
        Token::new(token_id, token, api.service.token_last_used_at(token_id))
    })
    .await
}
