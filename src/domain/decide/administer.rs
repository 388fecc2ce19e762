//! Users, tokens, teams, repositories and grants.
//!
//! Setting what is set already succeeds and appends nothing. What takes write access away also
//! cancels the waits that needed it, in the same append: so no promotion has to ask again.

use super::Context;
use crate::domain::access::{Role, TokenHash, User};
use crate::domain::command::Command;
use crate::domain::event::{
    AccessGranted, AccessRevoked, Event, LockWaitCancelled, RepoCreated, TeamCreated,
    TeamMemberAdded, TeamMemberRemoved, TokenIssued, TokenRevoked, UserChanged, UserCreated,
};
use crate::domain::id::TokenId;
use crate::domain::name::{Actor, TeamName, UserName};
use crate::domain::refusal::Refusal;
use crate::domain::scope::{Scope, ScopeKind};
use crate::domain::text::ShortText;
use crate::domain::ticket::Ticket;

const SECONDS_A_DAY: u32 = 86_400;

/// How many days a token may work, if it is to expire at all: a century at the most.
const TOKEN_DAYS: std::ops::RangeInclusive<u32> = 1..=36_500;

pub(super) fn administer(context: &Context<'_>, command: &Command) -> Result<Vec<Event>, Refusal> {
    let Some(event) = change(context, command)? else { return Ok(Vec::new()) };
    let cancelled = cancelled_waits(context, &event);
    Ok(std::iter::once(event).chain(cancelled).collect())
}

/// The change itself; `None` where everything is as asked for already.
fn change(context: &Context<'_>, command: &Command) -> Result<Option<Event>, Refusal> {
    let access = context.state.access();
    match command {
        Command::CreateUser { user, admin } => {
            context.require_server_admin()?;
            if access.user(user).is_some() {
                return Err(Refusal::AlreadyExists("user"));
            }
            let is_user = |person: &str| person.parse().is_ok_and(|p| access.user(&p).is_some());
            let mut dots = user.as_str().match_indices('.');
            if dots.any(|(at, _)| is_user(&user.as_str()[..at])) {
                let rule = "must not be the name of a user, a dot and more: \
                     such names are for that user's agents";
                return Err(Refusal::InvalidArgument { field: "user", rule });
            }
            let (user, admin) = (user.clone(), *admin);
            Ok(Some(Event::UserCreated(UserCreated { user, admin, person: None })))
        }
        Command::DisableUser { user } => {
            context.require_server_admin()?;
            let is_disabled = context.require_user(user)?.is_disabled;
            let mut admins = access.users().filter(|(name, _)| access.is_server_admin(name));
            // Nobody could undo it.
            if access.is_server_admin(user) && admins.all(|(name, _)| name == user) {
                let rule = "the server's last administrator can't be disabled";
                return Err(Refusal::Forbidden(rule));
            }
            let event = Event::UserDisabled(UserChanged { user: user.clone() });
            Ok((!is_disabled).then_some(event))
        }
        Command::EnableUser { user } => {
            context.require_server_admin()?;
            let is_disabled = context.require_user(user)?.is_disabled;
            let event = Event::UserEnabled(UserChanged { user: user.clone() });
            Ok(is_disabled.then_some(event))
        }
        Command::IssueToken { token_id, user, sha256, label, expires_in_days } => {
            context.require_server_admin()?;
            context.require_user(user)?;
            let new = NewToken { token_id: *token_id, sha256: *sha256, label };
            Ok(Some(context.token_issued(user, new, *expires_in_days)?))
        }
        Command::RevokeToken { token_id } => {
            context.require_server_admin()?;
            let token = access.token(*token_id).ok_or(Refusal::NotFound("token"))?;
            let event = TokenRevoked { token_id: *token_id, user: token.user.clone() };
            Ok((!token.is_revoked).then_some(Event::TokenRevoked(event)))
        }
        Command::CreateTeam { team } => {
            context.require_server_admin()?;
            if access.team(team).is_some() {
                return Err(Refusal::AlreadyExists("team"));
            }
            Ok(Some(Event::TeamCreated(TeamCreated { team: team.clone() })))
        }
        Command::SetTeamMember { team, user, role } => set_member(context, team, user, *role),
        Command::RemoveTeamMember { team, user } => remove_member(context, team, user),
        Command::CreateRepo { repo } => create_repo(context, repo),
        Command::GrantAccess { scope, user, role } => grant(context, scope, user, *role),
        Command::RevokeAccess { scope, user } => revoke(context, scope, user),
        Command::AcquireLock { .. }
        | Command::HeartbeatTicket { .. }
        | Command::ReleaseTicket { .. }
        | Command::BreakLock { .. }
        | Command::CreateAgent { .. }
        | Command::RevokeAgentTokens { .. }
        | Command::UpdateActivity { .. }
        | Command::ClearActivity
        | Command::CreateThread { .. }
        | Command::CreateReply { .. }
        | Command::CloseThread { .. }
        | Command::ReopenThread { .. } => unreachable!("decided elsewhere"),
    }
}

