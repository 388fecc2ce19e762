//! Calls about identities, scopes and access.

use reqwest::Method;
use serde::Serialize;

use super::error::ClientError;
use super::locks::Page;
use super::transport::{Call, Client, Repeat, Reply};
use crate::domain::access::Role;
use crate::domain::id::TokenId;
use crate::domain::name::{TeamName, UserName};
use crate::domain::scope::Scope;
use crate::domain::text::ShortText;
use crate::wire::admin::{Agent, Grant, Member, NewToken, Repo, Team, Token, User};
use crate::wire::list::List;

#[derive(Serialize)]
struct UserBody<'a> {
    user: &'a UserName,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    admin: bool,
}

#[derive(Serialize)]
struct TokenBody<'a> {
    user: &'a UserName,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'a ShortText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_in_days: Option<u32>,
}

#[derive(Serialize)]
struct AgentBody<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'a ShortText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_in_days: Option<u32>,
}

#[derive(Serialize)]
struct TeamBody<'a> {
    team: &'a TeamName,
}

#[derive(Serialize)]
struct RepoBody<'a> {
    repo: &'a Scope,
}

#[derive(Serialize)]
struct RoleBody {
    role: Role,
}

type Done = Result<Reply<()>, ClientError>;
type Listed<T> = Result<Reply<List<T>>, ClientError>;

impl Client {
    /// Makes a user.
    ///
    /// # Errors
    /// As for every call.
    pub async fn create_user(&self, user: &UserName, admin: bool) -> Done {
        let body = UserBody { user, admin };
        self.call_raw(Call::send(Method::POST, &["admin", "users"], &body, Repeat::WhenBusy)).await
    }

    /// Takes a user out of service.
    ///
    /// # Errors
    /// As for every call.
    pub async fn disable_user(&self, user: &UserName) -> Done {
        let path = ["admin", "users", user.as_str(), "disable"];
        self.call_raw(Call { method: Method::POST, ..Call::get(&path) }).await
    }

    /// Puts a disabled user back into service.
    ///
    /// # Errors
    /// As for every call.
    pub async fn enable_user(&self, user: &UserName) -> Done {
        let path = ["admin", "users", user.as_str(), "enable"];
        self.call_raw(Call { method: Method::POST, ..Call::get(&path) }).await
    }

    /// Lists the users.
    ///
    /// # Errors
    /// As for every call.
    pub async fn users(&self, page: &Page) -> Listed<User> {
        self.call(Call::get(&["admin", "users"]).page(page)).await
    }

    /// Makes a token. Its text is in this answer and nowhere else.
    ///
    /// # Errors
    /// As for every call.
    pub async fn create_token(
        &self,
        user: &UserName,
        label: Option<&ShortText>,
        expires_in_days: Option<u32>,
    ) -> Result<Reply<NewToken>, ClientError> {
        let body = TokenBody { user, label, expires_in_days };
        self.call(Call::send(Method::POST, &["admin", "tokens"], &body, Repeat::WhenBusy)).await
    }

    /// Ends a token.
    ///
    /// # Errors
    /// As for every call.
    pub async fn revoke_token(&self, token_id: TokenId) -> Done {
        self.call_raw(Call::delete(&["admin", "tokens", &token_id.to_string()])).await
    }

    /// Lists the tokens, without their secrets.
    ///
    /// # Errors
    /// As for every call.
    pub async fn tokens(&self, page: &Page) -> Listed<Token> {
        self.call(Call::get(&["admin", "tokens"]).page(page)).await
    }

    /// Makes an identity for an agent of the caller's, or another token for it. The token's text
    /// is in this answer and nowhere else.
    ///
    /// # Errors
    /// As for every call.
    pub async fn create_agent(
        &self,
        name: &str,
        label: Option<&ShortText>,
        expires_in_days: Option<u32>,
    ) -> Result<Reply<NewToken>, ClientError> {
        let body = AgentBody { name, label, expires_in_days };
        self.call(Call::send(Method::POST, &["agents"], &body, Repeat::WhenBusy)).await
    }

