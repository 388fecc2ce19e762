//! Plays a scenario and compares what comes of each line with what the line expects.

use std::collections::BTreeMap;

use pearing::domain::command::{Caller, Command};
use pearing::domain::id::{TicketId, TokenId};
use pearing::domain::name::Actor;
use pearing::domain::scope::{LockKey, Scope};
use pearing::domain::thread::WriteTerms;
use serde_json::json;

use super::command::{Maker, NoCommand, role};
use super::compare;
use super::names::{Names, time, token_hash};
use super::notes::Note;
use super::notes_command::terms_of;
use super::script::{
    Action, Deed, Expected, Fence, Given, Item, LockState, LockWords, Scenario, Step,
};
use super::server::{Open, Server};
use super::words::Place;

/// A scenario that is being played.
pub(super) struct Play {
    /// The server.
    pub(super) server: Server,
    /// What the names stand for.
    pub(super) names: Names,
    pub(super) default_scope: Option<String>,
    /// Each identity's latest ticket, and the lock of each ticket.
    latest: BTreeMap<String, TicketId>,
    locks: BTreeMap<TicketId, LockKey>,
}

/// Plays a scenario from its givens to its end.
pub(super) fn play(scenario: &Scenario) -> Result<Play, String> {
    let mut play = Play {
        server: Server::default(),
        names: Names::default(),
        default_scope: None,
        latest: BTreeMap::new(),
        locks: BTreeMap::new(),
    };
    let in_story = |place: &Place, why: String| {
        // A line's own failure names its place already.
        let why = if why.starts_with(&place.file) { why } else { place.fails(why) };
        format!("scenario: {}\n{why}", scenario.title)
    };
    let start = &scenario.place;
    play.server.open(time(0)).map_err(|why| in_story(start, why))?;
    for (place, given) in &scenario.givens {
        play.given(given).map_err(|why| in_story(place, why))?;
    }
    for step in &scenario.steps {
        let place = step_place(step).unwrap_or(start);
        play.step(step).map_err(|why| in_story(place, why))?;
    }
    play.server.check_ledger().map_err(|why| in_story(start, why))?;
    Ok(play)
}

fn step_place(step: &Step) -> Option<&Place> {
    match step {
        Step::Batch { items, .. } => items.first().map(|item| &item.place),
        Step::Restart { place, .. }
        | Step::Lock { place, .. }
        | Step::Locks { place, .. }
        | Step::Ticket { place, .. }
        | Step::Tickets { place, .. }
        | Step::Look { place, .. } => Some(place),
    }
}

/// What becomes of a line in its batch.
enum Line<'a> {
    Command {
        item: &'a Item,
        deed: &'a Deed,
        caller: Caller,
        command: Command,
    },
    /// It can't even be asked: no type lets this field through.
    Invalid {
        item: &'a Item,
        field: &'static str,
    },
}

impl Play {
    fn given(&mut self, given: &Given) -> Result<(), String> {
        for (caller, command) in self.given_commands(given)? {
            let appended = self
                .server
                .batch(time(0), usize::MAX, |open| open.decide(caller, &command).map(|_| ()))?;
            match &appended.outcomes[0].result {
                Some(Ok(_)) => {}
                other => return Err(format!("this can't be given: {other:?}")),
            }
        }
        Ok(())
    }

    fn given_commands(&mut self, given: &Given) -> Result<Vec<(Caller, Command)>, String> {
        if let Given::Agents { agents } = given {
            return agents.iter().map(|agent| self.given_agent(agent)).collect();
        }
        let commands = self.given_by_ledger(given)?;
        Ok(commands.into_iter().map(|command| (Caller::Ledger, command)).collect())
    }

    /// An agent is made by its person: whoever has the part before the last dot.
    fn given_agent(&mut self, agent: &str) -> Result<(Caller, Command), String> {
        let (person, _) = agent.rsplit_once('.').ok_or("an agent is called PERSON.NAME")?;
        let (token, _) = *self.names.tokens.get(person).ok_or("its person has no token")?;
        let token_id = TokenId(self.names.fresh());
        self.names.tokens.insert(agent.to_owned(), (token_id, agent.to_owned()));
        let (agent, sha256, label) = (parsed(agent)?, token_hash(token_id), None);
        let create = Command::CreateAgent { agent, token_id, sha256, label, expires_in_days: None };
        Ok((Caller::Token(token), create))
    }

