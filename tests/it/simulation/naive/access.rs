//! Who may do what, as lists that are searched from the start each time.

use pearing::domain::access::Role;
use pearing::domain::command::Command;
use pearing::domain::id::TokenId;
use pearing::domain::name::{TeamName, UserName};
use pearing::domain::scope::{Scope, ScopeKind};
use pearing::domain::time::Time;

use super::{Answer, Event, Naive, Outcome, Refused};

const SECONDS_PER_DAY: u32 = 24 * 60 * 60;
/// A century: a longer time would overflow.
const TOKEN_DAYS_MAX: u32 = 36_500;

/// Users, tokens, teams, repositories and grants.
#[derive(Debug, Clone, Default)]
pub(super) struct Access {
    users: Vec<User>,
    tokens: Vec<Token>,
    teams: Vec<TeamName>,
    repos: Vec<Scope>,
    members: Vec<(TeamName, UserName, Role)>,
    grants: Vec<(Scope, UserName, Role)>,
}

#[derive(Debug, Clone)]
struct User {
    name: UserName,
    is_admin: bool,
    /// Of an agent: whose it is.
    person: Option<UserName>,
    is_disabled: bool,
}

#[derive(Debug, Clone)]
struct Token {
    id: TokenId,
    user: UserName,
    expires_at: Option<Time>,
    is_revoked: bool,
}

/// A change of who may do what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AccessEvent {
    UserCreated { user: UserName, is_admin: bool, person: Option<UserName> },
    UserDisabled { user: UserName },
    UserEnabled { user: UserName },
    TokenIssued { token_id: TokenId, user: UserName, expires_at: Option<Time> },
    TokenRevoked { token_id: TokenId, user: UserName },
    TeamCreated { team: TeamName },
    TeamMemberAdded { team: TeamName, user: UserName, role: Role },
    TeamMemberRemoved { team: TeamName, user: UserName },
    RepoCreated { repo: Scope },
    AccessGranted { scope: Scope, user: UserName, role: Role },
    AccessRevoked { scope: Scope, user: UserName },
}

impl Access {
    pub(super) fn token_user(&self, token_id: TokenId) -> Option<UserName> {
        self.tokens.iter().find(|token| token.id == token_id).map(|token| token.user.clone())
    }

    pub(super) fn token_ends(&self) -> impl Iterator<Item = Time> {
        self.tokens.iter().filter_map(|token| token.expires_at)
    }

    /// The user of a token that works at `now`.
    pub(super) fn authenticate(&self, token_id: TokenId, now: Time) -> Result<UserName, Refused> {
        self.tokens
            .iter()
            .filter(|token| token.id == token_id && !token.is_revoked)
            .find(|token| token.expires_at.is_none_or(|end| now < end))
            .map(|token| token.user.clone())
            .ok_or(Refused::Unauthenticated)
    }

    fn user(&self, user: &UserName) -> Option<&User> {
        self.users.iter().find(|other| other.name == *user)
    }

    /// Whether there is such a user.
    pub(super) fn is_user(&self, user: &UserName) -> bool {
        self.user(user).is_some()
    }

    /// The tokens of a user that nobody revoked, run out or not.
    pub(super) fn unrevoked_tokens(&self, user: &UserName) -> impl Iterator<Item = TokenId> {
        let tokens = self.tokens.iter().filter(move |t| t.user == *user && !t.is_revoked);
        tokens.map(|token| token.id)
    }

    /// How many tokens of a user work at `now`.
    pub(super) fn live_tokens(&self, user: &UserName, now: Time) -> usize {
        let working = self.tokens.iter().filter(|token| self.authenticate(token.id, now).is_ok());
        working.filter(|token| token.user == *user).count()
    }

    /// How many agents a person has.
    pub(super) fn agents(&self, person: &UserName) -> usize {
        self.users.iter().filter(|user| user.person.as_ref() == Some(person)).count()
    }

    /// Teams and repositories.
    pub(super) fn common_scopes(&self) -> impl Iterator<Item = Scope> {
        self.teams.iter().map(Scope::team).chain(self.repos.iter().cloned())
    }

    /// Whether a user was given a role right there, by a team or a grant.
    pub(super) fn has_been_given(&self, user: &UserName, scope: &Scope) -> bool {
        self.members.iter().any(|(team, other, _)| Scope::team(team) == *scope && other == user)
            || self.grants.iter().any(|(other, to, _)| other == scope && to == user)
    }

