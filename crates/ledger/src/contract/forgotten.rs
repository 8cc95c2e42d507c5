//! The contract about forgotten files.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "the names of checks are sentences; a broken contract must stop"
)]

use std::sync::Arc;

use model::callbacks::{Answer, AsideReason, Callback};
use model::saves::{KeyStanding, Ruling, SaveKind};
use model::versions::Origin;
use model::{Digest, DocumentId, EditorKey, Label};

use super::desk::{Desk, blob};
use crate::keys::{OpenGrant, Retirement};
use crate::saves::ForgottenFile;

async fn forgotten(desk: &Desk, key: &EditorKey, bytes: &[u8]) -> ForgottenFile {
    let saves_received = desk.ledger.key(key).await.unwrap().unwrap().saves_received;
    ForgottenFile {
        saves_received,
        keeps_source: false,
        policy: Arc::default(),
        key: key.clone(),
        document: DocumentId::parse("12345").unwrap(),
        blob: blob(bytes),
        damaged: None,
        at: desk.now(),
    }
}

pub async fn a_forgotten_file_becomes_a_version_once(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;

    let first = desk.ledger.collect_forgotten(&forgotten(desk, &key, b"found").await).await.unwrap();
    let second = desk.ledger.collect_forgotten(&forgotten(desk, &key, b"found").await).await.unwrap();

    assert_eq!((first.ruling, first.label), (Some(Ruling::NewVersion), Some(Label::version(2))));
    assert_eq!((second.ruling, second.is_new), (Some(Ruling::NothingNew), false));
    desk.expect_head(&document.id, "2", b"found").await;
    let content = desk.ledger.content(&document.id, Label::version(2)).await.unwrap().unwrap();
    assert_eq!(content.origin, Origin::Recovered);
    assert!(desk.ledger.key(&key).await.unwrap().unwrap().is_spent);
    desk.expect_consistent().await;
}

pub async fn a_forgotten_file_that_is_already_kept_is_nothing_new(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    desk.save_unheard(&key, b"edited").await;

    let committed = desk.ledger.collect_forgotten(&forgotten(desk, &key, b"edited").await).await.unwrap();

    assert_eq!(committed.ruling, Some(Ruling::NothingNew));
    assert_eq!(desk.labels(&document.id).await, ["2", "1"]);
}

pub async fn a_forgotten_file_that_is_a_replaced_checkpoint_becomes_a_version(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    desk.save(&key, 6, b"both changes").await;
    // Held up on the way; of the same second, so nobody could tell that it is the older one.
    desk.save(&key, 6, b"one change").await;

    let found = forgotten(desk, &key, b"both changes").await;
    let first = desk.ledger.collect_forgotten(&found).await.unwrap();
    let second = desk.ledger.collect_forgotten(&found).await.unwrap();

    assert_eq!((first.ruling, second.ruling), (Some(Ruling::NewVersion), Some(Ruling::NothingNew)));
    desk.expect_head(&document.id, "2", b"both changes").await;
    desk.expect_consistent().await;
}

pub async fn a_key_whose_forgotten_file_was_collected_is_spent_and_stays_live(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;

    desk.ledger.collect_forgotten(&forgotten(desk, &key, b"edited").await).await.unwrap();

    let record = desk.ledger.key(&key).await.unwrap().unwrap();
    assert!(record.is_spent, "nothing new is opened under it");
    assert_eq!(record.standing, KeyStanding::Live, "somebody may be inside");
    assert!(matches!(desk.open(&document.id, None).await, OpenGrant::AskServer(_)));
    let retirement = Retirement { key, saves_received: 0, why: "nothing left", at: desk.now() };
    assert!(desk.ledger.retire_key(&retirement).await.unwrap());
    assert_eq!(desk.grant(&document.id).await.base, Label::version(2));
}

pub async fn a_forgotten_file_is_left_alone_when_a_save_came_meanwhile(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    let found = forgotten(desk, &key, b"found").await;
    // Somebody opened the forgotten file, went on and force-saved while it was fetched.
    desk.save(&key, 6, b"found and more").await;

    let committed = desk.ledger.collect_forgotten(&found).await.unwrap();

    assert_eq!((committed.answer, committed.ruling), (Answer::TryAgain, None));
    desk.expect_head(&document.id, "1.1", b"found and more").await;
    assert!(!desk.ledger.key(&key).await.unwrap().unwrap().is_spent);
    desk.expect_consistent().await;
}

