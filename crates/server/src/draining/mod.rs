//! Draining: everything that is being typed is saved, so that the Document Server or the machine can be restarted.
//!
//! For every key under which the server may hold unsaved work, side by side: ask for a force save with a word of our own, wait
//! until the save that carries it is committed; where there is nothing to save, make sure that nothing is held either. Then
//! wait for the saves that are on their way. What is left when the time is up is at risk, and is named.
//!
//! Guarantees: nobody is dropped and nothing is closed; nothing is held while the server is asked; bounded time; one drain at
//! a time among all instances, whoever asks again joins it. Does not do: keep people from typing on. *Safe* is about what was typed before.

mod securing;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use jiff::{SignedDuration, Timestamp};
use ledger::LedgerError;
use ledger::documents::Author;
use ledger::operations::Operation;
use model::DocumentId;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use utoipa::ToSchema;

use crate::app::App;
use crate::instances::{self, Own, Subject, Undertaking};
use crate::telemetry::{self, report};

/// Keys the server is asked about at once.
const PARALLEL_MAX: usize = 32;
/// Documents that are named; the count tells of the others.
const NAMED_MAX: usize = 100;
/// How often the saves on their way are looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// How far a drain is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DrainView {
    /// Whether it is under way.
    pub is_running: bool,
    /// Whether it ended with nothing at risk: the Document Server and Saveguard can be restarted.
    pub is_safe: bool,
    /// When it began. None yet: nobody asked.
    #[schema(value_type = Option<String>)]
    pub begun_at: Option<Timestamp>,
    /// When it gives up.
    #[schema(value_type = Option<String>)]
    pub ends_at: Option<Timestamp>,
    /// Sessions that may have unsaved work.
    pub sessions: usize,
    /// Sessions of which everything typed before is committed.
    pub safe: usize,
    /// Sessions that are at risk, or not yet looked at.
    pub at_risk: usize,
    /// Saves that were received and are not finished.
    pub open_saves: u64,
    /// The first of those at risk, with what is the matter.
    pub left: Vec<AtRisk>,
    /// What kept it from looking at everything.
    pub trouble: Option<String>,
}

/// A document with unsaved work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AtRisk {
    /// The document.
    #[schema(value_type = String)]
    pub document: String,
    /// `waiting`, `saving`, `not-saved-in-time`, `held-by-the-server` (changes that only opening brings back) or `server-away`.
    pub why: String,
}

impl Undertaking for DrainView {
    const SUBJECT: Subject = Subject::Drain;

    fn own(app: &App) -> &Own<Self> {
        &app.drains
    }

    fn is_running(&self) -> bool {
        self.is_running
    }

    fn begun_at(&self) -> Option<Timestamp> {
        self.begun_at
    }

    fn stop(&mut self) {
        self.is_running = false;
    }

    fn break_off(&mut self) {
        self.is_running = false;
        self.trouble = Some("the instance that drained ended before it was done; drain again".to_owned());
    }
}

/// Begins a drain, or joins the one under way on any instance.
pub async fn begin(app: &Arc<App>, who: &Author, within: Duration) -> Result<DrainView, LedgerError> {
    let details = serde_json::json!({ "seconds": within.as_secs() }).to_string();
    let operation = Operation { action: "drain-asked", details, who: who.clone(), at: app.now() };
    app.ledger.note_operation(&operation).await?;
    let (begun, deadline) = (begun(app.now(), within), Instant::now() + within);
    let draining = run(Arc::clone(app), deadline);
    instances::begin_or_join(app, begun, draining).await
}

fn begun(at: Timestamp, within: Duration) -> DrainView {
    let within = SignedDuration::try_from(within).unwrap_or(SignedDuration::MAX);
    let (begun_at, ends_at) = (Some(at), at.checked_add(within).ok());
    DrainView { is_running: true, begun_at, ends_at, ..DrainView::default() }
}

async fn run(app: Arc<App>, deadline: Instant) {
    tracing::info!("a drain began: everything that is being typed is saved");
    let trouble = match drain(&app, deadline).await {
        Ok(()) => None,
        Err(cause) => Some(report(&cause)),
    };
    app.drains.change(|view| {
        view.is_safe = trouble.is_none() && view.at_risk == 0 && view.open_saves == 0;
        view.trouble = trouble;
    });
    let view = app.drains.view();
    telemetry::drain_ended(if view.is_safe { "safe" } else { "at-risk" });
    if view.is_safe {
        tracing::info!(sessions = view.sessions, "the drain is done: nothing is at risk");
    } else {
        tracing::warn!(
            at_risk = view.at_risk,
            open_saves = view.open_saves,
            "the drain ended with work at risk"
        );
    }
}

async fn drain(app: &Arc<App>, deadline: Instant) -> Result<(), LedgerError> {
    let keys = app.ledger.keys_in_use().await?;
    let standing = Mutex::new(Standing::of(keys.iter().map(|record| &record.document)));
    show(app, &standing);
    stream::iter(keys.iter().enumerate())
        .for_each_concurrent(PARALLEL_MAX, |(place, record)| {
            let standing = &standing;
            async move {
                note(app, standing, (place, Some("saving")));
                let risk = securing::secure(app, record, deadline).await;
                note(app, standing, (place, risk));
            }
        })
        .await;
    wait_for_open_saves(app, deadline).await
}

/// What is the matter with each session; `None` once it is safe.
struct Standing {
    documents: Vec<DocumentId>,
    risks: BTreeMap<usize, &'static str>,
}

impl Standing {
    fn of<'a>(documents: impl Iterator<Item = &'a DocumentId>) -> Self {
        let documents: Vec<DocumentId> = documents.cloned().collect();
        let risks = (0..documents.len()).map(|place| (place, "waiting")).collect();
        Self { documents, risks }
    }
}

fn note(app: &App, standing: &Mutex<Standing>, (place, risk): (usize, Option<&'static str>)) {
    {
        let risks = &mut standing.lock().unwrap_or_else(PoisonError::into_inner).risks;
        match risk {
            Some(risk) => risks.insert(place, risk),
            None => risks.remove(&place),
        };
    }
    show(app, standing);
}

fn show(app: &App, standing: &Mutex<Standing>) {
    let standing = standing.lock().unwrap_or_else(PoisonError::into_inner);
    let left = standing.risks.iter().take(NAMED_MAX).map(|(place, why)| AtRisk {
        document: standing.documents[*place].to_string(),
        why: (*why).to_owned(),
    });
    let left = left.collect();
    app.drains.change(|view| {
        view.sessions = standing.documents.len();
        view.at_risk = standing.risks.len();
        view.safe = view.sessions - view.at_risk;
        view.left = left;
    });
}

/// Work that came while we looked, and work of sessions that are over.
async fn wait_for_open_saves(app: &App, deadline: Instant) -> Result<(), LedgerError> {
    loop {
        let open = app.ledger.count_open_saves().await?;
        app.drains.change(|view| view.open_saves = open);
        if open == 0 || Instant::now() >= deadline {
            return Ok(());
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
