//! Reads a scenario file: the grammar, one function per kind of line.
//!
//! ```text
//! given users ana bo
//! scenario: late heartbeat cannot revive an expired ticket
//! at 0s   ana  acquires build lease 60          -> held fence F
//! at 1s   bo   acquires build lease 60 wait 90  -> waiting position 1
//! at 60s  settle                                -> expired ana; promoted bo fence G, G > F
//! and     ana  heartbeats                       -> refused ticket-not-held
//! ```
//! `given` before the first scenario holds for the whole file. `and` goes on in the batch of the
//! line above it. A line that begins with `->` goes on with what the line above it expects. What
//! a batch settles is expected on a line `settle` that begins it; without that line nothing may
//! be due. `restart` is the server's crash and start, `restore` a start on a backup.
//! [`super::expect`] reads what stands after `->`, and [`super::notes`] what is about
//! agents, activity and threads.

use pearing::ledger::pending::Gap;

use super::expect;
use super::notes;
use super::script::{
    Acquire, Action, Deed, Given, Item, LockState, LockWords, Scenario, Script, Step,
};
use super::words::{Place, Words};

/// Reads a file.
pub(super) fn script(file: &str, text: &str) -> Result<Script, String> {
    let mut shared = Vec::new();
    let mut scenarios: Vec<Scenario> = Vec::new();
    for (place, line) in logical_lines(file, text)? {
        if let Some(title) = line.strip_prefix("scenario:") {
            let title = title.trim().to_owned();
            if title.is_empty() || scenarios.iter().any(|s| s.title == title) {
                return Err(place.fails("a scenario needs a title of its own"));
            }
            scenarios.push(Scenario { place, title, givens: shared.clone(), steps: Vec::new() });
            continue;
        }
        let mut words = Words::cut(&place, &line)?;
        if words.take_if("given") {
            let given = given(&mut words)?;
            match scenarios.last_mut() {
                None => shared.push((place, given)),
                Some(scenario) if scenario.steps.is_empty() => scenario.givens.push((place, given)),
                Some(_) => return Err(place.fails("a given comes before the story")),
            }
            continue;
        }
        let Some(scenario) = scenarios.last_mut() else {
            return Err(place.fails("a story needs the line \"scenario: TITLE\" above it"));
        };
        step(&mut scenario.steps, words)?;
    }
    if let Some(empty) = scenarios.iter().find(|scenario| scenario.steps.is_empty()) {
        return Err(empty.place.fails("this scenario has no story"));
    }
    Ok(Script { scenarios })
}

/// The lines that say something, each with the continuations below it.
fn logical_lines(file: &str, text: &str) -> Result<Vec<(Place, String)>, String> {
    let mut lines: Vec<(Place, String)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let place = Place { file: file.to_owned(), line: index + 1 };
        if line.chars().count() > 100 {
            return Err(place.fails("a line has at most 100 columns"));
        }
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some(more) = line.strip_prefix("->") else {
            lines.push((place, line.to_owned()));
            continue;
        };
        let Some((_, above)) = lines.last_mut() else {
            return Err(place.fails("nothing stands above this line"));
        };
        above.push_str(if above.contains("->") { " ; " } else { " -> " });
        above.push_str(more);
    }
    Ok(lines)
}

fn given(words: &mut Words) -> Result<Given, String> {
    let what = words.take("what is given")?;
    let given = match what.as_str() {
        "users" => Given::Users { users: rest(words, "a user")?, admin: false },
        "admins" => Given::Users { users: rest(words, "a user")?, admin: true },
        "agents" => Given::Agents { agents: rest(words, "an agent")? },
        "token" => {
            let token = words.take("a token's name")?;
            words.take_exactly("of")?;
            Given::Token { token, user: words.take("a user")? }
        }
        "team" => Given::Team { team: words.take("a team")? },
        "members" => {
            let team = words.take("a team")?;
            let role = words.take("a role")?;
            Given::Members { team, role, users: rest(words, "a user")? }
        }
        "repo" => Given::Repo { repo: words.take("a scope")? },
        "grant" => Given::Grant {
            user: words.take("a user")?,
            role: words.take("a role")?,
            scope: {
                words.take_exactly("in")?;
                words.take("a scope")?
            },
        },
        "locks" => {
            words.take_exactly("in")?;
            Given::DefaultScope { scope: words.take("a scope")? }
        }
        "limit" => Given::Limit { limit: words.take("a limit")?, most: words.take_as("number")? },
        other => return Err(words.fails(format!("{other:?} can't be given"))),
    };
    words.end()?;
    Ok(given)
}

