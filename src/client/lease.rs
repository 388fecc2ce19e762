//! Keeps what is held: heartbeats at a third of the lease, and word of it as soon as it is lost.
//!
//! The rules are in `keeper`, which is pure; here are the task that obeys it, and the handles.
//! Time is `CLOCK_BOOTTIME`: a lease runs on while the machine sleeps. What a handle says is
//! judged by that clock when it is asked, so a task that was held up can't make it lie.
//! Deliberately absent: letting go of a [`Lease`] that is dropped. Work may still be going on then,
//! as after a panic; so heartbeats end, and the lease by itself.

mod keeper;

use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use self::keeper::{Heard, Keeper, Next};
pub use self::keeper::{LeaseState, Lost};
use super::Acquire;
use super::error::ClientError;
use super::transport::{Client, Reply};
use super::turn::Turn;
use crate::clock::BootTime;
use crate::domain::id::FenceToken;
use crate::domain::scope::LockKey;
use crate::random;
use crate::wire::problem::Code;
use crate::wire::ticket::{Answer, State, Ticket};

/// How often whoever sleeps looks at the clock: a timer stands still while the machine does.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The clock: [`BootTime::now`], but for tests.
type Now = fn() -> BootTime;

/// A lease that is kept: a task heartbeats it until it is lost or let go.
///
/// Dropping it ends the heartbeats, and the lease then ends by itself. [`Lease::release`] ends it
/// at once.
#[derive(Debug)]
pub struct Lease {
    client: Client,
    lock: LockKey,
    ticket: Ticket,
    fence_token: FenceToken,
    watch: LeaseWatch,
    /// The task, until it has ended, and what ends it by being dropped.
    task: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

/// Why there is no lease.
#[derive(Debug, thiserror::Error)]
pub enum NotHeld {
    /// The ticket that was made is not held, or its lease ran out on the way.
    #[error("{}", why_ended(.0.body.ticket.state))]
    Ended(Box<Reply<Answer>>),
    /// It was stopped while it waited.
    #[error("stopped while it waited")]
    Stopped,
    /// There was no answer that could be used. A ticket that was made may wait on.
    #[error(transparent)]
    Failed(#[from] ClientError),
}

impl Client {
    /// Acquires, waits its turn, and keeps what it gets. When `stop` comes first, the ticket is
    /// given up; so don't drop this future to stop it, for then the ticket waits on, and can be
    /// held for the length of a lease by nobody.
    ///
    /// # Errors
    /// The lock is not held, for one of three reasons.
    pub async fn hold(
        &self,
        lock: &LockKey,
        ask: &Acquire,
        stop: impl Future,
    ) -> Result<Lease, NotHeld> {
        match self.acquire_in_turn(lock, ask, stop, |_| {}).await? {
            Turn::Answered(reply) => self.keep(&reply).ok_or(NotHeld::Ended(reply)),
            Turn::Stopped { .. } => Err(NotHeld::Stopped),
        }
    }

    /// Keeps a held ticket from now on, in a task of its own. `None` if the ticket is not held, or
    /// its lease ran out on the way here.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    pub fn keep(&self, reply: &Reply<Answer>) -> Option<Lease> {
        let ticket = reply.body.ticket.clone();
        let fence_token = ticket.fence_token?;
        let Heard::Held { as_of, remaining } = heard(Ok(reply.body.clone()), reply.sent_at) else {
            return None;
        };
        let every = Duration::from_secs(u64::from(ticket.heartbeat_every_seconds.max(1)));
        let keeper = Keeper::new(as_of, remaining, every, random::chance());
        let lock = LockKey { scope: ticket.scope.clone(), lock_name: ticket.lock_name.clone() };
        let (client, ticket_id, of) = (self.clone(), ticket.ticket_id, lock.clone());
        let beat = move || {
            let (client, lock) = (client.clone(), of.clone());
            async move { client.heartbeat_once(&lock, ticket_id).await.map(|reply| reply.body) }
        };
        let (watch, task) = start(keeper, beat, BootTime::now);
        watch.state().deadline()?;
        let (client, task) = (self.clone(), Some(task));
        Some(Lease { client, lock, ticket, fence_token, watch, task })
    }
}

impl Lease {
    /// Where it stands now.
    pub fn state(&self) -> LeaseState {
        self.watch.state()
    }

