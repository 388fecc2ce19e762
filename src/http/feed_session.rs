//! A browser's way to the feed: a cookie that its `EventSource` sends, since it can set no header.
//!
//! The cookie is good for `GET /v1/events` alone. No script can read it, and no page of another
//! site makes a browser send it. It ends with the token that it was given for.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;

use super::Api;
use super::call::Call;
use super::failure::Failure;
use crate::service::query::require_service;

/// The cookie's name.
const NAME: &str = "pearing_feed";

/// `POST /v1/feed-session`
pub(super) async fn create(api: Api, call: Call) -> Result<Response, Failure> {
    call.no_input()?;
    let (token_id, now) = (call.token_id(), api.service.now());
    let expires_at = api.service.look(token_id, |state, user| {
        require_service(state, user)?;
        Ok(state.access().token(token_id).and_then(|token| token.expires_at))
    })?;
    let mut cookie = format!(
        "{NAME}={}; HttpOnly; SameSite=Strict; Path=/v1/events",
        api.service.feed_session(token_id)
    );
    // A browser sends such a cookie over TLS only, which is where the page came from.
    if call.header("origin").is_some_and(|origin| origin.starts_with("https:")) {
        cookie.push_str("; Secure");
    }
    if let Some(end) = expires_at {
        cookie.push_str(&format!("; Max-Age={}", now.millis_until(end).div_ceil(1000)));
    }
    let mut cookie = HeaderValue::try_from(cookie).expect("it is plain ASCII");
    cookie.set_sensitive(true);
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(header::SET_COOKIE, cookie);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// The sessions that a request brings. There may be several: whoever else has a server on this
/// host can set a cookie of this name.
pub(super) fn sessions(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let texts = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = texts.flat_map(|text| text.split(';')).filter_map(|pair| pair.split_once('='));
    pairs.filter(|(name, _)| name.trim() == NAME).map(|(_, session)| session.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_found_among_other_cookies() {
        for (cookies, expected) in [
            (vec!["pearing_feed=a"], vec!["a"]),
            (vec!["x=1; pearing_feed=a;y=2"], vec!["a"]),
            (vec!["x=1", "pearing_feed=a; pearing_feed=b"], vec!["a", "b"]),
            (vec!["xpearing_feed=a; pearing_feed2=b; pearing_feed; PEARING_FEED=c"], vec![]),
            (vec![""], vec![]),
        ] {
            let mut headers = HeaderMap::new();
            for text in &cookies {
                headers.append(header::COOKIE, HeaderValue::from_static(text));
            }
            assert_eq!(sessions(&headers).collect::<Vec<_>>(), expected, "{cookies:?}");
        }
    }
}
