//! with-lock: runs a command under a lock, and lets go of the lock only when it has ended.
//!
//! Its exit code is the command's, but for two of its own: [`EXIT_NOT_ACQUIRED`] and
//! [`EXIT_FAILED`]. A command may end with these numbers too, so stderr says whose they are.
//! Deliberately absent: joining a hold of the same user. Two sessions of one user are one owner,
//! and must not do the same work at the same time.

use std::io::{self, IsTerminal as _};

use super::acquire::{given_up, why_not_run};
use super::args::{OnConflict, WithLockArgs};
use super::connection::{Said, Server};
use super::group::Order;
use super::output::Output;
use super::signals::{Stop, killed_by};
use super::work::{self, Cause, LetGo, Outcome};
use super::{Ended, Failure, fail, text};
use crate::client::{Acquire, Client, ClientError, GivenUp, Lease, Reply, Turn};
use crate::domain::id::RequestUuid;
use crate::domain::scope::LockKey;
use crate::random;
use crate::wire::problem::EXIT_DONE;
use crate::wire::ticket::{Answer, State};

/// The lock was not acquired, and the command not run.
pub(super) const EXIT_NOT_ACQUIRED: u8 = 124;
/// The lock was lost while the command ran, or something else went wrong here.
pub(super) const EXIT_FAILED: u8 = 125;

/// Runs it. Says the exit code.
pub(super) async fn run(said: Said<'_>, output: &mut Output, args: &WithLockArgs) -> u8 {
    let mut server = None;
    match with_lock(said, output, args, &mut server).await {
        Ok(code) => code,
        Err(failure) => {
            let code = fail(&failure, server.as_ref(), output);
            // Then nobody was asked yet, and nothing run.
            if matches!(failure, Failure::Usage(_) | Failure::Client(ClientError::Setup(_))) {
                return code;
            }
            output.message(&format!("with-lock failed (exit code {EXIT_FAILED})"));
            EXIT_FAILED
        }
    }
}

async fn with_lock(
    said: Said<'_>,
    output: &mut Output,
    args: &WithLockArgs,
    server: &mut Option<Server>,
) -> Ended {
    // What is wrong with the command line is said before anybody is asked.
    let lease_seconds = args.lease_seconds.unwrap_or_default().get();
    let grace = work::grace(lease_seconds, args.grace.seconds)?;
    let connection = said.connection()?;
    let client = Client::new(&connection.server.url, &connection.token.text)?;
    *server = Some(connection.server);
    let lock = args.lock.lock();
    let ask = Acquire {
        request_uuid: RequestUuid(random::uuid()),
        lease_seconds: args.lease_seconds,
        wait_seconds: args.wait_seconds,
        note: args.note.clone(),
        reentrant: Some(false),
    };
    // Before the request is sent: a signal must not find a ticket that nobody gives up.
    let mut signals = Stop::listen_for_another()?;
    let mut queue = Queue::new(&lock);
    let turn =
        client.acquire_in_turn(&lock, &ask, signals.next(), |answer| queue.show(output, answer));
    let turn = turn.await.inspect_err(|error| {
        // Nobody could give it up, since nobody knows which it is.
        if matches!(error, ClientError::Unreachable(_))
            && let Some(message) = given_up(&lock, &ask, GivenUp::Unknown)
        {
            output.message(&message);
        }
    });
    let reply = match turn? {
        Turn::Answered(reply) => reply,
        Turn::Stopped { by, ticket } => {
            if let Some(message) = given_up(&lock, &ask, ticket) {
                output.message(&message);
            }
            output.message("stopped while it waited; the command was not run");
            return Ok(killed_by(by));
        }
    };
    let Some(mut lease) = client.keep(&reply) else {
        return Ok(not_acquired(output, &lock, &reply, args.on_conflict));
    };
    let watch = lease.watch();
    let is_ready = tokio::select! {
        biased;
        by = signals.next() => {
            let_go(output, &lock, &mut lease).await;
            output.message("stopped before the command was run");
            return Ok(killed_by(by));
        }
        is_ready = work::is_ready(watch, grace) => is_ready,
    };
    if !is_ready {
        output.message(&format!(
            "pearing-cli: the lock was lost before the command was run (exit code {EXIT_FAILED})"
        ));
        return Ok(EXIT_FAILED);
    }
    let variables = work::variables(lease.ticket());
    let order = Order { command: &args.command, variables, input: None };
    let outcome = work::run(&lease, grace, &mut signals, output, order, |_| Ok(())).await;
    let was_lost = match outcome {
        Ok(Outcome::MadeToEnd(Cause::Lost(_))) => true,
        _ => let_go(output, &lock, &mut lease).await,
    };
    Ok(match outcome? {
        // It ended before it could be told. What it did well it did without the lock.
        Outcome::Ended(EXIT_DONE) if was_lost => {
            output.message(&format!(
                "pearing-cli: the lock was lost before the command ended (exit code {EXIT_FAILED})"
            ));
            EXIT_FAILED
        }
        Outcome::Ended(code) => {
            if matches!(code, EXIT_NOT_ACQUIRED | EXIT_FAILED) {
                output.message(&format!("pearing-cli: the command's own exit code is {code}"));
            }
            code
        }
        Outcome::MadeToEnd(cause) => {
            let why = match cause {
                Cause::Lost(_) => "the lock was lost",
                Cause::InDoubt => "the lock would have been lost",
            };
            output.message(&format!(
                "pearing-cli: {why}, so the command was ended (exit code {EXIT_FAILED})"
            ));
            EXIT_FAILED
        }
    })
}

