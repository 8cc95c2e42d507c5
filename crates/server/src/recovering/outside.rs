//! Published files that another program changed or removed: noticed, and handed to [`super::publishing`], which takes in what it
//! replaces.
//!
//! Guarantees: a file is only looked at by its length and time until it differs; one that was written in the last seconds is
//! left alone, for its writer may not be done. Bounded per round, going on where the last one ended. A change that kept both
//! length and time of the file is not noticed here, but by `saveguard verify` and with the next publication.

use std::sync::{Arc, PoisonError};

use jiff::SignedDuration;
use ledger::publications::Published;
use vault::tree::{Glance, Place};

use super::RecoveryError;
use super::publishing::{Occasion, publish_soon};
use crate::app::App;

/// Documents looked at in a round: a glance takes microseconds on a local disk.
const DOCUMENTS_PER_ROUND: u32 = 500;
/// So long must a file have held still.
const STILL: SignedDuration = SignedDuration::from_secs(10);

/// Looks at the next part of the published tree.
pub(super) async fn look(app: &Arc<App>) -> Result<(), RecoveryError> {
    let after = app.looked_outside.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let page = app.ledger.published_documents(after.as_ref(), DOCUMENTS_PER_ROUND).await?;
    for published in &page {
        if differs(app, published).await? {
            app.ledger.owe_publication(&published.document, app.now()).await?;
            publish_soon(app, published.document.clone(), Occasion::Round);
        }
    }
    // At the end it begins again with the first one.
    let last = page.last().map(|published| published.document.clone());
    *app.looked_outside.lock().unwrap_or_else(PoisonError::into_inner) = last;
    Ok(())
}

async fn differs(app: &App, published: &Published) -> Result<bool, RecoveryError> {
    let place = Place {
        company: published.company.clone(),
        project: published.project.clone(),
        document: published.document.clone(),
        name: published.name.clone(),
    };
    match app.tree.glance(&place).await? {
        // Somebody took it away.
        None => Ok(true),
        Some(glance) if !looks_changed(&glance, published) => Ok(false),
        Some(glance) if app.now().duration_since(glance.modified_at) < STILL => Ok(false),
        Some(_) => Ok(app.tree.shown(&place).await?.is_none_or(|(digest, _)| digest != published.digest)),
    }
}

fn looks_changed(glance: &Glance, published: &Published) -> bool {
    glance.size_bytes != published.size_bytes || glance.modified_at > published.published_at
}
