//! How the engines are at this moment: ledger, vault, Document Server, and what lies in the spool. For the page of operators.
//!
//! Guarantees: whoever asks is answered at once, with what was seen last; a look happens at most every ten seconds, in the background,
//! and waits for nobody longer than five. Does not do: write anything; an examination does.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use model::{Digest, DocumentId};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::telemetry::report;

const LOOK_AGAIN_AFTER: SignedDuration = SignedDuration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(5);

/// How an engine is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct EngineView {
    /// `ledger`, `vault` or `document-server`.
    #[schema(value_type = String)]
    pub(crate) name: &'static str,
    /// Where it is.
    pub(crate) place: String,
    /// Whether it answered.
    pub(crate) is_well: bool,
    /// How long it took.
    pub(crate) took_ms: u64,
    /// What it said, or what was the matter.
    pub(crate) detail: String,
}

/// What was seen last.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    /// Each engine; none before the first look.
    pub(crate) engines: Vec<EngineView>,
    /// Files on their way through the spool.
    pub(crate) spool_files: u64,
    /// Their bytes.
    pub(crate) spool_bytes: u64,
}

/// What is known of the engines.
#[derive(Debug, Default)]
pub struct Engines {
    state: Mutex<(Option<Timestamp>, Seen)>,
}

impl Engines {
    /// What was seen last, and whether it is time to look again.
    fn seen(&self, now: Timestamp) -> (Seen, bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = state.0.is_none_or(|looked_at| now.duration_since(looked_at) >= LOOK_AGAIN_AFTER);
        if is_due {
            state.0 = Some(now);
        }
        (state.1.clone(), is_due)
    }

    fn set(&self, seen: Seen) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).1 = seen;
    }
}

/// What was seen last; looks again in the background if that was a while ago.
pub(crate) fn seen(app: &Arc<App>) -> Seen {
    let (seen, is_due) = app.engines.seen(app.now());
    if is_due {
        let app = Arc::clone(app);
        tokio::spawn(async move {
            let found = look(&app).await;
            app.engines.set(found);
        });
    }
    seen
}

async fn look(app: &App) -> Seen {
    let spool = app.config.server.data.join("spool");
    let (ledger, vault, server, spooled) = tokio::join!(
        answered("ledger", app.config.ledger.place(), ask_ledger(app)),
        answered("vault", app.config.stores.place(), ask_vault(app)),
        answered("document-server", app.config.document_server.internal_url.to_string(), ask_server(app)),
        tokio::task::spawn_blocking(move || fill_of(spool)),
    );
    let (spool_files, spool_bytes) = spooled.unwrap_or_default();
    Seen { engines: vec![ledger, vault, server], spool_files, spool_bytes }
}

async fn answered(
    name: &'static str,
    place: String,
    asked: impl Future<Output = Result<String, String>>,
) -> EngineView {
    let began = Instant::now();
    let answer = tokio::time::timeout(PATIENCE, asked).await;
    let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (is_well, detail) = match answer {
        Ok(Ok(said)) => (true, said),
        Ok(Err(cause)) => (false, cause),
        Err(_) => (false, format!("no answer within {} s", PATIENCE.as_secs())),
    };
    EngineView { name, place, is_well, took_ms, detail }
}

async fn ask_ledger(app: &App) -> Result<String, String> {
    let nobody = DocumentId::parse("saveguard-looks").map_err(|refused| refused.to_string())?;
    app.ledger.document(&nobody).await.map(|_| String::new()).map_err(|cause| report(&cause))
}

async fn ask_vault(app: &App) -> Result<String, String> {
    let nothing = Digest::of(b"nothing has this content");
    app.vault.size_of(&nothing).await.map(|_| String::new()).map_err(|cause| report(&cause))
}

async fn ask_server(app: &App) -> Result<String, String> {
    app.editor.version().await.map_err(|cause| report(&cause))
}

fn fill_of(folder: PathBuf) -> (u64, u64) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.filter_map(|entry| entry.metadata().ok()).filter(std::fs::Metadata::is_file);
    sizes.fold((0, 0), |(files, bytes), file| (files + 1, bytes + file.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_due_at_first_and_after_a_while() {
        let engines = Engines::default();
        let at = |second| Timestamp::from_second(second).unwrap();

        assert!(engines.seen(at(100)).1);
        assert!(!engines.seen(at(109)).1);
        assert!(engines.seen(at(110)).1);
    }

    #[tokio::test(start_paused = true)]
    async fn an_engine_that_does_not_answer_is_not_waited_for() {
        let view = answered("vault", "far away".to_owned(), std::future::pending()).await;

        assert!(!view.is_well && view.detail == "no answer within 5 s");
    }
}
