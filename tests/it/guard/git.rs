//! The guard in a real Git repository, and the push that goes with it.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::guard::zombie::{LOCK, Target, drill};
use crate::guard::{example, printed, reset};
use crate::support::{REPO, Server, eventually, pearing_cli, shell};

const FENCE_REF: &str = "refs/pearing/fence/teams/platform/website/=/deploy";

/// A bare repository whose `main` and `release/*` are protected, and one to push from.
struct Repository {
    home: PathBuf,
}

impl Repository {
    fn make(home: &Path) -> Self {
        let repository = Self { home: home.to_owned() };
        repository.git(".", &["init", "--quiet", "--bare", "target.git"]);
        repository.git(".", &["init", "--quiet", "work"]);
        repository.git("work", &["remote", "add", "origin", "../target.git"]);
        for name in ["main", "release/*"] {
            let protect = format!("refs/heads/{name} {LOCK}");
            repository.git("target.git", &["config", "--add", "pearing.protect", &protect]);
        }
        let hooks = repository.hooks();
        fs::create_dir_all(&hooks).expect("the folder is ours");
        fs::write(hooks.join("pre-receive"), printed(home, "git")).expect("the folder is ours");
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(hooks.join("pre-receive"), executable).expect("the file is ours");
        symlink("pre-receive", hooks.join("reference-transaction")).expect("the folder is ours");
        repository
    }

    fn hooks(&self) -> PathBuf {
        self.home.join("target.git/hooks")
    }

    /// A command that finds nothing of what whoever runs the tests has set up.
    fn prepare<'a>(&self, command: &'a mut Command, folder: &str) -> &'a mut Command {
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("GIT_") {
                command.env_remove(name);
            }
        }
        command.envs(settings()).current_dir(self.home.join(folder)).stdin(Stdio::null())
    }

    /// Git, which may fail.
    fn try_git(&self, folder: &str, words: &[&str]) -> Output {
        let mut command = Command::new("git");
        self.prepare(&mut command, folder).args(words).output().expect("it runs")
    }

    /// What Git says.
    #[track_caller]
    fn git(&self, folder: &str, words: &[&str]) -> String {
        let output = self.try_git(folder, words);
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// A new commit that follows none, so that it can only be pushed by force.
    fn commit(&self, message: &str) -> String {
        let tree = self.git("work", &["write-tree"]);
        self.git("work", &["commit-tree", "-m", message, &tree])
    }

    /// A blob as the fence ref's, made by hand.
    fn blob(&self, text: &str) -> String {
        fs::write(self.home.join("blob"), text).expect("the folder is ours");
        self.git("work", &["hash-object", "-w", "../blob"])
    }

    /// `pearing-cli git-push` under a fence token.
    fn push_command(&self, fence: u64, words: &[&str]) -> Command {
        let mut command = pearing_cli(&self.home);
        self.prepare(&mut command, "work").args(["git-push", "origin"]).args(words);
        command.env("PEARING_SCOPE", REPO).env("PEARING_LOCK_NAME", "deploy");
        command.env("PEARING_FENCE_TOKEN", fence.to_string());
        command
    }

    /// Its exit code, and what it said on stderr.
    fn push(&self, fence: u64, words: &[&str]) -> (i32, String) {
        let output = self.push_command(fence, words).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code().expect("no signal ended it"), said)
    }

    /// The message of a branch's commit at the target; empty if it isn't there.
    fn branch(&self, name: &str) -> String {
        let name = format!("refs/heads/{name}");
        let output = self.try_git("target.git", &["log", "-1", "--format=%s", &name]);
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// The newest fence token at the target.
    fn newest(&self) -> String {
        let text = self.git("target.git", &["cat-file", "blob", FENCE_REF]);
        text.lines().next().and_then(|l| l.strip_prefix("pearing-fence ")).expect("one").to_owned()
    }
}

fn settings() -> Vec<(&'static str, &'static str)> {
    vec![
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_AUTHOR_NAME", "a"),
        ("GIT_AUTHOR_EMAIL", "a@localhost"),
        ("GIT_COMMITTER_NAME", "a"),
        ("GIT_COMMITTER_EMAIL", "a@localhost"),
    ]
}

