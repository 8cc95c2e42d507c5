//! Saves against memory ports: what each status leads to, and every port call failed and "crashed" in turn.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use ledger::documents::{KeptPage, Whose};
use ledger::{Documents as _, Keys as _, Publications as _, Trail as _};
use model::callbacks::{Answer, Callback};
use model::opening::ServerKnowledge;
use model::operations::Rights;
use model::saves::KeyStanding;
use model::{Digest, EditorKey, InboxNumber};
use steps::{Aftermath, Faults, Moment};
use tokio_util::sync::CancellationToken;
use vault::Tree as _;

use super::letting_go::{Leaving, LettingGo, may_let_go};
use crate::app::App;
use crate::opening::configure;
use crate::recovering;
use crate::testing::{SHARED, Workbench, author, deliver, docx, docx_of, idle, place};

async fn kept_reasons(bench: &Workbench) -> Vec<&'static str> {
    let page = KeptPage { of: Whose::All, before: None, limit: 100 };
    bench.ledger.kept_copies(&page).await.unwrap().iter().map(|copy| copy.keeping.reason()).collect()
}

#[tokio::test]
async fn a_final_save_becomes_a_version_and_retires_its_key() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;

    let answer = deliver(&app, &bench.callback(&key, 2, &docx("edited"))).await;

    assert_eq!(answer, Some(Answer::Saved));
    assert_eq!(bench.labels().await, ["2", "1"]);
    assert_eq!(bench.document().await.head_digest, Digest::of(&docx("edited")));
    assert!(bench.ledger.key(&key).await.unwrap().unwrap().is_spent);
    assert_ne!(bench.open(&app).await, key);
}

#[tokio::test]
async fn ten_repeats_of_one_save_make_one_version_and_get_one_answer() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    let callback = bench.callback(&key, 2, &docx("edited"));

    let answers = futures_util::future::join_all((0..10).map(|_| deliver(&app, &callback))).await;

    assert_eq!(answers, [Some(Answer::Saved); 10]);
    assert_eq!(bench.labels().await, ["2", "1"]);
}

#[tokio::test]
async fn saves_of_one_document_commit_in_the_order_they_arrived() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    let contents: Vec<Bytes> = (0..10).map(|number| docx(&format!("save {number}"))).collect();
    let callbacks: Vec<Callback> = contents.iter().map(|bytes| bench.callback(&key, 6, bytes)).collect();

    futures_util::future::join_all(callbacks.iter().map(|callback| deliver(&app, callback))).await;

    let stored = bench.ledger.contents(&bench.document().await.id).await.unwrap();
    let digests: Vec<Digest> = stored.iter().rev().skip(1).map(|content| content.blob.digest).collect();
    assert_eq!(digests, contents.iter().map(|bytes| Digest::of(bytes)).collect::<Vec<_>>());
    assert_eq!(bench.document().await.head.to_string(), "1.10");
}

#[tokio::test]
async fn saves_of_one_document_are_fetched_at_the_same_time() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    let callbacks: Vec<Callback> =
        (0..10).map(|number| bench.callback(&key, 6, &docx(&format!("save {number}")))).collect();
    bench.editor.transfers_meet(10);

    let answers =
        futures_util::future::join_all(callbacks.iter().map(|callback| deliver(&app, callback))).await;

    assert_eq!(answers, [Some(Answer::Saved); 10]);
}

#[tokio::test]
async fn saves_of_three_documents_run_at_the_same_time_and_each_document_is_updated() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let mut callbacks = Vec::new();
    for id in ["doc1", "doc2", "doc3"] {
        let document = bench.bring(&app, id, docx("base")).await;
        let key = configure(&app, &document, &author("u1"), Rights::EDIT).await.unwrap().key;
        callbacks.push((document.id, bench.callback(&key, 2, &docx(id))));
    }
    bench.editor.transfers_meet(3);

    let answers =
        futures_util::future::join_all(callbacks.iter().map(|(_, callback)| deliver(&app, callback))).await;

    assert_eq!(answers, [Some(Answer::Saved); 3]);
    for (id, _) in callbacks {
        let document = bench.ledger.document(&id).await.unwrap().unwrap();
        assert_eq!(
            (document.head.to_string().as_str(), document.head_digest),
            ("2", Digest::of(&docx(id.as_str())))
        );
    }
}