fn set_member(
    context: &Context<'_>,
    team: &TeamName,
    user: &UserName,
    role: Role,
) -> Result<Option<Event>, Refusal> {
    context.require_role(&Scope::team(team), Role::Admin)?;
    context.require_no_agent(user)?;
    let present = context.state.access().team(team).and_then(|team| team.members.get(user));
    let event = TeamMemberAdded { team: team.clone(), user: user.clone(), role };
    Ok((present != Some(&role)).then_some(Event::TeamMemberAdded(event)))
}

fn remove_member(
    context: &Context<'_>,
    team: &TeamName,
    user: &UserName,
) -> Result<Option<Event>, Refusal> {
    context.require_role(&Scope::team(team), Role::Admin)?;
    let members = context.state.access().team(team).map(|team| &team.members);
    if !members.is_some_and(|members| members.contains_key(user)) {
        return Err(Refusal::NotFound("member"));
    }
    let event = TeamMemberRemoved { team: team.clone(), user: user.clone() };
    Ok(Some(Event::TeamMemberRemoved(event)))
}

fn create_repo(context: &Context<'_>, repo: &Scope) -> Result<Option<Event>, Refusal> {
    let ScopeKind::Repo(parent) = repo.kind() else {
        return Err(Refusal::InvalidArgument { field: "repo", rule: Scope::REPO_RULE });
    };
    context.require_role(&parent, Role::Admin)?;
    if context.state.access().has_scope(repo) {
        return Err(Refusal::AlreadyExists("repository"));
    }
    Ok(Some(Event::RepoCreated(RepoCreated { repo: repo.clone() })))
}

fn grant(
    context: &Context<'_>,
    scope: &Scope,
    user: &UserName,
    role: Role,
) -> Result<Option<Event>, Refusal> {
    context.require_role(scope, Role::Admin)?;
    context.require_no_agent(user)?;
    let present = context.state.access().grants(scope).find(|(name, _)| *name == user);
    let event = AccessGranted { scope: scope.clone(), user: user.clone(), role };
    Ok((present.map(|(_, role)| role) != Some(role)).then_some(Event::AccessGranted(event)))
}

fn revoke(context: &Context<'_>, scope: &Scope, user: &UserName) -> Result<Option<Event>, Refusal> {
    context.require_role(scope, Role::Admin)?;
    if !context.state.access().grants(scope).any(|(name, _)| name == user) {
        return Err(Refusal::NotFound("grant"));
    }
    Ok(Some(Event::AccessRevoked(AccessRevoked { scope: scope.clone(), user: user.clone() })))
}

