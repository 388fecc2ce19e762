//! Signed checkpoints, from a key to a proof: with the real programs, and with openssl.

mod serving;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use pearing::ledger::{Hash, link};
use serde_json::Value;

use crate::support::{Process, SIGTERM, Server, pearing, shell};

/// Runs `pearing` to its end.
fn run(arguments: &[&str]) -> Output {
    pearing(arguments.iter().copied()).stdout(Stdio::piped()).output().expect("it runs")
}

/// What a run printed that must succeed.
#[track_caller]
fn done(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("it is text")
}

/// The exit code of a run that must fail, and what it said.
#[track_caller]
fn failed(arguments: &[&str]) -> (Option<i32>, String) {
    let output = run(arguments);
    assert!(!output.status.success(), "{arguments:?}: {output:?}");
    (output.status.code(), String::from_utf8(output.stderr).expect("it is text"))
}

/// What a line of a shell printed, which must succeed.
#[track_caller]
fn sh(folder: &Path, line: &str) -> String {
    let output = shell(folder, line).current_dir(folder).output().expect("there is a shell");
    assert!(output.status.success(), "{line}: {output:?}");
    String::from_utf8(output.stdout).expect("it is text")
}

/// A ledger with a past, at rest, and a folder for keys and notes.
struct Past(Server);

impl Past {
    async fn make() -> Self {
        let mut server = Server::start();
        let claude = server.client("claude");
        for name in ["one", "two", "three"] {
            let held = claude.hold(name, 60).await;
            claude.release(&held).await.ticket(200);
        }
        server.process().signal(SIGTERM);
        assert_eq!(server.exit_code(), Some(0));
        Self(server)
    }

    fn folder(&self) -> &Path {
        self.0.home()
    }

    fn path(&self, name: &str) -> String {
        self.folder().join(name).into_os_string().into_string().expect("it is text")
    }

    /// Makes a pair of keys, and with it a note of the last record.
    fn sign(&self) -> String {
        let [key, note, data] = ["key", "note", "data"].map(|name| self.path(name));
        done(&["checkpoint-key", "--out", &key]);
        done(&["checkpoint", "--key", &key, "--out", &note, &data])
    }

    /// Verifies a ledger, and that it extends the note.
    fn prove(&self, ledger: &str, more: &[&str]) -> Output {
        let [note, public] = ["note", "key.pub"].map(|name| self.path(name));
        let proof = ["verify", ledger, "--checkpoint", &note, "--checkpoint-key", &public];
        run(&[&proof[..], more].concat())
    }

    /// Writes a ledger as text, and the same as a data directory.
    fn write(&self, name: &str, lines: &[String]) -> [String; 2] {
        let [file, data] = ["ledger", "data"].map(|kind| self.path(&format!("{name}.{kind}")));
        fs::write(&file, lines.join("\n") + "\n").expect("the directory is ours");
        done(&["import", &file, "--data", &data]);
        [file, data]
    }
}

/// The lines with another text in them, and a chain that fits.
fn rewritten(lines: &[String], from: &str, to: &str) -> Vec<String> {
    let mut last = Hash::ZERO;
    let rewrite = |line: &String| {
        let record = line[65..].replace(from, to);
        last = link(&last, record.as_bytes());
        format!("{last} {record}")
    };
    lines.iter().map(rewrite).collect()
}

fn sequence_of(line: &str) -> u64 {
    let record: Value = serde_json::from_str(&line[65..]).expect("it is JSON");
    record["sequence"].as_u64().expect("it is a number")
}

#[tokio::test]
async fn a_cut_tail_and_a_rewritten_history_are_found_by_the_checkpoint_alone() {
    let past = Past::make().await;
    let (said, data) = (past.sign(), past.path("data"));
    let lines = done(&["export", &data]);
    let lines: Vec<String> = lines.lines().map(str::to_owned).collect();
    let last = sequence_of(lines.last().expect("it has records"));
    assert!(said.starts_with(&format!("signed: record {last} ")), "{said}");
    let good = past.prove(&data, &[]);
    let good = String::from_utf8(good.stdout).expect("it is text");
    assert!(good.ends_with("so are the tables\ncheckpoints that it extends: 1\n"), "{good}");

    let wrong = |ledger: &str| {
        let output = past.prove(ledger, &[]);
        assert_eq!(output.status.code(), Some(5), "{ledger}: {output:?}");
        let said = String::from_utf8(output.stderr).expect("it is text");
        assert!(said.starts_with(&format!("pearing: record {last}: ")), "{said}");
        said
    };
    for (name, lines, words) in [
        ("cut", lines[..lines.len() - 1].to_vec(), "the ledger ends with record"),
        ("rewritten", rewritten(&lines, "two", "six"), "was rewritten"),
    ] {
        for ledger in past.write(name, &lines) {
            let said = done(&["verify", &ledger]);
            assert!(said.starts_with("good: "), "in itself {ledger} is good: {said}");
            assert!(wrong(&ledger).contains(words), "{ledger}");
        }
    }

    // What was cut off and is served again jumps ahead: the record is lost for good.
    let cut = past.path("cut.data");
    let mut serve = pearing(["serve", "--listen", "127.0.0.1:0", "--data", &cut]);
    let mut served = Process::start(&mut serve);
    served.wait_for("start", |line| line.contains("serving").then_some(()));
    served.signal(SIGTERM);
    assert_eq!(served.exit_code(), Some(0));
    assert!(wrong(&cut).contains("goes on with ledger.restored"));
    let json = past.prove(&cut, &["--json"]).stdout;
    let json: Value = serde_json::from_slice(&json).expect("it is JSON");
    let said = (&json["is_good"], &json["fault"]["kind"], &json["fault"]["sequence"]);
    assert_eq!(said, (&false.into(), &"checkpoint".into(), &last.into()));
}

