//! The guard in a real PostgreSQL, at every isolation level.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Signal;
use tempfile::TempDir;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, NoTls};

use crate::guard::zombie::{LOCK, Target, drill};
use crate::guard::{example, printed, reset};
use crate::support::{Process, Server, eventually, shell};

const LEVELS: [&str; 3] = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];
const STALE: &str = "PF001";
const UNCLAIMED: &str = "PF002";

/// A running PostgreSQL with data of its own, on a socket in its folder.
struct Postgres {
    process: Process,
    /// Deleted at the end.
    home: TempDir,
}

/// Where Debian has the server's programs, in a folder for each version; else they are on the PATH.
fn program(name: &str) -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let version = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions.map(|entry| entry.path()).max_by_key(|path| version(path));
    let newest = newest.map(|folder| folder.join("bin").join(name)).filter(|path| path.exists());
    newest.unwrap_or_else(|| name.into())
}

/// A program of the server, which refuses to run as root.
fn command(name: &str) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program(name));
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--init-groups", "--"]);
    command.arg(program(name));
    command
}

impl Postgres {
    fn start() -> Self {
        let home = tempfile::tempdir().expect("there can be a temporary directory");
        if rustix::process::geteuid().is_root() {
            let mut chown = Command::new("chown");
            let chown = chown.arg("postgres").arg(home.path()).status().expect("it runs");
            assert!(chown.success(), "the user postgres comes with the package");
        }
        let data = home.path().join("data");
        let mut initdb = command("initdb");
        initdb.args(["--username=postgres", "--auth=trust", "--no-sync", "--no-locale", "-D"]);
        let made = initdb.arg(&data).current_dir("/").output().expect("PostgreSQL is installed");
        assert!(made.status.success(), "{made:?}");
        let mut server = command("postgres");
        server.args(["-c", "listen_addresses=", "-c", "fsync=off", "-D"]).arg(&data);
        server.arg("-k").arg(home.path()).env("LC_ALL", "C").current_dir("/");
        let process = Process::start(server.stdout(Stdio::null()));
        process.wait_for("start", |line| line.contains("ready to accept").then_some(()));
        let postgres = Self { process, home };
        let guard = home_file(&postgres, "guard.sql", &printed(postgres.home.path(), "postgres"));
        // Installed twice changes nothing.
        for _ in 0..2 {
            postgres.psql(&["-f", &guard]);
        }
        postgres
    }

