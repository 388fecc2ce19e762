//! How a server ends, and when it doesn't start: exit codes, and what is still answered.

use std::net::TcpListener;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{Client, Feed, Process, REPO, SIGTERM, Server, path_of, pearing, uuid};

/// A command whose body has come by half: the server has to wait for the rest.
struct HalfSent {
    socket: TcpStream,
    rest: String,
}

impl HalfSent {
    async fn start(server: &Server, client: &Client, path: &str, body: &str) -> Self {
        let address = server.url().trim_start_matches("http://");
        let mut socket = TcpStream::connect(address).await.expect("the server listens");
        let (first, rest) = body.split_at(body.len() / 2);
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\
             Expect: 100-continue\r\n\r\n",
            client.token(),
            body.len(),
        );
        socket.write_all(head.as_bytes()).await.expect("the server reads");
        // Said once the server has the head and asks for the body: now the request is in flight.
        let mut go_on = [0; "HTTP/1.1 100 Continue\r\n\r\n".len()];
        socket.read_exact(&mut go_on).await.expect("the server answers");
        assert_eq!(&go_on[..], b"HTTP/1.1 100 Continue\r\n\r\n");
        socket.write_all(first.as_bytes()).await.expect("the server reads");
        Self { socket, rest: rest.to_owned() }
    }

    /// The whole answer, up to where the server closes the connection.
    async fn finish(mut self) -> String {
        self.socket.write_all(self.rest.as_bytes()).await.expect("the server reads");
        let mut answer = String::new();
        self.socket.read_to_string(&mut answer).await.expect("an answer in UTF-8");
        answer
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_answers_what_is_in_flight_and_exits_0() {
    let mut server = Server::start();
    let (claude, codex) = (server.client("claude"), server.client("codex"));
    let held = claude.hold("x", 60).await;
    let waiting = codex.wait_for("x", 60).await;
    let mut feed = Feed::open(&server, &claude, "", None).await;
    feed.until_caught_up().await;
    let poll = |seconds: u32| {
        let request = codex.request("GET", &path_of(&waiting, ""));
        Client::send(request.header("Prefer", format!("wait={seconds}")))
    };
    let long_poll = tokio::spawn(poll(25));
    // A later one that has been held back for a second: so the first one is there as well.
    poll(1).await.expect("it is answered").ticket(200);
    let heartbeat = path_of(&held, "/heartbeat");
    let heartbeat = HalfSent::start(&server, &claude, &heartbeat, r#"{"lease_seconds":60}"#).await;
    let acquire = format!("/v1/locks/y/tickets?repo={REPO}");
    let body = json!({ "request_uuid": uuid() }).to_string();
    let acquire = HalfSent::start(&server, &claude, &acquire, &body).await;
    let began = pearing::clock::monotonic();
    server.process().signal(SIGTERM);
    server.process().wait_for("word of the drain", |line| line.contains("draining").then_some(()));
    let polled = long_poll.await.expect("it does not panic").expect("it is answered");
    assert_eq!(polled.ticket(200)["state"], "waiting");
    let answer = heartbeat.finish().await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "a holder can still heartbeat: {answer}");
    let answer = acquire.finish().await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "no new acquires: {answer}");
    assert!(answer.to_lowercase().contains("\r\nretry-after: 1\r\n"), "{answer}");
    assert!(answer.contains(r#""code":"busy""#), "{answer}");
    feed.until_its_end().await;
    assert_eq!(server.exit_code(), Some(0));
    assert!(pearing::clock::elapsed(began).as_secs() < 10, "nobody was waited for in vain");

    server.serve();
    let claude = server.client("claude");
    assert_eq!(claude.look(&held).await["fence_token"], held["fence_token"]);
    assert_eq!(claude.lock("y").await["owner"], json!(null));
}

#[tokio::test]
async fn a_second_server_on_the_same_data_is_refused() {
    let server = Server::start();
    for command in ["serve", "dev"] {
        let mut second = Process::start(pearing([command]).args(server.place()));
        assert_eq!(second.exit_code(), Some(4), "{}", second.log());
        let log = second.log();
        let path = server.data().display().to_string();
        assert!(log.contains("is in use: another server") && log.contains(&path), "{log}");
    }
    assert_eq!(server.client("claude").get("/v1/whoami").await.status, 200, "the first goes on");
}

#[test]
fn missing_data_is_refused_and_nothing_is_made() {
    let server = Server::stopped();
    let mut process = Process::start(pearing(["serve"]).args(server.place()));
    assert_eq!(process.exit_code(), Some(3), "{}", process.log());
    assert!(process.log().contains("holds no ledger"), "{}", process.log());
    assert!(!server.data().exists());
    std::fs::create_dir(server.data()).expect("an empty directory");
    let mut process = Process::start(pearing(["serve"]).args(server.place()));
    assert_eq!(process.exit_code(), Some(3), "{}", process.log());
    let left = std::fs::read_dir(server.data()).expect("it is still there").count();
    assert_eq!(left, 0, "nothing is made");
}

#[test]
fn a_taken_address_is_refused() {
    let mut server = Server::start();
    server.kill();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("it is bound").to_string();
    let [data, path, listen, _] = server.place();
    let mut process =
        Process::start(pearing(["serve"]).args([data, path, listen, address.clone()]));
    assert_eq!(process.exit_code(), Some(7), "{}", process.log());
    assert!(process.log().contains(&format!("can't listen on {address}")), "{}", process.log());
    server.serve();
}

#[test]
fn init_prints_the_token_alone_and_touches_nothing_that_is_there() {
    let server = Server::stopped();
    let data = server.data().to_string_lossy().into_owned();
    let init = |admin: &str| {
        let mut command = pearing(["init", "--data", &data, "--admin", admin]);
        let output = command.stdout(std::process::Stdio::piped()).output().expect("it runs");
        (output.status.code(), String::from_utf8(output.stdout).expect("UTF-8"))
    };
    let (code, printed) = init("ana");
    assert_eq!(code, Some(0));
    assert!(printed.starts_with("pearing_") && printed.lines().count() == 1, "one line");
    assert_eq!(init("bo"), (Some(1), String::new()));
    let (code, _) = init("Not A Name");
    assert_eq!(code, Some(2));
}
