//! Threads of a repository: begin, read, reply, close, reopen.

use axum::http::StatusCode;
use axum::response::Response;

use super::Api;
use super::answer;
use super::body::{Field, JsonBody};
use super::call::Call;
use super::failure::Failure;
use super::query::{PAGE, SCOPE};
use crate::domain::command::Command;
use crate::domain::event::Event;
use crate::domain::id::Sequence;
use crate::domain::text::{ReplyBody, ShortText, ThreadBody};
use crate::domain::thread::{
    Links, ReplyInput, ReplyKind, Thread as Folded, ThreadKey, ThreadNumber, ThreadState,
    WriteTerms,
};
use crate::service::query::Shown;
use crate::service::{Service, ServiceError, ThreadTold};
use crate::wire::request::{CreateReply, CreateThread, SetThreadState};
use crate::wire::thread::{Reply, Thread, ThreadItem};

const REQUEST_UUID: Field = Field::optional("request_uuid", "must be a UUID, or null");
const FENCE: Field = Field::optional(
    "fence",
    "must be null, or an object with the lock_name and fence_token of your own hold in the \
     repository",
);

impl JsonBody for CreateThread {
    const FIELDS: &'static [Field] = &[
        Field::required("title", ShortText::RULE),
        Field::optional("body", ThreadBody::RULE),
        Field::optional("number", ThreadNumber::RULE),
        REQUEST_UUID,
        FENCE,
    ];
}

impl JsonBody for CreateReply {
    const FIELDS: &'static [Field] = &[
        Field::required("kind", ReplyKind::RULE),
        Field::required("body", ReplyBody::RULE),
        Field::optional("links", Links::RULE),
        Field::optional("parent", "must be the UUID of a reply in the thread, or null"),
        REQUEST_UUID,
        FENCE,
    ];
}

impl JsonBody for SetThreadState {
    const FIELDS: &'static [Field] = &[REQUEST_UUID, FENCE];
}

/// `POST /v1/threads`
pub(super) async fn create(api: Api, call: Call) -> Result<Response, Failure> {
    let scope = call.query(&[&SCOPE])?.repo()?;
    let CreateThread { title, body, number, request_uuid, fence } = call.body()?;
    let terms = WriteTerms { request_uuid, fence };
    let command = Command::CreateThread { scope, number, title, body, terms };
    let told = api.service.write_thread(call.token_id(), command).await?;
    match &told.record {
        Some(record) => {
            let mut thread = None;
            Folded::apply(&mut thread, record.clone());
            let thread = thread.expect("the event that begins a thread makes one");
            let shown = Thread::new(&thread, told.sequence);
            Ok(answer::json(StatusCode::CREATED, told.sequence, &shown))
        }
        None => as_it_is(&api, &call, told).await,
    }
}

/// `GET /v1/threads`: those of a repository, all or those in one state, now or as they were.
pub(super) async fn list(api: Api, call: Call) -> Result<Response, Failure> {
    let query = call.query(&[&SCOPE, &["as_of"], &PAGE, &["state"]])?;
    let (repo, wanted) = (query.repo()?, query.value("state", ThreadState::RULE)?);
    let (moment, after, most) = (query.moment()?, query.cursor()?, query.limit()?);
    let caller = call.token_id();
    let read = move |service: &Service| service.threads(caller, &repo, wanted, moment, after, most);
    let page = match moment {
        None => api.read(read).await?,
        Some(_) => api.read_past(read).await?,
    };
    let items = page.items.iter().map(|(key, row)| ThreadItem::new(key, row)).collect();
    Ok(answer::page(&call, page.sequence, items, page.next))
}

/// `GET /v1/threads/{number}`
pub(super) async fn get(api: Api, call: Call) -> Result<Response, Failure> {
    let query = call.query(&[&SCOPE, &["as_of"]])?;
    let key = ThreadKey { scope: query.repo()?, number: number(&call)? };
    let (caller, moment) = (call.token_id(), query.moment()?);
    show(&api, &call, move |service| service.thread(caller, &key, moment), Part::Whole).await
}

