//! A scenario as data: what the parser makes and the runner plays.

use pearing::ledger::pending::Gap;
use serde_json::Value;

use super::notes::{Look, Note, Unchanged};
use super::words::Place;

/// A file of scenarios that share their givens.
#[derive(Debug)]
pub(super) struct Script {
    /// The scenarios, each with the file's givens before its own.
    pub(super) scenarios: Vec<Scenario>,
}

/// One promise, and the story that shows it.
#[derive(Debug)]
pub(super) struct Scenario {
    /// Where it begins.
    pub(super) place: Place,
    /// The promise.
    pub(super) title: String,
    /// What is there before the story begins.
    pub(super) givens: Vec<(Place, Given)>,
    /// The story.
    pub(super) steps: Vec<Step>,
}

/// Something that is there from the start.
#[derive(Debug, Clone)]
pub(super) enum Given {
    /// Users, each with one token that has the user's name.
    Users { users: Vec<String>, admin: bool },
    /// Agents, each with one token that has the agent's name.
    Agents { agents: Vec<String> },
    /// A further token of a user.
    Token { token: String, user: String },
    /// A team, and its members.
    Team { team: String },
    /// Members of a team.
    Members { team: String, role: String, users: Vec<String> },
    /// A repository.
    Repo { repo: String },
    /// A direct grant.
    Grant { user: String, role: String, scope: String },
    /// The scope of every lock that names none.
    DefaultScope { scope: String },
    /// A limit other than the default.
    Limit { limit: String, most: u32 },
}

/// What happens at one time, or is looked at between two.
#[derive(Debug)]
pub(super) enum Step {
    /// One batch: one ledger time, settled first, then commands in order of arrival.
    Batch { at_millis: i64, settle_most: Option<usize>, items: Vec<Item> },
    /// The server goes down, and is up again at this time; on a backup, if there is a gap.
    Restart { place: Place, at_millis: i64, gap: Option<Gap>, expected: Vec<Expected> },
    /// The state of a lock.
    Lock { place: Place, lock: LockWords, expected: LockState },
    /// The names of the held locks of a scope.
    Locks { place: Place, scope: String, expected: Vec<String> },
    /// The state of a ticket, live or ended.
    Ticket { place: Place, ticket: String, expected: Box<State> },
    /// An identity's live tickets, in the order in which they were made.
    Tickets { place: Place, user: String, expected: Vec<String> },
    /// A thread, an activity, a role, or what somebody sees.
    Look { place: Place, look: Box<Look> },
}

/// What a lock is expected to be.
#[derive(Debug)]
pub(super) enum LockState {
    /// Nobody holds it, nobody waits.
    Free,
    /// Somebody holds it; what isn't said isn't looked at, but for the queue.
    Held { owner: String, facts: Box<Facts>, queue: Vec<String> },
}

/// A state of a ticket, and what is said of it.
#[derive(Debug, Clone)]
pub(super) struct State {
    /// `held`, `waiting`, `expired`, …
    pub(super) state: String,
    /// The rest.
    pub(super) facts: Facts,
}

/// A lock as a scenario names it.
#[derive(Debug, Clone)]
pub(super) struct LockWords {
    /// Its name.
    pub(super) name: String,
    /// Its scope, if it isn't the default.
    pub(super) scope: Option<String>,
}

/// One line of a batch.
#[derive(Debug)]
pub(super) struct Item {
    /// Where it stands.
    pub(super) place: Place,
    /// What is done; `None` only settles.
    pub(super) deed: Option<Deed>,
    /// Everything that comes of it, in order.
    pub(super) expected: Vec<Expected>,
}

/// A command and the token that gives it.
#[derive(Debug)]
pub(super) struct Deed {
    /// The token: a user's own is called like the user.
    pub(super) token: String,
    /// The command.
    pub(super) action: Action,
}