/// All words that are left, at least one.
fn rest(words: &mut Words, what: &str) -> Result<Vec<String>, String> {
    let mut found = vec![words.take(what)?];
    while !words.is_empty() {
        if !words.take_if(",") {
            found.push(words.take(what)?);
        }
    }
    Ok(found)
}

pub(super) fn none_or_rest(words: &mut Words, what: &str) -> Result<Vec<String>, String> {
    if !words.take_if("none") {
        return rest(words, what);
    }
    words.end()?;
    Ok(Vec::new())
}

/// Reads a line of the story.
fn step(steps: &mut Vec<Step>, mut words: Words) -> Result<(), String> {
    let place = words.place.clone();
    match words.take("a step")?.as_str() {
        "at" => {
            let at_millis = words.take_millis()?;
            if last_time(steps).is_some_and(|last| at_millis < last) {
                return Err(words.fails("time never goes back"));
            }
            steps.push(timed(at_millis, words)?);
        }
        "and" => {
            let Some(Step::Batch { items, .. }) = steps.last_mut() else {
                return Err(words.fails("\"and\" goes on in a batch, and there is none above"));
            };
            items.push(item(words)?);
        }
        "lock" => {
            let (mut words, expected) = parted(&words)?;
            let lock = lock(&mut words)?;
            words.end()?;
            steps.push(Step::Lock { place, lock, expected: lock_state(expected)? });
        }
        "locks" => {
            let (mut words, mut expected) = parted(&words)?;
            words.take_exactly("in")?;
            let scope = words.take("a scope")?;
            words.end()?;
            let expected = none_or_rest(&mut expected, "a lock")?;
            steps.push(Step::Locks { place, scope, expected });
        }
        "ticket" => {
            let (mut words, mut expected) = parted(&words)?;
            let ticket = words.take("a ticket")?;
            words.end()?;
            steps.push(Step::Ticket {
                place,
                ticket,
                expected: Box::new(expect::state(&mut expected)?),
            });
        }
        "tickets" => {
            let (mut words, mut expected) = parted(&words)?;
            words.take_exactly("of")?;
            let user = words.take("a user")?;
            words.end()?;
            let expected = none_or_rest(&mut expected, "a ticket")?;
            steps.push(Step::Tickets { place, user, expected });
        }
        other => {
            let (mut words, expected) = parted(&words)?;
            let look = notes::look(other, &mut words, expected)?;
            let look = look.ok_or_else(|| words.fails(format!("{other:?} begins no line")))?;
            steps.push(Step::Look { place, look: Box::new(look) });
        }
    }
    Ok(())
}

fn parted(words: &Words) -> Result<(Words, Words), String> {
    match words.split_at_arrow() {
        (words, Some(expected)) => Ok((words, expected)),
        (words, None) => Err(words.fails("a line without -> shows nothing")),
    }
}

fn last_time(steps: &[Step]) -> Option<i64> {
    steps.iter().rev().find_map(|step| match step {
        Step::Batch { at_millis, .. } | Step::Restart { at_millis, .. } => Some(*at_millis),
        Step::Lock { .. }
        | Step::Locks { .. }
        | Step::Ticket { .. }
        | Step::Tickets { .. }
        | Step::Look { .. } => None,
    })
}

fn timed(at_millis: i64, mut words: Words) -> Result<Step, String> {
    let place = words.place.clone();
    let is_restore = words.take_if("restore");
    if is_restore || words.take_if("restart") {
        let (words, expected) = parted(&words)?;
        words.end()?;
        let (gap, expected) = (is_restore.then_some(Gap::Restored), expect::all(&expected)?);
        return Ok(Step::Restart { place, at_millis, gap, expected });
    }
    if !words.take_if("settle") {
        return Ok(Step::Batch { at_millis, settle_most: None, items: vec![item(words)?] });
    }
    let settle_most = if words.take_if("most") { Some(words.take_as("number")?) } else { None };
    let (words, expected) = parted(&words)?;
    words.end()?;
    let items = vec![Item { place, deed: None, expected: expect::all(&expected)? }];
    Ok(Step::Batch { at_millis, settle_most, items })
}

fn item(words: Words) -> Result<Item, String> {
    let (mut words, expected) = parted(&words)?;
    let token = words.take("who acts")?;
    let action = action(&mut words)?;
    words.end()?;
    let deed = Some(Deed { token, action });
    Ok(Item { place: words.place.clone(), deed, expected: expect::all(&expected)? })
}