    /// A handle to watch it from elsewhere.
    pub fn watch(&self) -> LeaseWatch {
        self.watch.clone()
    }

    /// What every write to the outside is to carry, so that its target can refuse a late one.
    pub fn fence_token(&self) -> FenceToken {
        self.fence_token
    }

    /// The ticket, as it was when it was first held.
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// Ends the heartbeats, then the lease. Once it has returned no heartbeat is sent, whatever
    /// it returns. Can be repeated when its answer got lost.
    ///
    /// # Errors
    /// As for every call; `ticket-ended` means that it was lost before.
    pub async fn release(&mut self) -> Result<Reply<Answer>, ClientError> {
        if let Some((let_go, task)) = self.task.take() {
            drop(let_go);
            // It ends without waiting for anything. Had it panicked, it would have ended too.
            let _ = task.await;
        }
        self.client.release(&self.lock, self.ticket.ticket_id).await
    }
}

fn why_ended(state: State) -> String {
    match state.code() {
        Some(code) => code.title().to_owned(),
        None => "the lease ran out before the answer arrived".to_owned(),
    }
}

/// Watches a lease. It outlives the [`Lease`], of which it then says that it is lost.
#[derive(Debug, Clone)]
pub struct LeaseWatch {
    told: watch::Receiver<LeaseState>,
    now: Now,
}

impl LeaseWatch {
    /// Where the lease stands now.
    pub fn state(&self) -> LeaseState {
        let mut state = self.told.borrow().clone();
        state.judge((self.now)());
        state
    }

    /// Waits for the next change, each answered heartbeat being one, and tells where the lease
    /// stands then; of a lost one at once.
    pub async fn changed(&mut self) -> LeaseState {
        let seen = self.told.borrow_and_update().deadline();
        if let Some(deadline) = seen {
            change(&mut self.told, self.now, deadline).await;
        }
        self.state()
    }

    /// Waits until it is lost.
    pub async fn lost(&self) -> Lost {
        loop {
            if let LeaseState::Lost(lost) = self.until(Duration::ZERO).await {
                return lost;
            }
        }
    }

    /// Waits until it is lost, or will be within `margin` if nothing more is heard: the time to
    /// end in good order what must not outlast it. Tells where it stands then. The margin is to be
    /// less than the two thirds of the lease that are left whenever a heartbeat is due.
    pub async fn until(&self, margin: Duration) -> LeaseState {
        let mut told = self.told.clone();
        loop {
            // Seen before it is judged, so that no change after it is missed.
            told.mark_unchanged();
            let state = self.state();
            let Some(deadline) = state.deadline() else { return state };
            let last = deadline.minus(margin);
            if (self.now)() >= last {
                return state;
            }
            change(&mut told, self.now, last).await;
        }
    }
}

/// Waits for a change, or until then.
async fn change(told: &mut watch::Receiver<LeaseState>, now: Now, until: BootTime) {
    tokio::select! {
        changed = told.changed() => if changed.is_err() {
            // Nobody keeps the lease any more: what can still be seen is its end.
            sleep(now, until).await;
        },
        () = sleep(now, until) => {}
    }
}

/// Starts the task that keeps a lease; whoever drops the sender ends it.
fn start<B: Future<Output = Result<Answer, ClientError>> + Send + 'static>(
    keeper: Keeper,
    beat: impl FnMut() -> B + Send + 'static,
    now: Now,
) -> (LeaseWatch, (oneshot::Sender<()>, JoinHandle<()>)) {
    let (tells, told) = watch::channel(keeper.state().clone());
    let (let_go, is_let_go) = oneshot::channel();
    let task = tokio::spawn(keep(keeper, beat, now, tells, is_let_go));
    (LeaseWatch { told, now }, (let_go, task))
}