#[test]
fn a_protected_branch_moves_only_with_a_fence_token_that_does_not_fall() {
    let home = tempfile::tempdir().expect("a folder");
    let repository = Repository::make(home.path());
    let [one, two] = ["one", "two"].map(|name| repository.commit(name));
    let to = |commit: &str, branch: &str| format!("+{commit}:refs/heads/{branch}");

    let alone = repository.try_git("work", &["push", "origin", &to(&one, "main")]);
    let said = String::from_utf8_lossy(&alone.stderr).into_owned();
    assert!(!alone.status.success() && said.contains("use pearing-cli git-push"), "{said}");
    repository.git("work", &["push", "--quiet", "origin", &to(&one, "other")]);

    let (main, release) = (to(&one, "main"), to(&one, "release/1"));
    assert_eq!(repository.push(7, &[&main, &release]).0, 0);
    assert_eq!((repository.branch("main"), repository.newest()), ("one".into(), "7".into()));
    let (code, said) = repository.push(7, &[&to(&two, "main")]);
    assert!(code == 0 && !said.contains("guard"), "equal is accepted, and no word of it: {said}");
    assert_eq!(repository.push(7, &[&to(&two, "main")]).0, 0, "what is there already, too");
    assert_eq!(repository.push(8, &["--claim"]).0, 0);
    assert_eq!((repository.branch("main"), repository.newest()), ("two".into(), "8".into()));
    for words in [&["--claim"] as &[&str], &[&main], &[&release]] {
        let (code, said) = repository.push(7, words);
        assert_eq!(code, 5, "{words:?}: {said}");
        assert!(said.contains("is claimed with fence token 8, and 7 is lower"), "{said}");
        assert!(said.contains("stop: a higher fence token than 7 is claimed at origin"), "{said}");
    }
    // As numbers, and not as texts.
    assert_eq!(repository.push(10, &["--claim"]).0, 0);
    assert_eq!(repository.push(9, &["--claim"]).0, 5);
    assert_eq!(repository.push(9_007_199_254_740_991, &["--claim"]).0, 0);
    assert_eq!(repository.branch("main"), "two");

    let (code, said) = repository.push(9_007_199_254_740_991, &["nowhere"]);
    assert_eq!(code, 1, "Git's own errors: {said}");
    fs::remove_dir_all(repository.hooks()).expect("the folder is ours");
    let (code, said) = repository.push(7, &[&main]);
    assert!(code == 0 && said.contains("nothing guards there"), "{said}");
}

#[test]
fn what_the_readme_types_works_as_it_stands() {
    let server = Server::start();
    let home = tempfile::tempdir().expect("a folder");
    let repository = Repository { home: home.path().to_owned() };
    repository.git(".", &["init", "--quiet", "--bare", "target.git"]);
    repository.git(".", &["init", "--quiet", "--initial-branch=main", "work"]);
    repository.git("work", &["remote", "add", "origin", "../target.git"]);
    repository.git("work", &["commit", "--quiet", "--allow-empty", "-m", "first"]);
    let types = |folder: &str, line: &str| {
        let mut shell = shell(home.path(), line);
        shell.env("PEARING_URL", server.url()).envs(settings());
        shell.env("PEARING_TOKEN", server.client("claude").token());
        let output = shell.current_dir(home.path().join(folder)).output();
        output.expect("there is a shell")
    };
    let installed = types("target.git", &example("pearing-cli print-guard git"));
    assert!(installed.status.success(), "{installed:?}");
    let first =
        example("pearing-cli with-lock deploy --repo teams/platform/website -- pearing-cli");
    let pushed = types("work", &format!("set -e\n{first}"));
    let said = String::from_utf8_lossy(&pushed.stderr).into_owned();
    assert!(pushed.status.success() && !said.contains("nothing guards"), "{said}");
    assert_eq!(repository.branch("main"), "first");
    let upstream = repository.git("work", &["rev-parse", "--abbrev-ref", "main@{upstream}"]);
    assert_eq!(upstream, "origin/main");
    // A wrong claim shuts out whoever comes, until it is taken back.
    assert_eq!(repository.push(1_000_000, &["--claim"]).0, 0);
    let (code, said) = repository.push(999, &["--claim"]);
    assert_eq!(code, 5, "{said}");
    let taken_back = types("target.git", &reset("Git"));
    assert!(taken_back.status.success(), "{taken_back:?}");
    assert_eq!(repository.push(999, &["--claim"]).0, 0);
}

