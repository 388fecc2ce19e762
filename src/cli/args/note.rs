//! The command line of threads and activity: what agents and people tell each other.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::PageArgs;
use super::value::{fence_token, named, repo, short_text, uuid};
use crate::domain::id::{FenceToken, ReplyId, RequestUuid};
use crate::domain::name::LockName;
use crate::domain::scope::Scope;
use crate::domain::text::{ActivityText, ShortText};
use crate::domain::thread::{Fence, Link, ReplyKind, ThreadKey, ThreadNumber, ThreadState};

/// A repository, by its place or by the flag.
#[derive(Debug, Clone, Args)]
#[group(required = true, multiple = false)]
pub(in crate::cli) struct RepoArgs {
    /// The repository, like teams/platform/website
    #[arg(value_name = "REPO", value_parser = repo)]
    place: Option<Scope>,
    /// The repository, like teams/platform/website
    #[arg(long, value_name = "REPO", value_parser = repo)]
    repo: Option<Scope>,
}

impl RepoArgs {
    /// The repository.
    pub(in crate::cli) fn scope(&self) -> &Scope {
        self.place.as_ref().or(self.repo.as_ref()).expect("one of the two is required")
    }
}

/// A thread: its repository and its number there.
#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct ThreadArgs {
    /// The repository, like teams/platform/website
    #[arg(value_name = "REPO", value_parser = repo)]
    scope: Scope,
    /// The thread's number, like 42
    #[arg(value_name = "NUMBER", value_parser = named::<ThreadNumber>("number"))]
    number: ThreadNumber,
}

impl ThreadArgs {
    /// The thread.
    pub(in crate::cli) fn key(&self) -> ThreadKey {
        ThreadKey { scope: self.scope.clone(), number: self.number }
    }
}

/// What a write to a thread is tied to.
#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct TermsArgs {
    /// Names this write, so that a retry of it is known as such; made and printed if left out
    #[arg(long, value_name = "UUID", value_parser = uuid::<RequestUuid>("request_uuid"))]
    pub(in crate::cli) request_uuid: Option<RequestUuid>,
    /// Refuse the write unless it is made under your own current hold of this lock of the
    /// repository [default: PEARING_LOCK_NAME, if PEARING_SCOPE is not another scope]
    #[arg(
        long,
        value_name = "NAME",
        requires = "fence_token",
        value_parser = named::<LockName>("lock_name")
    )]
    fence_lock: Option<LockName>,
    /// The fence token of that hold [default: PEARING_FENCE_TOKEN, with PEARING_LOCK_NAME]
    #[arg(long, value_name = "FENCE", requires = "fence_lock", value_parser = fence_token)]
    fence_token: Option<FenceToken>,
}

