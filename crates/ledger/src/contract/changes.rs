//! The contract about changes past the editors.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "the names of checks are sentences; a broken contract must stop"
)]

use jiff::SignedDuration;
use model::opening::ServerKnowledge;
use model::saves::{ConflictReason, KeyStanding, Ruling, SaveKind};
use model::versions::Origin;
use model::{CompanyId, Digest, DocumentId, InboxNumber, Label};

use super::desk::{Desk, author, blob};
use crate::LedgerError;
use crate::changes::{ChangeOutcome, ChangeRequest, ChangeSource, Download, EditorsInside, HeadChange};
use crate::documents::DocumentPage;
use crate::keys::Knowledge;

fn request(desk: &Desk, document: &DocumentId, knowledge: Option<Knowledge>) -> ChangeRequest {
    ChangeRequest {
        document: document.clone(),
        who: author("u7"),
        knowledge,
        quiet_after: SignedDuration::from_secs(10),
        at: desk.now(),
    }
}

fn upload(request: ChangeRequest, bytes: &[u8]) -> HeadChange {
    HeadChange {
        request,
        blob: blob(bytes),
        from: ChangeSource::Upload,
        expected_head: None,
        editors: EditorsInside::Refuse,
    }
}

/// What the server says of the document's key when it is asked.
async fn asked(desk: &Desk, document: &DocumentId, server: ServerKnowledge) -> Option<Knowledge> {
    let outcome = desk.ledger.put_version(&upload(request(desk, document, None), b"never")).await.unwrap();
    let ChangeOutcome::AskServer(record) = outcome else {
        unreachable!("the server must be asked: {outcome:?}")
    };
    Some(desk.said(&record, server))
}

pub async fn a_new_version_is_put_on_a_document_nobody_edits(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    let knowledge = asked(desk, &document.id, ServerKnowledge::Unknown).await;
    let change = upload(request(desk, &document.id, knowledge), b"uploaded");

    let outcome = desk.ledger.put_version(&change).await.unwrap();
    let again = desk.ledger.put_version(&change).await.unwrap();

    assert_eq!(
        (outcome, again),
        (ChangeOutcome::Done(Label::version(2)), ChangeOutcome::Done(Label::version(2)))
    );
    desk.expect_head(&document.id, "2", b"uploaded").await;
    let content = desk.ledger.content(&document.id, Label::version(2)).await.unwrap().unwrap();
    assert_eq!((content.origin, content.author.id.as_str()), (Origin::Upload, "u7"));
    assert_eq!(desk.ledger.key(&key).await.unwrap().unwrap().standing, KeyStanding::Retired);
    assert_ne!(desk.key(&document.id).await, key);
    desk.expect_consistent().await;
}

pub async fn nothing_is_changed_past_somebody_who_edits(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    let inside = || async { asked(desk, &document.id, ServerKnowledge::UsersInside).await };

    let replaced = desk.ledger.put_version(&upload(request(desk, &document.id, inside().await), b"x")).await;
    let deleted = desk.ledger.delete_document(&request(desk, &document.id, inside().await)).await;

    assert!(matches!(replaced.unwrap(), ChangeOutcome::Edited(_)));
    assert!(matches!(deleted.unwrap(), ChangeOutcome::Edited(_)));
    desk.expect_head(&document.id, "1", b"base").await;

    // One of them asked for it.
    let editors = EditorsInside::RetireTheirKey;
    let change = upload(request(desk, &document.id, inside().await), b"restored");
    let outcome = desk.ledger.put_version(&HeadChange { editors, ..change }).await.unwrap();
    assert_eq!(outcome, ChangeOutcome::Done(Label::version(2)));
    let late = desk.save(&key, 2, b"typed meanwhile").await;
    assert_eq!(late.ruling, Some(Ruling::KeepAside(ConflictReason::KeyRetired)));
    desk.expect_head(&document.id, "2", b"restored").await;
    desk.expect_consistent().await;
}

pub async fn a_change_waits_for_a_final_save_and_finishes_its_key(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    let receipt = desk.receive(&desk.callback(&key, 2, "17")).await;
    let wish = || upload(request(desk, &document.id, None), b"x");
    assert_eq!(desk.ledger.put_version(&wish()).await.unwrap(), ChangeOutcome::Wait);

    desk.ledger.commit_save(&desk.prepared(&receipt, SaveKind::Checkpoint, b"half way")).await.unwrap();
    let knowledge = asked(desk, &document.id, ServerKnowledge::Unknown).await;
    let outcome =
        desk.ledger.put_version(&upload(request(desk, &document.id, knowledge), b"x")).await.unwrap();

    assert!(matches!(outcome, ChangeOutcome::Finish(_)), "its forgotten file comes first: {outcome:?}");
}

