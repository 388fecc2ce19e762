//! What a new data directory begins with.
//!
//! Its first events are one append. A directory whose making was cut off holds no event at all:
//! it is refused when it is opened, and can be deleted and made again.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use super::ServerError;
use crate::clock::LedgerClock;
use crate::domain::access::Role;
use crate::domain::command::{Caller, Command};
use crate::domain::event::{Event, LedgerOpened};
use crate::domain::id::LedgerId;
use crate::domain::name::{Actor, UserName};
use crate::domain::scope::Scope;
use crate::domain::thread::{ThreadNumber, WriteTerms};
use crate::domain::time::Time;
use crate::domain::{Limits, State};
use crate::ledger::rocks::RocksLedger;
use crate::ledger::{Ledger, LedgerError};
use crate::random;
use crate::service::batch::Batch;
use crate::service::draw::Drawn;

const TOKENS_DIR: &str = "tokens";
const DEV_ADMIN: &str = "admin";
const DEV_AGENTS: [&str; 2] = ["claude", "codex"];
const DEV_TEAM: &str = "platform";
const DEV_REPO: &str = "teams/platform/website";
const DEV_THREAD: u64 = 42;
const DEV_THREAD_TITLE: &str = "The start page takes four seconds to load";
const DEV_THREAD_BODY: &str = "\
Since the last release the start page loads slowly. Find out why, and push a branch that mends it.

Whoever works on this holds the lock thread-work.42 meanwhile, and says here what was done.";

/// Makes a ledger with one administrator. Returns its token.
pub(super) fn init(data: &Path, admin: &UserName) -> Result<String, ServerError> {
    let ledger = RocksLedger::create(data)?;
    let (token, commands) = user_with_token(admin, true);
    begin(&ledger, commands.map(by_the_ledger))?;
    Ok(token.text)
}

/// Makes the ledger of a first try, and a file for each token.
pub(super) fn dev(data: &Path) -> Result<(), ServerError> {
    let ledger = RocksLedger::create(data)?;
    let (mut commands, mut callers) = (Vec::new(), Vec::new());
    let name = |text: &str| text.parse().expect("the names of a first try are names");
    let tokens = data.join(TOKENS_DIR);
    let making = ServerError::io;
    let mut folder = DirBuilder::new();
    folder.mode(0o700).create(&tokens).map_err(making(format!("{}", tokens.display())))?;
    for user in std::iter::once(DEV_ADMIN).chain(DEV_AGENTS) {
        let (token, made) = user_with_token(&name(user), user == DEV_ADMIN);
        write_secret(&tokens.join(user), &token.text)?;
        callers.push(Caller::Token(token.token_id));
        commands.extend(made.map(by_the_ledger));
    }
    let team: crate::domain::name::TeamName = DEV_TEAM.parse().expect("the team's name is one");
    commands.push(by_the_ledger(Command::CreateTeam { team: team.clone() }));
    for agent in DEV_AGENTS {
        let (team, user) = (team.clone(), name(agent));
        commands.push(by_the_ledger(Command::SetTeamMember { team, user, role: Role::Write }));
    }
    let repo: Scope = DEV_REPO.parse().expect("the repository's scope is one");
    commands.push(by_the_ledger(Command::CreateRepo { repo: repo.clone() }));
    // The first one is the administrator.
    commands.push((callers[0], dev_thread(repo)));
    begin(&ledger, commands)
}

/// The thread of a first try: work that two agents might do twice.
fn dev_thread(repo: Scope) -> Command {
    let text = |text: &str| text.to_owned();
    Command::CreateThread {
        scope: repo,
        number: Some(ThreadNumber::try_from(DEV_THREAD).expect("the thread's number is one")),
        title: text(DEV_THREAD_TITLE).try_into().expect("the title is short"),
        body: text(DEV_THREAD_BODY).try_into().expect("the body is short"),
        terms: WriteTerms::default(),
    }
}

/// Says how to use a server of a first try.
pub(super) fn greet(data: &Path, url: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let tokens = fs::canonicalize(data)?.join(TOKENS_DIR);
    writeln!(out, "Pearing listens on {url}. Stop it with Ctrl-C.\n")?;
    let has_token = |user: &&str| tokens.join(user).exists();
    let users: Vec<&str> = DEV_AGENTS.into_iter().chain([DEV_ADMIN]).filter(has_token).collect();
    if users.is_empty() {
        writeln!(
            out,
            "The directory was there already, and not made by `pearing dev`: use its own"
        )?;
        writeln!(out, "users' tokens.")?;
    }
    for user in users {
        writeln!(out, "As {user}:")?;
        writeln!(out, "  export PEARING_URL={url}")?;
        writeln!(out, "  export PEARING_TOKEN=\"$(cat '{}')\"", tokens.join(user).display())?;
    }
    out.flush()
}

/// A user, a token for it, and the commands that record both.
fn user_with_token(user: &UserName, admin: bool) -> (Drawn, [Command; 2]) {
    let drawn = Drawn::draw();
    let issue = Command::IssueToken {
        token_id: drawn.token_id,
        user: user.clone(),
        sha256: drawn.sha256,
        label: None,
        expires_in_days: None,
    };
    (drawn, [Command::CreateUser { user: user.clone(), admin }, issue])
}

fn by_the_ledger(command: Command) -> (Caller, Command) {
    (Caller::Ledger, command)
}

/// Opens the ledger and carries out the commands, all in one append.
fn begin(
    ledger: &dyn Ledger,
    commands: impl IntoIterator<Item = (Caller, Command)>,
) -> Result<(), ServerError> {
    let mut state = State::default();
    let limits = Limits::default();
    let now = LedgerClock::anchored_after(Time::default()).now();
    let mut batch = Batch::open(&mut state, ledger, &limits, now);
    let ledger_id = LedgerId(random::uuid());
    batch.record(Actor::Ledger, Event::LedgerOpened(LedgerOpened { ledger_id }));
    for (caller, command) in commands {
        batch.decide(caller, &command)?.expect("nothing stands against what is new");
    }
    let (append, _) = batch.close();
    ledger.append(&append).map_err(LedgerError::into)
}

fn write_secret(path: &Path, secret: &str) -> Result<(), ServerError> {
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        writeln!(file, "{secret}")?;
        file.sync_all()
    };
    write().map_err(ServerError::io(format!("{}", path.display())))
}
