//! drill: a zombie's late write, against the user's own server, with a guard and without one.
//!
//! Of two agents one holds a lock and is frozen just before it writes, as by a laptop that is shut
//! or a machine that swaps. Its lease ends, the other one gets the lock, claims its fence token,
//! and writes. Then the first one is thawed, and goes on where it was. Processes, signals, the
//! lease and the two writes are real: a Git branch that nothing guards, and one that the guard
//! protects, both written by force, as by whatever replaces what it finds.
//! Deliberately absent: heartbeats. A frozen process sends none, and the lease is five seconds.

mod stage;

use tokio::process::Child;

use self::stage::{Agent, Stage};
use super::connection::Said;
use super::output::Output;
use super::signals::{Stop, killed_by};
use super::{Ended, Failure};
use crate::client::Client;
use crate::domain::id::FenceToken;
use crate::wire::problem::{Code, EXIT_DONE, EXIT_OTHER};

/// Runs the drill, and puts everything back, also when it is stopped by a signal.
pub(super) async fn run(said: Said<'_>, output: &mut Output) -> Ended {
    let mut stop = Stop::listen()?;
    let connection = said.connection()?;
    let client = Client::new(&connection.server.url, &connection.token.text)?;
    let stage = Stage::set(client, &connection.server.url).await?;
    let ended = tokio::select! {
        ended = play(&stage, output) => ended,
        number = stop.next() => Ok(killed_by(number)),
    };
    stage.clear(output).await;
    ended
}

/// Prints a step as it happens.
fn tell(output: &mut Output, step: &str) -> Result<(), Failure> {
    Ok(output.result("", || step.to_owned())?)
}

async fn play(stage: &Stage, output: &mut Output) -> Ended {
    stage.make_repository().await?;
    let (lock, a, b) = (&stage.lock, &stage.agents[0], &stage.agents[1]);
    tell(output, &format!("the lock is {} in {}", lock.lock_name, lock.scope))?;
    let a_fence = stage.acquire(a).await?;
    tell(output, &format!("{} holds it, with fence token {a_fence}", a.user))?;
    let zombie = stage.freeze(a, a_fence)?;
    tell(output, &format!("{} is frozen just before it writes (SIGSTOP)", a.user))?;
    let b_fence = stage.acquire(b).await?;
    tell(output, "its lease of 5 seconds ran out")?;
    tell(output, &format!("{} holds the lock, with fence token {b_fence}", b.user))?;
    stage.claim(b_fence).await?;
    tell(output, &format!("{} claims fence token {b_fence}, reads, and writes", b.user))?;
    let written = write(stage, b, b_fence).await?;
    if written != (Write { unguarded: 0, guarded: 0 }) {
        return Err(Failure::Program(format!("{} could not write: {written:?}", b.user)));
    }
    stage.thaw(&zombie)?;
    tell(output, &format!("{} is thawed (SIGCONT), and writes what it had in mind", a.user))?;
    let late = ended(zombie).await?;
    let [unguarded, guarded] = [stage.author("unguarded").await?, stage.author("guarded").await?];
    let is_harmed = late.unguarded == EXIT_DONE && unguarded == a.user.as_str();
    let is_refused = late.guarded == Code::StaleFence.exit_code() && guarded == b.user.as_str();
    let lost = if is_harmed { format!(": what {} wrote is lost", b.user) } else { String::new() };
    tell(output, &format!("\nwithout a guard  git push exits with {}", late.unguarded))?;
    tell(output, &format!("                 the branch is as {unguarded} wrote it{lost}"))?;
    tell(output, &format!("with the guard   git-push exits with {}", late.guarded))?;
    tell(output, &format!("                 the branch is as {guarded} wrote it"))?;
    let json = serde_json::json!({
        "lock_name": lock.lock_name, "scope": lock.scope,
        "late": { "user": a.user, "fence_token": a_fence },
        "current": { "user": b.user, "fence_token": b_fence },
        "unguarded": { "exit_code": late.unguarded, "written_by": unguarded },
        "guarded": { "exit_code": late.guarded, "written_by": guarded },
        "refused": is_refused,
    });
    output.result(&json.to_string(), || format!("\n{}", verdict(is_refused, is_harmed)))?;
    Ok(if is_refused { EXIT_DONE } else { EXIT_OTHER })
}

fn verdict(is_refused: bool, is_harmed: bool) -> &'static str {
    match (is_refused, is_harmed) {
        (true, true) => "The late write did harm where nothing guards, and the guard refused it.",
        (true, false) => "The guard refused the late write.",
        (false, _) => "The late write was NOT refused.",
    }
}

/// How the two writes of an agent ended.
#[derive(Debug, PartialEq, Eq)]
struct Write {
    unguarded: u8,
    guarded: u8,
}

/// Writes as an agent, now.
async fn write(stage: &Stage, agent: &Agent, fence: FenceToken) -> Result<Write, Failure> {
    let writer = stage.start(agent, fence)?;
    stage.let_go(agent)?;
    ended(writer).await
}

/// How a writer's two writes ended.
async fn ended(writer: Child) -> Result<Write, Failure> {
    let ended = writer.wait_with_output().await.map_err(stage::not_run)?;
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    let mut codes = said.split_whitespace().map(str::parse);
    match (codes.next(), codes.next()) {
        (Some(Ok(unguarded)), Some(Ok(guarded))) => Ok(Write { unguarded, guarded }),
        _ => Err(Failure::Program(format!("a writer ended with {}: {said}", ended.status))),
    }
}
