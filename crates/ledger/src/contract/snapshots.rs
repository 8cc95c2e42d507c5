//! Copies of the whole ledger, and the first step of one that was restored.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a broken contract must stop the test that found it")]

use model::Digest;
use model::opening::ServerKnowledge;

use super::Desk;
use super::desk::author;
use crate::keys::OpenGrant;
use crate::snapshots::Restoration;

pub async fn a_snapshot_names_the_blobs_of_its_moment(desk: &Desk) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("copy");
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    desk.save(&key, 6, b"before").await;

    desk.ledger.write_snapshot(&file).await.unwrap();
    desk.save(&key, 2, b"after").await;

    let mut expected = vec![Digest::of(b"base"), Digest::of(b"before")];
    expected.sort();
    let first = desk.ledger.snapshot_blobs(&file, None, 1).await.unwrap();
    let rest = desk.ledger.snapshot_blobs(&file, Some(&expected[0]), 10).await.unwrap();
    assert_eq!([first, rest].concat().iter().map(|blob| blob.digest).collect::<Vec<_>>(), expected);
}

pub async fn a_snapshot_is_not_written_over_anything(desk: &Desk) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("copy");
    std::fs::write(&file, b"somebody's").unwrap();

    assert!(desk.ledger.write_snapshot(&file).await.is_err());
    assert_eq!(std::fs::read(&file).unwrap(), b"somebody's");
}

pub async fn after_a_restore_no_key_is_issued_again(desk: &Desk) {
    let document = desk.document("12345").await;
    let before = desk.key(&document.id).await;
    desk.save(&before, 2, b"two").await;

    let begun = desk.ledger.begin_again(&restoration(desk)).await.unwrap();
    let first = desk.key(&document.id).await;
    desk.save(&first, 2, b"three").await;
    desk.ledger.begin_again(&restoration(desk)).await.unwrap();
    let second = desk.key(&document.id).await;

    // Not by chance alone: the random part is the same word in the wrong hands, the counter is not.
    let counters = [&before, &first, &second].map(|key| key.parts().unwrap().counter);
    assert!(
        counters[0] < 1_000_000 && counters[1] > 1_000_000_000 && counters[1] < counters[2],
        "{counters:?}"
    );
    assert_eq!((begun.documents, begun.live_keys, begun.open_saves), (1, 0, 0));
    desk.expect_consistent().await;
}

pub async fn after_a_restore_a_live_key_is_asked_about_first(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;

    let begun = desk.ledger.begin_again(&restoration(desk)).await.unwrap();
    assert_eq!(begun.live_keys, 1);
    let OpenGrant::AskServer(record) = desk.open(&document.id, None).await else { panic!("not asked") };
    let inside = desk.said(&record, ServerKnowledge::UsersInside);
    let OpenGrant::Granted(joined) = desk.open(&document.id, Some(inside)).await else {
        panic!("not joined")
    };
    let gone = desk.said(&record, ServerKnowledge::Unknown);
    let finished = desk.open(&document.id, Some(gone)).await;

    assert_eq!(joined.key, key, "whoever is inside is joined");
    assert!(
        matches!(finished, OpenGrant::Finish(_)),
        "a key the server does not know is not handed out again"
    );
    desk.expect_consistent().await;
}

fn restoration(desk: &Desk) -> Restoration {
    let (backed_up_at, at) = (desk.now(), desk.now());
    Restoration { backup: "20261115T120000Z".to_owned(), backed_up_at, who: author("ops"), at }
}
