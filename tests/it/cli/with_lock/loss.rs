//! The lock is lost, or may be: the command ends before anybody else begins.

use std::fs;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::json;

use super::{Log, Wrapper, by_way_of, events, is_running, left_of, owner, with_lock};
use crate::support::{REPO, Relay, Server, eventually};

/// Waits until somebody waits for the lock.
async fn somebody_waits(server: &Server) {
    eventually("somebody to wait", async || {
        let queue = server.client("admin").lock("x").await["queue"].clone();
        queue.as_array().is_some_and(|queue| !queue.is_empty()).then_some(())
    })
    .await;
}

/// A first command as claude, cut off from the server, and a second one that waits as codex: both
/// write into one file. Returns its lines, and what the first one's wrapper said.
async fn cut_off(script: impl Fn(&str) -> String) -> (Vec<String>, String) {
    let server = Server::start();
    let relay = Relay::before(server.url()).await;
    let (log, pid) = (Log::new(&server, "log"), Log::new(&server, "pid"));
    let script = format!("echo $$ > {}; {}", pid.path(), script(log.path()));
    let mut first =
        Wrapper::start(&mut by_way_of(&server, relay.url(), "--lease-seconds 5", &script));
    log.first().await;
    let second = format!("echo second >> {}", log.path());
    let flags = "--wait-seconds 600";
    let mut second =
        Wrapper::start(&mut with_lock(&server, "codex", flags, &["sh", "-c", &second]));
    somebody_waits(&server).await;
    relay.silence(true);
    assert_eq!(second.code().await, Some(0), "{}", second.said());
    assert_eq!(left_of(&pid.first().await), [""; 0], "nothing of the first one is left by then");
    relay.silence(false);
    assert_eq!(first.code().await, Some(125));
    assert_eq!(events(&server).await.last().map(String::as_str), Some("released"));
    (log.lines(), first.said())
}

#[tokio::test]
async fn cut_off_it_is_killed_by_its_own_deadline_before_the_next_holder_begins() {
    // Neither the command nor what it has started hears SIGTERM.
    let (lines, said) = cut_off(|log| {
        format!(
            "trap '' TERM; sleep 600 & \
             while :; do echo first >> {log}; sleep 0.02; done"
        )
    })
    .await;
    let (last, before) = lines.split_last().expect("there are lines");
    assert_eq!(last, "second");
    assert!(before.iter().all(|line| line == "first"), "{lines:?}");
    for word in ["the command was asked to end", "the command was killed", "(exit code 125)"] {
        assert!(said.contains(word), "{word}: {said}");
    }
}

#[tokio::test]
async fn cut_off_it_is_asked_to_end_while_there_is_time() {
    let (lines, said) = cut_off(|log| {
        format!(
            "trap 'echo asked >> {log}; exit 0' TERM; \
             while :; do echo first >> {log}; sleep 0.02; done"
        )
    })
    .await;
    let [.., asked, second] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!((asked.as_str(), second.as_str()), ("asked", "second"));
    assert!(said.contains("the command was asked to end"), "{said}");
    assert!(!said.contains("killed"), "{said}");
}

