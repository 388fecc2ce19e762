//! What our entries say: which program is started with which words. Never a token: the profile
//! has that, in a file of its own.

use std::ffi::OsStr;
use std::path::Path;

use crate::cli::connection::Said;
use crate::cli::profiles::ProfileName;
use crate::cli::text;
use crate::cli::{Environment, Failure};
use crate::client::ServerUrl;
use crate::domain::scope::LockKey;

/// The name of our MCP server in the files of others.
pub(super) const SERVER: &str = "pearing";
/// How the tools are named in which the agent meets our MCP server.
pub(in crate::cli) const TOOL_PREFIX: &str = "mcp__pearing__";
/// The tools that change something, and so need the lock.
const GATED_TOOLS: &str = "Bash|Edit|MultiEdit|NotebookEdit|Write";
/// How long Claude Code waits for a hook. Longer than a hook takes: one that is cut off refuses
/// nothing.
const HOOK_TIMEOUT_SECONDS: u32 = 15;
/// The words by which a hook of ours is known.
const HOOK_WORDS: &str = " hook claude-code";

/// A program that speaks MCP on its stdin and stdout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct Server {
    pub(in crate::cli) command: String,
    pub(in crate::cli) args: Vec<String>,
}

impl Server {
    /// Whether it is `pearing-cli mcp`, wherever that is.
    pub(super) fn is_ours(&self) -> bool {
        self.args.last().is_some_and(|last| last == "mcp") && self.profile().is_some()
    }

    /// Whether it has no words but those that an entry of ours has.
    pub(in crate::cli) fn is_plain(&self) -> bool {
        let mut words = self.args.iter().map(String::as_str);
        loop {
            match words.next() {
                Some("--profile" | "--config" | "--url") => {
                    // A value that is no flag itself.
                    if words.next().is_none_or(|value| value.starts_with('-')) {
                        return false;
                    }
                }
                Some("mcp") => return words.next().is_none(),
                Some(_) | None => return false,
            }
        }
    }

    /// The profile that it uses.
    pub(in crate::cli) fn profile(&self) -> Option<&str> {
        word_after("--profile", self.args.iter().map(String::as_str))
    }

    /// The address that it is told, if it is.
    pub(super) fn url(&self) -> Option<&str> {
        word_after("--url", self.args.iter().map(String::as_str))
    }
}

/// A command that is run at a certain moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hook {
    pub(super) event: &'static str,
    /// At which tools; `None` where there are none.
    pub(super) matcher: Option<&'static str>,
    pub(super) command: String,
    pub(super) timeout_seconds: u32,
}

impl Hook {
    /// Whether a command is `pearing-cli hook claude-code`, wherever that is.
    pub(super) fn is_ours(command: &str) -> bool {
        command.contains(HOOK_WORDS)
            && Self::profile(command).is_some()
            && Path::new(&Self::program(command)).file_name().is_some_and(is_own_name)
    }

    /// The profile that a command uses.
    pub(super) fn profile(command: &str) -> Option<&str> {
        word_after("--profile", command.split_whitespace())
    }

    /// The address that a command is told, if it is.
    pub(super) fn url(command: &str) -> Option<&str> {
        word_after("--url", command.split_whitespace()).map(|word| word.trim_matches('\''))
    }

    /// The lock that a command asks for before a tool, in words; a scope and a name are plain.
    pub(super) fn gate(command: &str) -> Option<String> {
        let words: Vec<&str> = command.split_whitespace().collect();
        let of = |flag: &str| {
            let at = words.iter().position(|word| *word == flag)?;
            words.get(at + 1).copied()
        };
        let repo = of("--repo").map(str::to_owned);
        let scope = repo
            .or_else(|| Some(format!("teams/{}", of("--team")?)))
            .or_else(|| Some(format!("users/{}", of("--user")?)))?;
        Some(format!("lock {} in {scope}", of("--lock")?))
    }

    /// The program that a command starts.
    pub(super) fn program(command: &str) -> String {
        match command.strip_prefix('\'') {
            Some(quoted) => {
                let end = quoted.find("' ").unwrap_or(quoted.len());
                quoted[..end].replace("'\\''", "'")
            }
            None => command.split_whitespace().next().unwrap_or_default().to_owned(),
        }
    }
}

/// Whether a tool changes something, as far as that is known from its name.
pub(in crate::cli) fn is_gated(tool: &str) -> bool {
    GATED_TOOLS.split('|').any(|gated| gated == tool)
}

/// Whether a file can be this program, wherever it is.
fn is_own_name(name: &OsStr) -> bool {
    let own = std::env::current_exe();
    name == "pearing-cli" || own.is_ok_and(|own| own.file_name() == Some(name))
}

fn word_after<'a>(flag: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut words = words.skip_while(|word| *word != flag);
    words.nth(1)
}

/// How this program is started for an agent.
pub(super) struct Entry {
    program: String,
    /// Which profile, and in which file if that can't be told without our environment.
    flags: Vec<String>,
    gate: Option<LockKey>,
}

