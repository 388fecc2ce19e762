//! A server that signs: when it is asked, and by itself.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use pearing::audit::checkpoint::Key;
use serde_json::Value;

use super::{done, run};
use crate::support::{Client, SIGTERM, Server, eventually, pearing};

const PATH: &str = "/v1/admin/ledger/checkpoints";

fn path(server: &Server, name: &str) -> String {
    server.home().join(name).into_os_string().into_string().expect("it is text")
}

/// Makes a key and a folder for notes, and serves with them.
fn start(server: &mut Server, flags: &[&str]) {
    let [key, notes] = ["key", "notes"].map(|name| path(server, name));
    if !Path::new(&key).exists() {
        done(&["checkpoint-key", "--out", &key]);
        fs::create_dir(&notes).expect("the directory is ours");
    }
    let mut command = pearing(["dev", "--checkpoint-key", &key, "--checkpoint-dir", &notes]);
    command.args(flags);
    server.run(command);
}

fn end(server: &mut Server) {
    server.process().signal(SIGTERM);
    assert_eq!(server.exit_code(), Some(0));
}

/// The sequences of the notes that are kept.
fn kept(server: &Server) -> BTreeSet<u64> {
    let entries = fs::read_dir(path(server, "notes")).expect("it is there");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let sequence = |name: &str| name.strip_suffix(".checkpoint").and_then(|n| n.parse().ok());
    names.map(|name| sequence(name.to_str().expect("it is text")).expect("a note")).collect()
}

async fn head(server: &Server) -> u64 {
    server.client("claude").get("/v1/whoami").await.sequence()
}

/// The sequence of the last note, as the metrics tell it.
async fn told(server: &Server) -> String {
    let request = server.client_without_token().request("GET", "/metrics");
    let text = request.send().await.expect("it answers").text().await.expect("it is text");
    let line = text.lines().find_map(|line| line.strip_prefix("pearing_checkpoint_sequence "));
    line.expect("the metric is there").to_owned()
}