    /// Lists the caller's agents.
    ///
    /// # Errors
    /// As for every call.
    pub async fn agents(&self, page: &Page) -> Listed<Agent> {
        self.call(Call::get(&["agents"]).page(page)).await
    }

    /// Ends all tokens of an agent of the caller's.
    ///
    /// # Errors
    /// As for every call.
    pub async fn revoke_agent_tokens(&self, name: &str) -> Listed<Token> {
        self.call(Call::delete(&["agents", name, "tokens"])).await
    }

    /// Makes a team.
    ///
    /// # Errors
    /// As for every call.
    pub async fn create_team(&self, team: &TeamName) -> Done {
        let body = TeamBody { team };
        self.call_raw(Call::send(Method::POST, &["admin", "teams"], &body, Repeat::WhenBusy)).await
    }

    /// Lists the teams.
    ///
    /// # Errors
    /// As for every call.
    pub async fn teams(&self, page: &Page) -> Listed<Team> {
        self.call(Call::get(&["admin", "teams"]).page(page)).await
    }

    /// Adds a user to a team, or changes its role there.
    ///
    /// # Errors
    /// As for every call.
    pub async fn set_team_member(&self, team: &TeamName, user: &UserName, role: Role) -> Done {
        let path = ["admin", "teams", team.as_str(), "members", user.as_str()];
        let body = RoleBody { role };
        self.call_raw(Call::send(Method::PUT, &path, &body, Repeat::Harmless)).await
    }

    /// Takes a user out of a team.
    ///
    /// # Errors
    /// As for every call.
    pub async fn remove_team_member(&self, team: &TeamName, user: &UserName) -> Done {
        let path = ["admin", "teams", team.as_str(), "members", user.as_str()];
        self.call_raw(Call { repeat: Repeat::WhenBusy, ..Call::delete(&path) }).await
    }

    /// Lists a team's members.
    ///
    /// # Errors
    /// As for every call.
    pub async fn team_members(&self, team: &TeamName, page: &Page) -> Listed<Member> {
        self.call(Call::get(&["admin", "teams", team.as_str(), "members"]).page(page)).await
    }

    /// Makes a repository.
    ///
    /// # Errors
    /// As for every call.
    pub async fn create_repo(&self, repo: &Scope) -> Done {
        let body = RepoBody { repo };
        self.call_raw(Call::send(Method::POST, &["admin", "repos"], &body, Repeat::WhenBusy)).await
    }

    /// Lists the repositories.
    ///
    /// # Errors
    /// As for every call.
    pub async fn repos(&self, page: &Page) -> Listed<Repo> {
        self.call(Call::get(&["admin", "repos"]).page(page)).await
    }

    /// Gives a user a role in a scope, or changes it.
    ///
    /// # Errors
    /// As for every call.
    pub async fn grant_access(&self, user: &UserName, scope: &Scope, role: Role) -> Done {
        let path = ["admin", "access", user.as_str()];
        let body = RoleBody { role };
        self.call_raw(Call::send(Method::PUT, &path, &body, Repeat::Harmless).at(scope)).await
    }

    /// Takes a direct grant away.
    ///
    /// # Errors
    /// As for every call.
    pub async fn revoke_access(&self, user: &UserName, scope: &Scope) -> Done {
        let path = ["admin", "access", user.as_str()];
        self.call_raw(Call { repeat: Repeat::WhenBusy, ..Call::delete(&path).at(scope) }).await
    }

    /// Lists the direct grants in a scope.
    ///
    /// # Errors
    /// As for every call.
    pub async fn grants(&self, scope: &Scope, page: &Page) -> Listed<Grant> {
        self.call(Call::get(&["admin", "access"]).at(scope).page(page)).await
    }
}
