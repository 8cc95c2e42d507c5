//! Callbacks that were received and not finished: run the same recipe again.
//!
//! Guarantees: a save that is being worked on, here or by another instance that lives, is left to whoever works on it, also if
//! it ends while we look.

use std::collections::HashSet;
use std::sync::Arc;

use ledger::saves::{OpenSave, ReceiptStanding};

use super::RecoveryError;
use crate::app::App;
use crate::saving::{Claim, Start, claim, plan_of, start};

/// Starts every open save that is not being worked on, in order of arrival.
pub(super) async fn finish(app: &Arc<App>) -> Result<(), RecoveryError> {
    let seen = app.ledger.open_saves().await?;
    take_up(app, &seen).await
}

/// Takes up those of the saves that nobody works on and that are open all the same.
///
/// A save can end between our look at the ledger and our look at the work. Begun again it would find its link used up, and
/// while it tries, the next saves of its document would wait for it in line. So the ledger is asked once more.
pub(super) async fn take_up(app: &Arc<App>, seen: &[OpenSave]) -> Result<(), RecoveryError> {
    let idle: HashSet<_> =
        seen.iter().map(|open| open.number).filter(|number| !app.jobs.is_running(*number)).collect();
    if idle.is_empty() {
        return Ok(());
    }
    let open = app.ledger.open_saves().await?;
    for open in open.into_iter().filter(|open| idle.contains(&open.number)) {
        let Claim::Ours(turn) = claim(app, open.number, ReceiptStanding::Unfinished).await else { continue };
        let plan = plan_of(&open);
        tracing::info!(inbox = open.number.0, "an unfinished save is taken up again");
        if let Err(refused) = start(app, Start { open, plan, turn }, None) {
            // The lane is full or draining: the next round comes.
            tracing::warn!(error = %refused, "an unfinished save has to wait");
        }
    }
    Ok(())
}
