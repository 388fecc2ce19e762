//! Commands about this machine: who is logged in, and what a shell and `man` want to know.
//!
//! A token is kept only after the server has accepted it, so a profile never begins as a wrong
//! one. Deliberately absent: making or revoking tokens. That is the administration's.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _};
use std::thread;

use clap::CommandFactory as _;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use serde::Serialize;
use tokio::sync::oneshot;

use super::args::{Cli, SetupCommand};
use super::connection::{FoundToken, Said, Server, TokenSource, UrlSource};
use super::connection::{checked, default_server, from_file};
use super::output::Output;
use super::profiles::{self, Profile, ProfileName};
use super::signals::{Stop, killed_by};
use super::{Ended, Failure, admin, fail};
use crate::client::Client;
use crate::columns::table;
use crate::manual;
use crate::wire::problem::EXIT_DONE;
use crate::wire::token;

/// More than any token has, and its line's end.
const INPUT_BYTES_MAX: u64 = 4096;

pub(super) async fn run(said: Said<'_>, output: &mut Output, command: &SetupCommand) -> Ended {
    match command {
        SetupCommand::Login => login(said, output).await,
        SetupCommand::Logout => logout(said, output).await,
        SetupCommand::ListProfiles => list(said, output),
        SetupCommand::Completions { shell } => {
            output.verbatim(&manual::completions(Cli::command(), *shell))?;
            Ok(EXIT_DONE)
        }
        SetupCommand::Man { out: None } => {
            output.verbatim(&manual::page(Cli::command())?)?;
            Ok(EXIT_DONE)
        }
        SetupCommand::Man { out: Some(folder) } => {
            let not_written = |why| Failure::Store(format!("{}: {why}", folder.display()));
            manual::write_pages(Cli::command(), folder).map_err(not_written)?;
            Ok(EXIT_DONE)
        }
    }
}

/// What is to be kept, before there is a token.
struct Login<'a> {
    said: Said<'a>,
    name: ProfileName,
    server: Server,
}

async fn login(said: Said<'_>, output: &mut Output) -> Ended {
    // Whether there is a place for it is known before a token is asked for.
    said.path()?;
    let name = said.named_profile()?.unwrap_or_default();
    let server = match (said.url()?, said.profile(&name)?) {
        (Some(server), _) => server,
        (None, Some(known)) => Server { url: known.url, source: UrlSource::Profile(name.clone()) },
        (None, None) => default_server(),
    };
    let login = Login { said, name, server };
    if let Some(path) = &said.global.token_file {
        return login.finish(output, from_file(path)?).await;
    }
    if !io::stdin().is_terminal() {
        return login.finish(output, read_line()?).await;
    }
    // From before the terminal is changed, so that a signal doesn't leave it so.
    let mut stop = Stop::listen()?;
    let asked = async {
        let token = login.ask(output).await?;
        login.finish(output, token).await
    };
    tokio::select! {
        ended = asked => ended,
        number = stop.next() => Ok(killed_by(number)),
    }
}

