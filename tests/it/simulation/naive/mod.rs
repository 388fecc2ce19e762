//! A second model of the rules, written from the rules alone and as plainly as they are
//! worded. It shares ids, names, scopes, times, roles and commands with the core, nothing else.
//!
//! Every question is answered by a scan over plain lists: the queue, the holder, the depth, the
//! roles, the next deadline, the wait-for graph. Where the core keeps an index, this works the
//! answer out again, so an index that goes stale shows up as a disagreement.
//! Deliberately absent: storage, projections, hashes, anything fast.

mod access;
mod agents;
mod locks;
mod threads;
mod timers;
mod writes;

use pearing::domain::command::{Caller, Command};
use pearing::domain::id::{TicketId, TokenId};
use pearing::domain::name::UserName;
use pearing::domain::scope::LockKey;
use pearing::domain::thread::ThreadKey;
use pearing::domain::ticket::TicketInput;
use pearing::domain::time::Time;

use access::Access;
pub(crate) use access::AccessEvent;
pub(crate) use threads::{ReplyView, ThreadEvent, ThreadView, Write};
use writes::Remembered;
pub(crate) use writes::{Activity, ActivityEvent};

/// The model.
#[derive(Debug, Clone)]
pub(crate) struct Naive {
    /// The ledger time of the append that is being made.
    now: Time,
    /// The sequence of the last event. The model counts its events itself.
    sequence: u64,
    limits: Limits,
    access: Access,
    /// Every ticket ever made, in the order of the events that made them.
    tickets: Vec<Ticket>,
    /// Every write to a thread that was ever made, oldest first.
    thread_events: Vec<(u64, Time, ThreadEvent)>,
    /// What users say that they are doing.
    activities: Vec<Activity>,
    /// Every write under a request UUID, beside the acquires.
    remembered: Vec<Remembered>,
}

/// How much there may be at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Held and waiting tickets of one identity, over all locks.
    pub(crate) live_tickets_per_identity: u32,
    /// Held and waiting tickets in one scope.
    pub(crate) live_tickets_per_scope: u32,
    /// Waiting identities of one lock.
    pub(crate) places_per_lock: u32,
    /// Replies of one thread.
    pub(crate) replies_per_thread: u32,
    /// Agents of one person.
    pub(crate) agents_per_person: u32,
    /// Tokens of one agent that work.
    pub(crate) tokens_per_agent: u32,
}

/// A ticket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) id: TicketId,
    pub(crate) owner: UserName,
    pub(crate) input: TicketInput,
    pub(crate) fence: Option<u64>,
    pub(crate) standing: Standing,
}

/// Where a ticket stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    Held {
        until: Time,
        is_grace_due: bool,
    },
    /// `place` is the sequence of the event that took the place, for all tickets that share it.
    Waiting {
        until: Time,
        place: u64,
    },
    Ended {
        ending: Ending,
        at: Time,
        reason: Option<String>,
        deadline: Option<Time>,
    },
}

/// How a ticket ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Released,
    Expired,
    Broken,
    Cancelled,
    TimedOut,
    Contended,
    DeadlockRejected,
}

/// What the model says that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    Restored { last_sequence: u64, reason: String },
    Recovered { grace_seconds: u32 },
    Access(AccessEvent),
    Lock(Box<LockEvent>),
    Activity(ActivityEvent),
    Thread(Box<ThreadEvent>),
}

/// A step of a ticket's life; what doesn't apply to its kind is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LockEvent {
    pub(crate) kind: Kind,
    pub(crate) ticket_id: TicketId,
    pub(crate) lock: LockKey,
    pub(crate) owner: UserName,
    /// Of an event that begins a ticket.
    pub(crate) input: Option<TicketInput>,
    pub(crate) fence: Option<u64>,
    /// Held tickets of the hold after the event.
    pub(crate) depth: Option<u32>,
    /// The deadline that the event sets, or that passed.
    pub(crate) until: Option<Time>,
    pub(crate) position: Option<u32>,
    /// Who held the lock, and under which fence.
    pub(crate) holder: Option<(UserName, u64)>,
    /// The lease that a heartbeat asked for.
    pub(crate) lease_seconds: Option<u32>,
    pub(crate) reason: Option<String>,
}