fn action(words: &mut Words) -> Result<Action, String> {
    let verb = words.take("what is done")?;
    match verb.as_str() {
        "acquires" => acquire(words).map(Action::Acquire),
        "heartbeats" => {
            let (ticket, at) = (named_ticket(words), at_lock(words)?);
            let lease = if words.take_if("lease") { Some(words.take_as("number")?) } else { None };
            Ok(Action::Heartbeat { ticket, at, lease })
        }
        "releases" => Ok(Action::Release { ticket: named_ticket(words), at: at_lock(words)? }),
        "breaks" => {
            let lock = lock(words)?;
            words.take_exactly("fence")?;
            let fence = expect::fence(words)?;
            words.take_exactly("reason")?;
            Ok(Action::Break { lock, fence, reason: words.take_text("a reason")? })
        }
        _ => match notes::action(&verb, words)? {
            Some(note) => Ok(Action::Note(note)),
            None => administration(&verb, words),
        },
    }
}

fn named_ticket(words: &mut Words) -> Option<String> {
    match words.peek() {
        None | Some("at" | "lease") => None,
        Some(_) => words.take("a ticket").ok(),
    }
}

fn at_lock(words: &mut Words) -> Result<Option<LockWords>, String> {
    if words.take_if("at") { lock(words).map(Some) } else { Ok(None) }
}

/// A lock: its name, quoted where it holds odd characters, and its scope.
fn lock(words: &mut Words) -> Result<LockWords, String> {
    let name = lock_name(words)?;
    let scope = if words.take_if("in") { Some(words.take("a scope")?) } else { None };
    Ok(LockWords { name, scope })
}

fn lock_name(words: &mut Words) -> Result<String, String> {
    if words.peek().is_some_and(|word| word.starts_with('"')) {
        words.take_text("a lock")
    } else {
        words.take("a lock")
    }
}

fn acquire(words: &mut Words) -> Result<Acquire, String> {
    let mut acquire = Acquire { lock: lock_name(words)?, ..Acquire::default() };
    while !words.is_empty() {
        match words.take("a word")?.as_str() {
            "in" => acquire.scope = Some(words.take("a scope")?),
            "lease" => acquire.lease = Some(words.take_as("number")?),
            "wait" => acquire.wait = Some(words.take_as("number")?),
            "note" => acquire.note = Some(words.take_text("a note")?),
            "not-reentrant" => acquire.is_not_reentrant = true,
            "uuid" => acquire.uuid = Some(words.take("a name of a request")?),
            "as" => acquire.ticket = Some(words.take("a name for the ticket")?),
            other => return Err(words.fails(format!("unknown word {other:?}"))),
        }
    }
    Ok(acquire)
}

fn administration(verb: &str, words: &mut Words) -> Result<Action, String> {
    match verb {
        "disables" => Ok(Action::Disable { user: words.take("a user")? }),
        "enables" => Ok(Action::Enable { user: words.take("a user")? }),
        "issues" => {
            let user = words.take("a user")?;
            words.take_exactly("token")?;
            let token = words.take("a name for the token")?;
            let days = if words.take_if("days") { Some(words.take_as("number")?) } else { None };
            Ok(Action::Issue { token, user, days })
        }
        "revokes" if words.take_if("token") => {
            Ok(Action::RevokeToken { token: words.take("a token")? })
        }
        "revokes" => {
            let user = words.take("a user")?;
            words.take_exactly("in")?;
            Ok(Action::Revoke { user, scope: words.take("a scope")? })
        }
        "grants" => {
            let (user, role) = (words.take("a user")?, words.take("a role")?);
            words.take_exactly("in")?;
            Ok(Action::Grant { user, role, scope: words.take("a scope")? })
        }
        "adds" => {
            let user = words.take("a user")?;
            words.take_exactly("to")?;
            let team = words.take("a team")?;
            words.take_exactly("as")?;
            Ok(Action::AddMember { user, team, role: words.take("a role")? })
        }
        "removes" => {
            let user = words.take("a user")?;
            words.take_exactly("from")?;
            Ok(Action::RemoveMember { user, team: words.take("a team")? })
        }
        "creates" => match words.take("user, team or repo")?.as_str() {
            "user" => Ok(Action::CreateUser { user: words.take("a user")? }),
            "team" => Ok(Action::CreateTeam { team: words.take("a team")? }),
            "repo" => Ok(Action::CreateRepo { repo: words.take("a scope")? }),
            other => Err(words.fails(format!("nobody can create a {other}"))),
        },
        other => Err(words.fails(format!("unknown verb {other:?}"))),
    }
}

fn lock_state(mut words: Words) -> Result<LockState, String> {
    if words.take_if("free") {
        words.end()?;
        return Ok(LockState::Free);
    }
    words.take_exactly("held")?;
    words.take_exactly("by")?;
    let owner = words.take("a user")?;
    let facts = expect::facts(&mut words, Some("queue"))?;
    let queue = if words.take_if("queue") { rest(&mut words, "a user")? } else { Vec::new() };
    words.end()?;
    Ok(LockState::Held { owner, facts: Box::new(facts), queue })
}
