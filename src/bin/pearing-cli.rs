//! `pearing-cli`: parse, call, exit.

use std::process::ExitCode;

fn main() -> ExitCode {
    pearing::cli::main(std::env::args_os())
}
