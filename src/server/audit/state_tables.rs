//! A ledger's state as tables, for people.

use std::fmt::Display;

use crate::columns::table;
use crate::wire::state::LedgerState;

/// Every part of the state that has anything in it.
pub(super) fn of(state: &LedgerState) -> String {
    let LedgerState { sequence, time, hash, .. } = state;
    let head = format!("record {sequence} at {time}, with the hash {hash}\n");
    let tables = [locks(state), tickets(state), users(state), roles(state), repos(state)];
    let notes = [threads(state), activities(state)];
    let mut parts: Vec<String> = [head].into_iter().chain(tables).chain(notes).collect();
    parts.retain(|part| !part.is_empty());
    parts.join("\n").trim_end().to_owned()
}

fn text(value: impl Display) -> String {
    value.to_string()
}

fn text_if(value: Option<impl Display>) -> String {
    value.map(text).unwrap_or_default()
}

fn locks(state: &LedgerState) -> String {
    let rows = state.locks.iter().map(|lock| {
        let deadline = lock.holds.iter().filter_map(|ticket| ticket.lease_expires_at).max();
        let (owner, fence) = (text_if(lock.owner.as_ref()), text_if(lock.fence_token));
        let (scope, name, depth) = (text(&lock.scope), text(&lock.lock_name), text(lock.depth));
        [scope, name, owner, fence, depth, text_if(deadline), text(lock.queue.len())]
    });
    let heading = ["SCOPE", "LOCK", "OWNER", "FENCE", "DEPTH", "UNTIL", "WAITING"];
    table(heading, &rows.collect::<Vec<_>>())
}

fn tickets(state: &LedgerState) -> String {
    let tickets = state.locks.iter().flat_map(|lock| lock.holds.iter().chain(&lock.queue));
    let rows = tickets.map(|ticket| {
        let (scope, lock_name) = (text(&ticket.scope), text(&ticket.lock_name));
        let end = text_if(ticket.lease_expires_at.or(ticket.wait_expires_at));
        let (state, owner) = (ticket.state.as_str().to_owned(), text(&ticket.owner));
        [text(ticket.ticket_id), state, owner, scope, lock_name, end]
    });
    let heading = ["TICKET", "STATE", "OWNER", "SCOPE", "LOCK", "UNTIL"];
    table(heading, &rows.collect::<Vec<_>>())
}

fn users(state: &LedgerState) -> String {
    let rows = state.users.iter().map(|user| {
        let admin = if user.admin { "admin" } else { "" };
        let disabled = if user.disabled { "disabled" } else { "" };
        let tokens = state.tokens.iter().filter(|token| token.user == user.user).count();
        [text(&user.user), admin.to_owned(), disabled.to_owned(), text(tokens)]
    });
    table(["USER", "ROLE", "STATE", "TOKENS"], &rows.collect::<Vec<_>>())
}

fn roles(state: &LedgerState) -> String {
    let members = state.members.iter().map(|member| {
        let team = format!("teams/{}", member.team);
        [team, text(&member.user), member.role.as_str().to_owned()]
    });
    let grants = state
        .grants
        .iter()
        .map(|grant| [text(&grant.scope), text(&grant.user), grant.role.as_str().to_owned()]);
    table(["SCOPE", "USER", "ROLE"], &members.chain(grants).collect::<Vec<_>>())
}

fn repos(state: &LedgerState) -> String {
    let rows = state.repos.iter().map(|repo| [text(&repo.repo)]);
    table(["REPOSITORY"], &rows.collect::<Vec<_>>())
}

fn threads(state: &LedgerState) -> String {
    let rows = state.threads.iter().map(|thread| {
        let (scope, number) = (text(&thread.scope), text(thread.number));
        let (replies, title) = (text(thread.replies_count), text(&thread.title));
        [scope, number, thread.state.as_str().to_owned(), replies, title]
    });
    table(["REPOSITORY", "THREAD", "STATE", "REPLIES", "TITLE"], &rows.collect::<Vec<_>>())
}

fn activities(state: &LedgerState) -> String {
    let said = state.activities.iter();
    let rows = said.map(|entry| [text(&entry.user), text_if(entry.activity.as_ref())]);
    table(["USER", "ACTIVITY"], &rows.collect::<Vec<_>>())
}
