//! The identity of an agent: one that works is kept, else one is made.

use std::fmt;

use crate::cli::args::Vendor;
use crate::cli::connection::Said;
use crate::cli::profiles::{self, Profile, ProfileName};
use crate::cli::{Connection, Failure};
use crate::client::{Client, ClientError, ServerUrl};
use crate::domain::name::UserName;
use crate::domain::scope::LockKey;
use crate::domain::text::ShortText;
use crate::wire::admin::WhoAmI;
use crate::wire::problem::Code;

/// Who an agent is.
pub(super) struct Identity {
    pub(super) user: UserName,
    pub(super) url: ServerUrl,
    /// Whether its token was made just now.
    pub(super) is_new: bool,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.user, self.url)
    }
}

/// The agent that a profile is to be. A profile that is something else is not replaced.
pub(super) async fn of_agent(
    said: Said<'_>,
    vendor: Vendor,
    name: &ProfileName,
) -> Result<Identity, Failure> {
    let person = said.connection();
    if let Some(profile) = said.profile(name)? {
        match Client::new(&profile.url, &profile.token)?.whoami().await {
            Ok(reply) => return kept(person.ok(), profile, name, &reply.body).await,
            // Its token was ended, so nothing is lost with it.
            Err(ClientError::Problem(refused)) if refused.problem.code == Code::Unauthenticated => {
                if let Ok(person) = &person {
                    same_server(name, &profile, &person.server.url)?;
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    let Connection { server, token } = person?;
    let client = Client::new(&server.url, &token.text)?;
    let label = format!("setup {}", vendor.name());
    let label = ShortText::try_from(label).expect("it is one short line");
    let made = client.create_agent(&name.to_string(), Some(&label), None).await?.body;
    let profile = Profile { url: server.url.clone(), token: made.token };
    profiles::keep(said.path()?, name, &profile).await?;
    Ok(Identity { user: made.user, url: server.url, is_new: true })
}

/// Whether there is such a scope, before anything is made or written: a gate on one that isn't
/// there never opens.
pub(super) async fn check_is_known(
    said: Said<'_>,
    name: &ProfileName,
    lock: &LockKey,
) -> Result<(), Failure> {
    let client = match (said.connection(), said.profile(name)?) {
        (Ok(Connection { server, token }), _) => Client::new(&server.url, &token.text)?,
        (Err(_), Some(profile)) => Client::new(&profile.url, &profile.token)?,
        (Err(failure), None) => return Err(failure),
    };
    client.lock(lock, None).await?;
    Ok(())
}

/// A profile that works, if it is the agent that is meant.
async fn kept(
    person: Option<Connection>,
    profile: Profile,
    name: &ProfileName,
    who: &WhoAmI,
) -> Result<Identity, Failure> {
    let other = |what: &str| {
        Failure::Usage(format!(
            "profile {name} is kept for user {}{what}: `pearing-cli logout --profile {name}` \
             forgets it, or give the agent another name by --agent",
            who.user
        ))
    };
    let Some(owner) = &who.person else { return Err(other(" by a login, and not for an agent")) };
    if who.user.own_name_as_agent_of(owner) != Some(name.to_string().as_str()) {
        return Err(other(", another agent"));
    }
    if let Some(Connection { server, token }) = person {
        same_server(name, &profile, &server.url)?;
        let me = Client::new(&server.url, &token.text)?.whoami().await?.body;
        if me.person.as_ref().unwrap_or(&me.user) != owner {
            return Err(other(", which is not yours"));
        }
    }
    Ok(Identity { user: who.user.clone(), url: profile.url, is_new: false })
}

fn same_server(name: &ProfileName, profile: &Profile, url: &ServerUrl) -> Result<(), Failure> {
    if profile.url == *url {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "profile {name} is for {}, and not for {url}: choose another --agent, or log it out first",
        profile.url
    )))
}
