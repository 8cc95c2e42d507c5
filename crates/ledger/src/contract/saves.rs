//! The contract about the inbox and the commit.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "the names of checks are sentences; a broken contract must stop"
)]

use std::sync::Arc;

use model::callbacks::{Answer, AsideReason, Callback};
use model::checking::{Extent, OnVanished, Policy, Vanished};
use model::saves::{ConflictReason, KeyStanding, Ruling, SaveKind};
use model::versions::Origin;
use model::{Digest, EditorKey, Label};

use super::desk::{Desk, blob};
use crate::documents::{BlobFacts, Keeping, KeptPage, Whose};
use crate::keys::{OpenGrant, Retirement};
use crate::saves::{Aside, Committed, PreparedSave, ReceiptStanding};

pub async fn a_final_save_becomes_the_next_version(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;

    let committed = desk.save(&key, 2, b"edited").await;

    assert_eq!((committed.ruling, committed.answer), (Some(Ruling::NewVersion), Answer::Saved));
    desk.expect_head(&document.id, "2", b"edited").await;
    let content = desk.ledger.content(&document.id, Label::version(2)).await.unwrap().unwrap();
    assert_eq!((content.origin, content.author.name.as_str()), (Origin::Save, "User One"));
    assert_eq!(content.key, Some(key));
}

pub async fn a_force_save_is_a_checkpoint_and_keeps_the_version(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;

    desk.save(&key, 6, b"first").await;
    desk.save(&key, 6, b"second").await;

    desk.expect_head(&document.id, "1.2", b"second").await;
    assert_eq!(desk.labels(&document.id).await, ["1.2", "1.1", "1"]);
    assert!(matches!(desk.open(&document.id, None).await, OpenGrant::AskServer(_)), "the session goes on");
}

pub async fn six_six_two_ends_with_the_last_content_at_the_head(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;

    desk.save(&key, 6, b"first").await;
    desk.save(&key, 6, b"second").await;
    desk.save(&key, 2, b"third").await;

    desk.expect_head(&document.id, "2", b"third").await;
    assert_eq!(desk.labels(&document.id).await, ["2", "1.2", "1.1", "1"]);
    desk.expect_consistent().await;
}

pub async fn a_repeat_joins_the_first_and_gets_the_recorded_answer(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    let callback = desk.callback(&key, 2, "17");
    let mut repeat = callback.clone();
    repeat.url = repeat.url.map(|url| url.replace("md5=", "md5=other"));

    let first = desk.receive(&callback).await;
    let while_open = desk.receive(&repeat).await;
    let newest_link = desk.ledger.open_saves().await.unwrap()[0].callback.url.clone();
    let committed =
        desk.ledger.commit_save(&desk.prepared(&first, SaveKind::Final, b"edited")).await.unwrap();
    let after = desk.receive(&repeat).await;

    assert_eq!(first.standing, ReceiptStanding::New);
    assert_eq!((while_open.number, while_open.standing), (first.number, ReceiptStanding::Unfinished));
    assert_eq!(newest_link, repeat.url);
    assert_eq!((after.number, after.standing), (first.number, ReceiptStanding::Finished(committed.answer)));
    let record = desk.ledger.save(first.number).await.unwrap().unwrap();
    assert_eq!((record.deliveries, record.outcome.as_deref()), (3, Some("version")));
}

pub async fn a_repeat_after_the_window_is_judged_by_its_bytes(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    let callback = desk.callback(&key, 2, "17");
    let first = desk.receive(&callback).await;
    desk.ledger.commit_save(&desk.prepared(&first, SaveKind::Final, b"edited")).await.unwrap();

    desk.pass(16 * 60);
    let late = desk.receive(&callback).await;
    let committed = desk.ledger.commit_save(&desk.prepared(&late, SaveKind::Final, b"edited")).await.unwrap();

    assert_ne!(late.number, first.number);
    assert_eq!((committed.ruling, committed.answer), (Some(Ruling::NothingNew), Answer::Saved));
    assert_eq!(desk.labels(&document.id).await, ["2", "1"]);
}

