//! The commands of an auditor: from their flags to what they print.

mod explain;
mod state_tables;

use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use serde::Serialize;
use serde_json::json;

use super::progress::Bar;
use super::{ServerError, checkpoint, timeline};
use crate::audit::checkpoint::{Proof, PublicKey};
use crate::audit::{
    self, AuditError, Change, Copied, Divergence, Form, Line, Records, Replay, Source,
};
use crate::clock;
use crate::config::{AuditCommand, ExportForm, point};
use crate::domain::id::Sequence;
use crate::ledger::Ledger;
use crate::ledger::pending::Gap;
use crate::ledger::rocks::Condition;
use crate::projection::as_of::AsOf;
use crate::wire::verification::Verification;

/// Carries out a command. Says whether what was looked for is so: of `diff`, that nothing is
/// different.
///
/// # Errors
/// [`ServerError`]; of `verify` also the first fault, after the result was printed.
pub fn audit(command: &AuditCommand) -> Result<bool, ServerError> {
    match command {
        AuditCommand::Verify { ledger, checkpoint, checkpoint_key, json } => {
            let proof = match checkpoint_key {
                Some(key) => Proof::read(checkpoint, &PublicKey::read(key)?)?,
                None => Proof::default(),
            };
            verify(ledger.path(), proof, *json)?;
            if !json && !checkpoint.is_empty() {
                say(&format!("checkpoints that it extends: {}", checkpoint.len()))?;
            }
        }
        AuditCommand::CheckpointKey { out } => checkpoint::make_key(out)?,
        AuditCommand::Checkpoint { ledger, key, out } => {
            checkpoint::sign(ledger.path(), key, out.as_deref())?;
        }
        AuditCommand::Rebuild { data } => {
            let rebuilt = audit::rebuild(data, &mut Bar::new("rebuilding"))?;
            say(&format!("rebuilt: {}", told(rebuilt)))?;
        }
        AuditCommand::Export { ledger, out, after, format } => {
            let after = Sequence(*after);
            export(ledger.path(), out.as_deref(), after, *format)?;
        }
        AuditCommand::Import { file, data } => {
            let copied = copy(file, data, Gap::Imported, "importing")?;
            say(&format!("imported: {}", told(copied)))?;
        }
        AuditCommand::Backup { ledger, to } => {
            let copied = backup(ledger.path(), to)?;
            say(&format!("backed up and verified: {}", told(copied)))?;
        }
        AuditCommand::Restore { from, data } => {
            let copied = copy(from, data, Gap::Restored, "restoring")?;
            say(&format!("restored: {}", told(copied)))?;
        }
        AuditCommand::Replay { ledger, to, step, from_first, json } => {
            let ledger = open(ledger.path())?;
            match step {
                Some(from) => steps(&*ledger, *from, *to, *from_first, *json)?,
                None => {
                    let state = Replay::to(&*ledger, *to, *from_first)?.shown()?;
                    if *json { say_json(&state)? } else { say(&state_tables::of(&state))? }
                }
            }
        }
        AuditCommand::Timeline(args) => timeline::draw(args)?,
        AuditCommand::Why { ticket_id, ledger, json } => {
            explain::why(&*open(ledger.path())?, *ticket_id, *json)?;
        }
        AuditCommand::Who { lock, ledger, at, json } => {
            explain::who(&*open(ledger.path())?, &lock.lock(), *at, *json)?;
        }
        AuditCommand::Diff { a, b, ledger, data, json } => {
            let ledger = ledger.as_deref().or(data.as_deref());
            return match (point(a), point(b)) {
                (Ok(a), Ok(b)) => diff_points(a, b, ledger, *json),
                (Err(_), Err(_)) => diff_ledgers(Path::new(a), Path::new(b), *json),
                (_, _) => Err(AuditError::Asked(
                    "A and B must both be points of one ledger, or both be ledgers".to_owned(),
                )
                .into()),
            };
        }
    }
    Ok(true)
}