    /// Whether a user was disabled itself.
    fn is_disabled(&self, user: &UserName) -> bool {
        self.user(user).is_some_and(|user| user.is_disabled)
    }

    /// Whether a user is disabled itself, or with the person whose agent it is.
    pub(super) fn is_out_of_service(&self, user: &UserName) -> bool {
        let of_person = self.person(user).is_some_and(|person| self.is_disabled(&person));
        self.is_disabled(user) || of_person
    }

    /// Whose agent a user is, if it is one.
    pub(super) fn person(&self, user: &UserName) -> Option<UserName> {
        self.user(user)?.person.clone()
    }

    /// A disabled user may do nothing that asks this.
    pub(super) fn require_in_service(&self, user: &UserName) -> Result<(), Refused> {
        if self.is_out_of_service(user) { Err(Refused::Forbidden) } else { Ok(()) }
    }

    /// The highest role of a user in a scope, from wherever it comes.
    pub(super) fn role(&self, user: &UserName, scope: &Scope) -> Option<Role> {
        let mut roles = Vec::new();
        let exists = match scope.kind() {
            ScopeKind::User(name) => {
                if name == *user {
                    roles.push(Role::Admin);
                }
                self.user(&name).is_some()
            }
            ScopeKind::Team(team) => {
                for (_, _, role) in self.members.iter().filter(|m| m.0 == team && m.1 == *user) {
                    roles.push(*role);
                }
                self.teams.contains(&team)
            }
            ScopeKind::Repo(parent) => {
                roles.extend(self.role(user, &parent));
                self.repos.contains(scope)
            }
        };
        for (_, _, role) in self.grants.iter().filter(|g| g.0 == *scope && g.1 == *user) {
            roles.push(*role);
        }
        if self.user(user).is_some_and(|user| user.is_admin) {
            roles.push(Role::Admin);
        }
        if let Some(person) = self.person(user) {
            let of_person = self.role(&person, scope);
            let no_admin = |role| if role == Role::Admin { Role::Write } else { role };
            roles.extend(of_person.map(no_admin));
        }
        if exists { roles.into_iter().max() } else { None }
    }

    /// What one may not read doesn't exist for one; what one may read but not do is forbidden.
    pub(super) fn require(
        &self,
        user: &UserName,
        scope: &Scope,
        least: Role,
    ) -> Result<(), Refused> {
        match self.role(user, scope) {
            None => Err(Refused::NotFound),
            Some(role) if role < least => Err(Refused::Forbidden),
            Some(_) => Ok(()),
        }
    }

    /// Users, tokens and teams are the business of the server's administrators.
    fn require_server_admin(&self, caller: Option<&UserName>) -> Result<(), Refused> {
        let is_admin = |name| self.user(name).is_some_and(|user| user.is_admin);
        if caller.is_none_or(is_admin) { Ok(()) } else { Err(Refused::Forbidden) }
    }

    fn require_scope_admin(&self, caller: Option<&UserName>, scope: &Scope) -> Result<(), Refused> {
        let exists = match scope.kind() {
            ScopeKind::User(user) => self.user(&user).is_some(),
            ScopeKind::Team(team) => self.teams.contains(&team),
            ScopeKind::Repo(_) => self.repos.contains(scope),
        };
        match caller {
            Some(user) => self.require(user, scope, Role::Admin),
            None if exists => Ok(()),
            None => Err(Refused::NotFound),
        }
    }

    fn require_user(&self, user: &UserName) -> Result<(), Refused> {
        if self.user(user).is_some() { Ok(()) } else { Err(Refused::NotFound) }
    }

    /// Roles are given to people only.
    fn require_no_agent(&self, user: &UserName) -> Result<(), Refused> {
        self.require_user(user)?;
        if self.person(user).is_none() { Ok(()) } else { Err(Refused::InvalidArgument) }
    }

    /// What a command changes; `None` if it asks for what is so already.
    fn change(
        &self,
        caller: Option<&UserName>,
        command: &Command,
        now: Time,
    ) -> Result<Option<AccessEvent>, Refused> {
        match command {
            Command::CreateUser { .. }
            | Command::DisableUser { .. }
            | Command::EnableUser { .. }
            | Command::IssueToken { .. }
            | Command::RevokeToken { .. }
            | Command::CreateTeam { .. } => {
                self.require_server_admin(caller)?;
                self.change_of_the_server(command, now)
            }
            Command::SetTeamMember { .. }
            | Command::RemoveTeamMember { .. }
            | Command::CreateRepo { .. }
            | Command::GrantAccess { .. }
            | Command::RevokeAccess { .. } => self.change_of_a_scope(caller, command),
            Command::AcquireLock { .. }
            | Command::HeartbeatTicket { .. }
            | Command::ReleaseTicket { .. }
            | Command::BreakLock { .. } => unreachable!("the ledger itself takes no locks"),
            Command::CreateAgent { .. }
            | Command::RevokeAgentTokens { .. }
            | Command::UpdateActivity { .. }
            | Command::ClearActivity
            | Command::CreateThread { .. }
            | Command::CreateReply { .. }
            | Command::CloseThread { .. }
            | Command::ReopenThread { .. } => unreachable!("the ledger itself writes nothing"),
        }
    }