pub async fn committing_twice_changes_nothing(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    let receipt = desk.receive(&desk.callback(&key, 2, "17")).await;
    let prepared = desk.prepared(&receipt, SaveKind::Final, b"edited");

    let first = desk.ledger.commit_save(&prepared).await.unwrap();
    let second = desk.ledger.commit_save(&prepared).await.unwrap();

    assert!(first.is_new && !second.is_new);
    assert_eq!((second.label, second.answer), (first.label, first.answer));
    assert_eq!(desk.labels(&document.id).await, ["2", "1"]);
}

pub async fn a_late_checkpoint_is_filed_beside_the_final_save(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    let checkpoint = desk.receive(&desk.callback(&key, 6, "16")).await;
    let last = desk.receive(&desk.callback(&key, 2, "17")).await;

    desk.ledger.commit_save(&desk.prepared(&last, SaveKind::Final, b"newer")).await.unwrap();
    let late =
        desk.ledger.commit_save(&desk.prepared(&checkpoint, SaveKind::Checkpoint, b"older")).await.unwrap();

    assert_eq!((late.ruling, late.label), (Some(Ruling::FileBeside), Label::parse("1.1")));
    desk.expect_head(&document.id, "2", b"newer").await;
    desk.expect_consistent().await;
}

pub async fn a_save_of_an_unknown_key_is_adopted_and_kept_aside(desk: &Desk) {
    let document = desk.document("12345").await;
    let foreign = EditorKey::parse("prod_12345_edit_900.zzzzzzzzzzzz").unwrap();

    let committed = desk.save(&foreign, 2, b"from another history").await;

    assert_eq!(committed.ruling, Some(Ruling::KeepAside(ConflictReason::KeyAdopted)));
    assert_eq!(committed.answer, Answer::Saved);
    desk.expect_head(&document.id, "1", b"base").await;
    let kept = desk.ledger.kept_copy(committed.kept.unwrap()).await.unwrap().unwrap();
    assert_eq!((kept.blob.digest, kept.key), (Digest::of(b"from another history"), Some(foreign)));
    desk.expect_consistent().await;
}

pub async fn a_save_whose_base_moved_is_kept_as_a_conflict_copy(desk: &Desk) {
    let document = desk.document("12345").await;
    let first = desk.key(&document.id).await;
    desk.save(&first, 2, b"first").await;
    let second = desk.key(&document.id).await;
    desk.save(&second, 2, b"second").await;

    let late = desk.callback(&first, 2, "99");
    let receipt = desk.receive(&late).await;
    let committed =
        desk.ledger.commit_save(&desk.prepared(&receipt, SaveKind::Final, b"late")).await.unwrap();

    assert_eq!(committed.ruling, Some(Ruling::KeepAside(ConflictReason::KeyRetired)));
    desk.expect_head(&document.id, "3", b"second").await;
    let page = KeptPage { of: Whose::Document(document.id.clone()), before: None, limit: 10 };
    assert_eq!(desk.ledger.kept_copies(&page).await.unwrap().len(), 1);
}

pub async fn a_save_of_an_unknown_document_is_an_orphan(desk: &Desk) {
    let key = EditorKey::parse("prod_unheard-of_edit_1.aaaaaaaaaaaa").unwrap();
    let receipt = desk.receive(&desk.callback(&key, 2, "17")).await;

    let aside = Aside {
        number: receipt.number,
        reason: AsideReason::UnknownStatus,
        blob: Some(blob(b"whose?")),
        answer: Answer::TryAgain,
        at: desk.now(),
    };
    let committed = desk.ledger.keep_aside(&aside).await.unwrap();

    assert_eq!(receipt.document, None);
    let kept = desk.ledger.kept_copy(committed.kept.unwrap()).await.unwrap().unwrap();
    assert_eq!((kept.keeping, kept.document), (Keeping::Orphan, None));
    assert_eq!(desk.ledger.totals().await.unwrap().orphans, 1);
}

