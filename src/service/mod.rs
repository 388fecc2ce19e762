//! The service: one method for each operation, one writer behind them.
//!
//! Commands go through the queue to the writer (`writer.rs`, the pipeline). Reads take the
//! published state, which is always that of a durable append; only what is over (ended tickets,
//! history, events) is looked up in the ledger.

mod admission;
pub mod batch;
mod checkpoint;
mod disk;
pub mod draw;
mod ending;
mod fail_stop;
mod feed_session;
mod long_work;
mod measure;
pub mod query;
mod queue;
mod readers;
pub mod recover;
mod show;
mod token_use;
mod watch;
mod writer;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

use subtle::ConstantTimeEq;
use tokio::sync::{oneshot, watch as tokio_watch};

use crate::clock::{self, LedgerClock};
use crate::domain::command::{Caller, Command};
use crate::domain::event::Record;
use crate::domain::id::{FenceToken, ReplyId, Sequence, TicketId, TokenId};
use crate::domain::name::UserName;
use crate::domain::refusal::Refusal;
use crate::domain::scope::LockKey;
use crate::domain::text::ShortText;
use crate::domain::thread::ThreadKey;
use crate::domain::ticket::TicketInput;
use crate::domain::time::{LeaseSeconds, Time};
use crate::domain::{Limits, State};
use crate::feed::live::Live;
use crate::ledger::{Ledger, LedgerError};
use crate::metrics::Metrics;
use crate::random;
use crate::wire::token;
use crate::wire::view::{ActivityView, LockView, TicketAnswer, TicketView};

pub use checkpoint::Checkpoints;

use checkpoint::Signing;
use disk::Disk;
use fail_stop::FailStop;
use feed_session::FeedSessions;
use long_work::LongWork;
use queue::{Lane, Queue, Rejected};
use readers::Readers;
use token_use::TokenUse;
use watch::TicketWatch;
use writer::{Ask, Writer};

/// How a service runs.
#[derive(Debug, Clone)]
pub struct Options {
    /// How much one identity or one lock may take up.
    pub limits: Limits,
    /// Where the ledger lies, if it is on a disk whose free space is to be watched.
    pub data: Option<PathBuf>,
    /// Where backups are made, if they are.
    pub backup_dir: Option<PathBuf>,
    /// What checkpoints are signed with, if they are.
    pub checkpoints: Option<Checkpoints>,
    /// Free space, in bytes, below which new work is refused.
    pub reserve_bytes: u64,
}

/// A handle to the service; clones are the same service.
#[derive(Clone)]
pub struct Service(Arc<Shared>);

/// What the writer and the readers share.
struct Shared {
    ledger: Arc<dyn Ledger>,
    clock: LedgerClock,
    /// The state of the last durable append.
    published: RwLock<State>,
    queue: Queue<Ask>,
    watch: TicketWatch,
    /// The newest records, for the feeds.
    live: Arc<Live>,
    head: tokio_watch::Sender<Sequence>,
    draining: tokio_watch::Sender<bool>,
    has_stopped: AtomicBool,
    disk: Disk,
    token_use: TokenUse,
    metrics: Metrics,
    readers: Readers,
    began: Instant,
    feed_sessions: FeedSessions,
    fail_stop: Arc<FailStop>,
    long_work: LongWork,
    backup_dir: Option<PathBuf>,
    signing: Signing,
}

/// A token that works, and who it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The token's public part.
    pub token_id: TokenId,
    /// The user.
    pub user: UserName,
}

/// A refusal, with what its answer shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Why.
    pub refusal: Refusal,
    /// The ticket that it is about, as it is now.
    pub ticket: Option<TicketView>,
    /// The state that this was judged by.
    pub sequence: Sequence,
}

/// Why an operation has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServiceError {
    /// The caller's business.
    Refused(Box<Refused>),
    /// Too much at once: ask again soon.
    Busy,
    /// The server is about to stop: ask again when it is back.
    Draining,
    /// The disk is nearly full: nothing new is taken on.
    DiskFull,
    /// The storage failed. Whether the command was carried out is unknown.
    Stopped,
}

