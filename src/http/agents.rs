//! The caller's agents: an identity of its own for each, and its tokens.

use axum::http::StatusCode;
use axum::response::Response;

use super::Api;
use super::admin::administer;
use super::answer;
use super::body::{Field, JsonBody};
use super::call::Call;
use super::failure::Failure;
use super::query::PAGE;
use crate::domain::command::Command;
use crate::domain::name::UserName;
use crate::domain::text::ShortText;
use crate::service::draw::Drawn;
use crate::wire::admin::{NewToken, Token};
use crate::wire::list::List;
use crate::wire::request::{CreateAgent, Days};

impl JsonBody for CreateAgent {
    const FIELDS: &'static [Field] = &[
        Field::required("name", UserName::AGENT_RULE),
        Field::optional("label", ShortText::RULE),
        Field::optional("expires_in_days", Days::RULE),
    ];
}

/// `POST /v1/agents`
pub(super) async fn create(api: Api, call: Call) -> Result<Response, Failure> {
    call.query(&[])?;
    let CreateAgent { name, label, expires_in_days } = call.body()?;
    let agent = agent(&api, &call, &name)?;
    let drawn = Drawn::draw();
    let token_id = drawn.token_id;
    let command = Command::CreateAgent {
        agent: agent.clone(),
        token_id,
        sha256: drawn.sha256,
        label: label.clone(),
        expires_in_days: expires_in_days.map(Days::get),
    };
    administer(&api, &call, StatusCode::CREATED, command, |state| {
        let expires_at = state.access().token(token_id).and_then(|token| token.expires_at);
        NewToken { token_id, token: drawn.text, user: agent, label, expires_at }
    })
    .await
}

/// `GET /v1/agents`
pub(super) async fn list(api: Api, call: Call) -> Result<Response, Failure> {
    let query = call.query(&[&PAGE])?;
    let after: Option<UserName> = query.cursor()?;
    let page = api.service.agents(call.token_id(), after.as_ref(), query.limit()?)?;
    Ok(answer::page(&call, page.sequence, page.items, page.next))
}

/// `DELETE /v1/agents/{name}/tokens`
pub(super) async fn revoke_tokens(api: Api, call: Call) -> Result<Response, Failure> {
    call.no_input()?;
    let name: String = call.part("name", UserName::AGENT_RULE)?;
    let agent = agent(&api, &call, &name)?;
    let command = Command::RevokeAgentTokens { agent: agent.clone() };
    api.service.administer(call.token_id(), command).await?;
    let (items, sequence) = api.service.read(|state| {
        let tokens = state.access().tokens_of(&agent);
        let shown = |(id, token)| Token::new(id, token, api.service.token_last_used_at(id));
        (tokens.map(shown).collect(), state.head())
    });
    let list: List<Token> = List { items, next: None, sequence };
    Ok(answer::json(StatusCode::OK, sequence, &list))
}

/// The user that an agent of the caller's is, or would be.
fn agent(api: &Api, call: &Call, name: &str) -> Result<UserName, Failure> {
    let person = api.service.look(call.token_id(), |_, user| Ok(user.clone()))?;
    UserName::agent_of(&person, name).map_err(|rule| Failure::invalid("name", rule))
}
