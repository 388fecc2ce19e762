//! The command line of what makes targets refuse late writes.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Subcommand, ValueEnum};

use super::value::fence_token;
use crate::cli::environment::Environment;
use crate::domain::id::FenceToken;
use crate::domain::name::{LockName, TeamName, UserName};
use crate::domain::scope::{LockKey, Scope};
use crate::flags::{named, repo};
use crate::guard;

/// A command about fence guards.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum GuardCommand {
    /// Print what makes a target refuse late writes; how to install it is in its first lines
    PrintGuard {
        /// The target
        target: GuardTarget,
    },
    /// Push with Git, together with the fence token that it is done under
    ///
    /// REMOTE and each REFSPEC are passed on to git push, and none of its options: a REFSPEC with
    /// + before it is pushed by force, and what -u does is done by git branch --set-upstream-to.
    GitPush(GitPushArgs),
    /// Show on this machine, in about ten seconds, how a late write does harm, and how a guard
    /// refuses it
    ///
    /// Of two agents of yours, which it makes (drill-a and drill-b), one is frozen (SIGSTOP) while
    /// it holds a lock in your own scope, until its lease is over and the other one has the lock
    /// and has written. Thawed, it writes too: once where nothing guards, and once where the guard
    /// for Git does. All this is in a folder for temporary files, which is deleted. At the end it
    /// revokes all tokens of the two agents. The exit code is 0 if the late write was refused.
    Drill,
}

/// A target that a guard is printed for.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(in crate::cli) enum GuardTarget {
    /// SQL: the functions pearing.claim and pearing.guard
    Postgres,
    /// A Lua script that claims, and that runs a command under a fence token
    Redis,
    /// The hook of a repository that is pushed to
    Git,
}

impl GuardTarget {
    /// The guard.
    pub(in crate::cli) fn text(self) -> &'static str {
        match self {
            Self::Postgres => guard::POSTGRES,
            Self::Redis => guard::REDIS,
            Self::Git => guard::GIT_HOOK,
        }
    }
}

/// What is pushed, and under which hold.
#[derive(Debug, Args)]
pub(in crate::cli) struct GitPushArgs {
    /// The remote, as for git push
    pub(in crate::cli) remote: String,
    /// What to push, as for git push, like main or HEAD:refs/heads/main
    #[arg(value_name = "REFSPEC", required_unless_present = "claim")]
    pub(in crate::cli) refspecs: Vec<String>,
    /// Only make the fence token the newest at the remote: do that before you fetch
    #[arg(long, conflicts_with = "refspecs")]
    pub(in crate::cli) claim: bool,
    #[command(flatten)]
    hold: HoldArgs,
}

/// A hold, by flags or by the environment, all of it or nothing.
#[derive(Debug, Clone, Args)]
struct HoldArgs {
    /// The lock that is held [default: PEARING_LOCK_NAME, of PEARING_SCOPE]
    #[arg(long, value_name = "NAME", value_parser = named::<LockName>("lock_name"))]
    fence_lock: Option<LockName>,
    /// The fence token of that hold [default: PEARING_FENCE_TOKEN]
    #[arg(long, value_name = "FENCE", value_parser = fence_token)]
    fence_token: Option<FenceToken>,
    /// The lock is in this repository, like teams/platform/website
    #[arg(long, value_parser = repo, value_name = "REPO", group = "fence_scope")]
    repo: Option<Scope>,
    /// The lock is in this team's own scope, like platform
    #[arg(
        long,
        value_name = "TEAM",
        group = "fence_scope",
        value_parser = named::<TeamName>("team")
    )]
    team: Option<TeamName>,
    /// The lock is in this user's own scope, like ana
    #[arg(
        long,
        value_name = "USER",
        group = "fence_scope",
        value_parser = named::<UserName>("user")
    )]
    user: Option<UserName>,
}

