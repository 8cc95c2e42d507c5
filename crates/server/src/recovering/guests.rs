//! Guests of revoked share links: asked to leave, also after a restart.
//!
//! They are asked at once, and once more when the configuration they were given opens nothing any more: until then the Document
//! Server lets them in again. What they typed and sent comes with the session's save, which is taken like every save.

use std::sync::Arc;

use ledger::shares::GuestSession;
use model::sharing::guest_id;

use super::RecoveryError;
use crate::app::App;
use crate::editors::CommandError;

/// Guests in one go; one command names those of one key.
const PAGE: u32 = 500;
/// `drop` of a key nobody has open.
const UNKNOWN_KEY: i64 = 1;

/// Asks everybody who has to leave. What cannot be asked now is tried again in the next round.
pub(super) async fn ask_to_leave(app: &Arc<App>) -> Result<(), RecoveryError> {
    loop {
        let sessions = app.ledger.guests_to_drop(app.now(), PAGE).await?;
        if sessions.is_empty() {
            return Ok(());
        }
        for of_key in sessions.chunk_by(|one, other| one.key == other.key) {
            ask(app, of_key).await?;
        }
    }
}

async fn ask(app: &App, sessions: &[GuestSession]) -> Result<(), RecoveryError> {
    let Some(first) = sessions.first() else { return Ok(()) };
    // Before the command: whoever comes back while it runs is asked again.
    let at = app.now();
    let users: Vec<String> = sessions.iter().map(|session| guest_id(session.share, session.guest)).collect();
    match app.editor.drop_users(&first.key, &users).await {
        Ok(()) | Err(CommandError::Refused { code: UNKNOWN_KEY, .. }) => {}
        Err(cause) => return Err(cause.into()),
    }
    app.ledger.note_dropped(sessions, at).await?;
    tracing::info!(guests = users.len(), "guests of a revoked share link were asked to leave");
    Ok(())
}
