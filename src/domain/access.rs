//! Who may do what: users, their tokens, teams, repositories and grants.
//!
//! A role is never stored for a repository that a team's role already covers: it is worked out
//! each time, so taking something away can't leave a copy behind.
//! Deliberately absent: tokens. The ledger knows their SHA-256 only.

mod circle;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

pub use circle::Circle;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::event::{Event, TokenIssued};
use super::hex;
use super::id::TokenId;
use super::name::{TeamName, UserName};
use super::scope::{Scope, ScopeKind};
use super::text::ShortText;
use super::time::Time;

/// What an identity may do in a scope. Each role includes the ones before it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// See.
    Read,
    /// Take locks.
    Write,
    /// Break locks, give and take access.
    Admin,
}

impl Role {
    /// The rule, fit for "role RULE".
    pub const RULE: &str = "must be read, write or admin";

    /// The most that an agent may do in a scope that isn't its own.
    const AGENT_MOST: Self = Self::Write;

    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }
}

impl FromStr for Role {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let roles = [Self::Read, Self::Write, Self::Admin];
        roles.into_iter().find(|role| role.as_str() == text).ok_or(Self::RULE)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The SHA-256 of a token, as 64 hex digits on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline, extend("pattern" = hex::HASH_PATTERN))]
pub struct TokenHash(pub [u8; 32]);

impl FromStr for TokenHash {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        hex::hash(text).map(Self).ok_or(hex::HASH_RULE)
    }
}

impl TryFrom<String> for TokenHash {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        text.parse()
    }
}

impl From<TokenHash> for String {
    fn from(hash: TokenHash) -> String {
        hash.to_string()
    }
}

impl fmt::Display for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex::write(f, &self.0)
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// Whether it administers the server.
    pub admin: bool,
    /// Of an agent: the person whose it is.
    pub person: Option<UserName>,
    /// Whether it was taken out of service itself. An agent is so with its person, too:
    /// [`Access::is_in_service`] tells.
    pub is_disabled: bool,
    /// When it was made.
    pub created_at: Time,
}

/// A token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// The user that it stands for.
    pub user: UserName,
    /// SHA-256 of the whole token.
    pub sha256: TokenHash,
    /// What it is for.
    pub label: Option<ShortText>,
    /// When it was issued.
    pub created_at: Time,
    /// When it stops working; never if `None`.
    pub expires_at: Option<Time>,
    /// Whether it was revoked.
    pub is_revoked: bool,
}

impl Token {
    /// Whether the token works at `time`.
    pub fn is_live(&self, time: Time) -> bool {
        !self.is_revoked && self.expires_at.is_none_or(|end| time < end)
    }
}

/// A team.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Team {
    /// Its members and what each may do.
    pub members: BTreeMap<UserName, Role>,
}

/// All identities, scopes and roles.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Access {
    users: BTreeMap<UserName, User>,
    tokens: BTreeMap<TokenId, Token>,
    /// The tokens of each user: an index, which is never stored.
    #[serde(skip)]
    tokens_of: BTreeMap<UserName, BTreeSet<TokenId>>,
    teams: BTreeMap<TeamName, Team>,
    repos: BTreeMap<Scope, Time>,
    grants: BTreeMap<Scope, BTreeMap<UserName, Role>>,
}

impl Access {
    /// A user by name.
    pub fn user(&self, user: &UserName) -> Option<&User> {
        self.users.get(user)
    }

    /// All users, by name.
    pub fn users(&self) -> impl Iterator<Item = (&UserName, &User)> {
        self.users.iter()
    }

    /// A token by its public part, revoked and expired ones too.
    pub fn token(&self, token: TokenId) -> Option<&Token> {
        self.tokens.get(&token)
    }

    /// All tokens, by id.
    pub fn tokens(&self) -> impl Iterator<Item = (TokenId, &Token)> {
        self.tokens.iter().map(|(id, token)| (*id, token))
    }

    /// The tokens of a user, by id.
    pub fn tokens_of(&self, user: &UserName) -> impl Iterator<Item = (TokenId, &Token)> {
        let ids = self.tokens_of.get(user).into_iter().flatten();
        ids.filter_map(|id| Some((*id, self.tokens.get(id)?)))
    }

    /// A team by name.
    pub fn team(&self, team: &TeamName) -> Option<&Team> {
        self.teams.get(team)
    }

    /// All teams, by name.
    pub fn teams(&self) -> impl Iterator<Item = (&TeamName, &Team)> {
        self.teams.iter()
    }

    /// When a repository was made; `None` if there is none in this scope.
    pub fn repo(&self, scope: &Scope) -> Option<Time> {
        self.repos.get(scope).copied()
    }