    fn change_of_the_server(
        &self,
        command: &Command,
        now: Time,
    ) -> Result<Option<AccessEvent>, Refused> {
        match command {
            Command::CreateUser { user, admin } => {
                if self.user(user).is_some() {
                    return Err(Refused::AlreadyExists);
                }
                // Such names are kept for the agents of whoever has the first part.
                let is_below = |other: &User| {
                    let rest = user.as_str().strip_prefix(other.name.as_str());
                    rest.is_some_and(|rest| rest.starts_with('.'))
                };
                if self.users.iter().any(is_below) {
                    return Err(Refused::InvalidArgument);
                }
                let (user, is_admin, person) = (user.clone(), *admin, None);
                Ok(Some(AccessEvent::UserCreated { user, is_admin, person }))
            }
            Command::DisableUser { user } => {
                self.require_user(user)?;
                let admins = self.users.iter().filter(|user| user.is_admin && !user.is_disabled);
                let admins: Vec<&UserName> = admins.map(|user| &user.name).collect();
                if admins == [user] {
                    return Err(Refused::Forbidden);
                }
                let event = AccessEvent::UserDisabled { user: user.clone() };
                Ok((!self.is_disabled(user)).then_some(event))
            }
            Command::EnableUser { user } => {
                self.require_user(user)?;
                let event = AccessEvent::UserEnabled { user: user.clone() };
                Ok(self.is_disabled(user).then_some(event))
            }
            Command::IssueToken { token_id, user, expires_in_days, .. } => {
                self.require_user(user)?;
                self.token(*token_id, user, *expires_in_days, now).map(Some)
            }
            Command::RevokeToken { token_id } => {
                let Some(token) = self.tokens.iter().find(|token| token.id == *token_id) else {
                    return Err(Refused::NotFound);
                };
                let (token_id, user) = (*token_id, token.user.clone());
                let event = AccessEvent::TokenRevoked { token_id, user };
                Ok((!token.is_revoked).then_some(event))
            }
            Command::CreateTeam { team } => {
                if self.teams.contains(team) {
                    return Err(Refused::AlreadyExists);
                }
                Ok(Some(AccessEvent::TeamCreated { team: team.clone() }))
            }
            other => unreachable!("no change of the server: {other:?}"),
        }
    }

    /// A new token.
    pub(super) fn token(
        &self,
        token_id: TokenId,
        user: &UserName,
        days: Option<u32>,
        now: Time,
    ) -> Result<AccessEvent, Refused> {
        if self.token_user(token_id).is_some() {
            return Err(Refused::AlreadyExists);
        }
        if days.is_some_and(|days| days == 0 || days > TOKEN_DAYS_MAX) {
            return Err(Refused::InvalidArgument);
        }
        let expires_at = days.map(|days| now.plus_seconds(days * SECONDS_PER_DAY));
        Ok(AccessEvent::TokenIssued { token_id, user: user.clone(), expires_at })
    }

