//! Runs a command under a lease that is kept: what the commands that do work have in common.
//!
//! The rules are in `warden`, which is pure; here is the loop that obeys it. A signal that comes
//! meanwhile is the command's: it decides what that means, and it is waited for.

mod warden;

use std::io;
use std::time::Duration;

use rustix::process::{Pid, Signal};

use super::Failure;
use super::group::{Group, Order};
use super::output::Output;
use super::signals::Stop;
use crate::client::{ClientError, Lease, LeaseState, LeaseWatch, sleep_until};
use crate::clock::BootTime;
use crate::wire::problem::Code;
use crate::wire::ticket::Ticket;
pub(super) use warden::{Cause, Outcome};
use warden::{Next, Warden};

/// How often it is looked at whether anything is left of a group that is to end.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long letting go may take: after that, the lease ends by itself.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause before a release is tried again.
const RELEASE_PAUSE: Duration = Duration::from_millis(500);

/// What a command finds in its environment: the lock that it runs under.
pub(super) fn variables(ticket: &Ticket) -> Vec<(&'static str, String)> {
    let fence_token = ticket.fence_token.map(|fence| fence.to_string());
    vec![
        ("PEARING_LOCK_NAME", ticket.lock_name.to_string()),
        ("PEARING_SCOPE", ticket.scope.to_string()),
        ("PEARING_TICKET_ID", ticket.ticket_id.to_string()),
        ("PEARING_FENCE_TOKEN", fence_token.unwrap_or_default()),
        ("PEARING_LEASE_SECONDS", ticket.lease_seconds.to_string()),
    ]
}

/// How long before its lease's end a command is asked to end: as it is said, else a third of the
/// lease, which is also the most. A heartbeat is due at a third, so it is never asked in vain.
pub(super) fn grace(lease_seconds: u32, said: Option<u32>) -> Result<Duration, Failure> {
    let third = Duration::from_secs(u64::from(lease_seconds)) / 3;
    let grace = said.map_or(third, |seconds| Duration::from_secs(u64::from(seconds)));
    if grace > third {
        let rule = format!("must be at most a third of the lease, which is {lease_seconds} s");
        return Err(Failure::Usage(format!("grace {rule}")));
    }
    Ok(grace)
}

/// Waits until there is more time than the grace. An answer that was long under way leaves less,
/// and a command is not begun just to be ended. `false` if it is lost before that.
pub(super) async fn is_ready(mut watch: LeaseWatch, grace: Duration) -> bool {
    let mut state = watch.state();
    loop {
        match state {
            LeaseState::Lost(_) => return false,
            state if has_time(&state, grace) => return true,
            LeaseState::Held { .. } | LeaseState::InDoubt { .. } => {}
        }
        state = watch.changed().await;
    }
}

/// Whether there is more time than the grace.
fn has_time(state: &LeaseState, grace: Duration) -> bool {
    state.deadline().is_some_and(|deadline| BootTime::now().until(deadline) > grace)
}

/// Runs a command to its end, or to that of the lease. `is_made` is told the process group before
/// a command that has an input begins.
///
/// # Errors
/// It can't be started, or `is_made` fails: then the command doesn't begin.
pub(super) async fn run(
    lease: &Lease,
    grace: Duration,
    signals: &mut Stop,
    output: &mut Output,
    order: Order<'_>,
    is_made: impl FnOnce(Pid) -> Result<(), Failure>,
) -> Result<Outcome, Failure> {
    let watch = lease.watch();
    let waits = order.input.is_some();
    let mut group = Group::start(order)?;
    is_made(group.id())?;
    // To note it may have taken long.
    if waits && !has_time(&watch.state(), grace) {
        return Ok(Outcome::MadeToEnd(Cause::InDoubt));
    }
    group.begin();
    let mut words = Vec::new();
    let outcome = watch_over(&mut group, watch, grace, signals, &mut words).await;
    // Not before: where nobody reads stderr, a word would stand in the way of a signal.
    for word in words {
        output.message(&format!("pearing-cli: {word}"));
    }
    Ok(outcome?)
}