/// What a command's caller is told.
enum Told {
    Ticket(Box<TicketAnswer>),
    Lock(Box<LockView>),
    Thread(Box<ThreadTold>),
    Activity(Box<ActivityTold>),
    Done(Sequence),
}

/// What the writer of a thread is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadTold {
    /// The thread.
    pub thread: ThreadKey,
    /// What was written; `None` if it had been written before, or was so already.
    pub record: Option<Record>,
    /// The event that wrote it, now or before.
    pub written: Option<Sequence>,
    /// Whether it had been written before, under the same request UUID.
    pub is_replay: bool,
    /// The state at the end of the append.
    pub sequence: Sequence,
}

/// What a user is told who said what it is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActivityTold {
    /// What it says now.
    pub activity: ActivityView,
    /// Whether it had said so before, under the same request UUID.
    pub is_replay: bool,
    /// The state that this shows.
    pub sequence: Sequence,
}

/// The running writer.
pub struct Running {
    /// Resolves when the writer has ended: after [`Service::stop`], or on a storage error.
    pub ended: oneshot::Receiver<Result<(), LedgerError>>,
    /// Resolves with the first failure of the ledger, whoever met it.
    pub failed: oneshot::Receiver<LedgerError>,
}

impl Service {
    /// Starts the writer on the state of the ledger's head.
    ///
    /// # Errors
    ///
    /// The operating system's, if there can be no further thread, or a file of the data directory
    /// can't be used.
    pub fn start(
        ledger: Arc<dyn Ledger>,
        state: State,
        clock: LedgerClock,
        options: Options,
    ) -> std::io::Result<(Self, Running)> {
        let (fail_stop, failed) = FailStop::new(ledger);
        let fail_stop = Arc::new(fail_stop);
        let shared = Arc::new(Shared {
            ledger: Arc::clone(&fail_stop) as Arc<dyn Ledger>,
            fail_stop,
            long_work: LongWork::default(),
            backup_dir: options.backup_dir,
            signing: Signing::new(options.checkpoints),
            clock,
            live: Arc::new(Live::new(state.head())),
            head: tokio_watch::Sender::new(state.head()),
            published: RwLock::new(state.clone()),
            queue: Queue::new(),
            watch: TicketWatch::default(),
            draining: tokio_watch::Sender::new(false),
            has_stopped: AtomicBool::new(false),
            feed_sessions: FeedSessions::open(options.data.as_deref())?,
            token_use: TokenUse::open(options.data.clone()),
            disk: Disk::new(options.data, options.reserve_bytes),
            metrics: Metrics::default(),
            readers: Readers::default(),
            began: clock::monotonic(),
        });
        let (done, ended) = oneshot::channel();
        let guard = StopGuard(Arc::clone(&shared));
        let writer = Writer::new(Arc::clone(&shared), state, options.limits);
        // It ends by itself, when the queue is closed; `ended` tells.
        std::thread::Builder::new().name("pearing-writer".to_owned()).spawn(move || {
            let outcome = writer.run();
            drop(guard);
            let _ = done.send(outcome);
        })?;
        Ok((Self(shared), Running { ended, failed }))
    }

    /// Who a token's text stands for; `None` if the token is unknown, wrong, revoked or expired.
    /// Takes as long for an unknown one as for a wrong one. Notes that one that works is used.
    pub fn authenticate(&self, token_text: &str) -> Option<Identity> {
        let token_id = token::parse(token_text)?;
        let hash = token::hash(token_text);
        let now = self.now();
        let identity = self.read(|state| {
            let token = state.access().token(token_id);
            let expected = token.map_or([0; 32], |token| token.sha256.0);
            let is_equal = bool::from(expected.ct_eq(&hash.0));
            let token = token.filter(|token| is_equal && token.is_live(now))?;
            Some(Identity { token_id, user: token.user.clone() })
        })?;
        self.0.token_use.note(token_id, now);
        Some(identity)
    }

