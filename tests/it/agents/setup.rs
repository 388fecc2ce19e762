//! setup: the files of Claude Code and Codex, before and after.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Command;

use serde_json::{Value, json};

use super::{Ended, Home, program};
use crate::support::{REPO, Server};

const GATED: &str = "setup claude-code --repo teams/platform/website --lock edit";

/// A file of TOML as the reader of another language sees it.
fn toml(text: &str) -> Value {
    let script = "import json, sys, tomllib; print(json.dumps(tomllib.load(sys.stdin.buffer)))";
    let mut python = Command::new("python3");
    let ended = Home::empty().run(python.args(["-I", "-c", script]), text).done();
    ended.json()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|why| panic!("{text}: {why}"))
}

/// What `setup … --print` shows for a file.
fn printed(home: &Home, line: &str, file: &str) -> String {
    let shown = home.says(&format!("{line} --print --json")).done().json();
    let files = shown["files"].as_array().expect("a list").clone();
    let path = home.path(file);
    let found = files.into_iter().find(|shown| shown["path"].as_str() == path.to_str());
    found.expect("it is shown")["text"].as_str().expect("text").to_owned()
}

#[tokio::test]
async fn claude_code_gets_an_identity_an_mcp_server_and_hooks() {
    let server = Server::start();
    let home = Home::of(&server, "claude");
    let theirs = r#"{
  "numStartups": 7,
  "mcpServers": {
    "other": {
      "command": "x"
    }
  }
}
"#;
    let settings = r#"{
  "permissions": { "allow": [] },
  "hooks": {
    "Stop": []
  }
}
"#;
    home.write(".claude.json", theirs);
    home.write(".claude/settings.json", settings);
    fs::set_permissions(home.path(".claude.json"), fs::Permissions::from_mode(0o600))
        .expect("ours");
    let before = home.files();
    let shown = home.says(&format!("{GATED} --print")).done();
    assert!(shown.out.contains("/.claude.json\n{") && shown.out.contains("/settings.json\n{"));
    assert_eq!((home.files(), shown.err.as_str()), (before, ""), "nothing was changed");
    let agents = server.client("claude").get("/v1/agents").await.body;
    assert_eq!(agents["items"], json!([]), "nobody was asked");

    let made = home.says(&format!("{GATED} --json")).done().json();
    assert_eq!((&made["user"], &made["made"]), (&json!("claude.claude-code"), &json!(true)));
    let config = json(&home.read(".claude.json"));
    let args = json!(["--profile", "claude-code", "--url", server.url(), "mcp"]);
    let entry = json!({ "type": "stdio", "command": program(), "args": args });
    assert_eq!(config["mcpServers"]["pearing"], entry);
    assert_eq!(config["mcpServers"]["other"], json!({ "command": "x" }));
    let mode = fs::metadata(home.path(".claude.json")).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "as it was");
    let hooks = json(&home.read(".claude/settings.json"))["hooks"].clone();
    let command = format!(
        "{} --profile claude-code --url {} hook claude-code --repo {REPO} --lock edit",
        program(),
        server.url()
    );
    let hook = |command: &str| json!([{ "type": "command", "command": command, "timeout": 15 }]);
    let gate = hook(&format!("{command} || exit 2"));
    let tools = "Bash|Edit|MultiEdit|NotebookEdit|Write";
    assert_eq!(hooks["PreToolUse"], json!([{ "matcher": tools, "hooks": gate }]));
    assert_eq!(hooks["PostToolUse"], json!([{ "matcher": "*", "hooks": hook(&command) }]));
    assert_eq!(hooks["SessionEnd"], json!([{ "hooks": hook(&command) }]));
    assert_eq!(hooks["Stop"], json!([]));
    // What was shown is what is there now.
    let shown = json(&printed(&home, GATED, ".claude.json"));
    assert_eq!(shown["mcpServers"]["pearing"], config["mcpServers"]["pearing"]);
    let shown = json(&printed(&home, GATED, ".claude/settings.json"));
    for event in ["PreToolUse", "PostToolUse", "SessionEnd"] {
        assert_eq!(shown["hooks"][event], hooks[event]);
    }

    let lost = home.says("setup claude-code").done();
    assert!(
        lost.err.contains(&format!("the gate on lock edit in {REPO} is taken out")),
        "{lost:?}"
    );
    assert!(!home.read(".claude/settings.json").contains("PreToolUse"));
    let back = home.says(GATED).done();
    assert!(!back.err.contains("taken out"), "{back:?}");
    // Whatever a shell names for other work, the entries ask their own server.
    let mut whoami = home.cli("whoami --profile claude-code --url");
    whoami.arg(server.url()).env("PEARING_URL", "http://127.0.0.1:1").env("PEARING_TOKEN", "none");
    Ended::from(whoami.output().expect("it runs")).done();

    let after = home.files();
    let again = home.says(&format!("{GATED} --json")).done().json();
    assert_eq!((&again["made"], home.files()), (&json!(false), after), "twice is once");
    let agents = server.client("claude").get("/v1/agents").await.body;
    assert_eq!(agents["items"][0]["tokens"].as_array().map(Vec::len), Some(1), "{agents}");
    let secret = home.token("claude-code");
    for (path, text) in home.files() {
        assert!(!text.contains("pearing_") && !text.contains(&secret), "{}", path.display());
    }
    let who = home.says("whoami --profile claude-code --json").done().json();
    assert_eq!((&who["user"], &who["person"]), (&json!("claude.claude-code"), &json!("claude")));

    let removed = home.says("setup claude-code --remove").done();
    assert!(removed.err.contains("revoke-agent-tokens claude-code"), "{removed:?}");
    assert_eq!(home.read(".claude.json"), theirs);
    assert_eq!(home.read(".claude/settings.json"), settings);
    assert_eq!(home.says("whoami --profile claude-code").code, Some(2), "it is forgotten");
    home.says("whoami").done();
}

