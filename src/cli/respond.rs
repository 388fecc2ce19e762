//! respond: runs a command for each event of a repository's threads, under a lock that is derived
//! from it, and goes on where it was after whatever ended it.
//!
//! An event is finished when a reply in its thread says so, written under the lock's fence after
//! the command has ended well. So of many responders one runs the command, and the others, whose
//! turn comes after it, find it finished. A responder that is killed takes its command along; the
//! next start kills what is left of it, lets go of the ticket, and makes a new attempt, or, if the
//! command is known to have ended well, marks its event. A command can have done its work without
//! anybody knowing, and does it again: it is run at least once, and never twice at the same time.
//! Deliberately absent: several events at a time. More responders do that, each as a user.

mod rules;
mod state;

use std::path::PathBuf;
use std::time::Duration;

use super::args::RespondArgs;
use super::connection::{Connection, Said};
use super::group::{Leftover, Order};
use super::output::Output;
use super::signals::{Stop, killed_by};
use super::work::{self, LetGo, Outcome};
use super::{Ended, Failure, fail};
use crate::client::{
    Acquire, Client, ClientError, EventFilter, FeedItem, GivenUp, Lease, NewReply, Reply, Terms,
    Turn,
};
use crate::domain::id::{FenceToken, RequestUuid, Sequence, TicketId};
use crate::domain::name::LockName;
use crate::domain::scope::LockKey;
use crate::domain::thread::{Fence, Links, ThreadKey, ThreadNumber};
use crate::domain::time::WaitSeconds;
use crate::random;
use crate::wire::problem::{Code, EXIT_DONE, EXIT_OTHER};
use crate::wire::ticket::{Answer, State as TicketState};
use rules::Task;
pub(super) use rules::{Template, event_glob};
use state::{About, Attempt, Running, State};

/// How long one attempt waits in the queue. When it has run out, another one is made.
const WAIT_SECONDS: u64 = 3600;
/// The pauses between two tries at a server that is away or busy.
const PAUSE_FIRST: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// The pause before the next attempt at a lock that can't be waited for.
const PAUSE_CONTENDED: Duration = Duration::from_secs(1);
/// How often a mark is tried that a limit keeps out: a thread holds so many replies and no more.
const MARK_TRIES_MAX: u32 = 5;

/// Why it doesn't go on.
enum Halt {
    /// A signal asked it to stop.
    Stopped(i32),
    Failed(Failure),
}

impl<E: Into<Failure>> From<E> for Halt {
    fn from(failure: E) -> Self {
        Self::Failed(failure.into())
    }
}

/// What came of one attempt at an event.
enum Attempted {
    /// The event is finished, by whomever.
    Finished,
    /// The command failed, with this exit code.
    Failed(u8),
    /// It is undecided: another attempt is to be made, after a pause.
    Again(Duration),
}

/// A responder.
struct Respond<'a> {
    client: Client,
    args: &'a RespondArgs,
    grace: Duration,
    state: State,
    stop: Stop,
    output: &'a mut Output,
    /// Whether an event was given up.
    gave_up: bool,
}

/// Runs it, for ever or until history has met the present.
pub(super) async fn run(said: Said<'_>, output: &mut Output, args: &RespondArgs) -> Ended {
    let lease_seconds = args.lease_seconds.unwrap_or_default().get();
    let grace = work::grace(lease_seconds, args.grace.seconds)?;
    let connection = said.connection()?;
    let client = Client::new(&connection.server.url, &connection.token.text)?;
    let stop = Stop::listen()?;
    let ended = async {
        let path = match &args.cursor {
            Some(path) => path.clone(),
            None => default_path(said, &connection, &client, args).await?,
        };
        let state = State::open(&path, about(&connection, args), args.after).await?;
        let mut respond = Respond { client, args, grace, state, stop, output, gave_up: false };
        respond.settle().await?;
        respond.follow().await
    };
    match ended.await {
        Ok(code) => Ok(code),
        Err(Halt::Stopped(number)) => Ok(killed_by(number)),
        Err(Halt::Failed(failure)) => Ok(fail(&failure, Some(&connection.server), output)),
    }
}

fn about(connection: &Connection, args: &RespondArgs) -> About {
    About {
        server: connection.server.url.to_string(),
        repo: args.repo.clone(),
        on: args.on.clone(),
        lock: args.lock.as_str().to_owned(),
    }
}