#[tokio::test]
async fn three_final_saves_at_once_become_three_versions_in_the_order_they_arrived() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    let contents = ["one", "one two", "one two three"].map(docx);
    let callbacks: Vec<Callback> = contents.iter().map(|bytes| bench.callback(&key, 2, bytes)).collect();

    let answers =
        futures_util::future::join_all(callbacks.iter().map(|callback| deliver(&app, callback))).await;

    assert_eq!(answers, [Some(Answer::Saved); 3]);
    assert_eq!(bench.labels().await, ["4", "3", "2", "1"]);
    let stored = bench.ledger.contents(&bench.document().await.id).await.unwrap();
    let digests: Vec<Digest> = stored.iter().rev().skip(1).map(|content| content.blob.digest).collect();
    assert_eq!(digests, contents.map(|bytes| Digest::of(&bytes)));
    assert!(kept_reasons(&bench).await.is_empty());
}

#[tokio::test]
async fn damaged_content_is_quarantined_and_answered_with_an_error() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    let whole = docx("edited");

    for (status, bytes) in
        [(2, whole.slice(..whole.len() / 2)), (6, Bytes::new()), (6, Bytes::from_static(b"<html>502</html>"))]
    {
        let answer = deliver(&app, &bench.callback(&key, status, &bytes)).await;
        assert_eq!(answer, Some(Answer::NotSaved));
    }

    assert_eq!(bench.labels().await, ["1"]);
    assert_eq!(kept_reasons(&bench).await, ["damaged"; 3]);
    assert!(!bench.ledger.key(&key).await.unwrap().unwrap().is_spent, "the key is kept");
}

#[tokio::test]
async fn a_file_that_was_damaged_on_its_way_is_fetched_again() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    bench.editor.damage_transfers(1);

    let answer = deliver(&app, &bench.callback(&key, 2, &docx("edited"))).await;

    assert_eq!(answer, Some(Answer::Saved));
    assert_eq!(bench.document().await.head_digest, Digest::of(&docx("edited")));
    assert!(kept_reasons(&bench).await.is_empty());
}

#[tokio::test]
async fn a_failed_save_of_the_server_is_never_acknowledged() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    let without_file = |status| Callback { url: None, ..bench.callback(&key, status, &docx("x")) };

    for callback in [
        without_file(3),
        without_file(7),
        bench.callback(&key, 3, &docx("half")),
        bench.callback(&key, 7, &docx("part")),
    ] {
        assert_eq!(deliver(&app, &callback).await, Some(Answer::NotSaved));
    }

    assert_eq!(bench.labels().await, ["1"]);
    assert_eq!(kept_reasons(&bench).await, ["force-save-failed", "final-save-failed"]);
    bench.editor.says(&key, ServerKnowledge::ChangesHeld);
    bench.clock.pass(11);
    assert_eq!(bench.open(&app).await, key, "only the same key brings the changes back");
}

#[tokio::test]
async fn one_four_one_two_keeps_the_key_and_the_work() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    let joined = Callback { users: vec!["u1".to_owned()], ..Callback::bare(key.clone(), 1) };

    for callback in [joined.clone(), Callback::bare(key.clone(), 4)] {
        assert_eq!(deliver(&app, &callback).await, Some(Answer::Saved));
    }
    let colleague = bench.open(&app).await;
    deliver(&app, &joined).await;
    let answer = deliver(&app, &bench.callback(&key, 2, &docx("edited"))).await;

    assert_eq!(colleague, key);
    assert_eq!(answer, Some(Answer::Saved));
    assert_eq!(bench.labels().await, ["2", "1"]);
}

#[tokio::test]
async fn users_of_a_retired_key_are_dropped_and_their_save_is_kept() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    deliver(&app, &bench.callback(&key, 2, &docx("first"))).await;
    let next = bench.open(&app).await;
    deliver(&app, &bench.callback(&next, 2, &docx("second"))).await;

    deliver(&app, &Callback { users: vec!["u9".to_owned()], ..Callback::bare(key.clone(), 1) }).await;
    let answer = deliver(&app, &bench.callback(&key, 2, &docx("late"))).await;
    while bench.editor.state.lock().unwrap().dropped.is_empty() {
        tokio::task::yield_now().await;
    }

    assert_eq!(answer, Some(Answer::Saved));
    assert_eq!(bench.document().await.head_digest, Digest::of(&docx("second")));
    assert_eq!(kept_reasons(&bench).await, ["key-retired"]);
    assert_eq!(*bench.editor.state.lock().unwrap().dropped, [key.to_string()]);
}

