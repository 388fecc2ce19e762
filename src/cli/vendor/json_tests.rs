//! What is put into files of JSON, and taken out again, to the byte.

use super::*;
use crate::cli::vendor::entry::tests::entry;

/// What others have in such files, in every shape.
const OTHERS: [&str; 12] = [
    "{\n  \"numStartups\": 3\n}\n",
    "{\n\t\"a\": 1,\n\t\"b\": [1, 2]\n}",
    "{\n  // mine\n  \"a\": 1, // one\n}\n",
    "{\n  \"a\": 1 // one\n  // the end\n}\n",
    "{\r\n    \"a\": 1\r\n}\r\n",
    "{\n  \"mcpServers\": {\n    \"x\": { \"command\": \"y\" }\n  },\n  \"z\": 1\n}\n",
    r#"{
  "hooks": {
    "PostToolUse": [
      { "matcher": "Bash", "hooks": [{ "type": "command", "command": "x" }] }
    ],
    "Stop": []
  }
}
"#,
    "{\"a\":1,\"mcpServers\":{\"x\":{\"command\":\"y\",\"args\":[\"a b\",\"c\\\" {\"]}}}",
    "{\"a\": 1, \"hooks\": {\"Stop\": [], \"PreToolUse\": [{\"hooks\": []}]}}\n",
    "{ \"a\": { \"b\": [] }, \"c\": \"d\" }",
    "{\n  \"z\": 1,\n\n  \"a\": { \"é\": \"\\u00e9, x\" }\n}\n\n",
    "{}",
];

type Edit = fn(&str) -> Edited;

/// Our edits, each with what undoes it.
fn edits() -> [(Edit, Edit); 2] {
    let put_server: Edit = |text| super::put_server(text, &entry("/p/pearing-cli", None).server());
    let put_hooks: Edit =
        |text| super::put_hooks(text, &entry("/p/pearing-cli", Some("edit")).hooks());
    [(put_server, remove_server), (put_hooks, remove_hooks)]
}

#[test]
fn what_is_put_in_and_taken_out_again_leaves_every_byte_of_others() {
    for text in OTHERS {
        for (put, remove) in edits() {
            let with = put(text).unwrap_or_else(|why| panic!("{text}: {why}"));
            assert_ne!(with, text);
            assert_eq!(put(&with).as_deref(), Ok(with.as_str()), "twice is once");
            assert_eq!(remove(&with).as_deref(), Ok(text), "out of {with}");
            assert_eq!(remove(text).as_deref(), Ok(text), "there is nothing of ours");
        }
    }
}

#[test]
fn what_is_put_in_is_there_for_a_reader_of_json() {
    let plain: Vec<&str> = OTHERS.into_iter().filter(|text| !text.contains("//")).collect();
    for text in plain.into_iter().chain(["", "\n"]) {
        let before = serde_json::from_str(text).unwrap_or(serde_json::json!({}));
        let read = |text: String| -> serde_json::Value {
            serde_json::from_str(&text).unwrap_or_else(|why| panic!("{text}: {why}"))
        };
        let [(put_server, _), (put_hooks, _)] = edits();
        let both = read(put_server(text).and_then(|text| put_hooks(&text)).expect("it fits"));
        let server = serde_json::json!({
            "type": "stdio",
            "command": "/p/pearing-cli",
            "args": ["--profile", "claude-code", "mcp"],
        });
        assert_eq!(both["mcpServers"]["pearing"], server);
        for hook in entry("/p/pearing-cli", Some("edit")).hooks() {
            let groups = both["hooks"][hook.event].as_array().expect("a list");
            let group = groups.last().expect("ours is the last");
            assert_eq!(group["matcher"].as_str(), hook.matcher);
            let wanted = serde_json::json!([{
                "type": "command", "command": hook.command, "timeout": 15,
            }]);
            assert_eq!(group["hooks"], wanted);
        }
        for (name, value) in before.as_object().expect("an object") {
            if !["mcpServers", "hooks"].contains(&name.as_str()) {
                assert_eq!(&both[name], value);
            }
        }
    }
}