    fn psql(&self, words: &[&str]) -> String {
        let mut psql = Command::new("psql");
        psql.args(["-X", "-At", "-v", "ON_ERROR_STOP=1"]).args(words);
        let output = psql.envs(self.place()).stdin(Stdio::null()).output().expect("it runs");
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn place(&self) -> [(&'static str, String); 3] {
        let host = self.home.path().display().to_string();
        let user = || "postgres".to_owned();
        [("PGHOST", host), ("PGUSER", user()), ("PGDATABASE", user())]
    }

    /// A session.
    async fn connect(&self) -> Client {
        let mut config = tokio_postgres::Config::new();
        config.host_path(self.home.path()).user("postgres").dbname("postgres");
        let (client, connection) = config.connect(NoTls).await.expect("it listens");
        tokio::spawn(connection);
        client
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // It ends its children, and frees its shared memory.
        self.process.signal(Signal::INT);
        let _ = self.process.exit_code();
    }
}

fn home_file(postgres: &Postgres, name: &str, text: &str) -> String {
    let path = postgres.home.path().join(name);
    fs::write(&path, text).expect("the folder is ours");
    path.display().to_string()
}

async fn run(client: &Client, sql: &str) -> Result<(), Error> {
    client.batch_execute(sql).await
}

#[track_caller]
fn code(ended: Result<(), Error>) -> String {
    match ended {
        Ok(()) => "00000".to_owned(),
        Err(error) => error.code().unwrap_or_else(|| panic!("{error:?}")).code().to_owned(),
    }
}

/// A refusal: of the guard, or a serialization failure, which the higher levels have.
fn is_refusal(level: &str, code: &str, of_guard: &str) -> bool {
    let fails = SqlState::T_R_SERIALIZATION_FAILURE.code();
    code == of_guard || (level != LEVELS[0] && code == fails)
}

/// Two sessions and what they play with: a fresh lock, and a table for what is written.
struct Play {
    old: Client,
    new: Client,
    look: Client,
    lock: String,
}

impl Play {
    async fn begin(postgres: &Postgres, number: usize) -> Self {
        let [old, new, look] =
            [postgres.connect().await, postgres.connect().await, postgres.connect().await];
        run(&look, "CREATE TABLE IF NOT EXISTS page (lock text, writer text)").await.expect("SQL");
        Self { old, new, look, lock: format!("{LOCK}{number}") }
    }

    fn claim(&self, fence: u64) -> String {
        format!("SELECT pearing.claim('{}', {fence})", self.lock)
    }

    fn guard(&self, fence: u64) -> String {
        format!("SELECT pearing.guard('{}', {fence})", self.lock)
    }

    fn write(&self, writer: &str) -> String {
        format!("INSERT INTO page VALUES ('{}', '{writer}')", self.lock)
    }

    /// Who wrote, as a session sees it.
    async fn writers(&self, client: &Client) -> Result<Vec<String>, Error> {
        let sql = format!("SELECT writer FROM page WHERE lock = '{}' ORDER BY 1", self.lock);
        let rows = client.query(&sql, &[]).await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    /// Waits until a session waits for another one.
    async fn somebody_waits(&self) {
        let sql = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
        eventually("a session to wait", async || {
            let rows = self.look.query(sql, &[]).await.expect("SQL");
            (!rows.is_empty()).then_some(())
        })
        .await;
    }

    async fn end(self) {
        for client in [self.old, self.new, self.look] {
            drop(client);
        }
    }
}

fn begin(level: &str) -> String {
    format!("BEGIN ISOLATION LEVEL {level}")
}

/// Every two levels, the older holder's and the newer one's, each with a fresh lock.
async fn at_all_levels(play: impl AsyncFn(&Play, &str, &str)) {
    let postgres = Postgres::start();
    for (number, old) in LEVELS.iter().enumerate() {
        for (more, new) in LEVELS.iter().enumerate() {
            let stage = Play::begin(&postgres, number * LEVELS.len() + more).await;
            run(&stage.look, &stage.claim(5)).await.expect("nobody has claimed");
            play(&stage, old, new).await;
            stage.end().await;
        }
    }
}

#[tokio::test]
async fn a_claim_waits_for_an_open_write_and_reads_it() {
    at_all_levels(async |play, old, new| {
        let late = format!("{}; {}; {}", begin(old), play.guard(5), play.write("old"));
        run(&play.old, &late).await.expect("it is the newest");
        let claim = async {
            let claim = format!("{}; {}", begin(new), play.claim(6));
            let claimed = code(run(&play.new, &claim).await);
            if claimed != "00000" {
                // Its snapshot is older than the write: it begins anew.
                assert!(is_refusal(new, &claimed, "40001"), "{old}, {new}: {claimed}");
                run(&play.new, &format!("ROLLBACK; {claim}")).await.expect("nobody is in the way");
            }
            play.writers(&play.new).await.expect("SQL")
        };
        let commit = async {
            play.somebody_waits().await;
            run(&play.old, "COMMIT").await.expect("it was guarded");
        };
        let (read, ()) = tokio::join!(claim, commit);
        assert_eq!(read, ["old"], "{old}, {new}: what was written before it is read");
        run(&play.new, "COMMIT").await.expect("nobody is in the way");

        let late = format!("{}; {}; {}; COMMIT", begin(old), play.write("late"), play.guard(5));
        assert_eq!(code(run(&play.old, &late).await), STALE, "{old}, {new}");
        assert_eq!(play.writers(&play.look).await.expect("SQL"), ["old"]);
    })
    .await;
}

#[tokio::test]
async fn a_late_write_waits_for_an_open_claim_and_is_refused() {
    at_all_levels(async |play, old, new| {
        for (end, is_claimed) in [("ROLLBACK", false), ("COMMIT", true)] {
            let claim = format!("{}; {}", begin(new), play.claim(6));
            run(&play.new, &claim).await.expect("it is newer");
            let late = format!("{}; {}; {}; COMMIT", begin(old), play.guard(5), play.write("old"));
            let end = async {
                play.somebody_waits().await;
                run(&play.new, end).await.expect("SQL");
            };
            let (ended, ()) = tokio::join!(run(&play.old, &late), end);
            let ended = code(ended);
            if is_claimed {
                assert!(is_refusal(old, &ended, STALE), "{old}, {new}: {ended}");
                run(&play.old, "ROLLBACK").await.expect("SQL");
            } else {
                assert_eq!(ended, "00000", "{old}, {new}: what was undone is no claim");
            }
        }
        assert_eq!(play.writers(&play.look).await.expect("SQL"), ["old"], "{old}, {new}");
    })
    .await;
}

#[tokio::test]
async fn a_snapshot_from_before_the_claim_lets_no_late_write_through() {
    at_all_levels(async |play, old, new| {
        run(&play.old, &begin(old)).await.expect("SQL");
        assert!(play.writers(&play.old).await.expect("SQL").is_empty(), "its snapshot is taken");
        let claim = format!("{}; {}; COMMIT", begin(new), play.claim(6));
        run(&play.new, &claim).await.expect("nobody is in the way");
        run(&play.old, &play.write("old")).await.expect("nothing guards yet");
        let ended = code(run(&play.old, &play.guard(5)).await);
        assert!(is_refusal(old, &ended, STALE), "{old}, {new}: {ended}");
        run(&play.old, "COMMIT").await.expect("which is a rollback");
        assert!(play.writers(&play.look).await.expect("SQL").is_empty(), "{old}, {new}");
    })
    .await;
}

#[tokio::test]
async fn a_claim_by_a_snapshot_from_before_a_write_begins_anew() {
    at_all_levels(async |play, old, new| {
        run(&play.new, &begin(new)).await.expect("SQL");
        assert!(play.writers(&play.new).await.expect("SQL").is_empty(), "its snapshot is taken");
        let write = format!("{}; {}; {}; COMMIT", begin(old), play.guard(5), play.write("old"));
        run(&play.old, &write).await.expect("it is the newest");
        let claimed = code(run(&play.new, &play.claim(6)).await);
        // Otherwise it would go on with a state that isn't the last one.
        let is_stale = new != LEVELS[0];
        assert_eq!(claimed == "40001", is_stale, "{old}, {new}: {claimed}");
        if !is_stale {
            assert_eq!(play.writers(&play.new).await.expect("SQL"), ["old"]);
        }
        run(&play.new, "ROLLBACK").await.expect("SQL");
    })
    .await;
}

#[tokio::test]
async fn of_two_first_claims_the_newer_one_wins() {
    at_all_levels(async |play, first, second| {
        for (one, other, lock) in [(8, 9, "up"), (9, 8, "down")] {
            let claim =
                |fence: u64| format!("SELECT pearing.claim('{}{lock}', {fence})", play.lock);
            let open = format!("{}; {}", begin(first), claim(one));
            run(&play.old, &open).await.expect("it is the first");
            let commit = async {
                play.somebody_waits().await;
                run(&play.old, "COMMIT").await.expect("SQL");
            };
            let race = format!("{}; {}; COMMIT", begin(second), claim(other));
            let (ended, ()) = tokio::join!(run(&play.new, &race), commit);
            let ended = code(ended);
            if ended != "00000" {
                let refusal = if other < one { STALE } else { "40001" };
                assert!(is_refusal(second, &ended, refusal), "{first}, {second}: {ended}");
                run(&play.new, "ROLLBACK").await.expect("SQL");
                // Whoever has to begin anew does.
                assert_eq!(code(run(&play.new, &claim(other)).await) == "00000", other > one);
            }
            let sql = format!("SELECT pearing.guard('{}{lock}', 9)", play.lock);
            run(&play.look, &sql).await.expect("9 is the newest");
        }
    })
    .await;
}

#[tokio::test]
async fn lower_is_refused_equal_is_accepted_and_unclaimed_does_not_pass() {
    let postgres = Postgres::start();
    let play = Play::begin(&postgres, 0).await;
    let fence = |text: &str| format!("'{}', {text}", play.lock);
    let most = "9007199254740991";
    let table = [
        ("guard", "7", UNCLAIMED),
        ("claim", "7", "00000"),
        ("claim", "7", "00000"),
        ("guard", "7", "00000"),
        ("claim", "6", STALE),
        ("guard", "6", STALE),
        ("guard", "8", UNCLAIMED),
        ("guard", "7", "00000"),
        ("claim", "10", "00000"),
        ("guard", "7", STALE),
        ("claim", most, "00000"),
        ("guard", most, "00000"),
        ("guard", "9007199254740990", STALE),
        ("claim", "9007199254740992", "22023"),
        ("claim", "0", "22023"),
        ("claim", "NULL", "22023"),
        ("guard", "NULL", UNCLAIMED),
    ];
    for (function, text, expected) in table {
        let sql = format!("SELECT pearing.{function}({})", fence(text));
        assert_eq!(code(run(&play.look, &sql).await), expected, "{function} {text}");
    }
    for function in ["claim", "guard"] {
        let sql = format!("SELECT pearing.{function}(NULL, 7)");
        assert!(run(&play.look, &sql).await.is_err(), "{function}");
    }
    let refused = run(&play.look, &play.guard(5)).await.expect_err("it is lower");
    let said = refused.as_db_error().expect("the server said it").message();
    let expected = format!("{} is claimed with fence token {most}, and 5 is lower", play.lock);
    assert_eq!(said, format!("stale-fence: {expected}"));

    // Whoever writes needs no right to the table, and can't lower a fence token by hand.
    let user = "CREATE ROLE writer LOGIN; GRANT USAGE ON SCHEMA pearing TO writer;
                SET SESSION AUTHORIZATION writer";
    run(&play.look, user).await.expect("SQL");
    assert_eq!(code(run(&play.look, &play.guard(5)).await), STALE);
    assert_eq!(code(run(&play.look, "UPDATE pearing.fence SET fence_token = 1").await), "42501");
}

#[test]
fn it_is_not_installed_over_what_another_has_made() {
    let postgres = Postgres::start();
    let guard = home_file(&postgres, "guard.sql", &printed(postgres.home.path(), "postgres"));
    for trap in [
        "CREATE SCHEMA pearing AUTHORIZATION mallory",
        "CREATE SCHEMA pearing; CREATE TABLE pearing.fence (lock_key text PRIMARY KEY, \
         fence_token bigint NOT NULL, guarded bigint NOT NULL DEFAULT 0); \
         CREATE FUNCTION pearing.trap() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN \
         RETURN NEW; END$$; CREATE TRIGGER trap BEFORE INSERT ON pearing.fence \
         FOR EACH ROW EXECUTE FUNCTION pearing.trap()",
    ] {
        let name = "DROP SCHEMA IF EXISTS pearing CASCADE; DROP ROLE IF EXISTS mallory; \
                    CREATE ROLE mallory";
        postgres.psql(&["-c", name]);
        postgres.psql(&["-c", trap]);
        // Without ON_ERROR_STOP, as whoever installs it may run it.
        let mut psql = Command::new("psql");
        psql.args(["-X", "-f", &guard]).envs(postgres.place()).stdin(Stdio::null());
        let output = psql.output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("the schema pearing is another's"), "{said}");
        let claims = "SELECT count(*) FROM pg_proc WHERE proname IN ('claim', 'guard')";
        assert_eq!(postgres.psql(&["-c", claims]), "0", "nothing is half there");
    }
}

const FUNCTIONS: &str = r#"
sql() { psql -X -q -v ON_ERROR_STOP=1 -v VERBOSITY=verbose -c "$1"; }
claim() { sql "SELECT pearing.claim('$LOCK', $PEARING_FENCE_TOKEN)"; }
write_plain() { sql "UPDATE page SET writer = '$NAME' WHERE lock = 'plain'"; }
write_guarded() {
  sql "BEGIN; SELECT pearing.guard('$LOCK', $PEARING_FENCE_TOKEN);
       UPDATE page SET writer = '$NAME' WHERE lock = 'guarded'; COMMIT"
}
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_zombies_transaction_is_refused_and_does_harm_without_the_guard() {
    let (server, postgres) = (Server::start(), Postgres::start());
    let play = Play::begin(&postgres, 0).await;
    let rows = "INSERT INTO page VALUES ('plain', ''), ('guarded', '')";
    run(&play.look, rows).await.expect("SQL");
    let target = Target { functions: FUNCTIONS, variables: &postgres.place() };
    let late = drill(&server, &target).await;
    assert_eq!(late.plain.0, 0, "{late:?}");
    assert_ne!(late.guarded.0, 0, "{late:?}");
    assert!(late.guarded.1.contains("PF001: stale-fence"), "{late:?}");
    let sql = "SELECT writer FROM page ORDER BY lock";
    assert_eq!(postgres.psql(&["-c", sql]), "codex\nclaude", "the newer plain write is lost");
}

#[test]
fn what_the_readme_types_works_as_it_stands() {
    let postgres = Postgres::start();
    postgres.psql(&["-c", "CREATE TABLE account (id int, balance int)"]);
    postgres.psql(&["-c", "INSERT INTO account VALUES (1, 100)"]);
    let types = |fence: &str| {
        let mut shell = shell(postgres.home.path(), &example("psql -X -v"));
        shell.envs(postgres.place()).env("PEARING_FENCE_TOKEN", fence);
        shell.env("PEARING_SCOPE", "teams/platform/website").env("PEARING_LOCK_NAME", "deploy");
        let output = shell.output().expect("there is a shell");
        let balance = postgres.psql(&["-c", "SELECT balance FROM account"]);
        (output.status.code(), balance, String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, balance, said) = types("18");
    assert_eq!((code, balance.as_str()), (Some(0), "90"), "{said}");
    let (code, balance, said) = types("17");
    assert_eq!((code, balance.as_str()), (Some(3), "90"), "{said}");
    assert!(said.contains("stale-fence"), "{said}");
    postgres.psql(&["-c", &reset("PostgreSQL")]);
    let (code, balance, said) = types("17");
    assert_eq!((code, balance.as_str()), (Some(0), "80"), "{said}");
}
