//! Whether a ledger says what the rules decide: each event is decided again.
//!
//! The hash chain shows that nothing was changed since it was written. This shows that what was
//! written is what the rules make of the state before it: from an event its command is read, the
//! command is decided on that state, and what comes out must be that event and those that follow
//! on it. So a ledger that somebody made up, with a chain that fits, is found too, and
//! [`State::apply`] never meets an event that it can't fold.
//!
//! Deliberately absent: limits, which an operator may have set otherwise since; tokens, of which
//! an event doesn't say which one was used; and whether a request UUID or an id was used before,
//! which only the tables know.

use std::collections::{BTreeMap, VecDeque};

use super::access::TokenHash;
use super::command::Command;
use super::decide::{At, Limits, Past, decide_as};
use super::event::{Event, LedgerRestored, Record, TokenIssued};
use super::id::{ReplyId, TokenId};
use super::invariant::check_record;
use super::lock::settle;
use super::name::{Actor, UserName};
use super::refusal::Refusal;
use super::scope::{LockKey, Scope};
use super::state::State;
use super::thread::{ReplyInput, ThreadKey, ThreadNumber, ThreadRow, WriteTerms};

const MILLIS_A_DAY: u64 = 86_400_000;

/// The way that a ledger takes, as far as it was followed: what the state doesn't hold and the
/// next record is judged by.
#[derive(Debug, Clone, Default)]
pub struct Course {
    /// What was decided together with the last record, and must follow.
    rest: VecDeque<Next>,
    /// Who decided that.
    actor: Option<Actor>,
    threads: BTreeMap<ThreadKey, ThreadRow>,
    reply_levels: BTreeMap<(ThreadKey, ReplyId), u32>,
}

/// What must come next.
#[derive(Debug, Clone)]
enum Next {
    Event(Event),
    /// A token for an agent that was just made. Which one, only the event says.
    TokenOf(UserName),
    /// The grace after a restore, if anything is held.
    Recovered,
}

impl Course {
    /// Judges whether `record` follows on `state` by the rules, and goes past it. The caller
    /// folds the record into the state then.
    ///
    /// # Errors
    /// The rule that is broken. The course is of no use any more.
    pub fn pass(&mut self, state: &State, record: &Record) -> Result<(), String> {
        check_record(state, record)?;
        match self.rest.pop_front() {
            Some(next) => self.is_next(state, record, &next)?,
            None => self.begin(state, record)?,
        }
        self.actor = Some(record.actor.clone());
        if let Some(thread) = record.event.thread() {
            self.keep(thread, record);
        }
        Ok(())
    }

    /// Judges whether a ledger may end here.
    ///
    /// # Errors
    /// It ends in the middle of what was decided together.
    pub fn end(&self) -> Result<(), String> {
        match self.rest.len() {
            0 => Ok(()),
            missing => Err(format!(
                "{missing} more that were decided together with the last record are missing"
            )),
        }
    }

    fn is_next(&self, state: &State, record: &Record, next: &Next) -> Result<(), String> {
        let is_right = match next {
            Next::Event(event) => record.event == *event,
            Next::TokenOf(agent) => matches!(
                &record.event,
                Event::TokenIssued(issued)
                    if issued.user == *agent && state.access().token(issued.token_id).is_none()
            ),
            Next::Recovered => matches!(record.event, Event::LedgerRecovered(_)),
        };
        // What is decided together has one time and one actor.
        let is_together = record.time == state.time() && self.actor.as_ref() == Some(&record.actor);
        if is_right && is_together {
            return Ok(());
        }
        Err(match next {
            Next::Event(event) => format!(
                "{} by {} at {}, where this {} must follow at {}, of the same actor: {}",
                record.event.type_name(),
                record.actor,
                record.time,
                event.type_name(),
                state.time(),
                serde_json::to_string(event).expect("an event has only text keys"),
            ),
            Next::TokenOf(agent) => format!("a token of {agent} must follow"),
            Next::Recovered => "ledger.recovered must follow".to_owned(),
        })
    }

