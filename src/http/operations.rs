//! What an operator asks: is it alive, is it ready, what does it measure.

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;

use super::Api;
use super::answer;
use super::call::Call;
use super::failure::Failure;
use crate::metrics;
use crate::service::ServiceError;
use crate::wire::health::{Health, HealthStatus};

const JSON: &str = "application/json";

/// `GET /livez`: the process answers. A restart would help with nothing that this doesn't show.
pub(super) async fn livez(_: Api, _: Call) -> Result<Response, Failure> {
    Ok(answer::bare(StatusCode::OK, JSON, &Health { status: HealthStatus::Live }))
}

/// `GET /readyz`: requests are to be sent here. They are while the disk is nearly full too: holders
/// must be able to go on and to let go.
pub(super) async fn readyz(api: Api, _: Call) -> Result<Response, Failure> {
    if api.service.has_stopped() || api.service.is_draining() {
        return Err(Failure::Service(ServiceError::Draining));
    }
    Ok(answer::bare(StatusCode::OK, JSON, &Health { status: HealthStatus::Ready }))
}

/// `GET /metrics`
pub(super) async fn metrics(api: Api, _: Call) -> Result<Response, Failure> {
    let text = api.service.metrics_text();
    Ok(answer::with_body(StatusCode::OK, metrics::MEDIA_TYPE, Body::from(text)))
}
