//! Pruning: lets go of what the retention policy does not keep. Runs as a part of every recovery round, and on an operator's
//! word.
//!
//! The parts, each bounded and each harmless to repeat:
//! 1. [`blobs`] that were being removed when a process ended are removed;
//! 2. deleted documents whose time has come are purged;
//! 3. contents beyond the policy are let go, document by document;
//! 4. kept copies that a person settled are let go;
//! 5. [`backups`] in the published tree go with the contents they show;
//! 6. [`blobs`] that no row needs any more are removed, much later.
//!
//! Guarantees: the ledger rules and writes the act down before a byte goes; a byte goes only if no row needs it, whatever comes
//! in meanwhile (`ledger::Pruning`); one process at a time, and one of these at a time in it. After a crash anywhere the next
//! one goes on. Does not do: decide. `model::retention` does.

mod backups;
mod blobs;

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use ledger::pruning::{Meaning, PruneWish, Purged};
use model::DocumentId;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use utoipa::ToSchema;

use crate::app::App;
use crate::telemetry::{self, report};

/// Documents looked at in one part of a round: a few milliseconds of reading each second at most.
const DOCUMENTS_PER_ROUND: u32 = 200;
/// Deleted documents, kept copies, folders with backups and blobs in one round.
const THINGS_PER_ROUND: u32 = 200;
/// Steps of one document in one go.
const STEPS_PER_DOCUMENT: usize = 50;
/// A page, when everything is looked through.
const PAGE: u32 = 1000;

/// Between two questions for the turn.
const TURN_PAUSE: Duration = Duration::from_millis(500);

/// How much is looked through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// As much as fits into a round, going on where the last one ended.
    Part,
    /// Everything.
    All,
}

impl Reach {
    fn limit(self) -> u32 {
        match self {
            Self::Part => THINGS_PER_ROUND,
            Self::All => PAGE,
        }
    }
}

/// Why nothing more could be let go now.
#[derive(Debug, thiserror::Error)]
pub enum PruneError {
    /// The ledger failed.
    #[error("the ledger failed")]
    Ledger(#[from] ledger::LedgerError),
    /// The vault or the tree failed.
    #[error("the vault failed")]
    Vault(#[from] vault::VaultError),
    /// It was interrupted.
    #[error("it was interrupted")]
    Interrupted,
}

/// One prunes at a time; where the next round goes on.
pub(crate) struct Turn {
    turn: Semaphore,
    last_looked_at: Mutex<Option<DocumentId>>,
}

impl Default for Turn {
    fn default() -> Self {
        Self { turn: Semaphore::new(1), last_looked_at: Mutex::default() }
    }
}

/// What was let go, or would be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Pruned {
    /// Documents whose contents were looked at.
    pub documents: u64,
    /// Versions and checkpoints that were let go.
    pub contents: u64,
    /// Their bytes.
    pub contents_bytes: u64,
    /// Kept copies that were let go.
    pub kept: u64,
    /// Deleted documents that were purged.
    pub purged: u64,
    /// Deleted documents whose time has come and that wait: for a session, a save, or a person's word about a kept copy.
    pub waiting: u64,
    /// Backups in the published tree that were removed.
    pub backups: u64,
    /// Blobs that were removed. Nothing needed them for `retention.bytes_days`.
    pub blobs: u64,
    /// Their bytes.
    pub blobs_bytes: u64,
    /// Things that could not be let go now.
    pub failed: u64,
}

impl Pruned {
    fn is_nothing(&self) -> bool {
        Self { documents: 0, waiting: 0, ..self.clone() } == Self::default()
    }