impl GitPushArgs {
    /// The lock that is held, and the fence token of the hold.
    ///
    /// # Errors
    /// Neither the flags nor the environment say all of it.
    pub(in crate::cli) fn hold(
        &self,
        environment: &Environment,
    ) -> Result<(LockKey, FenceToken), String> {
        let HoldArgs { fence_lock, fence_token, repo, team, user } = &self.hold;
        let scope = repo.clone();
        let scope = scope.or_else(|| team.as_ref().map(Scope::team));
        let scope = scope.or_else(|| user.as_ref().map(Scope::user));
        match (fence_lock, fence_token, scope) {
            (Some(lock_name), Some(fence), Some(scope)) => {
                Ok((LockKey { scope, lock_name: lock_name.clone() }, *fence))
            }
            (None, None, None) => of_environment(environment),
            _ => Err("--fence-lock, --fence-token and one of --repo, --team and --user say \
                      together which hold is meant"
                .to_owned()),
        }
    }
}

/// A refused command line with advice that helps. An option of git push would be taken for a
/// refspec where clap advises to put it.
pub(in crate::cli) fn advised(mut error: clap::Error, words: &[OsString]) -> clap::Error {
    let is_push = words.iter().any(|word| word == "git-push");
    let is_unknown = error.kind() == ErrorKind::UnknownArgument;
    if is_push && is_unknown && error.get(ContextKind::Suggested).is_some() {
        let tip = "options of git push aren't passed on; a refspec with + before it is pushed by \
                   force, and git branch --set-upstream-to does what -u does";
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

fn of_environment(environment: &Environment) -> Result<(LockKey, FenceToken), String> {
    let (Some(scope), Some(name), Some(token)) =
        (&environment.scope, &environment.lock_name, &environment.fence_token)
    else {
        return Err("under which hold? PEARING_SCOPE, PEARING_LOCK_NAME and PEARING_FENCE_TOKEN \
                    say it together, or --fence-lock and --fence-token with --repo, --team or \
                    --user"
            .to_owned());
    };
    let scope = scope.parse().map_err(|rule| format!("PEARING_SCOPE {rule}"))?;
    let lock_name = name.parse().map_err(|rule| format!("PEARING_LOCK_NAME {rule}"))?;
    let fence =
        fence_token(token).map_err(|_| "PEARING_FENCE_TOKEN must be a whole number".to_owned())?;
    Ok((LockKey { scope, lock_name }, fence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    use crate::cli::args::{AgentCommand, Cli, Command};

    fn hold(words: &str, [scope, name, token]: [&str; 3]) -> Result<String, String> {
        let set = |value: &str| (!value.is_empty()).then(|| value.to_owned());
        let environment = Environment {
            scope: set(scope),
            lock_name: set(name),
            fence_token: set(token),
            ..Environment::default()
        };
        let words = format!("pearing-cli git-push origin main {words}");
        let cli = Cli::try_parse_from(words.split_whitespace()).map_err(|e| e.to_string())?;
        let Command::Agent(AgentCommand::Guard(GuardCommand::GitPush(args))) = cli.command else {
            panic!("it is git-push");
        };
        let (lock, fence) = args.hold(&environment)?;
        Ok(format!("{} {fence}", guard::lock_text(&lock)))
    }

    #[test]
    fn an_option_of_git_push_is_refused_with_advice_that_helps() {
        let words = ["pearing-cli", "git-push", "-u", "origin", "main"].map(OsString::from);
        let error = Cli::try_parse_from(&words).expect_err("it has no -u");
        let said = advised(error, &words).to_string();
        assert!(said.contains("git branch --set-upstream-to") && !said.contains("'-- -u'"));
    }

    #[test]
    fn a_push_names_its_hold_by_flags_or_by_the_environment_and_never_by_half() {
        let set = ["users/ana", "deploy", "7"];
        assert_eq!(hold("", set).as_deref(), Ok("users/ana/locks/deploy 7"));
        let flags = "--fence-lock x --fence-token 8 --team platform";
        assert_eq!(hold(flags, set).as_deref(), Ok("teams/platform/locks/x 8"));
        for words in ["--fence-lock x", "--fence-token 8", "--team a", "--fence-lock x --team a"] {
            assert!(hold(words, set).is_err(), "{words}");
        }
        assert!(hold("--fence-lock x --fence-token 8 --team a --user b", set).is_err());
        for wrong in [
            ["", "deploy", "7"],
            ["users/ana", "", "7"],
            ["users/ana", "deploy", ""],
            ["ana", "deploy", "7"],
            ["users/ana", "de ploy", "7"],
            ["users/ana", "deploy", "x"],
        ] {
            assert!(hold("", wrong).is_err(), "{wrong:?}");
        }
    }
}