    /// All repositories, by scope, with the time at which each was made.
    pub fn repos(&self) -> impl Iterator<Item = (&Scope, Time)> {
        self.repos.iter().map(|(scope, time)| (scope, *time))
    }

    /// The direct grants in a scope, by user.
    pub fn grants(&self, scope: &Scope) -> impl Iterator<Item = (&UserName, Role)> {
        self.grants.get(scope).into_iter().flatten().map(|(user, role)| (user, *role))
    }

    /// The agents of a person, by name.
    pub fn agents_of(&self, person: &UserName) -> impl Iterator<Item = (&UserName, &User)> {
        // Their names all begin with the person's and a dot, so they stand together.
        let beginning = format!("{person}.");
        let first = beginning.parse::<UserName>().ok();
        let near = first.into_iter().flat_map(|first| self.users.range(first..));
        let near = near.take_while(move |(name, _)| name.as_str().starts_with(&beginning));
        near.filter(move |(_, user)| user.person.as_ref() == Some(person))
    }

    /// The person of an agent.
    pub fn person_of(&self, user: &UserName) -> Option<&UserName> {
        self.users.get(user)?.person.as_ref()
    }

    /// The person whose agent a user is, or else the user itself: who answers for what it takes up.
    pub fn account(&self, user: &UserName) -> UserName {
        self.person_of(user).unwrap_or(user).clone()
    }

    /// The roles that were given to a user, by scope: in its own scope, by teams and by grants.
    /// Where a team and a grant give one in the same scope, the higher one counts. An agent has
    /// its person's, at most `write`.
    pub fn roles_given_to(&self, user: &UserName) -> impl Iterator<Item = (Scope, Role)> {
        let Some(person) = self.person_of(user) else {
            return self.own_roles_given_to(user).into_iter();
        };
        let mut roles = self.own_roles_given_to(person);
        roles.values_mut().for_each(|role| *role = (*role).min(Role::AGENT_MOST));
        roles.insert(Scope::user(user), Role::Admin);
        roles.into_iter()
    }

    fn own_roles_given_to(&self, user: &UserName) -> BTreeMap<Scope, Role> {
        let own = self.users.contains_key(user).then(|| (Scope::user(user), Role::Admin));
        let teams = self.teams.iter();
        let teams =
            teams.filter_map(|(name, team)| Some((Scope::team(name), *team.members.get(user)?)));
        let grants = self.grants.iter();
        let grants = grants.filter_map(|(scope, given)| Some((scope.clone(), *given.get(user)?)));
        let mut roles = BTreeMap::new();
        for (scope, role) in own.into_iter().chain(teams).chain(grants) {
            let highest = roles.entry(scope).or_insert(role);
            *highest = role.max(*highest);
        }
        roles
    }

    /// Whether there is such a scope.
    pub fn has_scope(&self, scope: &Scope) -> bool {
        match scope.kind() {
            ScopeKind::User(user) => self.users.contains_key(&user),
            ScopeKind::Team(team) => self.teams.contains_key(&team),
            ScopeKind::Repo(_) => self.repos.contains_key(scope),
        }
    }

    /// Whether there is such a user, and neither it nor the person whose agent it is has been
    /// disabled.
    pub fn is_in_service(&self, user: &UserName) -> bool {
        let is_enabled = |user: &User| !user.is_disabled;
        self.users.get(user).is_some_and(|account| {
            is_enabled(account)
                && account.person.as_ref().is_none_or(|p| self.users.get(p).is_some_and(is_enabled))
        })
    }

    /// Whether the user administers the server. A disabled one administers nothing.
    pub fn is_server_admin(&self, user: &UserName) -> bool {
        self.users.get(user).is_some_and(|u| u.admin && !u.is_disabled)
    }

    /// The highest role of a user in a scope; `None` if it may not know that the scope exists,
    /// and for a scope that doesn't. Being disabled is judged apart.
    pub fn role(&self, user: &UserName, scope: &Scope) -> Option<Role> {
        let account = self.users.get(user)?;
        if !self.has_scope(scope) {
            return None;
        }
        let Some(person) = &account.person else {
            return if account.admin { Some(Role::Admin) } else { self.role_from(user, scope) };
        };
        // Its own scope is its own; all else it has from its person, at this very moment.
        let from_person = self.role(person, scope).map(|role| role.min(Role::AGENT_MOST));
        self.role_from(user, scope).max(from_person)
    }

    /// The role that a scope and the one above it give.
    fn role_from(&self, user: &UserName, scope: &Scope) -> Option<Role> {
        let above = match scope.kind() {
            ScopeKind::Repo(parent) => self.role_at(user, &parent),
            ScopeKind::User(_) | ScopeKind::Team(_) => None,
        };
        above.max(self.role_at(user, scope))
    }