/// `POST /v1/threads/{number}/replies`
pub(super) async fn reply(api: Api, call: Call) -> Result<Response, Failure> {
    let thread = key(&call)?;
    let CreateReply { kind, body, links, parent, request_uuid, fence } = call.body()?;
    let command = Command::CreateReply {
        thread: thread.clone(),
        reply_id: api.service.new_reply_id(),
        input: ReplyInput { kind, body, links: links.unwrap_or_default(), parent },
        terms: WriteTerms { request_uuid, fence },
    };
    let told = api.service.write_thread(call.token_id(), command).await?;
    if let Some(record) = &told.record
        && let Event::ThreadReplied(data) = &record.event
    {
        let reply = Reply::new(data, record.time);
        return Ok(answer::json(StatusCode::CREATED, told.sequence, &reply));
    }
    // Written before: the reply as it is now, with those to it.
    let written = told.written.expect("a reply was written, now or before");
    let read = move |service: &Service| service.thread_as_written(&thread);
    let shown = show(&api, &call, read, Part::ReplyAt(written)).await?;
    Ok(answer::replayed(shown, told.is_replay))
}

/// `POST /v1/threads/{number}/close`
pub(super) async fn close(api: Api, call: Call) -> Result<Response, Failure> {
    set_state(&api, &call, |thread, terms| Command::CloseThread { thread, terms }).await
}

/// `POST /v1/threads/{number}/reopen`
pub(super) async fn reopen(api: Api, call: Call) -> Result<Response, Failure> {
    set_state(&api, &call, |thread, terms| Command::ReopenThread { thread, terms }).await
}

async fn set_state(
    api: &Api,
    call: &Call,
    command: impl FnOnce(ThreadKey, WriteTerms) -> Command,
) -> Result<Response, Failure> {
    let (thread, SetThreadState { request_uuid, fence }) = (key(call)?, call.body()?);
    let command = command(thread, WriteTerms { request_uuid, fence });
    let told = api.service.write_thread(call.token_id(), command).await?;
    as_it_is(api, call, told).await
}

fn key(call: &Call) -> Result<ThreadKey, Failure> {
    Ok(ThreadKey { scope: call.query(&[&SCOPE])?.repo()?, number: number(call)? })
}

fn number(call: &Call) -> Result<ThreadNumber, Failure> {
    call.part("number", ThreadNumber::RULE)
}

/// The thread as it is after a write.
async fn as_it_is(api: &Api, call: &Call, told: ThreadTold) -> Result<Response, Failure> {
    let key = told.thread;
    let read = move |service: &Service| service.thread_as_written(&key);
    Ok(answer::replayed(show(api, call, read, Part::Whole).await?, told.is_replay))
}

/// What is shown of a thread.
#[derive(Clone, Copy)]
enum Part {
    Whole,
    /// The reply that the event at a sequence wrote, with those to it.
    ReplyAt(Sequence),
}

/// Reads a thread and renders it, where that may take long: a thread can be large.
async fn show(
    api: &Api,
    call: &Call,
    read: impl FnOnce(&Service) -> Result<Shown<Folded>, ServiceError> + Send + 'static,
    part: Part,
) -> Result<Response, Failure> {
    let large = api.large.clone();
    let person = api.service.account(call.token_id());
    let turn = large.turn(&person).await;
    api.read_past(move |service| {
        // Kept as long as the permit for this reading is.
        let _turn = turn;
        let shown = read(service)?;
        let thread = Thread::new(&shown.what, shown.sequence);
        let json = match part {
            Part::Whole => answer::bytes(&thread),
            Part::ReplyAt(written) => {
                let id = shown.what.reply_at(written).expect("a thread has its replies");
                answer::bytes(thread.reply(id).expect("the tree has every reply"))
            }
        };
        Ok(large.answer(person, json, |body| {
            let mut response = answer::with_body(StatusCode::OK, "application/json", body);
            answer::set_sequence(&mut response, shown.sequence);
            response
        }))
    })
    .await?
}