    /// When a token was last used, rounded down to the hour; `None` if it isn't known that it was.
    pub fn token_last_used_at(&self, token_id: TokenId) -> Option<Time> {
        self.0.token_use.last(token_id)
    }

    /// Saves when tokens were last used, if that has changed. It is no harm if that fails.
    pub fn save_token_use(&self) {
        if let Err(error) = self.0.token_use.save() {
            tracing::warn!(%error, "can't save when tokens were last used");
        }
    }

    /// Takes a lock, joins an own hold, waits, or learns why not.
    ///
    /// # Errors
    ///
    /// [`ServiceError`]; contended and rejected tickets are answers.
    pub async fn acquire(
        &self,
        caller: TokenId,
        input: TicketInput,
    ) -> Result<TicketAnswer, ServiceError> {
        let ticket_id = TicketId(random::uuid_at(self.now()));
        self.ticket_command(caller, Command::AcquireLock { ticket_id, input }).await
    }

    /// Extends the lease of a held ticket.
    ///
    /// # Errors
    ///
    /// [`ServiceError`]
    pub async fn heartbeat(
        &self,
        caller: TokenId,
        lock: LockKey,
        ticket_id: TicketId,
        lease: Option<LeaseSeconds>,
    ) -> Result<TicketAnswer, ServiceError> {
        self.ticket_command(caller, Command::HeartbeatTicket { lock, ticket_id, lease }).await
    }

    /// Lets go of a held ticket, or gives up a waiting one.
    ///
    /// # Errors
    ///
    /// [`ServiceError`]
    pub async fn release(
        &self,
        caller: TokenId,
        lock: LockKey,
        ticket_id: TicketId,
    ) -> Result<TicketAnswer, ServiceError> {
        self.ticket_command(caller, Command::ReleaseTicket { lock, ticket_id }).await
    }

    /// Ends somebody's hold.
    ///
    /// # Errors
    ///
    /// [`ServiceError`]
    pub async fn break_lock(
        &self,
        caller: TokenId,
        lock: LockKey,
        fence_token: FenceToken,
        reason: ShortText,
    ) -> Result<LockView, ServiceError> {
        match self.submit(caller, Command::BreakLock { lock, fence_token, reason }).await? {
            Told::Lock(view) => Ok(*view),
            Told::Ticket(_) | Told::Thread(_) | Told::Activity(_) | Told::Done(_) => {
                unreachable!("breaking answers with the lock")
            }
        }
    }

    /// Changes users, tokens, teams, repositories or grants. Answers with the sequence from which
    /// on the change can be read.
    ///
    /// # Errors
    ///
    /// [`ServiceError`]
    pub async fn administer(
        &self,
        caller: TokenId,
        command: Command,
    ) -> Result<Sequence, ServiceError> {
        match self.submit(caller, command).await? {
            Told::Done(sequence) => Ok(sequence),
            Told::Ticket(_) | Told::Lock(_) | Told::Thread(_) | Told::Activity(_) => {
                unreachable!("administration answers with the state alone")
            }
        }
    }

    /// Writes to a thread, or begins one.
    ///
    /// # Errors
    ///
    /// [`ServiceError`]
    pub async fn write_thread(
        &self,
        caller: TokenId,
        command: Command,
    ) -> Result<ThreadTold, ServiceError> {
        match self.submit(caller, command).await? {
            Told::Thread(told) => Ok(*told),
            Told::Ticket(_) | Told::Lock(_) | Told::Activity(_) | Told::Done(_) => {
                unreachable!("a write to a thread answers with it")
            }
        }
    }

    /// An id for a reply that is to be written.
    pub fn new_reply_id(&self) -> ReplyId {
        ReplyId(random::uuid_at(self.now()))
    }

