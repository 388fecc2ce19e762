//! `pearing-cli`: parses a command line, calls the server through the typed client, prints what
//! came, and says by its exit code how it ended.
//!
//! The exit codes are those of the one table in [`problem`](crate::wire::problem). The code and
//! the words of a refusal go to stderr; on stdout it prints nothing as text, and as JSON the
//! problem that came.
//! Deliberately absent: rules of locks. The server has them, and nothing here second-guesses it.

mod acquire;
mod activity;
mod admin;
mod agent;
mod args;
mod body;
mod connection;
mod doctor;
mod drill;
mod environment;
mod events;
mod git_push;
mod group;
mod guard;
mod hook;
mod ledger;
mod locks;
mod mcp;
mod output;
mod private;
mod profiles;
mod respond;
mod setup;
mod signals;
mod text;
mod thread_text;
mod threads;
mod timeline;
mod vendor;
mod watch;
mod watchdog;
mod with_lock;
mod work;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;

use crate::client::{Client, ClientError};
use crate::wire::problem::{Code, EXIT_DONE, EXIT_OTHER, EXIT_USAGE};
use crate::wire::ticket::{State, Ticket};
use args::{Call, Cli, Command, Global};
use connection::{Connection, Said, Server, TokenSource};
use environment::Environment;
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
    /// What this machine is to keep can't be written.
    #[error("it can't be written: {0}")]
    Store(String),
    /// Another program that is needed can't be run, or fails.
    #[error("{0}")]
    Program(String),
    /// A flag or a variable of the environment can't be used.
    #[error("invalid-argument: {0}")]
    Usage(String),
}

impl Failure {
    /// Whether the server refused with this code.
    fn is(&self, code: Code) -> bool {
        matches!(self, Self::Client(ClientError::Problem(refused)) if refused.problem.code == code)
    }

    fn exit_code(&self) -> u8 {
        match self {
            Self::Client(ClientError::Setup(_)) | Self::Usage(_) => EXIT_USAGE,
            Self::Client(error) => error.exit_code(),
            Self::Write(_) | Self::Store(_) | Self::Program(_) => EXIT_OTHER,
            Self::Token(_) => Code::Unauthenticated.exit_code(),
        }
    }
}

/// How a command ended: its exit code.
type Ended = Result<u8, Failure>;

/// Runs one command line to its end.
pub fn main(command_line: impl IntoIterator<Item = OsString>) -> ExitCode {
    let words: Vec<OsString> = command_line.into_iter().collect();
    let cli = match Cli::try_parse_from(&words) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are results, with exit code 0; a failed write has no other place.
            let error = args::advised(error, &words);
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(EXIT_USAGE));
        }
    };
    let environment = Environment::read();
    let format = format(&cli.global, environment.output.as_deref());
    let mut output = Output::new(*format.as_ref().unwrap_or(&Format::Text));
    let ended = format.and_then(|_| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let ended = runtime.block_on(run(&cli, &environment, &mut output));
        // What still waits for a name server or for stdin is left behind: nobody waits for it.
        runtime.shutdown_background();
        ended
    });
    ExitCode::from(ended.unwrap_or_else(|failure| fail(&failure, None, &mut output)))
}

/// Says why a command failed, and at which server if it came so far, and what to do; as JSON,
/// prints the problem too. Returns the exit code.
fn fail(failure: &Failure, server: Option<&Server>, output: &mut Output) -> u8 {
    tell(failure, output);
    explain(failure, server, output);
    failure.exit_code()
}

