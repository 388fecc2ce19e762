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
use crate::domain::id::{LedgerId, TokenId};
use crate::domain::name::{Actor, UserName};
use crate::domain::time::Time;
use crate::domain::{Limits, State};
use crate::ledger::rocks::RocksLedger;
use crate::ledger::{Ledger, LedgerError};
use crate::random;
use crate::service::batch::Batch;
use crate::wire::token;

const TOKENS_DIR: &str = "tokens";
const DEV_ADMIN: &str = "admin";
const DEV_AGENTS: [&str; 2] = ["claude", "codex"];
const DEV_TEAM: &str = "platform";
const DEV_REPO: &str = "teams/platform/website";

/// Makes a ledger with one administrator. Returns its token.
pub(super) fn init(data: &Path, admin: &UserName) -> Result<String, ServerError> {
    let ledger = RocksLedger::create(data)?;
    let (token, commands) = user_with_token(admin, true);
    begin(&ledger, commands)?;
    Ok(token)
}

/// Makes the ledger of a first try, and a file for each token.
pub(super) fn dev(data: &Path) -> Result<(), ServerError> {
    let ledger = RocksLedger::create(data)?;
    let mut commands = Vec::new();
    let name = |text: &str| text.parse().expect("the names of a first try are names");
    let tokens = data.join(TOKENS_DIR);
    let making = ServerError::io;
    let mut folder = DirBuilder::new();
    folder.mode(0o700).create(&tokens).map_err(making(format!("{}", tokens.display())))?;
    for user in std::iter::once(DEV_ADMIN).chain(DEV_AGENTS) {
        let (token, made) = user_with_token(&name(user), user == DEV_ADMIN);
        write_secret(&tokens.join(user), &token)?;
        commands.extend(made);
    }
    let team: crate::domain::name::TeamName = DEV_TEAM.parse().expect("the team's name is one");
    commands.push(Command::CreateTeam { team: team.clone() });
    for agent in DEV_AGENTS {
        let (team, user) = (team.clone(), name(agent));
        commands.push(Command::SetTeamMember { team, user, role: Role::Write });
    }
    let repo = DEV_REPO.parse().expect("the repository's scope is one");
    commands.push(Command::CreateRepo { repo });
    begin(&ledger, commands)
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
fn user_with_token(user: &UserName, admin: bool) -> (String, [Command; 2]) {
    let token_id = TokenId(random::uuid());
    let mut secret = [0; 32];
    random::fill(&mut secret);
    let text = token::format(token_id, &secret);
    let issue = Command::IssueToken {
        token_id,
        user: user.clone(),
        sha256: token::hash(&text),
        label: None,
        expires_in_days: None,
    };
    (text, [Command::CreateUser { user: user.clone(), admin }, issue])
}

/// Opens the ledger and carries out the commands, all in one append.
fn begin(
    ledger: &dyn Ledger,
    commands: impl IntoIterator<Item = Command>,
) -> Result<(), ServerError> {
    let mut state = State::default();
    let limits = Limits::default();
    let now = LedgerClock::anchored_after(Time::default()).now();
    let mut batch = Batch::open(&mut state, ledger, &limits, now);
    let ledger_id = LedgerId(random::uuid());
    batch.record(Actor::Ledger, Event::LedgerOpened(LedgerOpened { ledger_id }));
    for command in commands {
        batch
            .decide(Caller::Ledger, &command)?
            .expect("nothing stands against a new ledger's users");
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
