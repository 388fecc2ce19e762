//! Sockets: accepts connections, serves HTTP/1 on them, and drains.

use std::convert::Infallible;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use rustix::net::sockopt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::ServiceExt as _;

use super::failure::Abandoned;
use super::hosts::Hosts;
use super::pacing::{Paced, Progress};
use super::request::{Arrival, Ends};
use super::{Api, Options, routes};
use crate::service::Service;

/// How many connections may be open. More wait in the kernel's queue until one ends.
const CONNECTIONS_MAX: usize = 16_384;

/// How many bytes a head may have, and how much of an answer is gathered before it is sent.
const BUFFER_BYTES_MAX: usize = 16 * 1024;

/// After how long what was sent and not acknowledged ends a connection. A feed sends something
/// every 15 seconds, so a reader that is gone without a word is found within a minute.
const UNACKNOWLEDGED: Duration = Duration::from_secs(40);

/// How long accepting rests when the system has no descriptor left, or no memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// How long requests in flight may take once the server drains.
const DRAIN: Duration = Duration::from_secs(10);

/// Serves until `stop` resolves; then accepts nothing more, ends feeds and long polls, and returns
/// when what was in flight has been answered, or after `DRAIN`.
pub async fn serve(
    listener: TcpListener,
    service: Service,
    options: &Options,
    stop: impl Future<Output = ()>,
) {
    // A socket that has lost its address is reached by nobody.
    let listen = listener.local_addr().map_or(Ipv4Addr::LOCALHOST.into(), |at| at.ip());
    let entrance = Entrance {
        hosts: Hosts::new(listen, &options.allowed_hosts),
        router: routes::router(Api::new(service.clone(), options)),
        ends: Ends::new(service.clone()),
    };
    let connections = GracefulShutdown::new();
    tokio::select! {
        never = accept_all(&listener, &entrance, &connections) => match never {},
        () = stop => {}
    }
    drop(listener);
    service.drain();
    if tokio::time::timeout(DRAIN, connections.shutdown()).await.is_err() {
        tracing::warn!("some requests were still unanswered at the end of the drain");
    }
}

/// What every request goes through.
#[derive(Clone)]
struct Entrance {
    hosts: Hosts,
    router: Router,
    ends: Ends,
}

impl Entrance {
    async fn answer(self, mut request: Request, arrival: Arrival) -> Response {
        let response = match self.hosts.admit(&request) {
            Ok(()) => {
                request.extensions_mut().insert(arrival.clone());
                self.router.oneshot(request).await.unwrap_or_else(|never| match never {})
            }
            Err(failure) => failure.render(None),
        };
        self.ends.tell(arrival, response)
    }
}

async fn accept_all(
    listener: &TcpListener,
    entrance: &Entrance,
    connections: &GracefulShutdown,
) -> Infallible {
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let permit = permits.clone().acquire_owned().await.expect("nobody closes the semaphore");
        match listener.accept().await {
            Ok((socket, _)) => {
                let served = connection(socket, entrance.clone(), connections.watcher(), permit);
                tokio::spawn(served);
            }
            Err(error) if is_of_peer(&error) => {}
            Err(error) => {
                // What is missing comes back when connections end. Trying at once would only
                // burn a core meanwhile.
                tracing::warn!(%error, "can't accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Whether it was the peer who gave up before its connection was accepted.
fn is_of_peer(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

async fn connection(
    socket: TcpStream,
    entrance: Entrance,
    watcher: Watcher,
    _permit: OwnedSemaphorePermit,
) {
    if let Err(error) = set_options(&socket) {
        tracing::debug!(%error, "the peer is gone already");
        return;
    }
    let progress = Progress::default();
    let io = TokioIo::new(Paced::new(socket, progress.clone()));
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let arrival = Arrival::now(&request);
        let serving = progress.serving();
        let entrance = entrance.clone();
        async move {
            let response = entrance.answer(request.map(Body::new), arrival).await;
            drop(serving);
            send(response)
        }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        // `Paced` has the limits of heads.
        .header_read_timeout(None)
        .max_buf_size(BUFFER_BYTES_MAX)
        .serve_connection(io, service);
    if let Err(error) = watcher.watch(served).await {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// An answer that was abandoned ends the connection without a byte.
fn send(response: Response) -> io::Result<Response> {
    match response.extensions().get::<Abandoned>() {
        None => Ok(response),
        Some(Abandoned) => Err(io::Error::other("the storage failed: nobody may be told anything")),
    }
}

fn set_options(socket: &TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let millis = u32::try_from(UNACKNOWLEDGED.as_millis()).expect("a small constant");
    sockopt::set_tcp_user_timeout(socket, millis)?;
    Ok(())
}
