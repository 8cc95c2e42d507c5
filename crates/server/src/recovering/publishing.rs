//! The published tree: shows the head of each document, in order, after the commit.
//!
//! Guarantees: the name never vanishes and what is replaced is kept (the tree's port sees to that); bytes another
//! program put there are taken in before they are forgotten about, damaged ones into quarantine; publishing twice changes
//! nothing. A document that is saved many times a second is published once a second. Whoever commits publishes; what an instance that is
//! gone did not, the others do after some seconds.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use ledger::documents::BlobFacts;
use ledger::publications::{ExternalChange, Owed};
use ledger::turns::Turn;
use model::callbacks::AsideReason;
use model::checking::Source;
use model::names::{self, FileName};
use model::{DocumentId, Label};
use office_check::Hint;
use tokio_util::sync::CancellationToken;
use vault::tree::{Place, Publication, Replaced};
use vault::{BlobReader, Sidecar};

use super::RecoveryError;
use crate::app::App;
use crate::incoming::{check, store};
use crate::room::space;
use crate::telemetry::{self, report};
use crate::wanted::Waiting;

/// Documents looked at per query.
const PAGE: u32 = 500;
/// At once. Each holds a turn, and the memory for turns is not endless at the ledger.
pub(crate) const PARALLEL_MAX: usize = 16;
/// While so many wait, no more are added to them.
const WAITING_MAX: usize = 100;
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Another program that changes the file each time it is published is left to the next round.
const ROUNDS_MAX: usize = 4;

/// How often and after what pause the turn at a document is asked for: a little longer than a silent holder keeps it.
const TURN_ATTEMPTS: u32 = 40;
const TURN_PAUSE: Duration = Duration::from_millis(200);

/// Time between two publications of one document: enough for people, and a burst of saves leaves few backups.
const PAUSE: SignedDuration = SignedDuration::from_secs(1);

/// How long something is owed when whoever committed it may be gone, and for how long others then try. Some seconds longer than they look
/// for it, so that none is missed.
const OVERDUE: Range<SignedDuration> = SignedDuration::from_secs(5)..SignedDuration::from_secs(15);

/// Why a document is published now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// Something was committed.
    Commit,
    /// All that is owed is looked through: an earlier attempt may have been interrupted.
    Round,
}

/// Publishes a document in the background, in its turn.
pub(super) fn publish_soon(app: &Arc<App>, document: DocumentId, occasion: Occasion) {
    let Some(waiting) = app.publications_wanted.ask(&document) else { return };
    let task = {
        let (app, document) = (Arc::clone(app), document.clone());
        async move {
            if let Err(cause) = publish_in_time(&app, &document, (occasion, waiting)).await {
                tracing::warn!(document.id = %document, error = %report(&cause), "document {document} could not be published now");
            }
        }
    };
    // Refused while draining or overfull: the ledger still owes it and the next round pays.
    drop(app.publications.submit(document, task));
}

/// Publishes what is owed the longest.
pub(super) async fn publish_owed(app: &Arc<App>) -> Result<(), RecoveryError> {
    for owed in app.ledger.owed_publications(None, PAGE).await? {
        publish_soon(app, owed.document, Occasion::Round);
    }
    Ok(())
}