#[tokio::test]
async fn codex_gets_an_identity_of_its_own_and_an_mcp_server() {
    let server = Server::start();
    let home = Home::of(&server, "claude");
    let theirs = "# mine\nmodel = \"gpt\" # the new one\n\n[mcp_servers.other]\ncommand = \"x\"\n";
    home.write("dotfiles/codex.toml", theirs);
    fs::create_dir(home.path(".codex")).expect("it is ours");
    symlink("../dotfiles/codex.toml", home.path(".codex/config.toml")).expect("it is ours");
    let shown = home.says("setup codex --print").done();
    let entry = json!({
        "command": program(), "tool_timeout_sec": 120,
        "args": ["--profile", "codex", "--url", server.url(), "mcp"],
    });
    let wanted = json!({ "mcp_servers": { "pearing": entry } });
    assert_eq!(toml(&shown.out), wanted, "what is shown is TOML as it stands");

    home.says("setup codex").done();
    assert!(home.path(".codex/config.toml").is_symlink(), "a link is followed");
    let text = home.read(".codex/config.toml");
    assert!(text.starts_with("# mine\nmodel = \"gpt\" # the new one\n"), "{text}");
    let config = toml(&text);
    assert_eq!(config["mcp_servers"]["pearing"], entry);
    assert_eq!(config["mcp_servers"]["other"], json!({ "command": "x" }));
    let before = home.files();
    home.says("setup codex").done();
    assert_eq!(home.files(), before, "twice is once");

    // Two programs of one person are two owners.
    home.says("setup claude-code").done();
    let acquire =
        |profile: &str| home.says(&format!("acquire-lock x --repo {REPO} --profile {profile}"));
    acquire("codex").done();
    assert_eq!(acquire("claude-code").code, Some(3), "it is another's");

    home.says("setup codex --remove").done();
    assert_eq!(home.read("dotfiles/codex.toml"), theirs);
    home.says("whoami --profile claude-code").done();
    let gone = home.says("setup claude-code --remove").done();
    assert!(!home.path(".claude.json").exists() && !home.path(".claude/settings.json").exists());
    assert!(gone.err.contains("still valid"), "{gone:?}");
}