pub async fn a_change_of_another_head_is_refused(desk: &Desk) {
    let document = desk.document("12345").await;
    let seen = |bytes: &[u8]| Some(Digest::of(bytes));
    let change = |expected_head| HeadChange {
        expected_head,
        ..upload(request(desk, &document.id, None), b"uploaded")
    };

    let stale = desk.ledger.put_version(&change(seen(b"something else"))).await.unwrap();
    let right = desk.ledger.put_version(&change(seen(b"base"))).await.unwrap();

    assert_eq!(stale, ChangeOutcome::HeadMoved(Digest::of(b"base")));
    assert_eq!(right, ChangeOutcome::Done(Label::version(2)));
}

pub async fn a_deleted_document_is_gone_its_saves_are_taken_and_it_comes_back(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    let knowledge = asked(desk, &document.id, ServerKnowledge::NothingHeld).await;
    let list = async |deleted| {
        let company = CompanyId::parse("acme").unwrap();
        let page = DocumentPage { company, project: None, deleted, after: None, limit: 10 };
        desk.ledger.documents(&page).await.unwrap().len()
    };

    let outcome = desk.ledger.delete_document(&request(desk, &document.id, knowledge)).await.unwrap();

    assert_eq!(outcome, ChangeOutcome::Done(Label::FIRST));
    assert_eq!((list(false).await, list(true).await), (0, 1));
    assert!(desk.current(&document.id).await.deleted_at.is_some());
    let opened = desk.try_to_open(&document.id).await;
    assert!(matches!(opened, Err(LedgerError::NotFound { .. })), "{opened:?}");
    let late = desk.save(&key, 2, b"typed meanwhile").await;
    assert!(late.kept.is_some(), "a late save is kept: {late:?}");

    let who = author("u7");
    assert!(desk.ledger.undelete_document(&document.id, &who, desk.now()).await.unwrap());
    assert!(!desk.ledger.undelete_document(&document.id, &who, desk.now()).await.unwrap());
    assert_eq!((list(false).await, list(true).await), (1, 0));
    desk.expect_head(&document.id, "1", b"base").await;
    assert_ne!(desk.key(&document.id).await, key);
    desk.expect_consistent().await;
}

pub async fn a_kept_copy_is_used_or_dismissed_once(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    let knowledge = asked(desk, &document.id, ServerKnowledge::Unknown).await;
    desk.ledger.put_version(&upload(request(desk, &document.id, knowledge), b"uploaded")).await.unwrap();
    let mine = desk.save(&key, 2, b"mine").await.kept.unwrap();
    let change =
        HeadChange { from: ChangeSource::Kept(mine), ..upload(request(desk, &document.id, None), b"mine") };

    let outcome = desk.ledger.put_version(&change).await.unwrap();

    assert_eq!(outcome, ChangeOutcome::Done(Label::version(3)));
    let copy = desk.ledger.kept_copy(mine).await.unwrap().unwrap();
    assert_eq!(copy.settled.map(|(_, what)| what).as_deref(), Some("used"));
    let who = author("u7");
    assert!(!desk.ledger.dismiss_kept(mine, &who, desk.now()).await.unwrap(), "it is settled");
    let missing = desk.ledger.dismiss_kept(9_999, &who, desk.now()).await;
    assert!(matches!(missing, Err(LedgerError::NotFound { .. })));
    desk.expect_consistent().await;
}

pub async fn what_came_after_a_save_is_told(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    assert_eq!(desk.ledger.newest_save(&document.id).await.unwrap(), InboxNumber(0));
    desk.save(&key, 6, b"first").await;
    let newest = desk.ledger.newest_save(&document.id).await.unwrap();
    desk.receive(&desk.callback(&key, 6, "18")).await;

    let news = desk.ledger.saves_after(&document.id, newest).await.unwrap();

    let [news] = news.as_slice() else { unreachable!("one save came after: {news:?}") };
    assert_eq!((news.status, news.is_finished), (6, false));
    let (label, who, at) = (Label::FIRST, author("u7"), desk.now());
    let download = Download { document: document.id.clone(), label, who, freshness: "newest", at };
    desk.ledger.note_download(&download).await.unwrap();
    desk.expect_consistent().await;
}
