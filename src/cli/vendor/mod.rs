//! setup: ties Claude Code or Codex to a server, by a few entries in their own configuration.
//!
//! Each gets an identity of its own, an agent of whoever runs this, since two tokens of one user
//! are one owner. Its token is kept in a profile, and the entries name that profile: a file that
//! others read, copy or commit never holds a token.
//!
//! | program | file | entry |
//! | --- | --- | --- |
//! | Claude Code | `~/.claude.json`, of a project `.mcp.json` | `mcpServers.pearing` |
//! | Claude Code | `~/.claude/settings.json`, of a project `.claude/settings.json` | `hooks` |
//! | Codex | `~/.codex/config.toml`, of a project `.codex/config.toml` | `[mcp_servers.pearing]` |
//!
//! Deliberately absent: their own command lines (`claude mcp add`). They need not be installed yet,
//! and can't say what they would do.

mod entry;
mod file;
mod identity;
mod json;
mod one_line;
mod toml;

use std::path::{Path, PathBuf};

use serde::Serialize;

use self::entry::{Entry, Hook};
pub(super) use self::entry::{Server, TOOL_PREFIX, is_gated};
use self::file::Foreign;
use super::args::{SetupArgs, Vendor};
use super::connection::{self, Said, UrlSource};
use super::output::{Format, Output};
use super::profiles::{self, Profile, ProfileName};
use super::setup::id_of;
use super::{Ended, Environment, Failure, fail};
use crate::client::{Client, ClientError};
use crate::wire::problem::{Code, EXIT_DONE};

impl Vendor {
    pub(super) const ALL: [Self; 2] = [Self::ClaudeCode, Self::Codex];

    /// What its agent and its profile are called unless they are named.
    fn agent(self) -> ProfileName {
        self.name().parse().expect("it is a plain word")
    }

    /// Its name as a word of a command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
        }
    }

    /// Where our entries go: for all projects, or for the one in a folder.
    fn places(
        self,
        project: Option<&Path>,
        environment: &Environment,
    ) -> Result<Vec<Place>, Failure> {
        let place = |kind, path: PathBuf| Place { kind, path };
        if let Some(folder) = project {
            let folder = std::path::absolute(folder)?;
            if !folder.is_dir() {
                let why = format!("{}: there is no folder of that name", folder.display());
                return Err(Failure::Usage(why));
            }
            return Ok(match self {
                Self::ClaudeCode => vec![
                    place(Kind::Servers, folder.join(".mcp.json")),
                    place(Kind::Hooks, folder.join(".claude/settings.json")),
                ],
                Self::Codex => vec![place(Kind::Toml, folder.join(".codex/config.toml"))],
            });
        }
        let home = environment.home.as_deref();
        let home = || home.ok_or(Failure::Usage("there is no HOME, so no place for it".to_owned()));
        Ok(match (self, &environment.claude_config_dir, &environment.codex_home) {
            (Self::ClaudeCode, Some(folder), _) => vec![
                place(Kind::Servers, folder.join(".claude.json")),
                place(Kind::Hooks, folder.join("settings.json")),
            ],
            (Self::ClaudeCode, None, _) => vec![
                place(Kind::Servers, home()?.join(".claude.json")),
                place(Kind::Hooks, home()?.join(".claude/settings.json")),
            ],
            (Self::Codex, _, Some(folder)) => vec![place(Kind::Toml, folder.join("config.toml"))],
            (Self::Codex, _, None) => vec![place(Kind::Toml, home()?.join(".codex/config.toml"))],
        })
    }
}

/// What a file holds for us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// MCP servers of Claude Code.
    Servers,
    /// Hooks of Claude Code.
    Hooks,
    /// MCP servers of Codex.
    Toml,
}

/// A file that entries of ours go into.
struct Place {
    kind: Kind,
    path: PathBuf,
}

