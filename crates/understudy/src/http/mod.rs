//! The server's HTTP side: every route on one screen.
//!
//! Guarantees: the addresses of the real server (commands, links, health, editor script, sockets), plus
//! `/understudy/…` for harnesses in another process. Connections are owned here: when the server stops, they are
//! cut, not drained.
//!
//! Does not terminate TLS and is not meant to be reached from other machines.

mod commands;
mod editor;
mod files;
mod harness;
mod pages;
mod socket;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::http::HeaderMap;
use axum::routing::{any, get, post, put};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::admission::Policy;
use crate::journal::Journal;
use crate::links::Signer;
use crate::server::{DeskHandle, Faults};
use crate::settings::{LinkBase, Settings};

/// Connections at the same time.
const CONNECTIONS_MAX: usize = 4096;

/// What handlers share.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) desk: DeskHandle,
    pub(crate) policy: Policy,
    pub(crate) journal: Journal,
    pub(crate) faults: Faults,
    pub(crate) links: Signer,
    pub(crate) address: SocketAddr,
    pub(crate) started_ms: u64,
    pub(crate) settings: Settings,
}

type Shared = axum::extract::State<Arc<Site>>;

impl Site {
    fn now_s(&self) -> u64 {
        self.settings.clock.now_s()
    }

    /// What links to this requester begin with.
    fn base_url(&self, headers: &HeaderMap) -> String {
        if let LinkBase::Fixed(base) = &self.settings.link_base {
            return base.clone();
        }
        let first = |name: &str| {
            let value = headers.get(name)?.to_str().ok()?;
            value.split(',').next().map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
        };
        let scheme = first("x-forwarded-proto").filter(|scheme| matches!(scheme.as_str(), "http" | "https"));
        let host =
            first("x-forwarded-host").or_else(|| first("host")).unwrap_or_else(|| self.address.to_string());
        let prefix = first("x-forwarded-prefix").unwrap_or_default();
        format!("{}://{host}{prefix}", scheme.as_deref().unwrap_or("http"))
    }
}

fn routes(site: Site) -> Router {
    Router::new()
        .route("/healthcheck", get(pages::health))
        .route("/info/info.json", get(pages::info))
        .route("/command", post(commands::command))
        .route("/coauthoring/CommandService.ashx", get(commands::command).post(commands::command))
        .route(
            "/internal/cluster/inactive",
            put(pages::shut_down).delete(pages::shut_down).get(pages::is_shut_down),
        )
        .route("/cache/files/{area}/{folder}/{file}/{name}", get(files::serve))
        .route("/web-apps/apps/api/documents/api.js", get(editor::api_js))
        .route("/web-apps/apps/understudy/{asset}", get(editor::asset))
        .route("/{version}/web-apps/apps/understudy/{asset}", get(editor::versioned_asset))
        .route("/doc/{key}/c/", any(socket::connect))
        .route("/{version}/doc/{key}/c/", any(socket::connect_versioned))
        .route("/understudy/journal", get(harness::journal))
        .route("/understudy/changes", get(harness::changes))
        .route("/understudy/keys/{key}", get(harness::key))
        .route("/understudy/faults", get(harness::faults).post(harness::arm).delete(harness::clear))
        .route("/understudy/quiet", get(harness::quiet))
        .with_state(Arc::new(site))
}

/// Serves until told to stop, then cuts every connection.
pub(crate) async fn serve(listener: TcpListener, site: Site, mut stopped: oneshot::Receiver<()>) {
    let routes = routes(site);
    let mut connections: JoinSet<()> = JoinSet::new();
    loop {
        let has_room = connections.len() < CONNECTIONS_MAX;
        tokio::select! {
            _ = &mut stopped => return,
            accepted = listener.accept(), if has_room => {
                let Ok((stream, _)) = accepted else { continue };
                // Small answers should not wait for more to come.
                let _ = stream.set_nodelay(true);
                let service = TowerToHyperService::new(routes.clone());
                connections.spawn(async move {
                    let connection = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .with_upgrades();
                    // A client that hangs up in the middle is its own affair.
                    let _ = connection.await;
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}
