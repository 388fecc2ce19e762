//! The commands about this machine: who is logged in, and what a shell and `man` want to know.

use std::path::PathBuf;

use clap::{Subcommand, ValueHint};
use clap_complete::Shell;

/// A command about this machine.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum SetupCommand {
    /// Keep a token in a profile, once the server has accepted it
    ///
    /// Reads the token from stdin, or asks for it without showing it if that is a terminal. The
    /// profile is `default`, or the one that --profile names; the server is that of --url, or of
    /// PEARING_URL, or the one that the profile has already.
    Login,
    /// Forget a profile and its token; the token stays valid at the server
    Logout,
    /// List the profiles, without their tokens
    ListProfiles,
    /// Print a script that completes command lines in a shell
    ///
    /// To load it in bash or zsh: source <(pearing-cli completions bash), with the shell's own
    /// name; in fish: pearing-cli completions fish | source.
    Completions {
        /// Whose script
        shell: Shell,
    },
    /// Print the man page, or write a page for each command to a folder
    Man {
        /// The folder; made if there is none
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        out: Option<PathBuf>,
    },
}
