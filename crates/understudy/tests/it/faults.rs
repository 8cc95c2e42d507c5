//! The faults a harness can arm.

use understudy::office;
use understudy::server::FaultKind;

use crate::host::{Callback, Reply};
use crate::stage::Stage;

async fn saved_with(fault: FaultKind) -> (Stage, String) {
    let stage = Stage::set("faults").await;
    stage.edits_and_closes("u1").await;
    stage.pass(6_000).await;
    let url = stage.last().body["url"].as_str().unwrap().to_owned();
    stage.server().faults().arm(fault.times(1));
    (stage, url)
}

/// How a download fares: status, length claimed, bytes got, and whether it ended well.
async fn download(url: &str) -> (u16, Option<u64>, usize, bool) {
    let response = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap()
        .get(url)
        .send()
        .await
        .unwrap();
    let (status, length) = (response.status().as_u16(), response.content_length());
    let mut response = response;
    let mut got = 0;
    loop {
        match response.chunk().await {
            Ok(Some(piece)) => got += piece.len(),
            Ok(None) => return (status, length, got, true),
            Err(_) => return (status, length, got, false),
        }
    }
}

#[tokio::test]
async fn bodies_can_be_wrong_in_many_ways_and_are_right_afterwards() {
    let size = {
        let (stage, url) = saved_with(FaultKind::BodyDamaged).await;
        let (_, damaged) = stage.get(&url).await;
        let (_, right) = stage.get(&url).await;
        assert_ne!(damaged, right);
        assert_eq!(damaged.len(), right.len());
        right.len()
    };
    let whole = size as u64;
    let cases = [
        (FaultKind::BodyEmpty, (200, Some(0), 0, true)),
        (FaultKind::BodyCut { percent: 50 }, (200, None, size / 2, true)),
        (FaultKind::LengthTooLong { by_bytes: 7 }, (200, Some(whole + 7), size, false)),
        (FaultKind::LengthTooShort, (200, Some(whole / 2), size / 2, true)),
        (FaultKind::BodyStatus { status: 503 }, (503, Some(0), 0, true)),
        (FaultKind::BodyElsewhere { to: "http://127.0.0.1:1/".into() }, (302, Some(0), 0, true)),
    ];
    for (fault, expected) in cases {
        let (_stage, url) = saved_with(fault.clone()).await;
        assert_eq!(download(&url).await, expected, "{fault:?}");
        assert_eq!(download(&url).await, (200, Some(whole), size, true), "{fault:?}");
    }
    let (stage, url) = saved_with(FaultKind::BodyHtml).await;
    assert!(stage.get(&url).await.1.starts_with(b"<!DOCTYPE html>"));
}

#[tokio::test]
async fn a_slow_body_takes_its_time_and_a_stuck_one_never_ends() {
    let (stage, url) = saved_with(FaultKind::BodySlow { over_ms: 10_000 }).await;
    let started_ms = stage.server().clock().now_ms();
    let download_it = tokio::spawn({
        let url = url.clone();
        async move { download(&url).await }
    });
    while !download_it.is_finished() {
        stage.server().clock().advance(std::time::Duration::from_millis(50));
        tokio::task::yield_now().await;
    }
    assert!(download_it.await.unwrap().3);
    assert!(stage.server().clock().now_ms() - started_ms >= 9_500);

    stage.server().faults().arm(FaultKind::BodyStuck.times(1));
    let stuck = tokio::time::timeout(std::time::Duration::from_millis(50), download(&url)).await;
    assert!(stuck.is_err());
}

#[tokio::test]
async fn a_callback_can_be_doubled_lost_late_or_overtaken() {
    let deliver = |faults: Vec<FaultKind>| async move {
        let stage = Stage::set("callbacks").await;
        for fault in faults {
            stage.server().faults().arm(fault.times(1).for_status(2));
        }
        stage.edits_and_closes("u1").await;
        stage.pass_long().await;
        assert!(!stage.has_forgotten().await);
        assert_eq!(stage.changes_left().await, 0);
        stage.statuses()
    };

    assert_eq!(deliver(vec![FaultKind::CallbackTwice]).await, [1, 2, 2]);
    assert_eq!(deliver(vec![FaultKind::AnswerLost]).await, [1, 2, 2]);
    assert_eq!(deliver(vec![FaultKind::CallbackLost]).await, [1, 2]);
    assert_eq!(deliver(vec![FaultKind::CallbackLate { by_ms: 30_000 }]).await, [1, 2]);
}

#[tokio::test]
async fn a_force_save_can_arrive_after_the_final_save() {
    let stage = Stage::set("overtaken").await;
    let fault = FaultKind::CallbackAfterNext { at_most_ms: 60_000 };
    stage.server().faults().arm(fault.times(1).for_status(6));
    let session = stage.opens("u1").await;
    session.write("one").await.unwrap();
    session.press_save().await.unwrap();
    stage.pass(1_000).await;
    session.hang_up().await.unwrap();
    stage.pass_long().await;

    assert_eq!(stage.statuses(), [1, 2, 6]);
}

