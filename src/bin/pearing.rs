//! `pearing`: the server, and the tools that work on a data directory.

use std::io::Write as _;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};
use pearing::config::{Cli, Command, exit_codes_help};
use pearing::{server, telemetry};

/// What the threads that serve and the writer pass to each other is freed by the other one, which
/// the system's allocator is slow at.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let matches = Cli::command().after_help(exit_codes_help()).get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    if let Err(error) = telemetry::start(&cli.log) {
        let _ = writeln!(std::io::stderr(), "pearing: --log: {error}");
        return ExitCode::from(2);
    }
    let outcome = match &cli.command {
        Command::Dev { data, serve } => server::dev(data, serve),
        Command::Init { data, admin } => server::init(data, admin),
        Command::Serve { data, serve, accept_loss_after } => {
            server::serve(data, serve, *accept_loss_after)
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "pearing: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
