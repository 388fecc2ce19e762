//! Commands about threads.

use super::args::{TermsArgs, ThreadCommand, Under};
use super::environment::Environment;
use super::output::{Output, name_request};
use super::{Ended, Failure, body, locks, thread_text};
use crate::client::{Client, NewReply, NewThread, Reply, Terms};
use crate::columns::table;
use crate::domain::scope::Scope;
use crate::domain::thread::{Links, ThreadKey, ThreadState};
use crate::wire::problem::EXIT_DONE;
use crate::wire::thread::{Thread, ThreadItem};

/// Runs a command. What the environment says of a hold counts for its writes.
pub(super) async fn thread(
    client: &Client,
    output: &mut Output,
    environment: &Environment,
    command: &ThreadCommand,
) -> Ended {
    match command {
        ThreadCommand::CreateThread { repo, title, body, number, terms } => {
            let title = title.clone();
            let body = body::of_thread(body)?;
            let terms = tie(output, environment, repo.scope(), terms)?;
            let new = NewThread { title, body, number: *number };
            print_thread(output, &client.create_thread(repo.scope(), &new, &terms).await?)
        }
        ThreadCommand::ListThreads { repo, state, as_of, page } => {
            let (repo, as_of) = (repo.scope(), as_of.as_deref());
            let list = client.threads(repo, *state, as_of, &page.into()).await?;
            locks::print_list(output, &list, threads, "no threads")
        }
        ThreadCommand::GetThreadTree { thread, as_of } => {
            print_thread(output, &client.thread(&thread.key(), as_of.as_deref()).await?)
        }
        ThreadCommand::CreateReply { thread, kind, body, links, parent, terms } => {
            let body = body::of_reply(body)?;
            let links = Links::try_from(links.clone());
            let links = links.map_err(|rule| Failure::Usage(format!("links {rule}")))?;
            let new = NewReply { kind: kind.clone(), body, links, parent: *parent };
            let key = thread.key();
            let terms = tie(output, environment, &key.scope, terms)?;
            let reply = client.create_reply(&key, &new, &terms).await?;
            output.result(&reply.json, || thread_text::reply(&key, &reply.body))?;
            Ok(EXIT_DONE)
        }
        ThreadCommand::CloseThread { thread, terms } => {
            let terms = tie(output, environment, &thread.key().scope, terms)?;
            turn(client, output, &thread.key(), ThreadState::Closed, &terms).await
        }
        ThreadCommand::ReopenThread { thread, terms } => {
            let terms = tie(output, environment, &thread.key().scope, terms)?;
            turn(client, output, &thread.key(), ThreadState::Open, &terms).await
        }
    }
}

async fn turn(
    client: &Client,
    output: &mut Output,
    thread: &ThreadKey,
    into: ThreadState,
    terms: &Terms,
) -> Ended {
    let reply = client.turn_thread(thread, into, terms).await?;
    output.result(&reply.json, || thread_text::state(&reply.body))?;
    Ok(EXIT_DONE)
}

/// What a write is tied to. Its request UUID is on stderr before anything is sent, and so is it
/// that a hold which the environment names doesn't count.
fn tie(
    output: &mut Output,
    environment: &Environment,
    repo: &Scope,
    terms: &TermsArgs,
) -> Result<Terms, Failure> {
    let fence = match terms.under(repo, environment).map_err(Failure::Usage)? {
        Under::Hold(fence) => Some(fence),
        Under::Nothing => None,
        Under::Elsewhere(scope) => {
            output.message(&format!("not fenced: PEARING_SCOPE is {scope}, not {repo}"));
            None
        }
    };
    Ok(Terms { request_uuid: name_request(output, terms.request_uuid), fence })
}

fn print_thread(output: &mut Output, reply: &Reply<Thread>) -> Ended {
    output.result(&reply.json, || thread_text::thread(&reply.body))?;
    Ok(EXIT_DONE)
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