#[tokio::test]
async fn an_unreadable_key_is_kept_as_an_orphan_and_the_server_keeps_its_copy_too() {
    let bench = Workbench::new().await;
    let app = bench.process();
    for key in ["somebody-elses-key", "other_12345_edit_1.k", "test_unheard-of_edit_1.k"] {
        let key = EditorKey::parse(key).unwrap();

        let answer = deliver(&app, &bench.callback(&key, 2, &docx(key.as_str()))).await;

        assert_eq!(answer, Some(Answer::TryAgain), "{key}");
    }
    assert_eq!(bench.ledger.totals().await.unwrap().orphans, 3);
    assert_eq!(bench.labels().await, ["1"]);
}

#[tokio::test]
async fn an_answer_that_would_come_too_late_closes_the_connection() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    let long_ago = std::time::Instant::now().checked_sub(std::time::Duration::from_secs(181)).unwrap();

    let reply = crate::saving::accept(&app, bench.callback(&key, 2, &docx("edited")), long_ago).await;

    // Nobody could be told, so the work went on and the key is still findable.
    assert!(matches!(reply, crate::saving::Reply::Answer(Answer::TryAgain) | crate::saving::Reply::Close));
    idle(&app).await;
    assert_eq!(bench.labels().await, ["2", "1"]);
    assert!(!bench.ledger.key(&key).await.unwrap().unwrap().is_spent);
}

#[tokio::test]
async fn a_final_save_the_server_repeats_after_a_newer_one_does_not_replace_it() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    let run = r#"{"created":"2026-11-15 19:20:01","user":{"id":"u1"}}"#;
    // Its first delivery was lost. Somebody came back, changed more and left; the newer save was stored and answered.
    let overtaken = Callback { history: Some(format!("[{run}]")), ..bench.callback(&key, 2, &docx("first")) };
    let newer =
        Callback { history: Some(format!("[{run},{run}]")), ..bench.callback(&key, 2, &docx("both")) };
    assert_eq!(deliver(&app, &newer).await, Some(Answer::Saved));

    let answer = deliver(&app, &Callback { last_save: newer.last_save, ..overtaken }).await;

    assert_eq!(answer, Some(Answer::Saved));
    assert_eq!(bench.document().await.head_digest, Digest::of(&docx("both")));
    let stored = bench.ledger.contents(&bench.document().await.id).await.unwrap();
    assert!(stored.iter().any(|content| content.blob.digest == Digest::of(&docx("first"))), "and it is kept");
    assert_eq!(bench.ledger.inconsistencies().await.unwrap(), []);
}

#[tokio::test]
async fn a_final_save_that_may_have_lain_unread_is_not_answered_when_somebody_came_in() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    let callback = bench.callback(&key, 2, &docx("edited"));
    // It was sent when this process had just been stopped. Somebody came in meanwhile, and was read of first.
    let came_in = Callback { url: None, ..bench.callback(&key, 1, &docx("nothing")) };
    deliver(&app, &came_in).await;
    app.awake.stopped_for(std::time::Duration::from_secs(30));

    let reply = crate::saving::accept(&app, callback.clone(), app.awake.came()).await;

    assert_eq!(reply, crate::saving::Reply::Close);
    assert_eq!(bench.document().await.head_digest, Digest::of(&docx("edited")), "it is kept all the same");
    assert_eq!(
        deliver(&app, &callback).await,
        Some(Answer::Saved),
        "if it comes again, nobody came in since"
    );
}