impl Login<'_> {
    /// Asks the person at the terminal.
    async fn ask(&self, output: &mut Output) -> Result<FoundToken, Failure> {
        let broken = |why: io::Error| Failure::Usage(format!("the terminal: {why}"));
        let _silence = Silence::begin().map_err(broken)?;
        output.message(&format!(
            "The token for profile {} at {}, which is not shown:",
            self.name, self.server.url
        ));
        // In a thread, so that a signal is answered meanwhile. After one, the process ends, and
        // with it the thread, wherever that is.
        let (sends, receives) = oneshot::channel();
        let reader = thread::Builder::new().name("login".to_owned()).spawn(move || {
            // Nobody waits for it any more after a signal.
            let _ = sends.send(read_line());
        });
        reader.map_err(broken)?;
        receives.await.expect("the reader sends before it ends")
    }

    /// Asks the server who the token stands for, and keeps it if it knows.
    async fn finish(&self, output: &mut Output, token: FoundToken) -> Ended {
        let Self { said, name, server } = self;
        let client = Client::new(&server.url, &token.text)?;
        let reply = match client.whoami().await {
            Ok(reply) => reply,
            Err(error) => {
                let exit_code = fail(&error.into(), Some(server), output);
                output.message("nothing was kept");
                return Ok(exit_code);
            }
        };
        let path = said.path()?;
        let profile = Profile { url: server.url.clone(), token: token.text };
        let replaced = profiles::keep(path, name, &profile).await?;
        let source = TokenSource::Profile(name.clone(), path.to_owned());
        output.result(&reply.json, || admin::whoami(&reply.body, server, &source))?;
        if let Some(old) = replaced.filter(|old| old.token != profile.token) {
            output.message(&format!(
                "profile {name} was replaced: its old token{} is still valid at {}, until it is \
                 revoked",
                id_of(&old),
                old.url
            ));
        }
        if said.environment.token.is_some() {
            output.message(&format!(
                "PEARING_TOKEN is set, and wins unless --profile {name} is given"
            ));
        }
        Ok(EXIT_DONE)
    }
}

/// One line of stdin, and the token in it.
fn read_line() -> Result<FoundToken, Failure> {
    let mut line = String::new();
    let read = io::stdin().lock().take(INPUT_BYTES_MAX).read_line(&mut line);
    read.map_err(|why| Failure::Usage(format!("stdin: {why}")))?;
    if line.trim().is_empty() {
        return Err(Failure::Token("stdin was empty".to_owned()));
    }
    checked(line, TokenSource::Input)
}

/// The id of a profile's token, with a space before it; nothing, if it has none.
pub(super) fn id_of(profile: &Profile) -> String {
    token::parse(&profile.token).map(|id| format!(" {id}")).unwrap_or_default()
}

/// A terminal that doesn't show what is typed, until this is dropped.
struct Silence(Termios);

impl Silence {
    fn begin() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        silent.local_modes.insert(LocalModes::ECHONL);
        tcsetattr(io::stdin(), OptionalActions::Flush, &silent)?;
        Ok(Self(before))
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}

async fn logout(said: Said<'_>, output: &mut Output) -> Ended {
    let name = said.named_profile()?.unwrap_or_default();
    let profile = said.profile(&name)?.ok_or_else(|| said.no_profile(&name))?;
    if !profiles::forget(said.path()?, &name).await? {
        return Err(said.no_profile(&name));
    }
    let json = serde_json::json!({ "profile": name.to_string() });
    output.result(&json.to_string(), || format!("profile {name} forgotten"))?;
    output.message(&format!(
        "its token{} is still valid at {}, until an administrator revokes it",
        id_of(&profile),
        profile.url
    ));
    Ok(EXIT_DONE)
}

#[derive(Serialize)]
struct Row {
    profile: String,
    url: String,
    used: bool,
}

fn list(said: Said<'_>, output: &mut Output) -> Ended {
    let used = said.used_profile()?;
    let all = profiles::read(said.path()?)?;
    let rows = all.iter().map(|(name, profile)| Row {
        profile: name.to_string(),
        url: profile.url.to_string(),
        used: used.as_ref() == Some(name),
    });
    let rows: Vec<Row> = rows.collect();
    let json = serde_json::json!({ "items": rows });
    output.result(&json.to_string(), || {
        let used = |row: &Row| if row.used { "used".to_owned() } else { String::new() };
        let cells = rows.iter().map(|row| [row.profile.clone(), row.url.clone(), used(row)]);
        table(["PROFILE", "SERVER", ""], &cells.collect::<Vec<_>>())
    })?;
    if rows.is_empty() {
        output.message("no profiles");
    }
    if used.is_none() {
        output.message("none is used: --token-file or PEARING_TOKEN gives the token");
    }
    Ok(EXIT_DONE)
}