pub async fn damaged_content_goes_to_quarantine_and_leaves_the_head(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    let receipt = desk.receive(&desk.callback(&key, 2, "17")).await;
    let aside = Aside {
        number: receipt.number,
        reason: AsideReason::Damaged,
        blob: Some(blob(b"torn")),
        answer: Answer::NotSaved,
        at: desk.now(),
    };

    let first = desk.ledger.keep_aside(&aside).await.unwrap();
    let second = desk.ledger.keep_aside(&aside).await.unwrap();

    assert!(first.is_new && !second.is_new);
    assert_eq!((first.kept, first.answer), (second.kept, Answer::NotSaved));
    desk.expect_head(&document.id, "1", b"base").await;
    let kept = desk.ledger.kept_copy(first.kept.unwrap()).await.unwrap().unwrap();
    assert_eq!(kept.keeping, Keeping::Quarantine(AsideReason::Damaged));
    assert!(matches!(desk.open(&document.id, None).await, OpenGrant::AskServer(_)), "the key is kept");
}

pub async fn a_failed_save_without_content_is_noted(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    let mut callback = desk.callback(&key, 3, "17");
    callback.url = None;
    let receipt = desk.receive(&callback).await;
    let aside = Aside {
        number: receipt.number,
        reason: AsideReason::FinalSaveFailed,
        blob: None,
        answer: Answer::NotSaved,
        at: desk.now(),
    };

    let committed = desk.ledger.keep_aside(&aside).await.unwrap();

    assert_eq!((committed.kept, committed.answer), (None, Answer::NotSaved));
    let record = desk.ledger.save(receipt.number).await.unwrap().unwrap();
    assert_eq!(record.outcome.as_deref(), Some("alert"));
    assert!(
        matches!(desk.open(&document.id, None).await, OpenGrant::AskServer(_)),
        "only the server knows now"
    );
}

pub async fn a_dead_link_ends_as_expired_and_a_new_delivery_starts_anew(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    let callback = desk.callback(&key, 2, "17");
    let first = desk.receive(&callback).await;

    desk.ledger.give_up(first.number, desk.now()).await.unwrap();
    desk.ledger.give_up(first.number, desk.now()).await.unwrap();
    let second = desk.receive(&callback).await;

    assert_eq!(desk.ledger.save(first.number).await.unwrap().unwrap().outcome.as_deref(), Some("expired"));
    assert_ne!(second.number, first.number);
    assert_eq!(second.standing, ReceiptStanding::New);
    desk.expect_consistent().await;
}

pub async fn a_redelivery_retires_the_key_of_a_save_nobody_heard_of(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    let receipt = desk.save_unheard(&key, b"edited").await;
    assert!(!desk.ledger.key(&key).await.unwrap().unwrap().is_spent);

    desk.ledger.acknowledge(receipt.number, desk.now()).await.unwrap();
    desk.ledger.acknowledge(receipt.number, desk.now()).await.unwrap();

    assert!(desk.ledger.key(&key).await.unwrap().unwrap().is_spent);
    assert_eq!(desk.grant(&document.id).await.base, Label::version(2));
    desk.expect_consistent().await;
}

pub async fn a_save_another_process_committed_retires_the_key_where_somebody_waits(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    let receipt = desk.save_unheard(&key, b"edited").await;

    let prepared = desk.prepared(&receipt, SaveKind::Final, b"edited");
    let again = desk.ledger.commit_save(&prepared).await.unwrap();

    assert_eq!((again.answer, again.is_new), (Answer::Saved, false));
    assert!(desk.ledger.key(&key).await.unwrap().unwrap().is_spent);
    desk.expect_consistent().await;
}

pub async fn a_repeat_does_not_change_what_the_first_delivery_said_of_its_save(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    let first = desk.callback(&key, 2, "17");
    desk.receive(&first).await;
    let repeated = desk.callback(&key, 2, "17");
    assert!(repeated.last_save > first.last_save, "the server repeats with the time of its newest change");

    desk.receive(&repeated).await;

    let open = desk.ledger.open_saves().await.unwrap();
    let [open] = open.as_slice() else { unreachable!("one save: {open:?}") };
    assert_eq!((open.callback.last_save, &open.callback.url), (first.last_save, &repeated.url));
}