    fn given_by_ledger(&mut self, given: &Given) -> Result<Vec<Command>, String> {
        let mut commands = Vec::new();
        match given {
            Given::Users { users, admin } => {
                for user in users {
                    commands.push(Command::CreateUser { user: parsed(user)?, admin: *admin });
                    commands.push(self.issue(user, user)?);
                }
            }
            Given::Token { token, user } => commands.push(self.issue(token, user)?),
            Given::Team { team } => commands.push(Command::CreateTeam { team: parsed(team)? }),
            Given::Members { team, role: as_role, users } => {
                for user in users {
                    let role = role(as_role).map_err(|_| format!("{as_role:?} is no role"))?;
                    let (team, user) = (parsed(team)?, parsed(user)?);
                    commands.push(Command::SetTeamMember { team, user, role });
                }
            }
            Given::Repo { repo } => commands.push(Command::CreateRepo { repo: parsed(repo)? }),
            Given::Grant { user, role: as_role, scope } => {
                let role = role(as_role).map_err(|_| format!("{as_role:?} is no role"))?;
                let (scope, user) = (parsed(scope)?, parsed(user)?);
                commands.push(Command::GrantAccess { scope, user, role });
            }
            Given::Agents { .. } => return Err("agents are made by their people".to_owned()),
            Given::DefaultScope { scope } => self.default_scope = Some(scope.clone()),
            Given::Limit { limit, most } => match limit.as_str() {
                "live-tickets-per-identity" => self.server.limits.live_tickets_per_identity = *most,
                "live-tickets-per-scope" => self.server.limits.live_tickets_per_scope = *most,
                "places-per-lock" => self.server.limits.places_per_lock = *most,
                "agents-per-person" => self.server.limits.agents_per_person = *most,
                "tokens-per-agent" => self.server.limits.tokens_per_agent = *most,
                "replies-per-thread" => self.server.limits.replies_per_thread = *most,
                other => return Err(format!("there is no limit {other:?}")),
            },
        }
        Ok(commands)
    }

    fn issue(&mut self, token: &str, user: &str) -> Result<Command, String> {
        let token_id = TokenId(self.names.fresh());
        self.names.tokens.insert(token.to_owned(), (token_id, user.to_owned()));
        let (user, sha256) = (parsed(user)?, token_hash(token_id));
        Ok(Command::IssueToken { token_id, user, sha256, label: None, expires_in_days: None })
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Batch { at_millis, settle_most, items } => {
                self.batch(*at_millis, settle_most.unwrap_or(usize::MAX), items)
            }
            Step::Restart { at_millis, gap, expected, .. } => {
                let records = self.server.restart(time(*at_millis), *gap)?;
                compare::start(&mut self.names, &records, expected)
            }
            Step::Lock { lock, expected, .. } => self.look_at_lock(lock, expected),
            Step::Locks { scope, expected, .. } => {
                let scope: Scope = parsed(scope)?;
                let state = self.server.state();
                let found: Vec<&str> =
                    state.locks_in(&scope).map(|(lock, _)| lock.lock_name.as_str()).collect();
                if found == *expected { Ok(()) } else { Err(format!("the locks are {found:?}")) }
            }
            Step::Ticket { ticket, expected, .. } => {
                let seen = self.server.ticket(self.names.ticket(ticket)?)?;
                compare::state(&mut self.names, expected, &seen)
            }
            Step::Tickets { user, expected, .. } => {
                let mut wanted = Vec::new();
                for name in expected {
                    wanted.push(self.names.ticket(name)?);
                }
                let user = parsed(user)?;
                let tickets = self.server.state().tickets_of(&user);
                let found: Vec<TicketId> = tickets.map(|ticket| ticket.id).collect();
                if found == wanted { Ok(()) } else { Err(format!("the tickets are {found:?}")) }
            }
            Step::Look { look, .. } => self.look(look),
        }
    }

    fn look_at_lock(&mut self, lock: &LockWords, expected: &LockState) -> Result<(), String> {
        let maker = maker(&mut self.names, self.default_scope.as_deref(), None, "");
        let key = maker.lock(lock).map_err(|why| format!("{why:?}"))?;
        let state = self.server.state();
        match (state.lock(&key), expected) {
            (None, LockState::Free) => Ok(()),
            (None, LockState::Held { .. }) => Err("the lock is free".to_owned()),
            (Some(lock), LockState::Free) => Err(format!("{} holds the lock", lock.hold.owner)),
            (Some(lock), LockState::Held { owner, facts, queue }) => {
                if lock.hold.owner.as_str() != owner {
                    return Err(format!("{} holds the lock", lock.hold.owner));
                }
                let found: Vec<&str> = lock.places().map(|place| place.owner.as_str()).collect();
                if found != *queue {
                    return Err(format!("the queue is {found:?}"));
                }
                let hold = &lock.hold;
                let view = json!({ "fence_token": hold.fence_token, "depth": hold.depth() });
                self.names.check(facts, &view)
            }
        }
    }

    fn batch(&mut self, at_millis: i64, most: usize, items: &[Item]) -> Result<(), String> {
        let mut settling: &[Expected] = &[];
        let mut lines = Vec::new();
        for item in items {
            match &item.deed {
                Some(deed) => lines.push(self.line(item, deed)?),
                None => settling = &item.expected,
            }
        }
        // As the writer does: who holds a lock or lets go goes before who wants one.
        lines.sort_by_key(|line| match line {
            Line::Command { command, .. } => {
                !matches!(command, Command::HeartbeatTicket { .. } | Command::ReleaseTicket { .. })
            }
            Line::Invalid { .. } => true,
        });
        let names = &mut self.names;
        let appended = self.server.batch(time(at_millis), most, |open| {
            for line in &lines {
                decide(names, open, line)?;
            }
            Ok(())
        })?;
        compare::settled(names, &appended, settling)?;
        let mut outcomes = appended.outcomes.iter();
        for line in &lines {
            let (item, result) = match line {
                Line::Command { item, deed, command, .. } => {
                    let outcome = outcomes.next().ok_or("a command has no outcome")?;
                    let actor = Actor::User(parsed(&self.names.tokens[&deed.token].1)?);
                    let names = &mut self.names;
                    let server = &self.server;
                    let expected = &item.expected;
                    (item, compare::command(names, server, outcome, &actor, command, expected))
                }
                Line::Invalid { item, field } => (item, compare::invalid(field, &item.expected)),
            };
            result.map_err(|why| item.place.fails(why))?;
        }
        Ok(())
    }

    fn line<'a>(&mut self, item: &'a Item, deed: &'a Deed) -> Result<Line<'a>, String> {
        let known = self.names.tokens.get(&deed.token).cloned();
        let wrong = |why: &str| item.place.fails(format!("{why}: {:?}", deed.token));
        let (token, user) = known.ok_or_else(|| wrong("no token is called this"))?;
        let latest = self.latest.get(&user).copied();
        let locks = &self.locks;
        let lock_of = |id: TicketId| locks.get(&id).cloned();
        let mut maker = maker(&mut self.names, self.default_scope.as_deref(), latest, &user);
        let command = match maker.command(&deed.action, lock_of) {
            Ok(command) => command,
            Err(NoCommand::Invalid(field)) => return Ok(Line::Invalid { item, field }),
            Err(NoCommand::Wrong(why)) => return Err(item.place.fails(why)),
        };
        if let Command::AcquireLock { ticket_id, input } = &command {
            self.locks.insert(*ticket_id, input.lock());
            // A retry makes no ticket, so its id is nobody's latest.
            if !item.expected.iter().any(|e| matches!(e, Expected::Replay(_))) {
                self.latest.insert(user, *ticket_id);
            }
        }
        Ok(Line::Command { item, deed, caller: Caller::Token(token), command })
    }
}

