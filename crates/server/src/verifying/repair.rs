//! Mends what can be mended: the published tree, owed work, blobs no row names.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::walk::place_of;
use super::{Progress, VerifyError};
use crate::app::App;
use crate::recovering::{AgeMin, Occasion, adopt, publish, round};

const PAGE: u32 = 1000;
/// Owed saves need the Document Server; if it is away they stay owed and the service takes them up later.
const OWED_SAVES_TIME: Duration = Duration::from_secs(150);

/// What was done.
#[derive(Debug, Default, Serialize)]
pub struct Repaired {
    /// Documents whose published file was made right.
    pub published: u64,
    /// Saves that were owed before and are finished now.
    pub saves_finished: u64,
    /// Blobs that no row named and that are conflict copies or orphans now.
    pub blobs_adopted: u64,
}

/// Mends everything that can be mended. The caller has the data folder to itself.
pub async fn repair(app: &Arc<App>, progress: &dyn Progress) -> Result<Repaired, VerifyError> {
    let mut repaired = Repaired::default();
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
