//! Logs: structured, on stderr. No token is ever logged: nothing that holds one has a `Debug`.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

use crate::config::{LogFormat, LogOptions};

/// Starts logging for the process.
///
/// # Errors
///
/// The filter's, if it is none.
pub fn start(options: &LogOptions) -> Result<(), ParseError> {
    let filter = EnvFilter::try_new(&options.log)?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    match options.log_format {
        LogFormat::Text => builder.init(),
        LogFormat::Json => builder.json().init(),
    }
    Ok(())
}
