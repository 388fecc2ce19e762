//! What a person may do about agents of its own, and what people see of each other.

use pearing::domain::access::Role;
use pearing::domain::command::Command;
use pearing::domain::id::TokenId;
use pearing::domain::name::UserName;
use pearing::domain::scope::{Scope, ScopeKind};
use pearing::domain::time::Time;

use super::access::{Access, AccessEvent};
use super::{Answer, Event, Limits, Naive, Outcome, Refused};

impl Access {
    /// All that a person's command makes happen to an agent of its own.
    fn agent_changes(
        &self,
        person: &UserName,
        command: &Command,
        now: Time,
        limits: Limits,
    ) -> Result<Vec<AccessEvent>, Refused> {
        match command {
            Command::CreateAgent { agent, token_id, expires_in_days, .. } => {
                if self.person(person).is_some() {
                    return Err(Refused::Forbidden);
                }
                if !agent.as_str().starts_with(&format!("{person}.")) {
                    return Err(Refused::InvalidArgument);
                }
                let mut events = Vec::new();
                if !self.is_user(agent) {
                    if self.agents(person) >= limits.agents_per_person as usize {
                        return Err(Refused::LimitReached);
                    }
                    let (user, person) = (agent.clone(), Some(person.clone()));
                    events.push(AccessEvent::UserCreated { user, is_admin: false, person });
                } else if self.person(agent).as_ref() != Some(person) {
                    return Err(Refused::AlreadyExists);
                }
                if self.live_tokens(agent, now) >= limits.tokens_per_agent as usize {
                    return Err(Refused::LimitReached);
                }
                events.push(self.token(*token_id, agent, *expires_in_days, now)?);
                Ok(events)
            }
            Command::RevokeAgentTokens { agent } => {
                if self.person(agent).as_ref() != Some(person) {
                    return Err(Refused::NotFound);
                }
                let mut tokens: Vec<TokenId> = self.unrevoked_tokens(agent).collect();
                tokens.sort();
                let revoked =
                    |token_id| AccessEvent::TokenRevoked { token_id, user: agent.clone() };
                Ok(tokens.into_iter().map(revoked).collect())
            }
            other => unreachable!("not about agents: {other:?}"),
        }
    }

    /// Whether both belong to one person, or have a role in a team or a repository that they
    /// have not by administering the server.
    fn share(&self, a: &UserName, b: &UserName) -> bool {
        let person = |user: &UserName| self.person(user).unwrap_or_else(|| user.clone());
        let shared = |scope: &Scope| self.is_let_in(a, scope) && self.is_let_in(b, scope);
        person(a) == person(b) || self.common_scopes().any(|scope| shared(&scope))
    }

    /// Whether a user, or the person whose agent it is, was let into a scope or the one above,
    /// or owns it.
    fn is_let_in(&self, user: &UserName, scope: &Scope) -> bool {
        let is_owner = *scope == Scope::user(user);
        let above = match scope.kind() {
            ScopeKind::Repo(parent) => self.is_let_in(user, &parent),
            ScopeKind::User(_) | ScopeKind::Team(_) => false,
        };
        let of_person = self.person(user).is_some_and(|person| self.is_let_in(&person, scope));
        is_owner || above || of_person || self.has_been_given(user, scope)
    }
}

impl Naive {
    pub(super) fn change_agent(&mut self, user: &UserName, command: &Command) -> Outcome {
        self.access.require_in_service(user)?;
        let changes = self.access.agent_changes(user, command, self.now, self.limits)?;
        for change in &changes {
            self.next_sequence();
            self.access.carry_out(change);
        }
        Ok((Answer::Done, changes.into_iter().map(Event::Access).collect()))
    }

    /// Whether one may see what the other is doing, though it is no administrator.
    pub(crate) fn share(&self, a: &UserName, b: &UserName) -> bool {
        self.access.share(a, b)
    }

    /// The role of a user in a scope.
    pub(crate) fn role(&self, user: &UserName, scope: &Scope) -> Option<Role> {
        self.access.role(user, scope)
    }

    /// Whether there is such a user, and it may act.
    pub(crate) fn is_in_service(&self, user: &UserName) -> bool {
        self.access.is_user(user) && !self.access.is_out_of_service(user)
    }
}
