//! The feed as curl reads it, frame by frame.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

use super::{Client, PATIENCE, Server};

/// What stands between two blank lines.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Frame {
    /// An event, or a control frame.
    Event(Event),
    /// A comment.
    Comment,
    /// How long to wait before coming back, in milliseconds.
    Retry(u64),
}

/// A frame with a name.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) data: Value,
}

/// A running `curl -N`. It is killed when it is dropped.
pub(crate) struct Feed {
    curl: Child,
    /// The status and header lines.
    head: Vec<String>,
    frames: UnboundedReceiver<Frame>,
}

impl Feed {
    /// Connects, and returns when the answer's head has come.
    pub(crate) async fn open(
        server: &Server,
        client: &Client,
        query: &str,
        last_event_id: Option<&str>,
    ) -> Self {
        let bearer = client.token_if_any().map(|token| format!("Authorization: Bearer {token}"));
        Self::open_with(server, bearer.as_deref(), query, last_event_id).await
    }

    /// The same, with a header that nobody may see.
    pub(crate) async fn open_with(
        server: &Server,
        secret: Option<&str>,
        query: &str,
        last_event_id: Option<&str>,
    ) -> Self {
        let url = format!("{}/v1/events{query}", server.url());
        let mut command = Command::new("curl");
        command.args(["--no-buffer", "--silent", "--include", "--globoff", "--max-time", "120"]);
        command.args(["--noproxy", "*", "--header", "Accept: text/event-stream"]);
        if let Some(id) = last_event_id {
            // With a semicolon curl sends a header that is empty.
            let header = if id.is_empty() { "Last-Event-ID;" } else { "Last-Event-ID: " };
            command.args(["--header", &format!("{header}{id}")]);
        }
        // The secret comes by a pipe: nobody finds it in the list of processes.
        command.args(["--config", "-", &url]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut curl = command.spawn().expect("curl is installed");
        let mut config = curl.stdin.take().expect("stdin is piped");
        if let Some(secret) = secret {
            let header = format!("header = \"{secret}\"\n");
            config.write_all(header.as_bytes()).expect("curl reads its configuration");
        }
        drop(config);
        let stdout = curl.stdout.take().expect("stdout is piped");
        let (head_sender, mut heads) = unbounded_channel();
        let (frame_sender, frames) = unbounded_channel();
        // It ends by itself, with curl.
        let reader = std::thread::Builder::new().name("test-feed".to_owned());
        let reader = reader.spawn(move || read(stdout, &head_sender, &frame_sender));
        reader.expect("there can be a further thread");
        let head = timeout(PATIENCE, heads.recv()).await.expect("an answer comes");
        Self { curl, head: head.expect("the answer has a head"), frames }
    }

    /// The status of the answer.
    pub(crate) fn status(&self) -> u16 {
        let status = self.head.first().and_then(|line| line.split(' ').nth(1));
        status.and_then(|text| text.parse().ok()).expect("the first line has the status")
    }

    /// A header of the answer.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.iter().filter_map(|line| line.split_once(':'));
        let (_, value) = lines.find(|(key, _)| key.eq_ignore_ascii_case(name))?;
        Some(value.trim())
    }

    /// The next frame; `None` when the feed has ended.
    pub(crate) async fn frame(&mut self) -> Option<Frame> {
        timeout(PATIENCE, self.frames.recv()).await.expect("a frame comes in time")
    }

    /// The next frame with a name; `None` when the feed has ended.
    pub(crate) async fn event(&mut self) -> Option<Event> {
        loop {
            match self.frame().await? {
                Frame::Event(event) => return Some(event),
                Frame::Comment | Frame::Retry(_) => {}
            }
        }
    }

    /// The events up to the control frame that says that history is behind, which is the last.
    pub(crate) async fn until_caught_up(&mut self) -> Vec<Event> {
        self.until(|event| event.name == "caught-up").await
    }

    /// The events up to the one that is looked for, which is the last.
    pub(crate) async fn until(&mut self, is_last: impl Fn(&Event) -> bool) -> Vec<Event> {
        let mut events = Vec::new();
        let found = timeout(PATIENCE, async {
            while let Some(event) = self.event().await {
                events.push(event);
                if events.last().is_some_and(&is_last) {
                    return true;
                }
            }
            false
        });
        let found = found.await;
        assert_eq!(found, Ok(true), "what was looked for did not come: {events:?}");
        events
    }

    /// Everything that comes before the server ends the feed, which it must do.
    pub(crate) async fn until_its_end(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        let ended = timeout(PATIENCE, async {
            while let Some(event) = self.event().await {
                events.push(event);
            }
        });
        let ended = ended.await;
        assert!(ended.is_ok(), "the feed goes on: {events:?}");
        let status = self.curl.wait().expect("a child can be waited for");
        assert!(status.success(), "the feed was torn off: {status}");
        events
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.curl.kill();
        let _ = self.curl.wait();
    }
}

/// Takes an answer apart until it ends, or nobody listens any more.
fn read(
    answer: impl Read,
    heads: &UnboundedSender<Vec<String>>,
    frames: &UnboundedSender<Frame>,
) -> Option<()> {
    let mut lines = BufReader::new(answer).lines().map_while(Result::ok);
    heads.send(lines.by_ref().take_while(|line| !line.trim().is_empty()).collect()).ok()?;
    let mut block = Vec::new();
    for line in lines {
        if let Some(retry) = line.strip_prefix("retry: ") {
            // It stands in the first frame, and is told by itself.
            frames.send(Frame::Retry(retry.parse().expect("retry is a number"))).ok()?;
        } else if !line.is_empty() {
            block.push(line);
        } else if let Some(frame) = parse(&std::mem::take(&mut block)) {
            frames.send(frame).ok()?;
        }
    }
    Some(())
}

/// A frame; `None` for what is none, as the body of a problem.
fn parse(block: &[String]) -> Option<Frame> {
    if !block.is_empty() && block.iter().all(|line| line.starts_with(':')) {
        return Some(Frame::Comment);
    }
    let field = |name: &str| {
        let mut fields = block.iter().filter_map(|line| line.split_once(": "));
        fields.find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    Some(Frame::Event(Event {
        id: field("id")?.parse().expect("an id is a sequence"),
        name: field("event")?.to_owned(),
        data: serde_json::from_str(field("data")?).expect("data is JSON on one line"),
    }))
}
