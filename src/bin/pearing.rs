//! `pearing`: the server, and the tools that work on a data directory.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::FromArgMatches as _;
use pearing::config::{Cli, Command};
use pearing::{manual, server, telemetry};

/// What the threads that serve and the writer pass to each other is freed by the other one, which
/// the system's allocator is slow at.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let matches = Cli::complete().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    if let Err(error) = telemetry::start(&cli.log) {
        let _ = writeln!(io::stderr(), "pearing: --log: {error}");
        return ExitCode::from(2);
    }
    let outcome = match &cli.command {
        Command::Dev { data, serve } => server::dev(data, serve),
        Command::Init { data, admin } => server::init(data, admin),
        Command::Serve { data, serve, accept_loss_after } => {
            server::serve(data, serve, *accept_loss_after)
        }
        Command::Audit(command) => match server::audit(command) {
            Ok(is_as_hoped) => {
                return if is_as_hoped { ExitCode::SUCCESS } else { ExitCode::FAILURE };
            }
            Err(error) => Err(error),
        },
        Command::Completions { shell } => {
            return printed(Ok(manual::completions(Cli::complete(), *shell)));
        }
        Command::Man { out: None } => return printed(manual::page(Cli::complete())),
        Command::Man { out: Some(folder) } => {
            let written = manual::write_pages(Cli::complete(), folder);
            return printed(written.map(|()| String::new()));
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "pearing: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

/// Prints a text for a program to read.
fn printed(text: io::Result<String>) -> ExitCode {
    let mut out = io::stdout().lock();
    let printed = text.and_then(|text| out.write_all(text.as_bytes()));
    match printed.and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        // A reader that has gone away has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "pearing: {error}");
            ExitCode::FAILURE
        }
    }
}
