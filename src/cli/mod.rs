//! `pearing-cli`: parses a command line, calls the server through the typed client, prints what
//! came, and says by its exit code how it ended.
//!
//! The exit codes are those of the one table in [`problem`](crate::wire::problem). A refusal
//! prints nothing on stdout; its code and its words go to stderr.
//! Deliberately absent: rules of locks. The server has them, and nothing here second-guesses it.

mod acquire;
mod admin;
mod args;
mod events;
mod locks;
mod note_args;
mod notes;
mod output;
mod text;
mod thread_text;
mod token;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;

use crate::client::{Client, ClientError};
use crate::wire::problem::{Code, EXIT_DONE, EXIT_OTHER, EXIT_USAGE};
use crate::wire::ticket::{State, Ticket};
use args::{Cli, Command, Global};
use output::{Format, Output};

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// The call has no answer that it can use.
    #[error("{0}")]
    Client(#[from] ClientError),
    /// The result can't be written.
    #[error("the result can't be written: {0}")]
    Write(#[from] std::io::Error),
    /// There is no token to send.
    #[error("unauthenticated: {0}")]
    Token(String),
    /// A flag or a variable of the environment can't be used.
    #[error("invalid-argument: {0}")]
    Usage(String),
}

impl Failure {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Client(ClientError::Setup(_)) | Self::Usage(_) => EXIT_USAGE,
            Self::Client(error) => error.exit_code(),
            Self::Write(_) => EXIT_OTHER,
            Self::Token(_) => Code::Unauthenticated.exit_code(),
        }
    }
}

/// How a command ended: its exit code.
type Ended = Result<u8, Failure>;

/// Runs one command line to its end.
pub fn main(command_line: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(command_line) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are results, with exit code 0; a failed write has no other place.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(EXIT_USAGE));
        }
    };
    let format = format(&cli.global, std::env::var("PEARING_OUTPUT").ok().as_deref());
    let mut output = Output::new(*format.as_ref().unwrap_or(&Format::Text));
    let ended = format.and_then(|_| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(run(&cli, &mut output))
    });
    let exit_code = ended.unwrap_or_else(|failure| {
        output.message(&format!("pearing-cli: {failure}"));
        explain(&failure, &cli.global, &mut output);
        failure.exit_code()
    });
    ExitCode::from(exit_code)
}

/// How results are printed: the flag wins over `PEARING_OUTPUT`.
fn format(global: &Global, variable: Option<&str>) -> Result<Format, Failure> {
    match variable {
        _ if global.json => Ok(Format::Json),
        Some("json") => Ok(Format::Json),
        None | Some("" | "text") => Ok(Format::Text),
        Some(_) => Err(Failure::Usage("PEARING_OUTPUT must be json or text".to_owned())),
    }
}

async fn run(cli: &Cli, output: &mut Output) -> Ended {
    let token = token::find(cli.global.token_file.as_deref())?;
    let client = Client::new(&cli.global.url, &token.text)?;
    match &cli.command {
        Command::AcquireLock(args) => acquire::acquire(&client, output, args).await,
        Command::GetLockTicket { ticket, exit_status, wait } => {
            locks::get_ticket(&client, output, ticket, *exit_status, *wait).await
        }
        Command::HeartbeatLockTicket { ticket, lease_seconds } => {
            let lock = ticket.lock();
            let answer = client.heartbeat(&lock, ticket.ticket_id, *lease_seconds).await?;
            locks::print_ticket(output, &answer)
        }
        Command::ReleaseLockTicket { ticket } => {
            let answer = client.release(&ticket.lock(), ticket.ticket_id).await?;
            locks::print_ticket(output, &answer)
        }
        Command::GetLock { lock, as_of } => {
            locks::print_lock(output, &client.lock(&lock.lock(), as_of.as_deref()).await?)
        }
        Command::ListLocks { scope, as_of, page } => {
            let scope = scope.scope();
            let list = client.locks(&scope, as_of.as_deref(), &page.into()).await?;
            locks::print_list(output, &list, text::locks, "no lock is held there")
        }
        Command::ListTickets { state, page } => {
            let list = client.tickets(state.as_deref(), &page.into()).await?;
            locks::print_list(output, &list, text::tickets, "no live tickets")
        }
        Command::LockHistory { lock, page } => {
            let list = client.history(&lock.lock(), &page.into()).await?;
            locks::print_list(output, &list, events::lines, "no events")
        }
        Command::BreakLock { lock, fence_token, reason } => {
            let reply = client.break_lock(&lock.lock(), *fence_token, reason).await?;
            locks::print_lock(output, &reply)
        }
        Command::WatchEvents { filter, after } => {
            events::watch(&client, output, filter, *after).await
        }
        Command::ListEvents { filter, after, page } => {
            let list = client.events(&filter.into(), *after, &page.into()).await?;
            locks::print_list(output, &list, events::lines, "no events")
        }
        Command::Whoami => {
            let reply = client.whoami().await?;
            output.result(&reply.json, || admin::whoami(&reply.body, &token.source))?;
            Ok(EXIT_DONE)
        }
        Command::Note(command) => notes::note(&client, output, command).await,
        Command::Identity(command) => admin::identity(&client, output, command).await,
        Command::Access(command) => admin::access(&client, output, command).await,
    }
}

