//! What happened to locks, drawn: a picture for browsers, text for terminals.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;

use super::Api;
use super::answer;
use super::call::Call;
use super::failure::Failure;
use super::query::SCOPE;
use crate::audit::timeline::{COLUMNS, COLUMNS_LEAST, COLUMNS_MOST, Colours, Range, svg, terminal};
use crate::domain::name::LockName;

const SVG: &str = "image/svg+xml";
const TEXT: &str = "text/plain; charset=utf-8";

/// The picture shows what others wrote, so nothing in it may do anything, wherever it is put.
const CONTENT_SECURITY_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox",
);

/// `GET /v1/timeline`: of a lock, or of all locks of a scope.
pub(super) async fn get(api: Api, call: Call) -> Result<Response, Failure> {
    const WIDTH_RULE: &str = "must be a whole number from 40 to 1000";
    let query = call.query(&[&SCOPE, &["lock", "from", "to", "width"]])?;
    let scope = query.scope()?;
    let lock_name: Option<LockName> = query.value("lock", LockName::RULE)?;
    let range = Range {
        from: query.value("from", Range::FROM_RULE)?,
        to: query.value("to", Range::TO_RULE)?,
    };
    let columns = query.value("width", WIDTH_RULE)?.unwrap_or(COLUMNS);
    if !(COLUMNS_LEAST..=COLUMNS_MOST).contains(&columns) {
        return Err(Failure::invalid("width", WIDTH_RULE));
    }
    let wants_text = call.header("accept").is_some_and(wants_text);
    let (caller, large) = (call.token_id(), api.large.clone());
    let person = api.service.account(caller);
    let turn = large.turn(&person).await;
    api.read_past(move |service| {
        // Kept as long as the permit for this reading is.
        let _turn = turn;
        let timeline = service.timeline(caller, &scope, lock_name.as_ref(), range)?;
        let (media_type, drawn) = if wants_text {
            (TEXT, terminal(&timeline, columns, Colours::Plain))
        } else {
            (SVG, svg(&timeline))
        };
        Ok(large.answer(person, drawn.into_bytes(), |body| {
            let mut response = answer::with_body(StatusCode::OK, media_type, body);
            answer::set_sequence(&mut response, timeline.sequence());
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY);
            headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
            response
        }))
    })
    .await?
}

/// Whether somebody accepts text, and no picture.
fn wants_text(accept: &str) -> bool {
    let accepts = |media_type: &str| {
        accept.split(',').any(|media| media.trim_start().starts_with(media_type))
    };
    accepts("text/plain") && !accepts(SVG)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_for_those_who_ask_for_it() {
        assert!(wants_text("text/plain") && wants_text("text/html, text/plain;q=0.5"));
        for accept in ["*/*", "image/svg+xml", "text/plain, image/svg+xml", "text/html"] {
            assert!(!wants_text(accept), "{accept}");
        }
    }
}
