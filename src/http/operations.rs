//! What an operator asks: is it alive, is it ready.

use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;

use super::Api;
use super::answer;
use super::call::Call;
use super::failure::Failure;
use crate::service::ServiceError;

const JSON: &str = "application/json";

/// `GET /livez`: the process answers. A restart would help with nothing that this doesn't show.
pub(super) async fn livez(_: Api, _: Call) -> Result<Response, Failure> {
    Ok(answer::bare(StatusCode::OK, JSON, &json!({ "status": "live" })))
}

/// `GET /readyz`: requests are to be sent here. They are while the disk is nearly full too: holders
/// must be able to go on and to let go.
pub(super) async fn readyz(api: Api, _: Call) -> Result<Response, Failure> {
    if api.service.has_stopped() || api.service.is_draining() {
        return Err(Failure::Service(ServiceError::Draining));
    }
    Ok(answer::bare(StatusCode::OK, JSON, &json!({ "status": "ready" })))
}
