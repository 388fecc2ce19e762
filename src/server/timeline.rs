//! Draws what happened to locks, from a ledger that no server has open.

use std::fs;

use super::ServerError;
use super::audit::{open, say};
use crate::audit::AuditError;
use crate::audit::timeline::Range;
use crate::audit::timeline::{COLUMNS, Colours, TICKETS_MAX, Timeline, Unread, svg, terminal};
use crate::columns::of_terminal;
use crate::config::TimelineArgs;
use crate::domain::name::{InvalidName, LockName};
use crate::domain::time::Time;

/// Draws, and prints it or writes it to a file.
pub(super) fn draw(args: &TimelineArgs) -> Result<(), ServerError> {
    let asked = |what: String| ServerError::from(AuditError::Asked(what));
    let (lock_name, path) = args.lock_and_ledger();
    let lock_name: Option<LockName> = lock_name
        .map(str::parse)
        .transpose()
        .map_err(|error: InvalidName| asked(format!("the lock's name {}", error.rule)))?;
    let none = || asked("which ledger? Name it as LEDGER, or by --data".to_owned());
    let ledger = open(path.ok_or_else(none)?)?;
    let range = Range { from: args.from, to: args.to };
    // Nobody goes on writing: any time after the last event is after all of them.
    let until = (ledger.head().sequence, Time::from_millis(i64::MAX));
    let (scope, lock_name) = (args.scope.scope(), lock_name.as_ref());
    let read = Timeline::read(&*ledger, &scope, lock_name, range, until, TICKETS_MAX);
    let timeline = read.map_err(|unread| match unread {
        Unread::From | Unread::To => asked(unread.to_string()),
        Unread::Ledger(error) => error.into(),
    })?;
    let drawn = if args.svg {
        svg(&timeline)
    } else {
        let columns = args.width.or_else(of_terminal).unwrap_or(COLUMNS);
        let colours = if args.color { Colours::Ansi } else { Colours::Plain };
        terminal(&timeline, columns, colours)
    };
    match &args.out {
        Some(path) => fs::write(path, drawn).map_err(ServerError::io(path.display().to_string())),
        None => say(drawn.trim_end()),
    }
}
