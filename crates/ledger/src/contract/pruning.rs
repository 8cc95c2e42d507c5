//! The contract about letting go.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "the names of checks are sentences; a broken contract must stop"
)]

use jiff::{SignedDuration, Timestamp};
use model::retention::{Retention, WaitsFor};
use model::saves::SaveKind;
use model::{CompanyId, DocumentId, Label};

use super::desk::{Desk, author, blob};
use crate::LedgerError;
use crate::changes::{ChangeOutcome, ChangeRequest};
use crate::documents::{BlobFacts, Document, UnnamedBlob};
use crate::keys::ViewKey;
use crate::pruning::{Meaning, PruneWish, Purged};
use crate::saves::PreparedSave;

const DAY: i64 = 24 * 3600;

/// Keeps one version, thins checkpoints at once, purges after a day, lets settled copies go after a day.
fn wish(desk: &Desk, meaning: Meaning) -> PruneWish {
    let policy = Retention {
        checkpoints_all: Some(SignedDuration::from_secs(60)),
        checkpoints_one_per: SignedDuration::from_hours(24),
        versions_newest: Some(1),
        versions_younger: Some(SignedDuration::from_secs(60)),
        deleted: Some(SignedDuration::from_secs(DAY)),
        kept: Some(SignedDuration::from_secs(DAY)),
        links: SignedDuration::from_hours(1),
        bytes: SignedDuration::ZERO,
    };
    PruneWish { policy, meaning, at: desk.now() }
}

async fn prune(desk: &Desk, document: &DocumentId) -> Vec<String> {
    let pruned = desk.ledger.prune_contents(document, &wish(desk, Meaning::DoIt)).await.unwrap();
    pruned.iter().map(|pruned| pruned.label.to_string()).collect()
}

/// Versions 1 to 3, and a session on version 1 with two checkpoints.
async fn history(desk: &Desk) -> Document {
    let document = desk.document("12345").await;
    let first = desk.key(&document.id).await;
    desk.save(&first, 6, b"half way").await;
    desk.save(&first, 6, b"nearly there").await;
    desk.save(&first, 2, b"second").await;
    let second = desk.key(&document.id).await;
    desk.save(&second, 2, b"third").await;
    // The server is heard to be done with both sessions.
    desk.key(&document.id).await;
    document
}

async fn digests_unneeded(desk: &Desk) -> Vec<model::Digest> {
    desk.ledger.unneeded_blobs(desk.now(), 100).await.unwrap().iter().map(|blob| blob.digest).collect()
}

pub async fn contents_the_policy_does_not_keep_are_let_go_and_that_is_told(desk: &Desk) {
    let document = history(desk).await;
    assert_eq!(prune(desk, &document.id).await, [] as [&str; 0], "too young");
    desk.pass(1000);
    let said = desk.ledger.prune_contents(&document.id, &wish(desk, Meaning::OnlySay)).await.unwrap();
    assert_eq!(said.len(), 4, "said, and not done: {said:?}");

    let gone = prune(desk, &document.id).await;

    assert_eq!(gone, ["1", "1.1", "1.2", "2"]);
    assert_eq!(prune(desk, &document.id).await, [] as [&str; 0], "once");
    let contents = desk.ledger.contents(&document.id).await.unwrap();
    assert_eq!(contents.len(), 5, "the rows stay");
    assert!(
        contents.iter().all(|content| content.pruned_at.is_some() == (content.label != Label::version(3)))
    );
    let acts = desk.ledger.audit("12345", 0, 100).await.unwrap();
    assert_eq!(acts.iter().filter(|(entry, _)| entry.action == "contents-pruned").count(), 1);
    assert_eq!(digests_unneeded(desk).await.len(), 4);
    assert_eq!(desk.ledger.owed_prunings(10).await.unwrap().len(), 1, "backups may go too");
    desk.ledger.backups_pruned(&document.id).await.unwrap();
    assert_eq!(desk.ledger.owed_prunings(10).await.unwrap().len(), 0);
    desk.expect_head(&document.id, "3", b"third").await;
    desk.expect_consistent().await;
}