    /// Notes that one thing could not be done. The others are none the worse for it.
    fn fail(&mut self, what: &'static str, cause: &dyn std::error::Error) {
        self.failed += 1;
        tracing::warn!(what, error = %report(cause), "something could not be let go now");
    }
}

/// Lets go, or says what would go.
pub(crate) async fn prune(app: &Arc<App>, meaning: Meaning, reach: Reach) -> Result<Pruned, PruneError> {
    let _turn = match (app.pruning.turn.try_acquire(), reach) {
        (Ok(turn), _) => turn,
        // Somebody else is at it: the next round comes.
        (Err(_), Reach::Part) => return Ok(Pruned::default()),
        (Err(_), Reach::All) => app.pruning.turn.acquire().await.map_err(|_| PruneError::Interrupted)?,
    };
    let Some(_everywhere) = turn_everywhere(app, reach).await? else { return Ok(Pruned::default()) };
    let wish = PruneWish { policy: app.config.retention.clone(), meaning, at: app.now() };
    let mut pruned = Pruned::default();
    if meaning == Meaning::DoIt {
        blobs::finish_begun(app, &mut pruned).await?;
    }
    purge_deleted(app, &wish, reach, &mut pruned).await?;
    prune_contents(app, &wish, reach, &mut pruned).await?;
    prune_kept(app, &wish, reach, &mut pruned).await?;
    if meaning == Meaning::DoIt {
        backups::prune_owed(app, reach, &mut pruned).await?;
    }
    blobs::remove_unneeded(app, &wish, reach, &mut pruned).await?;
    if meaning == Meaning::DoIt {
        tell(&pruned);
    }
    Ok(pruned)
}

/// The turn among all instances. Whoever looks through everything waits for it.
async fn turn_everywhere(app: &App, reach: Reach) -> Result<Option<ledger::turns::Turn>, PruneError> {
    loop {
        let turn = app.turns.take("retention").await?;
        if turn.is_some() || reach == Reach::Part {
            return Ok(turn);
        }
        tokio::time::sleep(TURN_PAUSE).await;
    }
}

fn tell(pruned: &Pruned) {
    telemetry::pruned("content", pruned.contents);
    telemetry::pruned("kept-copy", pruned.kept);
    telemetry::pruned("document", pruned.purged);
    telemetry::pruned("backup", pruned.backups);
    telemetry::pruned("blob", pruned.blobs);
    if !pruned.is_nothing() {
        tracing::info!(
            contents = pruned.contents,
            kept = pruned.kept,
            purged = pruned.purged,
            backups = pruned.backups,
            blobs = pruned.blobs,
            blobs_bytes = pruned.blobs_bytes,
            "what the retention policy does not keep was let go"
        );
    }
}

async fn purge_deleted(
    app: &App,
    wish: &PruneWish,
    reach: Reach,
    pruned: &mut Pruned,
) -> Result<(), PruneError> {
    let Some(limit) = wish.policy.deleted else { return Ok(()) };
    let before = wish.at.checked_sub(limit).unwrap_or(Timestamp::MIN);
    let mut after = None;
    loop {
        let page = app.ledger.deleted_documents(before, after.as_ref(), reach.limit()).await?;
        for document in &page {
            match app.ledger.purge_document(document, wish).await {
                Ok(Purged::Yes { .. }) => {
                    steps::reached("prune.purged");
                    pruned.purged += 1;
                }
                Ok(Purged::Waits(_)) => pruned.waiting += 1,
                Ok(Purged::NotYet) => {}
                Err(cause) => pruned.fail("a deleted document", &cause),
            }
        }
        after = page.last().cloned();
        if after.is_none() || reach == Reach::Part {
            return Ok(());
        }
    }
}

async fn prune_contents(
    app: &App,
    wish: &PruneWish,
    reach: Reach,
    pruned: &mut Pruned,
) -> Result<(), PruneError> {
    if !wish.policy.lets_contents_go() {
        return Ok(());
    }
    let mut after = if reach == Reach::Part { last_looked_at(app).clone() } else { None };
    loop {
        let limit = if reach == Reach::Part { DOCUMENTS_PER_ROUND } else { PAGE };
        let page = app.ledger.document_ids(after.as_ref(), limit).await?;
        for document in &page {
            pruned.documents += 1;
            if let Err(cause) = prune_contents_of(app, document, wish, pruned).await {
                pruned.fail("contents of a document", &cause);
            }
        }
        after = page.last().cloned();
        if reach == Reach::Part {
            // At the end it begins again with the first one.
            last_looked_at(app).clone_from(&after);
            return Ok(());
        }
        if after.is_none() {
            return Ok(());
        }
    }
}

/// A step lets go of so many at most; there may be more.
async fn prune_contents_of(
    app: &App,
    document: &DocumentId,
    wish: &PruneWish,
    pruned: &mut Pruned,
) -> Result<(), ledger::LedgerError> {
    for _ in 0..STEPS_PER_DOCUMENT {
        let contents = app.ledger.prune_contents(document, wish).await?;
        pruned.contents += contents.len() as u64;
        pruned.contents_bytes += contents.iter().map(|content| content.size_bytes).sum::<u64>();
        if contents.is_empty() || wish.meaning == Meaning::OnlySay {
            break;
        }
    }
    Ok(())
}

async fn prune_kept(
    app: &App,
    wish: &PruneWish,
    reach: Reach,
    pruned: &mut Pruned,
) -> Result<(), PruneError> {
    loop {
        let kept = app.ledger.prune_kept(wish, reach.limit()).await?;
        pruned.kept += kept.len() as u64;
        if kept.is_empty() || reach == Reach::Part || wish.meaning == Meaning::OnlySay {
            return Ok(());
        }
    }
}

fn last_looked_at(app: &App) -> std::sync::MutexGuard<'_, Option<DocumentId>> {
    app.pruning.last_looked_at.lock().unwrap_or_else(PoisonError::into_inner)
}
