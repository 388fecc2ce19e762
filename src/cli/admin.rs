//! Commands of the administration.

use super::Ended;
use super::args::{AccessCommand, IdentityCommand};
use super::connection::{Server, TokenSource};
use super::locks::print_list;
use super::output::{Format, Output};
use super::text::Fields;
use crate::client::{Client, ClientError, Reply};
use crate::columns::table;
use crate::wire::admin::{Agent, Grant, Member, NewToken, Repo, Team, Token, User, WhoAmI};
use crate::wire::problem::EXIT_DONE;

/// The commands about users and their tokens.
pub(super) async fn identity(
    client: &Client,
    output: &mut Output,
    command: &IdentityCommand,
) -> Ended {
    use IdentityCommand as A;
    match command {
        A::CreateUser { user, admin } => {
            done(output, client.create_user(user, *admin).await, format!("user {user} made"))
        }
        A::DisableUser { user } => {
            done(output, client.disable_user(user).await, format!("user {user} disabled"))
        }
        A::EnableUser { user } => {
            done(output, client.enable_user(user).await, format!("user {user} enabled"))
        }
        A::ListUsers(page) => {
            print_list(output, &client.users(&page.into()).await?, users, "no users")
        }
        A::CreateToken { user, label, expires_in_days } => print_new_token(
            output,
            &client.create_token(user, label.as_ref(), *expires_in_days).await?,
        ),
        A::CreateAgent { name, label, expires_in_days } => print_new_token(
            output,
            &client.create_agent(name, label.as_ref(), *expires_in_days).await?,
        ),
        A::ListAgents(page) => {
            print_list(output, &client.agents(&page.into()).await?, agents, "no agents")
        }
        A::RevokeAgentTokens { name } => {
            let reply = client.revoke_agent_tokens(name).await?;
            output.result(&reply.json, || tokens(&reply.body.items))?;
            Ok(EXIT_DONE)
        }
        A::RevokeToken { token_id } => {
            done(output, client.revoke_token(*token_id).await, format!("token {token_id} revoked"))
        }
        A::ListTokens(page) => {
            print_list(output, &client.tokens(&page.into()).await?, tokens, "no tokens")
        }
    }
}

/// Prints a token alone on stdout, so that it can go straight to a file.
fn print_new_token(output: &mut Output, reply: &Reply<NewToken>) -> Ended {
    let made = &reply.body;
    output.result(&reply.json, || made.token.clone())?;
    if output.format() == Format::Text {
        let end = made.expires_at.map(|end| format!(", good until {end}"));
        output.message(&format!(
            "token {} for {}{}; it is shown this once",
            made.token_id,
            made.user,
            end.unwrap_or_default()
        ));
    }
    Ok(EXIT_DONE)
}

fn agents(items: &[Agent]) -> String {
    let row = |agent: &Agent| {
        let live = agent.tokens.iter().filter(|token| !token.revoked).count();
        let state = if agent.disabled { "disabled" } else { "" };
        [agent.user.to_string(), live.to_string(), agent.created_at.to_string(), state.to_owned()]
    };
    table(["USER", "TOKENS", "CREATED", ""], &items.iter().map(row).collect::<Vec<_>>())
}