pub async fn form_data_is_kept_with_its_save(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    let receipt = desk.receive(&desk.callback(&key, 6, "17")).await;
    let prepared = PreparedSave {
        form: Some(blob(b"{\"name\":\"Ann\"}")),
        ..desk.prepared(&receipt, SaveKind::Checkpoint, b"filled")
    };

    desk.ledger.commit_save(&prepared).await.unwrap();

    let named: Vec<_> =
        desk.ledger.blobs(None, 10).await.unwrap().into_iter().map(|blob| blob.digest).collect();
    assert!(named.contains(&Digest::of(b"{\"name\":\"Ann\"}")));
    desk.expect_consistent().await;
}

fn with_extent(prepared: PreparedSave, text_bytes: u64) -> PreparedSave {
    let extent = Some(Extent { text_bytes, ..Extent::default() });
    PreparedSave { blob: BlobFacts { extent, ..prepared.blob }, ..prepared }
}

/// A save that holds much, and one under the same key that holds little.
async fn much_then_little(desk: &Desk, key: &EditorKey, policy: Policy) -> Committed {
    let much = desk.receive(&desk.callback(key, 6, "17")).await;
    let much = with_extent(desk.prepared(&much, SaveKind::Checkpoint, b"much"), 50_000);
    assert_eq!(desk.ledger.commit_save(&much).await.unwrap().vanished, []);
    let little = desk.receive(&desk.callback(key, 2, "18")).await;
    let little = with_extent(desk.prepared(&little, SaveKind::Final, b"little"), 10);
    desk.ledger.commit_save(&PreparedSave { policy: Arc::new(policy), ..little }).await.unwrap()
}

pub async fn what_vanished_since_the_head_marks_the_save(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;

    let committed = much_then_little(desk, &key, Policy::default()).await;

    assert_eq!((committed.ruling, committed.vanished), (Some(Ruling::NewVersion), vec![Vanished::Text]));
    let content = desk.ledger.content(&document.id, committed.label.unwrap()).await.unwrap().unwrap();
    assert_eq!(content.blob.flags, "text-vanished");
    assert_eq!(content.blob.extent.map(|extent| extent.text_bytes), Some(10));
    desk.expect_consistent().await;
}

pub async fn a_save_is_held_if_the_operator_wants_a_person_to_look(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    let policy = Policy { on_vanished: OnVanished::Hold, ..Policy::default() };

    let committed = much_then_little(desk, &key, policy).await;

    let held = Ruling::KeepAside(ConflictReason::ContentVanished);
    assert_eq!((committed.ruling, committed.answer), (Some(held), Answer::Saved));
    desk.expect_head(&document.id, "1.1", b"much").await;
    let kept = desk.ledger.kept_copy(committed.kept.unwrap()).await.unwrap().unwrap();
    assert_eq!((kept.blob.digest, kept.blob.flags.as_str()), (Digest::of(b"little"), "text-vanished"));
    desk.expect_consistent().await;
}

pub async fn a_session_opened_on_an_older_forgotten_file_does_not_take_the_head_back(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    desk.save(&key, 6, b"older").await;
    desk.save_unheard(&key, b"newer").await;
    let other = Callback { session_start: None, ..desk.callback(&key, 2, "19") };
    let other = desk.receive(&other).await;
    let opened_on = Some(Digest::of(b"older"));
    let other = PreparedSave { opened_on, ..desk.prepared(&other, SaveKind::Final, b"older and other") };

    let committed = desk.ledger.commit_save(&other).await.unwrap();

    assert_eq!(committed.ruling, Some(Ruling::KeepAside(ConflictReason::SessionBeganAgain)));
    desk.expect_head(&document.id, "2", b"newer").await;
}

