//! Long work over the whole ledger, beside everything else: verifications and backups.
//!
//! It runs in threads of its own, on the ledger as it was when the work began, so the writer never
//! waits for it. A start verifies in the background what its snapshot let it pass over, and rests
//! between its steps; what somebody asked for goes at full speed.
//!
//! What a verification finds damaged ends the service, as any other read of damage does: what is
//! damaged may be what a decision rests on. That the rules of this version make something else of
//! an event is told, and ends nothing.

use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{Service, ServiceError, query};
use crate::audit::{self, AuditError, FaultKind, Progress, Records, verify};
use crate::clock;
use crate::domain::id::{Sequence, TokenId};
use crate::domain::refusal::Refusal;
use crate::ledger::LedgerError;
use crate::wire::verification::{BackupStatus, Fault, Verification, VerificationStatus};

/// How many times as long as a step the rest after it is: about a fifth of one processor.
const REST: u32 = 4;

/// The work that was done last, or goes on.
#[derive(Debug, Default)]
pub(super) struct LongWork {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    verification: Option<VerificationStatus>,
    backup: Option<BackupStatus>,
    /// Whether somebody waits for a verification that began in the background.
    is_hurried: bool,
    is_ending: bool,
    threads: Vec<JoinHandle<()>>,
}

impl LongWork {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has all work end soon, and waits for that.
    pub(super) fn end(&self) {
        self.lock().is_ending = true;
        self.changed.notify_all();
        let threads = std::mem::take(&mut self.lock().threads);
        for thread in threads {
            // One that panicked has told so.
            let _ = thread.join();
        }
    }

    /// Rests, unless all is to end, or somebody waits.
    fn rest(&self, length: Duration) {
        let state = self.lock();
        let is_resting = |state: &mut State| !state.is_ending && !state.is_hurried;
        drop(self.changed.wait_timeout_while(state, length, is_resting));
    }
}

/// Whose speed counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// Somebody waits for it.
    Full,
    /// Everything else comes first.
    Resting,
}

/// Notes how far some work is.
struct Reached<'a> {
    work: &'a LongWork,
    pace: Pace,
    since: Instant,
    note: fn(&mut State, Sequence),
}

impl Progress for Reached<'_> {
    fn begin(&mut self, _: Option<Sequence>) {}

    fn reach(&mut self, sequence: Sequence) {
        (self.note)(&mut self.work.lock(), sequence);
        if self.pace == Pace::Resting {
            self.work.rest(clock::elapsed(self.since) * REST);
        }
        self.since = clock::monotonic();
    }

    fn is_cancelled(&self) -> bool {
        self.work.lock().is_ending
    }
}

impl Service {
    /// Verifies the whole ledger in the background.
    pub fn verify_in_background(&self) {
        self.begin_verification(Pace::Resting);
    }

    /// Verifies the whole ledger, unless that is going on. For the server's administrators.
    ///
    /// # Errors
    /// [`ServiceError`]
    pub fn verify(&self, caller: TokenId) -> Result<VerificationStatus, ServiceError> {
        self.look(caller, query::require_server_admin)?;
        self.begin_verification(Pace::Full);
        self.verification(caller)
    }

    /// How far the last verification is.
    ///
    /// # Errors
    /// [`ServiceError`]
    pub fn verification(&self, caller: TokenId) -> Result<VerificationStatus, ServiceError> {
        self.look(caller, query::require_server_admin)?;
        let status = self.0.long_work.lock().verification.clone();
        let head = self.read(|state| state.head());
        status.ok_or_else(|| query::refused(Refusal::NotFound("verification"), head))
    }

    fn begin_verification(&self, pace: Pace) {
        let began_at = self.now();
        let head = self.read(|state| state.head());
        let mut state = self.0.long_work.lock();
        if state.is_ending {
            return;
        }
        state.is_hurried = pace == Pace::Full;
        if state.verification.as_ref().is_some_and(|status| status.is_running) {
            self.0.long_work.changed.notify_all();
            return;
        }
        let status = VerificationStatus {
            is_running: true,
            began_at,
            ended_at: None,
            reached: Sequence::ZERO,
            head,
            result: None,
            error: None,
        };
        let service = self.clone();
        if spawn(&mut state, "pearing-verifier", move || service.run_verification(pace)) {
            state.verification = Some(status);
        }
    }

