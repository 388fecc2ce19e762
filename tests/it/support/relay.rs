//! A proxy that passes bytes on until it cuts every connection, in the middle of whatever passes,
//! or swallows all that comes, as a broken network does.
//!
//! Its own address stays the same while servers come and go behind it.

use std::io;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The proxy. With it end its connections.
pub(crate) struct Relay {
    url: String,
    lead: Arc<Lead>,
    accepting: JoinHandle<()>,
}

/// What all connections look at.
struct Lead {
    /// Where new connections lead.
    target: Mutex<String>,
    /// How many more bytes come back from the server before everything is cut.
    left: Mutex<Option<usize>>,
    /// How many more connections are cut when the first piece of the answer has come back.
    early: Mutex<u32>,
    /// How often everything was cut.
    cuts: watch::Sender<u64>,
    /// Whether nothing passes.
    is_silent: watch::Sender<bool>,
}

impl Relay {
    /// A proxy in front of the server that listens at an address like `http://127.0.0.1:7420`.
    pub(crate) async fn before(url: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let own = listener.local_addr().expect("it is bound");
        let lead = Arc::new(Lead {
            target: Mutex::default(),
            left: Mutex::new(None),
            early: Mutex::new(0),
            cuts: watch::Sender::new(0),
            is_silent: watch::Sender::new(false),
        });
        let accepting = tokio::spawn({
            let lead = Arc::clone(&lead);
            async move {
                let mut connections = tokio::task::JoinSet::new();
                while let Ok((client, _)) = listener.accept().await {
                    connections.spawn(pass(Arc::clone(&lead), client));
                }
            }
        });
        let relay = Self { url: format!("http://{own}"), lead, accepting };
        relay.lead_to(url);
        relay
    }

    /// Where it listens.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Leads new connections to another server.
    pub(crate) fn lead_to(&self, url: &str) {
        let target = url.trim_start_matches("http://").to_owned();
        *self.lead.target.lock().expect("nobody panics with it") = target;
    }

    /// Cuts all connections once so many more bytes have come back from the server.
    pub(crate) fn cut_after(&self, bytes: usize) {
        *self.lead.left.lock().expect("nobody panics with it") = Some(bytes);
    }

    /// Cuts so many further connections as soon as the answer has begun.
    pub(crate) fn cut_early(&self, connections: u32) {
        *self.lead.early.lock().expect("nobody panics with it") = connections;
    }

    /// Lets nothing pass any more, in either direction and with no word of it, or everything again:
    /// what was sent meanwhile comes late then.
    pub(crate) fn silence(&self, is_silent: bool) {
        self.lead.is_silent.send_replace(is_silent);
    }

    /// How often connections were cut.
    pub(crate) fn cuts(&self) -> u64 {
        *self.lead.cuts.borrow()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// One connection, to its end or until it is cut.
async fn pass(lead: Arc<Lead>, mut client: TcpStream) {
    let mut cuts = lead.cuts.subscribe();
    lead.can_speak().await;
    let target = lead.target.lock().expect("nobody panics with it").clone();
    // While no server is there, the client finds its connection closed.
    let Ok(mut server) = TcpStream::connect(target).await else { return };
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    tokio::select! {
        _ = forth(&lead, from_client, to_server) => {}
        _ = back(&lead, from_server, to_client) => {}
        _ = cuts.changed() => {}
    }
}

async fn forth(lead: &Lead, mut from: ReadHalf<'_>, mut to: WriteHalf<'_>) -> io::Result<()> {
    let mut bytes = [0; 1024];
    loop {
        let read = from.read(&mut bytes).await?;
        if read == 0 {
            return Ok(());
        }
        lead.can_speak().await;
        to.write_all(&bytes[..read]).await?;
    }
}

async fn back(lead: &Lead, mut from: ReadHalf<'_>, mut to: WriteHalf<'_>) -> io::Result<()> {
    let (mut bytes, mut has_begun) = ([0; 1024], false);
    loop {
        let read = from.read(&mut bytes).await?;
        if read == 0 {
            return Ok(());
        }
        lead.can_speak().await;
        let passed = lead.let_through(read);
        to.write_all(&bytes[..passed]).await?;
        let begins = !std::mem::replace(&mut has_begun, true);
        if passed < read || begins && lead.is_cut_early() {
            lead.cuts.send_modify(|cuts| *cuts += 1);
            return Ok(());
        }
    }
}

impl Lead {
    /// Waits while nothing passes.
    async fn can_speak(&self) {
        let mut is_silent = self.is_silent.subscribe();
        // The sender is our own.
        let _ = is_silent.wait_for(|is_silent| !is_silent).await;
    }

    /// How many of so many bytes pass before the cut.
    fn let_through(&self, bytes: usize) -> usize {
        let mut left = self.left.lock().expect("nobody panics with it");
        match *left {
            Some(rest) if rest < bytes => {
                *left = None;
                rest
            }
            Some(rest) => {
                *left = Some(rest - bytes);
                bytes
            }
            None => bytes,
        }
    }

    /// Whether a connection ends where its answer begins.
    fn is_cut_early(&self) -> bool {
        let mut early = self.early.lock().expect("nobody panics with it");
        let is_cut = *early > 0;
        *early = early.saturating_sub(1);
        is_cut
    }
}
