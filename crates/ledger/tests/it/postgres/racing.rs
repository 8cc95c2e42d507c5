//! What only many writers can show: tasks on two instances that work on the same document, company or blob at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::{SignedDuration, Timestamp};
use ledger::contract::Desk;
use ledger::documents::{BlobFacts, CompanyChange, NewDocument};
use ledger::keys::{OpenGrant, Retirement};
use ledger::outbox::{DeliveryEnd, Subscription};
use ledger::postgres::throwaway::{Database, Server};
use ledger::saves::ReceiptStanding;
use ledger::trail::Anchoring;
use ledger::{Ledger, LedgerError, Result};
use model::callbacks::Answer;
use model::opening::ServerKnowledge;
use model::quotas::Quota;
use model::saves::SaveKind;
use model::webhooks::Event;
use model::{CompanyId, Digest, DocumentId};
use tokio::task::JoinSet;

const WRITERS: usize = 8;

/// Two instances on one database.
async fn two_desks() -> (Database, Vec<Arc<Desk>>) {
    let database = Server::shared().await.unwrap().database().await.unwrap();
    let first: Arc<dyn Ledger> = Arc::new(database.ledger().await.unwrap());
    let second: Arc<dyn Ledger> = Arc::new(database.ledger().await.unwrap());
    let desk = Desk::new(Arc::clone(&first)).await;
    let desks = vec![Arc::new(desk), Arc::new(Desk::beside(second))];
    (database, desks)
}

/// Repeats a step that was refused as busy: eight writers on a slow machine may wait for more than three seconds.
async fn patiently<T, F: Future<Output = Result<T>>>(step: impl Fn() -> F) -> T {
    for _ in 0..50 {
        match step().await {
            Err(LedgerError::Busy) => {}
            done => return done.unwrap(),
        }
    }
    panic!("busy for ever");
}