impl TermsArgs {
    /// The hold that a write in `repo` is made under: as the flags say, else as the environment
    /// says that a lock of that repository is held.
    ///
    /// # Errors
    /// The environment says half of it, or says it wrongly: a write that was meant to be fenced
    /// must not go out without.
    pub(in crate::cli) fn fence(
        &self,
        repo: &Scope,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Fence>, String> {
        if let (Some(lock_name), Some(fence_token)) = (&self.fence_lock, self.fence_token) {
            return Ok(Some(Fence { lock_name: lock_name.clone(), fence_token }));
        }
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let (name, token) = (variable("PEARING_LOCK_NAME"), variable("PEARING_FENCE_TOKEN"));
        let is_elsewhere = variable("PEARING_SCOPE").is_some_and(|scope| scope != repo.as_str());
        match (name, token) {
            (None, None) => Ok(None),
            _ if is_elsewhere => Ok(None),
            (Some(name), Some(token)) => {
                let wrong = |error: &dyn std::fmt::Display| format!("PEARING_LOCK_NAME {error}");
                let lock_name = name.parse().map_err(|error| wrong(&error))?;
                let fence_token = fence_token(&token)
                    .map_err(|_| "PEARING_FENCE_TOKEN must be a whole number".to_owned())?;
                Ok(Some(Fence { lock_name, fence_token }))
            }
            (Some(_), None) | (None, Some(_)) => {
                let rule = "PEARING_LOCK_NAME and PEARING_FENCE_TOKEN must be set together";
                Err(rule.to_owned())
            }
        }
    }
}

/// A text of several lines, by one of two flags.
#[derive(Debug, Clone, Args)]
#[group(required = false, multiple = false)]
pub(in crate::cli) struct BodyArgs {
    /// The text; may have several lines
    #[arg(long, value_name = "TEXT")]
    pub(in crate::cli) body: Option<String>,
    /// A file that holds the text; - is stdin
    #[arg(long, value_name = "PATH")]
    pub(in crate::cli) body_file: Option<PathBuf>,
}

/// A command about threads and activity.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum NoteCommand {
    /// Say what you are doing, or that you are doing nothing
    #[command(group = clap::ArgGroup::new("what").required(true))]
    UpdateUserActivity {
        /// What you are doing, in up to 500 characters
        #[arg(long, value_name = "TEXT", group = "what", value_parser = activity)]
        activity: Option<ActivityText>,
        /// You are doing nothing
        #[arg(long, group = "what", conflicts_with = "request_uuid")]
        clear: bool,
        /// Names this update, so that a retry of it is known as such; made and printed if left out
        #[arg(long, value_name = "UUID", value_parser = uuid::<RequestUuid>("request_uuid"))]
        request_uuid: Option<RequestUuid>,
    },
    /// List what everyone is doing whom you share a team or repository with
    ListActivity(PageArgs),
    /// Begin a thread in a repository
    CreateThread {
        #[command(flatten)]
        repo: RepoArgs,
        /// What it is called, in up to 200 characters
        #[arg(long, value_parser = short_text("title"))]
        title: ShortText,
        #[command(flatten)]
        body: BodyArgs,
        /// Mirror a thread from elsewhere, under its number there [default: the next free one]
        #[arg(long, value_parser = named::<ThreadNumber>("number"))]
        number: Option<ThreadNumber>,
        #[command(flatten)]
        terms: TermsArgs,
    },
    /// List the threads of a repository
    ListThreads {
        #[command(flatten)]
        repo: RepoArgs,
        /// Only open ones, or only closed ones
        #[arg(long, value_name = "open|closed", value_parser = named::<ThreadState>("state"))]
        state: Option<ThreadState>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Read a thread with all its replies
    GetThreadTree {
        #[command(flatten)]
        thread: ThreadArgs,
        /// As it was then: a sequence or a time
        #[arg(long, value_name = "SEQUENCE|TIME")]
        as_of: Option<String>,
    },
    /// Reply to a thread, or to a reply in it
    CreateReply {
        #[command(flatten)]
        thread: ThreadArgs,
        /// What kind of reply it is, like implementation, question or review
        #[arg(long, value_parser = named::<ReplyKind>("kind"))]
        kind: ReplyKind,
        #[command(flatten)]
        body: BodyArgs,
        /// What it points to: branch:NAME, commit:HEX, pull:NUMBER or url:ADDRESS; can be given
        /// more than once
        #[arg(long = "link", value_name = "LINK", value_parser = named::<Link>("link"))]
        links: Vec<Link>,
        /// The reply that it answers [default: the thread itself]
        #[arg(long, value_name = "REPLY", value_parser = uuid::<ReplyId>("parent"))]
        parent: Option<ReplyId>,
        #[command(flatten)]
        terms: TermsArgs,
    },
    /// Say that a thread has no work left
    CloseThread {
        #[command(flatten)]
        thread: ThreadArgs,
        #[command(flatten)]
        terms: TermsArgs,
    },
    /// Say that a thread has work left after all
    ReopenThread {
        #[command(flatten)]
        thread: ThreadArgs,
        #[command(flatten)]
        terms: TermsArgs,
    },
}

fn activity(text: &str) -> Result<ActivityText, String> {
    let invalid = |rule| format!("invalid-argument: activity {rule}");
    ActivityText::try_from(text.to_owned()).map_err(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fence(variables: &[(&str, &str)]) -> Result<Option<(String, u64)>, String> {
        let terms = TermsArgs { request_uuid: None, fence_lock: None, fence_token: None };
        let repo: Scope = "teams/platform/website".parse().expect("a repository");
        let value = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let fence = terms.fence(&repo, value)?;
        Ok(fence.map(|fence| (fence.lock_name.to_string(), fence.fence_token.0.0)))
    }

    #[test]
    fn under_a_lock_of_the_repository_a_write_is_fenced_by_itself() {
        let (name, token) = (("PEARING_LOCK_NAME", "build"), ("PEARING_FENCE_TOKEN", "7"));
        let scope = |scope| ("PEARING_SCOPE", scope);
        let fenced = Ok(Some(("build".to_owned(), 7)));
        assert_eq!(fence(&[]), Ok(None));
        assert_eq!(fence(&[name, token]), fenced);
        assert_eq!(fence(&[name, token, scope("teams/platform/website")]), fenced);
        assert_eq!(fence(&[name, token, scope("teams/platform")]), Ok(None));
        assert_eq!(fence(&[("PEARING_LOCK_NAME", ""), ("PEARING_FENCE_TOKEN", "")]), Ok(None));
    }

    #[test]
    fn half_a_fence_is_an_error_and_no_write_without_one() {
        for variables in [
            &[("PEARING_LOCK_NAME", "build")][..],
            &[("PEARING_FENCE_TOKEN", "7")],
            &[("PEARING_LOCK_NAME", "build"), ("PEARING_FENCE_TOKEN", "x")],
            &[("PEARING_LOCK_NAME", "no name"), ("PEARING_FENCE_TOKEN", "7")],
        ] {
            assert!(fence(variables).is_err(), "{variables:?}");
        }
    }
}
