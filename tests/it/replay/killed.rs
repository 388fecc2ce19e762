//! kill -9 of the tools that write, at random times: what they leave is not served, and the same
//! command again goes on and ends as if nothing had happened.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::copies::open;
use super::damage::{run, text};
use super::many;
use crate::support::{Process, SIGKILL, Server, pearing};

/// How often each tool is killed.
const KILLS: usize = 10;

/// Acquires and releases in the ledger that is copied: more than a tool writes at once, and more
/// than it reads in the shortest of its lives.
const ROUNDS: usize = 4_000;

/// How long a tool lives, in milliseconds.
const LIVES: std::ops::Range<u64> = 1..300;

/// Runs a tool and kills it; says whether it was done before.
async fn kill(words: &[&str]) -> bool {
    let mut tool = Process::start(&mut pearing(words.iter().copied()));
    let mut random = [0; 8];
    pearing::random::fill(&mut random);
    let life = LIVES.start + u64::from_le_bytes(random) % (LIVES.end - LIVES.start);
    tokio::time::sleep(Duration::from_millis(life)).await;
    tool.signal(SIGKILL);
    match tool.exit_code() {
        None => false,
        Some(code) => {
            assert_eq!(code, 0, "{words:?}: {}", tool.log());
            true
        }
    }
}

/// A server on a directory whose making was cut off doesn't start.
fn assert_not_served(data: &Path) {
    let ran = run(&["serve", "--data", text(data), "--listen", "127.0.0.1:0"]);
    // It may have been cut off before there was a place where that could be written.
    let is_begun = data.join("rocks/CURRENT").exists();
    let why: &[&str] = if is_begun {
        &["was cut off", "has no first record"]
    } else {
        &["holds no ledger", "has no rocks/CURRENT", "is unreadable"]
    };
    assert!(matches!(ran.code, Some(3 | 5)), "{:?} {}", ran.code, ran.said);
    assert!(why.iter().any(|why| ran.said.contains(why)), "{}", ran.said);
    assert!(ran.code == Some(5) || !is_begun, "{}", ran.said);
}

/// The tools that only read say the same of it.
fn assert_not_whole(data: &Path) {
    for words in [["verify", text(data)], ["replay", text(data)], ["export", text(data)]] {
        let ran = run(&words);
        assert!(matches!(ran.code, Some(3 | 5)), "{words:?}: {:?} {}", ran.code, ran.said);
    }
}

#[tokio::test]
async fn an_import_and_a_restore_that_were_killed_go_on_and_end_the_same() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let file = home.path().join("many.ledger");
    let whole = many::text(ROUNDS);
    fs::write(&file, &whole).expect("the disk isn't full");
    for (name, words) in [("import", ["import", text(&file)]), ("restore", ["restore", "--from"])] {
        let data = home.path().join(name);
        let mut words = words.to_vec();
        if name == "restore" {
            words.push(text(&file));
        }
        words.extend(["--data", text(&data)]);
        let mut unfinished = 0;
        for round in 0..KILLS {
            // It may have been killed after it was done, and before it could say so.
            if kill(&words).await || run(&["verify", text(&data)]).code == Some(0) {
                fs::remove_dir_all(&data).expect("it is there");
                continue;
            }
            assert_not_served(&data);
            if round % 3 == 0 && data.exists() {
                assert_not_whole(&data);
            }
            unfinished += 1;
        }
        println!("{name}: {unfinished} of {KILLS} were cut off");
        assert!(unfinished > 0, "it was never cut off");
        let ran = run(&words);
        assert_eq!(ran.code, Some(0), "{name}: {}", ran.said);
        assert_eq!(run(&["verify", text(&data)]).code, Some(0));
        assert!(run(&["export", text(&data)]).out.as_bytes() == whole, "{name}");
    }
}

#[tokio::test]
async fn a_backup_that_was_killed_is_none_and_goes_on() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let file = home.path().join("many.ledger");
    let whole = many::text(ROUNDS);
    fs::write(&file, &whole).expect("the disk isn't full");
    let to = home.path().join("backup");
    let words = ["backup", text(&file), "--to", text(&to)];
    let mut unfinished = 0;
    for _ in 0..KILLS {
        if kill(&words).await {
            assert_eq!(run(&["verify", text(&to)]).code, Some(0), "a backup is whole");
            fs::remove_dir_all(&to).expect("it is there");
            continue;
        }
        // It may have been killed after it was done, and before it could say so.
        if to.exists() {
            assert_eq!(run(&["verify", text(&to)]).code, Some(0), "a backup is whole");
            fs::remove_dir_all(&to).expect("it is there");
        }
        unfinished += 1;
    }
    println!("backup: {unfinished} of {KILLS} were cut off");
    assert!(unfinished > 0, "it was never cut off");
    let ran = run(&words);
    assert_eq!(ran.code, Some(0), "{}", ran.said);
    assert!(run(&["export", text(&to)]).out.as_bytes() == whole);
    assert_eq!(fs::read_dir(home.path()).expect("a folder").count(), 2, "nothing else is left");
    let ran = run(&words);
    assert_eq!(ran.code, Some(1), "a backup is never written over: {}", ran.said);
}

