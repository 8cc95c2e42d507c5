//! What operators ask of a ledger.
#![allow(clippy::unwrap_used, reason = "a broken contract must stop the test that found it")]

use super::Desk;
use super::desk::author;
use crate::keys::Presence;
use crate::operations::Operation;

pub async fn keys_that_may_hold_unsaved_work_are_told(desk: &Desk) {
    let (idle, edited, left, done) = (
        desk.document("1").await,
        desk.document("2").await,
        desk.document("3").await,
        desk.document("4").await,
    );
    let live = desk.key(&idle.id).await;
    let busy = desk.key(&edited.id).await;
    let retired = desk.key(&left.id).await;
    desk.save(&retired, 2, b"saved").await;
    let over = desk.key(&done.id).await;
    desk.save(&over, 2, b"done").await;
    for key in [&busy, &retired] {
        let users = vec!["u1".to_owned()];
        let presence = Presence { key: key.clone(), users, is_idle: false, at: desk.now() };
        desk.ledger.note_presence(&presence).await.unwrap();
    }

    let found = desk.ledger.keys_in_use().await.unwrap();

    let found: Vec<_> = found.into_iter().map(|record| record.key).collect();
    assert_eq!(found, [live, busy, retired]);
    let present = desk.ledger.present().await.unwrap();
    assert_eq!((present.sessions, present.people), (2, 2));
}

pub async fn an_act_on_the_installation_is_written_down(desk: &Desk) {
    let details = "{\"seconds\":60}".to_owned();
    let operation = Operation { action: "drain-asked", details, who: author("ops"), at: desk.now() };

    desk.ledger.note_operation(&operation).await.unwrap();

    let trail = desk.ledger.audit("saveguard:installation", 0, 10).await.unwrap();
    assert_eq!((trail[0].0.action.as_str(), trail[0].0.actor.as_str()), ("drain-asked", "ops"));
    desk.expect_consistent().await;
}
