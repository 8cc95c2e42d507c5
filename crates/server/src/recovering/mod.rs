//! Recovery: on start, on a timer and on a hint, finish what was cut short.
//!
//! A round does, in this order, and each part is harmless to repeat:
//! 1. [`saves`]: run every callback that was received and not finished (a dead link ends as *expired*, announced);
//! 2. [`publishing`]: publish what the tree owes, and look [`outside`] for what other programs did to it;
//! 3. [`forgotten`]: collect the files the Document Server could not deliver;
//! 4. [`keys`]: ask about keys whose final save nobody heard us answer, and retire those the server is done with;
//! 5. [`guests`]: ask guests of revoked share links to leave; show other programs who is editing ([`sessions`]);
//! 6. [`anchoring`]: anchor the audit chains that moved, note which blobs were read back;
//! 7. [`crate::pruning`]: let go of a part of what the retention policy does not keep;
//! 8. [`strays`], after the start: adopt blobs no row names (a ledger restored from an older backup).
//!
//! Beside the rounds, [`sessions`] asks about sessions of which nothing was heard for a while, and [`publishing`] works through whatever is owed beyond
//! what a round begins.
//!
//! Between rounds it listens: a settled save is published at once, and somebody who waits to open a document whose key
//! is finished does not wait for the timer.
//!
//! Guarantees: running a round twice changes nothing the second time; one part that fails does not keep the others
//! from running. Does not do: decide. The commit decides, as for every save.

mod anchoring;
mod forgotten;
mod guests;
mod keys;
mod outside;
mod publishing;
mod saves;
mod sessions;
mod strays;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use ledger::pruning::Meaning;
use ledger::turns::{SILENT_MAX, Turn};
use signals::Signal;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::incoming::StoreError;
use crate::pruning::{self, Reach};
use crate::saving::LEFT_ALONE;
use crate::telemetry::{self, report};

use anchoring::Spacing;
pub(crate) use publishing::{Occasion, PARALLEL_MAX as PUBLICATIONS_MAX, publish};
pub use sessions::look_after_sessions;
pub(crate) use strays::{AgeMin, adopt, find as find_strays};

/// How often it is looked for what a dead instance left: with the time that others leave alone what has only just begun, nobody waits
/// longer than for a silent one.
const LOOK_FOR_LEFT: Duration = SILENT_MAX.saturating_sub(LEFT_ALONE);

