//! Who a token stands for.

use axum::http::StatusCode;
use axum::response::Response;

use super::Api;
use super::answer;
use super::call::Call;
use super::failure::Failure;
use crate::wire::admin::WhoAmI;

/// `GET /v1/whoami`
pub(super) async fn get(api: Api, call: Call) -> Result<Response, Failure> {
    call.query(&[])?;
    let who: WhoAmI = api.service.whoami(call.token_id())?;
    Ok(answer::json(StatusCode::OK, who.sequence, &who))
}
