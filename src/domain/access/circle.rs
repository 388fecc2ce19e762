//! Who sees what a user is doing: whoever shares a team or a repository with it, and who belongs
//! to the same person.
//!
//! That an administrator of the server may read every scope shares nothing.

use super::Access;
use crate::domain::name::UserName;
use crate::domain::scope::{Scope, ScopeKind};

/// What a user has in common with others, worked out once to be asked about many.
pub struct Circle<'a> {
    access: &'a Access,
    user: &'a UserName,
    /// The user, or the person whose agent it is.
    person: &'a UserName,
    /// Teams and repositories that it was given, and scopes of users that hold repositories.
    scopes: Vec<Scope>,
}

impl Circle<'_> {
    /// Whether the user may see what another is doing: an administrator of the server sees it of
    /// everyone.
    pub fn sees(&self, other: &UserName) -> bool {
        self.access.is_server_admin(self.user) || self.includes(other)
    }

    /// Whether another user belongs to it.
    pub fn includes(&self, other: &UserName) -> bool {
        let person = self.access.person_of(other).unwrap_or(other);
        person == self.person || self.scopes.iter().any(|scope| self.access.was_given(other, scope))
    }
}

impl Access {
    /// What a user has in common with others.
    pub fn circle_of<'a>(&'a self, user: &'a UserName) -> Circle<'a> {
        // A role in a repository comes from its team, or from a grant in it or above it: so teams
        // and the scopes of grants are all that can be shared.
        let teams = self.teams.keys().map(Scope::team);
        let repos = self.grants.keys().filter(|scope| match scope.kind() {
            ScopeKind::Team(_) => false,
            ScopeKind::Repo(_) => true,
            ScopeKind::User(_) => self.has_repo_below(scope),
        });
        let scopes = teams.chain(repos.cloned()).filter(|scope| self.was_given(user, scope));
        let person = self.person_of(user).unwrap_or(user);
        Circle { access: self, user, person, scopes: scopes.collect() }
    }

    /// Whether a user, or the person whose agent it is, was given a role in a scope.
    fn was_given(&self, user: &UserName, scope: &Scope) -> bool {
        let mut from = std::iter::once(user).chain(self.person_of(user));
        from.any(|user| self.role_from(user, scope).is_some())
    }

    /// Whether a user's scope, or a team's, has a repository.
    fn has_repo_below(&self, scope: &Scope) -> bool {
        let least: Scope = format!("{scope}/0").parse().expect("0 is the least name");
        let next = self.repos.range(least..).next();
        next.is_some_and(|(repo, _)| repo.kind() == ScopeKind::Repo(scope.clone()))
    }
}