async fn no_deadlocks(database: &Database) {
    let none = "DO $$ BEGIN ASSERT (SELECT deadlocks = 0 FROM pg_stat_database WHERE datname = current_database()); END $$";
    database.execute(none).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_that_comes_to_two_instances_at_once_is_one_save() {
    let (database, desks) = two_desks().await;
    let document = desks[0].document("12345").await;

    for round in 0..10 {
        let key = desks[0].key(&document.id).await;
        let callback = desks[0].callback(&key, 2, &round.to_string());
        let mut receiving = JoinSet::new();
        for writer in 0..WRITERS {
            let (desk, callback) = (Arc::clone(&desks[writer % 2]), callback.clone());
            receiving.spawn(async move { desk.receive(&callback).await });
        }
        let receipts = receiving.join_all().await;
        let new: Vec<_> = receipts.iter().filter(|each| each.standing == ReceiptStanding::New).collect();
        assert_eq!(new.len(), 1, "{receipts:?}");
        assert!(receipts.iter().all(|each| each.number == new[0].number), "{receipts:?}");

        let mut committing = JoinSet::new();
        for writer in 0..WRITERS {
            let (desk, receipt) = (Arc::clone(&desks[writer % 2]), receipts[writer].clone());
            committing.spawn(async move {
                let bytes = format!("round {round}");
                let save = desk.prepared(&receipt, SaveKind::Final, bytes.as_bytes());
                patiently(|| desk.ledger.commit_save(&save)).await
            });
        }
        let committed = committing.join_all().await;
        assert_eq!(committed.iter().filter(|each| each.is_new).count(), 1, "{committed:?}");
        assert!(committed.iter().all(|each| each.answer == Answer::Saved), "{committed:?}");
        desks[1]
            .expect_head(&document.id, &(round + 2).to_string(), format!("round {round}").as_bytes())
            .await;
    }
    desks[1].expect_consistent().await;
    no_deadlocks(&database).await;
}

/// One who edits: opens, saves now and then, leaves with a final save, and does what the ledger asks for in between.
async fn edit(desk: &Desk, document: &DocumentId, writer: usize) -> usize {
    let mut saves = 0;
    for round in 0..12 {
        let mut knowledge = None;
        let key = loop {
            match desk.open(document, knowledge.take()).await {
                OpenGrant::Granted(grant) => break Some(grant.key),
                OpenGrant::AskServer(asked) => {
                    desk.pass(20);
                    knowledge = Some(desk.said(&asked, ServerKnowledge::NothingHeld));
                }
                OpenGrant::Finish(finished) => {
                    let (key, saves_received) = (finished.key.clone(), finished.saves_received);
                    let retirement = Retirement { key, saves_received, why: "nothing left", at: desk.now() };
                    patiently(|| desk.ledger.retire_key(&retirement)).await;
                }
                // Somebody else's save is on its way; ours can wait for the next round.
                OpenGrant::Wait | OpenGrant::ServerAway => break None,
            }
        };
        let Some(key) = key else { continue };
        let bytes = format!("{writer} {round}");
        let (status, kind) = if round % 3 == 2 { (2, SaveKind::Final) } else { (6, SaveKind::Checkpoint) };
        let receipt = desk.receive(&desk.callback(&key, status, &bytes)).await;
        let mut committed = desk.ledger.commit_save(&desk.prepared(&receipt, kind, bytes.as_bytes())).await;
        // Behind an earlier final save of the same key, until that one is stored.
        while !matches!(&committed, Ok(done) if done.answer == Answer::Saved) {
            assert!(
                !matches!(&committed, Err(cause) if !matches!(cause, LedgerError::Busy)),
                "{committed:?}"
            );
            tokio::task::yield_now().await;
            committed = desk.ledger.commit_save(&desk.prepared(&receipt, kind, bytes.as_bytes())).await;
        }
        saves += 1;
    }
    saves
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_who_edit_on_two_instances_leave_dense_versions_and_one_live_key() {
    let (database, desks) = two_desks().await;
    let document = desks[0].document("12345").await;

    let mut editing = JoinSet::new();
    for writer in 0..WRITERS {
        let (desk, document) = (Arc::clone(&desks[writer % 2]), document.id.clone());
        editing.spawn(async move { edit(&desk, &document, writer).await });
    }
    let saves: usize = editing.join_all().await.into_iter().sum();

    assert!(saves > 0);
    let contents = desks[1].ledger.contents(&document.id).await.unwrap();
    let page = ledger::documents::KeptPage {
        of: ledger::documents::Whose::Document(document.id.clone()),
        before: None,
        limit: 1000,
    };
    let kept = desks[1].ledger.kept_copies(&page).await.unwrap();
    assert_eq!(contents.len() - 1 + kept.len(), saves, "each save is kept once");
    assert!(desks[1].ledger.open_saves().await.unwrap().is_empty());
    desks[1].expect_consistent().await;
    no_deadlocks(&database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_uploads_do_not_share_the_last_place() {
    let (database, desks) = two_desks().await;
    let quota = Some(Quota { documents: Some(3), bytes: None });
    let change = CompanyChange {
        id: CompanyId::parse("acme").unwrap(),
        name: None,
        quota,
        by: ledger::documents::Author::saveguard(),
        at: desks[0].now(),
    };
    desks[0].ledger.change_company(&change).await.unwrap();

    let mut uploading = JoinSet::new();
    for writer in 0..WRITERS {
        let desk = Arc::clone(&desks[writer % 2]);
        let new = desk.new_document(&format!("d{writer}"), b"base");
        uploading.spawn(async move { desk.ledger.create_document(&new).await });
    }
    let outcomes = uploading.join_all().await;

    let over = outcomes.iter().filter(|each| matches!(each, Err(LedgerError::OverQuota(_)))).count();
    assert_eq!((outcomes.iter().filter(|each| each.is_ok()).count(), over), (3, WRITERS - 3), "{outcomes:?}");
    desks[0].expect_consistent().await;
    no_deadlocks(&database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_id_is_one_document() {
    let (_database, desks) = two_desks().await;

    let mut uploading = JoinSet::new();
    for writer in 0..WRITERS {
        let desk = Arc::clone(&desks[writer % 2]);
        let new: NewDocument = desk.new_document("12345", format!("by {writer}").as_bytes());
        uploading.spawn(async move { desk.ledger.create_document(&new).await });
    }
    let outcomes = uploading.join_all().await;

    let taken = outcomes.iter().filter(|each| matches!(each, Err(LedgerError::AlreadyExists { .. }))).count();
    assert_eq!(taken, WRITERS - 1, "{outcomes:?}");
    desks[0].expect_consistent().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_told_while_a_delivery_ends_is_not_left_behind_for_ever() {
    let (_database, desks) = two_desks().await;
    let document = desks[0].document("12345").await;
    let target = Subscription { target: "erp".to_owned(), events: Event::ALL.to_vec() };
    desks[0].ledger.set_webhooks(&[target], desks[0].now()).await.unwrap();
    let key = desks[0].key(&document.id).await;
    let saving = tokio::spawn({
        let desk = Arc::clone(&desks[0]);
        async move {
            for round in 0..40 {
                desk.save(&key, 6, format!("round {round}").as_bytes()).await;
            }
        }
    });

    let far = Timestamp::from_second(1_900_000_000).unwrap();
    let mut delivered = 0;
    loop {
        let was_finished = saving.is_finished();
        let due = desks[1].ledger.due_deliveries("erp", far, 10).await.unwrap();
        for delivery in &due {
            let end = (delivery.number, DeliveryEnd::Delivered);
            patiently(|| desks[1].ledger.delivery_ended(end.0, &end.1, far)).await;
            delivered += 1;
        }
        if due.is_empty() && was_finished {
            break;
        }
    }

    saving.await.unwrap();
    let standing = &desks[1].ledger.webhooks().await.unwrap()[0];
    assert_eq!(standing.waiting, 0, "{standing:?}");
    assert!(delivered >= 40, "{delivered}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blob_that_is_named_while_it_is_removed_is_kept_or_stored_again() {
    let (database, desks) = two_desks().await;
    let document = desks[0].document("12345").await;
    let key = desks[0].key(&document.id).await;
    let refused = Arc::new(AtomicUsize::new(0));

    for round in 0..25 {
        // Known, and perhaps needed by nothing.
        let bytes = format!("round {round}");
        let blob = BlobFacts::plain(Digest::of(bytes.as_bytes()), bytes.len() as u64, "docx");
        let found = ledger::documents::UnnamedBlob {
            blob: blob.clone(),
            document: None,
            key: None,
            is_record_of_changes: true,
            at: desks[0].now(),
        };
        desks[0].ledger.keep_unnamed(&found).await.unwrap();
        let receipt = desks[0].receive(&desks[0].callback(&key, 6, &bytes)).await;
        let save = desks[0].prepared(&receipt, SaveKind::Checkpoint, bytes.as_bytes());
        let before = desks[0].now();

        let (removal, committed) = tokio::join!(
            desks[1].ledger.begin_removal(&blob.digest, before),
            desks[0].ledger.commit_save(&save)
        );

        match (removal.unwrap(), committed) {
            (true, Err(LedgerError::BlobGoing)) => {
                refused.fetch_add(1, Ordering::Relaxed);
                desks[1].ledger.finish_removal(&blob.digest, desks[1].now()).await.unwrap();
                let again = BlobFacts { removals: 1, ..blob };
                let save = ledger::saves::PreparedSave { blob: again, ..save };
                desks[0].ledger.commit_save(&save).await.unwrap();
            }
            (false, Ok(_)) => {}
            (removed, committed) => panic!("removed: {removed}, {committed:?}"),
        }
    }
    desks[0].expect_consistent().await;
    no_deadlocks(&database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn anchors_uploads_saves_and_deletions_of_one_company_never_wait_for_each_other_in_a_circle() {
    let (database, desks) = two_desks().await;
    let mut working = JoinSet::new();
    for writer in 0..WRITERS {
        let desk = Arc::clone(&desks[writer % 2]);
        working.spawn(async move {
            for round in 0..6 {
                let new = desk.new_document(&format!("d{writer}-{round}"), b"base");
                let document = patiently(|| desk.ledger.create_document(&new)).await;
                let key = desk.key(&document.id).await;
                desk.save(&key, 6, format!("{writer} {round}").as_bytes()).await;
                let wish = Anchoring { at: desk.now(), spacing: SignedDuration::ZERO };
                patiently(|| desk.ledger.anchor(&wish)).await;
                desk.save(&key, 2, format!("{writer} {round} at the end").as_bytes()).await;
                delete(&desk, &document.id).await;
            }
        });
    }
    working.join_all().await;

    desks[0].expect_consistent().await;
    no_deadlocks(&database).await;
}

/// Deletes a document whose session is over.
async fn delete(desk: &Desk, document: &DocumentId) {
    let mut knowledge = None;
    loop {
        let request = ledger::changes::ChangeRequest {
            document: document.clone(),
            knowledge: knowledge.take(),
            quiet_after: SignedDuration::from_secs(10),
            who: ledger::documents::Author::saveguard(),
            at: desk.now(),
        };
        match patiently(|| desk.ledger.delete_document(&request)).await {
            ledger::changes::ChangeOutcome::AskServer(asked) => {
                desk.pass(20);
                knowledge = Some(desk.said(&asked, ServerKnowledge::NothingHeld));
            }
            ledger::changes::ChangeOutcome::Done(_) => return,
            other => panic!("{other:?}"),
        }
    }
}