#[tokio::test]
async fn a_rebuild_that_was_killed_is_done_again() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let file = home.path().join("many.ledger");
    let whole = many::text(ROUNDS);
    fs::write(&file, &whole).expect("the disk isn't full");
    let data = home.path().join("data");
    assert_eq!(run(&["import", text(&file), "--data", text(&data)]).code, Some(0));
    let rows = super::shown::tables(&open(&data));
    let words = ["rebuild", "--data", text(&data)];
    let mut unfinished = 0;
    for _ in 0..KILLS {
        kill(&words).await;
        // Before it drops the tables nothing is changed, and after its end all is well.
        let ran = run(&["verify", text(&data)]);
        if ran.code != Some(0) {
            assert!(ran.said.contains("a rebuild of its tables was cut off"), "{}", ran.said);
            assert_not_served(&data);
            assert_not_whole(&data);
            unfinished += 1;
        }
    }
    println!("rebuild: {unfinished} of {KILLS} were cut off");
    assert_eq!(run(&words).code, Some(0));
    assert_eq!(run(&["verify", text(&data)]).code, Some(0));
    assert!(super::shown::tables(&open(&data)) == rows, "the tables are what they were");
    assert!(run(&["export", text(&data)]).out.as_bytes() == whole);
}

/// Strace ends the tool by itself, so that each step of its writing is hit, however fast it is.
#[test]
fn a_rebuild_that_ends_at_any_of_its_syncs_is_done_again() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let data = home.path().join("data");
    super::copies::import(&super::text_of("threads"), &data);
    let rows = super::shown::tables(&open(&data));
    let (mut unfinished, mut done) = (0, 0);
    for sync in 1..100 {
        let mut traced = Command::new("strace");
        let inject = format!("inject=fdatasync:signal=KILL:when={sync}");
        traced.args(["-f", "-qqq", "-o", "/dev/null", "-e", "trace=fdatasync", "-e", &inject]);
        let tool = pearing(["rebuild", "--data", text(&data)]);
        traced.arg(tool.get_program()).args(tool.get_args()).stdout(Stdio::null());
        let ended = traced.stderr(Stdio::null()).status().expect("strace is installed");
        if ended.success() {
            // How many syncs there are depends on what the rounds before have left.
            done += 1;
            if done == 5 {
                break;
            }
            continue;
        }
        let ran = run(&["verify", text(&data)]);
        if ran.code != Some(0) {
            assert!(ran.said.contains("a rebuild of its tables was cut off"), "{}", ran.said);
            assert_not_served(&data);
            unfinished += 1;
        }
    }
    println!("{unfinished} times the tables were gone");
    assert!(unfinished > 0, "it was never cut off in the middle");
    assert_eq!(run(&["rebuild", "--data", text(&data)]).code, Some(0));
    assert!(super::shown::tables(&open(&data)) == rows, "the tables are what they were");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_killed_server_leaves_verifies_and_has_all_that_it_answered() {
    const ROUNDS: usize = 5;
    let mut server = Server::start();
    let mut told = Vec::new();
    for round in 0..ROUNDS {
        let (claude, codex) = (server.client("claude"), server.client("codex"));
        let work = async |client: &crate::support::Client, name: &str| {
            let held = client.hold(&format!("{name}-{round}"), 60).await;
            let released = client.release(&held).await.ticket(200);
            [held, released].map(|ticket| ticket["sequence"].as_u64().expect("a number"))
        };
        for _ in 0..10 {
            let (one, other) = tokio::join!(work(&claude, "a"), work(&codex, "b"));
            told.extend(one.into_iter().chain(other));
        }
        server.kill();
        let data = server.data();
        let ran = run(&["verify", text(&data)]);
        assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.said);
        let exported = run(&["export", text(&data)]).out;
        for sequence in &told {
            let record = format!(" {{\"sequence\":{sequence},");
            assert!(exported.contains(&record), "record {sequence} was answered, and is gone");
        }
        server.serve();
    }
}
