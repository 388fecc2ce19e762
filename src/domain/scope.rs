//! Where a lock lives: a user, a team or a repository.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

use super::name::{InvalidName, LockName, TeamName, UserName, is_part};

const SCOPE_RULE: &str = "must be users/NAME, teams/NAME, users/NAME/REPO or teams/NAME/REPO, \
     each part matching [a-z0-9][a-z0-9._-]{0,63}";

/// The same rule as patterns of a JSON Schema, which a scope must match, and must not.
const SCOPE_PATTERN: &str =
    "^(users|teams)/[a-z0-9][a-z0-9._-]{0,63}(/[a-z0-9][a-z0-9._-]{0,63})?$";
const REPO_PATTERN: &str = "^(users|teams)/[a-z0-9][a-z0-9._-]{0,63}/[a-z0-9][a-z0-9._-]{0,63}$";
const NO_SCOPE_PATTERN: &str = "^users/ledger(/|$)";

/// A scope in its one spelling: `users/ana`, `teams/platform`, `teams/platform/website`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(
    inline,
    extend(
        "pattern" = SCOPE_PATTERN,
        "not" = { "type": "string", "pattern": NO_SCOPE_PATTERN }
    )
)]
pub struct Scope(Arc<str>);

/// What a scope is, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScopeKind {
    /// `users/NAME`
    User(UserName),
    /// `teams/NAME`
    Team(TeamName),
    /// `…/REPO` in the scope named here, which is a user's or a team's.
    Repo(Scope),
}

impl Scope {
    /// What a repository's scope must be, fit for "repo RULE".
    pub const REPO_RULE: &str = "must be teams/NAME/REPO or users/NAME/REPO";

    /// Narrows the schema of a scope to that of a repository's.
    pub(crate) fn repo_only(schema: &mut Schema) {
        schema.insert("pattern".to_owned(), REPO_PATTERN.into());
    }

    /// The scope of a user's own.
    pub fn user(user: &UserName) -> Self {
        Self(format!("users/{user}").into())
    }

    /// A team's scope.
    pub fn team(team: &TeamName) -> Self {
        Self(format!("teams/{team}").into())
    }

    /// The scope as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Takes the scope apart.
    pub fn kind(&self) -> ScopeKind {
        let mut parts = self.0.split('/');
        let (root, name, repo) = (parts.next(), parts.next().unwrap_or_default(), parts.next());
        if repo.is_some() {
            let end = self.0.rfind('/').expect("a repository's scope has three parts");
            return ScopeKind::Repo(Self(self.0[..end].into()));
        }
        if root == Some("users") {
            ScopeKind::User(name.parse().expect("a scope was checked when it was made"))
        } else {
            ScopeKind::Team(name.parse().expect("a scope was checked when it was made"))
        }
    }
}

impl FromStr for Scope {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let parts: Vec<&str> = text.split('/').collect();
        let owner_is_valid = match parts.first() {
            Some(&"users") => parts.get(1).is_some_and(|p| p.parse::<UserName>().is_ok()),
            Some(&"teams") => parts.get(1).is_some_and(|p| is_part(p)),
            _ => false,
        };
        let is_valid = owner_is_valid
            && match parts.len() {
                2 => true,
                3 => is_part(parts[2]),
                _ => false,
            };
        if is_valid { Ok(Self(text.into())) } else { Err(InvalidName { rule: SCOPE_RULE }) }
    }
}

impl TryFrom<String> for Scope {
    type Error = InvalidName;

    fn try_from(text: String) -> Result<Self, InvalidName> {
        text.parse()
    }
}

impl From<Scope> for String {
    fn from(scope: Scope) -> String {
        scope.0.as_ref().to_owned()
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A lock: its scope and its name. The same name in two scopes is two locks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockKey {
    /// Where the lock lives.
    pub scope: Scope,
    /// The lock's name in that scope.
    pub lock_name: LockName,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_has_one_spelling() {
        for bad in
            ["", "users", "users/", "teams/a/", "users/ledger", "teams/a/b/c", "x/a", "/users/a"]
        {
            assert!(bad.parse::<Scope>().is_err(), "{bad:?}");
        }
        let repo: Scope = "teams/platform/website".parse().expect("a repository");
        assert_eq!(repo.kind(), ScopeKind::Repo("teams/platform".parse().expect("a team")));
        let user: Scope = "users/ana".parse().expect("a user");
        assert_eq!(user.kind(), ScopeKind::User("ana".parse().expect("a name")));
    }
}