#[test]
fn an_entry_that_is_different_is_changed_where_it_stands() {
    let text = r#"{
  "mcpServers": {
    "pearing": {
      // fast
      "command": "/old", // here
      "args": ["--profile", "x", "mcp"],
      "env": { "A": "b" }
    },
    "other": {}
  }
}
"#;
    let changed = put_server(text, &entry("/new", None).server()).expect("it is ours");
    let wanted = text.replace("/old", "/new").replace("\"x\"", "\"claude-code\"");
    assert_eq!(changed, wanted);

    let gated = put_hooks("", &entry("/p/pearing-cli", Some("one")).hooks()).expect("hooks");
    let edited = gated.replace("Bash|Edit|MultiEdit|NotebookEdit|Write", "Edit");
    let other = put_hooks(&edited, &entry("/p/pearing-cli", Some("two")).hooks()).expect("hooks");
    assert_eq!(other, edited.replace("--lock one", "--lock two"), "a matcher is its owner's");
    let ungated = put_hooks(&other, &entry("/p/pearing-cli", None).hooks()).expect("hooks");
    assert_eq!(ungated, put_hooks("", &entry("/p/pearing-cli", None).hooks()).expect("hooks"));
}

#[test]
fn a_hook_that_shares_its_group_leaves_the_others_there() {
    let text = "{\n  \"hooks\": {\n    \"SessionEnd\": [\n      {\n        \"hooks\": [\n          \
                { \"type\": \"command\", \"command\": \"theirs\" }\n        ]\n      }\n    ]\n  \
                }\n}\n";
    let ours = "/p/pearing-cli --profile claude-code hook claude-code";
    let shared = text.replace(
        "\"theirs\" }",
        &format!("\"theirs\" }},\n          {{ \"type\": \"command\", \"command\": \"{ours}\" }}"),
    );
    assert_eq!(hooks(&shared), Ok(vec![("SessionEnd".to_owned(), ours.to_owned())]));
    assert_eq!(remove_hooks(&shared).as_deref(), Ok(text));
}

#[test]
fn what_cannot_be_changed_is_refused_without_its_text() {
    let server = entry("/p/pearing-cli", None).server();
    for (text, said) in [
        ("{\n  \"secret\": 1,\n  oops\n}", "line 3 is no JSON"),
        ("[\"secret\"]", "is no JSON object"),
        ("{\"mcpServers\": \"secret\"}", "mcpServers is no object"),
        (
            "{\"mcpServers\": {\"pearing\": {\"command\": \"secret\"}}}",
            "mcpServers.pearing is there",
        ),
        ("{\"mcpServers\": {\"pearing\": {\"url\": \"secret\"}}}", "mcpServers.pearing is there"),
    ] {
        let why = put_server(text, &server).expect_err(text);
        assert!(why.starts_with(said) && !why.contains("secret"), "{text}: {why}");
    }
    let hooks = entry("/p/pearing-cli", None).hooks();
    for text in ["{\"hooks\": []}", "{\"hooks\": {\"SessionEnd\": {}}}"] {
        assert!(put_hooks(text, &hooks).is_err(), "{text}");
    }
    let other = "{\"mcpServers\": {\"pearing\": {\"command\": \"x\", \"args\": [\"serve\"]}}}";
    assert_eq!(remove_server(other).as_deref(), Ok(other), "not ours");
}

#[test]
fn a_hook_of_another_program_is_not_ours_and_one_of_ours_is_put_right() {
    let theirs = r#"{"hooks": {"Stop": [{"hooks": [{"type": "command",
        "command": "acme hook claude-code --profile prod"}]}]}}"#;
    assert_eq!(remove_hooks(theirs).as_deref(), Ok(theirs));
    let [_, (put, _)] = edits();
    let good = put("{}").expect("it is put in");
    assert_eq!(put(&good.replace("\"timeout\": 15", "\"timeout\": 1")), Ok(good.clone()));
    assert!(!are_hooks_off(&good));
    assert!(are_hooks_off(&good.replacen('{', "{\"disableAllHooks\": true, ", 1)));
}