#[test]
fn a_fence_ref_can_be_nothing_else_and_is_not_deleted() {
    let home = tempfile::tempdir().expect("a folder");
    let repository = Repository::make(home.path());
    let commit = repository.commit("one");
    let main = format!("+{commit}:refs/heads/main");
    let refused = |words: &[&str]| {
        let output = repository.try_git("work", &[&["push", "--atomic", "origin"], words].concat());
        assert!(!output.status.success(), "{words:?}");
    };
    for text in ["", "7\n", "pearing-fence\n", "pearing-fence 07\n", "x\npearing-fence 7\n"] {
        let blob = repository.blob(text);
        refused(&[&main, &format!("+{blob}:{FENCE_REF}")]);
    }
    refused(&[&main, &format!("+{commit}:{FENCE_REF}")]);
    let blob = repository.blob("pearing-fence 7\n");
    refused(&[&main, &format!("+{blob}:refs/pearing/fence/teams/other/=/deploy")]);
    assert_eq!(repository.push(7, &[&main]).0, 0);
    refused(&[&format!(":{FENCE_REF}")]);
    refused(&[":refs/heads/main"]);
    refused(&[":refs/heads/main", &format!("+{blob}:{FENCE_REF}")]);
    // By another name too.
    repository.git("target.git", &["symbolic-ref", "refs/heads/alias", "refs/heads/main"]);
    let other = repository.commit("other");
    refused(&[&format!("+{other}:refs/heads/alias")]);
    // Packing refs deletes them in one place, and is none of the guard's business.
    repository.git("target.git", &["gc", "--quiet"]);
    repository.git("target.git", &["pack-refs", "--all", "--prune"]);
    assert_eq!((repository.branch("main"), repository.newest()), ("one".into(), "7".into()));
    assert_eq!(repository.push(6, &[&main]).0, 5);

    fs::remove_file(repository.hooks().join("reference-transaction")).expect("it is there");
    let (code, said) = repository.push(7, &[&main]);
    assert!(code == 1 && said.contains("half installed"), "{said}");
}

#[test]
fn a_ref_is_looked_up_by_its_whole_name() {
    let home = tempfile::tempdir().expect("a folder");
    let repository = Repository::make(home.path());
    let commit = repository.commit("one");
    // Git takes these for the refs whose names they end with, should those be missing.
    for decoy in ["refs/heads/main", FENCE_REF] {
        repository.git("work", &["push", "origin", &format!("+{commit}:refs/tags/{decoy}")]);
    }
    // A push would be told of one of them by its client already.
    let alone = repository.try_git("target.git", &["update-ref", "refs/heads/main", &commit]);
    let said = String::from_utf8_lossy(&alone.stderr).into_owned();
    assert!(said.contains("changes only together with"), "{alone:?}");
    let main = ["show-ref", "--verify", "refs/heads/main"];
    assert!(!repository.try_git("target.git", &main).status.success());
}

#[test]
fn what_is_no_fence_token_and_what_protects_nothing_is_refused() {
    let home = tempfile::tempdir().expect("a folder");
    let repository = Repository::make(home.path());
    let main = format!("+{}:refs/heads/main", repository.commit("one"));
    let blob = repository.blob("pearing-fence 9007199254740992\n");
    let words = ["push", "--atomic", "origin", &main, &format!("+{blob}:{FENCE_REF}")];
    let beyond = repository.try_git("work", &words);
    let said = String::from_utf8_lossy(&beyond.stderr).into_owned();
    assert!(!beyond.status.success() && said.contains("the most is 2^53 - 1"), "{said}");
    repository.git("target.git", &["config", "--add", "pearing.protect", &format!("main2 {LOCK}")]);
    let (code, said) = repository.push(7, &[&main]);
    assert!(code == 1 && said.contains("pearing.protect must be refs/PATTERN"), "{said}");
}

#[tokio::test]
async fn a_claim_waits_for_an_older_push_that_still_holds_a_protected_ref() {
    let home = tempfile::tempdir().expect("a folder");
    let repository = Repository::make(home.path());
    let main = format!("+{}:refs/heads/main", repository.commit("one"));
    assert_eq!(repository.push(7, &[&main]).0, 0);
    // As Git leaves it between two renames: the fence ref is free, and main is not yet.
    let lock = home.path().join("target.git/refs/heads/main.lock");
    fs::write(&lock, "").expect("the folder is ours");
    let (code, said) = repository.push(8, &["--claim"]);
    assert!(code == 1 && said.contains("another push under this lock is under way"), "{said}");
    assert_eq!(repository.newest(), "7");
    let claim = repository.push_command(8, &["--claim"]).spawn().expect("it runs");
    let fence_lock = home.path().join(format!("target.git/{FENCE_REF}.lock"));
    eventually("the claim to wait", async || fence_lock.exists().then_some(())).await;
    fs::remove_file(lock).expect("it is there");
    let claim = claim.wait_with_output().expect("it ends");
    assert!(claim.status.success() && repository.newest() == "8", "{claim:?}");
}

