//! Commands about threads and activity.

use std::io::Read as _;

use super::args::{BodyArgs, NoteCommand, TermsArgs};
use super::output::Output;
use super::text::table;
use super::{Ended, Failure, locks, thread_text};
use crate::client::{Client, NewReply, NewThread, Reply, Terms};
use crate::domain::id::RequestUuid;
use crate::domain::scope::Scope;
use crate::domain::text::{ReplyBody, ThreadBody};
use crate::domain::thread::{Links, ThreadKey, ThreadState};
use crate::random;
use crate::wire::activity::Activity;
use crate::wire::problem::EXIT_DONE;
use crate::wire::thread::{Thread, ThreadItem};

/// The most bytes of a body that are read from a file: more is no body anyway.
const BODY_BYTES_MAX: u64 = 1 << 20;

pub(super) async fn note(client: &Client, output: &mut Output, command: &NoteCommand) -> Ended {
    match command {
        NoteCommand::UpdateUserActivity { activity, request_uuid, .. } => {
            let reply = match activity {
                Some(text) => {
                    let request_uuid = name_request(output, *request_uuid);
                    client.update_activity(text, request_uuid).await?
                }
                None => client.clear_activity().await?,
            };
            output.result(&reply.json, || activities(std::slice::from_ref(&reply.body)))?;
            Ok(EXIT_DONE)
        }
        NoteCommand::ListActivity(page) => {
            let list = client.activities(&page.into()).await?;
            locks::print_list(output, &list, activities, "nobody says anything")
        }
        NoteCommand::CreateThread { repo, title, body, number, terms } => {
            let title = title.clone();
            let body = read_body(body)?.map_or(Ok(ThreadBody::empty()), ThreadBody::try_from);
            let body = body.map_err(|rule| Failure::Usage(format!("body {rule}")))?;
            let terms = tie(output, repo.scope(), terms)?;
            let new = NewThread { title, body, number: *number };
            print_thread(output, &client.create_thread(repo.scope(), &new, &terms).await?)
        }
        NoteCommand::ListThreads { repo, state, page } => {
            let list = client.threads(repo.scope(), *state, &page.into()).await?;
            locks::print_list(output, &list, threads, "no threads")
        }
        NoteCommand::GetThreadTree { thread, as_of } => {
            print_thread(output, &client.thread(&thread.key(), as_of.as_deref()).await?)
        }
        NoteCommand::CreateReply { thread, kind, body, links, parent, terms } => {
            let needed = || Failure::Usage("body is required: --body or --body-file".to_owned());
            let body = read_body(body)?.ok_or_else(needed)?;
            let usage = |field: &str, rule| Failure::Usage(format!("{field} {rule}"));
            let body = ReplyBody::try_from(body).map_err(|rule| usage("body", rule))?;
            let links = Links::try_from(links.clone()).map_err(|rule| usage("links", rule))?;
            let new = NewReply { kind: kind.clone(), body, links, parent: *parent };
            let key = thread.key();
            let terms = tie(output, &key.scope, terms)?;
            let reply = client.create_reply(&key, &new, &terms).await?;
            output.result(&reply.json, || thread_text::reply(&reply.body))?;
            Ok(EXIT_DONE)
        }
        NoteCommand::CloseThread { thread, terms } => {
            turn(client, output, &thread.key(), ThreadState::Closed, terms).await
        }
        NoteCommand::ReopenThread { thread, terms } => {
            turn(client, output, &thread.key(), ThreadState::Open, terms).await
        }
    }
}

async fn turn(
    client: &Client,
    output: &mut Output,
    thread: &ThreadKey,
    into: ThreadState,
    terms: &TermsArgs,
) -> Ended {
    let terms = tie(output, &thread.scope, terms)?;
    print_thread(output, &client.turn_thread(thread, into, &terms).await?)
}

/// What a write is tied to. Its request UUID is on stderr before anything is sent.
fn tie(output: &mut Output, repo: &Scope, terms: &TermsArgs) -> Result<Terms, Failure> {
    let fence = terms.fence(repo, |name| std::env::var(name).ok()).map_err(Failure::Usage)?;
    Ok(Terms { request_uuid: name_request(output, terms.request_uuid), fence })
}

/// The request UUID that was given, or a new one, which is printed.
pub(super) fn name_request(output: &mut Output, given: Option<RequestUuid>) -> RequestUuid {
    given.unwrap_or_else(|| {
        let made = RequestUuid(random::uuid());
        output.message(&format!("request_uuid {made}"));
        made
    })
}

/// The text that was given, by the one flag or the other. One line end at the end of a file is
/// the file's, not the text's.
fn read_body(args: &BodyArgs) -> Result<Option<String>, Failure> {
    let Some(path) = &args.body_file else { return Ok(args.body.clone()) };
    let failed = |error: std::io::Error| Failure::Usage(format!("{}: {error}", path.display()));
    let mut text = String::new();
    let read = if path.as_os_str() == "-" {
        std::io::stdin().take(BODY_BYTES_MAX).read_to_string(&mut text)
    } else {
        let file = std::fs::File::open(path).map_err(failed)?;
        file.take(BODY_BYTES_MAX).read_to_string(&mut text)
    };
    read.map_err(failed)?;
    Ok(Some(text.strip_suffix('\n').map(str::to_owned).unwrap_or(text)))
}

fn print_thread(output: &mut Output, reply: &Reply<Thread>) -> Ended {
    output.result(&reply.json, || thread_text::thread(&reply.body))?;
    Ok(EXIT_DONE)
}

fn activities(items: &[Activity]) -> String {
    let row = |item: &Activity| {
        let said = item.activity.as_ref();
        [
            item.user.to_string(),
            item.age_ms.map_or("-".to_owned(), thread_text::age),
            if item.has_holds { "yes" } else { "no" }.to_owned(),
            said.map_or("-".to_owned(), |said| said.to_string()),
        ]
    };
    table(["USER", "AGE", "HOLDS", "ACTIVITY"], &items.iter().map(row).collect::<Vec<_>>())
}

fn threads(items: &[ThreadItem]) -> String {
    let row = |item: &ThreadItem| {
        [
            item.number.to_string(),
            item.state.as_str().to_owned(),
            item.replies_count.to_string(),
            item.author.to_string(),
            item.updated_at.to_string(),
            item.title.to_string(),
        ]
    };
    let heading = ["NUMBER", "STATE", "REPLIES", "AUTHOR", "UPDATED", "TITLE"];
    table(heading, &items.iter().map(row).collect::<Vec<_>>())
}
