//! A proxy on the way to a server, which tears connections off where it is told to.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::Server;
use super::sse::address;

/// The proxy. It ends when it is dropped.
pub(crate) struct Cutter {
    url: String,
    /// After how many bytes of an answer, its head not counted, the next connection is cut.
    cut_after: Arc<Mutex<Option<usize>>>,
    task: JoinHandle<()>,
}

impl Cutter {
    /// A proxy that cuts nothing yet.
    pub(crate) async fn start(server: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let (cut_after, server) = (Arc::<Mutex<Option<usize>>>::default(), address(server));
        let cuts = Arc::clone(&cut_after);
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let cut_after = cuts.lock().expect("nobody panics with it").take();
                tokio::spawn(pass(client, server, cut_after));
            }
        });
        Self { url, cut_after, task }
    }

    /// Where clients connect.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Cuts the next connection, and no later one, after so many bytes of its answer's body, as
    /// it goes over the wire.
    pub(crate) fn cut_next_after(&self, bytes: usize) {
        *self.cut_after.lock().expect("nobody panics with it") = Some(bytes);
    }
}

impl Drop for Cutter {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Passes on what comes from either side until one has ended, or so much of the answer has passed.
/// Who has gone meanwhile is no fault.
async fn pass(client: TcpStream, server: SocketAddr, cut_after: Option<usize>) -> Option<()> {
    let server = TcpStream::connect(server).await.ok()?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let asking = copy(&mut from_client, &mut to_server);
    let answering = async {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(from_server.read_u8().await.ok()?);
        }
        to_client.write_all(&head).await.ok()?;
        match cut_after {
            Some(bytes) => {
                let mut part = from_server.take(bytes as u64);
                copy(&mut part, &mut to_client).await.ok().map(drop)
            }
            None => copy(&mut from_server, &mut to_client).await.ok().map(drop),
        }
    };
    tokio::select! {
        _ = asking => None,
        answered = answering => answered,
    }
}