/// Lets a push wait between the hook that looks and the transaction that writes.
const SLOW_HOOK: &str = r#"#!/bin/sh
"$(dirname "$0")/guard" || exit 1
[ -z "${DRILL_WAIT:-}" ] && exit 0
touch "$DRILL_WAIT.arrived"
until [ -e "$DRILL_WAIT" ]; do sleep 0.05; done
"#;

/// Starts a push, which has passed the hook that looks when this returns.
async fn waiting(repository: &Repository, command: &mut Command) -> (Child, PathBuf) {
    let hooks = repository.hooks();
    if !hooks.join("guard").exists() {
        fs::rename(hooks.join("pre-receive"), hooks.join("guard")).expect("it is there");
        fs::remove_file(hooks.join("reference-transaction")).expect("it is there");
        symlink("guard", hooks.join("reference-transaction")).expect("the folder is ours");
        fs::write(hooks.join("pre-receive"), SLOW_HOOK).expect("the folder is ours");
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(hooks.join("pre-receive"), executable).expect("the file is ours");
    }
    let go = repository.home.join("go");
    let arrived = repository.home.join("go.arrived");
    let child = command.env("DRILL_WAIT", &go).stderr(Stdio::piped()).spawn().expect("it runs");
    eventually("the push to arrive", async || arrived.exists().then_some(())).await;
    (child, go)
}

#[tokio::test]
async fn a_claim_between_the_look_and_the_write_makes_the_push_fail() {
    let home = tempfile::tempdir().expect("a folder");
    let repository = Repository::make(home.path());
    let [one, two] = ["one", "two"].map(|name| repository.commit(name));
    assert_eq!(repository.push(7, &[&format!("+{one}:refs/heads/main")]).0, 0);
    let mut late = repository.push_command(7, &[&format!("+{two}:refs/heads/main")]);
    let (late, go) = waiting(&repository, &mut late).await;
    assert_eq!(repository.push(8, &["--claim"]).0, 0);
    fs::write(go, "").expect("the folder is ours");
    let late = late.wait_with_output().expect("it ends");
    assert!(!late.status.success(), "{late:?}");
    assert_eq!((repository.branch("main"), repository.newest()), ("one".into(), "8".into()));
}

#[tokio::test]
async fn refs_that_are_not_pushed_together_are_refused_even_then() {
    let home = tempfile::tempdir().expect("a folder");
    let repository = Repository::make(home.path());
    let [one, two] = ["one", "two"].map(|name| repository.commit(name));
    assert_eq!(repository.push(7, &[&format!("+{one}:refs/heads/main")]).0, 0);
    let blob = repository.blob("pearing-fence 7\nby hand\n");
    // Without --atomic each ref is a transaction of its own.
    let mut late = Command::new("git");
    repository.prepare(&mut late, "work").args(["push", "origin"]);
    late.args([format!("+{two}:refs/heads/main"), format!("+{blob}:{FENCE_REF}")]);
    let (late, go) = waiting(&repository, &mut late).await;
    assert_eq!(repository.push(8, &["--claim"]).0, 0);
    fs::write(go, "").expect("the folder is ours");
    let late = late.wait_with_output().expect("it ends");
    assert!(!late.status.success(), "{late:?}");
    assert_eq!((repository.branch("main"), repository.newest()), ("one".into(), "8".into()));
}

const FUNCTIONS: &str = r#"
cd work || exit
claim() { pearing-cli git-push origin --claim && git fetch --quiet origin; }
commit() { git commit-tree -m "$NAME" "$(git write-tree)"; }
write_plain() { git push --force origin "$(commit):refs/heads/plain"; }
write_guarded() { pearing-cli git-push origin "+$(commit):refs/heads/main"; }
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_zombies_push_is_refused_and_does_harm_without_the_guard() {
    let server = Server::start();
    let repository = Repository::make(server.home());
    let variables: Vec<_> = settings().into_iter().map(|(n, v)| (n, v.to_owned())).collect();
    let target = Target { functions: FUNCTIONS, variables: &variables };
    let late = drill(&server, &target).await;
    assert_eq!(late.plain.0, 0, "{late:?}");
    assert_eq!(late.guarded.0, 5, "{late:?}");
    assert!(late.guarded.1.contains("stale-fence"), "{late:?}");
    assert_eq!(repository.branch("plain"), "claude", "the newer push is lost");
    assert_eq!(repository.branch("main"), "codex");
}
