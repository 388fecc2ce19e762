//! The small world that a simulation plays in, and what its people ask for.
//!
//! Few identities, scopes and lock names, so that collisions, queues, cycles and re-entrancy are
//! the rule. What is asked is drawn with an eye on what the naive model says is so: a wish that
//! nothing is known about would nearly always be refused.

use std::ops::Range;

use pearing::domain::access::{Role, TokenHash};
use pearing::domain::command::{Caller, Command};
use pearing::domain::id::{FenceToken, RequestUuid, Sequence, TicketId, TokenId};
use pearing::domain::name::{LockName, TeamName, UserName};
use pearing::domain::scope::{LockKey, Scope, ScopeKind};
use pearing::domain::text::ShortText;
use pearing::domain::ticket::TicketInput;
use pearing::domain::time::{LeaseSeconds, Time, WaitSeconds};

use super::naive::{Naive, Ticket};
use super::notes_world::Notes;
use super::rng::Rng;

const PEOPLE: [&str; 8] = ["root", "ada", "bo", "cy", "di", "ed", "flo", "gus"];
/// Agents, each with the index of its person. The last one's name may be taken by another.
const AGENTS: [(&str, usize); 5] =
    [("bo.a", 2), ("bo.b", 2), ("cy.a", 3), ("di.a", 4), ("gus.a", LATE)];
/// The one of the people who may come later, by a command of an administrator.
const LATE: usize = PEOPLE.len() - 1;
const SCOPES: [&str; 4] = ["users/bo", "teams/core", "teams/core/site", "users/cy/notes"];
const LOCKS: [&str; 3] = ["build", "deploy", "thread-work.42"];
/// How many acquires are remembered for retries.
const ASKED_MAX: usize = 40;

