//! Logs: structured, on stderr. What is logged for a request stands in its span, which has its id.
//! No token is ever logged: nothing that holds one has a `Debug`.

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
    let mut filter = EnvFilter::try_new(&options.log)?;
    // That library tells of each message as if it were a session, and warns of clients that went
    // away. It is heard if it is asked for.
    if !options.log.contains("rmcp") {
        filter = filter.add_directive("rmcp=error".parse()?);
    }
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    match options.log_format {
        LogFormat::Text => builder.init(),
        // The span of the request once, not again in a list of one.
        LogFormat::Json => builder.json().with_span_list(false).init(),
    }
    Ok(())
}
