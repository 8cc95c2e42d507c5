//! A spent key opened again after its window: PROTOCOL 14.4.

use understudy::office;
use understudy::server::{Opening, Session};

use crate::host::{Callback, Reply, Source};
use crate::stage::Stage;

/// A window of a second, counted in seconds.
async fn set() -> Stage {
    Stage::set_with("revival", |settings| {
        settings.timings.spent_window_ms = 1_000;
        settings.timings.minute_ms = 1_000;
    })
    .await
}

/// u1 edits and leaves, the host keeps its answer back, the window passes, u2 opens.
async fn revived() -> (Stage, String, Session) {
    let stage = set().await;
    stage.answers(2, [Reply::Held]);
    let first = stage.edits_and_closes("u1").await;
    stage.pass(8_000).await;
    let u2 = stage.opens("u2").await;
    (stage, first, u2)
}

fn saves(stage: &Stage) -> Vec<Callback> {
    stage.callbacks().into_iter().filter(|callback| callback.status() == 2).collect()
}

async fn held_by(stage: &Stage, save: &Callback) -> std::collections::BTreeSet<String> {
    office::changes_in(&stage.file_of(save).await)
}

#[tokio::test]
async fn an_acknowledged_key_is_revived_from_what_the_host_serves_then() {
    let stage = set().await;
    stage.edits_and_closes("u1").await;
    stage.pass(8_000).await;
    stage.host.serves(Source::Bytes(office::sample_docx("Second", &["served later"])));

    let u2 = stage.opens("u2").await;
    assert_eq!(u2.opened().await, Opening::Ready);
    u2.write("on top").await.unwrap();
    u2.hang_up().await.unwrap();
    stage.pass_long().await;

    assert_eq!(stage.statuses(), [1, 2, 1, 2]);
    assert_eq!(stage.host.downloads(), 2);
    let text = office::text_of(&stage.file_of(&stage.last()).await);
    assert!(text.contains("served later") && text.contains("on top"));
}

#[tokio::test]
async fn unacknowledged_changes_are_replayed_on_the_new_copy() {
    let (stage, first, u2) = revived().await;

    assert_eq!(u2.opened().await, Opening::Ready);
    assert_eq!(stage.host.downloads(), 2);
    assert!(u2.messages().iter().any(|message| message["type"] == "authChanges"));
    assert_eq!(stage.changes_left().await, 1);
    assert!(stage.server().journal().change(&first).unwrap().in_log);
}

#[tokio::test]
async fn with_the_saved_file_as_source_the_edit_is_there_twice() {
    let stage = set().await;
    stage.answers(2, [Reply::Held]);
    let first = stage.edits_and_closes("u1").await;
    stage.pass(8_000).await;
    let saved = stage.file_of(&stage.last()).await;
    stage.host.serves(Source::Bytes(saved));
    let u2 = stage.opens("u2").await;
    stage.host.release(Reply::Close);
    stage.pass(1_000).await;
    u2.hang_up().await.unwrap();
    stage.pass_long().await;

    let text = office::text_of(&stage.file_of(&stage.last()).await);
    assert_eq!(text.matches(&office::marker(&first)).count(), 2, "{text}");
}

#[tokio::test]
async fn a_late_acknowledgement_deletes_everything_under_the_new_session() {
    let (stage, first, u2) = revived().await;
    let mut later = Vec::new();
    for _ in 0..4 {
        later.push(u2.write("soon gone").await.unwrap());
    }
    assert_eq!(stage.changes_left().await, 5);

    stage.host.release(Reply::Ok);
    stage.pass(1_000).await;

    assert_eq!(stage.changes_left().await, 0);
    assert!(!u2.is_disconnected(), "u2 stays and hears nothing");
    let after = u2.write("afterwards").await.unwrap();
    u2.hang_up().await.unwrap();
    stage.pass_long().await;
    let held = held_by(&stage, &stage.last()).await;
    assert_eq!(held.into_iter().collect::<Vec<_>>(), [after]);
    let journal = stage.server().journal();
    assert!(!journal.change(&first).unwrap().is_lost(), "the host has it");
    assert!(later.iter().all(|id| journal.change(id).unwrap().is_lost()), "silently lost");
}

#[tokio::test]
async fn a_late_acknowledgement_in_the_save_delay_empties_the_next_save() {
    let (stage, _, u2) = revived().await;
    u2.write("gone").await.unwrap();
    u2.hang_up().await.unwrap();
    stage.pass(1_000).await;
    stage.host.release(Reply::Ok);
    stage.pass_long().await;

    let saves = saves(&stage);
    assert_eq!(saves.len(), 2);
    assert!(held_by(&stage, &saves[1]).await.is_empty());
    assert_eq!(saves[1].body["users"], serde_json::json!(["u2"]), "the leaver stands in for an author");
    assert_eq!(saves[1].body["history"]["changes"], serde_json::json!([]));
    assert!(!stage.has_forgotten().await);
}

