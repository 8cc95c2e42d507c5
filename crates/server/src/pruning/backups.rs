//! Backups in the published tree: they go with the content they show.
//!
//! Guarantees: a backup goes only if its name tells a content that was let go (or its document was purged), and its bytes are
//! ones the ledger has known: what another program put there and nobody took in stays.

use std::sync::Arc;

use ledger::documents::Content;
use ledger::pruning::OwedPruning;
use model::Digest;
use model::names::is_backup_of;
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncReadExt as _;
use vault::VaultError;
use vault::tree::Place;

use super::{PruneError, Pruned, Reach};
use crate::app::App;

const CHUNK_BYTES: usize = 256 * 1024;

/// Looks through the backups of documents of which something was let go.
pub(super) async fn prune_owed(app: &Arc<App>, reach: Reach, pruned: &mut Pruned) -> Result<(), PruneError> {
    loop {
        let page = app.ledger.owed_prunings(reach.limit()).await?;
        let failed_before = pruned.failed;
        for owed in &page {
            if let Err(cause) = prune_backups(app, owed, pruned).await {
                pruned.fail("backups of a document", &cause);
            }
        }
        if page.is_empty() || reach == Reach::Part || pruned.failed > failed_before {
            return Ok(());
        }
    }
}

async fn prune_backups(app: &App, owed: &OwedPruning, pruned: &mut Pruned) -> Result<(), PruneError> {
    let place = Place {
        company: owed.company.clone(),
        project: owed.project.clone(),
        document: owed.document.clone(),
        name: owed.name.clone(),
    };
    let contents = app.ledger.contents(&owed.document).await?;
    for name in app.tree.backups(&place).await? {
        if !goes(owed, &contents, &name) {
            continue;
        }
        let digest = digest_of(app, &place, &name).await?;
        if app.ledger.knew_content(&owed.document, &digest).await? {
            app.tree.remove_backup(&place, &name).await?;
            steps::reached("prune.backup-removed");
            pruned.backups += 1;
        } else {
            tracing::warn!(document.id = %owed.document, "a backup of document {} holds something nobody knows and stays", owed.document);
        }
    }
    if owed.is_purged {
        app.tree.leave(&place).await?;
    }
    Ok(app.ledger.backups_pruned(&owed.document).await?)
}

fn goes(owed: &OwedPruning, contents: &[Content], name: &str) -> bool {
    let of_one_let_go = |content: &Content| {
        content.pruned_at.is_some() && is_backup_of(name, content.committed_at, content.label)
    };
    owed.is_purged || contents.iter().any(of_one_let_go)
}

async fn digest_of(app: &App, place: &Place, name: &str) -> Result<Digest, PruneError> {
    let mut backup = app.tree.open_backup(place, name).await?;
    let (mut hasher, mut buffer) = (Sha256::new(), vec![0; CHUNK_BYTES]);
    loop {
        let read = backup.reader.read(&mut buffer).await;
        match read.map_err(|cause| VaultError::Unavailable { attempt: "read a backup", cause })? {
            0 => return Ok(Digest::new(hasher.finalize().into())),
            count => hasher.update(&buffer[..count]),
        }
    }
}
