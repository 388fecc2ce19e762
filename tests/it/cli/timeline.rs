//! What happened to locks, drawn by both programs.

use serde_json::json;

use super::{ended, program, said};
use crate::support::{REPO, Server, pearing};

/// What `pearing` prints.
fn offline(words: &[&str]) -> (Option<i32>, String, String) {
    let mut command = pearing(words.iter().copied());
    let output = command.stdout(std::process::Stdio::piped()).output().expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("it prints UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[tokio::test]
async fn a_server_a_directory_and_an_export_are_drawn_alike() {
    let mut server = Server::start();
    let (claude, codex) = (server.client("claude"), server.client("codex"));
    let held = claude.hold("x", 60).await;
    let waiting = codex.wait_for("x", 60).await;
    claude.release(&held).await.ticket(200);
    codex.release(&codex.look(&waiting).await).await.ticket(200);
    let of = |rest: &str| said(&server, "claude", &format!("lock-timeline {rest} --repo {REPO}"));
    let (code, text, stderr) = of("x");
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(text.starts_with(&format!("x in {REPO}\n")) && text.contains('┃'), "{text}");
    let (_, all, _) = said(&server, "claude", &format!("lock-timeline --repo {REPO}"));
    assert!(all.starts_with(&format!("Locks of {REPO}\n")), "{all}");
    let (code, picture, _) = of("x --svg");
    assert_eq!(code, Some(0));
    roxmltree::Document::parse(&picture).expect("it is well-formed");
    assert!(picture.contains("claude"), "whose hold it is, though it was short: {picture}");
    let (_, narrow, _) = of("x --width 50");
    assert!(narrow.lines().all(|line| line.chars().count() <= 50), "{narrow}");
    let folder = tempfile::tempdir().expect("there can be a temporary directory");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (code, nothing, _) = of(&format!("x --svg --out {}", path("x.svg")));
    assert_eq!((code, nothing.as_str()), (Some(0), ""));
    assert_eq!(std::fs::read_to_string(path("x.svg")).expect("it was written"), picture);
    let words = ["lock-timeline", "x", "--repo", REPO, "--json"];
    let mut command = program(server.home(), &words);
    command.env("PEARING_URL", server.url()).env("PEARING_TOKEN", claude.token());
    assert_eq!(ended(command.output().expect("it runs")).json, json!(text));
    let from = held["sequence"].to_string();
    let (code, part, _) = of(&format!("x --from {from} --to {from}"));
    assert!(code == Some(0) && part.contains("→ goes on"), "{part}");
    assert_eq!(of("x --from 999999").0, Some(2));
    assert_eq!(of("x/y").0, Some(2));

    server.kill();
    let data = server.data().display().to_string();
    let ledger = path("all.ledger");
    assert_eq!(offline(&["export", "--data", &data, "--out", &ledger]).0, Some(0));
    for words in [vec!["x", &data], vec!["x", "--data", &data], vec!["x", &ledger]] {
        let words = [vec!["timeline", "--repo", REPO], words].concat();
        assert_eq!(offline(&words), (Some(0), text.clone(), String::new()), "{words:?}");
        let (_, drawn, _) = offline(&[&words[..], &["--svg"]].concat());
        assert_eq!(drawn, picture, "{words:?}");
    }
    let (code, of_all, _) = offline(&["timeline", "--repo", REPO, &ledger]);
    assert_eq!((code, of_all), (Some(0), all));
    let coloured = offline(&["timeline", "--repo", REPO, "--color", &ledger]).1;
    assert!(coloured.contains("\u{1b}[38;5;"), "{coloured}");
    let out = path("again.svg");
    let words = ["timeline", "x", &data, "--repo", REPO, "--svg", "--out", &out];
    assert_eq!(offline(&words), (Some(0), String::new(), String::new()));
    assert_eq!(std::fs::read_to_string(&out).expect("it was written"), picture);
    for (words, says) in [
        (vec!["x/y", &ledger], "the lock's name must match"),
        (vec!["x", &ledger, "--from", "999999"], "from must be"),
        (vec!["x", &ledger, "--from", "9", "--to", "8"], "from must be"),
        (vec![], "which ledger?"),
    ] {
        let words = [vec!["timeline", "--repo", REPO], words].concat();
        let (code, stdout, stderr) = offline(&words);
        assert_eq!((code, stdout.as_str()), (Some(1), ""), "{words:?}: {stderr}");
        assert!(stderr.contains(says), "{words:?}: {stderr}");
    }
}