/// Publishes all that is owed, page by page: what cannot be published keeps nothing behind it waiting.
pub(super) async fn publish_all_owed(app: &Arc<App>, stop: &CancellationToken) -> Result<(), RecoveryError> {
    let Some(_turn) = app.turns.take("backlog of publications").await? else { return Ok(()) };
    let mut after: Option<Owed> = None;
    loop {
        let page = app.ledger.owed_publications(after.as_ref(), PAGE).await?;
        let Some(last) = page.last().cloned() else { return Ok(()) };
        for owed in page {
            publish_soon(app, owed.document, Occasion::Round);
            while app.publications_wanted.count() > WAITING_MAX {
                if stop.is_cancelled() {
                    return Ok(());
                }
                // waits on purpose: nobody says that fewer wait
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        }
        after = Some(last);
    }
}

/// Publishes what another instance should have published by now: it may be gone. What is owed for longer cannot be published now, and the
/// rounds try it again.
pub(super) async fn publish_overdue(app: &Arc<App>) -> Result<(), RecoveryError> {
    let before = |time: SignedDuration| app.now().checked_sub(time).unwrap_or(Timestamp::MIN);
    let since = before(OVERDUE.end)..before(OVERDUE.start);
    for owed in app.ledger.stalled_publications(&since, PAGE).await? {
        publish_soon(app, owed.document, Occasion::Round);
    }
    Ok(())
}

/// Publishes one document a while after it was last published, with all that was committed until then.
async fn publish_in_time(
    app: &App,
    document: &DocumentId,
    (occasion, waiting): (Occasion, Waiting<DocumentId>),
) -> Result<(), RecoveryError> {
    if occasion == Occasion::Commit {
        pause(app, document).await?;
    }
    let Ok(_place) = app.publishing.acquire().await else { return Ok(()) };
    // Before the ledger is asked what it owes: whatever is committed from now on asks again.
    drop(waiting);
    publish(app, document, occasion).await
}

/// Publishes one document, as long as it owes: a change from outside may have become the head meanwhile.
pub(crate) async fn publish(
    app: &App,
    document: &DocumentId,
    occasion: Occasion,
) -> Result<(), RecoveryError> {
    // A projection can wait; what room is left is for saves.
    if !space(app).takes_uploads() {
        return Ok(());
    }
    let Some(_turn) = turn_at(app, document, occasion).await? else { return Ok(()) };
    for _ in 0..ROUNDS_MAX {
        let Some(owed) = app.ledger.owed_publication(document).await? else { return Ok(()) };
        let published = publish_head(app, &owed, occasion).await;
        telemetry::publication_ended(if published.is_ok() { "published" } else { "failed" });
        published?;
    }
    Ok(())
}

/// Waits for the turn at a document's place in the tree, which another instance may have. `None` if nothing is owed any more, or
/// if it takes so long that the next round is the better one to do it. A round itself leaves it to whoever has it.
async fn turn_at(
    app: &App,
    document: &DocumentId,
    occasion: Occasion,
) -> Result<Option<Turn>, RecoveryError> {
    let work = format!("publish {document}");
    for _ in 0..TURN_ATTEMPTS {
        if let Some(turn) = app.turns.take(&work).await? {
            return Ok(Some(turn));
        }
        if occasion == Occasion::Round {
            return Ok(None);
        }
        if app.ledger.owed_publication(document).await?.is_none() {
            return Ok(None);
        }
        tokio::time::sleep(TURN_PAUSE).await;
    }
    Ok(None)
}

/// Waits until the last publication is a while ago; the service does not wait when it is about to stop.
async fn pause(app: &App, document: &DocumentId) -> Result<(), RecoveryError> {
    let owed = app.ledger.owed_publication(document).await?;
    let Some(published) = owed.and_then(|owed| owed.published) else { return Ok(()) };
    tokio::select! {
        () = tokio::time::sleep(rest_of_pause(published.published_at, app.now())) => {}
        () = app.stopped_being_ready() => {}
    }
    Ok(())
}

/// Never longer than the pause, whatever was done to the clock.
fn rest_of_pause(published_at: Timestamp, now: Timestamp) -> Duration {
    let rest = PAUSE - now.duration_since(published_at);
    rest.clamp(SignedDuration::ZERO, PAUSE).unsigned_abs()
}

async fn publish_head(app: &App, owed: &Owed, occasion: Occasion) -> Result<(), RecoveryError> {
    let place = place_of(owed);
    if owed.is_deleted {
        return withdraw(app, owed).await;
    }
    if occasion == Occasion::Round || !was_published_by_us(app, owed) {
        app.tree.tidy(&place).await?;
    }
    // Already there: an earlier attempt ended between the rename and the note.
    let is_shown = app.tree.shown(&place).await?.is_some_and(|(digest, _)| digest == owed.digest);
    if !is_shown {
        let content = app.vault.open(&owed.digest, None).await?;
        let publication =
            Publication { place: place.clone(), digest: owed.digest, backup_suffix: backup_suffix(owed) };
        let replaced = app.tree.publish(&publication, content).await?;
        steps::reached("publish.replaced");
        if let Some(replaced) = replaced {
            take_in_if_unknown(app, (&owed.document, &place), &replaced).await?;
        }
    } else {
        take_in_left_behind(app, owed, &place).await?;
    }
    steps::reached("publish.shown");
    leave_old_name(app, owed).await?;
    app.ledger.published(&owed.document, owed.label, app.now()).await?;
    steps::reached("publish.noted");
    Ok(())
}

/// A renamed document is shown under its new name before the old one goes. What stood there stays as a backup.
async fn leave_old_name(app: &App, owed: &Owed) -> Result<(), RecoveryError> {
    let Some(old_name) = &owed.old_name else { return Ok(()) };
    withdraw_name(app, owed, old_name).await?;
    steps::reached("publish.old-name-withdrawn");
    Ok(app.ledger.shown_under(&owed.document, &owed.name).await?)
}

async fn withdraw_name(app: &App, owed: &Owed, name: &FileName) -> Result<(), RecoveryError> {
    let place = Place { name: name.clone(), ..place_of(owed) };
    app.tree.tidy(&place).await?;
    match app.tree.withdraw(&place, &backup_suffix(owed)).await? {
        Some(withdrawn) => take_in_if_unknown(app, (&owed.document, &place), &withdrawn).await,
        None => take_in_left_behind(app, owed, &place).await,
    }
}

/// A deleted document is shown no more. What stood there, also by another program, stays as a backup.
async fn withdraw(app: &App, owed: &Owed) -> Result<(), RecoveryError> {
    for name in owed.old_name.iter().chain([&owed.name]) {
        withdraw_name(app, owed, name).await?;
    }
    Ok(app.ledger.withdrawn(&owed.document, app.now()).await?)
}

/// Whether this process has published the document before, and so has tidied up after earlier ones. Looking through a
/// folder with many backups takes a while.
fn was_published_by_us(app: &App, owed: &Owed) -> bool {
    owed.published.as_ref().is_some_and(|published| published.published_at >= app.started_at)
}

fn place_of(owed: &Owed) -> Place {
    Place {
        company: owed.company.clone(),
        project: owed.project.clone(),
        document: owed.document.clone(),
        name: owed.name.clone(),
    }
}

/// The backup is named after the content that was shown and the time it was committed.
fn backup_suffix(owed: &Owed) -> String {
    let (committed_at, label) = backed_up(owed);
    names::backup_suffix(committed_at, label)
}

fn backed_up(owed: &Owed) -> (Timestamp, Label) {
    match &owed.published {
        Some(published) => (published.committed_at, published.label),
        None => (owed.committed_at, Label::FIRST),
    }
}

/// An earlier attempt replaced or withdrew a file and ended before it took in what that was: it is among the backups it would have been given.
async fn take_in_left_behind(app: &App, owed: &Owed, place: &Place) -> Result<(), RecoveryError> {
    let (committed_at, label) = backed_up(owed);
    for backup in app.tree.backups(place).await? {
        if !names::is_backup_of(&backup, committed_at, label) {
            continue;
        }
        let content = app.tree.open_backup(place, &backup).await?;
        let content = app.spool.take_in(content.reader, "read a backup").await?;
        let replaced = Replaced { backup, digest: content.digest, size_bytes: content.size_bytes };
        take_in_if_unknown(app, (&owed.document, place), &replaced).await?;
    }
    Ok(())
}

/// Bytes that are no content of the document came from another program: they are kept.
async fn take_in_if_unknown(
    app: &App,
    (document, place): (&DocumentId, &Place),
    replaced: &Replaced,
) -> Result<(), RecoveryError> {
    if app.ledger.knows_content(document, &replaced.digest).await? {
        return Ok(());
    }
    let content = app.tree.open_backup(place, &replaced.backup).await?;
    let (blob, damaged) = bring_in(app, document, (content, &place.name.extension())).await?;
    let change = ExternalChange { document: document.clone(), blob, damaged, at: app.now() };
    let kept = app.ledger.take_in_external(&change).await?;
    telemetry::alert("external-change");
    tracing::warn!(document.id = %document, kept, "the published file of document {document} had been changed from outside");
    Ok(())
}

async fn bring_in(
    app: &App,
    document: &DocumentId,
    (content, extension): (BlobReader, &str),
) -> Result<(BlobFacts, Option<AsideReason>), RecoveryError> {
    let spooled = app.spool.take_in(content.reader, "read a published file").await?;
    let checked = check(app, &spooled, (Hint::from_extension(extension), Source::Other)).await?;
    let life = store(app, &spooled, &Sidecar::Brought { document: document.clone() }).await?;
    let damaged = checked.is_refused().then_some(AsideReason::Damaged);
    Ok((checked.facts(&spooled, life), damaged))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_rests_for_a_second_between_two_publications() {
        let published_at = Timestamp::from_second(1_794_770_443).unwrap();
        let rest = |later: SignedDuration| rest_of_pause(published_at, published_at + later);

        assert_eq!(rest(SignedDuration::from_millis(300)), Duration::from_millis(700));
        assert_eq!(rest(SignedDuration::from_secs(5)), Duration::ZERO);
        assert_eq!(rest(SignedDuration::from_hours(-2)), Duration::from_secs(1), "the clock was set back");
    }
}
