//! Identities, scopes and access as JSON.
//!
//! Deliberately absent: a token's SHA-256. No list needs it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::token;
use crate::domain::access::{self, Role};
use crate::domain::id::{Sequence, TokenId};
use crate::domain::name::{TeamName, UserName};
use crate::domain::scope::Scope;
use crate::domain::text::ShortText;
use crate::domain::time::Time;

/// A role in a scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScopeRole {
    /// The scope.
    pub scope: Scope,
    /// What the identity may do there.
    pub role: Role,
}

/// Who a token stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WhoAmI {
    /// The user.
    pub user: UserName,
    /// Whether it administers the server.
    pub admin: bool,
    /// Of an agent: whose it is.
    #[serde(default)]
    pub person: Option<UserName>,
    /// The token's public part.
    pub token_id: TokenId,
    /// What the token is for.
    pub label: Option<ShortText>,
    /// When the token stops working; null for never.
    pub expires_at: Option<Time>,
    /// The roles that were given to it: in its own scope, by teams and by grants. A role in a
    /// team or user scope holds in its repositories.
    pub roles: Vec<ScopeRole>,
    /// How many tickets it holds or waits with.
    pub live_tickets: u64,
    /// The state that this shows.
    pub sequence: Sequence,
}

/// A token that was just made. The only time at which it is shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NewToken {
    /// Its public part.
    pub token_id: TokenId,
    /// The token.
    #[schemars(extend("pattern" = token::PATTERN))]
    pub token: String,
    /// The user that it stands for.
    pub user: UserName,
    /// What it is for.
    pub label: Option<ShortText>,
    /// When it stops working; null for never.
    pub expires_at: Option<Time>,
}

/// A user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct User {
    /// Its name.
    pub user: UserName,
    /// Whether it administers the server.
    pub admin: bool,
    /// Of an agent: whose it is.
    #[serde(default)]
    pub person: Option<UserName>,
    /// Whether it was taken out of service itself.
    pub disabled: bool,
    /// When it was made.
    pub created_at: Time,
}

impl User {
    /// A user by its name.
    pub fn new(name: &UserName, user: &access::User) -> Self {
        Self {
            user: name.clone(),
            admin: user.admin,
            person: user.person.clone(),
            disabled: user.is_disabled,
            created_at: user.created_at,
        }
    }
}

/// A token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Token {
    /// Its public part.
    pub token_id: TokenId,
    /// The user that it stands for.
    pub user: UserName,
    /// What it is for.
    pub label: Option<ShortText>,
    /// When it was issued.
    pub created_at: Time,
    /// When it stops working; null for never.
    pub expires_at: Option<Time>,
    /// Whether it was revoked.
    pub revoked: bool,
    /// When it was last used, rounded down to the hour; null if it isn't known that it was.
    pub last_used_at: Option<Time>,
}

impl Token {
    /// A token by its public part.
    pub fn new(token_id: TokenId, token: &access::Token, last_used_at: Option<Time>) -> Self {
        Self {
            token_id,
            user: token.user.clone(),
            label: token.label.clone(),
            created_at: token.created_at,
            expires_at: token.expires_at,
            revoked: token.is_revoked,
            last_used_at,
        }
    }
}

/// An agent of the asker's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Agent {
    /// The user that it is: the person's name, a dot, and its own name.
    pub user: UserName,
    /// Its own name.
    pub name: String,
    /// Whether it was taken out of service itself.
    pub disabled: bool,
    /// When it was made.
    pub created_at: Time,
    /// Its tokens, without their secrets.
    pub tokens: Vec<Token>,
}

impl Agent {
    /// An agent by the name of its user.
    pub fn new(name: &UserName, user: &access::User, tokens: Vec<Token>) -> Self {
        let own_name = user.person.as_ref().and_then(|person| name.own_name_as_agent_of(person));
        Self {
            user: name.clone(),
            name: own_name.unwrap_or(name.as_str()).to_owned(),
            disabled: user.is_disabled,
            created_at: user.created_at,
            tokens,
        }
    }
}

/// A team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Team {
    /// Its name.
    pub team: TeamName,
    /// How many members it has.
    pub members: u64,
}

/// A member of a team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Member {
    /// The team.
    pub team: TeamName,
    /// The user.
    pub user: UserName,
    /// What it may do in the team and its repositories.
    pub role: Role,
}

/// A repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Repo {
    /// Its scope.
    pub repo: Scope,
    /// When it was made.
    pub created_at: Time,
}

/// A direct grant in a scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Grant {
    /// The scope.
    pub scope: Scope,
    /// The user.
    pub user: UserName,
    /// What it may do there.
    pub role: Role,
}

/// One who is no member of a team any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FormerMember {
    /// The team.
    pub team: TeamName,
    /// The user.
    pub user: UserName,
    /// Null: it has none.
    pub role: (),
}

/// A direct grant that was taken away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FormerGrant {
    /// The scope.
    pub scope: Scope,
    /// The user.
    pub user: UserName,
    /// Null: it has none by this grant.
    pub role: (),
}
