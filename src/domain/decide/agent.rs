//! Agents: identities that a person makes for what works in its name.
//!
//! An agent is a user of its own, so two agents of one person are two owners. What it may do it
//! has from its person at every moment, at most `write`; nothing is copied that could be left
//! behind. An agent makes no agents: what an agent's token can do must end with that token.

use super::Context;
use super::administer::NewToken;
use crate::domain::command::Command;
use crate::domain::event::{Event, TokenRevoked, UserCreated};
use crate::domain::name::UserName;
use crate::domain::refusal::Refusal;

pub(super) fn agent(context: &Context<'_>, command: &Command) -> Result<Vec<Event>, Refusal> {
    let person = context.user()?;
    match command {
        Command::CreateAgent { agent, token_id, sha256, label, expires_in_days } => {
            let created = created(context, person, agent)?;
            require_room_for_token(context, agent)?;
            let new = NewToken { token_id: *token_id, sha256: *sha256, label };
            let issued = context.token_issued(agent, new, *expires_in_days)?;
            Ok(created.into_iter().chain([issued]).collect())
        }
        Command::RevokeAgentTokens { agent } => revoked(context, person, agent),
        _ => unreachable!("decided elsewhere"),
    }
}

/// The agent itself, unless its person has it already.
fn created(
    context: &Context<'_>,
    person: &UserName,
    agent: &UserName,
) -> Result<Option<Event>, Refusal> {
    let access = context.state.access();
    if access.person_of(person).is_some() {
        return Err(Refusal::Forbidden("an agent can't make agents"));
    }
    // A person's agents are found by their names.
    let own_name = agent.as_str().strip_prefix(person.as_str());
    if !own_name.is_some_and(|rest| rest.len() > 1 && rest.starts_with('.')) {
        let rule = "must be one's own name, a dot and the agent's";
        return Err(Refusal::InvalidArgument { field: "agent", rule });
    }
    match access.user(agent) {
        Some(user) if user.person.as_ref() == Some(person) => Ok(None),
        Some(_) => Err(Refusal::AlreadyExists("user, which is not an agent of yours,")),
        None => {
            let most = context.limits.agents_per_person;
            if access.agents_of(person).count() >= most as usize {
                return Err(Refusal::LimitReached { limit: "agents of one person", most });
            }
            let (user, person) = (agent.clone(), Some(person.clone()));
            Ok(Some(Event::UserCreated(UserCreated { user, admin: false, person })))
        }
    }
}

fn require_room_for_token(context: &Context<'_>, agent: &UserName) -> Result<(), Refusal> {
    let most = context.limits.tokens_per_agent;
    let tokens = context.state.access().tokens();
    let live = tokens.filter(|(_, t)| t.user == *agent && t.is_live(context.at.time)).count();
    if live < most as usize {
        return Ok(());
    }
    Err(Refusal::LimitReached { limit: "tokens of one agent that work", most })
}

/// The end of every token that the agent has.
fn revoked(
    context: &Context<'_>,
    person: &UserName,
    agent: &UserName,
) -> Result<Vec<Event>, Refusal> {
    let access = context.state.access();
    if access.person_of(agent) != Some(person) {
        return Err(Refusal::NotFound("agent"));
    }
    let tokens = access.tokens().filter(|(_, token)| token.user == *agent && !token.is_revoked);
    let revoked =
        |(token_id, _)| Event::TokenRevoked(TokenRevoked { token_id, user: agent.clone() });
    Ok(tokens.map(revoked).collect())
}