    /// Judges the first event of a decision, and notes what must follow on it.
    fn begin(&mut self, state: &State, record: &Record) -> Result<(), String> {
        match (&record.event, state.ledger_id()) {
            (Event::LedgerOpened(_), None) => return is_of_ledger(record),
            (_, None) => return Err("the first record must be ledger.opened".to_owned()),
            (Event::LedgerRestored(restored), Some(_)) => {
                is_of_ledger(record)?;
                self.rest.extend(state.has_holds().then_some(Next::Recovered));
                return is_restored(state, record, restored);
            }
            (Event::LedgerRecovered(_), Some(_)) => {
                is_of_ledger(record)?;
                let otherwise = "ledger.recovered, but nothing is held";
                return state.has_holds().then_some(()).ok_or_else(|| otherwise.to_owned());
            }
            (_, Some(_)) => {}
        }
        let at = At { time: record.time, next_sequence: record.sequence };
        let events = match (settle(state, at), &record.event) {
            (Some(events), Event::LockExpired(_) | Event::LockWaitTimedOut(_)) => {
                is_of_ledger(record)?;
                events
            }
            (None, Event::LockExpired(_) | Event::LockWaitTimedOut(_)) => {
                return Err(format!("{} before its deadline", record.event.type_name()));
            }
            (Some(due), _) => {
                let due = due.first().map_or("nothing", Event::type_name);
                return Err(format!("{}, but {due} is due first", record.event.type_name()));
            }
            (None, _) => self.decided(state, at, record)?,
        };
        let mut events = events.into_iter();
        if events.next().as_ref() != Some(&record.event) {
            return Err(format!("the rules make another {} of it", record.event.type_name()));
        }
        self.rest.extend(events.map(|event| match event {
            Event::TokenIssued(issued) => Next::TokenOf(issued.user),
            event => Next::Event(event),
        }));
        Ok(())
    }

    /// What the rules make of the command that an event came from.
    fn decided(&self, state: &State, at: At, record: &Record) -> Result<Vec<Event>, String> {
        let decide = |past: &Past, command: &Command| {
            let actor = record.actor.clone();
            let decision = decide_as(state, past, &Limits::NONE, at, actor, command);
            decision.map(|decision| decision.events)
        };
        let refused = |refusal: Refusal| format!("the rules refuse it: {refusal:?}");
        if let Event::TokenIssued(issued) = &record.event {
            return decide(&Past::default(), &issue(record, issued)?)
                .or_else(|_| decide(&Past::default(), &issue_to_agent(record, issued)))
                .map_err(refused);
        }
        if let Event::TokenRevoked(revoked) = &record.event {
            let (token_id, agent) = (revoked.token_id, revoked.user.clone());
            return decide(&Past::default(), &Command::RevokeToken { token_id })
                .or_else(|_| decide(&Past::default(), &Command::RevokeAgentTokens { agent }))
                .map_err(refused);
        }
        let command = command(record)?;
        decide(&self.past(record), &command).map_err(refused)
    }

    /// What is over and bears on a write to a thread.
    fn past(&self, record: &Record) -> Past {
        let Some(thread) = record.event.thread() else { return Past::default() };
        let mut past = Past { thread: self.threads.get(&thread).cloned(), ..Past::default() };
        if let Event::ThreadReplied(replied) = &record.event
            && let Some(parent) = replied.parent
        {
            past.parent_level = self.reply_levels.get(&(thread, parent)).copied();
        }
        past
    }

    fn keep(&mut self, thread: ThreadKey, record: &Record) {
        let mut row = self.threads.remove(&thread);
        ThreadRow::apply(&mut row, record.clone());
        self.threads.extend(row.map(|row| (thread.clone(), row)));
        if let Event::ThreadReplied(replied) = &record.event {
            self.reply_levels.insert((thread, replied.reply_id), replied.level);
        }
    }
}

fn is_of_ledger(record: &Record) -> Result<(), String> {
    match record.actor {
        Actor::Ledger => Ok(()),
        Actor::User(_) => Err(format!("{} by a user", record.event.type_name())),
    }
}

fn is_restored(state: &State, record: &Record, restored: &LedgerRestored) -> Result<(), String> {
    let (last, head) = (restored.last_sequence, state.head());
    if last != head {
        return Err(format!("ledger.restored says that {last} is the last before it, not {head}"));
    }
    let wanted = head.after_restore(record.time);
    if record.sequence == wanted {
        return Ok(());
    }
    Err(format!("ledger.restored at this time has the sequence {wanted}"))
}

/// The command that an administrator issues a token by.
fn issue(record: &Record, issued: &TokenIssued) -> Result<Command, String> {
    Ok(Command::IssueToken {
        token_id: issued.token_id,
        user: issued.user.clone(),
        sha256: issued.sha256,
        label: issued.label.clone(),
        expires_in_days: days(record, issued)?,
    })
}

/// The command that a person makes an agent by, or another token for it.
fn issue_to_agent(record: &Record, issued: &TokenIssued) -> Command {
    Command::CreateAgent {
        agent: issued.user.clone(),
        token_id: issued.token_id,
        sha256: issued.sha256,
        label: issued.label.clone(),
        expires_in_days: days(record, issued).ok().flatten(),
    }
}

fn days(record: &Record, issued: &TokenIssued) -> Result<Option<u32>, String> {
    let Some(end) = issued.expires_at else { return Ok(None) };
    let millis = record.time.millis_until(end);
    let days = u32::try_from(millis / MILLIS_A_DAY).ok();
    let whole = days.filter(|_| millis.is_multiple_of(MILLIS_A_DAY));
    whole.map(Some).ok_or_else(|| "a token lives for whole days".to_owned())
}