/// Who and what there is to draw from.
#[derive(Debug, Clone)]
pub(crate) struct World {
    /// The people, and then the agents.
    pub(super) users: Vec<UserName>,
    pub(super) scopes: Vec<Scope>,
    pub(super) lock_names: Vec<LockName>,
    team: TeamName,
    /// Every token that was ever issued, or was meant to be.
    tokens: Vec<(TokenId, UserName)>,
    /// The last acquires, whatever came of them.
    asked: Vec<(TokenId, TicketInput)>,
    pub(super) notes: Notes,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            users: PEOPLE.into_iter().chain(AGENTS.map(|(agent, _)| agent)).map(name).collect(),
            scopes: SCOPES.map(name).into(),
            lock_names: LOCKS.map(name).into(),
            team: name("core"),
            tokens: Vec::new(),
            asked: Vec::new(),
            notes: Notes::default(),
        }
    }

    /// What the ledger is set up with, in an order in which each finds what it needs.
    pub(crate) fn founding(&mut self, rng: &mut Rng) -> Vec<(Caller, Command)> {
        let mut commands = Vec::new();
        self.notes.is_talkative = rng.percent(10);
        let is_late_there = rng.percent(50);
        for (index, user) in self.users.clone().into_iter().take(PEOPLE.len()).enumerate() {
            if index == LATE && !is_late_there {
                continue;
            }
            commands.push(Command::CreateUser { user: user.clone(), admin: index < 2 });
            for _ in 0..=rng.below(2) {
                commands.push(self.issue_token(rng, user.clone()));
            }
        }
        let team = self.team.clone();
        commands.push(Command::CreateTeam { team: team.clone() });
        commands.push(Command::CreateRepo { repo: name("teams/core/site") });
        commands.push(Command::CreateRepo { repo: name("users/cy/notes") });
        for user in &self.users[2..6] {
            let role = self.role(rng);
            commands.push(Command::SetTeamMember { team: team.clone(), user: user.clone(), role });
        }
        for _ in 0..30 {
            commands.push(self.grant(rng));
        }
        commands.retain(|command| match command {
            Command::GrantAccess { user, .. } => self.users[..LATE].contains(user),
            _ => true,
        });
        let by_ledger = commands.into_iter().map(|command| (Caller::Ledger, command));
        by_ledger.chain(self.founding_agents(rng, is_late_there)).collect()
    }

    fn founding_agents(&mut self, rng: &mut Rng, is_late_there: bool) -> Vec<(Caller, Command)> {
        let mut commands = Vec::new();
        for (agent, person) in AGENTS {
            let (agent, person): (UserName, _) = (name(agent), self.users[person].clone());
            if person == self.users[LATE] && !is_late_there {
                commands.push((Caller::Ledger, Command::CreateUser { user: agent, admin: false }));
                continue;
            }
            let token = self.tokens.iter().find(|(_, user)| *user == person).map(|(id, _)| *id);
            if let Some(token) = token.filter(|_| rng.percent(80)) {
                commands.push((Caller::Token(token), self.create_agent(rng, agent)));
            }
        }
        commands
    }

    /// How far time moves before the next commands.
    pub(crate) fn next_time(&self, rng: &mut Rng, naive: &Naive, now: Time) -> Time {
        let until = |time: Option<Time>| time.map_or(0, |time| time.as_millis() - now.as_millis());
        let to_deadline = until(naive.next_deadline());
        let span = match rng.below(4000) {
            0..2700 => 0,
            2700..2950 => to_deadline,
            2950..3030 => to_deadline - 1,
            3030..3110 => to_deadline + 1,
            3110..3800 => rng.span_ms(2_000),
            3800..3960 => rng.span_ms(12_000),
            3960..3998 => rng.span_ms(300_000),
            // Nothing but tokens lasts that long.
            _ => until(naive.next_token_end(now)),
        };
        Time::from_millis(now.as_millis() + span.max(0))
    }

    /// A command, and who gives it.
    pub(crate) fn command(&mut self, rng: &mut Rng, naive: &Naive) -> (Caller, Command) {
        let token = self.token(rng, naive);
        if self.notes.is_talkative && rng.percent(60) {
            return self.write(rng, naive, token);
        }
        match rng.below(100) {
            0..49 => self.acquire(rng, token),
            49..62 => {
                let (token, lock, ticket_id) = self.ticket(rng, naive, token);
                let lease = rng.percent(60).then(|| lease(rng));
                (Caller::Token(token), Command::HeartbeatTicket { lock, ticket_id, lease })
            }
            62..77 => {
                let (token, lock, ticket_id) = self.ticket(rng, naive, token);
                (Caller::Token(token), Command::ReleaseTicket { lock, ticket_id })
            }
            77..80 => (Caller::Token(token), self.break_lock(rng, naive)),
            80..90 => self.write(rng, naive, token),
            90..92 => self.agent(rng, naive, token),
            // Administrators act more often than others try to, so that the locks stay busy.
            _ => {
                let admin = self.token_of(rng, naive, 0..2);
                let token = if rng.percent(80) { admin } else { token };
                (Caller::Token(token), self.administer(rng, naive))
            }
        }
    }

    /// An acquire that was sent before.
    fn old_acquire(&self, rng: &mut Rng) -> Option<(TokenId, TicketInput)> {
        (!self.asked.is_empty()).then(|| rng.pick(&self.asked).clone())
    }

    fn acquire(&mut self, rng: &mut Rng, token: TokenId) -> (Caller, Command) {
        let fresh = TicketInput {
            scope: rng.pick(&self.scopes).clone(),
            lock_name: self.lock_name(rng),
            request_uuid: RequestUuid(rng.uuid()),
            lease_seconds: lease(rng),
            wait_seconds: wait(rng),
            note: rng.percent(20).then(|| short("a note")),
            reentrant: rng.percent(80),
        };
        let old = self.old_acquire(rng);
        let (token, input) = match (rng.below(100), old) {
            (0..12, Some(old)) => old,
            (12..16, Some((token, old))) => (token, altered(rng, old, fresh)),
            (16..20, Some((_, old))) => (token, old),
            (20..23, Some((_, old))) => {
                (token, TicketInput { request_uuid: old.request_uuid, ..fresh })
            }
            _ => (token, fresh),
        };
        if self.asked.len() == ASKED_MAX {
            self.asked.remove(rng.index(ASKED_MAX));
        }
        self.asked.push((token, input.clone()));
        let ticket_id = TicketId(rng.uuid());
        (Caller::Token(token), Command::AcquireLock { ticket_id, input })
    }

    /// A ticket to heartbeat or release, and by whose token: mostly a live one by its owner's.
    fn ticket(
        &self,
        rng: &mut Rng,
        naive: &Naive,
        stranger: TokenId,
    ) -> (TokenId, LockKey, TicketId) {
        let tickets: Vec<&Ticket> = match rng.below(100) {
            0..80 => naive.tickets().iter().filter(|ticket| ticket.is_live()).collect(),
            80..98 => naive.tickets().iter().collect(),
            _ => Vec::new(),
        };
        if tickets.is_empty() {
            return (stranger, self.lock(rng), TicketId(rng.uuid()));
        }
        let ticket = rng.pick(&tickets);
        let owner = self.index_of(&ticket.owner);
        let is_own = rng.percent(90);
        let token = if is_own { self.token_of(rng, naive, owner..owner + 1) } else { stranger };
        let lock = if rng.percent(4) { self.lock(rng) } else { ticket.input.lock() };
        (token, lock, ticket.id)
    }

    fn break_lock(&self, rng: &mut Rng, naive: &Naive) -> Command {
        let lock = self.lock(rng);
        let current = naive.fence(&lock).unwrap_or(naive.sequence());
        let fence = if rng.percent(75) { current } else { rng.below(current + 2) };
        let fence_token = FenceToken(Sequence(fence));
        Command::BreakLock { lock, fence_token, reason: short("it hangs") }
    }

    /// A change of access. More is given than taken, and the first administrator is seldom
    /// touched, or soon nobody could do anything.
    fn administer(&mut self, rng: &mut Rng, naive: &Naive) -> Command {
        let first = usize::from(rng.percent(95));
        let user = rng.pick(&self.users[first..]).clone();
        let team = if rng.percent(5) { name("nobody") } else { self.team.clone() };
        match rng.below(100) {
            0..12 => self.narrow(rng, naive),
            12..20 => Command::SetTeamMember { team, user, role: self.role(rng) },
            20..24 => Command::RemoveTeamMember { team, user },
            24..60 => self.grant(rng),
            60..66 => Command::RevokeAccess { scope: self.any_scope(rng), user },
            66..70 => Command::DisableUser { user },
            70..84 => Command::EnableUser { user },
            84..93 => self.issue_token(rng, user),
            93..95 => {
                let token_id = self.token_of(rng, naive, first..self.users.len());
                Command::RevokeToken { token_id }
            }
            95..97 => Command::CreateTeam { team },
            97..99 => Command::CreateUser { user, admin: rng.percent(10) },
            _ => Command::CreateRepo { repo: self.any_scope(rng) },
        }
    }

    /// Takes away some of what lets someone wait.
    fn narrow(&self, rng: &mut Rng, naive: &Naive) -> Command {
        let waiting: Vec<&Ticket> =
            naive.tickets().iter().filter(|ticket| ticket.is_waiting()).collect();
        if waiting.is_empty() {
            return self.grant(rng);
        }
        let ticket = rng.pick(&waiting);
        let owner = self.index_of(&ticket.owner);
        // An agent has nothing of its own that could be taken away.
        let of = AGENTS.get(owner.wrapping_sub(PEOPLE.len())).map_or(owner, |(_, person)| *person);
        let (user, own) = (self.users[of].clone(), ticket.input.scope.clone());
        let scope = match own.kind() {
            ScopeKind::Repo(parent) if rng.percent(50) => parent,
            ScopeKind::Repo(_) | ScopeKind::User(_) | ScopeKind::Team(_) => own,
        };
        match (scope.kind(), rng.below(4)) {
            (ScopeKind::Team(team), 0) => Command::RemoveTeamMember { team, user },
            (ScopeKind::Team(team), 1) => Command::SetTeamMember { team, user, role: Role::Read },
            (_, 2) => Command::GrantAccess { scope, user, role: Role::Read },
            (_, _) => Command::RevokeAccess { scope, user },
        }
    }

    fn grant(&self, rng: &mut Rng) -> Command {
        let (scope, user) = (self.any_scope(rng), rng.pick(&self.users).clone());
        Command::GrantAccess { scope, user, role: self.role(rng) }
    }

    /// Issues a token, seldom one that exists already.
    fn issue_token(&mut self, rng: &mut Rng, user: UserName) -> Command {
        let (token_id, expires_in_days) = self.new_token(rng, &user);
        let sha256 = TokenHash([7; 32]);
        Command::IssueToken { token_id, user, sha256, label: Some(short("x")), expires_in_days }
    }

    fn new_token(&mut self, rng: &mut Rng, user: &UserName) -> (TokenId, Option<u32>) {
        let is_new = self.tokens.is_empty() || rng.percent(97);
        let token_id = if is_new { TokenId(rng.uuid()) } else { rng.pick(&self.tokens).0 };
        if is_new {
            self.tokens.push((token_id, user.clone()));
        }
        let days = if rng.percent(80) { 1 } else { *rng.pick(&[0, 36_500, 36_501, u32::MAX]) };
        (token_id, rng.percent(15).then_some(days))
    }

    fn create_agent(&mut self, rng: &mut Rng, agent: UserName) -> Command {
        let (token_id, expires_in_days) = self.new_token(rng, &agent);
        let (sha256, label) = (TokenHash([9; 32]), None);
        Command::CreateAgent { agent, token_id, sha256, label, expires_in_days }
    }

    /// Makes an agent or a token for one, or ends its tokens: mostly its person does.
    fn agent(&mut self, rng: &mut Rng, naive: &Naive, stranger: TokenId) -> (Caller, Command) {
        let (agent, person) = *rng.pick(&AGENTS);
        let is_own = rng.percent(80);
        let token = if is_own { self.token_of(rng, naive, person..person + 1) } else { stranger };
        let is_made = rng.percent(85);
        let agent = name(agent);
        let command = match is_made {
            true => self.create_agent(rng, agent),
            false => Command::RevokeAgentTokens { agent },
        };
        (Caller::Token(token), command)
    }

    /// A token of any user, each user as likely as the other.
    fn token(&self, rng: &mut Rng, naive: &Naive) -> TokenId {
        self.token_of(rng, naive, 0..self.users.len())
    }

    /// A token of one of these users; seldom one that was never issued.
    pub(super) fn token_of(&self, rng: &mut Rng, naive: &Naive, users: Range<usize>) -> TokenId {
        let user = rng.pick(&self.users[users]);
        let is_issued = |id: TokenId| naive.token_user(id).is_some();
        let tokens = self.tokens.iter().filter(|(id, other)| other == user && is_issued(*id));
        let tokens: Vec<TokenId> = tokens.map(|(id, _)| *id).collect();
        let is_unknown = tokens.is_empty() || rng.percent(1);
        if is_unknown { TokenId(rng.uuid()) } else { *rng.pick(&tokens) }
    }

    pub(super) fn index_of(&self, user: &UserName) -> usize {
        let index = self.users.iter().position(|other| other == user);
        index.expect("everyone is one of the users")
    }

    fn lock(&self, rng: &mut Rng) -> LockKey {
        LockKey { scope: rng.pick(&self.scopes).clone(), lock_name: self.lock_name(rng) }
    }

    pub(super) fn lock_name(&self, rng: &mut Rng) -> LockName {
        let index = if rng.percent(75) { 0 } else { rng.index(LOCKS.len()) };
        self.lock_names[index].clone()
    }

    /// A scope with locks, or the one above, or one that there isn't.
    pub(super) fn any_scope(&self, rng: &mut Rng) -> Scope {
        match rng.below(12) {
            0 => name("users/cy"),
            1 => name("teams/core/nothing"),
            _ => rng.pick(&self.scopes).clone(),
        }
    }

    fn role(&self, rng: &mut Rng) -> Role {
        *rng.pick(&[Role::Read, Role::Write, Role::Write, Role::Write, Role::Admin])
    }
}

