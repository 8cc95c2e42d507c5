//! The sockets: bounded connections, time limits, a way to close one unanswered, and a graceful end.
//!
//! Guarantees: a slow or silent client costs a connection for a bounded time; a response marked for it closes its
//! connection without a byte; on stop, running requests are finished and idle connections are closed.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::address::Peer;
use super::answer::CloseConnection;

/// A request's head must be here by then; an idle connection is closed by then.
const HEAD_TIME_MAX: Duration = Duration::from_secs(30);
/// Two tokens of a callback with a long history fit; the server itself stays below 8 KiB.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// How long finished requests may take to leave after the last work is done.
const LAST_BYTES: Duration = Duration::from_secs(5);

/// A listening service.
pub struct Listening {
    /// Where it listens.
    pub address: SocketAddr,
    task: tokio::task::JoinHandle<()>,
    closed: CancellationToken,
    stop: CancellationToken,
}

impl Listening {
    /// Takes no more connections and ends those that are idle; running requests go on.
    pub fn close(&self) {
        self.closed.cancel();
    }

    /// Takes no more connections and ends those that are idle; waits for the rest for a moment.
    pub async fn stop(self) {
        self.close();
        self.stop.cancel();
        let _ = self.task.await;
    }
}

/// Starts to serve.
pub async fn listen(
    address: SocketAddr,
    connections_max: usize,
    router: Router,
) -> std::io::Result<Listening> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    let (closed, stop) = (CancellationToken::new(), CancellationToken::new());
    let tokens = (closed.clone(), stop.clone());
    let task = tokio::spawn(accept(listener, connections_max, router, tokens));
    Ok(Listening { address, task, closed, stop })
}

async fn accept(
    listener: TcpListener,
    connections_max: usize,
    router: Router,
    (closed, stop): (CancellationToken, CancellationToken),
) {
    let permits = Arc::new(Semaphore::new(connections_max));
    let graceful = GracefulShutdown::new();
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { break };
        let accepted = tokio::select! {
            () = closed.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, peer)) = accepted else {
            // Out of file handles, most likely: others must end before new ones can begin.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let connection = serve(stream, Peer(peer.ip()), router.clone());
        let watched = graceful.watch(connection);
        tokio::spawn(async move {
            // Broken connections are the client's affair; a closed one was meant to be.
            let _ = watched.await;
            drop(permit);
        });
    }
    drop(listener);
    let last_bytes = async {
        stop.cancelled().await;
        tokio::time::sleep(LAST_BYTES).await;
    };
    tokio::select! {
        () = graceful.shutdown() => {}
        () = last_bytes => {}
    }
}

type Connection<S> = hyper::server::conn::http1::Connection<TokioIo<TcpStream>, S>;

fn serve(
    stream: TcpStream,
    peer: Peer,
    router: Router,
) -> Connection<
    impl hyper::service::Service<Request<Incoming>, Response = Response<Body>, Error = Closed, Future: Send>,
> {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        let router = router.clone();
        async move {
            let response: Result<_, Infallible> = router.oneshot(request.map(Body::new)).await;
            match response {
                Ok(response) if response.extensions().get::<CloseConnection>().is_some() => Err(Closed),
                Ok(response) => Ok(response),
                Err(never) => match never {},
            }
        }
    });
    hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service)
}

/// The connection is closed instead of being answered.
#[derive(Debug, thiserror::Error)]
#[error("the connection is closed unanswered")]
struct Closed;
