//! The Document Server of the play, which may die under its users and come back.
//!
//! Guarantees: its journal goes on through all its lives; while it is dead, whoever asks is told so at once.

use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::sync::RwLock;
use understudy::journal::{Entry, Journal};
use understudy::machine::Command;
use understudy::server::{Fault, KeyState, Session};
use understudy::{Running, Settings, Timings};

use super::DOCUMENT_SERVER_SECRET;

/// The real server's delays are divided by this: its seven seconds of repeats become 280 ms.
const TIME_SCALE: f64 = 25.0;
/// How long a spent key stays closed. Real: 300 s, where no 0 is answered later than 180 s; here 2 s and 1 s.
const SPENT_WINDOW_MS: u64 = 2000;
/// The time a key was spent is rounded down to this. Real: one minute of five.
const MINUTE_MS: u64 = 400;
/// How long links live. Real: 900 s.
pub(crate) const LINK_LIFE_SECONDS: u64 = 10;
/// A command to it may have to wait for the service.
const COMMAND_PATIENCE: Duration = Duration::from_secs(2);
/// How often the journal is looked at by somebody who waits for an entry.
const LOOK_AGAIN: Duration = Duration::from_millis(3);

/// A Document Server that can crash.
pub(crate) struct Editor {
    running: RwLock<Option<Running>>,
    journal: Journal,
    pub(crate) url: String,
}

impl Editor {
    pub(crate) async fn start(port: u16, seed: u64, autosave: Autosave) -> Result<Self> {
        let mut timings = Timings::scaled(TIME_SCALE);
        timings.spent_window_ms = SPENT_WINDOW_MS;
        timings.minute_ms = MINUTE_MS;
        timings.link_life_s = LINK_LIFE_SECONDS;
        timings.token_life_s = 300;
        timings.autosave_interval_ms = 300;
        timings.autosave_step_ms = 100;
        let settings = Settings {
            listen: std::net::SocketAddr::from(([127, 0, 0, 1], port)),
            timings,
            seed,
            autosave: autosave == Autosave::On,
            ..Settings::default()
        };
        let running = understudy::start(settings.with_secret(DOCUMENT_SERVER_SECRET)).await?;
        let (journal, url) = (running.journal().clone(), running.url());
        Ok(Self { running: RwLock::new(Some(running)), journal, url })
    }

    pub(crate) fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Opens a session; `None` while the server is dead or refuses.
    pub(crate) async fn open(&self, config: &serde_json::Value) -> Option<Session> {
        self.running.read().await.as_ref()?.open(config).await.ok()
    }

    /// Takes a session of an earlier life up again.
    pub(crate) async fn resume(&self, session: &Session) -> Option<Session> {
        self.running.read().await.as_ref()?.resume(session).await.ok()
    }

    /// Asks for a force save, as an application would.
    pub(crate) async fn force_save(&self, key: &str) {
        let running = self.running.read().await;
        let Some(running) = running.as_ref() else { return };
        let command = running.command(Command::ForceSave { key: key.to_owned(), userdata: None });
        let _ = tokio::time::timeout(COMMAND_PATIENCE, command).await;
    }

    pub(crate) async fn arm(&self, fault: Fault) {
        if let Some(running) = self.running.read().await.as_ref() {
            running.faults().arm(fault);
        }
    }

    pub(crate) async fn clear_faults(&self) {
        if let Some(running) = self.running.read().await.as_ref() {
            running.faults().clear();
        }
    }

    /// Dies, and comes back after a while.
    pub(crate) async fn crash_for(&self, pause: Duration) -> Result<()> {
        let mut running = self.running.write().await;
        let Some(alive) = running.take() else { return Ok(()) };
        let crashed = alive.crash().await;
        tokio::time::sleep(pause).await;
        *running = Some(crashed.restart().await.context("the understudy did not come back")?);
        Ok(())
    }

    /// Whether nothing is outstanding in it.
    pub(crate) async fn is_quiet(&self) -> bool {
        match self.running.read().await.as_ref() {
            Some(running) => running.is_quiet().await,
            None => false,
        }
    }

    /// All keys it has anything under, with what that is.
    pub(crate) async fn keys(&self) -> Vec<(String, KeyState)> {
        let running = self.running.read().await;
        let Some(running) = running.as_ref() else { return Vec::new() };
        let mut states = Vec::new();
        for key in running.keys().await.unwrap_or_default() {
            if let Ok(state) = running.key(&key).await {
                states.push((key, state));
            }
        }
        states
    }

    /// Waits for an entry from a number on, at most that long.
    pub(crate) async fn wait_for<T>(
        &self,
        from: u64,
        patience: Duration,
        mut wanted: impl FnMut(&Entry) -> Option<T>,
    ) -> Option<T> {
        let deadline = tokio::time::Instant::now() + patience;
        let mut next = from;
        while tokio::time::Instant::now() < deadline {
            let entries = self.journal.since(next);
            next = entries.last().map_or(next, |entry| entry.number + 1);
            if let Some(found) = entries.iter().find_map(&mut wanted) {
                return Some(found);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        None
    }
}

/// Whether the server force-saves by a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Autosave {
    On,
    Off,
}
