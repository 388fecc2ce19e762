//! From the words of a scenario to the core's commands, through the types that inputs pass.

use pearing::domain::access::Role;
use pearing::domain::command::Command;
use pearing::domain::id::{FenceToken, RequestUuid, Sequence, TicketId, TokenId};
use pearing::domain::scope::LockKey;
use pearing::domain::text::ShortText;
use pearing::domain::ticket::TicketInput;
use pearing::domain::time::{LeaseSeconds, WaitSeconds};

use super::names::{Names, token_hash};
use super::script::{Acquire, Action, LockWords};

/// Why there is no command.
#[derive(Debug)]
pub(super) enum NoCommand {
    /// An input that no type lets through: its field.
    Invalid(&'static str),
    /// The scenario itself is wrong.
    Wrong(String),
}

impl From<String> for NoCommand {
    fn from(why: String) -> Self {
        Self::Wrong(why)
    }
}

/// Makes commands of one scenario.
pub(super) struct Maker<'a> {
    /// The names of the scenario.
    pub(super) names: &'a mut Names,
    /// The scope of a lock that names none.
    pub(super) default_scope: Option<&'a str>,
    /// The latest ticket of the caller.
    pub(super) latest: Option<TicketId>,
    /// The user that acts.
    pub(super) caller: &'a str,
}

impl Maker<'_> {
    /// The command of an action. `lock_of` finds the lock of a ticket.
    pub(super) fn command(
        &mut self,
        action: &Action,
        lock_of: impl Fn(TicketId) -> Option<LockKey>,
    ) -> Result<Command, NoCommand> {
        match action {
            Action::Acquire(acquire) => self.acquire(acquire),
            Action::Heartbeat { ticket, at, lease } => {
                let (lock, ticket_id) = self.named(ticket.as_deref(), at.as_ref(), lock_of)?;
                let lease = lease.map(LeaseSeconds::try_from).transpose();
                let lease = lease.map_err(|_| NoCommand::Invalid("lease_seconds"))?;
                Ok(Command::HeartbeatTicket { lock, ticket_id, lease })
            }
            Action::Release { ticket, at } => {
                let (lock, ticket_id) = self.named(ticket.as_deref(), at.as_ref(), lock_of)?;
                Ok(Command::ReleaseTicket { lock, ticket_id })
            }
            Action::Break { lock, fence, reason } => Ok(Command::BreakLock {
                lock: self.lock(lock)?,
                // One that this batch has yet to make is filled in when it is decided.
                fence_token: self.names.fence(fence).unwrap_or(FenceToken(Sequence::ZERO)),
                reason: text("reason", reason)?,
            }),
            Action::Issue { token, user, days } => {
                let token_id = TokenId(self.names.fresh());
                self.names.tokens.insert(token.clone(), (token_id, user.clone()));
                Ok(Command::IssueToken {
                    token_id,
                    user: name("user", user)?,
                    sha256: token_hash(token_id),
                    label: None,
                    expires_in_days: *days,
                })
            }
            Action::RevokeToken { token } => {
                let known = self.names.tokens.get(token);
                let (token_id, _) = known.ok_or_else(|| format!("no token is called {token:?}"))?;
                Ok(Command::RevokeToken { token_id: *token_id })
            }
            Action::Note(note) => self.note(note),
            _ => access(action),
        }
    }

    fn acquire(&mut self, acquire: &Acquire) -> Result<Command, NoCommand> {
        let words = LockWords { name: acquire.lock.clone(), scope: acquire.scope.clone() };
        let LockKey { scope, lock_name } = self.lock(&words)?;
        let request_uuid = match &acquire.uuid {
            Some(uuid) => self.names.request(uuid),
            None => RequestUuid(self.names.fresh()),
        };
        let lease_seconds = match acquire.lease {
            Some(lease) => lease.try_into().map_err(|_| NoCommand::Invalid("lease_seconds"))?,
            None => LeaseSeconds::default(),
        };
        let wait_seconds = match acquire.wait {
            Some(wait) => wait.try_into().map_err(|_| NoCommand::Invalid("wait_seconds"))?,
            None => WaitSeconds::default(),
        };
        let note = acquire.note.as_deref().map(|note| text("note", note)).transpose()?;
        let ticket_id = TicketId(self.names.fresh());
        if let Some(ticket) = &acquire.ticket
            && self.names.tickets.insert(ticket.clone(), ticket_id).is_some()
        {
            return Err(format!("another ticket is called {ticket:?}").into());
        }
        let input = TicketInput {
            scope,
            lock_name,
            request_uuid,
            lease_seconds,
            wait_seconds,
            note,
            reentrant: !acquire.is_not_reentrant,
        };
        Ok(Command::AcquireLock { ticket_id, input })
    }

    /// A ticket and the lock that it is looked for at: its own, if no other is named.
    fn named(
        &mut self,
        ticket: Option<&str>,
        at: Option<&LockWords>,
        lock_of: impl Fn(TicketId) -> Option<LockKey>,
    ) -> Result<(LockKey, TicketId), NoCommand> {
        let id = match ticket {
            Some(ticket) => self.names.ticket(ticket)?,
            None => self.latest.ok_or_else(|| "the caller has no ticket yet".to_owned())?,
        };
        let lock = match at {
            Some(lock) => self.lock(lock)?,
            None => lock_of(id).ok_or_else(|| "say at which lock".to_owned())?,
        };
        Ok((lock, id))
    }

    /// A lock.
    pub(super) fn lock(&self, lock: &LockWords) -> Result<LockKey, NoCommand> {
        let scope = lock.scope.as_deref().or(self.default_scope);
        let scope = scope.ok_or_else(|| "the lock needs a scope".to_owned())?;
        Ok(LockKey { scope: name("scope", scope)?, lock_name: name("lock_name", &lock.name)? })
    }
}

