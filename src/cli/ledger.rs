//! Commands over the whole ledger: they wait for what the server does, and say how it went.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal as _, Write};
use std::path::Path;
use std::time::Duration;

use super::args::LedgerCommand;
use super::output::Output;
use super::{Ended, Failure};
use crate::client::Client;
use crate::domain::id::Sequence;
use crate::wire::problem::{EXIT_DONE, EXIT_OTHER};
use crate::wire::verification::{BackupStatus, VerificationStatus};

/// How often it is asked how far the work is.
const ASK_EVERY: Duration = Duration::from_millis(500);

/// Runs a command.
pub(super) async fn ledger(client: &Client, output: &mut Output, command: &LedgerCommand) -> Ended {
    match command {
        LedgerCommand::ExportLedger { out, after, format } => {
            let mut export = client.export_ledger(*after, format).await?;
            // Made only now: a refusal must leave no empty file that is in the way of the next try.
            let mut to: Box<dyn Write> = match out {
                None => Box::new(io::stdout().lock()),
                Some(path) => Box::new(new_file(path).map_err(not_stored(path))?),
            };
            while let Some(bytes) = export.next().await? {
                to.write_all(&bytes)?;
            }
            to.flush()?;
            Ok(EXIT_DONE)
        }
        LedgerCommand::VerifyLedger => verify(client, output).await,
        LedgerCommand::CreateBackup => back_up(client, output).await,
        LedgerCommand::CreateCheckpoint { out } => sign(client, output, out.as_deref()).await,
    }
}

fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

fn not_stored(path: &Path) -> impl Fn(io::Error) -> Failure {
    move |error| Failure::Store(format!("{}: {error}", path.display()))
}

async fn sign(client: &Client, output: &mut Output, out: Option<&Path>) -> Ended {
    let reply = client.create_checkpoint().await?;
    let signed = &reply.body;
    let Some(path) = out else {
        output.result(&reply.json, || signed.note.clone())?;
        return Ok(EXIT_DONE);
    };
    let write = || {
        let mut file = new_file(path)?;
        file.write_all(signed.note.as_bytes())?;
        file.sync_all()
    };
    write().map_err(not_stored(path))?;
    let (sequence, hash) = (signed.sequence, &signed.hash);
    let said = || format!("signed: record {sequence} with the hash {hash}; {}", path.display());
    output.result(&reply.json, said)?;
    Ok(EXIT_DONE)
}

async fn verify(client: &Client, output: &mut Output) -> Ended {
    let mut reply = client.verify_ledger().await?;
    let mut progress = Progress::default();
    while reply.body.is_running {
        progress.show("verified", reply.body.reached, reply.body.head);
        tokio::time::sleep(ASK_EVERY).await;
        reply = client.ledger_verification().await?;
    }
    progress.end();
    let VerificationStatus { result, error, .. } = &reply.body;
    let said = match (result, error) {
        (Some(found), _) => match &found.fault {
            None => found.to_string(),
            Some(fault) => format!("{found}\n{fault}"),
        },
        (None, error) => format!("not verified: {}", error.as_deref().unwrap_or("unknown why")),
    };
    output.result(&reply.json, || said)?;
    let is_good = result.as_ref().is_some_and(|found| found.is_good);
    Ok(if is_good { EXIT_DONE } else { EXIT_OTHER })
}

async fn back_up(client: &Client, output: &mut Output) -> Ended {
    let mut reply = client.create_backup().await?;
    let mut progress = Progress::default();
    while reply.body.is_running {
        progress.show("copied", reply.body.reached, reply.body.head);
        tokio::time::sleep(ASK_EVERY).await;
        reply = client.backup().await?;
    }
    progress.end();
    let BackupStatus { name, head, hash, error, .. } = &reply.body;
    let said = match hash {
        Some(hash) => format!("{name}: copied and verified, up to {head} with the hash {hash}"),
        None => format!("no backup {name}: {}", error.as_deref().unwrap_or("unknown why")),
    };
    output.result(&reply.json, || said)?;
    Ok(if hash.is_some() { EXIT_DONE } else { EXIT_OTHER })
}

/// A line on the terminal that says how far the work is; elsewhere it says nothing.
#[derive(Default)]
struct Progress {
    is_shown: bool,
}

impl Progress {
    fn show(&mut self, verb: &str, reached: Sequence, head: Sequence) {
        if io::stderr().is_terminal() {
            // A terminal that is gone needs no news.
            let _ = write!(io::stderr(), "\r{verb} up to {reached} of {head}");
            self.is_shown = true;
        }
    }

    fn end(&self) {
        if self.is_shown {
            let _ = writeln!(io::stderr());
        }
    }
}