#[tokio::test]
async fn a_late_failure_deletes_nothing_and_is_not_repeated() {
    for late in [Reply::Http(503), Reply::Close, Reply::Error1] {
        let (stage, first, u2) = revived().await;
        let second = u2.write("mine").await.unwrap();
        stage.host.release(late.clone());
        stage.pass(10_000).await;
        assert_eq!(stage.changes_left().await, 2, "{late:?}");
        u2.hang_up().await.unwrap();
        stage.pass_long().await;

        let saves = saves(&stage);
        assert_eq!(saves.len(), 2, "{late:?}: no further delivery of the first");
        let held = held_by(&stage, &saves[1]).await;
        assert!(held.contains(&first) && held.contains(&second));
        assert!(!stage.has_forgotten().await, "{late:?}");
    }
}

#[tokio::test]
async fn the_window_is_counted_in_whole_minutes() {
    let stage = Stage::set_with("minutes", |settings| {
        settings.timings.spent_window_ms = 70_000;
        settings.clock = understudy::clock::Clock::manual_at(1_794_770_400_000);
    })
    .await;
    // The 2 leaves at second 54 of a minute.
    stage.pass(47_000 - 5_400).await;
    let session = stage.opens_with(&stage.config("u1")).await.unwrap();
    stage.pass(1_000).await;
    session.write("one").await.unwrap();
    stage.pass(6_000).await;
    session.hang_up().await.unwrap();
    stage.pass(5_400).await;
    assert_eq!(stage.statuses(), [1, 2]);
    assert_eq!(stage.server().clock().now_s() % 60, 54);

    stage.pass(15_000).await;
    let early = stage.opens_with(&stage.config("u2")).await.unwrap();
    assert_eq!(early.opened().await, Opening::Refresh);
    stage.pass(1_001).await;
    let late = stage.opens_with(&stage.config("u3")).await.unwrap();
    stage.pass(1_000).await;

    assert_eq!(late.opened().await, Opening::Ready, "16 seconds after it was spent");
}

#[tokio::test]
async fn a_refused_source_and_a_late_acknowledgement_end_clean() {
    let stage = set().await;
    stage.answers(2, [Reply::Held]);
    let id = stage.edits_and_closes("u1").await;
    stage.pass(8_000).await;
    stage.host.serves(Source::Status(409));
    let u2 = stage.opens("u2").await;
    assert_eq!(u2.opened().await, Opening::Failed(-81));
    stage.host.release(Reply::Ok);
    stage.pass(1_000).await;
    assert_eq!(stage.changes_left().await, 0);
    assert!(!stage.server().journal().change(&id).unwrap().is_lost());
    u2.hang_up().await.unwrap();
    stage.pass_long().await;

    assert_eq!(stage.statuses(), [1, 2, 1, 4]);
}

#[tokio::test]
async fn a_refused_source_and_a_late_failure_leave_the_changes_stuck() {
    for late in [Reply::Http(503), Reply::Close] {
        let stage = set().await;
        stage.answers(2, [Reply::Held]);
        let id = stage.edits_and_closes("u1").await;
        stage.pass(8_000).await;
        stage.host.serves(Source::Status(409));
        let u2 = stage.opens("u2").await;
        u2.hang_up().await.unwrap();
        stage.pass(1_000).await;
        stage.host.release(late);
        stage.pass_long().await;
        assert_eq!(saves(&stage).len(), 1, "no redelivery");
        assert!(!stage.has_forgotten().await);
        assert_eq!(stage.changes_left().await, 1);
        assert_eq!(stage.ask("info").await["users"], serde_json::json!([]));
        assert_eq!(stage.last().status(), 1);

        stage.host.serves(Source::Bytes(office::sample_docx("Title", &["First paragraph."])));
        let rescuer = stage.opens("u3").await;
        rescuer.hang_up().await.unwrap();
        stage.pass_long().await;

        assert!(held_by(&stage, &stage.last()).await.contains(&id));
        assert!(!stage.server().journal().change(&id).unwrap().is_lost());
    }
}

#[tokio::test]
async fn a_refused_source_and_a_late_refusal_leave_both_and_double_the_edits() {
    let stage = set().await;
    stage.answers(2, [Reply::Held]);
    let id = stage.edits_and_closes("u1").await;
    stage.pass(8_000).await;
    stage.host.serves(Source::Status(409));
    let u2 = stage.opens("u2").await;
    u2.hang_up().await.unwrap();
    stage.pass(1_000).await;
    stage.host.release(Reply::Error1);
    stage.pass_long().await;
    assert!(stage.has_forgotten().await);
    assert_eq!(stage.changes_left().await, 1);

    let u3 = stage.opens("u3").await;
    u3.hang_up().await.unwrap();
    stage.pass_long().await;

    let text = office::text_of(&stage.file_of(&stage.last()).await);
    assert_eq!(text.matches(&office::marker(&id)).count(), 2);
}