/// What a ticket that isn't held means.
fn not_acquired(
    output: &mut Output,
    lock: &LockKey,
    reply: &Reply<Answer>,
    on_conflict: OnConflict,
) -> u8 {
    if reply.body.ticket.state == State::Held {
        output.message("its lease ran out before the answer was there");
    }
    let is_conflict = match reply.body.ticket.state {
        State::Contended | State::DeadlockRejected | State::TimedOut => true,
        State::Held
        | State::Waiting
        | State::Released
        | State::Expired
        | State::Broken
        | State::Cancelled => false,
    };
    let why = why_not_run(lock, &reply.body);
    if is_conflict && on_conflict == OnConflict::Skip {
        // It is as it should be, so there is nothing to advise.
        output.message(why.lines().next().unwrap_or_default());
        output.message("pearing-cli: skipped: the command was not run");
        return EXIT_DONE;
    }
    for line in why.lines() {
        output.message(line);
    }
    output.message(&format!(
        "pearing-cli: not acquired: the command was not run (exit code {EXIT_NOT_ACQUIRED})"
    ));
    EXIT_NOT_ACQUIRED
}

/// Lets go of the lock, and says whether it was lost before. What else goes wrong changes no
/// exit code: the command has had its end.
async fn let_go(output: &mut Output, lock: &LockKey, lease: &mut Lease) -> bool {
    match work::let_go(lease).await {
        LetGo::Done => {}
        LetGo::Over(error) => {
            output.message(&format!("warning: the lock was lost before its release: {error}"));
            return true;
        }
        LetGo::Failed(why) => output.message(&format!(
            "warning: the lock is not released, and ends with its lease: {why}\n{}",
            text::ticket_command("release-lock-ticket", lock, lease.ticket().ticket_id)
        )),
    }
    false
}

/// The place in the queue, as it is told: at first to everybody, each new one to a terminal.
struct Queue<'a> {
    lock: &'a LockKey,
    is_terminal: bool,
    told: Option<u32>,
}

impl<'a> Queue<'a> {
    fn new(lock: &'a LockKey) -> Self {
        Self { lock, is_terminal: io::stderr().is_terminal(), told: None }
    }

    fn show(&mut self, output: &mut Output, answer: &Answer) {
        let position = answer.ticket.queue_position.unwrap_or(0);
        let told = self.told.replace(position);
        if told.is_none() || self.is_terminal && told != Some(position) {
            let LockKey { scope, lock_name } = self.lock;
            let holder = answer.holder.iter().flatten().next().map(text::holder);
            let holder = holder.map(|holder| format!("; {holder}")).unwrap_or_default();
            output.message(&format!(
                "waiting: position {position} for {lock_name} in {scope}{holder}"
            ));
        }
    }
}