#[tokio::test]
async fn a_machine_that_was_paused_and_did_not_count_it_does_not_answer_a_final_save_that_lay_there() {
    let mut bench = Workbench::new().await;
    bench.engines = SHARED;
    let (paused, other) = (bench.process(), bench.process());
    let key = bench.open(&paused).await;
    let callback = bench.callback(&key, 2, &docx("edited"));
    // Somebody comes in at another instance while this one stands still; then it goes on by a clock that stood still, too.
    bench.clock.pass(30);
    deliver(&other, &Callback { url: None, ..bench.callback(&key, 1, &docx("nothing")) }).await;
    bench.clock.pass(-31);

    assert_eq!(deliver(&paused, &callback).await, None);

    assert_eq!(bench.document().await.head_digest, Digest::of(&docx("edited")), "it is kept all the same");
}

#[tokio::test]
async fn somebody_who_came_in_elsewhere_before_the_save_was_written_down_is_not_overlooked() {
    let mut bench = Workbench::new().await;
    bench.engines = SHARED;
    let faults = Arc::new(Faults::none());
    let (slow, other) = (bench.process_with(&faults), bench.process());
    let key = bench.open(&slow).await;
    let callback = bench.callback(&key, 2, &docx("edited"));
    // It is held up between its look at who is inside and writing the save down, which empties the session.
    let gate = Arc::new(tokio::sync::Notify::new());
    let held_up = Arc::clone(&gate);
    drop(slow.arrivals.submit(key.parts().unwrap().document, async move { held_up.notified().await }));
    let answering = tokio::spawn({
        let (slow, callback) = (Arc::clone(&slow), callback.clone());
        async move { deliver(&slow, &callback).await }
    });
    while !faults.calls().contains(&"ledger.named_under") {
        tokio::task::yield_now().await;
    }

    deliver(&other, &Callback { url: None, ..bench.callback(&key, 1, &docx("nothing")) }).await;
    gate.notify_one();

    assert_eq!(answering.await.unwrap(), None, "a 0 would take away what they typed");
    assert_eq!(bench.document().await.head_digest, Digest::of(&docx("edited")), "it is kept all the same");
}

#[tokio::test]
async fn after_a_stop_of_this_process_a_key_is_not_handed_out_before_what_came_meanwhile_was_read() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let before = app.listening_since();
    assert_eq!(before, app.started_at);
    bench.clock.pass(60);

    app.awake.stopped_for(std::time::Duration::from_secs(30));

    assert!(app.listening_since() > before);
}

#[tokio::test]
async fn no_final_answer_is_given_once_the_server_may_have_revived_the_key() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    let (whole, torn) = (docx("edited"), docx("torn").slice(..100));

    for (bytes, answer) in [(torn, Answer::NotSaved), (whole, Answer::Saved)] {
        let callback = bench.callback(&key, 2, &bytes);
        assert_eq!(deliver(&app, &callback).await, Some(answer));
        let long_ago = std::time::Instant::now().checked_sub(std::time::Duration::from_secs(181)).unwrap();

        let reply = crate::saving::accept(&app, callback, long_ago).await;

        assert_eq!(reply, crate::saving::Reply::Close, "a late {answer:?}");
    }
}

#[tokio::test]
async fn a_final_save_is_not_acknowledged_while_somebody_came_back_in() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    let save = bench.callback(&key, 2, &docx("edited"));
    let came_in = Callback { url: None, ..bench.callback(&key, 1, &docx("nothing")) };
    bench.editor.transfers_meet(2);

    let (answer, ()) = tokio::join!(deliver(&app, &save), async {
        assert_eq!(deliver(&app, &came_in).await, Some(Answer::Saved));
        bench.editor.meet().await;
    });

    assert_eq!(answer, None, "a 0 would delete what they type");
    assert_eq!(bench.document().await.head_digest, Digest::of(&docx("edited")), "it is stored all the same");
    assert!(!bench.ledger.key(&key).await.unwrap().unwrap().is_spent, "and their session goes on");
    assert_eq!(
        deliver(&app, &save).await,
        Some(Answer::Saved),
        "a repeat may be answered: nobody came in since"
    );
}