/// Says what to do about a failure, where that is known.
fn explain(failure: &Failure, global: &Global, output: &mut Output) {
    match failure {
        Failure::Client(ClientError::Unreachable(_)) => {
            output.message(&format!(
                "no answer from {}: the request may have been carried out; repeat it as it was",
                address(&global.url)
            ));
        }
        Failure::Client(ClientError::Problem(refused)) => {
            if let Some(ticket) = &refused.problem.ticket {
                let reason = ticket.end_reason.as_ref().map(|r| format!(" ({r})"));
                output.message(&format!(
                    "ticket {} is {}{}",
                    ticket.ticket_id,
                    ticket.state.as_str(),
                    reason.unwrap_or_default()
                ));
            }
            let is_waiting = |ticket: &Ticket| ticket.state == State::Waiting;
            match refused.problem.code {
                // It never had the lock, so it has lost nothing.
                Code::TicketNotHeld if refused.problem.ticket.as_ref().is_some_and(is_waiting) => {}
                Code::TicketNotHeld | Code::TicketEnded => output.message(
                    "the lock is not yours: stop, unless the target itself accepts \
                     your fence token",
                ),
                Code::Busy | Code::LimitReached | Code::DiskFull => {
                    if let Some(seconds) = refused.problem.retry_after_seconds {
                        output.message(&format!("ask again in {seconds} s, as it was"));
                    }
                }
                _ => {}
            }
        }
        Failure::Client(ClientError::Unexpected(_) | ClientError::Setup(_))
        | Failure::Write(_)
        | Failure::Token(_)
        | Failure::Usage(_) => {}
    }
}

/// An address without what may be secret in it.
fn address(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let end = rest.find('/').unwrap_or(rest.len());
    let start = rest[..end].rfind('@').map_or(0, |at| at + 1);
    format!("{scheme}://{}", &rest[start..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_variable_is_json_or_text() {
        let global = |json| Global { url: String::new(), token_file: None, json };
        assert_eq!(format(&global(true), Some("text")).expect("the flag wins"), Format::Json);
        assert_eq!(format(&global(false), Some("json")).expect("a format"), Format::Json);
        assert_eq!(format(&global(false), None).expect("a format"), Format::Text);
        assert_eq!(format(&global(false), Some("xml")).expect_err("none").exit_code(), 2);
    }

    #[test]
    fn an_address_is_shown_without_its_password() {
        assert_eq!(address("http://ana:secret@host:1/a@b"), "http://host:1/a@b");
        assert_eq!(address("http://127.0.0.1:7420"), "http://127.0.0.1:7420");
    }

    #[test]
    fn each_failure_has_its_exit_code() {
        let no_token = Failure::Token("none".to_owned());
        assert_eq!((no_token.exit_code(), Failure::Usage(String::new()).exit_code()), (7, 2));
        let silent = Failure::Client(ClientError::Unreachable(String::new()));
        let strange = Failure::Client(ClientError::Unexpected(String::new()));
        assert_eq!((silent.exit_code(), strange.exit_code()), (8, 1));
    }
}