/// Anything that kept a part of a round from being finished.
#[derive(Debug, thiserror::Error)]
pub enum RecoveryError {
    /// The ledger failed.
    #[error("the ledger failed")]
    Ledger(#[from] ledger::LedgerError),
    /// The vault or the tree failed.
    #[error("the vault failed")]
    Vault(#[from] vault::VaultError),
    /// The Document Server did not do what was asked.
    #[error("the Document Server failed")]
    Command(#[from] crate::editors::CommandError),
    /// The Document Server did not say what it knows.
    #[error("the Document Server could not be asked")]
    NotAsked,
    /// A forgotten file could not be fetched.
    #[error("a forgotten file could not be fetched")]
    Fetch(#[from] crate::editors::FetchError),
    /// The check of a file was interrupted.
    #[error("a file could not be checked")]
    Check(#[from] crate::incoming::CheckError),
    /// Something could not be let go.
    #[error("something could not be let go")]
    Prune(#[from] crate::pruning::PruneError),
}

impl From<StoreError> for RecoveryError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Ledger(cause) => Self::Ledger(cause),
            StoreError::Vault(cause) => Self::Vault(cause),
        }
    }
}

/// Runs until told to stop.
pub async fn run(app: Arc<App>, stop: CancellationToken) {
    while !stop.is_cancelled() {
        round(&app).await;
        tokio::select! {
            () = stop.cancelled() => {}
            () = app.recovery_wanted.notified() => {}
            () = tokio::time::sleep(app.config.recovering.interval) => {}
        }
    }
}

/// With other instances about, what a dead one left is looked for more often than everything else, and however long a round takes.
pub async fn take_up_what_others_left(app: Arc<App>, stop: CancellationToken) {
    while app.config.ledger.is_shared() && !stop.is_cancelled() {
        let saves = part("saves", saves::finish(&app));
        // Beside each other: one that takes long holds up nobody.
        tokio::join!(saves, part("publications", publishing::publish_overdue(&app)));
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(LOOK_FOR_LEFT) => {}
        }
    }
}

/// Publishes whatever is owed, however much that is, until told to stop. One instance does it.
pub async fn publish_all_owed(app: Arc<App>, stop: CancellationToken) {
    while !stop.is_cancelled() {
        part("backlog", publishing::publish_all_owed(&app, &stop)).await;
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(app.config.recovering.interval) => {}
        }
    }
}

/// After the start: looks through the whole vault for what no row names. One instance does it.
pub async fn adopt_strays(app: Arc<App>) {
    match app.turns.take("strays").await {
        Ok(Some(_turn)) => drop(part("strays", adopt(&app, AgeMin::TenMinutes)).await),
        Ok(None) => {}
        Err(cause) => tracing::warn!(error = %report(&cause), "it could not be asked whose turn strays are"),
    }
}

/// Follows the hints of this instance until told to stop. Others follow their own: did all of them follow each hint, a save would cost
/// each of them something.
pub async fn follow(app: Arc<App>, stop: CancellationToken) {
    let mut listener = app.signals.listen_here();
    loop {
        let signal = tokio::select! {
            () = stop.cancelled() => return,
            signal = listener.next() => signal,
        };
        match signal {
            Some(Signal::Settled(document)) => publishing::publish_soon(&app, document, Occasion::Commit),
            Some(Signal::FinishWanted(key)) => {
                let app = Arc::clone(&app);
                tokio::spawn(async move { part("finish", keys::finish_in_turn(&app, &key)).await });
            }
            Some(Signal::GuestsLeave) => {
                let app = Arc::clone(&app);
                tokio::spawn(async move { part("guests", guests::ask_to_leave(&app)).await });
            }
            Some(Signal::Answered { .. } | Signal::Presence(_)) => {}
            // Something was missed: a round looks for everything.
            None => app.recovery_wanted.notify_one(),
        }
    }
}

/// One round. Returns whether everything could be looked at.
pub async fn round(app: &Arc<App>) -> bool {
    let mut is_whole = part("saves", saves::finish(app)).await;
    is_whole &= publish_owed(app).await;
    is_whole &= part("read-backs", anchoring::note_read_backs(app)).await;
    // The rest is for one instance at a time: a second one would ask the Document Server the same questions again.
    let _turn = match turn_of_round(app).await {
        Ok(Mine::Yes(turn)) => turn,
        Ok(Mine::No) => return is_whole,
        Err(cause) => {
            tracing::warn!(error = %report(&cause), "it could not be asked whose turn a round is");
            return false;
        }
    };
    is_whole &= part("outside", outside::look(app)).await;
    if app.guards.collector {
        is_whole &= part("forgotten", forgotten::collect_all(app)).await;
        is_whole &= part("keys", keys::settle(app)).await;
    }
    is_whole &= part("guests", guests::ask_to_leave(app)).await;
    is_whole &= part("people", sessions::show_people(app)).await;
    is_whole &= part("anchors", anchoring::anchor(app, Spacing::Minute)).await;
    is_whole &= part("retention", let_go(app)).await;
    telemetry::recovery_round_ended(if is_whole { "whole" } else { "partial" });
    is_whole
}

/// Whether a round is ours to make.
enum Mine {
    Yes(Option<Turn>),
    No,
}

async fn turn_of_round(app: &App) -> Result<Mine, ledger::LedgerError> {
    if !app.config.ledger.is_shared() {
        return Ok(Mine::Yes(None));
    }
    Ok(app.turns.take("recovery round").await?.map_or(Mine::No, |turn| Mine::Yes(Some(turn))))
}

/// Lets go of a part of what the policy does not keep.
async fn let_go(app: &Arc<App>) -> Result<(), RecoveryError> {
    Ok(pruning::prune(app, Meaning::DoIt, Reach::Part).await.map(drop)?)
}

/// Publishes what is owed the longest, as far as it can be done now.
pub(crate) async fn publish_owed(app: &Arc<App>) -> bool {
    part("publications", publishing::publish_owed(app)).await
}

/// Anchors all that moved: the last act before the service stops.
pub(crate) async fn anchor_all(app: &App) -> bool {
    part("anchors", anchoring::anchor(app, Spacing::None)).await
}

async fn part(name: &'static str, work: impl Future<Output = Result<(), RecoveryError>>) -> bool {
    let began = std::time::Instant::now();
    let done = work.await;
    tracing::debug!(
        part = name,
        elapsed_ms = began.elapsed().as_millis(),
        "a part of the recovery was looked at"
    );
    match done {
        Ok(()) => true,
        Err(cause) => {
            tracing::warn!(part = name, error = %report(&cause), "a part of the recovery could not be finished");
            false
        }
    }
}
