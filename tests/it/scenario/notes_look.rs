//! Looks at threads, activities, roles, and at what somebody may see.

use pearing::domain::State;
use pearing::domain::id::Sequence;
use pearing::domain::name::UserName;
use pearing::domain::scope::Scope;
use pearing::domain::thread::{Thread, ThreadKey, ThreadState};
use pearing::feed::filter::may_see;
use serde_json::json;

use super::names::{Names, time};
use super::notes::{Look, Said, Shown};
use super::run::{Play, maker, parsed};
use super::server::Server;

impl Play {
    /// Looks at something, and compares it with what is expected.
    pub(super) fn look(&mut self, look: &Look) -> Result<(), String> {
        match look {
            Look::Thread { thread, before, expected } => {
                let maker = maker(&mut self.names, self.default_scope.as_deref(), None, "");
                let key = maker.thread(thread).map_err(|why| format!("{why:?}"))?;
                let last = match before {
                    Some(reply) => self.server.before_reply(self.names.reply(reply)?)?,
                    None => self.server.state().head(),
                };
                at(&mut self.names, &self.server, &key, last, expected.as_ref())
            }
            Look::Threads { repo, expected } => {
                let numbers = self.server.threads(&parsed(repo)?)?;
                let found: Vec<String> = numbers.iter().map(ToString::to_string).collect();
                same("threads", &found, expected)
            }
            Look::Activity { user, expected } => {
                activity(self.server.state(), &parsed(user)?, expected.as_ref())
            }
            Look::Activities { user, expected } => {
                let (user, state): (UserName, _) = (parsed(user)?, self.server.state());
                let said = state.activities_after(None).map(|(of, _)| of);
                let seen = said.filter(|of| state.access().circle_of(&user).sees(of));
                same("activities", &seen.map(ToString::to_string).collect::<Vec<_>>(), expected)
            }
            Look::Role { user, scope, expected } => {
                let scope: Scope = parsed(scope)?;
                let role = self.server.state().access().role(&parsed(user)?, &scope);
                let found = role.map_or("none", |role| role.as_str());
                same("role", &found, &expected.as_str())
            }
            Look::Seen { user, expected } => {
                let (user, access) = (parsed(user)?, self.server.state().access());
                let events = self.server.last_batch().iter().map(|record| &record.event);
                let seen = events.filter(|event| may_see(access, &user, event));
                let found: Vec<&str> = seen.map(|event| event.type_name()).collect();
                same("events", &found, &expected.iter().map(String::as_str).collect())
            }
        }
    }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, wanted: &T) -> Result<(), String> {
    if found == wanted { Ok(()) } else { Err(format!("the {what}: {found:?}, not {wanted:?}")) }
}

/// Compares a thread as it was at a sequence.
pub(super) fn at(
    names: &mut Names,
    server: &Server,
    key: &ThreadKey,
    last: Sequence,
    wanted: Option<&Shown>,
) -> Result<(), String> {
    match (server.thread(key, last)?, wanted) {
        (None, None) => Ok(()),
        (None, Some(_)) => Err("there is no such thread".to_owned()),
        (Some(thread), None) => Err(format!("there is such a thread: {thread:?}")),
        (Some(thread), Some(wanted)) => shown(names, &thread, wanted),
    }
}

fn shown(names: &mut Names, thread: &Thread, wanted: &Shown) -> Result<(), String> {
    if wanted.is_open != (thread.state == ThreadState::Open) {
        return Err(format!("the thread is {}", thread.state.as_str()));
    }
    let found = json!({
        "scope": thread.key.scope,
        "number": thread.key.number,
        "title": thread.title,
        "body": thread.body,
        "author": thread.author,
        "replies_count": thread.replies.len(),
        "updated_at": thread.updated_at,
    });
    names.check(&wanted.facts, &found).map_err(|why| format!("{why}: {found}"))?;
    let Some(tree) = &wanted.tree else { return Ok(()) };
    let mut expected = Vec::new();
    for (name, level) in tree {
        expected.push((names.reply(name)?, *level));
    }
    let replies = thread.replies.iter().map(|reply| (reply.data.reply_id, reply.data.level));
    same("tree", &replies.collect(), &expected)
}

/// Compares what somebody says.
pub(super) fn activity(
    state: &State,
    user: &UserName,
    wanted: Option<&Said>,
) -> Result<(), String> {
    let (found, wanted) = match (state.activity(user), wanted) {
        (None, None) => return Ok(()),
        (None, Some(_)) => return Err(format!("{user} says nothing")),
        (Some(found), None) => return Err(format!("{user} says {found:?}")),
        (Some(found), Some(wanted)) => (found, wanted),
    };
    same("activity", &found.text.as_str(), &wanted.text.as_str())?;
    let set_at = wanted.set_at_millis.map_or(found.set_at, time);
    same("time of the activity", &found.set_at, &set_at)?;
    same("holder", &state.is_holder(user), &wanted.is_holder)
}