pub async fn a_final_save_does_not_pass_an_earlier_one_of_its_session(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    let newer = desk.receive(&desk.callback(&key, 2, "17")).await;
    // The repeat of an older save whose first deliveries were lost.
    let older = desk.receive(&desk.callback(&key, 2, "16")).await;

    let passing = desk.ledger.commit_save(&desk.prepared(&older, SaveKind::Final, b"older")).await.unwrap();

    assert_eq!((passing.answer, passing.is_new), (Answer::TryAgain, false));
    desk.expect_head(&document.id, "1", b"base").await;
    desk.ledger.commit_save(&desk.prepared(&newer, SaveKind::Final, b"newer")).await.unwrap();
    let in_turn = desk.ledger.commit_save(&desk.prepared(&older, SaveKind::Final, b"older")).await.unwrap();
    assert_eq!(in_turn.answer, Answer::Saved);
    desk.expect_consistent().await;
}

pub async fn a_key_with_a_save_on_its_way_is_not_retired(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    let receipt = desk.receive(&desk.callback(&key, 6, "17")).await;
    let retirement =
        || Retirement { key: key.clone(), saves_received: 1, why: "nothing left", at: desk.now() };

    let while_stored = desk.ledger.retire_key(&retirement()).await.unwrap();
    desk.ledger.commit_save(&desk.prepared(&receipt, SaveKind::Checkpoint, b"edited")).await.unwrap();
    let afterwards = desk.ledger.retire_key(&retirement()).await.unwrap();

    assert_eq!((while_stored, afterwards), (false, true));
    desk.expect_head(&document.id, "1.1", b"edited").await;
}

pub async fn what_a_key_still_needs_of_the_server_is_known(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    let older = desk.receive(&desk.callback(&key, 2, "16")).await;
    let needs = async || {
        let needed = desk.ledger.still_needed(older.number, desk.now()).await.unwrap();
        (needed.another_is_being_stored, needed.one_was_refused)
    };
    let is_live = async || desk.ledger.key(&key).await.unwrap().unwrap().standing == KeyStanding::Live;
    assert_eq!(needs().await, (false, false), "itself does not count");

    let newer = desk.receive(&desk.callback(&key, 2, "17")).await;
    assert_eq!(needs().await, (true, false));
    desk.ledger.commit_save(&desk.prepared(&older, SaveKind::Final, b"older")).await.unwrap();
    desk.ledger.acknowledge(older.number, desk.now()).await.unwrap();
    assert!(is_live().await, "the newer one may have to be made again");
    let (reason, answer) = (AsideReason::Damaged, Answer::NotSaved);
    let aside = Aside { number: newer.number, reason, blob: Some(blob(b"torn")), answer, at: desk.now() };
    desk.ledger.keep_aside(&aside).await.unwrap();

    assert_eq!(needs().await, (false, true));
    desk.ledger.acknowledge(older.number, desk.now()).await.unwrap();
    assert!(!is_live().await);
    desk.expect_consistent().await;
}

pub async fn the_audit_chain_holds_and_nothing_contradicts_itself(desk: &Desk) {
    let document = desk.document("12345").await;
    for round in 0..5_u8 {
        let key = desk.key(&document.id).await;
        desk.save(&key, 6, &[round, 1]).await;
        desk.save(&key, 2, &[round, 2]).await;
    }

    let entries = desk.ledger.audit(document.id.as_str(), 0, 1000).await.unwrap();
    let end = model::audit::verify(entries.iter().map(|(entry, hash)| (entry, *hash))).unwrap();

    assert_eq!(end, entries.last().unwrap().1);
    // Uploaded; then per round: key issued, checkpoint, final save, key retired.
    assert_eq!(entries.len(), 1 + 5 * 4);
    let page = desk.ledger.audit(document.id.as_str(), 3, 2).await.unwrap();
    assert_eq!(page.iter().map(|(entry, _)| entry.sequence).collect::<Vec<_>>(), [4, 5]);
    desk.expect_consistent().await;
}
