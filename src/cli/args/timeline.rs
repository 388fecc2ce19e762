//! The command line of what is drawn.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::ScopeArgs;
use crate::domain::name::LockName;
use crate::flags::named;

/// What is drawn, and how.
#[derive(Debug, Args)]
pub(in crate::cli) struct TimelineArgs {
    /// The lock's name, like thread-work.42; all locks of the scope if left out
    #[arg(value_name = "NAME", value_parser = named::<LockName>("lock"))]
    pub(in crate::cli) lock_name: Option<LockName>,
    #[command(flatten)]
    pub(in crate::cli) scope: ScopeArgs,
    /// Nothing that was over before this
    #[arg(long, value_name = "SEQUENCE|TIME")]
    pub(in crate::cli) from: Option<String>,
    /// Nothing that came after this
    #[arg(long, value_name = "SEQUENCE|TIME")]
    pub(in crate::cli) to: Option<String>,
    /// A picture (SVG) in place of text
    #[arg(long)]
    pub(in crate::cli) svg: bool,
    /// How many columns the text has, 40 to 1000 [default: the terminal's, or 100]
    #[arg(long, value_name = "COLUMNS", conflicts_with = "svg")]
    pub(in crate::cli) width: Option<usize>,
    /// The file to write [default: stdout]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(in crate::cli) out: Option<PathBuf>,
}