pub(super) fn maker<'a>(
    names: &'a mut Names,
    default_scope: Option<&'a str>,
    latest: Option<TicketId>,
    caller: &'a str,
) -> Maker<'a> {
    Maker { names, default_scope, latest, caller }
}

/// The fence token that a write to a thread gives.
fn fence_of(action: &Action) -> Option<&Fence> {
    let Action::Note(
        Note::CreateThread { terms, .. }
        | Note::Reply { terms, .. }
        | Note::Close { terms, .. }
        | Note::Reopen { terms, .. },
    ) = action
    else {
        return None;
    };
    terms.fence.as_ref().map(|(_, fence)| fence)
}

/// Decides a line's command. A fence token that the line is the first to name is known at once,
/// so that a later line of the same batch can name it.
fn decide(names: &mut Names, open: &mut Open<'_>, line: &Line<'_>) -> Result<(), String> {
    let Line::Command { item, deed, caller, command } = line else { return Ok(()) };
    let mut command = command.clone();
    if let (Action::Break { fence, .. }, Command::BreakLock { fence_token, .. }) =
        (&deed.action, &mut command)
    {
        *fence_token = names.fence(fence).map_err(|why| item.place.fails(why))?;
    }
    if let (Some(given), Some(WriteTerms { fence: Some(fence), .. })) =
        (fence_of(&deed.action), terms_of(&mut command))
    {
        fence.fence_token = names.fence(given).map_err(|why| item.place.fails(why))?;
    }
    let seen = open.decide(*caller, &command).map_err(|why| item.place.fails(why))?;
    if let Some(seen) = seen {
        for expected in &item.expected {
            if let Expected::Event { type_name: "lock.acquired", facts } = expected
                && let Some(fence) = &facts.fence
            {
                names.is_fence(fence, seen.ticket.fence_token);
            }
        }
    }
    Ok(())
}

pub(super) fn parsed<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{text:?} is no such name"))
}