impl Entry {
    /// How the running program is started with a profile.
    pub(super) fn new(
        said: Said<'_>,
        profile: &ProfileName,
        url: &ServerUrl,
        gate: Option<LockKey>,
    ) -> Result<Self, Failure> {
        let program = std::env::current_exe()
            .map_err(|why| Failure::Usage(format!("where this program is: {why}")))?;
        let mut flags = Vec::new();
        let config = std::path::absolute(said.path()?)?;
        // Codex hands on few variables, and a hook may have been started by anything.
        if !is_default(&config, said.environment) {
            flags.extend(["--config".to_owned(), text(&config)?]);
        }
        flags.extend(["--profile".to_owned(), profile.to_string()]);
        // A PEARING_URL for other work would be another server than the profile's, and no answer.
        flags.extend(["--url".to_owned(), url.to_string()]);
        Ok(Self { program: text(&program)?, flags, gate })
    }

    /// Our MCP server.
    pub(super) fn server(&self) -> Server {
        let args = self.flags.iter().cloned().chain(["mcp".to_owned()]).collect();
        Server { command: self.program.clone(), args }
    }

    /// Our hooks: the gate, if a lock is named, a heartbeat, and the release at the end.
    pub(super) fn hooks(&self) -> Vec<Hook> {
        let command = self.hook_command();
        let hook = |event, matcher, command| Hook {
            event,
            matcher,
            command,
            timeout_seconds: HOOK_TIMEOUT_SECONDS,
        };
        // Whatever goes wrong, also before this program runs, is a reason to refuse.
        let gate = self
            .gate
            .as_ref()
            .map(|_| hook("PreToolUse", Some(GATED_TOOLS), format!("{command} || exit 2")));
        let others = [
            hook("PostToolUse", Some("*"), command.clone()),
            hook("SessionEnd", None, command.clone()),
        ];
        gate.into_iter().chain(others).collect()
    }

    fn hook_command(&self) -> String {
        let words = [&self.program].into_iter().chain(&self.flags).map(|word| quoted(word));
        let mut command = words.collect::<Vec<_>>().join(" ") + HOOK_WORDS;
        if let Some(LockKey { scope, lock_name }) = &self.gate {
            command = format!("{command} {} --lock {lock_name}", text::scope_flag(scope));
        }
        command
    }
}

fn is_default(config: &std::path::Path, environment: &Environment) -> bool {
    let home = environment.home.as_ref();
    home.is_some_and(|home| config == home.join(".config/pearing/config.toml"))
}

fn text(path: &std::path::Path) -> Result<String, Failure> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| Failure::Usage(format!("{}: the path is no text", path.display())))
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@,=".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// How a program somewhere is started for an agent.
    pub(in crate::cli::vendor) fn entry(program: &str, gate: Option<&str>) -> Entry {
        let gate = gate.map(|lock_name| LockKey {
            scope: "teams/platform/website".parse().expect("a scope"),
            lock_name: lock_name.parse().expect("a name"),
        });
        let flags = vec!["--profile".to_owned(), "claude-code".to_owned()];
        Entry { program: program.to_owned(), flags, gate }
    }

    #[test]
    fn a_gate_refuses_whatever_goes_wrong_and_the_rest_refuses_nothing() {
        let hooks = entry("/opt/pearing-cli", Some("edit")).hooks();
        let found: Vec<_> = hooks.iter().map(|hook| (hook.event, hook.command.as_str())).collect();
        let command = "/opt/pearing-cli --profile claude-code hook claude-code \
                       --repo teams/platform/website --lock edit";
        let gate = format!("{command} || exit 2");
        let wanted = [("PreToolUse", &*gate), ("PostToolUse", command), ("SessionEnd", command)];
        assert_eq!(found, wanted);
        assert!(hooks.iter().all(|hook| Hook::is_ours(&hook.command)));
        assert!(!Hook::is_ours("echo hook claude-code"));
        let gated = Hook::gate(command).expect("it has a gate");
        assert_eq!(gated, "lock edit in teams/platform/website");
        let of_team = Hook::gate("p hook claude-code --team a --lock x || exit 2");
        assert_eq!(of_team.as_deref(), Some("lock x in teams/a"));
        assert_eq!(Hook::gate("p hook claude-code"), None);
        let ungated: Vec<_> = entry("/p", None).hooks().iter().map(|hook| hook.event).collect();
        assert_eq!(ungated, ["PostToolUse", "SessionEnd"]);
    }

    #[test]
    fn a_path_of_any_kind_is_one_word_for_a_shell_and_read_back() {
        for path in ["/usr/bin/pearing-cli", "/a b/it's/$x", "/é"] {
            let command = entry(path, None).hook_command();
            assert_eq!(Hook::program(&command), path, "{command}");
            let echo = format!("set -- {command}; printf %s \"$1\"");
            let shell = std::process::Command::new("sh").args(["-c", &echo]).output();
            assert_eq!(String::from_utf8(shell.expect("a shell").stdout).as_deref(), Ok(path));
            assert_eq!(Hook::profile(&command), Some("claude-code"));
        }
    }
}