/// The commands about teams, repositories and access.
pub(super) async fn access(client: &Client, output: &mut Output, command: &AccessCommand) -> Ended {
    use AccessCommand as A;
    match command {
        A::CreateTeam { team } => {
            done(output, client.create_team(team).await, format!("team {team} made"))
        }
        A::ListTeams(page) => {
            print_list(output, &client.teams(&page.into()).await?, teams, "no teams")
        }
        A::SetTeamMember { team, user, role } => {
            let said = format!("{user} is {role} in team {team}");
            done(output, client.set_team_member(team, user, *role).await, said)
        }
        A::RemoveTeamMember { team, user } => {
            let said = format!("{user} is no longer in team {team}");
            done(output, client.remove_team_member(team, user).await, said)
        }
        A::ListTeamMembers { team, page } => {
            let list = client.team_members(team, &page.into()).await?;
            print_list(output, &list, members, "no members")
        }
        A::CreateRepo { repo } => {
            done(output, client.create_repo(repo).await, format!("repository {repo} made"))
        }
        A::ListRepos(page) => {
            print_list(output, &client.repos(&page.into()).await?, repos, "no repositories")
        }
        A::GrantAccess { grantee, role, scope } => {
            let scope = scope.scope();
            let said = format!("{grantee} is {role} in {scope}");
            done(output, client.grant_access(grantee, &scope, *role).await, said)
        }
        A::RevokeAccess { grantee, scope } => {
            let scope = scope.scope();
            let said = format!("{grantee} has no grant of its own in {scope} any more");
            done(output, client.revoke_access(grantee, &scope).await, said)
        }
        A::ListAccess { scope, page } => {
            let list = client.grants(&scope.scope(), &page.into()).await?;
            print_list(output, &list, grants, "no direct grants")
        }
    }
}

/// Says that something was done.
fn done(output: &mut Output, reply: Result<Reply<()>, ClientError>, said: String) -> Ended {
    output.result(&reply?.json, || said)?;
    Ok(EXIT_DONE)
}

fn yes(is: bool, word: &str) -> String {
    if is { word.to_owned() } else { String::new() }
}

/// Who a token stands for, where that holds, and where both came from.
pub(super) fn whoami(who: &WhoAmI, server: &Server, source: &TokenSource) -> String {
    let mut fields = Fields::default()
        .add("user", &who.user)
        .add_if("server_admin", who.admin.then_some("yes"))
        .add("token_id", who.token_id)
        .add("token_from", source)
        .add("server", format!("{} ({})", server.url, server.source))
        .add_if("label", who.label.as_ref())
        .add_if("expires_at", who.expires_at)
        .add("live_tickets", who.live_tickets);
    for role in &who.roles {
        fields = fields.add("role", format!("{} in {}", role.role, role.scope));
    }
    fields.to_string()
}

fn users(users: &[User]) -> String {
    let row = |user: &User| {
        [
            user.user.to_string(),
            yes(user.admin, "admin"),
            yes(user.disabled, "disabled"),
            user.created_at.to_string(),
        ]
    };
    table(["USER", "ROLE", "STATE", "MADE"], &users.iter().map(row).collect::<Vec<_>>())
}

fn tokens(tokens: &[Token]) -> String {
    let row = |token: &Token| {
        [
            token.token_id.to_string(),
            token.user.to_string(),
            yes(token.revoked, "revoked"),
            token.expires_at.map_or("never".to_owned(), |end| end.to_string()),
            token.last_used_at.map(|hour| hour.to_string()).unwrap_or_default(),
            token.label.as_ref().map(ToString::to_string).unwrap_or_default(),
        ]
    };
    let rows: Vec<_> = tokens.iter().map(row).collect();
    table(["TOKEN", "USER", "STATE", "EXPIRES", "LAST USED", "LABEL"], &rows)
}

fn teams(teams: &[Team]) -> String {
    let row = |team: &Team| [team.team.to_string(), team.members.to_string()];
    table(["TEAM", "MEMBERS"], &teams.iter().map(row).collect::<Vec<_>>())
}

fn members(members: &[Member]) -> String {
    let row = |member: &Member| [member.user.to_string(), member.role.to_string()];
    table(["USER", "ROLE"], &members.iter().map(row).collect::<Vec<_>>())
}

fn repos(repos: &[Repo]) -> String {
    let row = |repo: &Repo| [repo.repo.to_string(), repo.created_at.to_string()];
    table(["REPOSITORY", "MADE"], &repos.iter().map(row).collect::<Vec<_>>())
}

fn grants(grants: &[Grant]) -> String {
    let row = |grant: &Grant| [grant.user.to_string(), grant.role.to_string()];
    table(["USER", "ROLE"], &grants.iter().map(row).collect::<Vec<_>>())
}