fn tell(failure: &Failure, output: &mut Output) {
    if let Failure::Client(ClientError::Problem(refused)) = failure
        && let Err(error) = output.result(&refused.json, String::new)
    {
        output.message(&format!("pearing-cli: {}", Failure::Write(error)));
    }
    output.message(&format!("pearing-cli: {failure}"));
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

async fn run(cli: &Cli, environment: &Environment, output: &mut Output) -> Ended {
    let said = Said { global: &cli.global, environment };
    let command = match &cli.command {
        Command::Call(command) => command,
        Command::Setup(command) => return setup::run(said, output, command).await,
        Command::Agent(command) => return agent::run(said, output, command).await,
    };
    let connection = said.connection()?;
    if let (TokenSource::Environment, Some(name)) = (&connection.token.source, &environment.profile)
    {
        output.message(&format!("PEARING_TOKEN is used, and not the token of profile {name}"));
    }
    let ended = call(command, &connection, environment, output).await;
    let Err(failure) = ended else { return ended };
    if matches!(command, Call::BreakLock { .. }) && failure.is(Code::StaleFence) {
        tell(&failure, output);
        output.message("nothing was broken: get-lock says who holds it now, under which fence");
        return Ok(failure.exit_code());
    }
    let exit_code = fail(&failure, Some(&connection.server), output);
    if matches!(command, Call::HeartbeatLockTicket { .. }) && failure.is(Code::Forbidden) {
        output.message("the lease can't be extended any more: stop before it ends");
    }
    Ok(exit_code)
}

async fn call(
    command: &Call,
    connection: &Connection,
    environment: &Environment,
    output: &mut Output,
) -> Ended {
    let Connection { server, token } = connection;
    let client = Client::new(&server.url, &token.text)?;
    match command {
        Call::AcquireLock(args) => acquire::acquire(&client, output, args).await,
        Call::GetLockTicket { ticket, exit_status, wait } => {
            let wait = wait.unwrap_or_default();
            locks::get_ticket(&client, output, ticket, *exit_status, wait).await
        }
        Call::WhyLockTicket { ticket } => {
            let reply = client.why(&ticket.lock(), ticket.ticket_id).await?;
            output.result(&reply.json, || reply.body.to_string())?;
            Ok(EXIT_DONE)
        }
        Call::HeartbeatLockTicket { ticket, lease_seconds } => {
            let lock = ticket.lock();
            let answer = client.heartbeat(&lock, ticket.ticket_id, *lease_seconds).await?;
            locks::print_ticket(output, &answer)
        }
        Call::ReleaseLockTicket { ticket } => {
            let answer = client.release(&ticket.lock(), ticket.ticket_id).await?;
            locks::print_ticket(output, &answer)
        }
        Call::GetLock { lock, as_of } => {
            locks::print_lock(output, &client.lock(&lock.lock(), as_of.as_deref()).await?)
        }
        Call::ListLocks { scope, as_of, page } => {
            let scope = scope.scope();
            let list = client.locks(&scope, as_of.as_deref(), &page.into()).await?;
            locks::print_list(output, &list, text::locks, "no lock is held there")
        }
        Call::ListTickets { state, page } => {
            let list = client.tickets(state.as_deref(), &page.into()).await?;
            locks::print_list(output, &list, text::tickets, "no live tickets")
        }
        Call::LockHistory { lock, page } => {
            let list = client.history(&lock.lock(), &page.into()).await?;
            locks::print_list(output, &list, events::lines, "no events")
        }
        Call::LockTimeline(args) => timeline::draw(&client, output, args).await,
        Call::BreakLock { lock, fence_token, reason } => {
            let reply = client.break_lock(&lock.lock(), *fence_token, reason).await?;
            locks::print_lock(output, &reply)
        }
        Call::WatchEvents { filter, after } => events::watch(&client, output, filter, *after).await,
        Call::ListEvents { filter, after, page } => {
            let list = client.events(&filter.into(), *after, &page.into()).await?;
            locks::print_list(output, &list, events::lines, "no events")
        }
        Call::Whoami => {
            let reply = client.whoami().await?;
            output.result(&reply.json, || admin::whoami(&reply.body, server, &token.source))?;
            Ok(EXIT_DONE)
        }
        Call::Activity(command) => activity::activity(&client, output, command).await,
        Call::Thread(command) => threads::thread(&client, output, environment, command).await,
        Call::Identity(command) => admin::identity(&client, output, command).await,
        Call::Access(command) => admin::access(&client, output, command).await,
        Call::Ledger(command) => ledger::ledger(&client, output, command).await,
    }
}

/// Says what to do about a failure, where that is known.
fn explain(failure: &Failure, server: Option<&Server>, output: &mut Output) {
    let at = server.map(|server| format!("{} ({})", server.url, server.source));
    match failure {
        Failure::Client(ClientError::NoConnection(_)) => output.message(&format!(
            "does a server run {}? PEARING_URL, --url or a profile says where it is",
            at.map_or("there".to_owned(), |at| format!("at {at}"))
        )),
        Failure::Client(ClientError::Unreachable(_)) => output.message(&format!(
            "no answer from {}: the request may have been carried out; repeat it as it was",
            at.as_deref().unwrap_or("the server")
        )),
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
            match refused.problem.code {
                // It never had the lock, so it has lost nothing.
                Code::TicketNotHeld
                    if refused.problem.ticket.as_ref().is_some_and(was_never_held) => {}
                Code::TicketNotHeld | Code::TicketEnded => {
                    output.message("stop: the lock is not yours any more");
                }
                Code::StaleFence => {
                    output.message("stop: nothing was done under that hold");
                }
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
        | Failure::Store(_)
        | Failure::Program(_)
        | Failure::Token(_)
        | Failure::Usage(_) => {}
    }
}

fn was_never_held(ticket: &Ticket) -> bool {
    match ticket.state {
        State::Waiting
        | State::Contended
        | State::DeadlockRejected
        | State::Cancelled
        | State::TimedOut => true,
        State::Held | State::Released | State::Expired | State::Broken => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_variable_is_json_or_text() {
        let global = |json| Global { json, ..Global::default() };
        assert_eq!(format(&global(true), Some("text")).expect("the flag wins"), Format::Json);
        assert_eq!(format(&global(false), Some("json")).expect("a format"), Format::Json);
        assert_eq!(format(&global(false), None).expect("a format"), Format::Text);
        assert_eq!(format(&global(false), Some("xml")).expect_err("none").exit_code(), 2);
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
