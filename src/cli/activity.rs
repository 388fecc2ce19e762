//! Commands about what users say they are doing.

use super::args::ActivityCommand;
use super::output::{Output, name_request};
use super::{Ended, locks, thread_text};
use crate::client::Client;
use crate::columns::table;
use crate::wire::activity::Activity;
use crate::wire::problem::EXIT_DONE;

pub(super) async fn activity(
    client: &Client,
    output: &mut Output,
    command: &ActivityCommand,
) -> Ended {
    match command {
        ActivityCommand::UpdateUserActivity { activity, request_uuid, .. } => {
            let reply = match activity {
                Some(text) => {
                    let request_uuid = name_request(output, *request_uuid);
                    client.update_activity(text, request_uuid).await?
                }
                None => client.clear_activity().await?,
            };
            output.result(&reply.json, || rows(std::slice::from_ref(&reply.body)))?;
            Ok(EXIT_DONE)
        }
        ActivityCommand::ListActivity(page) => {
            let list = client.activities(&page.into()).await?;
            locks::print_list(output, &list, rows, "nobody says anything")
        }
    }
}

fn rows(items: &[Activity]) -> String {
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