pub async fn a_forgotten_file_is_left_alone_while_a_save_of_its_key_is_stored(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    desk.save(&key, 6, b"found and more").await;
    // Opened from its forgotten file, the session went on and ended; its final save is on its way.
    let receipt = desk.receive(&desk.callback(&key, 2, "17")).await;
    let found = forgotten(desk, &key, b"found").await;

    let while_stored = desk.ledger.collect_forgotten(&found).await.unwrap();

    assert_eq!((while_stored.answer, while_stored.ruling), (Answer::TryAgain, None));
    desk.expect_head(&document.id, "1.1", b"found and more").await;
    desk.ledger.commit_save(&desk.prepared(&receipt, SaveKind::Final, b"everything")).await.unwrap();
    desk.ledger.collect_forgotten(&found).await.unwrap();
    desk.expect_head(&document.id, "2", b"everything").await;
}

pub async fn a_session_that_went_on_from_its_forgotten_file_is_told_by_its_saves(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    let builds_on =
        async |bytes: &[u8]| desk.ledger.builds_on_forgotten(&key, &Digest::of(bytes)).await.unwrap();
    assert!(!builds_on(b"found").await, "nothing came yet");
    desk.save(&key, 6, b"on the base").await;
    assert!(!builds_on(b"found").await);

    // Opened from its forgotten file, the server sends no history.
    let callback = Callback { session_start: None, ..desk.callback(&key, 6, "17") };
    let receipt = desk.receive(&callback).await;
    assert!(builds_on(b"found").await, "received is enough: it may never become a content");
    desk.ledger.commit_save(&desk.prepared(&receipt, SaveKind::Checkpoint, b"found and more")).await.unwrap();

    assert!(builds_on(b"found").await);
    assert!(builds_on(b"on the base").await, "a save that the server never heard us take");
    assert!(!builds_on(b"found and more").await, "that is the newest save itself");
}

pub async fn a_checkpoint_that_was_overtaken_by_the_final_save_does_not_count_as_newer(desk: &Desk) {
    for (id, is_within_the_same_second) in [("12345", false), ("67890", true)] {
        let document = desk.document(id).await;
        let key = desk.key(&document.id).await;
        // Both of a session that was opened from a forgotten file; the checkpoint was made first.
        let late = Callback { session_start: None, ..desk.callback(&key, 6, "17") };
        let last = Callback { session_start: None, ..desk.callback(&key, 2, "18") };
        let last_save = if is_within_the_same_second { late.last_save } else { last.last_save };
        let receipt = desk.receive(&Callback { last_save, ..last }).await;
        desk.receive(&late).await;
        desk.ledger.commit_save(&desk.prepared(&receipt, SaveKind::Final, b"everything")).await.unwrap();

        let forgotten = Digest::of(b"everything");
        let builds_on = desk.ledger.builds_on_forgotten(&key, &forgotten).await.unwrap();

        assert!(!builds_on, "the server forgot its newest save, which has the changes it holds: {id}");
    }
}

pub async fn a_damaged_forgotten_file_is_quarantined_once(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    let torn = ForgottenFile { damaged: Some(AsideReason::Damaged), ..forgotten(desk, &key, b"torn").await };

    let first = desk.ledger.collect_forgotten(&torn).await.unwrap();
    let second = desk.ledger.collect_forgotten(&torn).await.unwrap();

    assert!(first.kept.is_some() && second.kept.is_none());
    assert_eq!(desk.ledger.totals().await.unwrap().quarantined, 1);
    desk.expect_head(&document.id, "1", b"base").await;
    desk.expect_consistent().await;
}

pub async fn the_bytes_of_a_forgotten_file_are_kept_once_and_nothing_else_changes(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    let found = forgotten(desk, &key, b"found").await;

    let kept = desk.ledger.keep_forgotten(&found).await.unwrap();
    let again = desk.ledger.keep_forgotten(&found).await.unwrap();

    assert!(kept.is_some() && again.is_none());
    desk.expect_head(&document.id, "1", b"base").await;
    assert_eq!(desk.key(&document.id).await, key, "the key is as good as before");
    assert!(desk.ledger.knows_content(&document.id, &Digest::of(b"found")).await.unwrap());
    desk.expect_consistent().await;
}