/// Which step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Acquired,
    Queued,
    Contended,
    DeadlockRejected,
    Heartbeat,
    Promoted,
    Released,
    Expired,
    Broken,
    WaitCancelled,
    WaitTimedOut,
}

/// What a command is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The ticket as it is now; `is_replay` if an acquire made it earlier.
    Ticket {
        ticket_id: TicketId,
        is_replay: bool,
    },
    /// The lock as it is now.
    Lock,
    /// The thread as it is now, and the sequence of what was written to it, if anything was.
    Thread {
        thread: ThreadKey,
        written: Option<u64>,
        is_replay: bool,
    },
    /// What the user is doing now.
    Activity {
        user: UserName,
        is_replay: bool,
    },
    Done,
}

/// Why a command is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Refused {
    Unauthenticated,
    Forbidden,
    NotFound,
    InvalidArgument,
    RequestUuidReused,
    TicketNotHeld,
    TicketEnded,
    StaleFence,
    AlreadyExists,
    LimitReached,
}

/// A ticket as its owner would see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) owner: UserName,
    pub(crate) input: TicketInput,
    pub(crate) fence: Option<u64>,
    pub(crate) stands: Stands,
    /// Held tickets of its hold; 0 if it isn't held.
    pub(crate) depth: u32,
    pub(crate) position: Option<u32>,
}

/// Where a ticket stands, without the model's own bookkeeping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stands {
    Held { until: Time, is_grace_due: bool },
    Waiting { until: Time },
    Ended { ending: Ending, at: Time, reason: Option<String>, deadline: Option<Time> },
}

/// The answer and what happened for it, or why nothing did.
pub(crate) type Outcome = Result<(Answer, Vec<Event>), Refused>;

