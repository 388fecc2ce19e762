//! What a drill is played on: two agents, a lock, and a Git repository with a guard, in a folder
//! that is deleted.

use std::fs::{self, DirBuilder};
use std::future::pending;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::{Pid, Signal, getpid, kill_process_group};
use tokio::process::{Child, Command};

use crate::cli::Failure;
use crate::cli::output::Output;
use crate::client::{Acquire, Client, ServerUrl, Turn};
use crate::domain::id::{FenceToken, RequestUuid};
use crate::domain::name::UserName;
use crate::domain::scope::{LockKey, Scope};
use crate::domain::time::{LeaseSeconds, WaitSeconds};
use crate::guard;
use crate::random;
use crate::wire::ticket::State;

/// The agents' own names.
const AGENTS: [&str; 2] = ["drill-a", "drill-b"];
/// How long it waits for the lock: many times the lease of whoever has it.
const WAIT_SECONDS: u64 = 60;

/// What a writer does once its file is there. It says the exit codes of its two writes.
const WRITE: &str = r#"
until [ -e "../$DRILL_USER.go" ]; do sleep 0.1; done
commit=$(git commit-tree -m "$DRILL_USER" "$(git mktree < /dev/null)") || exit
git push --force target "$commit:refs/heads/unguarded" 2>> ../log
echo $?
"$DRILL_CLI" git-push target "+$commit:refs/heads/guarded" 2>> ../log >> ../log
echo $?
"#;

/// One of the two agents.
pub(super) struct Agent {
    /// Its own name, as of `create-agent`.
    name: &'static str,
    pub(super) user: UserName,
    client: Client,
}

/// Everything that a drill needs.
pub(super) struct Stage {
    /// The person's.
    client: Client,
    pub(super) agents: Vec<Agent>,
    pub(super) lock: LockKey,
    folder: PathBuf,
}

pub(super) fn not_run(error: io::Error) -> Failure {
    Failure::Program(format!("a process can't be run: {error}"))
}

impl Stage {
    /// Makes the agents. Their tokens are good for a day, should nobody be left to revoke them.
    pub(super) async fn set(client: Client, server: &ServerUrl) -> Result<Self, Failure> {
        let folder = std::env::temp_dir().join(format!("pearing-drill-{}", random::uuid()));
        let person = client.whoami().await?.body.user;
        let lock_name = format!("drill.{}", random::uuid());
        let lock_name = lock_name.parse().expect("it is made of letters that a name can have");
        let lock = LockKey { scope: Scope::user(&person), lock_name };
        let mut agents = Vec::new();
        for name in AGENTS {
            let made = client.create_agent(name, None, Some(1)).await?.body;
            let client = Client::new(server, &made.token)?;
            agents.push(Agent { name, user: made.user, client });
        }
        Ok(Self { client, agents, lock, folder })
    }