#[tokio::test]
async fn a_save_that_another_process_committed_for_nobody_retires_its_key_before_it_is_answered() {
    let bench = Workbench::new().await;
    let (here, there) = (bench.process(), bench.process());
    let key = bench.open(&here).await;
    let save = bench.callback(&key, 2, &docx("edited"));
    bench.editor.transfers_meet(2);

    let (answer, ()) = tokio::join!(deliver(&here, &save), async {
        let transfer = bench.editor.held_transfer().await;
        recovering::round(&there).await;
        idle(&there).await;
        assert_eq!(bench.labels().await, ["2", "1"], "it is committed, and nobody waited there");
        bench.editor.forget_links();
        transfer.wait().await;
    });

    assert_eq!(answer, Some(Answer::Saved));
    assert!(bench.ledger.key(&key).await.unwrap().unwrap().is_spent, "the server has let go of the session");
}

/// The Document Server's side of a session, by its rules: a final save is repeated three times after trouble and then
/// forgotten; a force save is sent once.
async fn play(
    bench: &Workbench,
    app: &Arc<App>,
    saves: &[(u8, Bytes)],
) -> (Option<EditorKey>, BTreeSet<Digest>) {
    let mut answered_zero = BTreeSet::new();
    let (document, user) = (bench.document().await, author("u1"));
    let Ok(opened) = configure(app, &document, &user, Rights::EDIT).await else {
        return (None, answered_zero);
    };
    let key = opened.key;
    bench.editor.says(&key, ServerKnowledge::ChangesHeld);
    for (status, bytes) in saves {
        let callback = bench.callback(&key, *status, bytes);
        let attempts = if *status == 2 { 4 } else { 1 };
        let mut last = None;
        for _ in 0..attempts {
            last = deliver(app, &callback).await;
            if matches!(last, Some(Answer::Saved | Answer::NotSaved)) {
                break;
            }
        }
        match (status, last) {
            (_, Some(Answer::Saved)) => {
                answered_zero.insert(Digest::of(bytes));
                bench.editor.says(
                    &key,
                    if *status == 2 { ServerKnowledge::NothingHeld } else { ServerKnowledge::ChangesHeld },
                );
            }
            (2, _) => {
                bench.editor.put_forgotten(&key, bytes.clone());
                bench.editor.says(&key, ServerKnowledge::Unknown);
            }
            _ => {}
        }
    }
    idle(app).await;
    (Some(key), answered_zero)
}

/// Ends what an ended process left, and proves that everything is as it must be and stays so.
async fn recover_and_check(
    bench: &Workbench,
    saves: &[(u8, Bytes)],
    (key, answered_zero): (Option<EditorKey>, BTreeSet<Digest>),
) {
    let app = bench.process();
    for _ in 0..3 {
        bench.clock.pass(60);
        recovering::round(&app).await;
        idle(&app).await;
    }
    let before = bench.everything().await;
    recovering::round(&app).await;
    idle(&app).await;
    assert_eq!(bench.everything().await, before, "running recovery again changes nothing");

    let document = bench.document().await;
    assert_eq!(bench.ledger.inconsistencies().await.unwrap(), []);
    let totals = bench.ledger.totals().await.unwrap();
    assert_eq!(
        (totals.open_saves, totals.owed_publications, totals.conflicts),
        (0, 0, 0),
        "{:?}",
        bench.labels().await
    );
    assert_eq!(
        bench.tree.shown(&place(&document)).await.unwrap().map(|(digest, _)| digest),
        Some(document.head_digest)
    );
    assert!(bench.editor.state.lock().unwrap().forgotten.is_empty());
    let stored: BTreeSet<Digest> = bench
        .ledger
        .contents(&document.id)
        .await
        .unwrap()
        .iter()
        .map(|content| content.blob.digest)
        .collect();
    assert!(answered_zero.is_subset(&stored), "what was answered 0 is stored");
    if key.is_some() {
        let (_, last) = saves.last().unwrap();
        assert_eq!((document.head.to_string().as_str(), document.head_digest), ("2", Digest::of(last)));
        let next = bench.open(&app).await;
        assert_ne!(Some(next), key, "the session is over and the next one gets a new key");
    }
}

/// The n-th port call of a session fails, for every n, before or after its effect, and the process lives or dies.
async fn fail_every_call(saves: &[(u8, Bytes)], moment: Moment, aftermath: Aftermath) {
    for number in 1.. {
        let bench = Workbench::new().await;
        let faults = Arc::new(Faults::at_call(number, moment, aftermath));
        let app = bench.process_with(&faults);

        let played = play(&bench, &app, saves).await;
        if aftermath == Aftermath::GoesOn {
            // The process lives on; its own rounds must do.
            recovering::round(&app).await;
            idle(&app).await;
        }
        drop(app);
        recover_and_check(&bench, saves, played).await;

        if !faults.has_struck() {
            assert!(number > 4, "the session makes port calls");
            return;
        }
    }
}

