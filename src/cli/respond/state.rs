//! What a responder must know after it was killed: how far it has come, and what it was at.
//!
//! One file, replaced as a whole and synced, and only ever by the one process that has the claim.
//! What is to be undone is written down before it is done: the request before it is sent, the
//! process group before the command begins. That a command has ended well stands in a note beside,
//! which is written faster than a file is replaced and synced: the shorter that takes, the rarer a
//! kill in between has a command run again.

use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::super::Failure;
use super::super::group::Leftover;
use super::super::private::Claim;
use crate::client::Acquire;
use crate::domain::hex;
use crate::domain::id::{FenceToken, Sequence, TicketId};
use crate::domain::name::LockName;
use crate::domain::scope::Scope;
use crate::domain::thread::ThreadNumber;

/// The note's name, behind that of the file. It says the ticket under which a command has ended
/// well.
const DONE: &str = ".done";

/// What a state is of. Where this is another, its cursor means something else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct About {
    pub(super) server: String,
    pub(super) repo: Scope,
    pub(super) on: Vec<String>,
    pub(super) lock: String,
}

/// The name of the file of a user's state.
pub(super) fn file_name(user: &str, about: &About) -> String {
    let about = serde_json::to_string(about).expect("plain values");
    let hash = Sha256::digest(format!("{user}\n{about}"));
    let mut name = "respond-".to_owned();
    hex::write(&mut name, &hash[..8]).expect("a text takes all");
    name + ".json"
}

/// What is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    about: About,
    /// Up to where every event is finished, skipped or given up.
    cursor: Option<Sequence>,
    /// The event that is worked on.
    event: Option<Current>,
}

/// An event that is worked on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Current {
    sequence: Sequence,
    /// How often the command has failed.
    failures: u32,
    attempt: Option<Attempt>,
}

/// An attempt that is not settled: its ticket may be alive, and its command may run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Attempt {
    pub(super) thread: ThreadNumber,
    pub(super) lock_name: LockName,
    /// What is asked, so that the same can be asked again.
    pub(super) ask: Acquire,
    /// What is known once the command is about to begin.
    pub(super) command: Option<Running>,
}

/// A command that may run, or has run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Running {
    pub(super) ticket_id: TicketId,
    pub(super) fence_token: FenceToken,
    pub(super) group: Leftover,
    /// Whether it has ended well, and only the mark is missing. The note says so.
    #[serde(skip)]
    pub(super) is_done: bool,
}

/// The state, and the right to change it.
pub(super) struct State {
    claim: Claim,
    kept: Kept,
}

impl State {
    /// Takes a state over, or begins one after `after`.
    pub(super) async fn open(
        path: &Path,
        about: About,
        after: Option<Sequence>,
    ) -> Result<Self, Failure> {
        let claim = Claim::wait_for(path).await?;
        let text = claim.read()?;
        if text.is_empty() {
            return Ok(Self { claim, kept: Kept { about, cursor: after, event: None } });
        }
        let unusable = |why: String| Failure::Usage(format!("{}: {why}", path.display()));
        let kept: Kept = serde_json::from_str(&text)
            .map_err(|error| unusable(format!("is no state: {error}")))?;
        if kept.about != about {
            let About { server, repo, on, lock } = &kept.about;
            let on = on.join(",");
            return Err(unusable(format!(
                "is of another responder (of {server}, --repo {repo} --on {on} --lock {lock}): \
                 name another file by --cursor"
            )));
        }
        let mut state = Self { claim, kept };
        let done = state.claim.note(DONE);
        if let Some(running) = state.running() {
            running.is_done = done == running.ticket_id.to_string();
        }
        Ok(state)
    }

    fn running(&mut self) -> Option<&mut Running> {
        self.kept.event.as_mut()?.attempt.as_mut()?.command.as_mut()
    }

    /// Up to where everything is done.
    pub(super) fn cursor(&self) -> Option<Sequence> {
        self.kept.cursor
    }

    /// The attempt that is not settled, and at which event.
    pub(super) fn attempt(&self) -> Option<(Sequence, Attempt)> {
        let event = self.kept.event.as_ref()?;
        Some((event.sequence, event.attempt.clone()?))
    }

    /// Moves the cursor. It is not worth a write: what it passes over is passed over again.
    pub(super) fn pass(&mut self, sequence: Sequence) {
        self.kept.cursor = Some(sequence);
    }

    /// Writes how far it has come.
    pub(super) fn save(&self) -> Result<(), Failure> {
        let text = serde_json::to_string(&self.kept).expect("plain values");
        self.claim.replace(&(text + "\n"))
    }

    /// Notes an attempt, before anything of it is sent.
    pub(super) fn begin(&mut self, sequence: Sequence, attempt: Attempt) -> Result<(), Failure> {
        let known = self.kept.event.take().filter(|event| event.sequence == sequence);
        let failures = known.map_or(0, |event| event.failures);
        self.kept.event = Some(Current { sequence, failures, attempt: Some(attempt) });
        self.save()
    }

    /// Notes the command of the attempt, before it begins.
    pub(super) fn run(&mut self, command: Running) -> Result<(), Failure> {
        if let Some(attempt) = self.kept.event.as_mut().and_then(|event| event.attempt.as_mut()) {
            attempt.command = Some(command);
        }
        self.save()
    }

    /// Notes that the command of the attempt has ended well. A note that can't be left is no reason
    /// not to go on to the mark.
    pub(super) fn done(&mut self) {
        if let Some(running) = self.running() {
            running.is_done = true;
            let ticket_id = running.ticket_id.to_string();
            let _ = self.claim.leave_note(DONE, &ticket_id);
        }
    }