/// The commands that name nothing but users, teams and scopes.
fn access(action: &Action) -> Result<Command, NoCommand> {
    Ok(match action {
        Action::Disable { user } => Command::DisableUser { user: name("user", user)? },
        Action::Enable { user } => Command::EnableUser { user: name("user", user)? },
        Action::CreateUser { user } => {
            Command::CreateUser { user: name("user", user)?, admin: false }
        }
        Action::CreateTeam { team } => Command::CreateTeam { team: name("team", team)? },
        Action::CreateRepo { repo } => Command::CreateRepo { repo: name("repo", repo)? },
        Action::AddMember { user, team, role: as_role } => Command::SetTeamMember {
            team: name("team", team)?,
            user: name("user", user)?,
            role: role(as_role)?,
        },
        Action::RemoveMember { user, team } => {
            Command::RemoveTeamMember { team: name("team", team)?, user: name("user", user)? }
        }
        Action::Grant { user, role: as_role, scope } => Command::GrantAccess {
            scope: name("scope", scope)?,
            user: name("user", user)?,
            role: role(as_role)?,
        },
        Action::Revoke { user, scope } => {
            Command::RevokeAccess { scope: name("scope", scope)?, user: name("user", user)? }
        }
        Action::Acquire(_)
        | Action::Heartbeat { .. }
        | Action::Release { .. }
        | Action::Break { .. }
        | Action::Issue { .. }
        | Action::RevokeToken { .. }
        | Action::Note(_) => return Err(format!("not about access: {action:?}").into()),
    })
}

pub(super) fn name<T: std::str::FromStr>(field: &'static str, text: &str) -> Result<T, NoCommand> {
    text.parse().map_err(|_| NoCommand::Invalid(field))
}

pub(super) fn text(field: &'static str, text: &str) -> Result<ShortText, NoCommand> {
    text.to_owned().try_into().map_err(|_| NoCommand::Invalid(field))
}

/// A role by its name.
pub(super) fn role(role: &str) -> Result<Role, NoCommand> {
    match role {
        "read" => Ok(Role::Read),
        "write" => Ok(Role::Write),
        "admin" => Ok(Role::Admin),
        _ => Err(NoCommand::Invalid("role")),
    }
}
