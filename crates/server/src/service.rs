//! The running service: put together, listening, recovering; and its orderly end.
//!
//! Guarantees: on stop, readiness goes off first, and whoever comes before balancers notice is still served; then newcomers are told
//! to come back (or, with other instances about, find nobody listening), then running and waiting saves
//! are finished within a bound and shown, then connections end. Being killed instead is safe too: every step is.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use lanes::Lanes;
use model::{DocumentId, Guards};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::app::{App, FolderLock, StartError};
use crate::config::Config;
use crate::http::{Listening, listen, router};
use crate::{
    announcing, awake, callers, delivering, instances, recovering, room, submitting, telemetry, watching,
};

/// A running service.
pub struct Service {
    /// Its handles.
    pub app: Arc<App>,
    listening: Listening,
    background: Vec<JoinHandle<()>>,
    stop: CancellationToken,
    _lock: FolderLock,
}

/// Why it does not run.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// It cannot be put together.
    #[error(transparent)]
    Start(#[from] StartError),
    /// It cannot be written down who is to be told of what.
    #[error("the webhooks cannot be written down")]
    Webhooks(#[source] ledger::LedgerError),
    /// The address is taken or not ours.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        cause: std::io::Error,
    },
}

impl Service {
    /// Starts on the embedded engine.
    pub async fn start(config: Config, guards: Guards) -> Result<Self, ServiceError> {
        let address = config.server.listen;
        let connections_max = config.server.connections_max;
        let (app, lock) = App::serving(config, guards).await?;
        let app = Arc::new(app);
        announcing::register(&app).await.map_err(ServiceError::Webhooks)?;
        callers::refresh(&app).await;
        let router = router(Arc::clone(&app), telemetry::start_metrics());
        let listening = listen(address, connections_max, router)
            .await
            .map_err(|cause| ServiceError::Listen { address, cause })?;
        let stop = CancellationToken::new();
        let background = vec![
            tokio::spawn(awake::follow(Arc::clone(&app), stop.clone())),
            tokio::spawn(recovering::follow(Arc::clone(&app), stop.clone())),
            tokio::spawn(recovering::run(Arc::clone(&app), stop.clone())),
            tokio::spawn(recovering::take_up_what_others_left(Arc::clone(&app), stop.clone())),
            tokio::spawn(recovering::publish_all_owed(Arc::clone(&app), stop.clone())),
            tokio::spawn(recovering::adopt_strays(Arc::clone(&app))),
            tokio::spawn(callers::follow(Arc::clone(&app), stop.clone())),
            tokio::spawn(watching::follow(Arc::clone(&app), stop.clone())),
            tokio::spawn(recovering::look_after_sessions(Arc::clone(&app), stop.clone())),
            tokio::spawn(announcing::run(Arc::clone(&app), stop.clone())),
            tokio::spawn(submitting::look_after(Arc::clone(&app), stop.clone())),
            tokio::spawn(room::follow(Arc::clone(&app), stop.clone())),
            tokio::spawn(delivering::follow(Arc::clone(&app), stop.clone())),
            tokio::spawn(instances::follow(Arc::clone(&app), stop.clone())),
        ];
        tracing::info!(address = %listening.address, "saveguard listens");
        Ok(Self { app, listening, background, stop, _lock: lock })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.listening.address
    }

    /// Ends in order. Returns how many saves could not be finished in time; they are taken up by the next start.
    pub async fn stop(self) -> usize {
        let stopping = &self.app.config.stopping;
        self.app.stop_being_ready();
        tracing::info!("saveguard is stopping: it is no longer ready");
        tokio::time::sleep(stopping.notice).await;
        self.app.turn_newcomers_away();
        if self.app.config.ledger.is_shared() {
            // Others are there to serve them. A balancer that never asks whether we are ready goes on to the next one when nobody listens, also
            // with what it would not send twice.
            self.listening.close();
        }
        tracing::info!("saveguard is stopping: newcomers are told to come back");
        let deadline = Instant::now() + stopping.drain;
        let mut left = 0;
        for lanes in [&self.app.arrivals, &self.app.saves] {
            left += drained(lanes, deadline).await;
        }
        // The last saves announced themselves to a listener that may not have had its turn yet.
        recovering::publish_owed(&self.app).await;
        left += drained(&self.app.publications, deadline).await;
        recovering::anchor_all(&self.app).await;
        self.stop.cancel();
        for task in self.background {
            task.abort();
            let _ = task.await;
        }
        instances::take_leave(&self.app).await;
        self.listening.stop().await;
        if left == 0 {
            tracing::info!("saveguard has stopped; nothing was left");
        } else {
            tracing::warn!(left, "saveguard has stopped; unfinished work is taken up by the next start");
        }
        left
    }
}

/// Lets a kind of work finish; returns how many could not.
async fn drained(lanes: &Lanes<DocumentId>, deadline: Instant) -> usize {
    lanes.drain_within(deadline.saturating_duration_since(Instant::now())).await.stopped()
}