pub async fn what_a_session_or_a_link_needs_is_never_let_go(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    desk.save(&key, 6, b"half way").await;
    desk.save(&key, 6, b"nearly there").await;
    desk.save_unheard(&key, b"second").await;
    desk.pass(1000);
    assert_eq!(prune(desk, &document.id).await, [] as [&str; 0], "the key is live: it may come again");

    desk.save(&key, 2, b"second").await;
    let next = desk.key(&document.id).await;
    desk.save(&next, 2, b"third").await;
    desk.key(&document.id).await;
    let second = desk.ledger.content(&document.id, Label::version(2)).await.unwrap();
    let view = |base, bytes: &[u8]| ViewKey {
        key: model::EditorKey::parse("prod_12345_view_2.x").unwrap(),
        document: document.id.clone(),
        base,
        base_digest: blob(bytes).digest,
        at: desk.now(),
    };
    desk.pass(1000);
    if second.is_some() {
        desk.ledger.note_view_key(&view(Label::version(2), b"second")).await.unwrap();
    }
    let gone = prune(desk, &document.id).await;
    assert!(!gone.contains(&"2".to_owned()) && gone.contains(&"1".to_owned()), "{gone:?}");
    desk.pass(2 * 3600);
    assert_eq!(prune(desk, &document.id).await, ["2"], "the link is dead by now");
    let refused = desk.ledger.note_view_key(&view(Label::version(2), b"second")).await;
    assert!(matches!(refused, Err(LedgerError::NotFound { .. })), "no link to what was let go: {refused:?}");
    desk.expect_consistent().await;
}

pub async fn a_blob_some_row_needs_is_not_removed(desk: &Desk) {
    let document = history(desk).await;
    // Another document with the very bytes of the first version.
    desk.document("other").await;
    desk.pass(1000);
    prune(desk, &document.id).await;
    let base = blob(b"base").digest;

    assert!(!desk.ledger.begin_removal(&base, desk.now()).await.unwrap());
    assert!(!digests_unneeded(desk).await.contains(&base), "nor looked at again");

    let half = blob(b"half way").digest;
    let too_early = Timestamp::from_second(1_794_770_000).unwrap();
    assert!(!desk.ledger.begin_removal(&half, too_early).await.unwrap(), "bytes stay for a while");
    assert!(desk.ledger.begin_removal(&half, desk.now()).await.unwrap());
    assert!(!desk.ledger.begin_removal(&half, desk.now()).await.unwrap(), "once");
    assert_eq!(desk.ledger.begun_removals(10).await.unwrap().len(), 1);
    desk.ledger.finish_removal(&half, desk.now()).await.unwrap();
    desk.ledger.finish_removal(&half, desk.now()).await.unwrap();
    assert_eq!(desk.ledger.begun_removals(10).await.unwrap().len(), 0);
    assert_eq!(desk.ledger.removals_of(&half).await.unwrap(), 1, "repeated, it counts once");
    desk.expect_consistent().await;
}

/// Every order of a save that brings bytes again and of their removal: a row names them only if they were stored after they
/// were removed.
pub async fn bytes_that_come_again_are_named_only_if_they_are_there(desk: &Desk) {
    let document = history(desk).await;
    desk.pass(1000);
    prune(desk, &document.id).await;
    let bytes = b"half way";
    let digest = blob(bytes).digest;
    let key = desk.key(&document.id).await;
    let save = async |removals: u64| {
        let receipt = desk.receive(&desk.callback(&key, 6, &format!("{}", desk.now().as_second()))).await;
        let blob = BlobFacts { removals, ..blob(bytes) };
        let save = PreparedSave { blob, ..desk.prepared(&receipt, SaveKind::Checkpoint, bytes) };
        desk.ledger.commit_save(&save).await
    };
    let is_refused = |saved: Result<_, LedgerError>| matches!(saved, Err(LedgerError::BlobGoing));

    let stored_before = desk.ledger.removals_of(&digest).await.unwrap();
    assert!(desk.ledger.begin_removal(&digest, desk.now()).await.unwrap());
    assert!(is_refused(save(stored_before).await), "it is going");
    desk.ledger.finish_removal(&digest, desk.now()).await.unwrap();
    assert!(is_refused(save(stored_before).await), "it was stored before it went");
    let stored_again = desk.ledger.removals_of(&digest).await.unwrap();
    let saved = save(stored_again).await.unwrap();
    assert!(saved.label.is_some(), "stored again since: {saved:?}");
    // Somebody else who stored it before it went is still refused.
    assert!(is_refused(save(stored_before).await));
    assert!(!desk.ledger.begin_removal(&digest, desk.now()).await.unwrap(), "it is needed again");
    desk.expect_consistent().await;
}