#[tokio::test]
async fn a_result_can_be_of_another_type_or_damaged() {
    let save = |fault: FaultKind| async move {
        let stage = Stage::set("results").await;
        stage.server().faults().arm(fault.times(1));
        let id = stage.edits_and_closes("u1").await;
        stage.pass(7_000).await;
        let save = stage.last();
        let bytes = stage.file_of(&save).await;
        (save, bytes, id)
    };

    let (typed, bytes, id) = save(FaultKind::ResultType { ext: "xlsx".into() }).await;
    assert_eq!(typed.body["filetype"], "xlsx");
    assert!(typed.save_path().unwrap().ends_with("output.xlsx"));
    assert!(office::can_open(&bytes, "xlsx") && office::changes_in(&bytes).contains(&id));
    let (_, bytes, id) = save(FaultKind::ResultDamaged).await;
    assert!(
        !office::changes_in(&bytes).contains(&id) || !office::can_open(&bytes, "docx") || !bytes.is_empty()
    );
}

#[tokio::test]
async fn a_slow_conversion_lets_the_user_come_back_in_time() {
    let stage = Stage::set("slow").await;
    stage.server().faults().arm(FaultKind::ConversionSlow { by_ms: 20_000 }.times(1));
    stage.edits_and_closes("u1").await;
    stage.pass(10_000).await;
    let back = stage.opens("u1").await;
    stage.pass(60_000).await;

    assert_eq!(stage.statuses(), [1, 1], "the save was cancelled while it was built");
    back.hang_up().await.unwrap();
    stage.pass_long().await;
    assert_eq!(stage.statuses(), [1, 1, 2]);
}

#[tokio::test]
async fn a_harness_in_another_process_arms_faults_and_reads_the_journal_over_http() {
    let stage = Stage::set("remote").await;
    let base = stage.server().url();
    let client = reqwest::Client::new();
    let fault = r#"{"fault":"answer_lost","times":1,"status":2}"#;
    let armed = client.post(format!("{base}/understudy/faults"));
    armed
        .header("content-type", "application/json")
        .body(fault)
        .send()
        .await
        .unwrap()
        .error_for_status()
        .unwrap();

    let id = stage.edits_and_closes("u1").await;
    stage.pass_long().await;

    let (_, lines) = stage.get(&format!("{base}/understudy/journal?since=1")).await;
    let entries: Vec<understudy::journal::Entry> = String::from_utf8(lines.to_vec())
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(entries, stage.server().journal().entries());
    let (_, changes) = stage.get(&format!("{base}/understudy/changes")).await;
    let changes: serde_json::Value = serde_json::from_slice(&changes).unwrap();
    assert_eq!(changes[&id]["in_log"], false);
    let (status, key) = stage.get(&format!("{base}/understudy/keys/{}", stage.key)).await;
    assert_eq!(status, 200);
    assert!(serde_json::from_slice::<serde_json::Value>(&key).unwrap()["row"].is_object());
    assert_eq!(stage.get(&format!("{base}/understudy/quiet")).await.1, r#"{"quiet":true}"#);
}

#[tokio::test]
async fn the_journal_tells_every_delivery_and_what_became_of_it() {
    use understudy::journal::Note;
    let stage = Stage::set("told").await;
    stage.answers(2, [Reply::Http(503), Reply::Close, Reply::Error1]);
    stage.edits_and_closes("u1").await;
    stage.pass_long().await;

    let reactions: Vec<(u32, String)> = {
        let entries = stage.server().journal().entries();
        let attempt = |wanted: u64| {
            entries.iter().find_map(|entry| match &entry.note {
                Note::CallbackSent { delivery, attempt, .. } if *delivery == wanted => Some(*attempt),
                _ => None,
            })
        };
        let answered = entries.iter().filter_map(|entry| match &entry.note {
            Note::CallbackAnswered { delivery, reaction, .. } => {
                Some((attempt(*delivery).unwrap(), reaction.clone()))
            }
            _ => None,
        });
        answered.collect()
    };

    let expected = [(1, "done"), (1, "again in 1000 ms"), (2, "again in 2000 ms"), (3, "forgotten")];
    assert_eq!(reactions, expected.map(|(attempt, reaction)| (attempt, reaction.to_owned())));
    let produced = stage.server().journal().entries().into_iter().find_map(|entry| match entry.note {
        Note::ContentProduced { sha256, holds, .. } => Some((sha256.unwrap(), holds.len())),
        _ => None,
    });
    let saves: Vec<Callback> = stage.callbacks().split_off(1);
    let sent = stage.file_of(&saves[0]).await;
    assert_eq!(produced, Some((office::sha256_hex(&sent), 1)));
}