/// What runs this program, as a file says.
pub(super) struct Use {
    /// The MCP server, or the event of a hook.
    pub(super) what: String,
    pub(super) program: String,
    pub(super) profile: String,
    /// The server that it is told; none of what an older setup wrote.
    pub(super) url: Option<String>,
    /// How it is started; of a hook that needs a shell, and is left out.
    pub(super) server: Option<Server>,
}

/// What a file says of us.
pub(super) struct Looked {
    pub(super) path: PathBuf,
    pub(super) text: String,
    pub(super) uses: Vec<Use>,
}

impl Place {
    /// The text with our entries in it.
    fn put(&self, text: &str, entry: &Entry) -> json::Edited {
        match self.kind {
            Kind::Servers => json::put_server(text, &entry.server()),
            Kind::Hooks => json::put_hooks(text, &entry.hooks()),
            Kind::Toml => toml::put_server(text, &entry.server()),
        }
    }

    /// The text without them.
    fn remove(&self, text: &str) -> json::Edited {
        match self.kind {
            Kind::Servers => json::remove_server(text),
            Kind::Hooks => json::remove_hooks(text),
            Kind::Toml => toml::remove_server(text),
        }
    }

    /// What a text says of us.
    fn uses(&self, text: &str) -> Result<Vec<Use>, String> {
        let server = match self.kind {
            Kind::Servers => json::server(text)?,
            Kind::Toml => toml::server(text)?,
            Kind::Hooks => {
                let hooks = json::hooks(text)?.into_iter().map(|(event, command)| Use {
                    what: event,
                    program: Hook::program(&command),
                    profile: Hook::profile(&command).unwrap_or_default().to_owned(),
                    url: Hook::url(&command).map(str::to_owned),
                    server: None,
                });
                return Ok(hooks.collect());
            }
        };
        let server = server.filter(Server::is_ours).map(|server| Use {
            what: "mcp".to_owned(),
            program: server.command.clone(),
            profile: server.profile().unwrap_or_default().to_owned(),
            url: server.url().map(str::to_owned),
            server: Some(server),
        });
        Ok(server.into_iter().collect())
    }
}

/// What the files of a program say of us, if they are there; for all projects, or for one.
pub(super) fn look(
    vendor: Vendor,
    project: Option<&Path>,
    environment: &Environment,
) -> Result<Vec<Looked>, Failure> {
    let mut looked = Vec::new();
    for place in vendor.places(project, environment)? {
        let file = Foreign::read(&place.path)?;
        if file.is_there() {
            let uses = place.uses(file.text()).map_err(|why| file.refuse(why))?;
            looked.push(Looked { path: place.path, text: file.text().to_owned(), uses });
        }
    }
    Ok(looked)
}

/// A file, and what it is to be.
struct Change {
    file: Foreign,
    text: String,
}

impl Change {
    fn is_none(&self) -> bool {
        self.text == self.file.text()
    }

    /// Writes it, unless it is so already.
    fn write(&self) -> Result<(), Failure> {
        let left: String = self.text.chars().filter(|c| !c.is_whitespace()).collect();
        match left.as_str() {
            _ if self.is_none() => Ok(()),
            // Only entries of ours were in it.
            "" | "{}" => self.file.delete(),
            _ => self.file.replace(&self.text),
        }
    }
}

/// What is changed in each place. Nothing is, until all of them can be.
fn changes(
    places: &[Place],
    edit: impl Fn(&Place, &str) -> json::Edited,
) -> Result<Vec<Change>, Failure> {
    let change = |place: &Place| {
        let file = Foreign::read(&place.path)?;
        let text = edit(place, file.text()).map_err(|why| file.refuse(why))?;
        Ok(Change { file, text })
    };
    places.iter().map(change).collect()
}

#[derive(Serialize)]
struct Written<'a> {
    path: &'a Path,
    changed: bool,
}