pub async fn bytes_that_came_again_and_were_never_named_are_adopted(desk: &Desk) {
    let document = history(desk).await;
    desk.pass(1000);
    prune(desk, &document.id).await;
    let digest = blob(b"half way").digest;
    let found = |removals| UnnamedBlob {
        blob: BlobFacts { removals, ..blob(b"half way") },
        document: Some(document.id.clone()),
        key: None,
        is_record_of_changes: false,
        at: desk.now(),
    };
    desk.ledger.begin_removal(&digest, desk.now()).await.unwrap();
    assert_eq!(desk.ledger.keep_unnamed(&found(0)).await.unwrap(), None, "it is going");
    desk.ledger.finish_removal(&digest, desk.now()).await.unwrap();

    assert!(matches!(desk.ledger.keep_unnamed(&found(0)).await, Err(LedgerError::BlobGoing)));
    assert!(desk.ledger.keep_unnamed(&found(1)).await.unwrap().is_some());
    let record = UnnamedBlob { is_record_of_changes: true, blob: blob(b"changes of nobody"), ..found(0) };
    assert_eq!(desk.ledger.keep_unnamed(&record).await.unwrap(), None);
    assert!(
        digests_unneeded(desk).await.contains(&blob(b"changes of nobody").digest),
        "named, and soon gone"
    );
    desk.expect_consistent().await;
}

fn request(desk: &Desk, document: &DocumentId) -> ChangeRequest {
    ChangeRequest {
        document: document.clone(),
        who: author("u7"),
        knowledge: None,
        quiet_after: SignedDuration::from_secs(10),
        at: desk.now(),
    }
}

pub async fn a_deleted_document_is_purged_after_its_time_and_counts_no_more(desk: &Desk) {
    let document = desk.document("12345").await;
    let acme = CompanyId::parse("acme").unwrap();
    let usage = async || desk.ledger.company(&acme).await.unwrap().unwrap().usage;
    let purge = async |meaning| desk.ledger.purge_document(&document.id, &wish(desk, meaning)).await.unwrap();
    assert_eq!(purge(Meaning::DoIt).await, Purged::NotYet, "it is there");
    let deleted = desk.ledger.delete_document(&request(desk, &document.id)).await.unwrap();
    assert_eq!(deleted, ChangeOutcome::Done(Label::FIRST));
    assert_eq!(purge(Meaning::DoIt).await, Purged::NotYet);
    desk.pass(DAY + 100);
    let due = desk.ledger.deleted_documents(desk.now(), None, 10).await.unwrap();
    assert_eq!(due, std::slice::from_ref(&document.id));
    assert_eq!(purge(Meaning::DoIt).await, Purged::Waits(WaitsFor::Tree), "its file is still shown");
    desk.ledger.withdrawn(&document.id, desk.now()).await.unwrap();
    assert_eq!(usage().await.documents, 1, "a deleted document counts until it is purged");
    assert_eq!(purge(Meaning::OnlySay).await, Purged::Yes { contents: 1, size_bytes: 4 });
    assert_eq!(usage().await.documents, 1, "said, and not done");

    assert_eq!(purge(Meaning::DoIt).await, Purged::Yes { contents: 1, size_bytes: 4 });

    assert_eq!((usage().await.documents, usage().await.bytes), (0, 0));
    assert_eq!(desk.ledger.document(&document.id).await.unwrap(), None);
    assert!(!desk.ledger.undelete_document(&document.id, &author("u7"), desk.now()).await.unwrap());
    assert_eq!(purge(Meaning::DoIt).await, Purged::NotYet, "once");
    let taken = desk.ledger.create_document(&desk.new_document("12345", b"again")).await;
    assert!(matches!(taken, Err(LedgerError::AlreadyExists { .. })), "its keys are for ever: {taken:?}");
    assert_eq!(digests_unneeded(desk).await, [blob(b"base").digest]);
    let acts = desk.ledger.audit("12345", 0, 100).await.unwrap();
    assert_eq!(acts.last().unwrap().0.action, "document-purged");
    assert_eq!(desk.ledger.totals().await.unwrap().documents, 0);
    desk.expect_consistent().await;
}

