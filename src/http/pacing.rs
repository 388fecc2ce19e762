//! A socket that doesn't wait for ever: it ends a connection whose peer is silent or slow where
//! it should be sending.
//!
//! The first request must begin within [`HEAD`], and a head that has begun must be whole within
//! it. After a request a connection may rest for [`REST`], so that clients which keep it open find
//! it alive. Hyper's own header timeout can't tell these two: it starts when a connection begins
//! to rest, so it would close each one after a pause that is ordinary.
//! Deliberately absent: the bounds of a body (`body`), and of a peer that is gone without a word
//! (the kernel's, see `server`).

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// How long a head may take.
const HEAD: Duration = Duration::from_secs(10);

/// How long a connection may rest between two requests.
const REST: Duration = Duration::from_secs(90);

/// How far a connection has come, told by whoever serves its requests.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    begun: AtomicU64,
    done: AtomicU64,
}

impl Progress {
    /// A head is whole, and its request is being served until the guard is dropped.
    pub(super) fn serving(&self) -> Serving {
        self.0.begun.fetch_add(1, Ordering::Relaxed);
        Serving(self.clone())
    }
}

/// A request that is being served.
pub(super) struct Serving(Progress);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.0.done.fetch_add(1, Ordering::Relaxed);
    }
}

/// What the peer owes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waiting {
    /// The first byte of the first head.
    First,
    /// The rest of a head.
    Head,
    /// Nothing: the connection rests.
    Next,
}

/// A paced socket.
pub(super) struct Paced<S> {
    socket: S,
    progress: Progress,
    waiting: Waiting,
    begun_seen: u64,
    /// Runs while the peer owes something, or rests.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<S> Paced<S> {
    pub(super) fn new(socket: S, progress: Progress) -> Self {
        Self { socket, progress, waiting: Waiting::First, begun_seen: 0, timer: None }
    }

    /// Takes note of what was served since the last look; whether a request is being served now.
    fn is_serving(&mut self) -> bool {
        let begun = self.progress.0.begun.load(Ordering::Relaxed);
        if begun != self.begun_seen {
            self.begun_seen = begun;
            self.waiting = Waiting::Next;
            self.timer = None;
        }
        begun != self.progress.0.done.load(Ordering::Relaxed)
    }

    /// Nothing can be read. Fails if that has been so for too long.
    fn poll_patience(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_serving() {
            self.timer = None;
            return Poll::Pending;
        }
        let patience = match self.waiting {
            Waiting::First | Waiting::Head => HEAD,
            Waiting::Next => REST,
        };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(timer.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        match Pin::new(&mut self.socket).poll_read(cx, into) {
            Poll::Pending => self.poll_patience(cx),
            Poll::Ready(result) => {
                let has_come = into.filled().len() > before;
                // Only the first bytes of a head start its time: more of them don't renew it.
                if has_come && !self.is_serving() && self.waiting != Waiting::Head {
                    self.waiting = Waiting::Head;
                    self.timer = None;
                }
                Poll::Ready(result)
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.socket).poll_write(cx, bytes));
        // A feed is answered in pieces: each one that goes out lets the peer rest anew.
        if self.waiting == Waiting::Next {
            self.timer = None;
        }
        Poll::Ready(written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.socket).poll_write_vectored(cx, pieces));
        if self.waiting == Waiting::Next {
            self.timer = None;
        }
        Poll::Ready(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    fn pair() -> (tokio::io::DuplexStream, Paced<tokio::io::DuplexStream>, Progress) {
        let (peer, socket) = duplex(1024);
        let progress = Progress::default();
        (peer, Paced::new(socket, progress.clone()), progress)
    }

    async fn outcome(paced: &mut Paced<tokio::io::DuplexStream>) -> (io::Result<u8>, Duration) {
        let began = tokio::time::sleep(Duration::ZERO).deadline();
        let byte = paced.read_u8().await;
        (byte, tokio::time::sleep(Duration::ZERO).deadline() - began)
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_peer_is_given_ten_seconds() {
        let (_peer, mut paced, _) = pair();
        let (byte, took) = outcome(&mut paced).await;
        assert_eq!(byte.expect_err("nothing came").kind(), io::ErrorKind::TimedOut);
        assert_eq!(took.as_secs(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_comes_byte_by_byte_is_not_given_more() {
        let (mut peer, mut paced, _) = pair();
        let writes = async {
            for _ in 0..30 {
                peer.write_all(b"x").await.expect("the other end is open");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        let reads = async { while outcome(&mut paced).await.0.is_ok() {} };
        let began = tokio::time::sleep(Duration::ZERO).deadline();
        tokio::select! { () = reads => {}, () = writes => panic!("it read for 30 seconds") }
        let took = tokio::time::sleep(Duration::ZERO).deadline() - began;
        assert_eq!(took.as_secs(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_may_rest_after_a_request_and_has_no_limit_while_it_is_served() {
        let (mut peer, mut paced, progress) = pair();
        peer.write_all(b"x").await.expect("the other end is open");
        assert!(outcome(&mut paced).await.0.is_ok());
        let serving = progress.serving();
        let served = tokio::time::timeout(Duration::from_secs(600), paced.read_u8()).await;
        assert!(served.is_err(), "a request that is served has no limit here");
        drop(serving);
        let (byte, took) = outcome(&mut paced).await;
        assert_eq!(byte.expect_err("nothing came").kind(), io::ErrorKind::TimedOut);
        assert_eq!(took.as_secs(), 90);
    }
}
