//! The contract about editor keys.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "the names of checks are sentences; a broken contract must stop"
)]

use std::collections::HashSet;

use model::opening::ServerKnowledge;
use model::saves::KeyStanding;
use model::{EditorKey, Label};

use super::desk::{Desk, granted};
use crate::keys::{KeyStandingNow, OpenGrant, Presence, Retirement};

fn presence(desk: &Desk, key: &EditorKey, users: &[&str]) -> Presence {
    Presence {
        key: key.clone(),
        users: users.iter().map(|user| (*user).to_owned()).collect(),
        is_idle: users.is_empty(),
        at: desk.now(),
    }
}

pub async fn an_idle_key_is_reused_while_its_base_is_the_head(desk: &Desk) {
    let document = desk.document("12345").await;

    let first = desk.grant(&document.id).await;
    let second = desk.grant(&document.id).await;

    assert!(first.is_new && !second.is_new);
    assert_eq!(first.key, second.key);
    assert_eq!((first.base, first.base_digest), (Label::FIRST, document.head_digest));
    assert!(first.key.as_str().starts_with("prod_12345_edit_1."), "{}", first.key);
}

pub async fn two_openers_get_one_key(desk: &Desk) {
    let document = desk.document("12345").await;

    let grants = tokio::join!(desk.grant(&document.id), desk.grant(&document.id), desk.grant(&document.id));

    let keys: HashSet<_> = [grants.0.key, grants.1.key, grants.2.key].into();
    assert_eq!(keys.len(), 1);
    assert_eq!(desk.ledger.live_keys().await.unwrap().len(), 1);
}

pub async fn status_four_retires_nothing(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;

    desk.ledger.note_presence(&presence(desk, &key, &["u1"])).await.unwrap();
    assert_eq!(desk.current(&document.id).await.editors, ["u1"]);
    desk.ledger.note_presence(&presence(desk, &key, &[])).await.unwrap();

    assert_eq!(desk.key(&document.id).await, key);
    assert_eq!(desk.save(&key, 2, b"edited").await.label, Some(Label::version(2)));
}

pub async fn a_key_whose_final_save_was_answered_is_replaced(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;

    desk.save(&key, 2, b"edited").await;
    let next = desk.grant(&document.id).await;

    assert_ne!(next.key, key);
    assert_eq!(next.base, Label::version(2));
    let old = desk.ledger.key(&key).await.unwrap().unwrap();
    assert_eq!((old.standing, old.is_spent), (KeyStanding::Retired, true));
}

pub async fn a_key_that_retired_with_its_final_save_comes_back_if_the_server_did_not_hear_so(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    desk.save(&key, 2, b"edited").await;

    let OpenGrant::AskServer(asked) = desk.open(&document.id, None).await else {
        unreachable!("the server must be asked")
    };
    assert_eq!((&asked.key, asked.standing), (&key, KeyStanding::Retired));
    let held = || Some(desk.said(&asked, ServerKnowledge::ChangesHeld));
    assert_eq!(desk.open(&document.id, held()).await, OpenGrant::Wait, "our answer may be on its way");
    desk.pass(20);
    let again = granted(desk.open(&document.id, held()).await);

    assert_eq!((again.key, again.base, again.brings_back_stranded), (key.clone(), Label::FIRST, true));
    let record = desk.ledger.key(&key).await.unwrap().unwrap();
    assert_eq!((record.standing, record.is_spent), (KeyStanding::Live, false));
    let both = desk.save(&key, 2, b"edited and more").await;
    assert_eq!(both.label, Some(Label::version(3)));
    assert_ne!(desk.key(&document.id).await, key);
    desk.expect_consistent().await;
}

