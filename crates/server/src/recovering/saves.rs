//! Callbacks that were received and not finished: run the same recipe again.
//!
//! Guarantees: a save that is being worked on, here or by another instance that lives, is left to whoever works on it, also if
//! it ends while we look, or has only just begun.

use std::collections::HashSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use ledger::saves::OpenSave;

use super::RecoveryError;
use crate::app::App;
use crate::saving::{Claim, Claiming, LEFT_ALONE, Start, claim, plan_of, start};

/// Starts every open save that is not being worked on, in order of arrival.
pub(super) async fn finish(app: &Arc<App>) -> Result<(), RecoveryError> {
    let mut seen = app.ledger.open_saves().await?;
    if app.config.ledger.is_shared() {
        let now = app.now();
        seen.retain(|open| !has_only_just_begun(open, now));
    }
    take_up(app, &seen).await
}

/// Whether another instance may be about to claim it.
fn has_only_just_begun(open: &OpenSave, now: Timestamp) -> bool {
    // In both directions: a time far ahead of ours says nothing.
    let since = now.duration_since(open.link_received_at).abs();
    SignedDuration::try_from(LEFT_ALONE).is_ok_and(|left_alone| since < left_alone)
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
        let Claim::Ours(turn) = claim(app, &Claiming::unfinished(open.number)).await else { continue };
        if turn.is_none() && app.config.ledger.is_shared() {
            // Nobody could say whose it is. The next look comes soon, and did all instances begin it meanwhile, nobody would be helped.
            continue;
        }
        let plan = plan_of(&open);
        tracing::info!(inbox = open.number.0, "an unfinished save is taken up again");
        if let Err(refused) = start(app, Start { open, plan, turn }, None) {
            // The lane is full or draining: the next round comes.
            tracing::warn!(error = %refused, "an unfinished save has to wait");
        }
    }
    Ok(())
}
