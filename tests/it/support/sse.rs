//! A reader of server-sent events over a bare socket, as the standard has them and no more.

use std::collections::VecDeque;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{Client, PATIENCE, Server};

/// How much is read at once.
const PIECE_BYTES: usize = 8 * 1024;

/// What a reader is told of by name: an event, or a frame of the feed's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SseFrame {
    /// The last id, which the reader comes back with.
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) data: String,
}

impl SseFrame {
    /// The sequence.
    pub(crate) fn sequence(&self) -> u64 {
        self.id.parse().expect("an id is a sequence")
    }

    /// Whether it is none of the feed's own.
    pub(crate) fn is_event(&self) -> bool {
        !["caught-up", "checkpoint", "reset"].contains(&self.name.as_str())
    }
}

/// Takes a stream apart, however it comes in pieces.
#[derive(Debug, Default)]
pub(crate) struct SseParser {
    line: Vec<u8>,
    id: String,
    name: String,
    data: Option<String>,
}

impl SseParser {
    /// The frames that these bytes complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<SseFrame> {
        let mut frames = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                frames.extend(self.end_of_line());
            }
        }
        frames
    }

    fn end_of_line(&mut self) -> Option<SseFrame> {
        let line = String::from_utf8(std::mem::take(&mut self.line)).expect("it is UTF-8");
        let line = line.trim_end_matches('\n');
        assert!(!line.contains('\r'), "another end of a line");
        if line.is_empty() {
            let name = std::mem::take(&mut self.name);
            let data = self.data.take()?;
            return Some(SseFrame { id: self.id.clone(), name, data });
        }
        match line.split_once(": ") {
            Some(("id", value)) => value.clone_into(&mut self.id),
            Some(("event", value)) => value.clone_into(&mut self.name),
            Some(("data", value)) => {
                assert!(self.data.replace(value.to_owned()).is_none(), "data on two lines");
            }
            Some(("retry", _)) => {}
            Some(_) | None => assert!(line.starts_with(':'), "no field: {line}"),
        }
        None
    }
}

/// A feed over a socket of its own. When it is dropped the peer sees a reset, as of one that is
/// gone.
#[derive(Debug)]
pub(crate) struct RawFeed {
    socket: TcpStream,
    head: String,
    /// What came of the body and was not yet taken.
    body: VecDeque<u8>,
    parser: SseParser,
    frames: VecDeque<SseFrame>,
}

impl RawFeed {
    /// Asks for a feed, and returns when the answer's head has come.
    pub(crate) async fn open(
        server: &Server,
        client: &Client,
        query: &str,
        last_event_id: Option<&str>,
    ) -> Self {
        Self::open_with(server, client, query, last_event_id, "", None).await
    }

    /// The same, with further headers, and with so many bytes for what was not read yet.
    pub(crate) async fn open_with(
        server: &Server,
        client: &Client,
        query: &str,
        last_event_id: Option<&str>,
        headers: &str,
        receive_bytes: Option<u32>,
    ) -> Self {
        let socket = TcpSocket::new_v4().expect("there can be a further socket");
        if let Some(bytes) = receive_bytes {
            socket.set_recv_buffer_size(bytes).expect("a small buffer is allowed");
        }
        let address = address(server);
        let mut socket = socket.connect(address).await.expect("the server listens");
        socket.set_zero_linger().expect("it is open");
        let id = last_event_id.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        // Of the older version, which has no chunks: what comes after the head is the stream.
        let request = format!(
            "GET /v1/events{query} HTTP/1.0\r\nHost: {address}\r\nAccept: text/event-stream\r\n\
             Authorization: Bearer {}\r\n{id}{headers}\r\n",
            client.token()
        );
        socket.write_all(request.as_bytes()).await.expect("the server reads");
        let (parser, frames) = (SseParser::default(), VecDeque::new());
        let (head, body) = (String::new(), VecDeque::new());
        let mut feed = Self { socket, head, body, parser, frames };
        feed.read_head().await;
        feed
    }

    async fn read_head(&mut self) {
        let mut bytes = Vec::new();
        let end = loop {
            if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            let mut piece = [0; 1024];
            let read = timeout(PATIENCE, self.socket.read(&mut piece)).await;
            let read = read.expect("an answer comes").expect("the connection holds");
            assert!(read > 0, "the answer has a head");
            bytes.extend_from_slice(&piece[..read]);
        };
        self.body.extend(&bytes[end..]);
        bytes.truncate(end);
        self.head = String::from_utf8(bytes).expect("a head is ASCII").to_ascii_lowercase();
    }

    /// The status and header lines, in lower case.
    pub(crate) fn head(&self) -> &str {
        &self.head
    }

    /// The next piece of the body; none when it has ended.
    pub(crate) async fn read(&mut self) -> std::io::Result<Vec<u8>> {
        if !self.body.is_empty() {
            return Ok(std::mem::take(&mut self.body).into());
        }
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        let read = timeout(PATIENCE, self.socket.read_buf(&mut piece)).await;
        read.expect("something comes in time")?;
        Ok(piece)
    }

    /// The next frame; `None` when the feed has ended, or was torn off.
    pub(crate) async fn frame(&mut self) -> Option<SseFrame> {
        while self.frames.is_empty() {
            let piece = self.read().await.unwrap_or_default();
            if piece.is_empty() {
                return None;
            }
            self.frames.extend(self.parser.push(&piece));
        }
        self.frames.pop_front()
    }

    /// The next event; `None` when the feed has ended, or was torn off.
    pub(crate) async fn event(&mut self) -> Option<SseFrame> {
        loop {
            let frame = self.frame().await?;
            if frame.is_event() {
                return Some(frame);
            }
        }
    }

    /// Waits for history to be behind.
    pub(crate) async fn caught_up(&mut self) {
        while self.frame().await.expect("the feed goes on").name != "caught-up" {}
    }
}

/// Where a server listens.
pub(crate) fn address(server: &Server) -> SocketAddr {
    let address = server.url().strip_prefix("http://").expect("it is an address");
    address.parse().expect("it is an address")
}