impl Context<'_> {
    fn require_server_admin(&self) -> Result<(), Refusal> {
        match &self.actor {
            Actor::Ledger => Ok(()),
            Actor::User(user) if self.state.access().is_server_admin(user) => Ok(()),
            Actor::User(_) => Err(Refusal::Forbidden("this needs an administrator of the server")),
        }
    }

    fn require_user(&self, user: &UserName) -> Result<&User, Refusal> {
        self.state.access().user(user).ok_or(Refusal::NotFound("user"))
    }

    /// Needs a user to whom a role can be given.
    fn require_no_agent(&self, user: &UserName) -> Result<(), Refusal> {
        if self.require_user(user)?.person.is_none() {
            return Ok(());
        }
        let rule = "must not be an agent, which has its person's role, at most write";
        Err(Refusal::InvalidArgument { field: "user", rule })
    }

    /// A token for a user.
    pub(super) fn token_issued(
        &self,
        user: &UserName,
        new: NewToken<'_>,
        expires_in_days: Option<u32>,
    ) -> Result<Event, Refusal> {
        if self.state.access().token(new.token_id).is_some() {
            return Err(Refusal::AlreadyExists("token"));
        }
        if expires_in_days.is_some_and(|days| !TOKEN_DAYS.contains(&days)) {
            let rule = "must be a whole number from 1 to 36500";
            return Err(Refusal::InvalidArgument { field: "expires_in_days", rule });
        }
        let end = |days: u32| self.at.time.plus_seconds(days * SECONDS_A_DAY);
        Ok(Event::TokenIssued(TokenIssued {
            token_id: new.token_id,
            user: user.clone(),
            sha256: new.sha256,
            label: new.label.clone(),
            expires_at: expires_in_days.map(end),
        }))
    }
}

/// A token in the making.
pub(super) struct NewToken<'a> {
    pub(super) token_id: TokenId,
    pub(super) sha256: TokenHash,
    pub(super) label: &'a Option<ShortText>,
}

/// The waits that end because the change leaves their identity without write access.
fn cancelled_waits(context: &Context<'_>, change: &Event) -> Vec<Event> {
    let (Event::UserDisabled(UserChanged { user })
    | Event::TeamMemberAdded(TeamMemberAdded { user, .. })
    | Event::TeamMemberRemoved(TeamMemberRemoved { user, .. })
    | Event::AccessGranted(AccessGranted { user, .. })
    | Event::AccessRevoked(AccessRevoked { user, .. })) = change
    else {
        return Vec::new();
    };
    // An agent has what its person has, so it loses what its person loses.
    let agents = context.state.access().agents_of(user).map(|(agent, _)| agent);
    #[cfg(feature = "planted-bugs")]
    let agents = agents.filter(|_| crate::domain::planted::are_waits_of_agents_lost());
    let losers: Vec<&UserName> = std::iter::once(user).chain(agents).collect();
    let tickets = || losers.iter().flat_map(|loser| context.state.tickets_of(loser));
    // Most changes find nobody waiting, and then cost nothing that grows with the users.
    if !tickets().any(Ticket::is_waiting) {
        return Vec::new();
    }
    let is_disabled = matches!(change, Event::UserDisabled(_));
    let reason = if is_disabled { "user-disabled" } else { "access-revoked" };
    let reason = ShortText::try_from(reason.to_owned()).expect("the reason is short");
    let mut after = context.state.access().roles_only();
    after.apply(context.at.time, change);
    let is_lost = |ticket: &&Ticket| {
        ticket.is_waiting() && !after.can_write(&ticket.owner, &ticket.input.scope)
    };
    let cancelled = |ticket: &Ticket| {
        Event::LockWaitCancelled(LockWaitCancelled {
            ticket_id: ticket.id,
            scope: ticket.input.scope.clone(),
            lock_name: ticket.input.lock_name.clone(),
            owner: ticket.owner.clone(),
            reason: Some(reason.clone()),
        })
    };
    tickets().filter(is_lost).map(cancelled).collect()
}
