//! From a command to events, or to a refusal.
//!
//! The first questions are the same for every command: does the token work, is its user in
//! service, may it see the scope, may it do this there. What follows is each operation's own: of
//! locks in `lock/`, of access, agents, activity and threads below.

use super::access::Role;
use super::command::{Caller, Command};
use super::event::{Event, Record};
use super::id::{Sequence, TicketId};
use super::lock;
use super::name::{Actor, UserName};
use super::refusal::Refusal;
use super::scope::{LockKey, Scope};
use super::state::State;
use super::thread::{ThreadKey, ThreadRow, ThreadState};
use super::ticket::Ticket;
use super::time::Time;

mod activity;
mod administer;
mod agent;
mod thread;

/// When, and where in the ledger, a decision falls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At {
    /// The ledger time of the batch.
    pub time: Time,
    /// The sequence that the decision's first event gets.
    pub next_sequence: Sequence,
}

/// How much one identity, scope, lock or thread may take up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Held and waiting tickets of one identity.
    pub live_tickets_per_identity: u32,
    /// Held and waiting tickets in one scope, its repositories not counted.
    pub live_tickets_per_scope: u32,
    /// Waiting identities of one lock.
    pub places_per_lock: u32,
    /// Replies of one thread.
    pub replies_per_thread: u32,
    /// Agents of one person.
    pub agents_per_person: u32,
    /// Tokens of one agent that work.
    pub tokens_per_agent: u32,
}

impl Limits {
    /// No limits: what was decided once stands, whatever the limits are now.
    pub(super) const NONE: Self = Self {
        live_tickets_per_identity: u32::MAX,
        live_tickets_per_scope: u32::MAX,
        places_per_lock: u32::MAX,
        replies_per_thread: u32::MAX,
        agents_per_person: u32::MAX,
        tokens_per_agent: u32::MAX,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            live_tickets_per_identity: 10_000,
            live_tickets_per_scope: 50_000,
            places_per_lock: 10_000,
            replies_per_thread: 1_000,
            agents_per_person: 100,
            tokens_per_agent: 100,
        }
    }
}

/// What is over and bears on a command. Looked up before the command is decided, so that the core
/// reads nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Past {
    /// For an acquire: the ticket, live or ended, that its identity made under its request UUID.
    pub request: Option<TicketId>,
    /// The ticket that the command or `request` names, if it has ended.
    pub ticket: Option<Ticket>,
    /// For a write to a thread or an activity: what its identity wrote under its request UUID.
    pub written: Option<Record>,
    /// The thread that the command names.
    pub thread: Option<ThreadRow>,
    /// How deep the reply stands that the command answers.
    pub parent_level: Option<u32>,
}

/// What the caller is told about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A ticket.
    Ticket {
        /// Which.
        ticket_id: TicketId,
        /// Whether the command had been carried out before, under the same request UUID.
        is_replay: bool,
    },
    /// A lock.
    Lock(LockKey),
    /// A thread.
    Thread {
        /// Which.
        thread: ThreadKey,
        /// The event that was written; `None` if everything was as asked for already.
        written: Option<Sequence>,
        /// Whether it had been written before, under the same request UUID.
        is_replay: bool,
    },
    /// What a user is doing.
    Activity {
        /// Who.
        user: UserName,
        /// Whether it had been said before, under the same request UUID.
        is_replay: bool,
    },
    /// It is as asked for.
    Done,
}

/// A command carried out: what happened by it, and what the caller is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Who caused the events.
    pub actor: Actor,
    /// What happened; empty if everything was as asked for already.
    pub events: Vec<Event>,
    /// What the caller is told.
    pub answer: Answer,
}

/// Decides a command. All deadlines up to `at.time` have been settled before.
///
/// # Errors
///
/// A [`Refusal`]: nothing happened, and nothing may be appended.
pub fn decide(
    state: &State,
    past: &Past,
    limits: &Limits,
    at: At,
    caller: Caller,
    command: &Command,
) -> Result<Decision, Refusal> {
    decide_as(state, past, limits, at, actor(state, at, caller)?, command)
}