    /// Notes that nothing of the attempt is left.
    pub(super) fn settle(&mut self) -> Result<(), Failure> {
        if let Some(event) = &mut self.kept.event {
            event.attempt = None;
        }
        self.save()
    }

    /// Notes that the command has failed. Says how often by now.
    pub(super) fn fail(&mut self) -> Result<u32, Failure> {
        let Some(event) = &mut self.kept.event else { return Ok(0) };
        event.failures = event.failures.saturating_add(1);
        let failures = event.failures;
        self.save()?;
        Ok(failures)
    }

    /// Notes that the event is over, in whichever way.
    pub(super) fn finish(&mut self, sequence: Sequence) -> Result<(), Failure> {
        self.kept.event = None;
        self.pass(sequence);
        self.save()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::RequestUuid;

    fn about(lock: &str) -> About {
        About {
            server: "http://127.0.0.1:7420".to_owned(),
            repo: "teams/platform/website".parse().expect("a repository"),
            on: vec!["thread.*".to_owned()],
            lock: lock.to_owned(),
        }
    }

    fn attempt() -> Attempt {
        let ask = Acquire {
            request_uuid: RequestUuid(uuid::Uuid::from_u128(7)),
            lease_seconds: Some(5.try_into().expect("a lease")),
            wait_seconds: None,
            note: None,
            reentrant: Some(false),
        };
        let thread = 42.try_into().expect("a number");
        Attempt { thread, lock_name: "work.42".parse().expect("a name"), ask, command: None }
    }

    fn running() -> Running {
        let own = rustix::process::getpid();
        let group = Leftover::of(own).expect("we run");
        let ticket_id = TicketId(uuid::Uuid::from_u128(8));
        Running { ticket_id, fence_token: FenceToken(Sequence(4)), group, is_done: false }
    }

    #[test]
    fn each_user_and_each_thing_that_is_responded_to_has_its_own_file() {
        let name = file_name("ana", &about("work.{thread}"));
        assert_eq!(name, file_name("ana", &about("work.{thread}")));
        assert_ne!(name, file_name("bo", &about("work.{thread}")));
        assert_ne!(name, file_name("ana", &about("other.{thread}")));
        assert!(name.starts_with("respond-") && name.ends_with(".json") && name.len() == 29);
    }

    #[tokio::test]
    async fn what_is_to_be_undone_is_found_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("deep/state.json");
        let open = || State::open(&path, about("work.{thread}"), Some(Sequence(3)));
        let mut state = open().await.expect("a new one");
        assert_eq!((state.cursor(), state.attempt()), (Some(Sequence(3)), None));
        state.begin(Sequence(5), attempt()).expect("it can be written");
        drop(state);

        let mut state = open().await.expect("the same");
        assert_eq!(state.attempt(), Some((Sequence(5), attempt())));
        state.done();
        state.run(running()).expect("it can be written");
        drop(state);

        let mut state = open().await.expect("the same");
        let command = |state: &State| state.attempt().and_then(|(_, attempt)| attempt.command);
        assert_eq!(command(&state), Some(running()));
        state.done();
        drop(state);

        let mut state = open().await.expect("the same");
        assert_eq!(command(&state), Some(Running { is_done: true, ..running() }));
        state.settle().expect("it can be written");
        assert_eq!(state.fail().expect("it can be written"), 1);
        drop(state);

        // The note of another ticket says nothing of this one.
        let mut state = open().await.expect("the same");
        state.begin(Sequence(5), attempt()).expect("it can be written");
        let ticket_id = TicketId(uuid::Uuid::from_u128(9));
        state.run(Running { ticket_id, ..running() }).expect("it can be written");
        drop(state);
        let mut state = open().await.expect("the same");
        assert_eq!(command(&state), Some(Running { ticket_id, ..running() }));
        state.settle().expect("it can be written");
        drop(state);

        // A further attempt at the same event knows of the failure, and one at another doesn't.
        let mut state = open().await.expect("the same");
        assert_eq!(state.attempt(), None);
        state.begin(Sequence(5), attempt()).expect("it can be written");
        assert_eq!(state.fail().expect("it can be written"), 2);
        state.begin(Sequence(6), attempt()).expect("it can be written");
        assert_eq!(state.fail().expect("it can be written"), 1);
        state.finish(Sequence(6)).expect("it can be written");
        state.pass(Sequence(9));
        drop(state);
        let state = open().await.expect("the same");
        assert_eq!((state.cursor(), state.attempt()), (Some(Sequence(6)), None));
    }

    #[tokio::test]
    async fn a_state_of_something_else_is_refused_and_so_is_garbage() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state.json");
        let state = State::open(&path, about("work.{thread}"), None).await.expect("a new one");
        state.save().expect("it can be written");
        drop(state);
        let failure = State::open(&path, about("other.{thread}"), None).await.err();
        let failure = failure.expect("it is of another");
        assert_eq!(failure.exit_code(), 2);
        assert!(failure.to_string().contains("--lock work.{thread}"), "{failure}");
        std::fs::write(&path, "{}").expect("it is ours");
        let failure = State::open(&path, about("work.{thread}"), None).await.err();
        assert!(failure.expect("garbage").to_string().contains("is no state"));
    }

    /// Time is simulated: the wait for the other process takes none.
    #[tokio::test(start_paused = true)]
    async fn one_process_at_a_time_has_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state.json");
        let first = State::open(&path, about("work.{thread}"), None).await.expect("a new one");
        let waits = State::open(&path, about("work.{thread}"), None);
        let waited = tokio::time::timeout(std::time::Duration::from_secs(1), waits).await;
        assert!(waited.is_err(), "the first still has it");
        drop(first);
    }
}