    fn run_verification(&self, pace: Pace) {
        let work = &self.0.long_work;
        let note = |state: &mut State, sequence| {
            if let Some(status) = &mut state.verification {
                status.reached = sequence;
            }
        };
        let mut reached = Reached { work, pace, since: clock::monotonic(), note };
        let found = self.0.ledger.frozen().map_err(AuditError::Ledger).and_then(|ledger| {
            if let Some(status) = &mut work.lock().verification {
                status.head = ledger.head().sequence;
            }
            verify::ledger(&*ledger, &mut reached, |_| Ok(()))
        });
        let (result, error) = match found {
            Ok(verification) => {
                self.0.metrics.verified_sequence.set(gauge(verification.sequence));
                self.act_on(&verification);
                (Some(verification), None)
            }
            Err(AuditError::Cancelled) => (None, Some(AuditError::Cancelled.to_string())),
            Err(error) => {
                tracing::error!(%error, "the ledger can't be verified");
                if let AuditError::Ledger(error) = &error {
                    self.0.fail_stop.fail(error.clone());
                }
                (None, Some(error.to_string()))
            }
        };
        let ended_at = Some(self.now());
        if let Some(status) = &mut work.lock().verification {
            (status.is_running, status.ended_at) = (false, ended_at);
            (status.result, status.error) = (result, error);
        }
    }

    fn act_on(&self, verification: &Verification) {
        let Some(fault) = &verification.fault else {
            tracing::info!(sequence = verification.sequence.0, "the ledger is verified");
            return;
        };
        self.0.metrics.ledger_faults.inc();
        tracing::error!(kind = fault.kind.as_str(), %fault, "the ledger is not good");
        match fault.kind {
            FaultKind::Storage
            | FaultKind::Record
            | FaultKind::Order
            | FaultKind::Chain
            | FaultKind::Table => self.0.fail_stop.fail(damage(fault)),
            FaultKind::Rule | FaultKind::Checkpoint => {}
        }
    }

    /// Makes a backup below `folder`, unless one is being made. For the server's administrators.
    ///
    /// # Errors
    /// [`ServiceError`]
    pub fn back_up(&self, caller: TokenId) -> Result<BackupStatus, ServiceError> {
        self.look(caller, query::require_server_admin)?;
        let (began_at, head) = (self.now(), self.read(|state| state.head()));
        let Some(folder) = self.0.backup_dir.clone() else {
            let what = "backup folder: the server was started without --backup-dir";
            return Err(query::refused(Refusal::NotFound(what), head));
        };
        {
            let mut state = self.0.long_work.lock();
            let is_running = state.backup.as_ref().is_some_and(|status| status.is_running);
            if !is_running && !state.is_ending {
                let name = format!("backup-{head}");
                let to = folder.join(&name);
                let status = BackupStatus {
                    name,
                    is_running: true,
                    began_at,
                    ended_at: None,
                    reached: Sequence::ZERO,
                    head,
                    hash: None,
                    error: None,
                };
                let service = self.clone();
                if spawn(&mut state, "pearing-backup", move || service.run_backup(&to)) {
                    state.backup = Some(status);
                }
            }
        }
        self.backup(caller)
    }

    /// How far the last backup is.
    ///
    /// # Errors
    /// [`ServiceError`]
    pub fn backup(&self, caller: TokenId) -> Result<BackupStatus, ServiceError> {
        self.look(caller, query::require_server_admin)?;
        let status = self.0.long_work.lock().backup.clone();
        let head = self.read(|state| state.head());
        status.ok_or_else(|| query::refused(Refusal::NotFound("backup"), head))
    }

    fn run_backup(&self, to: &Path) {
        let work = &self.0.long_work;
        let note = |state: &mut State, sequence| {
            if let Some(status) = &mut state.backup {
                status.reached = sequence;
            }
        };
        let mut reached = Reached { work, pace: Pace::Full, since: clock::monotonic(), note };
        let made =
            self.0.ledger.frozen().map_err(AuditError::Ledger).and_then(|ledger| {
                audit::backup(Records::of(&*ledger), to, self.now(), &mut reached)
            });
        let ended_at = Some(self.now());
        if let Some(status) = &mut work.lock().backup {
            (status.is_running, status.ended_at) = (false, ended_at);
            match made {
                Ok(copied) => {
                    tracing::info!(sequence = copied.head.sequence.0, "a backup is made");
                    (status.head, status.reached) = (copied.head.sequence, copied.head.sequence);
                    status.hash = Some(copied.head.hash.to_string());
                }
                Err(error) => {
                    tracing::error!(%error, "no backup could be made");
                    status.error = Some(error.to_string());
                }
            }
        }
    }
}

/// Begins some work in a thread of its own, which ends by itself, or when the service does. Says
/// whether there is one.
fn spawn(state: &mut State, name: &str, work: impl FnOnce() + Send + 'static) -> bool {
    state.threads.retain(|thread| !thread.is_finished());
    match std::thread::Builder::new().name(name.to_owned()).spawn(work) {
        Ok(thread) => state.threads.push(thread),
        Err(error) => {
            tracing::error!(%error, name, "no thread for long work");
            return false;
        }
    }
    true
}

fn damage(fault: &Fault) -> LedgerError {
    LedgerError::Corrupt { what: format!("{fault}; pearing verify tells more") }
}

fn gauge(sequence: Sequence) -> i64 {
    i64::try_from(sequence.0).expect("a sequence is below 2^53")
}