/// An acquire under its old request UUID, with one thing else in it, mostly.
fn altered(rng: &mut Rng, old: TicketInput, other: TicketInput) -> TicketInput {
    match rng.below(6) {
        0 => TicketInput { scope: other.scope, ..old },
        1 => TicketInput { lock_name: other.lock_name, ..old },
        2 => TicketInput { lease_seconds: other.lease_seconds, ..old },
        3 => TicketInput { wait_seconds: other.wait_seconds, ..old },
        4 => TicketInput { note: other.note, ..old },
        _ => TicketInput { reentrant: !old.reentrant, ..old },
    }
}

/// Mostly short leases, so that many run out.
fn lease(rng: &mut Rng) -> LeaseSeconds {
    let seconds = *rng.pick(&[5, 5, 6, 7, 10, 12, 20, 60, 300]);
    LeaseSeconds::try_from(seconds).expect("within the bounds of a lease")
}

/// Often no wait at all; else one that may end in the same millisecond as a lease.
fn wait(rng: &mut Rng) -> WaitSeconds {
    let seconds = *rng.pick(&[0, 0, 1, 5, 5, 7, 10, 20, 30, 60, 60, 600, 3600]);
    WaitSeconds::try_from(seconds).expect("within the bounds of a wait")
}

fn name<T: std::str::FromStr>(text: &str) -> T {
    text.parse().ok().expect("a name that keeps the rules")
}

pub(super) fn short(text: &str) -> ShortText {
    ShortText::try_from(text.to_owned()).expect("a short text")
}
