//! What the API is, for programs and for people: its documents, and a page that shows them.
//!
//! The page and all that it loads are inside the program, so it works without a network, and it
//! asks nobody but this server. It needs no token to look at; to try a call one is pasted into it,
//! and stays in the browser's memory.

use std::sync::{Arc, LazyLock};

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use utoipa_swagger_ui::Config;

use super::Api;
use super::answer;
use super::call::Call;
use super::failure::Failure;

const OPENAPI: &str = include_str!("../../schemas/openapi.json");
const ASYNCAPI: &str = include_str!("../../schemas/asyncapi.json");

/// Leads on, whatever path a proxy has put before this one.
const FRONT: &str = "<!doctype html>\n<title>Pearing</title>\n\
    <meta http-equiv=\"refresh\" content=\"0; url=docs/index.html\">\n\
    <a href=\"docs/index.html\">The API</a>\n";

/// Everyone may keep these, and asks again after five minutes: an update may have changed them.
const CACHE_CONTROL: HeaderValue = HeaderValue::from_static("public, max-age=300");

/// The page loads from this server only. Its styles are partly in its elements, and its pictures
/// partly in its styles.
const CONTENT_SECURITY_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
     frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
);

/// The document's address is seen from the page, so that it is right behind a proxy too that has
/// the server below some path. Without a validator: that one is on the network.
static PAGE: LazyLock<Arc<Config<'static>>> = LazyLock::new(|| {
    Arc::new(Config::from("../openapi.json").validator_url("none").display_operation_id(true))
});

/// `GET /openapi.json`
pub(super) async fn openapi(_: Api, _: Call) -> Result<Response, Failure> {
    Ok(kept("application/json", Body::from(OPENAPI)))
}

/// `GET /asyncapi.json`
pub(super) async fn asyncapi(_: Api, _: Call) -> Result<Response, Failure> {
    Ok(kept("application/json", Body::from(ASYNCAPI)))
}

/// `GET /docs`: the page is a level below, where its files are beside it.
pub(super) async fn front(_: Api, _: Call) -> Result<Response, Failure> {
    Ok(kept("text/html", Body::from(FRONT)))
}

/// `GET /docs/{file}`
pub(super) async fn file(_: Api, call: Call) -> Result<Response, Failure> {
    let name: String = call.part("file", "must be the name of a file")?;
    let found = utoipa_swagger_ui::serve(&name, Arc::clone(&PAGE)).ok().flatten();
    let found = found.ok_or(Failure::NoSuchPath)?;
    let content_type = HeaderValue::try_from(found.content_type).expect("a media type is text");
    let mut response = kept("", Body::from(found.bytes));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, content_type);
    headers.insert(header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY);
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    Ok(response)
}

/// An answer that is the same for everyone.
fn kept(media_type: &'static str, body: Body) -> Response {
    let mut response = answer::with_body(StatusCode::OK, media_type, body);
    response.headers_mut().insert(header::CACHE_CONTROL, CACHE_CONTROL);
    response
}