    /// Makes the repository that is pushed to, and one to push from.
    pub(super) async fn make_repository(&self) -> Result<(), Failure> {
        let not_made = |error| Failure::Store(format!("{}: {error}", self.folder.display()));
        let hooks = self.folder.join("target.git/hooks");
        DirBuilder::new().mode(0o700).create(&self.folder).map_err(not_made)?;
        self.git(&self.folder, &["init", "--quiet", "--bare", "target.git"]).await?;
        fs::create_dir_all(&hooks).map_err(not_made)?;
        for hook in ["pre-receive", "reference-transaction"] {
            let hook = hooks.join(hook);
            fs::write(&hook, guard::GIT_HOOK).map_err(not_made)?;
            fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).map_err(not_made)?;
        }
        let protect = format!("refs/heads/guarded {}", guard::lock_text(&self.lock));
        let target = self.folder.join("target.git");
        self.git(&target, &["config", "pearing.protect", &protect]).await?;
        self.git(&self.folder, &["init", "--quiet", "work"]).await?;
        self.git(&self.work(), &["remote", "add", "target", "../target.git"]).await?;
        Ok(())
    }

    /// Where writers work.
    fn work(&self) -> PathBuf {
        self.folder.join("work")
    }

    /// A command that nothing of what the user has set up for Git reaches.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>, folder: &Path) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("GIT_") {
                command.env_remove(name);
            }
        }
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "drill");
            command.env(format!("GIT_{role}_EMAIL"), "drill@localhost");
        }
        command.current_dir(folder).stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// Runs Git to its end, and says what it printed.
    async fn git(&self, folder: &Path, words: &[&str]) -> Result<String, Failure> {
        let ran = self.command("git", folder).args(words).output().await;
        let ran = ran.map_err(|error| Failure::Program(format!("git can't be run: {error}")))?;
        if !ran.status.success() {
            let said = String::from_utf8_lossy(&ran.stderr).into_owned();
            return Err(Failure::Program(format!("git {}: {said}", words[0])));
        }
        Ok(String::from_utf8_lossy(&ran.stdout).trim().to_owned())
    }

    /// Takes the lock as an agent, when it gets it.
    pub(super) async fn acquire(&self, agent: &Agent) -> Result<FenceToken, Failure> {
        let lease = LeaseSeconds::try_from(5).expect("a lease can be so long");
        let wait = WaitSeconds::try_from(WAIT_SECONDS).expect("a wait can be so long");
        let ask = Acquire {
            request_uuid: RequestUuid(random::uuid()),
            lease_seconds: Some(lease),
            wait_seconds: Some(wait),
            note: None,
            reentrant: Some(false),
        };
        let turn = agent.client.acquire_in_turn(&self.lock, &ask, pending::<()>(), |_| {});
        let Turn::Answered(reply) = turn.await? else { unreachable!("nothing stops it") };
        match (reply.body.ticket.state, reply.body.ticket.fence_token) {
            (State::Held, Some(fence)) => Ok(fence),
            (state, _) => Err(Failure::Program(format!(
                "{} did not get the lock: {}",
                agent.user,
                state.as_str()
            ))),
        }
    }

    /// What stands in the environment of whatever works under a hold.
    fn under(&self, command: &mut Command, fence: FenceToken) {
        command.env("PEARING_SCOPE", self.lock.scope.as_str());
        command.env("PEARING_LOCK_NAME", self.lock.lock_name.as_str());
        command.env("PEARING_FENCE_TOKEN", fence.to_string());
    }

    /// Starts a writer, which waits for its file. It dies with this process.
    pub(super) fn start(&self, agent: &Agent, fence: FenceToken) -> Result<Child, Failure> {
        let program = std::env::current_exe().map_err(not_run)?;
        let mut command = self.command(&program, &self.work());
        command.args(["exec-child", &getpid().as_raw_nonzero().to_string(), "--"]);
        command.args(["sh", "-c", WRITE]);
        command.env("DRILL_USER", agent.user.as_str()).env("DRILL_CLI", &program);
        self.under(&mut command, fence);
        // A group of its own is frozen as a whole.
        command.process_group(0).stdout(Stdio::piped());
        command.spawn().map_err(not_run)
    }

    /// Starts a writer, and stops it before it writes.
    pub(super) fn freeze(&self, agent: &Agent, fence: FenceToken) -> Result<Child, Failure> {
        let writer = self.start(agent, fence)?;
        signal(&writer, Signal::STOP)?;
        // It would write now, if it ran.
        self.let_go(agent)?;
        Ok(writer)
    }

    /// Lets a stopped writer run.
    pub(super) fn thaw(&self, writer: &Child) -> Result<(), Failure> {
        signal(writer, Signal::CONT)
    }

    /// Makes the file that an agent's writer waits for.
    pub(super) fn let_go(&self, agent: &Agent) -> Result<(), Failure> {
        let file = self.folder.join(format!("{}.go", agent.user));
        fs::write(&file, "").map_err(|e| Failure::Store(format!("{}: {e}", file.display())))
    }

    /// Claims a fence token at the repository.
    pub(super) async fn claim(&self, fence: FenceToken) -> Result<(), Failure> {
        let program = std::env::current_exe().map_err(not_run)?;
        let mut command = self.command(program, &self.work());
        self.under(&mut command, fence);
        let ran = command.args(["git-push", "target", "--claim"]).output().await;
        let ran = ran.map_err(not_run)?;
        if !ran.status.success() {
            let said = String::from_utf8_lossy(&ran.stderr).into_owned();
            return Err(Failure::Program(format!("the claim failed: {said}")));
        }
        Ok(())
    }

    /// Who wrote what a branch has now.
    pub(super) async fn author(&self, branch: &str) -> Result<String, Failure> {
        let target = self.folder.join("target.git");
        self.git(&target, &["log", "-1", "--format=%s", &format!("refs/heads/{branch}")]).await
    }

    /// Puts back what can be put back. The agents stay, without tokens.
    pub(super) async fn clear(&self, output: &mut Output) {
        for agent in &self.agents {
            if let Err(error) = self.client.revoke_agent_tokens(agent.name).await {
                output.message(&format!("the tokens of {} can't be revoked: {error}", agent.user));
            }
        }
        if let Err(error) = fs::remove_dir_all(&self.folder)
            && error.kind() != io::ErrorKind::NotFound
        {
            output.message(&format!("{}: {error}", self.folder.display()));
        }
    }
}

fn signal(writer: &Child, signal: Signal) -> Result<(), Failure> {
    let pid = writer.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    let pid = pid.expect("it has not been waited for");
    kill_process_group(pid, signal).map_err(|errno| not_run(errno.into()))
}
