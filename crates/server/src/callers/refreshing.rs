//! Keeps the published keys of the host application fresh.
//!
//! Guarantees: fetched at the start, every hour, and when a token names a key that is not known, but then at most once a
//! minute, whatever tokens are made up; one fetch at a time; a failed fetch keeps the old keys and is logged.
//! Does not do: verify anything.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use jiff::SignedDuration;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::host_keys::read_jwks;
use crate::app::App;
use crate::config::JwksSource;
use crate::telemetry;

/// So often without being asked.
const INTERVAL: Duration = Duration::from_secs(60 * 60);
/// At most so often on being asked: anybody can send a token with a made-up `kid`.
const PAUSE: SignedDuration = SignedDuration::from_secs(60);
/// One fetch. A request that needs its result waits a little longer.
const FETCH_WITHIN: Duration = Duration::from_secs(10);
const WAIT: Duration = Duration::from_secs(12);
/// A set of 64 keys with certificates has less.
const BYTES_MAX: usize = 1024 * 1024;

/// Refreshes until told to stop. The first refresh was made by [`refresh`] at the start.
pub(crate) async fn follow(app: Arc<App>, stop: CancellationToken) {
    if app.host_keys.source.is_none() {
        return;
    }
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = app.host_keys.wanted.notified() => {}
            () = tokio::time::sleep(INTERVAL) => {}
        }
        refresh(&app).await;
    }
}

/// Fetches the published keys once.
pub(crate) async fn refresh(app: &App) {
    let keys = &app.host_keys;
    let Some(source) = &keys.source else { return };
    {
        let mut attempts = keys.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        attempts.is_running = true;
        attempts.last = Some(app.now());
    }
    match load(source).await.and_then(|text| read_jwks(&text)) {
        Ok(found) => {
            tracing::info!(keys = found.len(), "the host application's keys were read");
            keys.publish(found);
        }
        Err(why) => {
            telemetry::alert("host-keys");
            tracing::error!(
                why,
                "the host application's keys could not be read; those known before count on"
            );
        }
    }
    keys.attempts.lock().unwrap_or_else(PoisonError::into_inner).is_running = false;
    keys.ended.send_modify(|count| *count += 1);
}

/// Waits for fresh keys; `false` if they were fetched a moment ago.
pub(super) async fn refreshed(app: &App) -> bool {
    let keys = &app.host_keys;
    let mut ended = keys.ended.subscribe();
    {
        let mut attempts = keys.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        let now = app.now();
        if !attempts.is_running {
            if attempts.last.is_some_and(|last| now.duration_since(last) < PAUSE) {
                return false;
            }
            attempts.is_running = true;
            attempts.last = Some(now);
            keys.wanted.notify_one();
        }
    }
    tokio::time::timeout(WAIT, ended.changed()).await.is_ok_and(|changed| changed.is_ok())
}

async fn load(source: &JwksSource) -> Result<Vec<u8>, String> {
    let loading = async {
        match source {
            JwksSource::File(file) => tokio::fs::read(file).await.map_err(|cause| cause.to_string()),
            JwksSource::Url(url) => fetch(url).await,
        }
    };
    tokio::time::timeout(FETCH_WITHIN, loading).await.map_err(|_| "it took too long".to_owned())?
}

async fn fetch(url: &Url) -> Result<Vec<u8>, String> {
    let told = |cause: reqwest::Error| telemetry::report(&cause);
    // A redirect could lead from the host that was configured to any other.
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy().build();
    let mut response = client.map_err(told)?.get(url.clone()).send().await.map_err(told)?;
    if response.status() != reqwest::StatusCode::OK {
        return Err(format!("it was answered {}", response.status()));
    }
    let mut text = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(told)? {
        text.extend_from_slice(&chunk);
        if text.len() > BYTES_MAX {
            return Err(format!("it is larger than {BYTES_MAX} bytes"));
        }
    }
    Ok(text)
}