    fn change_of_a_scope(
        &self,
        caller: Option<&UserName>,
        command: &Command,
    ) -> Result<Option<AccessEvent>, Refused> {
        match command {
            Command::SetTeamMember { team, user, role } => {
                self.require_scope_admin(caller, &Scope::team(team))?;
                self.require_no_agent(user)?;
                let (team, user, role) = (team.clone(), user.clone(), *role);
                let is_so = self.members.contains(&(team.clone(), user.clone(), role));
                Ok((!is_so).then_some(AccessEvent::TeamMemberAdded { team, user, role }))
            }
            Command::RemoveTeamMember { team, user } => {
                self.require_scope_admin(caller, &Scope::team(team))?;
                if !self.members.iter().any(|m| m.0 == *team && m.1 == *user) {
                    return Err(Refused::NotFound);
                }
                let (team, user) = (team.clone(), user.clone());
                Ok(Some(AccessEvent::TeamMemberRemoved { team, user }))
            }
            Command::CreateRepo { repo } => {
                let ScopeKind::Repo(parent) = repo.kind() else {
                    return Err(Refused::InvalidArgument);
                };
                self.require_scope_admin(caller, &parent)?;
                if self.repos.contains(repo) {
                    return Err(Refused::AlreadyExists);
                }
                Ok(Some(AccessEvent::RepoCreated { repo: repo.clone() }))
            }
            Command::GrantAccess { scope, user, role } => {
                self.require_scope_admin(caller, scope)?;
                self.require_no_agent(user)?;
                let (scope, user, role) = (scope.clone(), user.clone(), *role);
                let is_so = self.grants.contains(&(scope.clone(), user.clone(), role));
                Ok((!is_so).then_some(AccessEvent::AccessGranted { scope, user, role }))
            }
            Command::RevokeAccess { scope, user } => {
                self.require_scope_admin(caller, scope)?;
                if !self.grants.iter().any(|g| g.0 == *scope && g.1 == *user) {
                    return Err(Refused::NotFound);
                }
                let (scope, user) = (scope.clone(), user.clone());
                Ok(Some(AccessEvent::AccessRevoked { scope, user }))
            }
            other => unreachable!("no change of a scope: {other:?}"),
        }
    }

    pub(super) fn carry_out(&mut self, event: &AccessEvent) {
        match event.clone() {
            AccessEvent::UserCreated { user: name, is_admin, person } => {
                self.users.push(User { name, is_admin, person, is_disabled: false });
            }
            AccessEvent::UserDisabled { user } => self.set_disabled(&user, true),
            AccessEvent::UserEnabled { user } => self.set_disabled(&user, false),
            AccessEvent::TokenIssued { token_id, user, expires_at } => {
                self.tokens.push(Token { id: token_id, user, expires_at, is_revoked: false });
            }
            AccessEvent::TokenRevoked { token_id, .. } => {
                for token in self.tokens.iter_mut().filter(|token| token.id == token_id) {
                    token.is_revoked = true;
                }
            }
            AccessEvent::TeamCreated { team } => self.teams.push(team),
            AccessEvent::TeamMemberAdded { team, user, role } => {
                self.members.retain(|member| !(member.0 == team && member.1 == user));
                self.members.push((team, user, role));
            }
            AccessEvent::TeamMemberRemoved { team, user } => {
                self.members.retain(|member| !(member.0 == team && member.1 == user));
            }
            AccessEvent::RepoCreated { repo } => self.repos.push(repo),
            AccessEvent::AccessGranted { scope, user, role } => {
                self.grants.retain(|grant| !(grant.0 == scope && grant.1 == user));
                self.grants.push((scope, user, role));
            }
            AccessEvent::AccessRevoked { scope, user } => {
                self.grants.retain(|grant| !(grant.0 == scope && grant.1 == user));
            }
        }
    }

    fn set_disabled(&mut self, name: &UserName, is_disabled: bool) {
        for user in self.users.iter_mut().filter(|user| user.name == *name) {
            user.is_disabled = is_disabled;
        }
    }
}

impl Naive {
    /// Changes who may do what, for a user or for the ledger itself, and cancels the waits of
    /// whoever can't write any more.
    pub(super) fn administer(&mut self, caller: Option<&UserName>, command: &Command) -> Outcome {
        if let Some(user) = caller {
            self.access.require_in_service(user)?;
        }
        let Some(event) = self.access.change(caller, command, self.now)? else {
            return Ok((Answer::Done, Vec::new()));
        };
        self.next_sequence();
        self.access.carry_out(&event);
        let mut events = vec![Event::Access(event)];
        // Those of the person itself come first, and then those of its agents, by their names.
        let waiting = (0..self.tickets.len()).filter(|index| self.tickets[*index].is_waiting());
        let mut waiting: Vec<usize> = waiting.collect();
        waiting.sort_by_key(|index| {
            let owner = &self.tickets[*index].owner;
            (self.access.person(owner).is_some(), owner.clone())
        });
        for index in waiting {
            let ticket = &self.tickets[index];
            let reason = if self.access.is_out_of_service(&ticket.owner) {
                "user-disabled"
            } else if self.access.role(&ticket.owner, &ticket.input.scope) < Some(Role::Write) {
                "access-revoked"
            } else {
                continue;
            };
            events.push(self.cancel(index, Some(reason)));
        }
        Ok((Answer::Done, events))
    }
}