impl Naive {
    /// An empty ledger, whose first event, `ledger.opened`, is not the model's business.
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            now: Time::default(),
            sequence: 1,
            limits,
            access: Access::default(),
            tickets: Vec::new(),
            thread_events: Vec::new(),
            activities: Vec::new(),
            remembered: Vec::new(),
        }
    }

    /// Carries out one command at `now`, everything due having been settled.
    pub(crate) fn decide(&mut self, now: Time, caller: Caller, command: &Command) -> Outcome {
        self.now = now;
        let user = match caller {
            Caller::Ledger => None,
            Caller::Token(token) => Some(self.access.authenticate(token, now)?),
        };
        let Some(user) = user else {
            return self.administer(None, command);
        };
        if let Some(remembered) = self.remembered(&user, command) {
            return self.again(&user, &remembered, command);
        }
        match command {
            Command::AcquireLock { ticket_id, input } => self.acquire(&user, *ticket_id, input),
            Command::HeartbeatTicket { lock, ticket_id, lease } => {
                self.heartbeat(&user, lock, *ticket_id, *lease)
            }
            Command::ReleaseTicket { lock, ticket_id } => self.release(&user, lock, *ticket_id),
            Command::BreakLock { lock, fence_token, reason } => {
                self.break_lock(&user, lock, fence_token.0.0, reason.as_str())
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
            | Command::RevokeAccess { .. } => self.administer(Some(&user), command),
            Command::CreateAgent { .. } | Command::RevokeAgentTokens { .. } => {
                self.change_agent(&user, command)
            }
            Command::UpdateActivity { .. } | Command::ClearActivity => {
                self.change_activity(&user, command)
            }
            Command::CreateThread { .. }
            | Command::CreateReply { .. }
            | Command::CloseThread { .. }
            | Command::ReopenThread { .. } => self.write(&user, command),
        }
    }

    /// Every ticket ever made, oldest first.
    pub(crate) fn tickets(&self) -> &[Ticket] {
        &self.tickets
    }

    /// The sequence of the last event.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// A ticket as it is now.
    pub(crate) fn view(&self, ticket_id: TicketId) -> Option<View> {
        let ticket = self.tickets.iter().find(|ticket| ticket.id == ticket_id)?;
        let (stands, depth, position) = match ticket.standing.clone() {
            Standing::Held { until, is_grace_due } => {
                (Stands::Held { until, is_grace_due }, self.depth(&ticket.input.lock()), None)
            }
            Standing::Waiting { until, .. } => {
                (Stands::Waiting { until }, 0, self.position(&ticket.owner, &ticket.input.lock()))
            }
            Standing::Ended { ending, at, reason, deadline } => {
                (Stands::Ended { ending, at, reason, deadline }, 0, None)
            }
        };
        let (owner, input) = (ticket.owner.clone(), ticket.input.clone());
        Some(View { owner, input, fence: ticket.fence, stands, depth, position })
    }

    /// The user of a token, whether or not the token still works.
    pub(crate) fn token_user(&self, token_id: TokenId) -> Option<UserName> {
        self.access.token_user(token_id)
    }

    /// When the next token runs out after `now`.
    pub(crate) fn next_token_end(&self, now: Time) -> Option<Time> {
        self.access.token_ends().filter(|end| *end > now).min()
    }

    /// The holder of a lock, if there is one.
    pub(crate) fn holder_of(&self, lock: &LockKey) -> Option<UserName> {
        self.holder(lock).map(|(owner, _)| owner)
    }

    /// The fence of a lock's hold, if there is one.
    pub(crate) fn fence(&self, lock: &LockKey) -> Option<u64> {
        self.holder(lock).map(|(_, fence)| fence)
    }

    fn held<'a>(&'a self, lock: &'a LockKey) -> impl Iterator<Item = &'a Ticket> {
        self.tickets.iter().filter(|ticket| ticket.is_held() && ticket.is_for(lock))
    }

    fn waiting<'a>(&'a self, lock: &'a LockKey) -> impl Iterator<Item = &'a Ticket> {
        self.tickets.iter().filter(|ticket| ticket.is_waiting() && ticket.is_for(lock))
    }

    /// Who holds a lock, and under which fence.
    fn holder(&self, lock: &LockKey) -> Option<(UserName, u64)> {
        let ticket = self.held(lock).next()?;
        Some((ticket.owner.clone(), ticket.fence.expect("a held ticket has a fence")))
    }

    fn depth(&self, lock: &LockKey) -> u32 {
        u32::try_from(self.held(lock).count()).expect("a simulation makes few tickets")
    }

    /// The waiting identities of a lock, in order of their places.
    fn queue(&self, lock: &LockKey) -> Vec<UserName> {
        let mut places: Vec<(u64, UserName)> = Vec::new();
        for ticket in self.waiting(lock) {
            if let Standing::Waiting { place, .. } = ticket.standing
                && !places.iter().any(|(_, owner)| *owner == ticket.owner)
            {
                places.push((place, ticket.owner.clone()));
            }
        }
        places.sort();
        places.into_iter().map(|(_, owner)| owner).collect()
    }

    /// The place of an identity in a lock's queue, from 1.
    fn position(&self, owner: &UserName, lock: &LockKey) -> Option<u32> {
        let index = self.queue(lock).iter().position(|other| other == owner)?;
        Some(u32::try_from(index + 1).expect("a simulation has few identities"))
    }

    fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }
}

impl Ticket {
    pub(crate) fn is_held(&self) -> bool {
        matches!(self.standing, Standing::Held { .. })
    }

    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self.standing, Standing::Waiting { .. })
    }

    pub(crate) fn is_live(&self) -> bool {
        self.is_held() || self.is_waiting()
    }

    /// The deadline of its lease or of its wait, while it is live.
    pub(crate) fn deadline(&self) -> Option<Time> {
        match self.standing {
            Standing::Held { until, .. } | Standing::Waiting { until, .. } => Some(until),
            Standing::Ended { .. } => None,
        }
    }

    fn is_for(&self, lock: &LockKey) -> bool {
        self.input.scope == lock.scope && self.input.lock_name == lock.lock_name
    }

    fn end(&mut self, ending: Ending, at: Time, reason: Option<&str>) {
        let (deadline, reason) = (self.deadline(), reason.map(str::to_owned));
        self.standing = Standing::Ended { ending, at, reason, deadline };
    }

    /// An event of this ticket, with nothing said yet but what every one says.
    fn event(&self, kind: Kind) -> LockEvent {
        LockEvent {
            kind,
            ticket_id: self.id,
            lock: self.input.lock(),
            owner: self.owner.clone(),
            input: None,
            fence: None,
            depth: None,
            until: None,
            position: None,
            holder: None,
            lease_seconds: None,
            reason: None,
        }
    }
}