/// The command that an event came from, if it is the first one that the command made.
fn command(record: &Record) -> Result<Command, String> {
    macro_rules! acquire {
        ($event:expr) => {{
            is_own(record, &$event.owner)?;
            Command::AcquireLock { ticket_id: $event.ticket_id, input: $event.input() }
        }};
    }
    macro_rules! lock {
        ($event:expr) => {
            LockKey { scope: $event.scope.clone(), lock_name: $event.lock_name.clone() }
        };
    }
    macro_rules! terms {
        ($event:expr) => {
            WriteTerms { request_uuid: $event.request_uuid, fence: $event.fence.clone() }
        };
    }
    Ok(match &record.event {
        Event::LockAcquired(e) => acquire!(e),
        Event::LockQueued(e) => acquire!(e),
        Event::LockContended(e) => acquire!(e),
        Event::LockDeadlockRejected(e) => acquire!(e),
        Event::LockHeartbeat(e) => {
            let lease = Some(e.lease_seconds);
            Command::HeartbeatTicket { lock: lock!(e), ticket_id: e.ticket_id, lease }
        }
        Event::LockReleased(e) => Command::ReleaseTicket { lock: lock!(e), ticket_id: e.ticket_id },
        Event::LockWaitCancelled(e) if e.reason.is_none() => {
            Command::ReleaseTicket { lock: lock!(e), ticket_id: e.ticket_id }
        }
        Event::LockBroken(e) => Command::BreakLock {
            lock: lock!(e),
            fence_token: e.fence_token,
            reason: e.reason.clone(),
        },
        Event::UserCreated(e) => match &e.person {
            None => Command::CreateUser { user: e.user.clone(), admin: e.admin },
            // Which token it gets, the next event says.
            Some(_) => Command::CreateAgent {
                agent: e.user.clone(),
                token_id: TokenId(uuid::Uuid::nil()),
                sha256: TokenHash([0; 32]),
                label: None,
                expires_in_days: None,
            },
        },
        Event::UserDisabled(e) => Command::DisableUser { user: e.user.clone() },
        Event::UserEnabled(e) => Command::EnableUser { user: e.user.clone() },
        Event::TeamCreated(e) => Command::CreateTeam { team: e.team.clone() },
        Event::TeamMemberAdded(e) => {
            let (team, user) = (e.team.clone(), e.user.clone());
            Command::SetTeamMember { team, user, role: e.role }
        }
        Event::TeamMemberRemoved(e) => {
            Command::RemoveTeamMember { team: e.team.clone(), user: e.user.clone() }
        }
        Event::RepoCreated(e) => Command::CreateRepo { repo: e.repo.clone() },
        Event::AccessGranted(e) => {
            let (scope, user) = (e.scope.clone(), e.user.clone());
            Command::GrantAccess { scope, user, role: e.role }
        }
        Event::AccessRevoked(e) => {
            Command::RevokeAccess { scope: e.scope.clone(), user: e.user.clone() }
        }
        Event::ActivityUpdated(e) => {
            let (activity, request_uuid) = (e.activity.clone(), e.request_uuid);
            Command::UpdateActivity { activity, request_uuid }
        }
        Event::ActivityCleared(_) => Command::ClearActivity,
        Event::ThreadCreated(e) => Command::CreateThread {
            scope: e.scope.clone(),
            number: e.is_mirror.then_some(e.number),
            title: e.title.clone(),
            body: e.body.clone(),
            terms: terms!(e),
        },
        Event::ThreadReplied(e) => Command::CreateReply {
            thread: thread(&e.scope, e.number),
            reply_id: e.reply_id,
            input: ReplyInput {
                kind: e.kind.clone(),
                body: e.body.clone(),
                links: e.links.clone(),
                parent: e.parent,
            },
            terms: terms!(e),
        },
        Event::ThreadClosed(e) => {
            Command::CloseThread { thread: thread(&e.scope, e.number), terms: terms!(e) }
        }
        Event::ThreadReopened(e) => {
            Command::ReopenThread { thread: thread(&e.scope, e.number), terms: terms!(e) }
        }
        Event::LockPromoted(_)
        | Event::LockWaitCancelled(_)
        | Event::LockExpired(_)
        | Event::LockWaitTimedOut(_)
        | Event::LedgerOpened(_)
        | Event::LedgerRecovered(_)
        | Event::LedgerRestored(_)
        | Event::TokenIssued(_)
        | Event::TokenRevoked(_) => {
            return Err(format!("nothing leads to {} here", record.event.type_name()));
        }
    })
}

fn thread(scope: &Scope, number: ThreadNumber) -> ThreadKey {
    ThreadKey { scope: scope.clone(), number }
}

/// An acquire is its owner's own.
fn is_own(record: &Record, owner: &UserName) -> Result<(), String> {
    match &record.actor {
        Actor::User(user) if user == owner => Ok(()),
        Actor::User(_) | Actor::Ledger => Err(format!("a ticket of {owner} by somebody else")),
    }
}