#[tokio::test]
async fn a_final_save_is_not_answered_when_it_cannot_be_told_whether_somebody_came_in_elsewhere() {
    let look = "ledger.named_under";
    let play_with = async |faults: Faults| {
        let mut bench = Workbench::new().await;
        bench.engines = SHARED;
        let faults = Arc::new(faults);
        let app = bench.process_with(&faults);
        let key = bench.open(&app).await;
        let answer = deliver(&app, &bench.callback(&key, 2, &docx("edited"))).await;
        (answer, faults.calls(), bench.document().await.head.to_string())
    };
    let (answer, calls, head) = play_with(Faults::none()).await;
    assert_eq!((answer, head.as_str()), (Some(Answer::Saved), "2"));
    let looks: Vec<usize> = (1..).zip(&calls).filter(|(_, call)| **call == look).map(|(at, _)| at).collect();
    assert_eq!(looks.len(), 2, "before and after: {calls:?}");

    for at in looks {
        let (answer, _, head) = play_with(Faults::at_call(at, Moment::Before, Aftermath::GoesOn)).await;

        assert_eq!((answer, head.as_str()), (None, "2"), "the connection is closed, and the save is kept");
    }
}

fn six_six_two() -> Vec<(u8, Bytes)> {
    vec![(6, docx("first")), (6, docx("second")), (2, docx("third"))]
}

#[tokio::test]
async fn every_port_call_of_a_final_save_may_fail_before_it_did_anything() {
    fail_every_call(&[(2, docx("edited"))], Moment::Before, Aftermath::GoesOn).await;
}

#[tokio::test]
async fn every_port_call_of_a_final_save_may_fail_after_it_did_everything() {
    fail_every_call(&[(2, docx("edited"))], Moment::After, Aftermath::GoesOn).await;
}

#[tokio::test]
async fn the_process_may_end_before_every_port_call_of_a_session() {
    fail_every_call(&six_six_two(), Moment::Before, Aftermath::Crashed).await;
}

#[tokio::test]
async fn the_process_may_end_after_every_port_call_of_a_session() {
    fail_every_call(&six_six_two(), Moment::After, Aftermath::Crashed).await;
}

#[tokio::test]
async fn every_port_call_of_six_six_two_may_fail_either_way() {
    fail_every_call(&six_six_two(), Moment::Before, Aftermath::GoesOn).await;
    fail_every_call(&six_six_two(), Moment::After, Aftermath::GoesOn).await;
}

#[tokio::test]
async fn a_zero_waits_until_what_was_refused_before_it_is_collected() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    let older = bench.callback(&key, 2, &docx("older"));
    // It is damaged on its way, again and again.
    let newer = bench.callback(&key, 2, &docx("older and newer").slice(..100));
    assert_eq!(deliver(&app, &newer).await, Some(Answer::NotSaved));
    bench.editor.put_forgotten(&key, docx("older and newer"));
    bench.editor.says(&key, ServerKnowledge::Unknown);

    // The repeat of a save from before: the server deletes the forgotten file when it hears 0.
    let stop = CancellationToken::new();
    let recovery = tokio::spawn(crate::recovering::run(Arc::clone(&app), stop.clone()));
    let answer = deliver(&app, &older).await;
    let left = bench.editor.state.lock().unwrap().forgotten.len();

    assert_eq!((answer, left), (Some(Answer::Saved), 0));
    let (document, newer) = (bench.document().await.id, Digest::of(&docx("older and newer")));
    assert!(bench.ledger.knows_content(&document, &newer).await.unwrap(), "{:?}", kept_reasons(&bench).await);
    stop.cancel();
    recovery.await.unwrap();
}

