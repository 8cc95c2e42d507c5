//! Sessions of which nothing was heard for a while: ask the Document Server, and believe it.
//!
//! The server tells who comes and who leaves, once and without repeating it. After a crash, a lost callback or a restart of
//! ours the list may be wrong. The answer to `info` puts it right: with people inside, the callback it causes names them
//! all; without, the session is closed, or its changes are stranded and somebody must open the document.
//!
//! Guarantees: time alone closes nothing; no key retires here; asking twice changes nothing the second time.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use jiff::SignedDuration;
use ledger::sessions::{Look, LookOutcome, SessionPage, SessionRecord};
use model::opening::ServerKnowledge;
use model::sessions::is_look_due;
use signals::Signal;
use tokio_util::sync::CancellationToken;

use super::{RecoveryError, part};
use crate::app::App;
use crate::patience::quiet_after;
use crate::telemetry;

/// Sessions read at once.
const PAGE: u32 = 500;
/// Questions to the Document Server at once.
const QUESTIONS: usize = 4;

/// Which sessions are asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// All that may hide something and that nobody heard of or asked about since this process began: it was away, and much may have happened.
    All,
    /// Those of which nothing was heard for as long as the configuration says.
    Silent,
}

/// Looks after sessions until told to stop.
pub async fn look_after_sessions(app: Arc<App>, stop: CancellationToken) {
    let mut which = Which::All;
    while !stop.is_cancelled() {
        if part("sessions", look_in_turn(&app, which)).await {
            which = Which::Silent;
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(pause(&app)) => {}
        }
    }
}

/// So that nobody waits much longer than the configuration says.
fn pause(app: &App) -> Duration {
    (app.config.sessions.look_every / 4).max(Duration::from_secs(1))
}

/// One instance at a time: another one would ask about the same sessions. What it finds asked about then is due no more.
async fn look_in_turn(app: &App, which: Which) -> Result<(), RecoveryError> {
    let turn = app.turns.take("sessions").await?;
    match (turn, which) {
        (Some(_turn), _) => look(app, which).await,
        (None, Which::All) => Err(RecoveryError::NotAsked),
        (None, Which::Silent) => Ok(()),
    }
}

/// Asks about every session that is due.
pub(super) async fn look(app: &App, which: Which) -> Result<(), RecoveryError> {
    let mut after = None;
    loop {
        let sessions = app.ledger.sessions(&SessionPage { document: None, after, limit: PAGE }).await?;
        after = sessions.last().map(|session| session.key.clone());
        let due: Vec<_> = sessions.into_iter().filter(|session| is_due(app, session, which)).collect();
        let mut asked = futures_util::stream::iter(due.into_iter().map(|session| ask(app, session)))
            .buffer_unordered(QUESTIONS);
        while let Some(asked) = asked.next().await {
            asked?;
        }
        if after.is_none() {
            return Ok(());
        }
    }
}

/// Shows other programs who is inside, all over again: what they were shown may have been lost with Redis.
pub(super) async fn show_people(app: &App) -> Result<(), RecoveryError> {
    let mut after = None;
    while app.config.signals.is_some() {
        let sessions = app.ledger.sessions(&SessionPage { document: None, after, limit: PAGE }).await?;
        let Some(last) = sessions.last() else { break };
        after = Some(last.key.clone());
        for session in sessions.iter().filter(|session| !session.people.is_empty()) {
            let users: Vec<String> = session.people.iter().map(|person| person.id.clone()).collect();
            app.signals.show_users(&session.document, &users).await;
        }
    }
    Ok(())
}

fn is_due(app: &App, session: &SessionRecord, which: Which) -> bool {
    let every = match which {
        Which::All => app.now().duration_since(app.started_at).max(SignedDuration::ZERO),
        Which::Silent => {
            SignedDuration::try_from(app.config.sessions.look_every).unwrap_or(SignedDuration::MAX)
        }
    };
    is_look_due(&session.facts, app.now().duration_since(session.last_word_at()), every)
}

async fn ask(app: &App, session: SessionRecord) -> Result<(), RecoveryError> {
    let asked_at = app.now();
    let server = app.editor.knowledge_of(&session.key).await;
    if server == ServerKnowledge::Away {
        return Err(RecoveryError::NotAsked);
    }
    let (key, at) = (session.key, app.now());
    let look = Look { key, server, asked_at, quiet_after: quiet_after(app), at };
    let document = session.document;
    match app.ledger.note_look(&look).await? {
        LookOutcome::GoesOn
        | LookOutcome::Closed { people: 0 }
        | LookOutcome::Stranded { is_news: false } => {
            return Ok(());
        }
        LookOutcome::Closed { people } => {
            tracing::info!(document.id = %document, people, "a session of document {document} was over without our having heard so");
            app.signals.show_users(&document, &[]).await;
        }
        LookOutcome::Stranded { is_news: true } => {
            telemetry::alert("stranded-changes");
            tracing::warn!(document.id = %document, "the Document Server holds changes of document {document} and nobody is inside: opening it brings them back");
        }
    }
    app.signals.announce(Signal::Presence(document)).await;
    Ok(())
}