/// Where the state is kept that nobody names a file for: one file for each user and each thing
/// that it responds to.
async fn default_path(
    said: Said<'_>,
    connection: &Connection,
    client: &Client,
    args: &RespondArgs,
) -> Result<PathBuf, Failure> {
    let folder = said.environment.state.as_ref().ok_or_else(|| {
        Failure::Usage("there is no HOME: say by --cursor where the state is kept".to_owned())
    })?;
    let user = client.whoami().await?.body.user;
    Ok(folder.join(state::file_name(user.as_str(), &about(connection, args))))
}

impl Respond<'_> {
    /// Follows the feed.
    async fn follow(&mut self) -> Result<u8, Halt> {
        let filter = EventFilter {
            scope: Some(self.args.repo.clone()),
            types: self.args.on.clone(),
            ..EventFilter::default()
        };
        let mut feed = self.client.feed(filter, self.state.cursor());
        loop {
            let item = tokio::select! {
                biased;
                number = self.stop.next() => return Err(Halt::Stopped(number)),
                item = feed.next() => item?,
            };
            match item {
                FeedItem::Event { sequence, json } => self.hear(sequence, json).await?,
                FeedItem::CaughtUp(sequence) => {
                    self.state.pass(sequence);
                    self.state.save()?;
                    if self.args.until_caught_up {
                        return Ok(if self.gave_up { EXIT_OTHER } else { EXIT_DONE });
                    }
                }
                FeedItem::Checkpoint(sequence) => {
                    self.state.pass(sequence);
                    self.state.save()?;
                }
                FeedItem::Reset(sequence) => {
                    self.state.pass(sequence);
                    self.state.save()?;
                    let word = "the ledger was restored: events after it are gone";
                    self.output.message(&format!("event {sequence}: {word}"));
                }
                FeedItem::Reconnecting(why) => {
                    self.output.message(&format!("reconnecting: {why}"));
                }
            }
        }
    }

    /// Responds to an event, until it is finished, skipped or given up.
    async fn hear(&mut self, sequence: Sequence, json: String) -> Result<(), Halt> {
        let task = match Task::of(sequence, json, &self.args.lock) {
            Ok(Some(task)) => task,
            Ok(None) => {
                self.state.pass(sequence);
                return Ok(());
            }
            Err(why) => {
                self.output.message(&format!("event {sequence}: skipped: {why}"));
                self.state.pass(sequence);
                return Ok(());
            }
        };
        // Before there is any trace of it: what was finished long ago costs nobody a ticket.
        if self.is_handled(&task).await? {
            self.state.pass(sequence);
            return Ok(());
        }
        loop {
            match self.attempt(&task).await? {
                Attempted::Finished => break,
                Attempted::Again(pause) => self.pause(pause).await?,
                Attempted::Failed(code) => {
                    let (failures, most) = (self.state.fail()?, self.args.attempts);
                    let word = format!("failed ({failures} of {most}) with exit code {code}");
                    if failures >= most {
                        self.output.message(&format!("event {sequence}: {word}: given up"));
                        self.gave_up = true;
                        break;
                    }
                    let pause = rules::pause_after(failures);
                    let seconds = pause.as_secs();
                    let again = format!("again in {seconds} s");
                    self.output.message(&format!("event {sequence}: {word}; {again}"));
                    self.pause(pause).await?;
                }
            }
        }
        Ok(self.state.finish(sequence)?)
    }

    /// Whether an event is finished.
    async fn is_handled(&mut self, task: &Task) -> Result<bool, Halt> {
        let (client, key) = (self.client.clone(), self.thread(task.thread));
        let thread = self.insist(async || client.thread(&key, None).await).await?;
        Ok(rules::is_handled(&thread.body, task.sequence))
    }

    /// Makes one attempt at an event: acquires, works, and lets go.
    async fn attempt(&mut self, task: &Task) -> Result<Attempted, Halt> {
        let lock = self.lock(&task.lock_name);
        let ask = Acquire {
            request_uuid: RequestUuid(random::uuid()),
            lease_seconds: self.args.lease_seconds,
            wait_seconds: Some(WaitSeconds::try_from(WAIT_SECONDS).expect("it is in range")),
            note: self.args.note.clone(),
            reentrant: Some(false),
        };
        let (thread, lock_name) = (task.thread, task.lock_name.clone());
        let attempt = Attempt { thread, lock_name, ask: ask.clone(), command: None };
        self.state.begin(task.sequence, attempt)?;
        let turn = self.client.acquire_in_turn(&lock, &ask, self.stop.next(), |_| {});
        let reply = match turn.await {
            Ok(Turn::Answered(reply)) => reply,
            Ok(Turn::Stopped { by, ticket }) => {
                // What is not given up is settled at the next start.
                if matches!(ticket, GivenUp::Done(_) | GivenUp::Over(_) | GivenUp::NoTicket) {
                    self.state.settle()?;
                }
                return Err(Halt::Stopped(by));
            }
            Err(error) if error.is_passing() => {
                self.settle().await?;
                return Ok(Attempted::Again(Duration::ZERO));
            }
            Err(error) => return Err(error.into()),
        };
        let Some(mut lease) = self.client.keep(&reply) else {
            self.settle().await?;
            return Ok(Attempted::Again(pause_before_next(&reply)));
        };
        let attempted = self.work(task, &lease).await;
        match work::let_go(&mut lease).await {
            LetGo::Done | LetGo::Over(_) => self.state.settle()?,
            // Stopped, it doesn't insist: the next start does.
            LetGo::Failed(_) if attempted.is_err() => {}
            LetGo::Failed(_) => self.settle().await?,
        }
        attempted
    }

    /// Works on an event under its lock, unless it is finished.
    async fn work(&mut self, task: &Task, lease: &Lease) -> Result<Attempted, Halt> {
        const AGAIN: Attempted = Attempted::Again(Duration::ZERO);
        let (held, sequence) = (lease.watch(), task.sequence);
        let is_handled = tokio::select! {
            is_handled = self.is_handled(task) => is_handled?,
            _ = held.lost() => return Ok(AGAIN),
        };
        if is_handled {
            return Ok(Attempted::Finished);
        }
        let (event_type, number) = (&task.event_type, task.thread);
        let begins = format!("event {sequence}: {event_type} of thread {number}: begins");
        self.output.message(&begins);
        tokio::select! {
            biased;
            number = self.stop.next() => return Err(Halt::Stopped(number)),
            is_ready = work::is_ready(held.clone(), self.grace) => if !is_ready {
                return Ok(AGAIN);
            }
        }
        let mut variables = work::variables(lease.ticket());
        variables.push(("PEARING_EVENT_SEQUENCE", sequence.to_string()));
        variables.push(("PEARING_EVENT_TYPE", task.event_type.clone()));
        variables.push(("PEARING_THREAD", task.thread.to_string()));
        let input = Some(format!("{}\n", task.json).into_bytes());
        let order = Order { command: &self.args.command, variables, input };
        let Self { grace, state, stop, output, .. } = self;
        let (ticket_id, fence_token) = (lease.ticket().ticket_id, lease.fence_token());
        let is_made = |group| {
            let group = Leftover::of(group)?;
            state.run(Running { ticket_id, fence_token, group, is_done: false })
        };
        let outcome = work::run(lease, *grace, stop, output, order, is_made).await?;
        match (outcome, self.stop.last()) {
            // Whatever it ended with: it was asked to end, and may not have finished.
            (_, Some(number)) => return Err(Halt::Stopped(number)),
            (Outcome::Ended(EXIT_DONE), None) => {}
            (Outcome::Ended(code), None) => return Ok(Attempted::Failed(code)),
            (Outcome::MadeToEnd(_), None) => return Ok(AGAIN),
        }
        // From here on a kill can't have it run again, as long as the hold lasts.
        self.state.done();
        let Some((_, attempt)) = self.state.attempt() else { return Ok(AGAIN) };
        tokio::select! {
            is_marked = self.mark(sequence, &attempt, lease.fence_token()) => {
                Ok(if is_marked? { Attempted::Finished } else { AGAIN })
            }
            _ = held.lost() => Ok(AGAIN),
        }
    }

    /// Marks an event as finished, under the hold of an attempt. `false` if that is over.
    async fn mark(
        &mut self,
        sequence: Sequence,
        attempt: &Attempt,
        fence_token: FenceToken,
    ) -> Result<bool, Halt> {
        let new = NewReply {
            kind: rules::mark_kind(),
            body: rules::mark_body(sequence),
            links: Links::default(),
            parent: None,
        };
        let fence = Some(Fence { lock_name: attempt.lock_name.clone(), fence_token });
        // The same for each try, also after a kill: it is made once.
        let terms = Terms { request_uuid: attempt.ask.request_uuid, fence };
        let key = self.thread(attempt.thread);
        let (client, mut tries) = (self.client.clone(), 0);
        let marks = self.insist(async || {
            tries += 1;
            match client.create_reply(&key, &new, &terms).await {
                Err(error) if is(&error, Code::LimitReached) && tries >= MARK_TRIES_MAX => Ok(None),
                other => other.map(Some),
            }
        });
        let word = match marks.await {
            Ok(Some(_)) => "handled",
            Ok(None) => "handled, and not marked: its thread is full",
            Err(Halt::Failed(Failure::Client(error))) if is(&error, Code::StaleFence) => {
                return Ok(false);
            }
            Err(halt) => return Err(halt),
        };
        self.output.message(&format!("event {sequence}: {word}"));
        Ok(true)
    }

    /// Undoes what is left of an attempt: its command is killed, then its ticket let go of. One
    /// whose command has ended well is brought to its end instead.
    async fn settle(&mut self) -> Result<(), Halt> {
        let Some((sequence, attempt)) = self.state.attempt() else { return Ok(()) };
        let lock = self.lock(&attempt.lock_name);
        let mut is_marked = false;
        let ticket_id = match &attempt.command {
            Some(Running { ticket_id, fence_token, group, is_done }) => {
                if group.kill(*ticket_id).await? {
                    self.output.message("killed what was left of the last command");
                }
                is_marked = *is_done && self.mark(sequence, &attempt, *fence_token).await?;
                Some(*ticket_id)
            }
            None => self.ticket_of(&lock, &attempt.ask).await?,
        };
        if let Some(ticket_id) = ticket_id {
            let client = self.client.clone();
            match self.insist(async || client.release(&lock, ticket_id).await).await {
                Ok(_) => {}
                Err(Halt::Failed(Failure::Client(error)))
                    if is(&error, Code::TicketEnded) || is(&error, Code::NotFound) => {}
                Err(halt) => return Err(halt),
            }
        }
        if is_marked {
            return Ok(self.state.finish(sequence)?);
        }
        Ok(self.state.settle()?)
    }

    /// The ticket of a request that may have been sent, which is known once the same has been asked
    /// again. `None` if it has none.
    async fn ticket_of(&mut self, lock: &LockKey, ask: &Acquire) -> Result<Option<TicketId>, Halt> {
        let client = self.client.clone();
        match self.insist(async || client.acquire(lock, ask).await).await {
            Ok(reply) => Ok(Some(reply.body.ticket.ticket_id)),
            Err(Halt::Failed(Failure::Client(ClientError::Problem(refused))))
                if refused.problem.code != Code::Unauthenticated =>
            {
                Ok(None)
            }
            Err(halt) => Err(halt),
        }
    }

    fn thread(&self, number: ThreadNumber) -> ThreadKey {
        ThreadKey { scope: self.args.repo.clone(), number }
    }

    fn lock(&self, lock_name: &LockName) -> LockKey {
        LockKey { scope: self.args.repo.clone(), lock_name: lock_name.clone() }
    }

    /// Makes a call until it is answered; a server that is away or busy is waited for.
    async fn insist<T>(
        &mut self,
        mut call: impl AsyncFnMut() -> Result<T, ClientError>,
    ) -> Result<T, Halt> {
        let mut pause = PAUSE_FIRST;
        loop {
            let error = tokio::select! {
                biased;
                number = self.stop.next() => return Err(Halt::Stopped(number)),
                answer = call() => match answer {
                    Ok(answer) => return Ok(answer),
                    Err(error) if error.is_passing() => error,
                    Err(error) => return Err(error.into()),
                },
            };
            if pause == PAUSE_FIRST {
                self.output.message(&format!("waits: {error}"));
            }
            self.pause(pause.max(error.retry_after().unwrap_or_default()).min(PAUSE_MAX)).await?;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Waits, unless it is stopped.
    async fn pause(&mut self, length: Duration) -> Result<(), Halt> {
        tokio::select! {
            biased;
            number = self.stop.next() => Err(Halt::Stopped(number)),
            () = tokio::time::sleep(length) => Ok(()),
        }
    }
}

fn is(error: &ClientError, code: Code) -> bool {
    matches!(error, ClientError::Problem(refused) if refused.problem.code == code)
}

/// How long to wait after a ticket that has ended without being held.
fn pause_before_next(reply: &Reply<Answer>) -> Duration {
    match reply.body.ticket.state {
        TicketState::Contended | TicketState::DeadlockRejected => {
            let retry = reply.body.retry_after_seconds.map(Duration::from_secs);
            retry.unwrap_or_default().clamp(PAUSE_CONTENDED, PAUSE_MAX)
        }
        TicketState::Cancelled => PAUSE_CONTENDED,
        TicketState::Held
        | TicketState::Waiting
        | TicketState::Released
        | TicketState::Expired
        | TicketState::Broken
        | TicketState::TimedOut => Duration::ZERO,
    }
}
