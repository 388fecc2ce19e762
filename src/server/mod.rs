//! `pearing` from a data directory to an exit code: open, recover, serve, drain.

mod audit;
mod checkpoint;
mod progress;
mod setup;
mod timeline;

pub use audit::audit;

use std::convert::Infallible;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::audit::AuditError;
use crate::clock::{self, LedgerClock};
use crate::config::ServeOptions;
use crate::domain::id::Sequence;
use crate::domain::name::UserName;
use crate::domain::time::Time;
use crate::http;
use crate::ledger::pending::{Gap, Pending};
use crate::ledger::rocks::{OpenOptions, RocksLedger};
use crate::ledger::{Ledger, LedgerError};
use crate::service::recover;
use crate::service::{Options, Running, Service};

/// How often it is saved when tokens were last used.
const TOKEN_USE_SAVED_EVERY: Duration = Duration::from_secs(60);

/// How long an exit waits for reads that are under way.
const READS_END: Duration = Duration::from_secs(5);

/// Why the server, or a tool on its data directory, ended with an error.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The ledger can't be opened, or its storage failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The address can't be listened on.
    #[error("can't listen on {listen}: {error}")]
    Listen {
        /// The address.
        listen: std::net::SocketAddr,
        /// Why not.
        error: io::Error,
    },
    /// A file of the data directory, or the system, can't be used.
    #[error("{what}: {error}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        error: io::Error,
    },
    /// A tool of an auditor has no result, or found a fault.
    #[error(transparent)]
    Audit(AuditError),
    /// Ledger time never goes back, and fence tokens of a restored ledger are made from the clock.
    #[error(
        "the clock of this machine says {wall}, which is before {last}, the time of the last \
         record: set it right first"
    )]
    ClockBehind {
        /// The clock's time.
        wall: Time,
        /// The last record's.
        last: Time,
    },
    /// The writer broke a rule of its own and stopped before it could do harm.
    #[error("the writer has stopped: this is a bug; nothing unsynced was acknowledged")]
    Bug,
}

impl From<AuditError> for ServerError {
    fn from(error: AuditError) -> Self {
        match error {
            AuditError::Ledger(error) => Self::Ledger(error),
            AuditError::Fault(_)
            | AuditError::Io { .. }
            | AuditError::Asked(_)
            | AuditError::Cancelled => Self::Audit(error),
        }
    }
}

impl ServerError {
    /// The exit code of `pearing`, one of [`EXIT_CODES`](crate::config::EXIT_CODES).
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Io { .. }
            | Self::ClockBehind { .. }
            | Self::Audit(AuditError::Io { .. } | AuditError::Asked(_) | AuditError::Cancelled)
            | Self::Ledger(LedgerError::NotEmpty { .. }) => 1,
            Self::Audit(AuditError::Fault(_)) => 5,
            Self::Ledger(LedgerError::Missing { .. }) => 3,
            Self::Ledger(LedgerError::InUse { .. }) => 4,
            Self::Ledger(LedgerError::Corrupt { .. } | LedgerError::Unfinished { .. }) => 5,
            Self::Ledger(
                LedgerError::Failed { .. } | LedgerError::Stopped | LedgerError::HeadMoved { .. },
            ) => 6,
            // Made into the ledger's error by the conversion.
            Self::Audit(AuditError::Ledger(_)) => 6,
            Self::Listen { .. } => 7,
            Self::Bug => 70,
        }
    }

    fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |error| Self::Io { what, error }
    }
}

/// Makes a data directory with one administrator, and prints its token, alone, on stdout.
///
/// # Errors
///
/// [`ServerError`]: then no token was printed, and the directory is of no use.
pub fn init(data: &Path, admin: &UserName) -> Result<(), ServerError> {
    let token = setup::init(data, admin)?;
    writeln!(io::stdout(), "{token}").map_err(ServerError::io("printing the token"))
}

/// Serves for a first try: makes the data directory if there is none, and prints how to use it.
///
/// # Errors
///
/// [`ServerError`]
pub fn dev(data: &Path, options: &ServeOptions) -> Result<(), ServerError> {
    if !data.exists() {
        setup::dev(data)?;
    }
    let greeting = |url: &str| setup::greet(data, url);
    run(data, options, OpenOptions::default(), greeting)
}

/// Serves an existing data directory until SIGTERM or SIGINT.
///
/// # Errors
///
/// [`ServerError`]
pub fn serve(
    data: &Path,
    options: &ServeOptions,
    accept_loss_after: Option<u64>,
) -> Result<(), ServerError> {
    let open = OpenOptions { accept_loss_after: accept_loss_after.map(Sequence) };
    run(data, options, open, |_| Ok(()))
}

/// Opens and recovers the ledger, then serves it.
fn run(
    data: &Path,
    options: &ServeOptions,
    open: OpenOptions,
    greet: impl FnOnce(&str) -> io::Result<()>,
) -> Result<(), ServerError> {
    allow_descriptors();
    let (ledger, opened) = RocksLedger::open(data, open)?;
    let pending = Pending::read(&ledger)?;
    pending.require_finished()?;
    let gap = if opened.accepted_loss {
        Some(Gap::LossAccepted)
    } else {
        pending.gap.or(opened.dropped_tail.then_some(Gap::TornTailDropped))
    };
    if let Some(gap) = gap {
        tracing::warn!(?gap, "the ledger may have lost its last events: sequences jump");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(ServerError::io("starting the threads that serve"))?;
    let outcome = runtime.block_on(recover_and_serve(data, options, Arc::new(ledger), gap, greet));
    // A long read must not hold up the exit; it has nobody left to answer.
    runtime.shutdown_timeout(READS_END);
    outcome
}

/// Takes as many descriptors as the system gives: each feed has one, and what a process gets by
/// itself is often 1,024. A system that refuses only lets fewer connect.
fn allow_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        tracing::warn!(%error, ?limit, "the number of connections stays limited");
    }
}

