//! The scope that a command is about, by one of three flags.

use clap::Args;

use super::value::{named, repo};
use crate::domain::name::{TeamName, UserName};
use crate::domain::scope::Scope;

/// The scope, by exactly one of three flags.
#[derive(Debug, Clone, Args)]
#[group(required = true, multiple = false)]
pub(in crate::cli) struct ScopeArgs {
    /// A repository, like teams/platform/website or users/ana/notes
    #[arg(long, value_parser = repo, value_name = "REPO")]
    repo: Option<Scope>,
    /// A team, like platform
    #[arg(long, value_parser = named::<TeamName>("team"), value_name = "TEAM")]
    team: Option<TeamName>,
    /// A user, like ana
    #[arg(long, value_parser = named::<UserName>("user"), value_name = "USER")]
    user: Option<UserName>,
}

/// The scope, by at most one of three flags.
#[derive(Debug, Clone, Args)]
#[group(required = false, multiple = false)]
pub(in crate::cli) struct ScopeIfAny {
    /// Only of a repository, like teams/platform/website
    #[arg(long, value_parser = repo, value_name = "REPO")]
    repo: Option<Scope>,
    /// Only of a team's own scope, like platform
    #[arg(long, value_parser = named::<TeamName>("team"), value_name = "TEAM")]
    team: Option<TeamName>,
    /// Only of a user's own scope, like ana
    #[arg(long, value_parser = named::<UserName>("user"), value_name = "USER")]
    user: Option<UserName>,
}

fn scope_of(
    repo: &Option<Scope>,
    team: &Option<TeamName>,
    user: &Option<UserName>,
) -> Option<Scope> {
    repo.clone()
        .or_else(|| team.as_ref().map(Scope::team))
        .or_else(|| user.as_ref().map(Scope::user))
}

impl ScopeArgs {
    /// The scope.
    pub(in crate::cli) fn scope(&self) -> Scope {
        scope_of(&self.repo, &self.team, &self.user).expect("the flags' group is required")
    }
}

impl ScopeIfAny {
    /// The scope, if one is given.
    pub(in crate::cli) fn scope(&self) -> Option<Scope> {
        scope_of(&self.repo, &self.team, &self.user)
    }
}
