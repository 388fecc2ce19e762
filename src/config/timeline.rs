//! The command line of what is drawn.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};

use super::audit::point;
use crate::flags::ScopeArgs;
use crate::projection::as_of::AsOf;

/// What is drawn, and how.
#[derive(Debug, Clone, Args)]
pub struct TimelineArgs {
    /// The lock's name, like thread-work.42; all locks of the scope if left out
    #[arg(value_name = "LOCK")]
    lock: Option<String>,
    /// A data directory or a backup that no server has open, an exported file, or - for an export
    /// on standard input; wins over --data
    #[arg(value_name = "LEDGER", value_hint = ValueHint::AnyPath)]
    ledger: Option<PathBuf>,
    /// The same, as for the other commands; without it, one name alone is LEDGER's
    #[arg(long, env = "PEARING_DATA", value_name = "DIR", value_hint = ValueHint::DirPath)]
    data: Option<PathBuf>,
    /// The scope of the locks
    #[command(flatten)]
    pub scope: ScopeArgs,
    /// Nothing that was over before this
    #[arg(long, value_name = "SEQUENCE|TIME", value_parser = point)]
    pub from: Option<AsOf>,
    /// Nothing that came after this [default: the end]
    #[arg(long, value_name = "SEQUENCE|TIME", value_parser = point)]
    pub to: Option<AsOf>,
    /// A picture (SVG) in place of text
    #[arg(long)]
    pub svg: bool,
    /// How many columns the text has, at least 40 [default: the terminal's, or 100]
    #[arg(long, value_name = "COLUMNS", conflicts_with = "svg")]
    pub width: Option<usize>,
    /// Show each user in its colour, by ANSI escapes
    #[arg(long, conflicts_with = "svg")]
    pub color: bool,
    /// The file to write [default: stdout]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
}

impl TimelineArgs {
    /// The text of the lock's name, if one is meant, and where the ledger is, if that is said.
    pub fn lock_and_ledger(&self) -> (Option<&str>, Option<&Path>) {
        match (&self.lock, &self.ledger, &self.data) {
            (lock, Some(ledger), _) => (lock.as_deref(), Some(ledger)),
            (lock, None, Some(data)) => (lock.as_deref(), Some(data)),
            (Some(ledger), None, None) => (None, Some(Path::new(ledger))),
            (None, None, None) => (None, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: TimelineArgs,
    }

    #[test]
    fn one_name_alone_is_a_lock_where_the_ledger_is_known() {
        let said = |words: &[&str]| {
            let line = [&["timeline", "--team", "a"], words].concat();
            let args = Line::try_parse_from(line).expect("a command line").args;
            let (lock, ledger) = args.lock_and_ledger();
            (lock.map(str::to_owned), ledger.map(|ledger| ledger.display().to_string()))
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(said(&["x", "dir"]), (some("x"), some("dir")));
        assert_eq!(said(&["x", "--data", "dir"]), (some("x"), some("dir")));
        assert_eq!(said(&["x", "here", "--data", "dir"]), (some("x"), some("here")));
        assert_eq!(said(&["--data", "dir"]), (None, some("dir")));
        assert_eq!(said(&["dir"]), (None, some("dir")));
        assert_eq!(said(&[]), (None, None));
    }
}
