//! One session: until everything that was typed in it before is committed, or the time is up.
//!
//! "Nothing new" of the server may also mean that a save is under way, and a force save may be accepted and never sent. So
//! only a committed save, or silence after "nothing new", counts as safe; anything else is asked again.

use std::time::Duration;

use ledger::keys::KeyRecord;
use model::opening::ServerKnowledge;
use model::{DocumentId, InboxNumber};
use tokio::time::Instant;

use crate::app::App;
use crate::editors::ForceSave;
use crate::patience::settled;
use crate::telemetry::report;

/// After "nothing new", a save that was under way would have arrived by then: building a file takes half a second.
const SILENCE: Duration = Duration::from_secs(2);
/// Between two questions that were not answered.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// An accepted force save that has not come by then is asked for again.
const COMES_WITHIN: Duration = Duration::from_secs(20);

/// Makes sure of one session. `None`: it is safe; else what is the matter.
pub(super) async fn secure(app: &App, record: &KeyRecord, deadline: Instant) -> Option<&'static str> {
    loop {
        let risk = match attempt(app, record, deadline).await {
            Ok(None) => return None,
            Ok(Some(risk)) => risk,
            Err(cause) => {
                tracing::warn!(document.id = %record.document, error = %report(&cause), "a session could not be looked at");
                "not-saved-in-time"
            }
        };
        if Instant::now() + ASK_AGAIN >= deadline {
            return Some(risk);
        }
        tokio::time::sleep(ASK_AGAIN).await;
    }
}

async fn attempt(
    app: &App,
    record: &KeyRecord,
    deadline: Instant,
) -> Result<Option<&'static str>, ledger::LedgerError> {
    let document = &record.document;
    let newest = app.ledger.newest_save(document).await?;
    let word = format!("saveguard-drain-{:016x}", app.random.bits());
    match app.editor.force_save(&record.key, &word).await {
        Err(cause) => {
            tracing::warn!(error = %report(&cause), "the Document Server could not be asked for a force save");
            Ok(Some("server-away"))
        }
        Ok(ForceSave::Begun) => {
            let until = deadline.min(Instant::now() + COMES_WITHIN);
            let has_come = wait_for_save(app, (document, newest), (&word, until)).await?;
            Ok((!has_come).then_some("not-saved-in-time"))
        }
        Ok(ForceSave::NothingNew | ForceSave::NobodyThere) => nothing_is_left(app, record, deadline).await,
    }
}

/// Until the save that carries our word, or a final one, is finished.
async fn wait_for_save(
    app: &App,
    (document, newest): (&DocumentId, InboxNumber),
    (word, until): (&str, Instant),
) -> Result<bool, ledger::LedgerError> {
    loop {
        let mut listener = app.signals.listen();
        let news = app.ledger.saves_after(document, newest).await?;
        let is_ours = |save: &ledger::changes::SaveNews| {
            save.is_finished && (save.status == 2 || save.user_data.as_deref() == Some(word))
        };
        if news.iter().any(is_ours) {
            return Ok(true);
        }
        if !settled(listener.as_mut(), document, until).await {
            return Ok(false);
        }
    }
}

/// The server says that there is nothing to save. Then it must hold nothing that nobody is editing, and nothing may be on its
/// way.
async fn nothing_is_left(
    app: &App,
    record: &KeyRecord,
    deadline: Instant,
) -> Result<Option<&'static str>, ledger::LedgerError> {
    match app.editor.knowledge_of(&record.key).await {
        ServerKnowledge::Unknown | ServerKnowledge::NothingHeld => Ok(None),
        ServerKnowledge::ChangesHeld => Ok(Some("held-by-the-server")),
        ServerKnowledge::Away => Ok(Some("server-away")),
        ServerKnowledge::UsersInside => {
            let until = deadline.min(Instant::now() + SILENCE);
            let is_quiet = stays_quiet(app, &record.document, until).await?;
            Ok((!is_quiet).then_some("saving"))
        }
    }
}

async fn stays_quiet(app: &App, document: &DocumentId, until: Instant) -> Result<bool, ledger::LedgerError> {
    let newest = app.ledger.newest_save(document).await?;
    loop {
        let mut listener = app.signals.listen();
        if !app.ledger.saves_after(document, newest).await?.is_empty() {
            return Ok(false);
        }
        if !settled(listener.as_mut(), document, until).await {
            return Ok(true);
        }
    }
}