async fn recover_and_serve(
    data: &Path,
    options: &ServeOptions,
    ledger: Arc<dyn Ledger>,
    gap: Option<Gap>,
    greet: impl FnOnce(&str) -> io::Result<()>,
) -> Result<(), ServerError> {
    let signals = Signals::listen().map_err(ServerError::io("listening for signals"))?;
    // Before anything is appended: a start that can't serve must use up nobody's grace. Who
    // connects meanwhile waits for the answer.
    let listen = options.listen;
    let socket = TcpListener::bind(listen).await;
    let socket = socket.map_err(|error| ServerError::Listen { listen, error })?;
    let bound = socket.local_addr().map_err(ServerError::io("asking for the address"))?;
    let checkpoints = checkpoint::open(data, options)?;
    let mut state = recover::replay(&*ledger)?;
    if matches!(gap, Some(Gap::Restored | Gap::Imported)) && clock::wall() < state.time() {
        return Err(ServerError::ClockBehind { wall: clock::wall(), last: state.time() });
    }
    let clock = LedgerClock::anchored_after(state.time());
    recover::resume(&mut state, &*ledger, gap, clock.now())?;
    let service_options = Options {
        limits: options.limits(),
        data: Some(PathBuf::from(data)),
        backup_dir: options.backup_dir.clone(),
        checkpoints,
        reserve_bytes: options.disk_reserve_mib.saturating_mul(1 << 20),
    };
    let head = state.head();
    let (service, running) = Service::start(ledger, state, clock, service_options)
        .map_err(ServerError::io("starting the service"))?;
    tracing::info!(address = %bound, %head, "serving");
    service.verify_in_background();
    greet(&format!("http://{bound}")).map_err(ServerError::io("printing how to connect"))?;
    let http_options = http::Options {
        requests_per_second_per_identity: options.requests_per_second_per_identity,
        requests_per_second_per_scope: options.requests_per_second_per_scope,
        feeds_per_identity: usize::try_from(options.feeds_per_identity).expect("it is 32 bits"),
        allowed_hosts: options.allowed_hosts.clone(),
    };
    let serving = http::serve(socket, service.clone(), &http_options, signals.arrive());
    until_drained(serving, service, running, options.checkpoint_every()).await
}

/// Saves something at once, and then again and again. It may block meanwhile.
async fn save_every(pause: Duration, save: impl FnOnce() + Clone + Send + 'static) -> Infallible {
    loop {
        let saved = tokio::task::spawn_blocking(save.clone()).await;
        saved.expect("saving doesn't panic, and nobody aborts it");
        tokio::time::sleep(pause).await;
    }
}

/// The signals that drain the server.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn arrive(mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
        tracing::info!("draining");
    }
}

/// Serves until a signal or a storage error. After a signal, what is in flight is answered.
async fn until_drained(
    serving: impl Future<Output = ()>,
    service: Service,
    running: Running,
    checkpoint_every: Duration,
) -> Result<(), ServerError> {
    let Running { mut ended, failed } = running;
    let (users, signed) = (service.clone(), service.clone());
    let save_token_use = move || users.save_token_use();
    let save_checkpoint = move || signed.save_checkpoint();
    let outcome = tokio::select! {
        // The storage failed: nothing more can be promised, so nothing more is said.
        outcome = &mut ended => outcome,
        Ok(error) = failed => Ok(Err(error)),
        never = save_every(TOKEN_USE_SAVED_EVERY, save_token_use) => match never {},
        never = save_every(checkpoint_every, save_checkpoint) => match never {},
        () = serving => {
            service.stop();
            ended.await
        }
    };
    service.end_long_work();
    match outcome {
        Ok(Ok(())) => {
            service.save_token_use();
            service.save_checkpoint();
            Ok(())
        }
        Ok(Err(error)) => Err(ServerError::Ledger(error)),
        Err(_) => Err(ServerError::Bug),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// Time is simulated: a pause takes none.
    #[tokio::test(start_paused = true)]
    async fn what_is_saved_now_and_then_is_saved_at_once_and_after_each_pause() {
        let hour = Duration::from_secs(3600);
        for (length, times) in
            [(Duration::from_secs(1), 1), (hour.mul_f64(0.99), 1), (hour.mul_f64(3.01), 4)]
        {
            let saved = Arc::new(AtomicU32::new(0));
            let counted = Arc::clone(&saved);
            let save = move || {
                counted.fetch_add(1, Ordering::Relaxed);
            };
            let ended = tokio::time::timeout(length, save_every(hour, save)).await;
            assert!(ended.is_err(), "it never ends by itself");
            assert_eq!(saved.load(Ordering::Relaxed), times, "{length:?}");
        }
    }
}