#[tokio::test]
async fn told_of_the_loss_the_whole_group_ends_also_when_its_leader_has_ended_before() {
    let server = Server::start();
    let (log, pid) = (Log::new(&server, "log"), Log::new(&server, "pid"));
    let script = format!(
        "echo $$ > {}; trap 'echo asked >> {log}; exit 0' TERM; \
         (trap '' TERM; echo below >> {log}; while :; do sleep 0.05; done) & wait",
        pid.path(),
        log = log.path()
    );
    let flags = "--lease-seconds 6 --grace 1";
    let mut wrapper =
        Wrapper::start(&mut with_lock(&server, "claude", flags, &["sh", "-c", &script]));
    log.first().await;
    let fence = server.client("admin").lock("x").await["fence_token"].clone();
    let body = json!({ "fence_token": fence, "reason": "stuck" });
    let path = format!("/v1/locks/x/break?repo={REPO}");
    assert_eq!(server.client("admin").post(&path, body).await.status, 200);
    assert_eq!(wrapper.code().await, Some(125));
    let said = wrapper.said();
    for word in ["ticket-not-held", "asked to end", "was killed", "the lock was lost, so"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    assert_eq!(log.lines(), ["below", "asked"]);
    let group = pid.first().await;
    eventually("the group's end", async || left_of(&group).is_empty().then_some(())).await;
}

#[tokio::test]
async fn access_that_is_taken_away_ends_it_at_its_deadline_and_not_before() {
    let server = Server::start();
    let log = Log::new(&server, "log");
    let script = format!(
        "trap 'echo asked >> {log}; exit 0' TERM; echo begins >> {log}; \
         while :; do sleep 0.02; done",
        log = log.path()
    );
    let mut wrapper = Wrapper::start(&mut with_lock(
        &server,
        "claude",
        "--lease-seconds 5",
        &["sh", "-c", &script],
    ));
    log.first().await;
    server.join_team("claude", "read").await;
    assert_eq!(wrapper.code().await, Some(125));
    let said = wrapper.said();
    assert!(said.contains("forbidden") && said.contains("would have been lost"), "{said}");
    assert_eq!(log.lines(), ["begins", "asked"]);
    assert_eq!(events(&server).await.last().map(String::as_str), Some("released"), "it still can");
}

#[tokio::test]
async fn a_wrapper_that_is_killed_takes_its_command_along_and_the_lock_ends_with_the_lease() {
    let server = Server::start();
    let pid = Log::new(&server, "pid");
    let script = format!("echo $$ > {}; exec sleep 600", pid.path());
    let mut wrapper = Wrapper::start(&mut with_lock(
        &server,
        "claude",
        "--lease-seconds 5",
        &["sh", "-c", &script],
    ));
    let pid = pid.first().await;
    wrapper.signal(Signal::KILL);
    wrapper.status().await;
    eventually("the command's end", async || (!is_running(&pid)).then_some(())).await;
    eventually("the lock to be free", async || owner(&server).await.is_null().then_some(())).await;
    assert_eq!(events(&server).await.last().map(String::as_str), Some("expired"));
}

#[tokio::test]
async fn it_survives_a_server_that_is_killed_and_a_network_that_is_cut_while_the_lease_lasts() {
    let mut server = Server::start();
    let relay = Relay::before(server.url()).await;
    let (log, go) = (Log::new(&server, "log"), Log::new(&server, "go"));
    let script = format!(
        "echo begins >> {log}; while [ ! -e {go} ]; do sleep 0.05; done; \
         echo ends >> {log}; exit 3",
        log = log.path(),
        go = go.path()
    );
    let mut wrapper =
        Wrapper::start(&mut by_way_of(&server, relay.url(), "--lease-seconds 15", &script));
    log.first().await;
    let is_heartbeaten = async |server: &Server| {
        let before = events(server).await.len();
        eventually("a heartbeat", async || {
            let events = events(server).await;
            let is_new = events.len() > before && events.last().is_some_and(|e| e == "heartbeat");
            is_new.then_some(())
        })
        .await;
    };
    server.crash();
    relay.lead_to(server.url());
    is_heartbeaten(&server).await;
    relay.silence(true);
    tokio::time::sleep(std::time::Duration::from_secs(6)).await;
    relay.silence(false);
    is_heartbeaten(&server).await;
    fs::write(go.path(), "").expect("the directory is ours");
    assert_eq!(wrapper.code().await, Some(3));
    assert_eq!(log.lines(), ["begins", "ends"]);
    assert!(owner(&server).await.is_null());
    assert_eq!(wrapper.said(), "");
}

#[tokio::test]
async fn a_release_that_fails_is_a_warning_and_the_commands_code_stays() {
    let mut server = Server::start();
    let (log, go) = (Log::new(&server, "log"), Log::new(&server, "go"));
    let script = format!(
        "echo begins >> {}; while [ ! -e {} ]; do sleep 0.05; done; exit 3",
        log.path(),
        go.path()
    );
    let mut wrapper = Wrapper::start(&mut with_lock(&server, "claude", "", &["sh", "-c", &script]));
    log.first().await;
    server.kill();
    fs::write(go.path(), "").expect("the directory is ours");
    assert_eq!(wrapper.code().await, Some(3));
    let said = wrapper.said();
    assert!(said.contains("warning: the lock is not released"), "{said}");
    assert!(said.contains("pearing-cli release-lock-ticket x "), "{said}");
}

#[tokio::test]
async fn a_loss_that_the_release_tells_of_makes_no_success() {
    let server = Server::start();
    let admin = server.client("admin");
    for (code, expected) in [(0, 125), (3, 3)] {
        let (log, go) = (Log::new(&server, &format!("log{code}")), Log::new(&server, "go"));
        let script = format!(
            "echo begins >> {}; while [ ! -e {} ]; do sleep 0.05; done; exit {code}",
            log.path(),
            go.path()
        );
        let command = ["sh", "-c", &script];
        let mut wrapper = Wrapper::start(&mut with_lock(&server, "claude", "", &command));
        log.first().await;
        let fence = server.client("claude").lock("x").await["fence_token"].clone();
        let body = json!({ "fence_token": fence, "reason": "a test" });
        let broken = admin.post(&format!("/v1/locks/x/break?repo={REPO}"), body).await;
        assert_eq!(broken.status, 200, "{}", broken.body);
        // Long before the next heartbeat.
        fs::write(go.path(), "").expect("the directory is ours");
        assert_eq!(wrapper.code().await, Some(expected));
        let said = wrapper.said();
        assert!(said.contains("the lock was lost before its release"), "{said}");
        fs::remove_file(go.path()).expect("it is there");
    }
}

#[tokio::test]
async fn a_process_that_was_stopped_past_its_lease_ends_its_command_and_says_so() {
    let server = Server::start();
    let pid = Log::new(&server, "pid");
    let script = format!("trap '' TERM; echo $$ > {}; while :; do sleep 0.05; done", pid.path());
    let mut wrapper = Wrapper::start(&mut with_lock(
        &server,
        "claude",
        "--lease-seconds 5",
        &["sh", "-c", &script],
    ));
    let group = pid.first().await;
    wrapper.signal(Signal::STOP);
    let id = group.parse().ok().and_then(Pid::from_raw).expect("a process id");
    kill_process_group(id, Signal::STOP).expect("it runs");
    eventually("the lock to be free", async || owner(&server).await.is_null().then_some(())).await;
    wrapper.signal(Signal::CONT);
    assert_eq!(wrapper.code().await, Some(125));
    assert!(wrapper.said().contains("the lock is lost"), "it says why");
    eventually("the group's end", async || left_of(&group).is_empty().then_some(())).await;
}
