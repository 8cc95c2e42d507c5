//! A balancer as simple as they come: each request goes to the next instance that takes it, whoever sent the one before.
//!
//! Guarantees: a request that an instance has taken is never sent to another one. What breaks behind it is a 502, as with nginx; a
//! caller that hangs up takes the request with it. Does not do: ask `/readyz`, keep connections, remember anybody.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

pub(crate) struct Balancer {
    serving: AbortHandle,
}

struct Instances {
    addresses: Vec<SocketAddr>,
    turn: AtomicUsize,
}

impl Balancer {
    /// Takes what arrives at a listener for these instances, until it is dropped.
    pub(crate) fn start(listener: TcpListener, addresses: Vec<SocketAddr>) -> Self {
        let instances = Arc::new(Instances { addresses, turn: AtomicUsize::new(0) });
        let router = axum::Router::new().fallback(pass).with_state(instances);
        let serving = tokio::spawn(async move { axum::serve(listener, router).await });
        Self { serving: serving.abort_handle() }
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn pass(State(instances): State<Arc<Instances>>, mut request: Request) -> Response {
    let Some(instance) = instances.next().await else { return StatusCode::BAD_GATEWAY.into_response() };
    remove_what_is_of_this_connection(request.headers_mut());
    let Ok((mut sender, connection)) = handshake::<_, Body>(TokioIo::new(instance)).await else {
        return StatusCode::BAD_GATEWAY.into_response();
    };
    tokio::spawn(connection);
    match sender.send_request(request).await {
        Ok(mut response) => {
            remove_what_is_of_this_connection(response.headers_mut());
            response.map(Body::new)
        }
        Err(_) => StatusCode::BAD_GATEWAY.into_response(),
    }
}

impl Instances {
    /// A connection to whoever takes it: one that is away is passed over.
    async fn next(&self) -> Option<TcpStream> {
        for _ in 0..self.addresses.len() {
            let turn = self.turn.fetch_add(1, Ordering::Relaxed);
            if let Ok(instance) = TcpStream::connect(self.addresses[turn % self.addresses.len()]).await {
                return Some(instance);
            }
        }
        None
    }
}

fn remove_what_is_of_this_connection(headers: &mut HeaderMap) {
    for name in [header::CONNECTION, header::TRANSFER_ENCODING, header::UPGRADE, header::TE] {
        headers.remove(name);
    }
    headers.remove("keep-alive");
}