pub async fn a_deleted_document_with_work_left_is_not_purged(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    desk.save(&key, 2, b"second").await;
    desk.key(&document.id).await;
    desk.document("other").await;
    let idle = desk.ledger.live_key_of(&document.id).await.unwrap().unwrap();
    let knowledge = Some(desk.said(&idle, model::opening::ServerKnowledge::NothingHeld));
    let request = ChangeRequest { knowledge, ..request(desk, &document.id) };
    let deleted = desk.ledger.delete_document(&request).await.unwrap();
    assert!(matches!(deleted, ChangeOutcome::Done(_)), "{deleted:?}");
    desk.ledger.withdrawn(&document.id, desk.now()).await.unwrap();
    let purge = async || desk.ledger.purge_document(&document.id, &wish(desk, Meaning::DoIt)).await.unwrap();

    // A late save is on its way.
    let receipt = desk.receive(&desk.callback(&idle.key, 2, "18")).await;
    desk.pass(DAY + 100);
    assert_eq!(purge().await, Purged::Waits(WaitsFor::Save));
    let kept = desk
        .ledger
        .commit_save(&desk.prepared(&receipt, SaveKind::Final, b"late"))
        .await
        .unwrap()
        .kept
        .unwrap();
    assert_eq!(purge().await, Purged::Waits(WaitsFor::KeptCopy), "nobody has looked at it");
    desk.ledger.dismiss_kept(kept, &author("u7"), desk.now()).await.unwrap();
    assert!(matches!(purge().await, Purged::Yes { .. }));

    // Whatever comes now belongs to nobody, and is kept.
    let orphan = desk.receive(&desk.callback(&idle.key, 2, "19")).await;
    assert_eq!(orphan.document, None);
    desk.expect_consistent().await;
}

pub async fn a_kept_copy_is_let_go_only_after_a_person_settled_it(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    desk.save(&key, 2, b"second").await;
    let next = desk.key(&document.id).await;
    desk.save(&next, 2, b"third").await;
    let kept = desk.save(&key, 2, b"late").await.kept.unwrap();
    let prune = async || desk.ledger.prune_kept(&wish(desk, Meaning::DoIt), 10).await.unwrap().len();
    desk.pass(10 * DAY);
    assert_eq!(prune().await, 0);
    desk.ledger.dismiss_kept(kept, &author("u7"), desk.now()).await.unwrap();
    assert_eq!(prune().await, 0, "not at once");
    desk.pass(DAY + 100);

    assert_eq!(desk.ledger.prune_kept(&wish(desk, Meaning::OnlySay), 10).await.unwrap().len(), 1);
    assert_eq!(prune().await, 1);

    assert_eq!(prune().await, 0, "once");
    assert!(desk.ledger.kept_copy(kept).await.unwrap().unwrap().pruned_at.is_some(), "its row stays");
    assert_eq!(digests_unneeded(desk).await, [blob(b"late").digest]);
    desk.expect_consistent().await;
}
