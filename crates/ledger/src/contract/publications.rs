//! The contract about the published tree.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "the names of checks are sentences; a broken contract must stop"
)]

use jiff::{SignedDuration, Timestamp};
use model::callbacks::AsideReason;
use model::saves::ConflictReason;
use model::{DocumentId, Label};

use super::desk::{Desk, blob};
use crate::documents::Keeping;
use crate::publications::ExternalChange;

pub async fn a_moved_head_owes_its_publication(desk: &Desk) {
    let document = desk.document("12345").await;

    let owed = desk.ledger.owed_publication(&document.id).await.unwrap().unwrap();
    desk.ledger.published(&document.id, owed.label, desk.now()).await.unwrap();

    assert_eq!((owed.label, owed.digest, owed.published), (Label::FIRST, document.head_digest, None));
    assert_eq!(desk.ledger.owed_publications(None, 10).await.unwrap(), []);
    let key = desk.key(&document.id).await;
    desk.save(&key, 6, b"edited").await;
    let owed = desk.ledger.owed_publications(None, 10).await.unwrap();
    assert_eq!(owed[0].label.to_string(), "1.1");
    assert_eq!(owed[0].published.as_ref().unwrap().label, Label::FIRST);
    let since = owed[0].since;
    desk.save(&key, 6, b"edited again").await;
    let owed = desk.ledger.owed_publications(None, 10).await.unwrap();
    assert_eq!(
        (owed[0].since, owed[0].since < owed[0].committed_at),
        (since, true),
        "since the first of them"
    );
}

pub async fn a_publication_overtaken_by_a_save_is_still_owed(desk: &Desk) {
    let document = desk.document("12345").await;
    let owed = desk.ledger.owed_publication(&document.id).await.unwrap().unwrap();
    let key = desk.key(&document.id).await;
    desk.save(&key, 2, b"edited").await;

    desk.ledger.published(&document.id, owed.label, desk.now()).await.unwrap();

    let still = desk.ledger.owed_publication(&document.id).await.unwrap().unwrap();
    assert_eq!(still.label, Label::version(2));
}

pub async fn what_is_owed_is_listed_page_by_page(desk: &Desk) {
    let mut expected = Vec::new();
    for id in ["c", "a", "d", "b"] {
        expected.push(desk.document(id).await.id);
    }

    let (mut listed, mut after) = (Vec::new(), None);
    loop {
        let page = desk.ledger.owed_publications(after.as_ref(), 3).await.unwrap();
        listed.extend(page.iter().map(|owed| owed.document.clone()));
        let Some(last) = page.last() else { break };
        after = Some(last.clone());
    }

    assert_eq!(listed, expected, "the longest owed first");
}

pub async fn what_nobody_publishes_is_found_by_when_anything_last_happened(desk: &Desk) {
    let document = desk.document("12345").await;
    let owed = desk.ledger.owed_publication(&document.id).await.unwrap().unwrap();
    let stalled = async |since: Timestamp| {
        let found =
            desk.ledger.stalled_publications(&(since..since + SignedDuration::from_secs(1)), 10).await;
        found.unwrap().len()
    };
    assert_eq!((stalled(owed.since).await, stalled(owed.since + SignedDuration::from_secs(1)).await), (1, 0));
    assert_eq!(stalled(owed.since - SignedDuration::from_secs(1)).await, 0);

    // Published while it was saved again: it is owed since long ago, and somebody is at it.
    let key = desk.key(&document.id).await;
    desk.save(&key, 2, b"edited").await;
    let published_at = owed.since + SignedDuration::from_secs(60);
    desk.ledger.published(&document.id, owed.label, published_at).await.unwrap();

    assert_eq!((stalled(owed.since).await, stalled(published_at).await), (0, 1));
}

pub async fn an_external_change_on_the_head_becomes_a_version(desk: &Desk) {
    let document = desk.document("12345").await;
    desk.ledger.published(&document.id, Label::FIRST, desk.now()).await.unwrap();
    let change = outside(desk, &document.id);

    let kept = desk.ledger.take_in_external(&change).await.unwrap();

    assert_eq!(kept, None);
    desk.expect_head(&document.id, "2", b"outside").await;
    assert!(desk.ledger.knows_content(&document.id, &change.blob.digest).await.unwrap());
    desk.expect_consistent().await;
}

pub async fn an_external_change_during_editing_is_kept_aside(desk: &Desk) {
    let document = desk.document("12345").await;
    desk.ledger.published(&document.id, Label::FIRST, desk.now()).await.unwrap();
    desk.key(&document.id).await;
    let change = outside(desk, &document.id);

    let kept = desk.ledger.take_in_external(&change).await.unwrap().unwrap();

    desk.expect_head(&document.id, "1", b"base").await;
    let kept = desk.ledger.kept_copy(kept).await.unwrap().unwrap();
    assert_eq!(kept.keeping, Keeping::Conflict(ConflictReason::ExternalChange));
}

pub async fn a_damaged_external_change_is_quarantined(desk: &Desk) {
    let document = desk.document("12345").await;
    desk.ledger.published(&document.id, Label::FIRST, desk.now()).await.unwrap();
    let change = ExternalChange { damaged: Some(AsideReason::Damaged), ..outside(desk, &document.id) };

    let kept = desk.ledger.take_in_external(&change).await.unwrap().unwrap();

    desk.expect_head(&document.id, "1", b"base").await;
    let kept = desk.ledger.kept_copy(kept).await.unwrap().unwrap();
    assert_eq!(kept.keeping, Keeping::Quarantine(AsideReason::Damaged));
    desk.expect_consistent().await;
}

fn outside(desk: &Desk, document: &DocumentId) -> ExternalChange {
    ExternalChange { document: document.clone(), blob: blob(b"outside"), damaged: None, at: desk.now() }
}

pub async fn what_the_tree_should_show_is_listed_without_what_it_owes(desk: &Desk) {
    let shown = desk.document("shown").await;
    desk.document("owed").await;
    desk.ledger.published(&shown.id, Label::FIRST, desk.now()).await.unwrap();

    let published = desk.ledger.published_documents(None, 10).await.unwrap();

    let [one] = published.as_slice() else { unreachable!("one is shown: {published:?}") };
    assert_eq!((one.document.as_str(), one.digest, one.size_bytes), ("shown", shown.head_digest, 4));
    assert_eq!(desk.ledger.published_documents(Some(&shown.id), 10).await.unwrap(), []);
}