/// Decides a command whose caller is known.
pub(super) fn decide_as(
    state: &State,
    past: &Past,
    limits: &Limits,
    at: At,
    actor: Actor,
    command: &Command,
) -> Result<Decision, Refusal> {
    let context = Context { state, past, limits, at, actor };
    let (events, answer) = match command {
        Command::AcquireLock { ticket_id, input } => {
            lock::acquire::acquire(&context, *ticket_id, input)?
        }
        Command::HeartbeatTicket { lock, ticket_id, lease } => {
            lock::heartbeat::heartbeat(&context, lock, *ticket_id, *lease)?
        }
        Command::ReleaseTicket { lock, ticket_id } => {
            lock::release::release(&context, lock, *ticket_id)?
        }
        Command::BreakLock { lock, fence_token, reason } => {
            lock::release::break_lock(&context, lock, *fence_token, reason)?
        }
        Command::CreateUser { .. }
        | Command::DisableUser { .. }
        | Command::EnableUser { .. }
        | Command::IssueToken { .. }
        | Command::RevokeToken { .. }
        | Command::CreateTeam { .. }
        | Command::SetTeamMember { .. }
        | Command::RemoveTeamMember { .. }
        | Command::CreateRepo { .. }
        | Command::GrantAccess { .. }
        | Command::RevokeAccess { .. } => {
            context.require_in_service()?;
            (administer::administer(&context, command)?, Answer::Done)
        }
        Command::CreateAgent { agent, token_id, sha256, label, expires_in_days } => {
            context.require_in_service()?;
            let new = administer::NewToken { token_id: *token_id, sha256: *sha256, label };
            (agent::create(&context, agent, new, *expires_in_days)?, Answer::Done)
        }
        Command::RevokeAgentTokens { agent } => {
            context.require_in_service()?;
            (agent::revoke_tokens(&context, agent)?, Answer::Done)
        }
        Command::UpdateActivity { activity, request_uuid } => {
            context.require_in_service()?;
            activity::update(&context, activity, *request_uuid)?
        }
        Command::ClearActivity => {
            context.require_in_service()?;
            activity::clear(&context)?
        }
        Command::CreateThread { scope, number, title, body, terms } => {
            let new = thread::NewThread { scope, number: *number, title, body };
            thread::create(&context, &new, terms)?
        }
        Command::CreateReply { thread, reply_id, input, terms } => {
            thread::reply(&context, thread, *reply_id, input, terms)?
        }
        Command::CloseThread { thread, terms } => {
            thread::set_state(&context, thread, ThreadState::Closed, terms)?
        }
        Command::ReopenThread { thread, terms } => {
            thread::set_state(&context, thread, ThreadState::Open, terms)?
        }
    };
    Ok(Decision { actor: context.actor, events, answer })
}

/// Who stands behind the caller. A token that was revoked or has expired when the command is
/// decided stands for nobody, whatever it was when the command arrived.
fn actor(state: &State, at: At, caller: Caller) -> Result<Actor, Refusal> {
    match caller {
        Caller::Ledger => Ok(Actor::Ledger),
        Caller::Token(id) => match state.access().token(id) {
            Some(token) if token.is_live(at.time) => Ok(Actor::User(token.user.clone())),
            Some(_) | None => Err(Refusal::Unauthenticated),
        },
    }
}

/// What a decision may look at, and the questions that several operations ask.
pub(super) struct Context<'a> {
    pub(super) state: &'a State,
    pub(super) past: &'a Past,
    pub(super) limits: &'a Limits,
    pub(super) at: At,
    actor: Actor,
}

impl Context<'_> {
    /// The user that acts.
    pub(super) fn user(&self) -> Result<&UserName, Refusal> {
        match &self.actor {
            Actor::User(user) => Ok(user),
            Actor::Ledger => Err(Refusal::Forbidden("only a user can do this")),
        }
    }

    /// A disabled user may only read and release its own tickets.
    pub(super) fn require_in_service(&self) -> Result<(), Refusal> {
        match &self.actor {
            Actor::User(user) if !self.state.access().is_in_service(user) => {
                Err(Refusal::Forbidden("a disabled user may only read and release its own tickets"))
            }
            Actor::User(_) | Actor::Ledger => Ok(()),
        }
    }

    /// Needs a role in a scope. Without any, the scope doesn't exist for the caller.
    pub(super) fn require_role(&self, scope: &Scope, least: Role) -> Result<(), Refusal> {
        self.require_in_service()?;
        let role = match &self.actor {
            Actor::Ledger => self.state.access().has_scope(scope).then_some(Role::Admin),
            Actor::User(user) => self.state.access().role(user, scope),
        };
        match role {
            None => Err(Refusal::NotFound("scope")),
            Some(role) if role >= least => Ok(()),
            Some(_) if least == Role::Admin => {
                Err(Refusal::Forbidden("this needs the role admin in the scope"))
            }
            Some(_) => Err(Refusal::Forbidden("this needs the role write in the scope")),
        }
    }

    /// A ticket of the caller's own, live or ended, named together with its lock.
    pub(super) fn own_ticket(&self, lock: &LockKey, id: TicketId) -> Result<&Ticket, Refusal> {
        let user = self.user()?;
        let ticket = self.ticket(id).filter(|ticket| ticket.lock() == *lock);
        if let Some(ticket) = ticket
            && ticket.owner == *user
        {
            return Ok(ticket);
        }
        self.require_in_service()?;
        match ticket {
            Some(_) if self.state.access().can_read(user, &lock.scope) => {
                Err(Refusal::Forbidden("the ticket belongs to another identity"))
            }
            Some(_) | None => Err(Refusal::NotFound("ticket")),
        }
    }

    /// A ticket by its id, live or ended.
    pub(super) fn ticket(&self, id: TicketId) -> Option<&Ticket> {
        let ended = self.past.ticket.as_ref().filter(|ticket| ticket.id == id);
        self.state.ticket(id).or(ended)
    }
}
