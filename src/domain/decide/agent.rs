//! Agents: identities that a person makes for what works in its name.
//!
//! An agent is a user of its own, so two agents of one person are two owners. What it may do it
//! has from its person at every moment, at most `write`; nothing is copied that could be left
//! behind. An agent makes no agents: what an agent's token can do must end with that token.

use super::Context;
use super::administer::NewToken;
use crate::domain::event::{Event, TokenRevoked, UserCreated};
use crate::domain::name::UserName;
use crate::domain::refusal::Refusal;

/// Makes an agent, unless its person has it already, and records a token for it.
pub(super) fn create(
    context: &Context<'_>,
    agent: &UserName,
    new: NewToken<'_>,
    expires_in_days: Option<u32>,
) -> Result<Vec<Event>, Refusal> {
    let created = created(context, context.user()?, agent)?;
    require_room_for_token(context, agent)?;
    let issued = context.token_issued(agent, new, expires_in_days)?;
    Ok(created.into_iter().chain([issued]).collect())
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
    if !agent.is_agent_name_of(person) {
        let rule = UserName::AGENT_RULE;
        return Err(Refusal::InvalidArgument { field: "name", rule });
    }
    match access.user(agent) {
        Some(user) if user.person.as_ref() == Some(person) => Ok(None),
        Some(_) => Err(Refusal::AlreadyExists("user of that name, who is not your agent,")),
        None => {
            require_own_name(context, person, agent)?;
            let most = context.limits.agents_per_person;
            if access.agents_of(person).count() >= most as usize {
                return Err(Refusal::LimitReached { limit: "agents of one person", most });
            }
            let (user, person) = (agent.clone(), Some(person.clone()));
            Ok(Some(Event::UserCreated(UserCreated { user, admin: false, person })))
        }
    }
}

/// Needs a name that nobody takes for that of another person's agent: where there are users `ana`
/// and `ana.b`, who was there first, `ana.b.c` is for an agent of `ana.b`.
fn require_own_name(
    context: &Context<'_>,
    person: &UserName,
    agent: &UserName,
) -> Result<(), Refusal> {
    let access = context.state.access();
    let is_of_another = |name: &str| {
        let user = name.parse().ok().filter(|name| access.user(name).is_some());
        user.is_some_and(|user| access.person_of(&user) != Some(person))
    };
    let text = agent.as_str();
    let mut dots = text.match_indices('.').filter(|(at, _)| *at > person.as_str().len());
    if dots.any(|(at, _)| is_of_another(&text[..at])) {
        let rule = "must not begin with the name of another user and a dot: \
             such names are for that user's agents";
        return Err(Refusal::InvalidArgument { field: "name", rule });
    }
    Ok(())
}

fn require_room_for_token(context: &Context<'_>, agent: &UserName) -> Result<(), Refusal> {
    let most = context.limits.tokens_per_agent;
    let tokens = context.state.access().tokens_of(agent);
    let live = tokens.filter(|(_, token)| token.is_live(context.at.time)).count();
    if live < most as usize {
        return Ok(());
    }
    Err(Refusal::LimitReached { limit: "tokens of one agent that work", most })
}

/// Ends every token that the agent has.
pub(super) fn revoke_tokens(
    context: &Context<'_>,
    agent: &UserName,
) -> Result<Vec<Event>, Refusal> {
    let access = context.state.access();
    if access.person_of(agent) != Some(context.user()?) {
        return Err(Refusal::NotFound("agent"));
    }
    let tokens = access.tokens_of(agent).filter(|(_, token)| !token.is_revoked);
    let revoked =
        |(token_id, _)| Event::TokenRevoked(TokenRevoked { token_id, user: agent.clone() });
    Ok(tokens.map(revoked).collect())
}
