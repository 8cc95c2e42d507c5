//! Callbacks that were received and not finished: run the same recipe again.

use std::sync::Arc;

use super::RecoveryError;
use crate::app::App;
use crate::saving::{plan_of, start};

/// Starts every open save that is not being worked on, in order of arrival.
pub(super) async fn finish(app: &Arc<App>) -> Result<(), RecoveryError> {
    for open in app.ledger.open_saves().await? {
        let plan = plan_of(&open);
        tracing::info!(inbox = open.number.0, "an unfinished save is taken up again");
        if let Err(refused) = start(app, open, plan, None) {
            // The lane is full or draining: the next round comes.
            tracing::warn!(error = %refused, "an unfinished save has to wait");
        }
    }
    Ok(())
}
