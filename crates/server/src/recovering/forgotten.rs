//! Forgotten files: what the Document Server could not deliver and keeps until somebody asks.
//!
//! Guarantees: nothing is deleted there before what we keep has been read back; a file that did not arrive whole stays
//! there, for it may be whole on the server, and is looked at again in every round; a file somebody may be working on is
//! left alone; keys we cannot map to a document are never deleted, only announced.

use std::sync::Arc;

use ledger::saves::{Committed, ForgottenFile};
use model::callbacks::{Answer, AsideReason};
use model::checking::Source;
use model::opening::{CollectRuling, Quiet, rule_on_collecting};
use model::saves::{KeyStanding, Ruling};
use model::{Digest, DocumentId, EditorKey};
use signals::Signal;
use tokio::io::AsyncReadExt as _;
use vault::{Sidecar, read_verified};

use super::RecoveryError;
use super::keys::is_quiet;
use crate::app::App;
use crate::incoming::{check, hint_of, store, tell_over_quota, tell_vanished};
use crate::room::space;
use crate::telemetry::{self, report};

/// The status in the sidecar of a forgotten file: it came with no callback.
const NO_STATUS: u8 = 0;

/// Collects every forgotten file of ours.
pub(super) async fn collect_all(app: &Arc<App>) -> Result<(), RecoveryError> {
    if !space(app).takes_saves() {
        return Ok(());
    }
    let keys = app.editor.forgotten_keys().await?;
    let is_any = !keys.is_empty();
    for text in keys {
        let Some((key, document)) = ours(app, &text).await? else { continue };
        if let Err(cause) = collect(app, &key, &document).await {
            telemetry::forgotten_ended("failed");
            tracing::warn!(document.id = %document, error = %report(&cause), "a forgotten file of document {document} could not be collected");
        }
    }
    let left = if is_any { app.editor.forgotten_keys().await? } else { Vec::new() };
    watch(app, left);
    Ok(())
}

/// Remembers what could not be collected. Files of other installations are not counted.
fn watch(app: &App, left: Vec<String>) {
    let is_ours = |text: &String| {
        let parts = EditorKey::parse(text).and_then(|key| key.parts());
        parts.is_some_and(|parts| parts.environment == app.config.server.environment)
    };
    let newly = app.forgotten.note(left.into_iter().filter(is_ours), app.now());
    for _ in 0..newly {
        telemetry::alert("forgotten-stays");
        tracing::error!(
            "a forgotten file stays with the Document Server: it cannot be collected, or somebody is working on it"
        );
    }
}

/// The key and its document, if both are ours.
async fn ours(app: &App, text: &str) -> Result<Option<(EditorKey, DocumentId)>, RecoveryError> {
    let named = EditorKey::parse(text).and_then(|key| key.parts().map(|parts| (key, parts)));
    let Some((key, parts)) = named.filter(|(_, parts)| parts.environment == app.config.server.environment)
    else {
        // Another installation may share the server, so this is no alarm by itself.
        telemetry::forgotten_ended("foreign");
        return Ok(None);
    };
    if app.ledger.document(&parts.document).await?.is_none() {
        telemetry::forgotten_ended("unknown-document");
        telemetry::alert("forgotten-of-unknown-document");
        tracing::error!(document.id = %parts.document, "the Document Server keeps a forgotten file of a document we do not have");
        return Ok(None);
    }
    Ok(Some((key, parts.document)))
}

/// Collects the forgotten file of a key, if there is one and nobody is on it.
pub(super) async fn collect(app: &App, key: &EditorKey, document: &DocumentId) -> Result<(), RecoveryError> {
    let record = app.ledger.key(key).await?;
    let saves_received = record.as_ref().map_or(0, |record| record.saves_received);
    let is_live = record.as_ref().is_some_and(|record| record.standing == KeyStanding::Live);
    let quiet = record.map_or(Quiet::Yes, |record| is_quiet(app, &record));
    let ruling = rule_on_collecting(app.editor.knowledge_of(key).await, quiet);
    if ruling == CollectRuling::Leave {
        telemetry::forgotten_ended("in-use");
        return Ok(());
    }
    let Some(link) = app.editor.forgotten_link(key).await? else { return Ok(()) };
    let spooled = app.editor.fetch(&link, &app.spool).await?;
    let keeps_source = ruling == CollectRuling::CollectAndKeepSource;
    if keeps_source && is_live && app.ledger.builds_on_forgotten(key, &spooled.digest).await? {
        // Whoever opens the key next gets this file with the changes on it, and its final save takes both away. A retired
        // key is opened by nobody: its session was saved, and the server did not hear so.
        telemetry::forgotten_ended("in-use");
        return Ok(());
    }
    let checked = check(app, &spooled, (hint_of(&link), Source::DocumentServer)).await?;
    let life = store(app, &spooled, &Sidecar::Saved { key: key.clone(), status: NO_STATUS }).await?;
    steps::reached("forgotten.stored");
    let damaged = checked.is_refused().then_some(AsideReason::Damaged);
    let blob = checked.facts(&spooled, life);
    let (key, document, at) = (key.clone(), document.clone(), app.now());
    let policy = Arc::clone(&app.config.checking);
    let file = ForgottenFile { key, document, blob, damaged, saves_received, keeps_source, policy, at };
    let committed = app.ledger.collect_forgotten(&file).await?;
    let ForgottenFile { key, document, .. } = &file;
    if committed.answer == Answer::TryAgain {
        telemetry::forgotten_ended("in-use");
        return Ok(());
    }
    steps::reached("forgotten.committed");
    tell_vanished(app, &committed);
    tell_over_quota(&committed);
    if damaged.is_some() {
        leave_with_the_server(document, &committed);
        return Ok(());
    }
    read_back(app, &spooled.digest).await?;
    app.read_backs.note(spooled.digest, app.now());
    if !lies_there_still(app, key, &spooled.digest).await? {
        telemetry::forgotten_ended("replaced");
        return Ok(());
    }
    app.editor.delete_forgotten(key).await?;
    steps::reached("forgotten.deleted");
    telemetry::forgotten_ended(if committed.ruling == Some(Ruling::NothingNew) {
        "known"
    } else {
        "collected"
    });
    tracing::warn!(document.id = %document, "a forgotten file of document {document} was collected");
    app.signals.announce(Signal::Settled(document.clone())).await;
    Ok(())
}

/// Deleting takes whatever lies there by now. Another save may have failed meanwhile, and its file took this one's place.
async fn lies_there_still(app: &App, key: &EditorKey, digest: &Digest) -> Result<bool, RecoveryError> {
    let Some(link) = app.editor.forgotten_link(key).await? else { return Ok(false) };
    Ok(app.editor.fetch(&link, &app.spool).await?.digest == *digest)
}

/// The transfer may have damaged it, and then the server has the only whole copy.
fn leave_with_the_server(document: &DocumentId, committed: &Committed) {
    telemetry::forgotten_ended("refused");
    if committed.is_new {
        telemetry::alert("quarantine");
        tracing::error!(document.id = %document, "a forgotten file of document {document} is damaged or was damaged on its way: it was kept aside and stays with the Document Server");
    }
}

/// After this the server's copy goes, so ours must be whole.
async fn read_back(app: &App, digest: &Digest) -> Result<(), RecoveryError> {
    let blob = app.vault.open(digest, None).await?;
    let mut reader = std::pin::pin!(read_verified(blob.reader, *digest));
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match reader.read(&mut buffer).await {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(_) => return Err(vault::VaultError::Damaged { digest: *digest }.into()),
        }
    }
}