    /// Says what the caller is doing, or that it is doing nothing.
    ///
    /// # Errors
    ///
    /// [`ServiceError`]
    pub async fn write_activity(
        &self,
        caller: TokenId,
        command: Command,
    ) -> Result<ActivityTold, ServiceError> {
        match self.submit(caller, command).await? {
            Told::Activity(told) => Ok(*told),
            Told::Ticket(_) | Told::Lock(_) | Told::Thread(_) | Told::Done(_) => {
                unreachable!("an activity answers with itself")
            }
        }
    }

    async fn ticket_command(
        &self,
        caller: TokenId,
        command: Command,
    ) -> Result<TicketAnswer, ServiceError> {
        match self.submit(caller, command).await? {
            Told::Ticket(answer) => Ok(*answer),
            Told::Lock(_) | Told::Thread(_) | Told::Activity(_) | Told::Done(_) => {
                unreachable!("a ticket's command answers with it")
            }
        }
    }

    async fn submit(&self, caller: TokenId, command: Command) -> Result<Told, ServiceError> {
        let lane = admission::lane(&command);
        if lane == Lane::Others {
            if self.is_draining() {
                return Err(ServiceError::Draining);
            }
            if self.0.disk.is_nearly_full() && self.is_new_work(caller, &command) {
                return Err(ServiceError::DiskFull);
            }
        }
        let Some(owner) = self.user(caller) else {
            return Err(query::refused(Refusal::Unauthenticated, self.read(State::head)));
        };
        let (reply, answer) = oneshot::channel();
        let ask = Ask { caller: Caller::Token(caller), command, reply };
        // A person's agents have the person's share, or a hundred of them would have everybody's.
        // Not for what keeps a lease: there each has a turn, so none costs another its lock.
        let line = match lane {
            Lane::Holders => owner,
            Lane::Others => self.read(|state| state.access().account(&owner)),
        };
        self.0.queue.push(lane, &line, ask).map_err(|rejected| match rejected {
            Rejected::Full => ServiceError::Busy,
            Rejected::Closed if self.has_stopped() => ServiceError::Stopped,
            Rejected::Closed => ServiceError::Draining,
        })?;
        match answer.await {
            Ok(told) => told.map_err(|refused| ServiceError::Refused(Box::new(refused))),
            Err(_) => Err(ServiceError::Stopped),
        }
    }

    /// The person who answers for what is asked with a token, whether or not it still works.
    ///
    /// # Panics
    /// If there never was such a token.
    pub fn account(&self, token_id: TokenId) -> UserName {
        let account = self.read(|state| {
            let token = state.access().token(token_id)?;
            Some(state.access().account(&token.user))
        });
        account.expect("a token that was accepted stays known")
    }

    /// The user that a token stands for, whether or not it still works.
    fn user(&self, token_id: TokenId) -> Option<UserName> {
        self.read(|state| state.access().token(token_id).map(|token| token.user.clone()))
    }

    /// Ledger time now.
    pub fn now(&self) -> Time {
        self.0.clock.now()
    }

    /// Reads the state of the last durable append. The writer waits meanwhile: be short.
    pub fn read<R>(&self, look: impl FnOnce(&State) -> R) -> R {
        look(&self.0.published.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The ledger, for reads.
    pub fn ledger(&self) -> &dyn Ledger {
        &*self.0.ledger
    }

    /// The head, as it moves: wakes the feeds.
    pub fn head_changes(&self) -> tokio_watch::Receiver<Sequence> {
        self.0.head.subscribe()
    }
}

impl Shared {
    /// Makes durable events readable.
    fn publish(&self, records: &[Record]) {
        let mut state = self.published.write().unwrap_or_else(PoisonError::into_inner);
        for record in records {
            state.apply(record);
        }
    }
}

/// However the writer ends, nobody is left waiting for it.
struct StopGuard(Arc<Shared>);

impl Drop for StopGuard {
    fn drop(&mut self) {
        self.0.has_stopped.store(true, Ordering::Release);
        self.0.queue.abandon();
    }
}