#[tokio::test]
async fn a_zero_is_not_given_while_what_was_refused_cannot_be_collected() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    let may_let_go = async |number| {
        let leaving = Leaving { key: &key, number: InboxNumber(number), has_history: true };
        may_let_go(&app, &leaving, (Answer::Saved, Instant::now())).await
    };
    bench.receive_only(&app, &bench.callback(&key, 6, &docx("half way"))).await;
    bench.editor.put_forgotten(&key, docx("of another save"));
    assert_eq!(may_let_go(1).await, LettingGo::AtOnce, "nothing was refused");

    let torn = docx("torn").slice(..100);
    assert_eq!(deliver(&app, &bench.callback(&key, 2, &torn)).await, Some(Answer::NotSaved));
    tokio::time::pause();
    assert_eq!(may_let_go(1).await, LettingGo::NotNow, "nobody collects in this test");
    bench.editor.state.lock().unwrap().forgotten.clear();
    assert_eq!(may_let_go(1).await, LettingGo::AfterWaiting);
}

#[tokio::test]
async fn a_repeat_of_an_older_save_is_not_answered_zero_while_a_newer_one_is_on_its_way() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    let older = bench.callback(&key, 2, &docx("older"));
    bench.receive_only(&app, &older).await;
    let newer = bench.callback(&key, 2, &docx("older and newer"));
    bench.receive_only(&app, &newer).await;

    let repeat = tokio::spawn({
        let (app, older) = (Arc::clone(&app), older.clone());
        async move { deliver(&app, &older).await }
    });
    let is_live = async || bench.ledger.key(&key).await.unwrap().unwrap().standing == KeyStanding::Live;
    while bench.labels().await.len() < 2 {
        tokio::task::yield_now().await;
    }
    assert!(is_live().await, "the older one is stored; the server keeps what the newer one is made from");
    recovering::round(&app).await;

    assert_eq!(repeat.await.unwrap(), Some(Answer::Saved));
    assert_eq!(bench.document().await.head_digest, Digest::of(&docx("older and newer")));
    assert!(!is_live().await, "the server was told 0");
}

#[tokio::test]
async fn a_refusal_waits_for_a_newer_save_that_is_on_its_way() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    bench.receive_only(&app, &bench.callback(&key, 2, &docx("newer"))).await;
    let failed = bench.callback(&key, 3, &docx("as far as it could be built"));

    let refused = tokio::spawn({
        let app = Arc::clone(&app);
        async move { deliver(&app, &failed).await }
    });
    while kept_reasons(&bench).await.is_empty() {
        tokio::task::yield_now().await;
    }
    assert!(!refused.is_finished(), "it would delete what the newer one is made from");
    recovering::round(&app).await;

    assert_eq!(refused.await.unwrap(), Some(Answer::NotSaved));
    assert_eq!(bench.document().await.head_digest, Digest::of(&docx("newer")));
}

#[tokio::test]
async fn a_session_opened_on_an_older_forgotten_file_does_not_take_the_head_back() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    // Built with errors, repeated, refused in the end, and forgotten: while the newer one was stored.
    let failed = bench.callback(&key, 3, &docx("older"));
    let newer = bench.callback(&key, 2, &docx("older and newer"));
    assert_eq!(deliver(&app, &failed).await, Some(Answer::NotSaved));
    bench.receive_only(&app, &newer).await;
    recovering::round(&app).await;
    idle(&app).await;
    bench.editor.put_forgotten(&key, docx("older"));

    let other = Callback { session_start: None, ..bench.callback(&key, 2, &docx("older and other")) };
    bench.receive_only(&app, &other).await;
    recovering::round(&app).await;
    idle(&app).await;

    assert_eq!(bench.document().await.head_digest, Digest::of(&docx("older and newer")));
    assert_eq!(kept_reasons(&bench).await, ["session-began-again", "final-save-failed"]);
}

#[tokio::test]
async fn a_save_in_which_much_vanished_is_taken_and_marked() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    deliver(&app, &bench.callback(&key, 6, &docx(&"many words ".repeat(1_000)))).await;

    let answer = deliver(&app, &bench.callback(&key, 2, &docx("few"))).await;

    let document = bench.document().await;
    assert_eq!((answer, document.head_digest), (Some(Answer::Saved), Digest::of(&docx("few"))));
    let contents = bench.ledger.contents(&document.id).await.unwrap();
    let flags: Vec<_> = contents.iter().map(|content| content.blob.flags.as_str()).collect();
    assert_eq!(flags, ["text-vanished", "", ""]);
}

