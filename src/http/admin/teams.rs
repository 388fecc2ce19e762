//! Teams and their members.

use axum::http::StatusCode;
use axum::response::Response;

use super::{administer, page};
use crate::domain::command::Command;
use crate::domain::name::{TeamName, UserName};
use crate::domain::scope::Scope;
use crate::http::Api;
use crate::http::body::{Field, JsonBody};
use crate::http::call::Call;
use crate::http::failure::Failure;
use crate::http::query::PAGE;
use crate::service::query::require_read;
use crate::wire::admin::{FormerMember, Member, Team};
use crate::wire::request::{CreateTeam, SetRole};

impl JsonBody for CreateTeam {
    const FIELDS: &'static [Field] = &[Field::required("team", TeamName::RULE)];
}

/// `GET /v1/admin/teams`: those that one may read.
pub(in crate::http) async fn list(api: Api, call: Call) -> Result<Response, Failure> {
    let query = call.query(&[&PAGE])?;
    let key = |team: &Team| team.team.to_string();
    page(&api, &call, &query, key, |state, asker| {
        let access = state.access();
        let teams = access.teams().filter(|(name, _)| access.can_read(asker, &Scope::team(name)));
        Ok(teams
            .map(|(name, team)| Team { team: name.clone(), members: team.members.len() as u64 })
            .collect())
    })
}

/// `POST /v1/admin/teams`
pub(in crate::http) async fn create(api: Api, call: Call) -> Result<Response, Failure> {
    call.query(&[])?;
    let CreateTeam { team } = call.body()?;
    let command = Command::CreateTeam { team: team.clone() };
    administer(&api, &call, StatusCode::CREATED, command, |state| {
        let members = state.access().team(&team).map_or(0, |found| found.members.len() as u64);
        Team { team, members }
    })
    .await
}

/// `GET /v1/admin/teams/{team}/members`
pub(in crate::http) async fn list_members(api: Api, call: Call) -> Result<Response, Failure> {
    let query = call.query(&[&PAGE])?;
    let team: TeamName = call.name("team")?;
    let key = |member: &Member| member.user.to_string();
    page(&api, &call, &query, key, |state, asker| {
        require_read(state, asker, &Scope::team(&team))?;
        let members = state.access().team(&team).into_iter().flat_map(|found| &found.members);
        Ok(members
            .map(|(user, role)| Member { team: team.clone(), user: user.clone(), role: *role })
            .collect())
    })
}

/// `PUT /v1/admin/teams/{team}/members/{user}`
pub(in crate::http) async fn set_member(api: Api, call: Call) -> Result<Response, Failure> {
    call.query(&[])?;
    let (team, user): (TeamName, UserName) = (call.name("team")?, call.name("user")?);
    let SetRole { role } = call.body()?;
    let command = Command::SetTeamMember { team: team.clone(), user: user.clone(), role };
    administer(&api, &call, StatusCode::OK, command, |_| Member { team, user, role }).await
}

/// `DELETE /v1/admin/teams/{team}/members/{user}`
pub(in crate::http) async fn remove_member(api: Api, call: Call) -> Result<Response, Failure> {
    call.no_input()?;
    let (team, user): (TeamName, UserName) = (call.name("team")?, call.name("user")?);
    let command = Command::RemoveTeamMember { team: team.clone(), user: user.clone() };
    let former = FormerMember { team, user, role: () };
    administer(&api, &call, StatusCode::OK, command, |_| former).await
}