pub async fn a_key_whose_final_save_nobody_heard_of_stays_live(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    desk.save_unheard(&key, b"edited").await;

    let OpenGrant::AskServer(record) = desk.open(&document.id, None).await else {
        unreachable!("the server must be asked")
    };
    let known = |server| Some(desk.said(&record, server));
    let at_once = desk.open(&document.id, known(ServerKnowledge::ChangesHeld)).await;
    assert_eq!(at_once, OpenGrant::Wait, "our answer may be on its way");
    desk.pass(20);
    let held = granted(desk.open(&document.id, known(ServerKnowledge::ChangesHeld)).await);
    let finished = desk.open(&document.id, known(ServerKnowledge::NothingHeld)).await;

    desk.expect_head(&document.id, "2", b"edited").await;
    assert!(!record.is_spent && record.has_final_save);
    assert_eq!((held.key, held.base, held.brings_back_stranded), (key.clone(), Label::FIRST, true));
    assert!(matches!(finished, OpenGrant::Finish(_)));
    let away = desk.open(&document.id, known(ServerKnowledge::Away)).await;
    assert_eq!(away, OpenGrant::ServerAway);

    let retirement = Retirement {
        key: key.clone(),
        saves_received: record.saves_received,
        why: "nothing left",
        at: desk.now(),
    };
    assert!(desk.ledger.retire_key(&retirement).await.unwrap());
    assert!(!desk.ledger.retire_key(&retirement).await.unwrap(), "once is enough");
    assert_eq!(desk.grant(&document.id).await.base, Label::version(2));
}

pub async fn opening_waits_while_a_final_save_is_open(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    let receipt = desk.receive(&desk.callback(&key, 2, "17")).await;

    assert_eq!(desk.open(&document.id, None).await, OpenGrant::Wait);

    let prepared = desk.prepared(&receipt, model::saves::SaveKind::Final, b"edited");
    desk.ledger.commit_save(&prepared).await.unwrap();
    assert_eq!(desk.grant(&document.id).await.base, Label::version(2));
}

pub async fn an_answer_older_than_the_newest_save_counts_for_nothing(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    desk.save(&key, 6, b"first").await;
    let asked = desk.ledger.key(&key).await.unwrap().unwrap();
    let saves_received = asked.saves_received;
    let knowledge = desk.said(&asked, ServerKnowledge::NothingHeld);

    desk.save(&key, 6, b"second").await;
    let grant = desk.open(&document.id, Some(knowledge)).await;
    let retired = desk
        .ledger
        .retire_key(&Retirement { key, saves_received, why: "stale", at: desk.now() })
        .await
        .unwrap();

    assert!(matches!(grant, OpenGrant::AskServer(_)));
    assert!(!retired);
}

pub async fn an_answer_older_than_a_repeat_of_the_final_save_counts_for_nothing(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    let callback = desk.callback(&key, 2, "17");
    let receipt = desk.receive(&callback).await;
    let prepared = desk.prepared(&receipt, model::saves::SaveKind::Final, b"edited");
    desk.ledger.commit_save(&prepared).await.unwrap();
    let OpenGrant::AskServer(asked) = desk.open(&document.id, None).await else {
        unreachable!("the server must be asked")
    };
    desk.pass(20);
    let held = desk.said(&asked, ServerKnowledge::ChangesHeld);

    // Its answer is what makes the server forget what it said to hold.
    assert_eq!(desk.receive(&callback).await.number, receipt.number);

    assert!(matches!(desk.open(&document.id, Some(held)).await, OpenGrant::AskServer(_)));
    let asked = desk.ledger.key(&key).await.unwrap().unwrap();
    let held = || Some(desk.said(&asked, ServerKnowledge::ChangesHeld));
    assert_eq!(desk.open(&document.id, held()).await, OpenGrant::Wait, "our answer may be on its way");
    desk.pass(20);
    assert_eq!(granted(desk.open(&document.id, held()).await).key, key);
}

pub async fn somebody_inside_a_retired_key_is_noticed(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    assert_eq!(
        desk.ledger.note_presence(&presence(desk, &key, &["u1"])).await.unwrap(),
        KeyStandingNow::AsExpected
    );

    desk.save(&key, 2, b"edited").await;

    assert_eq!(
        desk.ledger.note_presence(&presence(desk, &key, &["u1"])).await.unwrap(),
        KeyStandingNow::Retired
    );
    assert_eq!(
        desk.ledger.note_presence(&presence(desk, &key, &[])).await.unwrap(),
        KeyStandingNow::AsExpected
    );
}

pub async fn keys_are_never_issued_twice(desk: &Desk) {
    let document = desk.document("12345").await;
    let mut seen = HashSet::new();

    for round in 0..20_u8 {
        let key = desk.key(&document.id).await;
        assert!(seen.insert(key.clone()), "{key}");
        desk.save(&key, 2, &[round]).await;
    }

    desk.expect_consistent().await;
}