/// Runs setup.
pub(super) async fn setup(said: Said<'_>, output: &mut Output, args: &SetupArgs) -> Ended {
    let gate = args.gate.lock().map_err(|why| Failure::Usage(why.to_owned()))?;
    if gate.is_some() && args.vendor != Vendor::ClaudeCode {
        return Err(Failure::Usage("only Claude Code has hooks that a lock can gate".to_owned()));
    }
    let places = args.vendor.places(args.project.as_deref(), said.environment)?;
    let agent = args.agent.clone().unwrap_or_else(|| args.vendor.agent());
    if args.remove {
        return remove(said, output, &places, args.vendor).await;
    }
    let server = server(said, &agent)?;
    let entry = Entry::new(said, &agent, &server.url, gate.clone())?;
    if args.print {
        warn(said, output, &places, &agent)?;
        return print(output, &places, &entry);
    }
    let changes = changes(&places, |place, text| place.put(text, &entry))?;
    let identity = async {
        if let Some(lock) = &gate {
            identity::check_is_known(said, &agent, lock).await?;
        }
        identity::of_agent(said, args.vendor, &agent).await
    };
    let identity = match identity.await {
        Ok(identity) => identity,
        Err(failure) => return Ok(fail(&failure, Some(&server), output)),
    };
    for lost in gates_taken_out(&places, &changes)? {
        output.message(&lost);
    }
    for change in &changes {
        change.write()?;
    }
    let written: Vec<Written<'_>> = changes
        .iter()
        .map(|change| Written { path: change.file.path(), changed: !change.is_none() })
        .collect();
    let json = serde_json::json!({
        "profile": agent.to_string(),
        "user": identity.user,
        "url": identity.url.to_string(),
        "made": identity.is_new,
        "files": written,
    });
    output.result(&json.to_string(), || {
        let state = if identity.is_new { "made" } else { "kept" };
        let mut lines = vec![format!("profile {agent} {state}: {identity}")];
        lines.extend(written.iter().map(|file| {
            let state = if file.changed { "written" } else { "as it was" };
            format!("{} {state}", file.path.display())
        }));
        lines.join("\n")
    })?;
    if written.iter().any(|file| file.changed) {
        output.message(&format!("{} reads it when it is started again", args.vendor.name()));
    }
    Ok(EXIT_DONE)
}

/// The server that an agent is to ask: its profile's, or that of whoever makes it.
fn server(said: Said<'_>, agent: &ProfileName) -> Result<connection::Server, Failure> {
    if let Some(profile) = said.profile(agent)? {
        let source = UrlSource::Profile(agent.clone());
        return Ok(connection::Server { url: profile.url, source });
    }
    said.server()
}

/// Warns of a profile that may have been made by a login, for somebody else than the agent. Which
/// it is, only the server knows.
fn warn(
    said: Said<'_>,
    output: &mut Output,
    places: &[Place],
    agent: &ProfileName,
) -> Result<(), Failure> {
    if said.profile(agent)?.is_none() {
        return Ok(());
    }
    for place in places {
        let file = Foreign::read(&place.path)?;
        // What can't be read has no entry, as far as this knows.
        let uses = place.uses(file.text()).unwrap_or_default();
        if uses.iter().any(|used| used.profile == agent.to_string()) {
            return Ok(());
        }
    }
    output.message(&format!(
        "warning: profile {agent} is there already: if a login made it, and not setup, setup will \
         refuse it; `pearing-cli logout --profile {agent}` forgets it, or name another --agent"
    ));
    Ok(())
}

/// What there is to say of each gate that was there and won't be.
fn gates_taken_out(places: &[Place], changes: &[Change]) -> Result<Vec<String>, Failure> {
    let mut lost = Vec::new();
    for (place, change) in places.iter().zip(changes) {
        if place.kind != Kind::Hooks {
            continue;
        }
        let gates = |text: &str| -> Result<Vec<String>, Failure> {
            let hooks = json::hooks(text).map_err(|why| change.file.refuse(why))?;
            Ok(hooks.iter().filter_map(|(_, command)| Hook::gate(command)).collect())
        };
        let (before, after) = (gates(change.file.text())?, gates(&change.text)?);
        let mut gone: Vec<_> = before.into_iter().filter(|gate| !after.contains(gate)).collect();
        gone.dedup();
        lost.extend(gone.iter().map(|gate| {
            let path = change.file.path().display();
            format!("{path}: the gate on {gate} is taken out")
        }));
    }
    Ok(lost)
}

