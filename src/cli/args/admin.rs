//! The commands of the administration.

use clap::Subcommand;

use super::PageArgs;

use super::value::{role, short_text};
use crate::domain::access::Role;
use crate::domain::id::TokenId;
use crate::domain::name::{TeamName, UserName};
use crate::domain::scope::Scope;
use crate::domain::text::ShortText;
use crate::flags::{ScopeArgs, named, repo, uuid};

/// A command about users and their tokens.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum IdentityCommand {
    /// Make a user (server's administrators)
    CreateUser {
        #[arg(value_parser = named::<UserName>("user"))]
        user: UserName,
        /// It administers the server
        #[arg(long)]
        admin: bool,
    },
    /// Take a user out of service
    DisableUser {
        #[arg(value_parser = named::<UserName>("user"))]
        user: UserName,
    },
    /// Put a disabled user back into service
    EnableUser {
        #[arg(value_parser = named::<UserName>("user"))]
        user: UserName,
    },
    /// List the users
    ListUsers(PageArgs),
    /// Make a token for a user, and print it this once, alone
    CreateToken {
        #[arg(value_parser = named::<UserName>("user"))]
        user: UserName,
        /// What it is for
        #[arg(long, value_parser = short_text("label"))]
        label: Option<ShortText>,
        /// When it stops working; never if left out
        #[arg(long, value_name = "DAYS")]
        expires_in_days: Option<u32>,
    },
    /// End a token
    RevokeToken {
        #[arg(value_name = "TOKEN_ID", value_parser = uuid::<TokenId>("token_id"))]
        token_id: TokenId,
    },
    /// List the tokens, without their secrets
    ListTokens(PageArgs),
    /// Make an identity for an agent of yours, or another token for it, and print the token this
    /// once, alone
    CreateAgent {
        /// The agent's own name: it becomes the user YOU.NAME
        name: String,
        /// What the token is for
        #[arg(long, value_parser = short_text("label"))]
        label: Option<ShortText>,
        /// When the token stops working; never if left out
        #[arg(long, value_name = "DAYS")]
        expires_in_days: Option<u32>,
    },
    /// List your agents
    ListAgents(PageArgs),
    /// End all tokens of an agent of yours
    RevokeAgentTokens {
        /// The agent's own name
        name: String,
    },
}

/// A command about teams, repositories and access.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum AccessCommand {
    /// Make a team
    CreateTeam {
        #[arg(value_parser = named::<TeamName>("team"))]
        team: TeamName,
    },
    /// List the teams
    ListTeams(PageArgs),
    /// Add a user to a team, or change its role there
    SetTeamMember {
        #[arg(value_parser = named::<TeamName>("team"))]
        team: TeamName,
        #[arg(value_parser = named::<UserName>("user"))]
        user: UserName,
        /// What it may do; holds in the team's repositories too
        #[arg(long, value_parser = role())]
        role: Role,
    },
    /// Take a user out of a team
    RemoveTeamMember {
        #[arg(value_parser = named::<TeamName>("team"))]
        team: TeamName,
        #[arg(value_parser = named::<UserName>("user"))]
        user: UserName,
    },
    /// List a team's members
    ListTeamMembers {
        #[arg(value_parser = named::<TeamName>("team"))]
        team: TeamName,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Make a repository, like teams/platform/website
    CreateRepo {
        #[arg(value_parser = repo)]
        repo: Scope,
    },
    /// List the repositories
    ListRepos(PageArgs),
    /// Give a user a role in a scope, or change it
    GrantAccess {
        /// Who gets it; the scope is given by a flag
        #[arg(value_name = "GRANTEE", id = "grantee", value_parser = named::<UserName>("user"))]
        grantee: UserName,
        /// What it may do there
        #[arg(long, value_parser = role())]
        role: Role,
        #[command(flatten)]
        scope: ScopeArgs,
    },
    /// Take a user's direct grant in a scope away
    RevokeAccess {
        /// Whose it is; the scope is given by a flag
        #[arg(value_name = "GRANTEE", id = "grantee", value_parser = named::<UserName>("user"))]
        grantee: UserName,
        #[command(flatten)]
        scope: ScopeArgs,
    },
    /// List the direct grants in a scope
    ListAccess {
        #[command(flatten)]
        scope: ScopeArgs,
        #[command(flatten)]
        page: PageArgs,
    },
}
