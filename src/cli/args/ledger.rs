//! The commands over the whole ledger.

use std::path::PathBuf;

use clap::{Subcommand, ValueHint};

use super::value::sequence;
use crate::domain::id::Sequence;

/// A command over the whole ledger.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum LedgerCommand {
    /// Export the ledger, one record a line (server's administrators)
    ExportLedger {
        /// A new file to write to [default: stdout]
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        out: Option<PathBuf>,
        /// Begin after this sequence
        #[arg(long, value_name = "SEQUENCE", value_parser = sequence, default_value = "0")]
        after: Sequence,
        /// How a record is written
        #[arg(long, value_parser = ["text", "cloudevents"], default_value = "text")]
        format: String,
    },
    /// Have the server verify its whole ledger, and wait for that (server's administrators)
    VerifyLedger,
    /// Have the server make a verified backup, and wait for that (server's administrators)
    CreateBackup,
    /// Have the server sign a note of its last record (server's administrators)
    CreateCheckpoint {
        /// A new file to write the note to [default: stdout]
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        out: Option<PathBuf>,
    },
}