pub(super) fn open(path: &Path) -> Result<Box<dyn Ledger>, ServerError> {
    Ok(Source::open(path)?.into_ledger(&mut Bar::new("reading"))?)
}

pub(super) fn say(text: &str) -> Result<(), ServerError> {
    writeln!(io::stdout(), "{text}").map_err(ServerError::io("printing the result"))
}

/// Prints JSON on one line.
fn say_json(value: &impl Serialize) -> Result<(), ServerError> {
    say(&serde_json::to_string(value).expect("its keys are names of fields"))
}

fn told(copied: Copied) -> String {
    let Copied { records, head, time } = copied;
    format!(
        "{records} records, the last one {} at {time} with the hash {}",
        head.sequence, head.hash
    )
}

/// What a verification came to.
pub(super) struct Verified {
    /// What it found.
    pub(super) verification: Verification,
    /// Whether the ledger has all that was synced, and nothing in it is half done.
    pub(super) whole: Result<(), AuditError>,
    /// Whether its log ends in a write that a crash had cut off.
    has_torn_tail: bool,
}

/// Verifies a ledger, and that it extends some checkpoints.
pub(super) fn verified(path: &Path, mut proof: Proof) -> Result<Verified, ServerError> {
    let mut bar = Bar::new("verifying");
    let source = Source::open(path)?;
    let whole = source.require_whole();
    let (found, has_torn_tail) = match source {
        Source::Text(input) => {
            let found = audit::verify::text(input, &mut bar, |checker| proof.see(checker))?;
            (found, false)
        }
        Source::Directory(reader, condition) => {
            let found = audit::verify::ledger(&*reader, &mut bar, |checker| proof.see(checker))?;
            (found, condition == Condition::TornTail)
        }
    };
    Ok(Verified { verification: proof.end(found), whole, has_torn_tail })
}

fn verify(path: &Path, proof: Proof, json: bool) -> Result<(), ServerError> {
    let Verified { verification, whole, has_torn_tail } = verified(path, proof)?;
    if json {
        say_json(&verification)?
    } else {
        say(&verification.to_string())?
    }
    // What is missing, or was never written, explains the faults.
    whole?;
    match verification.fault {
        Some(fault) => Err(AuditError::Fault(fault).into()),
        None if has_torn_tail && !json => {
            say("The log ends in a write that a crash cut off. It was never acknowledged; a start \
             drops it.")
        }
        None => Ok(()),
    }
}

fn export(
    path: &Path,
    out: Option<&Path>,
    after: Sequence,
    format: ExportForm,
) -> Result<(), ServerError> {
    let ledger = open(path)?;
    let form = match format {
        ExportForm::Text => Form::Text,
        ExportForm::Cloudevents => Form::CloudEvents,
    };
    let mut bar = Bar::new("exporting");
    match out {
        Some(out) => drop(audit::export_to_file(&*ledger, form, out, &mut bar)?),
        None => {
            let mut stdout = BufWriter::new(io::stdout().lock());
            match audit::export(&*ledger, form, after, &mut stdout, &mut bar) {
                // A reader that has gone away has read enough.
                Err(AuditError::Io { error, .. }) if error.kind() == io::ErrorKind::BrokenPipe => {}
                outcome => drop(outcome?),
            }
        }
    }
    Ok(())
}

/// Opens what is to be copied.
fn whole(path: &Path) -> Result<Source, ServerError> {
    let source = Source::open(path)?;
    source.require_whole()?;
    Ok(source)
}

fn copy(from: &Path, data: &Path, gap: Gap, verb: &'static str) -> Result<Copied, ServerError> {
    let mut source = whole(from)?;
    let records = Records::of_source(&mut source);
    Ok(audit::copy(records, data, gap, clock::wall(), &mut Bar::new(verb))?)
}

/// Copies to a directory of another name, which gets its own when the copy is verified.
fn backup(from: &Path, to: &Path) -> Result<Copied, ServerError> {
    let mut source = whole(from)?;
    let records = Records::of_source(&mut source);
    Ok(audit::backup(records, to, clock::wall(), &mut Bar::new("copying"))?)
}

