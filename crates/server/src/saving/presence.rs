//! Statuses 1 and 4: who is editing. Never retires anything.

use std::sync::Arc;

use ledger::LedgerError;
use ledger::keys::{KeyStandingNow, Presence};
use model::callbacks::{Answer, Callback};
use model::keys::Mode;
use model::sharing::is_guest;
use signals::Signal;

use crate::app::App;
use crate::editors::ask_to_leave;
use crate::instances::is_our_question;

/// How often it is tried to note somebody.
const ATTEMPTS: u32 = 3;

/// Notes who is inside. Who sits in a retired key is asked to leave; their saves are taken all the same.
pub(super) async fn note(app: &Arc<App>, callback: &Callback) -> Answer {
    if callback.status == 1 && !callback.users.is_empty() {
        app.entries.note(&callback.key);
    }
    if let Some(nonce) = callback.user_data.as_ref().filter(|data| is_our_question(data)) {
        app.signals.announce(Signal::Answered { nonce: nonce.clone(), status: callback.status }).await;
        app.answers.came(nonce, callback.status).await;
        if callback.users.is_empty() {
            // Our own question is no sign of life.
            return Answer::Saved;
        }
    }
    let presence = Presence {
        key: callback.key.clone(),
        users: if callback.status == 1 { callback.users.clone() } else { Vec::new() },
        is_idle: callback.status == 4,
        at: app.now(),
    };
    match note_insistently(app, &presence).await {
        Ok(standing) => {
            tell(app, &presence, standing).await;
            match standing {
                KeyStandingNow::Retired => ask_to_leave(&app.editor, presence.key, presence.users),
                KeyStandingNow::AsExpected => drop_unwelcome(app, &presence).await,
            }
        }
        // Presence is shown, not relied upon; the server does not repeat these and its users would be warned.
        Err(cause) => tracing::warn!(error = %cause, "presence could not be noted"),
    }
    Answer::Saved
}

/// Another instance may be about to answer a save that ends the session, and looks into the ledger who came in meanwhile.
async fn note_insistently(app: &App, presence: &Presence) -> Result<KeyStandingNow, LedgerError> {
    let mut attempts = 1;
    loop {
        match app.ledger.note_presence(presence).await {
            Err(LedgerError::Busy | LedgerError::Unavailable { .. }) if attempts < ATTEMPTS => attempts += 1,
            noted => return noted,
        }
    }
}

/// A guest of a revoked share link can come back for as long as their configuration opens: they are asked to leave again.
async fn drop_unwelcome(app: &App, presence: &Presence) {
    if !presence.users.iter().any(|user| is_guest(user)) {
        return;
    }
    match app.ledger.unwelcome(&presence.users).await {
        Ok(users) if users.is_empty() => {}
        Ok(users) => ask_to_leave(&app.editor, presence.key.clone(), users),
        Err(cause) => tracing::warn!(error = %cause, "guests could not be looked up"),
    }
}

/// Whoever looks at the document wants to know who is in it; other programs hear of those in the session that counts.
async fn tell(app: &App, presence: &Presence, standing: KeyStandingNow) {
    let Some(parts) = presence.key.parts() else { return };
    if standing == KeyStandingNow::AsExpected && parts.mode == Mode::Edit {
        app.signals.show_users(&parts.document, &presence.users).await;
    }
    app.signals.announce(Signal::Presence(parts.document)).await;
}