async fn watch_over(
    group: &mut Group,
    mut watch: LeaseWatch,
    grace: Duration,
    signals: &mut Stop,
    words: &mut Vec<String>,
) -> io::Result<Outcome> {
    let (mut has_ended, mut was_stopped) = (false, false);
    // One that has passed already is found to be so at once.
    let mut warden = Warden::new(watch.state().deadline().unwrap_or_default(), grace);
    loop {
        let (state, now) = (watch.state(), BootTime::now());
        warden.hear(&state, now);
        let until = match warden.next(now) {
            Next::Wait { until } => until,
            Next::Ask { why } => {
                group.ask_to_end();
                words.push(format!("{why}; the command was asked to end"));
                continue;
            }
            Next::Kill { why } => {
                group.send(Signal::KILL);
                words.push(format!("{why}; the command was killed"));
                continue;
            }
            Next::Done(outcome) => return Ok(outcome),
        };
        // Once it is known that the lease has lasted meanwhile.
        if std::mem::take(&mut was_stopped) {
            group.carry_on();
        }
        let awaits_rest = warden.awaits_rest();
        if awaits_rest && !group.is_alive() {
            warden.gone();
            continue;
        }
        let is_lost = matches!(state, LeaseState::Lost(_));
        tokio::select! {
            biased;
            // What it is, is read above.
            _ = watch.changed(), if !is_lost => {}
            code = group.ended(), if !has_ended => match code? {
                Some(code) => {
                    has_ended = true;
                    warden.ended(code);
                }
                None => {
                    group.stop_with_it();
                    was_stopped = true;
                }
            },
            number = signals.next() => {
                if let Some(signal) = Signal::from_named_raw(number) {
                    group.forward(signal);
                }
            }
            () = wait(until) => {}
            () = tokio::time::sleep(LOOK_EVERY), if awaits_rest => {}
        }
    }
}

async fn wait(until: Option<BootTime>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}

/// What became of a lock that was to be let go of.
#[derive(Debug)]
pub(super) enum LetGo {
    /// It is free, or its next holder's.
    Done,
    /// It had been lost before.
    Over(ClientError),
    /// Nobody knows. The lease ends it.
    Failed(String),
}

/// Lets go of a lock, in a bounded time, which is no longer than it would last by itself: a server
/// that is being restarted is waited for.
pub(super) async fn let_go(lease: &mut Lease) -> LetGo {
    let left = lease.state().deadline().map(|deadline| BootTime::now().until(deadline));
    let patience = left.unwrap_or_default().min(RELEASE_TIMEOUT);
    let mut last = "no answer in time".to_owned();
    let tries = async {
        loop {
            match lease.release().await {
                Ok(_) => return LetGo::Done,
                Err(error) if error.is_passing() => last = error.to_string(),
                Err(error) if is_over(&error) => return LetGo::Over(error),
                Err(error) => return LetGo::Failed(error.to_string()),
            }
            tokio::time::sleep(RELEASE_PAUSE).await;
        }
    };
    match tokio::time::timeout(patience, tries).await {
        Ok(let_go) => let_go,
        Err(_) => LetGo::Failed(last),
    }
}

fn is_over(error: &ClientError) -> bool {
    matches!(error, ClientError::Problem(refused)
        if matches!(refused.problem.code, Code::TicketEnded | Code::NotFound))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grace_is_a_third_of_the_lease_and_no_more() {
        let millis = |lease, said| grace(lease, said).map(|grace| grace.as_millis()).ok();
        assert_eq!(millis(5, None), Some(1_666));
        assert_eq!(millis(60, Some(20)), Some(20_000));
        assert_eq!(millis(60, Some(0)), Some(0));
        assert_eq!(millis(60, Some(21)), None);
        assert_eq!(millis(5, Some(2)), None);
    }
}
