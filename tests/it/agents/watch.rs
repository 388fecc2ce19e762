//! watch-ticket: an eye on a ticket that doesn't keep it alive.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Stdio};

use serde_json::{Value, json};

use super::Home;
use crate::support::{Client, REPO, Server, uuid};

/// A running watch-ticket.
struct Watch {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Watch {
    /// Watches a ticket as whoever is logged in.
    fn of(home: &Home, ticket: &Value) -> Self {
        let (lock, id) = (ticket["lock_name"].as_str(), ticket["ticket_id"].as_str());
        let (lock, id) = (lock.expect("a name"), id.expect("an id"));
        let mut command = home.cli(&format!("watch-ticket {lock} {id} --repo {REPO}"));
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it runs");
        let out = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { child, out }
    }

    /// The next line, which comes as soon as there is something to say.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("it prints UTF-8");
        line.trim_end().to_owned()
    }

    /// Its exit code and its last words.
    fn ended(mut self) -> (Option<i32>, String) {
        let mut words = String::new();
        self.out.read_to_string(&mut words).expect("it prints UTF-8");
        (self.child.wait().expect("it ends").code(), words.trim_end().to_owned())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn break_lock(server: &Server, ticket: &Value) {
    let path = format!("/v1/locks/{}/break?repo={REPO}", ticket["lock_name"].as_str().expect("it"));
    let body = json!({ "fence_token": ticket["fence_token"], "reason": "stuck" });
    assert_eq!(server.client("admin").post(&path, body).await.status, 200);
}

#[tokio::test]
async fn each_end_of_a_ticket_has_its_exit_code() {
    let server = Server::start();
    let home = Home::of(&server, "claude");
    let claude = server.client("claude");
    let watched = |ticket: &Value, says: &str| {
        let mut watch = Watch::of(&home, ticket);
        let line = watch.line();
        assert!(line.starts_with(says), "{line}");
        watch
    };
    let held = claude.hold("released", 60).await;
    let watch = watched(&held, "held, fence_token");
    claude.release(&held).await.ticket(200);
    let (code, last) = watch.ended();
    assert!(code == Some(0) && last.starts_with("released"), "{last}");

    let held = claude.hold("broken", 60).await;
    let watch = watched(&held, "held");
    break_lock(&server, &held).await;
    let (code, last) = watch.ended();
    assert!(code == Some(5) && last.ends_with("stuck"), "{last}");

    // It keeps nothing alive.
    let held = claude.hold("expired", 5).await;
    assert_eq!(watched(&held, "held").ended().0, Some(5));

    let blocking = server.client("codex").hold("queue", 60).await;
    let waiting = claude.wait_for("queue", 60).await;
    let mut watch = watched(&waiting, "waiting, position 1");
    server.client("codex").release(&blocking).await.ticket(200);
    assert!(watch.line().starts_with("held"), "it goes on when it is promoted");
    claude.release(&claude.look(&waiting).await).await.ticket(200);
    assert_eq!(watch.ended().0, Some(0));

    server.client("codex").hold("queue", 60).await;
    let waiting = claude.wait_for("queue", 60).await;
    let watch = watched(&waiting, "waiting");
    claude.release(&waiting).await.ticket(200);
    assert_eq!(watch.ended(), (Some(9), "cancelled".to_owned()));
    assert_eq!(Watch::of(&home, &waiting).ended(), (Some(9), "cancelled".to_owned()));
    let contended = claude.acquire("queue", json!({})).await.ticket(409);
    assert_eq!(Watch::of(&home, &contended).ended().0, Some(3));
    let unknown = json!({ "lock_name": "x", "ticket_id": uuid() });
    assert_eq!(Watch::of(&home, &unknown).ended(), (Some(5), String::new()));
}

#[tokio::test]
async fn an_owner_sees_its_ticket_end_after_it_lost_access() {
    let server = Server::start();
    let eve: Client = server.add_writer("eve").await;
    let home = Home::of(&server, "eve");
    let held = eve.hold("x", 60).await;
    let mut watch = Watch::of(&home, &held);
    assert!(watch.line().starts_with("held"));
    let path = "/v1/admin/teams/platform/members/eve";
    assert_eq!(server.client("admin").delete(path).await.status, 200);
    break_lock(&server, &held).await;
    assert_eq!(watch.ended().0, Some(5));
}

#[tokio::test]
async fn a_server_that_says_nothing_is_waited_for_until_the_lease_ends() {
    let mut server = Server::start();
    let home = Home::of(&server, "claude");
    let held = server.client("claude").hold("x", 5).await;
    let mut watch = Watch::of(&home, &held);
    assert!(watch.line().starts_with("held"));
    server.process().signal(rustix::process::Signal::STOP);
    assert_eq!(watch.ended().0, Some(8));
}

#[tokio::test]
async fn without_an_answer_until_the_lease_ends_nothing_can_be_said() {
    let mut server = Server::start();
    let home = Home::of(&server, "claude");
    let held = server.client("claude").hold("x", 5).await;
    let mut watch = Watch::of(&home, &held);
    assert!(watch.line().starts_with("held"));
    server.kill();
    assert_eq!(watch.ended().0, Some(8));
    assert_eq!(Watch::of(&home, &held).ended().0, Some(8), "nor if there never was one");
}