#[tokio::test]
async fn a_project_has_entries_of_its_own_and_the_environment_says_where_files_are() {
    let server = Server::start();
    let home = Home::of(&server, "codex");
    let nowhere = home.says("setup claude-code --agent site-bot --project site");
    assert!(nowhere.code == Some(2) && nowhere.err.contains("no folder"), "{nowhere:?}");
    assert!(!home.path("site").exists());
    fs::create_dir(home.path("site")).expect("it is ours");
    home.says("setup claude-code --agent site-bot --project site").done();
    let args = &json(&home.read("site/.mcp.json"))["mcpServers"]["pearing"]["args"];
    assert_eq!(args, &json!(["--profile", "site-bot", "--url", server.url(), "mcp"]));
    assert!(home.read("site/.claude/settings.json").contains("--profile site-bot --url"));
    home.says("setup codex --project site").done();
    assert!(home.read("site/.codex/config.toml").contains("[mcp_servers.pearing]"));

    let mut elsewhere = home.cli("setup claude-code --agent site-bot");
    elsewhere.env("CLAUDE_CONFIG_DIR", home.path("claude")).env("CODEX_HOME", home.path("codex"));
    Ended::from(elsewhere.output().expect("it runs")).done();
    assert!(
        home.path("claude/.claude.json").exists() && home.path("claude/settings.json").exists()
    );
    let mut elsewhere = home.cli("setup codex");
    elsewhere.env("CODEX_HOME", home.path("codex")).env("XDG_CONFIG_HOME", home.path("xdg"));
    elsewhere.env("PEARING_URL", server.url());
    elsewhere.env("PEARING_TOKEN", server.client("codex").token());
    Ended::from(elsewhere.output().expect("it runs")).done();
    let args = &toml(&home.read("codex/config.toml"))["mcp_servers"]["pearing"]["args"];
    let config = home.path("xdg/pearing/config.toml");
    let words = json!(["--config", config, "--profile", "codex", "--url", server.url(), "mcp"]);
    assert_eq!(args, &words, "Codex hands on no XDG_CONFIG_HOME");
    assert!(!home.path(".claude.json").exists() && !home.path(".codex").exists());

    let mut remove = home.cli("setup claude-code --remove --project site");
    remove.env("CLAUDE_CONFIG_DIR", home.path("claude"));
    let removed = Ended::from(remove.output().expect("it runs")).done();
    assert!(removed.err.contains("profile site-bot is kept"), "{removed:?}");
    assert!(!home.path("site/.mcp.json").exists());
    home.says("whoami --profile site-bot").done();
}

#[tokio::test]
async fn what_cannot_be_set_up_changes_nothing() {
    let server = Server::start();
    let home = Home::of(&server, "claude");
    let refused = |line: &str, code: i32, said: &str| {
        let before = home.files();
        let ended = home.says(line);
        assert!(ended.code == Some(code) && ended.err.contains(said), "{line}: {ended:?}");
        assert_eq!(home.files(), before, "{line}");
    };
    home.write(".claude/settings.json", "{\n  \"hooks\": {\n    oops\n");
    refused("setup claude-code", 2, ".claude/settings.json: line 3 is no JSON");
    refused("setup claude-code --remove", 2, "line 3 is no JSON");
    home.write(".codex/config.toml", "[mcp_servers.pearing]\nurl = \"http://x\"\n");
    refused("setup codex", 2, "mcp_servers.pearing is there, and not ours");
    home.write(".codex/config.toml", "model = [\n");
    refused("setup codex", 2, "is no TOML");
    fs::remove_file(home.path(".codex/config.toml")).expect("it is ours");
    fs::remove_file(home.path(".claude/settings.json")).expect("it is ours");
    refused("setup claude-code --lock x", 2, "--repo, --team or --user is missing");
    refused(&format!("setup codex --lock x --repo {REPO}"), 2, "only Claude Code");
    refused("setup codex --agent A/b", 2, "agent must match");
    refused("setup codex --agent BIG", 2, "must match");
    refused("setup claude-code --lock x --repo teams/platform/nowhere", 6, "not-found");
    assert_eq!(home.says("whoami --profile claude-code").code, Some(2), "nothing was made");
    refused("setup codex --url http://127.0.0.1:1 --agent far", 2, "is sent to no other server");
    let mut far = home.cli("setup codex --url http://127.0.0.1:1");
    far.env("PEARING_TOKEN", server.client("claude").token());
    let far = Ended::from(far.output().expect("it runs"));
    let asks = "does a server run at http://127.0.0.1:1 (--url)?";
    assert!(far.code == Some(8) && far.err.contains(asks), "{far:?}");
    // A profile of a person is not replaced by one of an agent.
    let mut login = home.cli("login --profile codex --url");
    let token = server.client("codex").token().to_owned();
    home.run(login.arg(server.url()), &token).done();
    refused("setup codex", 2, "profile codex is kept for user codex by a login");
    refused("setup codex", 2, "`pearing-cli logout --profile codex`");
    let shown = home.says("setup codex --print").done();
    assert!(shown.err.contains("profile codex is there already"), "{shown:?}");
    assert_eq!(home.token("codex"), token);
    assert_eq!(server.client("claude").get("/v1/agents").await.body["items"], json!([]));
    // A token that was ended is made anew.
    home.says("setup claude-code").done();
    let first = home.token("claude-code");
    home.says("revoke-agent-tokens claude-code").done();
    home.says("setup claude-code").done();
    assert_ne!(home.token("claude-code"), first);
    home.says("whoami --profile claude-code").done();
}