/// A command, in the words of the scenario.
#[derive(Debug)]
pub(super) enum Action {
    /// Acquire.
    Acquire(Acquire),
    /// Heartbeat; the ticket is the caller's latest if none is named.
    Heartbeat { ticket: Option<String>, at: Option<LockWords>, lease: Option<u64> },
    /// Release or cancel.
    Release { ticket: Option<String>, at: Option<LockWords> },
    /// Break.
    Break { lock: LockWords, fence: Fence, reason: String },
    /// Disable a user.
    Disable { user: String },
    /// Enable a user.
    Enable { user: String },
    /// Issue a token.
    Issue { token: String, user: String, days: Option<u32> },
    /// Revoke a token.
    RevokeToken { token: String },
    /// Add a user to a team, or change its role.
    AddMember { user: String, team: String, role: String },
    /// Take a user out of a team.
    RemoveMember { user: String, team: String },
    /// Grant.
    Grant { user: String, role: String, scope: String },
    /// Revoke a grant.
    Revoke { user: String, scope: String },
    /// Make a user.
    CreateUser { user: String },
    /// Make a team.
    CreateTeam { team: String },
    /// Make a repository.
    CreateRepo { repo: String },
    /// About agents, activity or threads.
    Note(Note),
}

/// An acquire, with its defaults left open.
#[derive(Debug, Default)]
pub(super) struct Acquire {
    /// The lock.
    pub(super) lock: String,
    /// Its scope.
    pub(super) scope: Option<String>,
    /// The lease, in seconds.
    pub(super) lease: Option<u64>,
    /// The wait, in seconds.
    pub(super) wait: Option<u64>,
    /// Why.
    pub(super) note: Option<String>,
    /// Whether it must not join an own hold.
    pub(super) is_not_reentrant: bool,
    /// The request's name; a fresh one if not given.
    pub(super) uuid: Option<String>,
    /// What the new ticket is called from here on.
    pub(super) ticket: Option<String>,
}

/// A fence token as a scenario names it.
#[derive(Debug, Clone)]
pub(super) enum Fence {
    /// The first mention says what it is, each later one must be the same.
    Named(String),
    /// A number.
    Number(u64),
    /// There is none.
    Absent,
}

/// One thing that comes of a line.
#[derive(Debug)]
pub(super) enum Expected {
    /// An event of this type.
    Event { type_name: &'static str, facts: Facts },
    /// No event: the same ticket as at the first time, as it is now.
    Replay(State),
    /// No event: the ticket as it has been.
    Still(State),
    /// No event: what a write was answered at the first time, as it is now, or what is so
    /// already.
    Unchanged { is_replay: bool, unchanged: Box<Unchanged> },
    /// No event: a refusal.
    Refused { code: String, current: Option<Fence> },
    /// No event, since the input can't be said at all: the field.
    Invalid { field: String },
    /// No event, and no refusal.
    Nothing,
    /// More is due than the append may hold.
    MoreDue,
    /// The first fence token is greater than the second.
    Greater { left: String, right: String },
}

/// What is said of an event or a ticket; what isn't said isn't looked at.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts {
    /// User, ticket, token or team names that must all occur in it.
    pub(super) names: Vec<String>,
    /// The fence token.
    pub(super) fence: Option<Fence>,
    /// Held tickets of the hold.
    pub(super) depth: Option<u32>,
    /// When the lease ends.
    pub(super) expires_at_millis: Option<i64>,
    /// When the wait ends.
    pub(super) until_millis: Option<i64>,
    /// The place in the queue.
    pub(super) position: Option<u32>,
    /// Who held the lock then.
    pub(super) holder: Option<String>,
    /// Why it ended.
    pub(super) reason: Option<String>,
    /// The tickets of the cycle.
    pub(super) cycle: Option<Vec<String>>,
    /// The note.
    pub(super) note: Option<String>,
    /// The lease, in seconds.
    pub(super) lease: Option<u64>,
    /// The reply that is answered; `none` for the thread itself.
    pub(super) parent: Option<String>,
    /// One of the links.
    pub(super) link: Option<String>,
    /// Fields of an event or a thread that are compared as they are.
    pub(super) fields: Vec<(&'static str, Value)>,
}
