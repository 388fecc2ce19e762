//! Why a request gets no ordinary answer: the surface's own reasons, and those of the service.

use std::num::NonZeroU32;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;

use super::answer;
use super::body::BODY_BYTES_MAX;
use crate::domain::time::Time;
use crate::service::{Refused, ServiceError};
use crate::wire::problem::{Code, Problem};
use crate::wire::ticket::Ticket;

/// Why a request failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// No token, or none that works. Never says which.
    Unauthenticated,
    /// The request can't be read. Says what is wrong with it.
    Malformed(String),
    /// The body is too big.
    TooLarge,
    /// A value breaks a rule.
    Invalid {
        /// The field, path part or parameter.
        field: String,
        /// The rule, fit for "field RULE".
        rule: String,
    },
    /// The request is meant for a host that this isn't.
    OtherHost,
    /// The request comes from another site's page.
    OtherOrigin,
    /// There is nothing at this path.
    NoSuchPath,
    /// There is something at this path, but not for this method. `Allow` says for which.
    NoSuchMethod,
    /// Too many feeds are open.
    FeedsExhausted,
    /// As many feeds of the one who asks are open as may be.
    OwnFeedsExhausted(usize),
    /// Too much of large answers is on its way, to all or to the one who asks.
    LargeAnswersExhausted,
    /// Too many requests.
    TooFast {
        /// How many there may be.
        most: NonZeroU32,
        /// Of what, fit for "at most 100 THINGS".
        things: &'static str,
        /// When there is room again.
        retry_after_seconds: u64,
    },
    /// The service refused, or couldn't.
    Service(ServiceError),
}

impl Failure {
    /// A value breaks a rule, which is said as in "field RULE".
    pub(super) fn invalid(field: impl Into<String>, rule: impl Into<String>) -> Self {
        Self::Invalid { field: field.into(), rule: rule.into() }
    }

    /// The request can't be read.
    pub(super) fn malformed(what: impl Into<String>) -> Self {
        Self::Malformed(what.into())
    }
}

/// The moment of an answer, which a ticket in it is shown for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    /// Ledger time.
    pub(super) now: Time,
    /// How long the server has had the request.
    pub(super) answered_after_ms: u64,
}

/// In the extensions of a response: it is not to be sent, and the connection is to be closed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Abandoned;

impl Failure {
    /// The answer. The moment is only needed where a ticket may be shown.
    pub(super) fn render(self, moment: Option<Moment>) -> Response {
        let problem = match &self {
            Self::Service(ServiceError::Stopped) => return abandon(),
            Self::Service(ServiceError::Refused(refused)) => {
                return render_refused(refused, moment);
            }
            Self::Service(ServiceError::Busy) => Problem::new(Code::Busy, "too much at once"),
            Self::Service(ServiceError::Draining) => {
                Problem::new(Code::Busy, "the server is about to stop")
            }
            Self::Service(ServiceError::DiskFull) => {
                Problem::new(Code::DiskFull, "the disk is nearly full: no new work is taken on")
            }
            Self::FeedsExhausted => Problem::new(Code::Busy, "too many feeds are open"),
            Self::OwnFeedsExhausted(most) => {
                let most = format!("at most {most} open feeds of one identity");
                Problem::new(Code::LimitReached, most)
            }
            Self::LargeAnswersExhausted => {
                Problem::new(Code::Busy, "too many large answers are on their way")
            }
            Self::TooFast { most, things, retry_after_seconds } => Problem {
                retry_after_seconds: Some(*retry_after_seconds),
                ..Problem::new(Code::LimitReached, format!("at most {most} {things}"))
            },
            Self::Unauthenticated => return unauthenticated(),
            Self::Malformed(what) => Problem::new(Code::Malformed, what.as_str()),
            Self::TooLarge => {
                let most = format!("a body has at most {BODY_BYTES_MAX} bytes");
                Problem::new(Code::TooLarge, most)
            }
            Self::Invalid { field, rule } => Problem::invalid(field, rule),
            Self::OtherHost => Problem::new(
                Code::Forbidden,
                "the server isn't known by this Host; its flag --allowed-host adds one",
            ),
            Self::OtherOrigin => {
                Problem::new(Code::Forbidden, "a page of this Origin may not ask the server")
            }
            Self::NoSuchPath => Problem::new(Code::NotFound, "there is nothing at this path"),
            Self::NoSuchMethod => Problem::new(
                Code::MethodNotAllowed,
                "the header Allow says which methods there are",
            ),
        };
        render_problem(problem)
    }
}

/// A problem as an answer. It becomes the body where the request's id is known: at the end.
pub(super) fn render_problem(problem: Problem) -> Response {
    let status = StatusCode::from_u16(problem.status).expect("the table has HTTP statuses");
    let mut response = answer::with_body(status, Problem::MEDIA_TYPE, Body::empty());
    if let Some(seconds) = problem.retry_after_seconds {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response.extensions_mut().insert(problem);
    response
}

fn render_refused(refused: &Refused, moment: Option<Moment>) -> Response {
    if Code::of(&refused.refusal) == Code::Unauthenticated {
        return unauthenticated();
    }
    let problem = Problem::refused(&refused.refusal);
    let problem = match (&refused.ticket, moment) {
        (Some(view), Some(Moment { now, answered_after_ms })) => {
            problem.with_ticket(Ticket::new(view, now), answered_after_ms)
        }
        (Some(_), None) | (None, _) => problem,
    };
    let mut response = render_problem(problem);
    answer::set_sequence(&mut response, refused.sequence);
    response
}

/// One body for an absent, an unknown, a wrong and a revoked token.
fn unauthenticated() -> Response {
    let detail = "a token is needed that is known and neither revoked nor expired";
    let mut response = render_problem(Problem::new(Code::Unauthenticated, detail));
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

/// After a storage error nobody may be told anything: whether the command was carried out is
/// unknown. A broken connection says just that.
fn abandon() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    response.extensions_mut().insert(Abandoned);
    response
}

impl From<ServiceError> for Failure {
    fn from(error: ServiceError) -> Self {
        Self::Service(error)
    }
}

/// For tests: what is said of a wrong request, in one line.
#[cfg(test)]
impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unauthenticated => f.write_str("unauthenticated"),
            Self::Malformed(what) => write!(f, "malformed: {what}"),
            Self::TooLarge => f.write_str("too-large"),
            Self::Invalid { field, rule } => write!(f, "invalid-argument: {field} {rule}"),
            Self::OtherHost => f.write_str("forbidden: host"),
            Self::OtherOrigin => f.write_str("forbidden: origin"),
            Self::NoSuchPath => f.write_str("not-found: path"),
            Self::NoSuchMethod => f.write_str("malformed: method"),
            Self::FeedsExhausted => f.write_str("busy: feeds"),
            Self::OwnFeedsExhausted(most) => write!(f, "limit-reached: at most {most} feeds"),
            Self::LargeAnswersExhausted => f.write_str("busy: large answers"),
            Self::TooFast { most, things, retry_after_seconds } => {
                write!(
                    f,
                    "limit-reached: at most {most} {things}, retry after {retry_after_seconds}"
                )
            }
            Self::Service(error) => write!(f, "{error:?}"),
        }
    }
}
