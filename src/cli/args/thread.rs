//! The command line of threads, and of what a write to one is tied to.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::PageArgs;
use super::value::{fence_token, short_text, thread_state};
use crate::cli::environment::Environment;
use crate::domain::id::{FenceToken, ReplyId, RequestUuid};
use crate::domain::name::LockName;
use crate::domain::scope::Scope;
use crate::domain::text::ShortText;
use crate::domain::thread::{Fence, Link, ReplyKind, ThreadKey, ThreadNumber, ThreadState};
use crate::flags::{named, repo, uuid};

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

/// The hold that a write is made under.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::cli) enum Under {
    /// This one.
    Hold(Fence),
    /// None: nobody said so.
    Nothing,
    /// None: the environment says so of another scope.
    Elsewhere(Scope),
}

impl TermsArgs {
    /// The hold that a write in `repo` is made under: as the flags say, else as the environment
    /// says that a lock of that repository is held.
    ///
    /// # Errors
    /// The environment says half of it, or says it wrongly: a write that was meant to be fenced
    /// must not go out without.
    pub(in crate::cli) fn under(
        &self,
        repo: &Scope,
        environment: &Environment,
    ) -> Result<Under, String> {
        if let (Some(lock_name), Some(fence_token)) = (&self.fence_lock, self.fence_token) {
            return Ok(Under::Hold(Fence { lock_name: lock_name.clone(), fence_token }));
        }
        let (name, token) = (&environment.lock_name, &environment.fence_token);
        if name.is_none() && token.is_none() {
            return Ok(Under::Nothing);
        }
        if let Some(scope) = &environment.scope {
            let scope: Scope = scope.parse().map_err(|rule| format!("PEARING_SCOPE {rule}"))?;
            if scope != *repo {
                return Ok(Under::Elsewhere(scope));
            }
        }
        let (Some(name), Some(token)) = (name, token) else {
            let rule = "PEARING_LOCK_NAME and PEARING_FENCE_TOKEN must be set together";
            return Err(rule.to_owned());
        };
        let lock_name = name.parse().map_err(|rule| format!("PEARING_LOCK_NAME {rule}"))?;
        let fence_token = fence_token(token)
            .map_err(|_| "PEARING_FENCE_TOKEN must be a whole number".to_owned())?;
        Ok(Under::Hold(Fence { lock_name, fence_token }))
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

/// A command about threads.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum ThreadCommand {
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
        #[arg(long, value_parser = thread_state())]
        state: Option<ThreadState>,
        /// As they were then: a sequence or a time
        #[arg(long, value_name = "SEQUENCE|TIME")]
        as_of: Option<String>,
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

#[cfg(test)]
mod tests {
    use super::*;

    const REPO: &str = "teams/platform/website";

    fn under([name, token, scope]: [&str; 3]) -> Result<Under, String> {
        let terms = TermsArgs { request_uuid: None, fence_lock: None, fence_token: None };
        let set = |value: &str| (!value.is_empty()).then(|| value.to_owned());
        let environment = Environment {
            lock_name: set(name),
            fence_token: set(token),
            scope: set(scope),
            ..Environment::default()
        };
        terms.under(&REPO.parse().expect("a repository"), &environment)
    }

    #[test]
    fn under_a_lock_of_the_repository_a_write_is_fenced_by_itself() {
        let fence = || Fence {
            lock_name: "build".parse().expect("a name"),
            fence_token: fence_token("7").expect("a number"),
        };
        assert_eq!(under(["", "", ""]), Ok(Under::Nothing));
        assert_eq!(under(["", "", "teams/platform"]), Ok(Under::Nothing));
        assert_eq!(under(["build", "7", ""]), Ok(Under::Hold(fence())));
        assert_eq!(under(["build", "7", REPO]), Ok(Under::Hold(fence())));
        let team = "teams/platform".parse().expect("a scope");
        assert_eq!(under(["build", "7", "teams/platform"]), Ok(Under::Elsewhere(team)));
    }

    #[test]
    fn half_a_fence_is_an_error_and_no_write_without_one() {
        for variables in [
            ["build", "", ""],
            ["", "7", ""],
            ["", "7", REPO],
            ["build", "x", ""],
            ["build", " ", ""],
            ["no name", "7", ""],
            ["build", "7", "platform"],
            // What is no text, as the environment is read.
            ["b\u{fffd}", "7", ""],
            ["build", "7\u{fffd}", ""],
            ["build", "7", "teams/platform/website\u{fffd}"],
        ] {
            assert!(under(variables).is_err(), "{variables:?}");
        }
    }
}