/// Does what the keeper says, one thing after the other, until there is nothing more to do.
async fn keep<B: Future<Output = Result<Answer, ClientError>>>(
    mut keeper: Keeper,
    mut beat: impl FnMut() -> B,
    now: Now,
    tells: watch::Sender<LeaseState>,
    mut is_let_go: oneshot::Receiver<()>,
) {
    loop {
        let next = keeper.next(now());
        tells.send_if_modified(|told| {
            let is_new = told != keeper.state();
            told.clone_from(keeper.state());
            is_new
        });
        let (until, is_due) = match next {
            Next::Beat { until } => (until, true),
            Next::Wait { until } => (until, false),
            Next::End => return,
        };
        let acts = async {
            if is_due {
                return Some(ask(beat(), now, until).await);
            }
            sleep(now, until).await;
            None
        };
        let heard = tokio::select! {
            biased;
            _ = &mut is_let_go => Some(Heard::LetGo),
            heard = acts => heard,
        };
        if let Some(heard) = heard {
            keeper.hear(heard, now());
        }
    }
}

/// Heartbeats once, and waits for the answer until then.
async fn ask(
    beat: impl Future<Output = Result<Answer, ClientError>>,
    now: Now,
    until: BootTime,
) -> Heard {
    let sent_at = now();
    tokio::select! {
        answer = beat => heard(answer, sent_at),
        () = sleep(now, until) => {
            Heard::Nothing { why: "no answer in time".to_owned(), retry_after: None }
        }
    }
}

/// Sleeps until then, counting suspend, as a timer doesn't.
pub async fn sleep_until(until: BootTime) {
    sleep(BootTime::now, until).await;
}

async fn sleep(now: Now, until: BootTime) {
    loop {
        let left = now().until(until);
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(LOOK_EVERY)).await;
    }
}

/// What an answer, or its absence, to a request sent at `sent_at` says of a lease.
fn heard(answer: Result<Answer, ClientError>, sent_at: BootTime) -> Heard {
    let error = match answer {
        Ok(Answer { ticket, answered_after_ms, .. }) => {
            return match (ticket.state, ticket.lease_remaining_ms) {
                (State::Held, Some(remaining_ms)) => Heard::Held {
                    as_of: sent_at.plus_millis(answered_after_ms),
                    remaining: Duration::from_millis(remaining_ms),
                },
                (state, _) => Heard::Refused(state.code().unwrap_or(Code::TicketNotHeld)),
            };
        }
        Err(error) => error,
    };
    match &error {
        ClientError::Problem(refused) if is_final(refused.problem.code) => {
            Heard::Refused(refused.problem.code)
        }
        ClientError::Problem(_)
        | ClientError::NoConnection(_)
        | ClientError::Unreachable(_)
        | ClientError::Unexpected(_)
        | ClientError::Setup(_) => {
            Heard::Nothing { why: error.to_string(), retry_after: error.retry_after() }
        }
    }
}

/// Whether a problem means that the ticket is over. Every other one says something about the
/// request, the token or the server, and nothing of the ticket: one whose owner may not heartbeat
/// it any more is held until its deadline, and access that was taken away can come back before.
fn is_final(code: Code) -> bool {
    match code {
        Code::TicketNotHeld | Code::TicketEnded | Code::NotFound => true,
        Code::Unauthenticated
        | Code::Forbidden
        | Code::MethodNotAllowed
        | Code::Malformed
        | Code::TooLarge
        | Code::InvalidArgument
        | Code::RequestUuidReused
        | Code::LockContended
        | Code::DeadlockRejected
        | Code::WaitEnded
        | Code::StaleFence
        | Code::AlreadyExists
        | Code::LimitReached
        | Code::Busy
        | Code::DiskFull => false,
    }
}

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;
