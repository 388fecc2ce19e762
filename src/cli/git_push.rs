//! git-push: pushes with Git, together with the fence token that it is done under.
//!
//! One `git push --atomic` of what is to be pushed and of the lock's fence ref, which the guard of
//! the repository compares (`print-guard git`). Each push makes the fence ref's blob anew, since
//! Git sends nothing of a ref that stays as it is, and the guard would not see it. Git compares the
//! ref's old value as well, so of two pushes at the same time one fails.
//! Deliberately absent: a question to the server. Whether the hold is the newest, the repository
//! that is pushed to knows.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;

use super::args::GitPushArgs;
use super::environment::Environment;
use super::output::Output;
use super::{Ended, Failure};
use crate::domain::id::FenceToken;
use crate::domain::scope::LockKey;
use crate::guard;
use crate::random;
use crate::wire::problem::{Code, EXIT_DONE, EXIT_OTHER};

pub(super) async fn push(
    environment: &Environment,
    output: &mut Output,
    args: &GitPushArgs,
) -> Ended {
    let (lock, fence) = args.hold(environment).map_err(Failure::Usage)?;
    one_address(&args.remote).await?;
    let blob = store_blob(&lock, fence).await?;
    let mut git = Command::new("git");
    git.args(["push", "--atomic", "--", &args.remote]).args(&args.refspecs);
    // Blobs don't follow each other, as commits do: that the number rises is the guard's to see.
    git.arg(format!("+{blob}:{}", guard::git_fence_ref(&lock)));
    git.stdin(Stdio::inherit()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut git = git.spawn().map_err(no_git)?;
    let mut said = BufReader::new(git.stderr.take().expect("it is piped")).split(b'\n');
    let (mut is_stale, mut is_guarded) = (false, false);
    while let Some(line) = said.next_segment().await.map_err(no_git)? {
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end();
        is_stale |= line.contains(guard::GIT_STALE);
        if line.contains(guard::GIT_GUARDED) {
            is_guarded = true;
        } else {
            output.message(line);
        }
    }
    if !git.wait().await.map_err(no_git)?.success() {
        return Ok(if is_stale { stale(output, fence, &args.remote) } else { EXIT_OTHER });
    }
    if !is_guarded {
        output.message("nothing guards there: install what pearing-cli print-guard git prints");
    }
    let (lock, remote) = (guard::lock_text(&lock), &args.remote);
    let json = serde_json::json!({
        "remote": remote, "lock": lock, "fence_token": fence, "refspecs": args.refspecs,
        "guarded": is_guarded,
    });
    output.result(&json.to_string(), || {
        let done = if args.claim { "claimed" } else { "pushed under" };
        format!("{done} fence token {fence} of {lock} at {remote}")
    })?;
    Ok(EXIT_DONE)
}

/// Makes sure that a remote is one place: of several, some could take what another one refuses, and
/// nobody could say which.
async fn one_address(remote: &str) -> Result<(), Failure> {
    let mut git = Command::new("git");
    git.args(["remote", "get-url", "--push", "--all", "--", remote]);
    let output = git.stdin(Stdio::null()).output().await.map_err(no_git)?;
    // What is no remote is an address itself.
    if output.status.success() && output.stdout.split(|byte| *byte == b'\n').count() > 2 {
        let rule = "must be one place, and has several push addresses: name each of them";
        return Err(Failure::Usage(format!("remote {rule}")));
    }
    Ok(())
}

/// What the target says. The server wasn't asked.
fn stale(output: &mut Output, fence: FenceToken, remote: &str) -> u8 {
    output.message(&format!(
        "stop: a higher fence token than {fence} is claimed at {remote}, and nothing was pushed"
    ));
    Code::StaleFence.exit_code()
}

fn no_git(error: std::io::Error) -> Failure {
    Failure::Program(format!("git can't be run: {error}"))
}

/// Stores what the fence ref is to point to, and says its id.
async fn store_blob(lock: &LockKey, fence: FenceToken) -> Result<String, Failure> {
    let text = format!(
        "pearing-fence {fence}\nlock {}\nnonce {}\n",
        guard::lock_text(lock),
        random::uuid()
    );
    let mut git = Command::new("git");
    git.args(["hash-object", "-w", "--stdin"]);
    git.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut git = git.spawn().map_err(no_git)?;
    let mut stdin = git.stdin.take().expect("it is piped");
    // If it doesn't read, it says why on stderr.
    let _ = stdin.write_all(text.as_bytes()).await;
    drop(stdin);
    let made = git.wait_with_output().await.map_err(no_git)?;
    if !made.status.success() {
        return Err(Failure::Program("git hash-object failed".to_owned()));
    }
    Ok(String::from_utf8_lossy(&made.stdout).trim().to_owned())
}