    /// The role that a scope itself gives, without what comes from above.
    fn role_at(&self, user: &UserName, scope: &Scope) -> Option<Role> {
        let own = match scope.kind() {
            ScopeKind::User(name) => (name == *user).then_some(Role::Admin),
            ScopeKind::Team(team) => {
                self.teams.get(&team).and_then(|team| team.members.get(user).copied())
            }
            ScopeKind::Repo(_) => None,
        };
        own.max(self.grants.get(scope).and_then(|grants| grants.get(user).copied()))
    }

    /// Whether the user is in service and may take locks in the scope.
    pub fn can_write(&self, user: &UserName, scope: &Scope) -> bool {
        self.is_in_service(user) && self.role(user, scope) >= Some(Role::Write)
    }

    /// Whether the user is in service and may see the scope.
    pub fn can_read(&self, user: &UserName, scope: &Scope) -> bool {
        self.is_in_service(user) && self.role(user, scope).is_some()
    }

    /// Folds an access event in; others change nothing here.
    pub(super) fn apply(&mut self, time: Time, event: &Event) {
        match event {
            Event::UserCreated(e) => {
                let (admin, person) = (e.admin, e.person.clone());
                let user = User { admin, person, is_disabled: false, created_at: time };
                self.users.insert(e.user.clone(), user);
            }
            Event::UserDisabled(e) => self.set_disabled(&e.user, true),
            Event::UserEnabled(e) => self.set_disabled(&e.user, false),
            Event::TokenIssued(e) => self.issue(time, e),
            Event::TokenRevoked(e) => {
                if let Some(token) = self.tokens.get_mut(&e.token_id) {
                    token.is_revoked = true;
                }
            }
            Event::TeamCreated(e) => {
                self.teams.insert(e.team.clone(), Team::default());
            }
            Event::TeamMemberAdded(e) => {
                self.teams
                    .entry(e.team.clone())
                    .or_default()
                    .members
                    .insert(e.user.clone(), e.role);
            }
            Event::TeamMemberRemoved(e) => {
                if let Some(team) = self.teams.get_mut(&e.team) {
                    team.members.remove(&e.user);
                }
            }
            Event::RepoCreated(e) => {
                self.repos.insert(e.repo.clone(), time);
            }
            Event::AccessGranted(e) => {
                self.grants.entry(e.scope.clone()).or_default().insert(e.user.clone(), e.role);
            }
            Event::AccessRevoked(e) => {
                if let Some(grants) = self.grants.get_mut(&e.scope) {
                    grants.remove(&e.user);
                    if grants.is_empty() {
                        self.grants.remove(&e.scope);
                    }
                }
            }
            Event::LedgerOpened(_)
            | Event::LedgerRecovered(_)
            | Event::LedgerRestored(_)
            | Event::LockAcquired(_)
            | Event::LockQueued(_)
            | Event::LockContended(_)
            | Event::LockDeadlockRejected(_)
            | Event::LockHeartbeat(_)
            | Event::LockPromoted(_)
            | Event::LockReleased(_)
            | Event::LockExpired(_)
            | Event::LockBroken(_)
            | Event::LockWaitCancelled(_)
            | Event::LockWaitTimedOut(_)
            | Event::ActivityUpdated(_)
            | Event::ActivityCleared(_)
            | Event::ThreadCreated(_)
            | Event::ThreadReplied(_)
            | Event::ThreadClosed(_)
            | Event::ThreadReopened(_) => {}
        }
    }

    fn set_disabled(&mut self, user: &UserName, is_disabled: bool) {
        if let Some(user) = self.users.get_mut(user) {
            user.is_disabled = is_disabled;
        }
    }

    fn issue(&mut self, time: Time, e: &TokenIssued) {
        let token = Token {
            user: e.user.clone(),
            sha256: e.sha256,
            label: e.label.clone(),
            created_at: time,
            expires_at: e.expires_at,
            is_revoked: false,
        };
        self.tokens.insert(e.token_id, token);
        self.tokens_of.entry(e.user.clone()).or_default().insert(e.token_id);
    }

    /// Rebuilds what isn't stored.
    pub(super) fn index(&mut self) {
        for (id, token) in &self.tokens {
            self.tokens_of.entry(token.user.clone()).or_default().insert(*id);
        }
    }

    /// A copy without tokens, to see what a change would make of roles.
    pub(super) fn roles_only(&self) -> Self {
        Self {
            users: self.users.clone(),
            teams: self.teams.clone(),
            repos: self.repos.clone(),
            grants: self.grants.clone(),
            ..Self::default()
        }
    }
}
