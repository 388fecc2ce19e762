//! The whole ledger: exporting, verifying, backing up, signing. For the server's administrators.

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;

use crate::audit::{Form, LineWriter};
use crate::domain::id::Sequence;
use crate::http::Api;
use crate::http::answer;
use crate::http::call::Call;
use crate::http::events::ledger_id;
use crate::http::failure::Failure;
use crate::http::query::{SEQUENCE_RULE, sequence};
use crate::ledger::{Ledger, LedgerError};
use crate::service::Service;
use crate::service::query::{require_server_admin, stopped};

/// How many records, or bytes of them, are read and sent at once.
const RECORDS_MAX: usize = 1000;
const BYTES_MAX: usize = 1 << 20;

/// `GET /v1/admin/ledger`: all records up to the present head.
pub(in crate::http) async fn export(api: Api, call: Call) -> Result<Response, Failure> {
    let query = call.query(&[&["after", "format"]])?;
    let after = match query.text("after") {
        None => Sequence::ZERO,
        Some(text) => sequence(text).ok_or_else(|| Failure::invalid("after", SEQUENCE_RULE))?,
    };
    let form = match query.text("format") {
        None | Some("text") => Form::Text,
        Some("cloudevents") => Form::CloudEvents,
        Some(_) => return Err(Failure::invalid("format", "must be text or cloudevents")),
    };
    let head = api.service.look(call.token_id(), |state, user| {
        require_server_admin(state, user)?;
        Ok(state.head())
    })?;
    if after > head {
        return Err(Failure::invalid("after", "must not be after the head"));
    }
    let writer = LineWriter::new(form, ledger_id(&api)?);
    // What fails from here on breaks the connection off: the last line that arrived whole says
    // where to go on.
    let body = async_stream::stream! {
        let mut last = after;
        while last < head {
            let read = move |service: &Service| {
                lines(service.ledger(), writer, last, head).map_err(stopped)
            };
            match api.read(read).await {
                Ok((reached, lines)) => {
                    last = reached;
                    yield Ok(lines);
                }
                Err(_) => yield Err(std::io::Error::other("the ledger can't be read")),
            }
        }
    };
    let mut response = Response::new(Body::from_stream(body));
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, text);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer::set_sequence(&mut response, head);
    Ok(response)
}

/// The next lines, and the last record of them.
fn lines(
    ledger: &dyn Ledger,
    writer: LineWriter,
    after: Sequence,
    head: Sequence,
) -> Result<(Sequence, Bytes), LedgerError> {
    let (mut last, mut text) = (head, Vec::new());
    for stored in ledger.records_within(after, RECORDS_MAX, BYTES_MAX)? {
        if stored.sequence > head {
            return Ok((head, text.into()));
        }
        last = stored.sequence;
        let corrupt = |error: std::io::Error| LedgerError::Corrupt { what: error.to_string() };
        writer.write(&stored, &mut text).map_err(corrupt)?;
    }
    Ok((last, text.into()))
}

/// `POST /v1/admin/ledger/verification`
pub(in crate::http) async fn verify(api: Api, call: Call) -> Result<Response, Failure> {
    call.no_input()?;
    let status = api.service.verify(call.token_id())?;
    Ok(answer::json(StatusCode::ACCEPTED, status.head, &status))
}

/// `GET /v1/admin/ledger/verification`
pub(in crate::http) async fn verification(api: Api, call: Call) -> Result<Response, Failure> {
    call.no_input()?;
    let status = api.service.verification(call.token_id())?;
    Ok(answer::json(StatusCode::OK, status.head, &status))
}

/// `POST /v1/admin/ledger/backup`
pub(in crate::http) async fn back_up(api: Api, call: Call) -> Result<Response, Failure> {
    call.no_input()?;
    let status = api.service.back_up(call.token_id())?;
    Ok(answer::json(StatusCode::ACCEPTED, status.head, &status))
}

/// `GET /v1/admin/ledger/backup`
pub(in crate::http) async fn backup(api: Api, call: Call) -> Result<Response, Failure> {
    call.no_input()?;
    let status = api.service.backup(call.token_id())?;
    Ok(answer::json(StatusCode::OK, status.head, &status))
}

/// `POST /v1/admin/ledger/checkpoints`
pub(in crate::http) async fn sign(api: Api, call: Call) -> Result<Response, Failure> {
    call.no_input()?;
    let token_id = call.token_id();
    let signed = api.read(move |service| service.checkpoint(token_id)).await?;
    Ok(answer::json(StatusCode::CREATED, signed.sequence, &signed))
}
