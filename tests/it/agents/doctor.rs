//! doctor: what it finds good, and what it finds bad.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use super::{Ended, Home, program};
use crate::support::Server;

/// What it says, by what it is about.
fn doctor(home: &Home, words: &str) -> (Option<i32>, Vec<(String, String, String)>) {
    let ended = home.says(&format!("doctor --json {words}"));
    let report = ended.json();
    assert_eq!(report["ok"], json!(ended.code == Some(0)), "{ended:?}");
    let text = |check: &Value, field: &str| check[field].as_str().expect("text").to_owned();
    let check = |it: &Value| (text(it, "what"), text(it, "state"), text(it, "found"));
    let checks = report["checks"].as_array().expect("a list").iter().map(check).collect();
    (ended.code, checks)
}

#[track_caller]
fn state<'a>(checks: &'a [(String, String, String)], what: &str) -> &'a str {
    let found = checks.iter().find(|(about, _, _)| about.ends_with(what));
    &found.unwrap_or_else(|| panic!("nothing about {what}: {checks:?}")).1
}

#[tokio::test]
async fn what_is_well_is_said_to_be_well() {
    let server = Server::start();
    let home = Home::of(&server, "claude");
    home.says("setup claude-code").done();
    home.says("setup codex").done();
    let before = home.files();
    let (code, checks) = doctor(&home, "");
    assert_eq!(code, Some(0), "{checks:?}");
    for what in ["server", "clock", "identity", "mcp at the server", "PostToolUse", "SessionEnd"] {
        assert_eq!(state(&checks, what), "ok", "{checks:?}");
    }
    assert_eq!(state(&checks, ".claude.json mcp"), "ok", "{checks:?}");
    assert_eq!(state(&checks, ".codex/config.toml mcp"), "ok", "{checks:?}");
    let said = home.says("doctor").done().out;
    assert!(said.contains(&format!("url: {}, from profile default", server.url())), "{said}");
    assert!(said.contains("server: ready, version 0.1.0") && said.contains("identity: claude,"));
    let all = format!("{checks:?}{said}");
    assert!(!all.contains("pearing_") && home.files() == before, "it shows and changes nothing");
}

#[tokio::test]
async fn what_is_wrong_has_a_line_and_an_exit_code() {
    let mut server = Server::start();
    let home = Home::of(&server, "claude");
    let (_, checks) = doctor(&home, "");
    assert_eq!((state(&checks, "claude-code"), state(&checks, "codex")), ("info", "info"));
    let nobody = doctor(&Home::empty(), "");
    assert_eq!((nobody.0, state(&nobody.1, "token")), (Some(7), "bad"));
    let seen = doctor(&Home::empty(), &format!("--url {}", server.url()));
    assert_eq!((seen.0, state(&seen.1, "token")), (Some(7), "bad"), "{seen:?}");
    assert_eq!((state(&seen.1, "server"), state(&seen.1, "clock")), ("ok", "ok"), "{seen:?}");

    home.says("setup codex").done();
    let config = home.read(".codex/config.toml");
    let bad = |text: &str, found: &str| {
        home.write(".codex/config.toml", text);
        let (code, checks) = doctor(&home, "");
        let is_found = checks.iter().any(|(_, state, it)| state == "bad" && it.contains(found));
        assert!(code == Some(1) && is_found, "{found}: {checks:?}");
    };
    bad(&config.replace(program(), "/nowhere/pearing-cli"), "/nowhere/pearing-cli isn't there");
    bad(&config.replace("\"codex\"", "\"gone\""), "there is no profile gone");
    bad(&config.replace(program(), "/bin/true"), "it doesn't speak MCP");
    bad(&format!("{config}[x]\ny = \"{}\"\n", home.token("codex")), "a token stands in it");
    bad("model = [", "line 1 is no TOML");

    // What a project names is not started, unless it is this program.
    let evil = json!({ "command": home.path("evil"), "args": ["--profile", "default", "mcp"] });
    home.write("evil", "#!/bin/sh\necho started > started\n");
    fs::set_permissions(home.path("evil"), fs::Permissions::from_mode(0o700)).expect("it is ours");
    home.write(".mcp.json", &json!({ "mcpServers": { "pearing": evil } }).to_string());
    let (_, checks) = doctor(&home, "");
    assert_eq!(state(&checks, ".mcp.json mcp"), "warning", "{checks:?}");
    // Nor this program with other words than setup's, whatever it is called.
    let touch = format!("touch {}", home.path("started").display());
    let words = ["--profile", "codex", "with-lock", "x", "--user", "claude.codex"];
    let words = [&words[..], &["--", "sh", "-c", &touch, "mcp"]].concat();
    for name in [program(), "/proc/self/exe"] {
        let evil = json!({ "command": name, "args": words });
        home.write(".mcp.json", &json!({ "mcpServers": { "pearing": evil } }).to_string());
        let (_, checks) = doctor(&home, "");
        assert_eq!(state(&checks, ".mcp.json mcp"), "warning", "{checks:?}");
    }
    assert!(!home.path("started").exists());
    fs::remove_file(home.path(".mcp.json")).expect("it is ours");
    let elsewhere = config.replace(server.url(), "http://127.0.0.1:1");
    bad(&elsewhere, "it names http://127.0.0.1:1");

    // A token that was revoked is seen, though its own person's is good.
    home.write(".codex/config.toml", &config);
    home.says("revoke-agent-tokens codex").done();
    let (code, checks) = doctor(&home, "");
    let (_, state_of_entry, found) =
        checks.iter().find(|(what, _, _)| what.ends_with("config.toml mcp")).expect("it is there");
    assert_eq!((code, state_of_entry.as_str()), (Some(7), "bad"), "{checks:?}");
    assert!(found.contains("run setup again") && state(&checks, "identity") == "ok", "{found}");
    home.write(".codex/config.toml", "model = 'x'\n");
    let (code, checks) = doctor(&home, "--profile codex");
    assert_eq!((code, state(&checks, "identity")), (Some(7), "bad"), "{checks:?}");
    server.kill();
    let (code, checks) = doctor(&home, "");
    assert_eq!((code, state(&checks, "server")), (Some(8), "bad"), "{checks:?}");
    let shown: Ended = home.says("doctor");
    assert!(shown.code == Some(8) && shown.out.contains("bad      server: "), "{shown:?}");
}
