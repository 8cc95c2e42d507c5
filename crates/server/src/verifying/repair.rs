//! Mends what can be mended: damaged and missing blobs, owed work, blobs no row names, the published tree.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use vault::Vault;

use super::mend::mend_blobs;
use super::walk::place_of;
use super::{Progress, ReadData, VerifyError};
use crate::app::App;
use crate::recovering::{AgeMin, Occasion, adopt, publish, round};
use crate::telemetry::report;

const PAGE: u32 = 1000;
/// Owed saves need the Document Server; if it is away they stay owed and the service takes them up later.
const OWED_SAVES_TIME: Duration = Duration::from_secs(150);

/// What is looked at, and from where it may be mended.
#[derive(Clone)]
pub struct Remedies {
    /// Vaults that may have what ours has lost, in the order in which they are asked.
    pub sources: Vec<Arc<dyn Vault>>,
    /// Whether every byte is read to find what is damaged.
    pub read_data: ReadData,
}

/// What was done.
#[derive(Debug, Default, Serialize)]
pub struct Repaired {
    /// Blobs that were damaged or missing and are whole now.
    pub blobs_mended: u64,
    /// Documents whose published file was made right.
    pub published: u64,
    /// Saves that were owed before and are finished now.
    pub saves_finished: u64,
    /// Blobs that no row named and that are conflict copies or orphans now.
    pub blobs_adopted: u64,
}

/// Mends everything that can be mended. The caller has the data folder to itself.
pub async fn repair(
    app: &Arc<App>,
    remedies: &Remedies,
    progress: &dyn Progress,
) -> Result<Repaired, VerifyError> {
    let mut repaired =
        Repaired { blobs_mended: mend_vault(app, remedies, progress).await?, ..Repaired::default() };
    let before = app.ledger.totals().await?;
    progress.begin("owed work", before.open_saves);
    round(app).await;
    let _ = tokio::time::timeout(OWED_SAVES_TIME, until_idle(app)).await;
    repaired.saves_finished = before.open_saves.saturating_sub(app.ledger.totals().await?.open_saves);
    let kept_before = kept_count(app).await?;
    adopt(app, AgeMin::None).await?;
    repaired.blobs_adopted = kept_count(app).await? - kept_before;
    progress.begin("published tree", before.documents);
    repaired.published = mend_tree(app, progress).await?;
    Ok(repaired)
}

/// Blobs come first: what is published or finished afterwards needs their bytes.
async fn mend_vault(app: &App, remedies: &Remedies, progress: &dyn Progress) -> Result<u64, VerifyError> {
    let mut sources = Vec::new();
    if let Some(depot) = &app.depot {
        // What waits is sound where the far vault may not be; and what is damaged in the depot may be sound behind it.
        if let Err(cause) = depot.deliver().await {
            tracing::warn!(error = %report(&cause), "what waits in the depot could not be delivered");
        }
        sources.push(depot.far());
    }
    sources.extend(remedies.sources.iter().cloned());
    if sources.is_empty() {
        return Ok(0);
    }
    mend_blobs(app, &sources, remedies.read_data, progress).await
}

/// Publishes every document whose published file is missing or wrong. The caller has the data folder to itself.
pub async fn publish_missing(app: &Arc<App>, progress: &dyn Progress) -> Result<u64, VerifyError> {
    progress.begin("published tree", app.ledger.totals().await?.documents);
    mend_tree(app, progress).await
}

async fn until_idle(app: &App) {
    while app.jobs.count() > 0 || !app.publications.is_empty() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn kept_count(app: &App) -> Result<u64, VerifyError> {
    let totals = app.ledger.totals().await?;
    Ok(totals.conflicts + totals.orphans)
}

async fn mend_tree(app: &Arc<App>, progress: &dyn Progress) -> Result<u64, VerifyError> {
    let mut published = 0;
    let mut after = None;
    loop {
        let page = app.ledger.document_ids(after.as_ref(), PAGE).await?;
        let Some(last) = page.last().cloned() else { return Ok(published) };
        for id in page {
            progress.advance();
            let Some(document) = app.ledger.document(&id).await? else { continue };
            let shown = app.tree.shown(&place_of(&document)).await?.map(|(shown, _)| shown);
            let is_right = match document.deleted_at {
                Some(_) => shown.is_none(),
                None => shown == Some(document.head_digest),
            };
            if !is_right {
                app.ledger.owe_publication(&id, app.now()).await?;
                publish(app, &id, Occasion::Round).await?;
                published += 1;
            }
        }
        after = Some(last);
    }
}
