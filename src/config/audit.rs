//! The commands that prove and explain what happened.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::timeline::TimelineArgs;
use crate::domain::id::TicketId;
use crate::flags::{LockArgs, invalid, uuid};
use crate::projection::as_of::AsOf;

/// Which ledger is read.
#[derive(Debug, Clone, Args)]
#[group(required = true, multiple = true)]
pub struct LedgerArgs {
    /// A data directory or a backup that no server has open, an exported file, or - for an export
    /// on standard input; wins over --data
    #[arg(value_name = "LEDGER", value_hint = ValueHint::AnyPath)]
    ledger: Option<PathBuf>,
    /// The same, as for the other commands
    #[arg(long, env = "PEARING_DATA", value_name = "DIR", value_hint = ValueHint::DirPath)]
    data: Option<PathBuf>,
}

impl LedgerArgs {
    /// Where it is.
    pub fn path(&self) -> &PathBuf {
        self.ledger.as_ref().or(self.data.as_ref()).expect("the group is required")
    }
}

/// How an export is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportForm {
    /// A record a line: its hash, a space, the stored bytes.
    Text,
    /// A CloudEvents 1.0 JSON object a line.
    Cloudevents,
}

/// What proves and explains.
#[derive(Debug, Clone, Subcommand)]
pub enum AuditCommand {
    /// Verify a whole ledger: every record, the chain, the rules, the tables. Writes nothing.
    ///
    /// Every record is read: its place, its time, its hash, its form, and that it is what the
    /// rules make of the state before it. The tables of a data directory and the stored snapshot
    /// are compared with what the records make. The first fault is told, and how far everything
    /// is good; the exit code is 5 then.
    Verify {
        /// Which ledger.
        #[command(flatten)]
        ledger: LedgerArgs,
        /// A signed checkpoint that the ledger must extend; can be given more than once
        #[arg(
            long,
            value_name = "FILE",
            value_hint = ValueHint::FilePath,
            requires = "checkpoint_key"
        )]
        checkpoint: Vec<PathBuf>,
        /// The public key that proves the checkpoints
        #[arg(
            long,
            value_name = "FILE.pub",
            value_hint = ValueHint::FilePath,
            requires = "checkpoint"
        )]
        checkpoint_key: Option<PathBuf>,
        /// Print the result as JSON on one line
        #[arg(long)]
        json: bool,
    },
    /// Make a key that signs checkpoints, and beside it the public one, FILE.pub.
    ///
    /// Keep the key outside of the data directory: who has it can sign anything. The public one is
    /// what `verify` takes.
    CheckpointKey {
        /// The file of the key, which isn't there yet
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        out: PathBuf,
    },
    /// Sign a note of a ledger's last record: its sequence, hash and time.
    ///
    /// The whole ledger is verified first, as by `verify`; one with a fault is not signed. Of a
    /// ledger that is served the server makes checkpoints itself: `pearing-cli create-checkpoint`.
    Checkpoint {
        /// Which ledger.
        #[command(flatten)]
        ledger: LedgerArgs,
        /// The key, made by checkpoint-key; it must be its owner's alone
        #[arg(
            long,
            env = "PEARING_CHECKPOINT_KEY",
            value_name = "FILE",
            value_hint = ValueHint::FilePath
        )]
        key: PathBuf,
        /// The file to write, which isn't there yet [default: stdout]
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        out: Option<PathBuf>,
    },
    /// Write the tables of a data directory anew from its records, and the snapshot.
    ///
    /// The records are verified first; with a fault in them nothing is changed.
    Rebuild {
        /// The data directory.
        #[arg(long, env = "PEARING_DATA", value_name = "DIR", value_hint = ValueHint::DirPath)]
        data: PathBuf,
    },
    /// Write a ledger as text, one record a line.
    Export {
        /// Which ledger.
        #[command(flatten)]
        ledger: LedgerArgs,
        /// The file to write; one that has the beginning already is gone on with [default: stdout]
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        out: Option<PathBuf>,
        /// Begin after this sequence
        #[arg(long, value_name = "SEQUENCE", default_value_t = 0, conflicts_with = "out")]
        after: u64,
        /// How each record is written
        #[arg(long, value_name = "FORM", default_value = "text")]
        format: ExportForm,
    },
    /// Read an exported ledger into a new data directory, with the same hashes.
    ///
    /// One that was cut off is gone on with. When it is served its sequences jump ahead, since the
    /// ledger that it comes from may have gone on.
    Import {
        /// The exported file, or - for standard input
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// The data directory: a new or empty one.
        #[arg(long, env = "PEARING_DATA", value_name = "DIR", value_hint = ValueHint::DirPath)]
        data: PathBuf,
    },
    /// Copy a ledger that no server has open, record by record, and verify the copy.
    ///
    /// Of a ledger that is served the server makes backups itself: `pearing-cli create-backup`.
    Backup {
        /// Which ledger.
        #[command(flatten)]
        ledger: LedgerArgs,
        /// Where the backup is made: a directory that isn't there
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        to: PathBuf,
    },
    /// Make a data directory from a backup.
    ///
    /// Each record is verified as it is copied. When the directory is served its sequences jump
    /// ahead of all that the lost ledger can have issued, so that no fence token comes back.
    Restore {
        /// The backup, or an exported file
        #[arg(long, value_name = "BACKUP", value_hint = ValueHint::AnyPath)]
        from: PathBuf,
        /// The data directory: a new or empty one.
        #[arg(long, env = "PEARING_DATA", value_name = "DIR", value_hint = ValueHint::DirPath)]
        data: PathBuf,
    },
    /// Show the state at a point of the ledger, or what each event changes.
    Replay {
        /// Which ledger.
        #[command(flatten)]
        ledger: LedgerArgs,
        /// The point: a sequence or a time; the end of what was decided together there
        /// [default: the end]
        #[arg(long, value_name = "SEQUENCE|TIME", value_parser = point)]
        to: Option<AsOf>,
        /// Print each event after this point with what it changes; from the first one with 0
        #[arg(long, value_name = "SEQUENCE|TIME", value_parser = point)]
        step: Option<AsOf>,
        /// Pass over the stored snapshot, and begin with the first record
        #[arg(long)]
        from_first: bool,
        /// Print JSON on one line; with --step one line an event
        #[arg(long)]
        json: bool,
    },
    /// Draw what happened to a lock, or to all locks of a scope.
    Timeline(TimelineArgs),
    /// Explain why a ticket went as it did, with the events that show it.
    ///
    /// Who held what it waited for, whom it stood behind, what freed it, and how it ended. Numbers
    /// in parentheses are sequences. The same ledger gives the same text, whenever it is asked.
    #[command(override_usage = "pearing why [OPTIONS] <TICKET> <LEDGER|--data <DIR>>")]
    Why {
        /// The ticket's id.
        #[arg(value_name = "TICKET", value_parser = uuid::<TicketId>("ticket_id"))]
        ticket_id: TicketId,
        /// Which ledger.
        #[command(flatten)]
        ledger: LedgerArgs,
        /// Print the story as JSON on one line
        #[arg(long)]
        json: bool,
    },
    /// Show who held a lock at a moment, who waited, until when, and by which events.
    #[command(override_usage = "pearing who [OPTIONS] \
        <--repo <REPO>|--team <TEAM>|--user <USER>> <NAME> <LEDGER|--data <DIR>>")]
    Who {
        /// Which lock.
        #[command(flatten)]
        lock: LockArgs,
        /// Which ledger.
        #[command(flatten)]
        ledger: LedgerArgs,
        /// The moment: a sequence or a time; the end of what was decided together there
        /// [default: the end]
        #[arg(long, value_name = "SEQUENCE|TIME", value_parser = point)]
        at: Option<AsOf>,
        /// Print JSON on one line
        #[arg(long)]
        json: bool,
    },
    /// Show what is different between two points of a ledger, or where two ledgers part.
    ///
    /// A and B are both points (a sequence or a time) of one ledger, or both ledgers. The exit
    /// code is 0 if nothing is different, else 1.
    Diff {
        /// A point, or a ledger
        #[arg(value_name = "A")]
        a: String,
        /// Another one
        #[arg(value_name = "B")]
        b: String,
        /// Which ledger the points are of; wins over --data
        #[arg(value_name = "LEDGER", value_hint = ValueHint::AnyPath)]
        ledger: Option<PathBuf>,
        /// The same, as for the other commands
        #[arg(long, env = "PEARING_DATA", value_name = "DIR", value_hint = ValueHint::DirPath)]
        data: Option<PathBuf>,
        /// Print JSON on one line
        #[arg(long)]
        json: bool,
    },
}

/// Reads a point of a ledger.
pub fn point(text: &str) -> Result<AsOf, String> {
    text.parse().map_err(|_| invalid("point", "must be a sequence, or an RFC 3339 time"))
}