async fn is_told(server: &Server, sequence: u64) {
    eventually("the checkpoint of the start", || async {
        (told(server).await == sequence.to_string()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_server_signs_when_it_starts_and_when_it_ends_and_all_of_it_is_extended() {
    let mut server = Server::stopped();
    start(&mut server, &[]);
    let first = head(&server).await;
    is_told(&server, first).await;
    assert_eq!(kept(&server), [first].into());
    let held = server.client("claude").hold("a", 60).await;
    server.client("claude").release(&held).await.ticket(200);
    let second = head(&server).await;
    assert_eq!(kept(&server), [first].into(), "an hour isn't over");
    end(&mut server);
    assert_eq!(kept(&server), [first, second].into());

    start(&mut server, &[]);
    is_told(&server, second).await;
    end(&mut server);
    assert_eq!(kept(&server), [first, second].into(), "nothing has happened");

    // What a crash left unsigned is signed at the next start, with the event of that start.
    start(&mut server, &[]);
    server.client("claude").hold("b", 60).await;
    let unsigned = head(&server).await;
    server.kill();
    assert_eq!(kept(&server), [first, second].into());
    start(&mut server, &[]);
    is_told(&server, unsigned + 1).await;
    let last = kept(&server).last().copied();
    assert_eq!(last, Some(unsigned + 1));
    end(&mut server);

    let notes = path(&server, "notes");
    let files: Vec<String> =
        kept(&server).iter().map(|sequence| format!("{notes}/{sequence}.checkpoint")).collect();
    let (data, public) = (path(&server, "data"), path(&server, "key.pub"));
    let mut verify = vec!["verify", &data, "--checkpoint-key", &public];
    verify.extend(files.iter().flat_map(|file| ["--checkpoint", file]));
    assert!(done(&verify).ends_with("checkpoints that it extends: 3\n"));
}

#[tokio::test]
async fn a_note_that_can_not_be_kept_ends_nothing() {
    let mut server = Server::stopped();
    start(&mut server, &[]);
    is_told(&server, head(&server).await).await;
    fs::remove_dir_all(path(&server, "notes")).expect("it is ours");
    server.client("claude").hold("a", 60).await;
    server.process().signal(SIGTERM);
    assert_eq!(server.process().exit_code(), Some(0));
    let log = server.process().log();
    assert!(log.contains("no checkpoint could be kept") && log.contains("notes"), "{log}");
}

#[tokio::test]
async fn a_note_is_signed_on_demand_by_http_and_by_command() {
    let mut server = Server::stopped();
    start(&mut server, &[]);
    let (admin, claude) = (server.client("admin"), server.client("claude"));
    assert_eq!(claude.call("POST", PATH, None).await.says(), (403, "forbidden"));
    claude.hold("a", 60).await;
    let reply = admin.call("POST", PATH, None).await;
    assert_eq!((reply.status, reply.sequence()), (201, head(&server).await), "{}", reply.body);
    let text = |field: &str| reply.body[field].as_str().expect("it is text").to_owned();
    let body = [
        format!("ledger {}", text("ledger_id")),
        format!("sequence {}", reply.sequence()),
        format!("hash {}", text("hash")),
        format!("time {}", text("time")),
    ];
    let note = text("note");
    assert!(note.starts_with(&format!("pearing checkpoint 1\n{}\nsignature ", body.join("\n"))));
    assert_eq!(reply.body["sequence"].as_u64(), Some(reply.sequence()));
    let with_more = admin.post(PATH, serde_json::json!({ "sequence": 1 })).await;
    assert_eq!(with_more.says(), (422, "invalid-argument"));

    let file = path(&server, "note");
    let create = |client: &Client, format: &str, more: &[&str]| {
        let mut command = server.cli(client);
        command.env("PEARING_OUTPUT", format).arg("create-checkpoint").args(more);
        let output = command.output().expect("it runs");
        (output.status.code(), String::from_utf8(output.stdout).expect("it is text"))
    };
    // Nothing happened, so it is the same note each time.
    assert_eq!(create(&admin, "text", &[]), (Some(0), note.clone()));
    let (code, json) = create(&admin, "json", &[]);
    let json: Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!((code, &json), (Some(0), &reply.body));
    let (code, said) = create(&admin, "text", &["--out", &file]);
    assert!(code == Some(0) && said.starts_with("signed: record "), "{code:?} {said}");
    assert_eq!(fs::read_to_string(&file).expect("it was written"), note);
    assert_eq!(create(&admin, "text", &["--out", &file]), (Some(1), String::new()));
    assert_eq!(create(&claude, "text", &[]), (Some(7), String::new()));

    end(&mut server);
    let (data, public) = (path(&server, "data"), path(&server, "key.pub"));
    done(&["verify", &data, "--checkpoint", &file, "--checkpoint-key", &public]);
    server.serve();
    let refused = server.client("admin").call("POST", PATH, None).await;
    assert_eq!(refused.says(), (404, "not-found"));
    let why = refused.body["detail"].as_str().unwrap_or_default();
    assert!(why.contains("--checkpoint-key"), "it says what is missing: {why}");
}

#[tokio::test]
async fn a_server_that_could_not_sign_does_not_start_and_uses_up_no_grace() {
    let mut server = Server::stopped();
    start(&mut server, &[]);
    server.client("claude").hold("a", 60).await;
    server.kill();
    let before = done(&["export", &path(&server, "data")]);
    let at = |name: &str| path(&server, name);
    let (key, open, inside) = (at("key"), at("open"), at("data/key"));
    let (notes, within, none) = (at("notes"), at("data/notes"), at("none"));
    for copy in [&open, &inside] {
        fs::copy(&key, copy).expect("the directory is ours");
    }
    let mode: fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o604);
    fs::set_permissions(&open, mode).expect("the file is ours");
    fs::create_dir(&within).expect("the directory is ours");
    for (key, dir, words) in [
        (&inside, &notes, "must lie outside the data directory"),
        (&key, &within, "must lie outside the data directory"),
        (&key, &none, "is no folder"),
        (&open, &notes, "chmod 600"),
        (&none, &notes, "No such file"),
        (&at("key.pub"), &notes, "chmod 600"),
    ] {
        let place = server.place();
        let mut arguments = vec!["serve", "--checkpoint-key", key, "--checkpoint-dir", dir];
        arguments.extend(place.iter().map(String::as_str));
        let output = run(&arguments);
        let said = String::from_utf8(output.stderr).expect("it is text");
        assert!(output.status.code() == Some(1) && said.contains(words), "{words}: {said}");
    }
    assert_eq!(done(&["export", &at("data")]), before);
}

/// The key is nowhere but in its file: not in a log, an answer, a note, the data, or what the list
/// of processes shows.
#[tokio::test]
async fn the_key_is_nowhere_but_where_it_belongs() {
    let mut server = Server::stopped();
    let mut seed = [0; 32];
    pearing::random::fill(&mut seed);
    Key::from_random(&seed).write_pair(&server.home().join("key")).expect("it can be written");
    fs::create_dir(path(&server, "notes")).expect("the directory is ours");
    let pem = fs::read_to_string(path(&server, "key")).expect("it was written");
    let pem = pem.lines().nth(1).expect("it has lines").as_bytes().to_vec();
    let hex: String = seed.iter().map(|byte| format!("{byte:02x}")).collect();
    let secrets =
        [seed.to_vec(), pem[22..].to_vec(), hex.clone().into(), hex.to_uppercase().into()];

    let mut found: Vec<(String, Vec<u8>)> = Vec::new();
    start(&mut server, &["--log", "trace"]);
    is_told(&server, head(&server).await).await;
    let admin = server.client("admin");
    let reply = admin.call("POST", PATH, None).await;
    assert_eq!(reply.status, 201);
    found.push(("an answer".to_owned(), reply.body.to_string().into()));
    found.push(("its headers".to_owned(), format!("{:?}", reply.headers).into()));
    let refused = server.client("claude").call("POST", PATH, None).await;
    found.push(("a refusal".to_owned(), refused.body.to_string().into()));
    let output = server.cli(&admin).arg("create-checkpoint").output().expect("it runs");
    found.push(("a command".to_owned(), [output.stdout, output.stderr].concat()));
    let line = fs::read(format!("/proc/{}/cmdline", server.process().id()));
    found.push(("the process list".to_owned(), line.expect("it runs")));
    fs::remove_dir_all(path(&server, "notes")).expect("it is ours");
    server.client("claude").hold("a", 60).await;
    server.process().signal(SIGTERM);
    assert_eq!(server.process().exit_code(), Some(0));
    let log = server.process().log();
    assert!(log.contains("no checkpoint could be kept"), "what is written is looked at");
    found.push(("the log".to_owned(), log.into()));
    server.exit_code();

    let key = path(&server, "key");
    let half = fs::read_to_string(&key).expect("it is there").replacen('M', "N", 1);
    fs::write(path(&server, "half"), half).expect("the directory is ours");
    fs::set_permissions(path(&server, "half"), fs::metadata(&key).expect("a file").permissions())
        .expect("the file is ours");
    let data = path(&server, "data");
    for arguments in [
        ["checkpoint", "--key", &path(&server, "half"), &data],
        ["checkpoint", "--key", &key, &data],
        ["verify", "--checkpoint-key", &key, "--checkpoint=none"],
    ] {
        let mut command = pearing(["--log", "trace"]);
        let output = command.args(arguments).stdout(Stdio::piped()).output().expect("it runs");
        found.push((arguments[0].to_owned(), [output.stdout, output.stderr].concat()));
    }
    fs::remove_file(path(&server, "half")).expect("it is ours");
    add_files(&mut found, server.home());

    let holds = |text: &[u8], secret: &[u8]| text.windows(secret.len()).any(|part| part == secret);
    let places: Vec<&str> = found
        .iter()
        .filter(|(_, text)| secrets.iter().any(|secret| holds(text, secret)))
        .map(|(place, _)| place.as_str())
        .collect();
    assert_eq!(places, [key.as_str()]);
}

fn add_files(found: &mut Vec<(String, Vec<u8>)>, folder: &Path) {
    for entry in fs::read_dir(folder).expect("a folder can be read") {
        let path = entry.expect("an entry can be read").path();
        if path.is_dir() {
            add_files(found, &path);
        } else {
            found.push((path.display().to_string(), fs::read(&path).expect("it can be read")));
        }
    }
}