/// Shows what would be written, each into an empty file.
fn print(output: &mut Output, places: &[Place], entry: &Entry) -> Ended {
    let snippet = |place: &Place| place.put("", entry).expect("an empty text takes any entry");
    let files: Vec<_> = places.iter().map(|place| (place, snippet(place))).collect();
    if output.format() == Format::Json {
        let file = |(place, text): &(&Place, String)| {
            let format = if place.kind == Kind::Toml { "toml" } else { "json" };
            serde_json::json!({ "path": &place.path, "format": format, "text": text })
        };
        let files: Vec<_> = files.iter().map(file).collect();
        output.result(&serde_json::json!({ "files": files }).to_string(), String::new)?;
        return Ok(EXIT_DONE);
    }
    let shown = files.iter().map(|(place, text)| format!("# {}\n{text}", place.path.display()));
    output.result("", || shown.collect::<Vec<_>>().join("\n"))?;
    Ok(EXIT_DONE)
}

/// Takes our entries out, and forgets the profiles that nothing names any more.
/// Whether a profile is an agent's, or of no use any more: then it was made here. A person's own
/// login is nothing that setup has made.
async fn is_agents(profile: &Profile) -> bool {
    let Ok(client) = Client::new(&profile.url, &profile.token) else { return false };
    match client.whoami().await {
        Ok(who) => who.body.person.is_some(),
        Err(ClientError::Problem(refused)) => refused.problem.code == Code::Unauthenticated,
        Err(_) => false,
    }
}

/// Whether a file of settings turns all hooks off.
pub(super) fn are_hooks_off(text: &str) -> bool {
    json::are_hooks_off(text)
}

async fn remove(said: Said<'_>, output: &mut Output, places: &[Place], vendor: Vendor) -> Ended {
    let changes = changes(places, Place::remove)?;
    let mut named = Vec::new();
    for (place, change) in places.iter().zip(&changes) {
        let uses = place.uses(change.file.text()).map_err(|why| change.file.refuse(why))?;
        named.extend(uses.into_iter().map(|used| used.profile));
    }
    named.sort();
    named.dedup();
    for change in &changes {
        change.write()?;
        let state = if change.is_none() { "had no entry of ours" } else { "is without our entry" };
        output.message(&format!("{} {state}", change.file.path().display()));
    }
    let mut still_used = Vec::new();
    for other in Vendor::ALL {
        for looked in look(other, None, said.environment)? {
            still_used.extend(looked.uses.into_iter().map(|used| used.profile));
        }
    }
    let mut forgotten = Vec::new();
    for name in named.iter().filter_map(|name| name.parse::<ProfileName>().ok()) {
        let Some(profile) = said.profile(&name)? else { continue };
        if still_used.contains(&name.to_string()) {
            output.message(&format!("profile {name} is kept: another entry names it"));
            continue;
        }
        if !is_agents(&profile).await {
            output.message(&format!(
                "profile {name} is kept, since it is no agent's, or nobody can tell: \
                 `pearing-cli logout --profile {name}` forgets it"
            ));
            continue;
        }
        profiles::forget(said.path()?, &name).await?;
        output.message(&format!(
            "profile {name} forgotten; its token{} is still valid at {}: \
             `pearing-cli revoke-agent-tokens {name}` ends all tokens of that agent",
            id_of(&profile),
            profile.url
        ));
        forgotten.push(name.to_string());
    }
    let files: Vec<Written<'_>> = changes
        .iter()
        .map(|change| Written { path: change.file.path(), changed: !change.is_none() })
        .collect();
    let json = serde_json::json!({ "forgotten": forgotten, "files": files });
    output.result(&json.to_string(), || format!("{} is not tied to it any more", vendor.name()))?;
    Ok(EXIT_DONE)
}
