//! Flags that both programs have: a scope, a lock. A wrong value is told in the server's words.

use clap::Args;

use crate::domain::name::{LockName, TeamName, UserName};
use crate::domain::scope::{LockKey, Scope, ScopeKind};

/// The scope, by exactly one of three flags.
#[derive(Debug, Clone, Args)]
#[group(required = true, multiple = false)]
pub struct ScopeArgs {
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
pub(crate) struct ScopeIfAny {
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
    pub fn scope(&self) -> Scope {
        scope_of(&self.repo, &self.team, &self.user).expect("the flags' group is required")
    }
}

impl ScopeIfAny {
    /// The scope, if one is given.
    pub(crate) fn scope(&self) -> Option<Scope> {
        scope_of(&self.repo, &self.team, &self.user)
    }
}

/// A lock: its name and its scope.
#[derive(Debug, Clone, Args)]
pub struct LockArgs {
    /// The lock's name, like thread-work.42
    #[arg(value_name = "NAME", value_parser = named::<LockName>("lock_name"))]
    lock_name: LockName,
    #[command(flatten)]
    scope: ScopeArgs,
}

impl LockArgs {
    /// The lock.
    pub fn lock(&self) -> LockKey {
        LockKey { scope: self.scope.scope(), lock_name: self.lock_name.clone() }
    }
}

/// What is said of a wrong value: the same words as the server's.
pub(crate) fn invalid(field: &str, rule: impl std::fmt::Display) -> String {
    format!("invalid-argument: {field} {rule}")
}

pub(crate) type Parsed<T> = Result<T, String>;

pub(crate) fn named<T>(
    field: &'static str,
) -> impl Fn(&str) -> Parsed<T> + Clone + Send + Sync + 'static
where
    T: std::str::FromStr<Err: std::fmt::Display>,
{
    move |text| text.parse().map_err(|rule| invalid(field, rule))
}

pub(crate) fn uuid<T: std::str::FromStr>(
    field: &'static str,
) -> impl Fn(&str) -> Parsed<T> + Clone + Send + Sync + 'static {
    move |text| text.parse().map_err(|_| invalid(field, "must be a UUID"))
}

pub(crate) fn repo(text: &str) -> Parsed<Scope> {
    let scope: Scope = text.parse().map_err(|_| invalid("repo", Scope::REPO_RULE))?;
    match scope.kind() {
        ScopeKind::Repo(_) => Ok(scope),
        ScopeKind::Team(_) | ScopeKind::User(_) => Err(invalid("repo", Scope::REPO_RULE)),
    }
}