#[tokio::test]
async fn openssl_makes_keys_that_sign_and_checks_what_was_signed() {
    let past = Past::make().await;
    let folder = past.folder();
    past.sign();
    let check = "head -n 5 note > body
sed -n 's/^signature //p' note | base64 -d > signature
openssl pkeyutl -verify -pubin -inkey key.pub -rawin -in body -sigfile signature";
    let said = sh(folder, check);
    assert_eq!(said.trim(), "Signature Verified Successfully");
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md"));
    let readme = readme.expect("there is a README");
    for line in check.lines() {
        assert!(readme.contains(&format!("    {line}\n")), "the README says: {line}");
    }
    let changed =
        check.replace("head -n 5 note", "head -n 5 note | sed 's/sequence 1/sequence 2/'");
    let output = shell(folder, &changed).current_dir(folder).output().expect("there is a shell");
    assert_ne!(output.status.code(), Some(0), "openssl finds what was changed");

    fs::remove_file(folder.join("note")).expect("it was written");
    sh(folder, "openssl genpkey -algorithm ed25519 -out other && chmod 600 other");
    sh(folder, "openssl pkey -in other -pubout -out other.pub");
    sh(folder, "pearing checkpoint --key other data > note");
    sh(folder, &check.replace("key.pub", "other.pub"));
    sh(folder, "pearing verify --checkpoint note --checkpoint-key other.pub data");
    // Each reads what the other has made, and takes it for the same pair.
    assert_eq!(sh(folder, "openssl pkey -in key -pubout"), sh(folder, "cat key.pub"));
    let output = past.prove(&past.path("data"), &[]);
    let said = String::from_utf8(output.stderr).expect("it is text");
    assert!(output.status.code() == Some(5) && said.contains("not signed with this key"), "{said}");
}

#[tokio::test]
async fn what_could_do_harm_is_refused_before_anything_is_signed() {
    let past = Past::make().await;
    past.sign();
    let [data, key, public] = ["data", "key", "key.pub"].map(|name| past.path(name));
    let inside = past.path("data/key");
    fs::copy(&key, &inside).expect("the directory is ours");
    let link = past.path("link");
    std::os::unix::fs::symlink(&inside, &link).expect("the directory is ours");
    let open = past.path("open");
    sh(past.folder(), "cp key open && chmod 640 open");
    let (note, new) = (past.path("note"), past.path("data/note"));
    let signed = fs::read(&note).expect("it was written");
    let sign = |key: &str, more: &[&str]| {
        failed(&[&["checkpoint", "--key", key], more, &[&*data]].concat())
    };
    for ((code, said), words) in [
        (sign(&inside, &[]), "must lie outside the data directory"),
        (sign(&link, &[]), "must lie outside the data directory"),
        (sign(&key, &["--out", &new]), "must lie outside the data directory"),
        (sign(&open, &[]), "chmod 600"),
        (sign(&public, &[]), "chmod 600"),
        (sign(&key, &["--out", &note]), "exists"),
        (failed(&["checkpoint-key", "--out", &key]), "exists"),
    ] {
        assert!(code == Some(1) && said.contains(words), "{words}: {code:?} {said}");
    }
    assert!(!PathBuf::from(new).exists());
    assert_eq!(fs::read(&note).expect("it is there"), signed);
    let verify = |arguments: &[&str]| failed(&[&["verify", &*data], arguments].concat()).0;
    assert_eq!(verify(&["--checkpoint", &note]), Some(2), "with which key?");
    assert_eq!(verify(&["--checkpoint-key", &public]), Some(2), "of which checkpoint?");
    assert_eq!(verify(&["--checkpoint", &note, "--checkpoint-key", &key]), Some(1), "a secret one");

    // A ledger with a fault is not signed.
    let file = past.path("faulty.ledger");
    let lines = done(&["export", &data]).replacen("claude", "clauds", 1);
    fs::write(&file, lines).expect("the directory is ours");
    let output = run(&["checkpoint", "--key", &key, &file]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(5), 0), "{output:?}");
}