#[tokio::test]
async fn what_the_document_server_sends_is_not_refused_for_being_more_than_usual() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    let deep = docx_of(&format!(
        r#"<w:document xmlns:w="x">{}{}</w:document>"#,
        "<w:p>".repeat(11_000),
        "</w:p>".repeat(11_000)
    ));

    let answer = deliver(&app, &bench.callback(&key, 2, &deep)).await;

    let document = bench.document().await;
    assert_eq!((answer, document.head_digest), (Some(Answer::Saved), Digest::of(&deep)));
    let newest = &bench.ledger.contents(&document.id).await.unwrap()[0];
    assert_eq!(newest.blob.flags, "hostile-markup");
}

#[tokio::test]
async fn a_session_opened_on_a_file_that_was_refused_before_is_answered_once_that_file_is_kept() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    // Damaged on its way, again and again; whole where it lies, and somebody opens it there.
    let torn = bench.callback(&key, 2, &docx("edited").slice(..100));
    assert_eq!(deliver(&app, &torn).await, Some(Answer::NotSaved));
    bench.editor.put_forgotten(&key, docx("edited"));
    bench.editor.says(&key, ServerKnowledge::ChangesHeld);
    let last = Callback { session_start: None, ..bench.callback(&key, 2, &docx("edited and more")) };

    let began = Instant::now();
    assert_eq!(deliver(&app, &last).await, Some(Answer::Saved));

    assert!(began.elapsed().as_secs() < 3, "nobody collects a file that is worked on");
    assert_eq!(bench.document().await.head_digest, Digest::of(&docx("edited and more")));
    assert_eq!(kept_reasons(&bench).await, ["older-session", "damaged"], "a 0 deletes the forgotten file");
}

/// A final save with a record of its changes.
fn with_record(bench: &Workbench, key: &EditorKey, record: Option<Bytes>) -> Callback {
    if let Some(record) = record {
        bench.editor.offer("/cache/files/data/changes.zip", record);
    }
    let changes_url = Some("http://ds/cache/files/data/changes.zip?md5=1".to_owned());
    Callback { changes_url, ..bench.callback(key, 2, &docx("edited")) }
}

#[tokio::test]
async fn the_record_of_changes_is_kept_with_its_version() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    let record = Bytes::from_static(b"PK a record of changes");

    assert_eq!(deliver(&app, &with_record(&bench, &key, Some(record.clone()))).await, Some(Answer::Saved));

    let content = bench.ledger.contents(&bench.document().await.id).await.unwrap().remove(0);
    assert_eq!(content.changes, Some((Digest::of(&record), record.len() as u64)));
    assert_eq!(
        vault::Vault::size_of(&bench.vault, &Digest::of(&record)).await.unwrap(),
        Some(record.len() as u64)
    );
}

#[tokio::test]
async fn no_trouble_with_the_record_of_changes_fails_a_save() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;

    assert_eq!(
        deliver(&app, &with_record(&bench, &key, None)).await,
        Some(Answer::Saved),
        "its link is dead"
    );

    let content = bench.ledger.contents(&bench.document().await.id).await.unwrap().remove(0);
    assert_eq!((content.label.to_string().as_str(), content.changes), ("2", None));
}

#[tokio::test]
async fn a_save_with_a_record_survives_every_failing_call() {
    for moment in [Moment::Before, Moment::After] {
        for number in 1..=14 {
            let bench = Workbench::new().await;
            let key = bench.open(&bench.process()).await;
            let save = with_record(&bench, &key, Some(Bytes::from_static(b"PK a record of changes")));
            let app = bench.process_with(&Arc::new(Faults::at_call(number, moment, Aftermath::Crashed)));
            deliver(&app, &save).await;
            idle(&app).await;

            let next = bench.process();
            assert_eq!(deliver(&next, &save).await, Some(Answer::Saved), "call {number}, {moment:?}");

            assert_eq!(
                bench.document().await.head_digest,
                Digest::of(&docx("edited")),
                "call {number}, {moment:?}"
            );
            assert_eq!(bench.ledger.inconsistencies().await.unwrap(), []);
        }
    }
}
