//! Comparing: what was added, removed and changed between two contents of a document.
//!
//! 1. Both contents are found: versions, checkpoints or kept copies of this very document.
//! 2. Their bytes are taken out of the vault into the spool, verified.
//! 3. `office-diff` compares them, away from the threads that serve requests, a few at a time.
//!
//! Guarantees: nothing changes; memory, work and waiting are bounded; bytes that are not what their hash says are not
//! compared. Does not do: decide who may see it, or remember what it found.

use std::sync::Arc;
use std::time::Duration;

use ledger::documents::Document;
use model::{Digest, Label};
use office_diff::{Comparison, Limits};
use vault::VaultError;

use crate::app::App;
use crate::incoming::spool_blob;

/// Each may need some hundred megabytes and a core for seconds.
pub(crate) const PARALLEL_MAX: usize = 2;
/// How long somebody waits for their turn.
const TURN_MAX: Duration = Duration::from_secs(10);

/// A content of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// A version or checkpoint.
    Version(Label),
    /// A kept copy.
    Kept(u64),
}

impl Which {
    /// Reads `14`, `14.2` or `kept:7`.
    pub fn parse(text: &str) -> Option<Self> {
        match text.strip_prefix("kept:") {
            Some(number) => number.parse().ok().map(Self::Kept),
            None => Label::parse(text).map(Self::Version),
        }
    }
}

impl std::fmt::Display for Which {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Version(label) => label.fmt(out),
            Self::Kept(number) => write!(out, "kept:{number}"),
        }
    }
}

/// Why contents were not compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// There is no such content of this document.
    #[error("there is no such content")]
    NotFound,
    /// Too many comparisons are under way.
    #[error("too many comparisons are under way")]
    Busy,
    /// They have no text to compare, or are of different kinds.
    #[error("the contents cannot be compared")]
    NotComparable(#[source] office_diff::CompareError),
    /// The comparison was interrupted.
    #[error("the comparison was interrupted")]
    Interrupted,
    /// The ledger failed.
    #[error("the ledger failed")]
    Ledger(#[from] ledger::LedgerError),
    /// The vault or the spool failed.
    #[error("the vault failed")]
    Vault(#[from] VaultError),
}

/// What was compared, and what was found.
#[derive(Debug)]
pub struct Compared {
    /// The older one.
    pub from: Which,
    /// The newer one.
    pub to: Which,
    /// The differences.
    pub comparison: Comparison,
}

/// Compares two contents: without a second one the head, without a first one the content before the second.
pub async fn compare(
    app: &App,
    document: &Document,
    (from, to): (Option<Which>, Option<Which>),
) -> Result<Compared, CompareError> {
    let to = to.unwrap_or(Which::Version(document.head));
    let from = match from {
        Some(from) => from,
        None => before(app, document, to).await?,
    };
    let digests = (find(app, document, from).await?, find(app, document, to).await?);
    let turn = tokio::time::timeout(TURN_MAX, Arc::clone(&app.comparisons).acquire_owned()).await;
    let turn = turn.map_err(|_| CompareError::Busy)?.map_err(|_| CompareError::Interrupted)?;
    let spooled = (spool_blob(app, &digests.0).await?, spool_blob(app, &digests.1).await?);
    let comparing = tokio::task::spawn_blocking(move || {
        // The turn is over when the work is, also if nobody waits for it any more.
        let _turn = turn;
        let (from, to) = (spooled.0.reader()?, spooled.1.reader()?);
        office_diff::compare(from, to, &Limits::default()).map_err(CompareError::NotComparable)
    });
    let comparison = comparing.await.map_err(|_| CompareError::Interrupted)??;
    Ok(Compared { from, to, comparison })
}

/// What a content is compared with if nobody says: the one it replaced; a kept copy with the head.
async fn before(app: &App, document: &Document, to: Which) -> Result<Which, CompareError> {
    let Which::Version(label) = to else { return Ok(Which::Version(document.head)) };
    let contents = app.ledger.contents(&document.id).await?;
    let older = contents
        .iter()
        .filter(|content| content.label < label && !content.is_filed_beside && content.pruned_at.is_none());
    Ok(Which::Version(older.map(|content| content.label).max().unwrap_or(label)))
}

async fn find(app: &App, document: &Document, which: Which) -> Result<Digest, CompareError> {
    let digest = match which {
        Which::Version(label) => {
            let content = app.ledger.content(&document.id, label).await?;
            content.filter(|content| content.pruned_at.is_none()).map(|content| content.blob.digest)
        }
        Which::Kept(number) => {
            let copy = app.ledger.kept_copy(number).await?;
            let copy =
                copy.filter(|copy| copy.document.as_ref() == Some(&document.id) && copy.pruned_at.is_none());
            copy.map(|copy| copy.blob.digest)
        }
    };
    digest.ok_or(CompareError::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_read_back_as_they_are_named() {
        for text in ["14", "14.2", "kept:7"] {
            assert_eq!(Which::parse(text).map(|which| which.to_string()).as_deref(), Some(text));
        }
        for strange in ["", "kept:", "kept:x", "kept:-1", "x", "1.2.3"] {
            assert_eq!(Which::parse(strange), None, "{strange}");
        }
    }
}
