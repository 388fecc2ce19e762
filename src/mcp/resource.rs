//! Resources: a lock, a ticket, and what everyone is doing, by addresses.

use std::collections::HashMap;

use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::Value;

use crate::domain::id::TicketId;
use crate::domain::name::LockName;
use crate::domain::scope::{Scope, ScopeKind};
use crate::wire::ask::Ask;

const ACTIVITY: &str = "pearing://activity";
const LOCK: &str = "pearing://lock/";
const TICKET: &str = "pearing://ticket/";
const MEDIA_TYPE: &str = "application/json";

/// Those without a name in their address.
pub(super) fn all() -> Vec<Resource> {
    let what = "What everyone is doing whom you may see, and whether they hold anything.";
    let activity = Resource::new(ACTIVITY, "activity").with_description(what);
    vec![activity.with_mime_type(MEDIA_TYPE)]
}

/// The addresses of the others.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    let template = |uri: String, name: &str, what: &str| {
        ResourceTemplate::new(uri, name).with_description(what).with_mime_type(MEDIA_TYPE)
    };
    vec![
        template(
            format!("{LOCK}{{+scope}}/{{lock_name}}"),
            "lock",
            "Who holds a lock, and who waits for it. A scope is like teams/platform/website, \
             teams/platform or users/ana.",
        ),
        template(
            format!("{TICKET}{{+scope}}/{{lock_name}}/{{ticket_id}}"),
            "ticket",
            "One acquisition: its state, its fence token, and how long its lease lasts.",
        ),
    ]
}

/// The call that reads what is at an address.
pub(super) fn ask(uri: &str) -> Option<Ask> {
    if uri == ACTIVITY {
        return Some(Ask::get(&["activity"], vec![("limit", "100".to_owned())]));
    }
    if let Some(rest) = uri.strip_prefix(LOCK) {
        let (scope, lock_name) = rest.rsplit_once('/')?;
        return Some(Ask::get(&["locks", name(lock_name)?.as_str()], query(scope)?));
    }
    let (rest, ticket_id) = uri.strip_prefix(TICKET)?.rsplit_once('/')?;
    let (scope, lock_name) = rest.rsplit_once('/')?;
    let ticket_id: TicketId = ticket_id.parse().ok()?;
    let (name, ticket_id) = (name(lock_name)?, ticket_id.to_string());
    Some(Ask::get(&["locks", name.as_str(), "tickets", &ticket_id], query(scope)?))
}

/// A lock's name, which an address may have with escapes for its colons.
fn name(text: &str) -> Option<LockName> {
    text.replace("%3A", ":").replace("%3a", ":").parse().ok()
}

fn query(scope: &str) -> Option<Vec<(&'static str, String)>> {
    let scope: Scope = scope.parse().ok()?;
    let (name, value) = match scope.kind() {
        ScopeKind::Repo(_) => ("repo", scope.to_string()),
        ScopeKind::Team(team) => ("team", team.to_string()),
        ScopeKind::User(user) => ("user", user.to_string()),
    };
    Some(vec![(name, value)])
}

/// The call that lists what an argument could be, and the field of an item that is it. Repositories
/// and locks that are held can be listed; what else there could be, nobody knows.
pub(super) fn candidates(
    argument: &str,
    known: &HashMap<String, String>,
) -> Option<(Ask, &'static str)> {
    let most = vec![("limit", "1000".to_owned())];
    match argument {
        "repo" | "scope" => Some((Ask::get(&["admin", "repos"], most), "repo")),
        "lock_name" => {
            let scope = known.get("repo").or_else(|| known.get("scope"))?;
            let query = query(scope)?.into_iter().chain(most).collect();
            Some((Ask::get(&["locks"], query), "lock_name"))
        }
        _ => None,
    }
}

/// What was read.
pub(super) fn contents(uri: &str, value: &Value) -> ReadResourceResult {
    let text = ResourceContents::text(value.to_string(), uri).with_mime_type(MEDIA_TYPE);
    ReadResourceResult::new(vec![text])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_call() {
        let id = "0191d1f0-0000-7000-8000-000000000001";
        let (of_scope, of_lock) = ("teams/platform/website", "thread-work.42");
        let ask = |uri: String| ask(&uri).map(|ask| (ask.path.join("/"), ask.query));
        let repo = vec![("repo", of_scope.to_owned())];
        assert_eq!(
            ask(format!("pearing://lock/{of_scope}/{of_lock}")),
            Some((format!("locks/{of_lock}"), repo.clone()))
        );
        assert_eq!(
            ask(format!("pearing://ticket/{of_scope}/{of_lock}/{id}")),
            Some((format!("locks/{of_lock}/tickets/{id}"), repo))
        );
        let team = vec![("team", "platform".to_owned())];
        let found = ask("pearing://lock/teams/platform/a%3Ab".to_owned());
        assert_eq!(found, Some(("locks/a:b".to_owned(), team)));
        for uri in [
            "pearing://lock/x",
            "pearing://lock/teams/a/b/../c",
            "pearing://ticket/users/a/x/none",
            "https://lock/users/a/x",
            "",
        ] {
            assert_eq!(ask(uri.to_owned()), None, "{uri}");
        }
    }
}