fn steps(
    ledger: &dyn Ledger,
    from: AsOf,
    to: Option<AsOf>,
    is_from_first: bool,
    json: bool,
) -> Result<(), ServerError> {
    let replay = Replay::to(ledger, Some(from), is_from_first)?;
    let mut out = BufWriter::new(io::stdout().lock());
    replay.each_step(to, |step| {
        let record = &step.record;
        let written = if json {
            let changes: Vec<_> = step.changes.iter().map(change_json).collect();
            let line = json!({
                "sequence": record.sequence,
                "time": record.time,
                "actor": record.actor,
                "type": record.event.type_name(),
                "subject": record.event.subject(),
                "data": record.event,
                "changes": changes,
            });
            writeln!(out, "{line}")
        } else {
            let (sequence, time) = (record.sequence, record.time);
            let (kind, subject) = (record.event.type_name(), record.event.subject());
            let head = format!("{sequence}  {time}  {}  {kind}  {subject}", record.actor);
            let changes: String =
                step.changes.iter().map(|change| format!("    {change}\n")).collect();
            write!(out, "{head}\n{changes}")
        };
        written.map_err(AuditError::io("printing the steps"))
    })?;
    out.flush().map_err(ServerError::io("printing the steps"))
}

fn change_json(change: &Change) -> serde_json::Value {
    json!({ "path": change.path, "before": change.before, "after": change.after })
}

fn diff_points(a: AsOf, b: AsOf, path: Option<&Path>, json: bool) -> Result<bool, ServerError> {
    let none = || AuditError::Asked("which ledger? Name it after A and B, or by --data".to_owned());
    let ledger = open(path.ok_or_else(none)?)?;
    let before = Replay::to(&*ledger, Some(a), false)?.shown()?;
    let after = Replay::to(&*ledger, Some(b), false)?.shown()?;
    let changes = audit::differences(&before, &after);
    let (from, to) = (before.sequence, after.sequence);
    if json {
        let listed: Vec<_> = changes.iter().map(change_json).collect();
        say(&json!({ "from": from, "to": to, "changes": listed }).to_string())?;
    } else if changes.is_empty() {
        say(&format!("nothing is different after record {to} from after record {from}"))?;
    } else {
        let lines: Vec<String> = changes.iter().map(Change::to_string).collect();
        say(&format!("from after record {from} to after record {to}:\n{}", lines.join("\n")))?;
    }
    Ok(changes.is_empty())
}

fn diff_ledgers(a: &Path, b: &Path, json: bool) -> Result<bool, ServerError> {
    let (mut first, mut second) = (Source::open(a)?, Source::open(b)?);
    let records = (Records::of_source(&mut first), Records::of_source(&mut second));
    let divergence = match audit::divergence(records.0, records.1)? {
        Ok(common) if json => {
            say(&json!({ "common": common, "a": null, "b": null }).to_string())?;
            return Ok(true);
        }
        Ok(common) => {
            say(&format!("the two are the same, up to their last record {common}"))?;
            return Ok(true);
        }
        Err(divergence) => divergence,
    };
    let Divergence { common, first, second } = divergence;
    let text = |line: &Line| String::from_utf8_lossy(&line.bytes).into_owned();
    if json {
        let side = |line: &Option<Line>| {
            line.as_ref().map(|line| json!({ "hash": line.hash.to_string(), "record": text(line) }))
        };
        say(&json!({ "common": common, "a": side(&first), "b": side(&second) }).to_string())?;
        return Ok(false);
    }
    let side = |path: &Path, line: &Option<Line>| match line {
        Some(line) => format!("{}:\n  {} {}", path.display(), line.hash, text(line)),
        None => format!("{}:\n  ends there", path.display()),
    };
    say(&format!(
        "the two are the same up to record {common}; then\n{}\n{}",
        side(a, &first),
        side(b, &second)
    ))?;
    Ok(false)
}
