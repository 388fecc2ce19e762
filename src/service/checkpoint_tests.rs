//! What is signed, for whom, and what is kept of it.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use uuid::Uuid;

use super::*;
use crate::clock::LedgerClock;
use crate::domain::command::{Caller, Command};
use crate::domain::event::{Event, LedgerOpened};
use crate::domain::id::LedgerId;
use crate::domain::name::{Actor, UserName};
use crate::domain::time::Time;
use crate::domain::{Limits, State};
use crate::ledger::Ledger as _;
use crate::ledger::memory::MemoryLedger;
use crate::service::batch::Batch;
use crate::service::{Options, Running, recover};
use crate::wire::token;

const ADMIN: TokenId = TokenId(Uuid::from_u128(1));
const WRITER: TokenId = TokenId(Uuid::from_u128(2));

fn key() -> Key {
    Key::from_random(&[7; 32])
}

/// A ledger with an administrator and another user.
fn ledger() -> (Arc<MemoryLedger>, State) {
    let (ledger, mut state) = (Arc::new(MemoryLedger::default()), State::default());
    let limits = Limits::default();
    let mut batch = Batch::open(&mut state, &*ledger, &limits, Time::from_millis(0));
    let ledger_id = LedgerId(Uuid::from_u128(9));
    batch.record(Actor::Ledger, Event::LedgerOpened(LedgerOpened { ledger_id }));
    for (token_id, name) in [(ADMIN, "ana"), (WRITER, "bo")] {
        let user: UserName = name.parse().expect("a name");
        let sha256 = token::hash(name);
        for command in [
            Command::CreateUser { user: user.clone(), admin: token_id == ADMIN },
            Command::IssueToken { token_id, user, sha256, label: None, expires_in_days: None },
        ] {
            let decided = batch.decide(Caller::Ledger, &command).expect("the memory can be read");
            decided.expect("nothing stands against the first users");
        }
    }
    ledger.append(&batch.close().0).expect("the memory doesn't fail");
    (ledger, state)
}

fn start(
    ledger: &Arc<MemoryLedger>,
    state: State,
    with: Option<Checkpoints>,
) -> (Service, Running) {
    let (limits, clock) = (Limits::default(), LedgerClock::anchored_after(state.time()));
    let options =
        Options { limits, data: None, backup_dir: None, checkpoints: with, reserve_bytes: 0 };
    Service::start(ledger.clone(), state, clock, options).expect("a thread")
}

fn add_team(name: &str) -> Command {
    Command::CreateTeam { team: name.parse().expect("a name") }
}

#[tokio::test]
async fn an_administrator_gets_a_note_of_what_is_published_and_of_nothing_else() {
    let (ledger, state) = ledger();
    let mut ahead = state.clone();
    let limits = Limits::default();
    let mut batch = Batch::open(&mut ahead, &*ledger, &limits, Time::from_millis(5));
    let decided = batch.decide(Caller::Ledger, &add_team("core")).expect("it can be read");
    decided.expect("nothing stands against it");
    ledger.append(&batch.close().0).expect("the memory doesn't fail");
    assert!(ledger.head().sequence > state.head(), "the ledger is ahead of what is published");

    let with = Some(Checkpoints { key: key(), folder: None });
    let (service, _running) = start(&ledger, state.clone(), with);
    let signed = service.checkpoint(ADMIN).expect("it administers the server");
    let last = ledger.records(Sequence(state.head().0 - 1), 1).expect("it can be read").remove(0);
    assert_eq!((signed.sequence, signed.hash), (state.head(), last.hash.to_string()));
    assert_eq!((Some(signed.ledger_id), signed.time), (state.ledger_id(), state.time()));
    let note: Note = signed.note.parse().expect("it is a note");
    assert_eq!((note.checkpoint.sequence, note.checkpoint.hash), (state.head(), last.hash));
    assert!(key().public().has_signed(&note));

    let refused = |caller, service: &Service| match service.checkpoint(caller) {
        Err(ServiceError::Refused(refused)) => refused.refusal,
        other => panic!("{other:?}"),
    };
    assert!(matches!(refused(WRITER, &service), Refusal::Forbidden(_)));
    let (keyless, _running) = start(&ledger, state, None);
    assert!(matches!(refused(WRITER, &keyless), Refusal::Forbidden(_)));
    assert!(matches!(
        refused(ADMIN, &keyless),
        Refusal::NotFound(what) if what.contains("--checkpoint-key")
    ));
    keyless.save_checkpoint();
}

#[tokio::test]
async fn each_head_is_kept_once_and_what_failed_is_kept_the_next_time() {
    let (folder, data) = (tempfile::tempdir(), tempfile::tempdir());
    let (folder, data) = (folder.expect("a folder"), data.expect("a folder"));
    let notes = Folder::open(folder.path(), data.path()).expect("it is there");
    let (ledger, state) = ledger();
    let first = state.head();
    let with = Some(Checkpoints { key: key(), folder: Some(notes) });
    let (service, running) = start(&ledger, state, with.clone());
    let told = |service: &Service| {
        let metrics = service.metrics();
        (metrics.checkpoint_sequence.get(), metrics.checkpoint_failures.get())
    };
    let note = |sequence: Sequence| folder.path().join(format!("{sequence}.checkpoint"));
    let sequence = |sequence: Sequence| i64::try_from(sequence.0).expect("it is small");
    assert_eq!(told(&service), (0, 0));
    service.save_checkpoint();
    assert_eq!(told(&service), (sequence(first), 0));
    let text = fs::read_to_string(note(first)).expect("it was kept");
    assert_eq!(text, service.checkpoint(ADMIN).expect("it may").note);

    // Nothing has happened: nothing is written, not even what somebody took away.
    fs::remove_file(note(first)).expect("it is there");
    service.save_checkpoint();
    assert!(is_empty(folder.path()));

    let second = service.administer(ADMIN, add_team("core")).await.expect("it may");
    fs::remove_dir(folder.path()).expect("it is empty");
    service.save_checkpoint();
    service.save_checkpoint();
    assert_eq!(told(&service), (sequence(first), 2));
    fs::create_dir(folder.path()).expect("it was removed");
    service.save_checkpoint();
    assert_eq!(told(&service), (sequence(second), 2));
    assert!(note(second).exists());

    service.stop();
    running.ended.await.expect("the writer tells").expect("the memory doesn't fail");
    let recovered = recover::replay(&*ledger).expect("it is good");
    let (again, _running) = start(&ledger, recovered, with);
    again.save_checkpoint();
    assert_eq!(told(&again), (sequence(second), 0), "a start takes what is there for its own");
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).expect("it is there").next().is_none()
}
