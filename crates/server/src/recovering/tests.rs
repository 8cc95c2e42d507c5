//! Recovery against memory ports: what an ended process, a deaf server or another program left behind.

use std::sync::Arc;
use std::time::Duration;

use ledger::documents::{KeptPage, Whose};
use ledger::{Documents as _, Keys as _, Publications as _, Trail as _};
use model::callbacks::{Answer, Callback};
use model::opening::ServerKnowledge;
use model::sessions::{SessionState, Unsaved};
use model::versions::Origin;
use model::{Digest, EditorKey, Label};
use tokio_util::sync::CancellationToken;
use vault::{Sidecar, Spool, Tree as _, Vault as _};

use super::sessions::Which;
use super::{AgeMin, adopt, round, sessions};
use crate::app::App;
use crate::opening::{Readers, StreamTokens, Streamed, source};
use crate::testing::{SHARED, Workbench, deliver, docx, idle, place};

async fn recover(app: &Arc<App>) {
    round(app).await;
    idle(app).await;
}

async fn source_of(app: &App, key: &EditorKey) -> Digest {
    let document = key.parts().unwrap().document;
    let readers = Readers::Anybody;
    let streamed = Streamed { document: document.clone(), key: key.clone(), label: Label::FIRST, readers };
    let token = StreamTokens::new(&app.config).issue(&streamed, app.now(), Duration::from_secs(60));
    source(app, &document, &token, Readers::Anybody).await.unwrap().blob.digest
}

async fn kept_reasons(bench: &Workbench) -> Vec<&'static str> {
    let page = KeptPage { of: Whose::All, before: None, limit: 100 };
    bench.ledger.kept_copies(&page).await.unwrap().iter().map(|copy| copy.keeping.reason()).collect()
}

#[tokio::test]
async fn a_save_the_process_did_not_finish_is_finished_by_the_next_one() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    let callback = bench.callback(&key, 2, &docx("edited"));
    bench.receive_only(&app, &callback).await;

    recover(&bench.process()).await;

    assert_eq!(bench.labels().await, ["2", "1"]);
    assert!(!bench.ledger.key(&key).await.unwrap().unwrap().is_spent, "nobody heard our answer");
    let answer = deliver(&bench.process(), &callback).await;
    assert_eq!(answer, Some(Answer::Saved));
    assert!(bench.ledger.key(&key).await.unwrap().unwrap().is_spent, "now somebody did");
}

#[tokio::test]
async fn saves_an_ended_process_left_are_finished_in_the_order_they_arrived() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    let contents = ["one", "one two", "one two three"].map(docx);
    for (status, bytes) in [6, 6, 2].into_iter().zip(&contents) {
        bench.receive_only(&app, &bench.callback(&key, status, bytes)).await;
    }

    recover(&bench.process()).await;

    assert_eq!(bench.labels().await, ["2", "1.2", "1.1", "1"]);
    let stored = bench.ledger.contents(&bench.document().await.id).await.unwrap();
    let digests: Vec<Digest> = stored.iter().rev().skip(1).map(|content| content.blob.digest).collect();
    assert_eq!(digests, contents.map(|bytes| Digest::of(&bytes)));
}

#[tokio::test]
async fn a_save_that_ended_while_the_round_looked_is_not_begun_again() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    let callback = bench.callback(&key, 6, &docx("edited"));
    bench.receive_only(&app, &callback).await;
    let seen = app.ledger.open_saves().await.unwrap();
    assert_eq!(deliver(&app, &callback).await, Some(Answer::Saved));

    super::saves::take_up(&app, &seen).await.unwrap();

    assert_eq!(app.jobs.count(), 0, "nothing holds up the next save of the document");
    assert_eq!(seen.len(), 1);
}

#[tokio::test]
async fn a_save_that_another_instance_is_about_to_claim_is_left_to_it_and_taken_up_when_it_is_not() {
    let mut bench = Workbench::new().await;
    bench.engines = SHARED;
    let app = bench.process();
    let key = bench.open(&app).await;
    bench.receive_only(&app, &bench.callback(&key, 2, &docx("edited"))).await;

    super::saves::finish(&app).await.unwrap();
    assert_eq!(app.jobs.count(), 0, "its instance may be about to begin");
    bench.clock.pass(3);
    super::saves::finish(&app).await.unwrap();
    idle(&app).await;

    assert_eq!(bench.labels().await, ["2", "1"]);
}

#[tokio::test]
async fn what_another_instance_committed_is_published_when_that_one_does_not() {
    let mut bench = Workbench::new().await;
    bench.engines = SHARED;
    let app = bench.process();
    let shown = async || {
        super::publishing::publish_overdue(&app).await.unwrap();
        idle(&app).await;
        bench.tree.names(&place(&bench.document().await)).len()
    };

    assert_eq!(shown().await, 0, "whoever committed it is at it");
    bench.clock.pass(6);
    assert_eq!(shown().await, 1, "whoever committed it is gone");

    deliver(&app, &bench.callback(&bench.open(&app).await, 2, &docx("edited"))).await;
    bench.clock.pass(60);
    assert_eq!(shown().await, 1, "nobody could for a minute: the rounds try again");
    recover(&app).await;
    assert_eq!(shown().await, 2, "with what it replaced");
}

#[tokio::test]
async fn whatever_is_owed_is_published_however_much_it_is() {
    let bench = Workbench::new().await;
    let app = bench.process();
    for number in 0..520 {
        bench.bring(&app, &format!("doc-{number}"), docx("base")).await;
    }

    super::publishing::publish_all_owed(&app, &CancellationToken::new()).await.unwrap();
    idle(&app).await;

    assert_eq!(bench.ledger.totals().await.unwrap().owed_publications, 0);
}

#[tokio::test]
async fn a_dead_link_is_given_up_and_the_forgotten_file_takes_its_place() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    bench.receive_only(&app, &bench.callback(&key, 2, &docx("edited"))).await;
    bench.editor.forget_links();

    recover(&app).await;
    assert_eq!(bench.ledger.totals().await.unwrap().open_saves, 1, "the link may yet work");
    bench.clock.pass(16 * 60);
    bench.editor.put_forgotten(&key, docx("edited"));
    recover(&app).await;

    assert_eq!(bench.ledger.totals().await.unwrap().open_saves, 0);
    assert_eq!(bench.labels().await, ["2", "1"]);
    let head = bench.ledger.contents(&bench.document().await.id).await.unwrap().remove(0);
    assert_eq!(head.origin, Origin::Recovered);
}

#[tokio::test]
async fn a_forgotten_file_is_deleted_only_after_ours_was_read_back() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    let bytes = docx("forgotten");
    bench.editor.put_forgotten(&key, bytes.clone());
    let sidecar = Sidecar::Saved { key: key.clone(), status: 0 };
    bench.vault.put(&Spool::hold(bytes.clone()), &sidecar).await.unwrap();
    bench.vault.rot(&Digest::of(&bytes));

    recover(&app).await;

    assert_eq!(
        bench.editor.state.lock().unwrap().forgotten.len(),
        1,
        "the server's copy is the only whole one"
    );
}

#[tokio::test]
async fn a_forgotten_file_that_does_not_arrive_whole_stays_with_the_server_until_it_does() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    bench.editor.put_forgotten(&key, docx("forgotten"));
    bench.editor.damage_transfers(2);

    for _ in 0..2 {
        recover(&app).await;
        assert_eq!(bench.editor.state.lock().unwrap().forgotten.len(), 1, "only the server has it whole");
        assert_eq!(kept_reasons(&bench).await, ["damaged"], "kept once, however often it comes");
    }
    recover(&app).await;

    assert_eq!(bench.document().await.head_digest, Digest::of(&docx("forgotten")));
    assert!(bench.editor.state.lock().unwrap().forgotten.is_empty());
}

#[tokio::test]
async fn a_forgotten_file_somebody_works_on_is_left_alone() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    bench.editor.put_forgotten(&key, docx("forgotten"));
    for busy in [ServerKnowledge::UsersInside, ServerKnowledge::ChangesHeld, ServerKnowledge::Away] {
        bench.editor.says(&key, busy);
        recover(&app).await;
        assert_eq!(bench.labels().await, ["1"], "{busy:?}");
    }

    bench.editor.says(&key, ServerKnowledge::NothingHeld);
    recover(&app).await;

    assert_eq!(bench.labels().await, ["2", "1"]);
    assert!(bench.editor.state.lock().unwrap().forgotten.is_empty());
}

#[tokio::test]
async fn a_key_somebody_enters_while_its_forgotten_file_is_collected_is_not_retired() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    bench.editor.put_forgotten(&key, docx("forgotten"));
    // Somebody who was handed the key earlier enters it while its forgotten file is being collected.
    bench.editor.says_on_fetch(&key, ServerKnowledge::UsersInside);

    recover(&app).await;
    assert_eq!(bench.labels().await, ["2", "1"], "the file is collected all the same");
    assert_eq!(bench.open(&app).await, key, "who comes later joins the session");
    assert_eq!(source_of(&app, &key).await, Digest::of(&docx("forgotten")), "which is what it was opened on");

    // Their changes cannot be built: the server holds them until somebody opens this very key.
    deliver(&app, &Callback { url: None, ..bench.callback(&key, 3, &docx("nothing")) }).await;
    bench.editor.says(&key, ServerKnowledge::ChangesHeld);
    recover(&app).await;
    bench.clock.pass(11);
    assert_eq!(bench.open(&app).await, key, "and gets them back");
    let both = bench.callback(&key, 2, &docx("forgotten and more"));
    assert_eq!(deliver(&app, &both).await, Some(Answer::Saved));

    assert_eq!(bench.document().await.head_digest, Digest::of(&docx("forgotten and more")));
    assert!(kept_reasons(&bench).await.is_empty(), "no conflict");
}

#[tokio::test]
async fn a_forgotten_file_beside_stranded_changes_is_collected_before_they_are_brought_back() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    // The server crashed while it repeated a save, delivered it in vain, and kept the changes as well.
    bench.editor.put_forgotten(&key, docx("forgotten"));
    bench.editor.says(&key, ServerKnowledge::ChangesHeld);
    bench.clock.pass(31);

    recover(&app).await;

    assert!(bench.editor.state.lock().unwrap().forgotten.is_empty(), "on it they would count twice");
    assert_eq!(bench.document().await.head_digest, Digest::of(&docx("forgotten")));
    assert!(!bench.ledger.key(&key).await.unwrap().unwrap().is_spent, "its base brings them back");
    assert_eq!(bench.open(&app).await, key);
}

#[tokio::test]
async fn a_forgotten_file_that_held_changes_were_made_on_stays_and_opens_with_them() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    // Somebody went on from the forgotten file: the server sends no history then.
    bench.editor.put_forgotten(&key, docx("forgotten"));
    let on_forgotten =
        |status, bytes| Callback { session_start: None, ..bench.callback(&key, status, &bytes) };
    deliver(&app, &on_forgotten(6, docx("forgotten and more"))).await;
    // The final save was built damaged; the changes are held.
    deliver(&app, &on_forgotten(2, docx("forgotten and much more").slice(..100))).await;
    bench.editor.says(&key, ServerKnowledge::ChangesHeld);
    bench.clock.pass(31);

    recover(&app).await;

    let head = bench.document().await.head_digest;
    assert_eq!(head, Digest::of(&docx("forgotten and more")), "the file is older than what was made of it");
    assert_eq!(bench.editor.state.lock().unwrap().forgotten.len(), 1, "only on it do the changes make sense");
    assert_eq!(bench.open(&app).await, key, "and whoever opens the key gets both");
    deliver(&app, &on_forgotten(2, docx("forgotten and all the rest"))).await;
    let head = bench.document().await.head_digest;
    assert_eq!(head, Digest::of(&docx("forgotten and all the rest")));
    assert_eq!(
        kept_reasons(&bench).await,
        ["older-session", "damaged"],
        "with 0 the server deletes the file"
    );
}

#[tokio::test]
async fn a_forgotten_file_of_a_retired_key_is_collected_whatever_is_held_beside_it() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    bench.editor.put_forgotten(&key, docx("forgotten"));
    let last = Callback { session_start: None, ..bench.callback(&key, 2, &docx("forgotten and more")) };
    // Answered 0, and the server did not hear it.
    assert_eq!(deliver(&app, &last).await, Some(Answer::Saved));
    bench.editor.says(&key, ServerKnowledge::ChangesHeld);
    bench.clock.pass(31);

    recover(&app).await;

    assert!(bench.editor.state.lock().unwrap().forgotten.is_empty());
    assert_eq!(bench.document().await.head_digest, Digest::of(&docx("forgotten and more")));
}

#[tokio::test]
async fn forgotten_files_we_cannot_map_are_never_deleted() {
    let bench = Workbench::new().await;
    let app = bench.process();
    for key in ["not-ours", "prod_12345_edit_1.k", "test_unheard-of_edit_1.k"] {
        bench.editor.put_forgotten(&EditorKey::parse(key).unwrap(), docx(key));
    }

    recover(&app).await;

    assert_eq!(bench.editor.state.lock().unwrap().forgotten.len(), 3);
    assert_eq!(bench.labels().await, ["1"]);
}

#[tokio::test]
async fn a_key_whose_answer_nobody_heard_is_retired_once_the_server_is_done_with_it() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    bench.receive_only(&app, &bench.callback(&key, 2, &docx("edited"))).await;
    recover(&app).await;

    bench.editor.says(&key, ServerKnowledge::ChangesHeld);
    recover(&app).await;
    assert!(!bench.ledger.key(&key).await.unwrap().unwrap().is_spent);
    bench.editor.says(&key, ServerKnowledge::NothingHeld);
    recover(&app).await;
    assert!(!bench.ledger.key(&key).await.unwrap().unwrap().is_spent, "the server may still repeat its save");
    bench.clock.pass(31);
    recover(&app).await;

    assert!(bench.ledger.key(&key).await.unwrap().unwrap().is_spent);
}

#[tokio::test]
async fn blobs_no_row_names_are_adopted_as_conflict_copies_when_they_are_old_enough() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let sidecar = Sidecar::Saved { key: EditorKey::parse("test_12345_edit_9.k").unwrap(), status: 2 };
    bench.vault.put(&Spool::hold(docx("stray")), &sidecar).await.unwrap();

    adopt(&app, AgeMin::TenMinutes).await.unwrap();
    adopt(&app, AgeMin::None).await.unwrap();

    assert_eq!(kept_reasons(&bench).await, ["unnamed"]);
    assert_eq!(bench.ledger.inconsistencies().await.unwrap(), []);
}

#[tokio::test]
async fn an_upload_that_was_refused_is_never_given_to_the_document_it_named() {
    let bench = Workbench::new().await;
    let app = bench.process();
    // Somebody of another company wanted this id.
    let sidecar = Sidecar::Uploaded { to_become: bench.document().await.id };
    bench.vault.put(&Spool::hold(docx("foreign")), &sidecar).await.unwrap();

    adopt(&app, AgeMin::None).await.unwrap();

    let page = KeptPage { of: Whose::Document(bench.document().await.id), before: None, limit: 100 };
    assert!(bench.ledger.kept_copies(&page).await.unwrap().is_empty());
    assert_eq!(bench.ledger.totals().await.unwrap().orphans, 1, "and not lost either");
}

#[tokio::test]
async fn the_published_file_follows_the_head_and_keeps_what_it_replaced() {
    let bench = Workbench::new().await;
    let app = bench.process();
    recover(&app).await;
    let key = bench.open(&app).await;
    deliver(&app, &bench.callback(&key, 2, &docx("edited"))).await;
    recover(&app).await;

    let place = place(&bench.document().await);
    assert_eq!(bench.tree.shown(&place).await.unwrap().unwrap().0, Digest::of(&docx("edited")));
    let names = bench.tree.names(&place);
    assert_eq!(names.len(), 2);
    assert!(names[1].starts_with("report.docx.2026") && names[1].ends_with("Z-v1.bak"), "{names:?}");
}

#[tokio::test]
async fn bytes_another_program_published_are_kept() {
    let bench = Workbench::new().await;
    let app = bench.process();
    recover(&app).await;
    bench.tree.overwrite(&place(&bench.document().await), &docx("from outside"));
    let key = bench.open(&app).await;
    deliver(&app, &bench.callback(&key, 2, &docx("edited"))).await;

    recover(&app).await;

    assert_eq!(bench.document().await.head_digest, Digest::of(&docx("edited")));
    assert_eq!(kept_reasons(&bench).await, ["external-change"]);
}

#[tokio::test]
async fn damaged_bytes_another_program_published_never_become_the_head() {
    let bench = Workbench::new().await;
    let app = bench.process();
    recover(&app).await;
    let before = bench.document().await.head_digest;
    bench.tree.overwrite(&place(&bench.document().await), &docx("from outside").slice(..100));

    bench.ledger.owe_publication(&bench.document().await.id, app.now()).await.unwrap();
    recover(&app).await;

    assert_eq!(bench.document().await.head_digest, before);
    assert_eq!(kept_reasons(&bench).await, ["damaged"]);
}

#[tokio::test]
async fn a_key_comes_back_if_the_server_never_heard_that_its_final_save_was_stored() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    assert_eq!(deliver(&app, &bench.callback(&key, 2, &docx("edited"))).await, Some(Answer::Saved));
    // The answer was lost, somebody went on, and the server crashed.
    bench.editor.says(&key, ServerKnowledge::ChangesHeld);
    bench.clock.pass(31);

    assert_eq!(bench.open(&app).await, key, "only under it are the changes found");
    assert_eq!(
        source_of(&app, &key).await,
        Digest::of(&docx("base")),
        "and only on its base do they make sense"
    );
    deliver(&app, &bench.callback(&key, 2, &docx("edited and more"))).await;

    let document = bench.document().await.id;
    let more = Digest::of(&docx("edited and more"));
    assert!(bench.ledger.knows_content(&document, &more).await.unwrap());
    bench.editor.says(&key, ServerKnowledge::NothingHeld);
    assert_ne!(bench.open(&app).await, key);
}

async fn enter(app: &Arc<App>, key: &EditorKey, users: &[&str]) {
    let users = users.iter().map(|user| (*user).to_owned()).collect();
    deliver(app, &Callback { users, ..Callback::bare(key.clone(), 1) }).await;
}

async fn session_of(bench: &Workbench) -> ledger::sessions::SessionRecord {
    use ledger::Sessions as _;
    let page = ledger::sessions::SessionPage { document: None, after: None, limit: 10 };
    bench.ledger.sessions(&page).await.unwrap().remove(0)
}

#[tokio::test]
async fn a_silent_session_is_asked_about_and_closed_only_if_the_server_agrees() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    enter(&app, &key, &["u1"]).await;
    let state = async |server, which| {
        bench.editor.says(&key, server);
        let _ = sessions::look(&app, which).await;
        session_of(&bench).await.state()
    };

    let silent = Which::Silent;
    assert_eq!(
        state(ServerKnowledge::NothingHeld, silent).await,
        SessionState::Editing,
        "it was just heard of"
    );
    bench.clock.pass(100_000);
    assert_eq!(
        state(ServerKnowledge::Away, silent).await,
        SessionState::Editing,
        "however long ago that was"
    );
    assert_eq!(state(ServerKnowledge::UsersInside, silent).await, SessionState::Editing);
    bench.clock.pass(100_000);
    assert_eq!(state(ServerKnowledge::NothingHeld, silent).await, SessionState::Idle);
    assert_eq!(bench.open(&app).await, key, "the key is handed out again");
}

#[tokio::test]
async fn after_a_restart_every_session_is_asked_about_and_stranded_changes_are_found() {
    let bench = Workbench::new().await;
    let key = bench.open(&bench.process()).await;
    enter(&bench.process(), &key, &["u1", "u2"]).await;
    bench.clock.pass(60);
    bench.editor.says(&key, ServerKnowledge::ChangesHeld);

    let app = bench.process();
    sessions::look(&app, Which::All).await.unwrap();

    let session = session_of(&bench).await;
    assert_eq!((session.state(), session.unsaved()), (SessionState::Stranded, Unsaved::Yes));
    let before = bench.everything().await;
    sessions::look(&app, Which::All).await.unwrap();
    assert_eq!(bench.everything().await, before, "asking twice changes nothing");
}

#[tokio::test]
async fn a_save_that_found_no_room_is_taken_up_when_there_is_some() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    bench.disk.leave(100);

    let answer = deliver(&app, &bench.callback(&key, 2, &docx("edited"))).await;
    round(&app).await;
    idle(&app).await;

    assert_eq!(answer, Some(Answer::TryAgain), "the server keeps its copy");
    assert_eq!(bench.labels().await, ["1"]);
    bench.disk.leave(400);
    round(&app).await;
    idle(&app).await;
    assert_eq!(bench.labels().await, ["2", "1"], "saves are taken before uploads are");
    let owed = app.ledger.totals().await.unwrap().owed_publications;
    assert_eq!(owed, 1, "the published tree waits for more room");
    bench.disk.leave(50 * 1024);
    round(&app).await;
    idle(&app).await;
    assert_eq!(app.ledger.totals().await.unwrap().owed_publications, 0);
}

/// The names that are shown: no backups.
async fn shown_names(bench: &Workbench) -> Vec<String> {
    let names = bench.tree.names(&place(&bench.document().await));
    names.into_iter().filter(|name| !name.ends_with(".bak")).collect()
}

#[tokio::test]
async fn the_published_file_follows_a_new_name_whatever_fails_on_the_way() {
    use steps::{Aftermath, Faults, Moment};
    let renamed = async || {
        let bench = Workbench::new().await;
        let app = bench.process();
        recover(&app).await;
        crate::changing::rename(&app, &bench.document().await, "letter", crate::testing::author("u7"))
            .await
            .unwrap();
        bench
    };
    let bench = renamed().await;
    let faults = Arc::new(Faults::none());
    recover(&bench.process_with(&faults)).await;
    assert_eq!(shown_names(&bench).await, ["letter.docx"]);
    for moment in [Moment::Before, Moment::After] {
        for number in 1..=faults.calls().len() {
            let bench = renamed().await;
            recover(&bench.process_with(&Arc::new(Faults::at_call(number, moment, Aftermath::Crashed))))
                .await;
            assert!(
                !shown_names(&bench).await.is_empty(),
                "call {number}, {moment:?}: some name is there at any moment"
            );

            recover(&bench.process()).await;

            assert_eq!(shown_names(&bench).await, ["letter.docx"], "call {number}, {moment:?}");
            assert!(kept_reasons(&bench).await.is_empty(), "call {number}, {moment:?}");
            assert_eq!(bench.ledger.inconsistencies().await.unwrap(), []);
        }
    }
}

#[tokio::test]
async fn bytes_another_program_put_under_the_old_name_are_kept() {
    let bench = Workbench::new().await;
    let app = bench.process();
    recover(&app).await;
    let old = place(&bench.document().await);
    crate::changing::rename(&app, &bench.document().await, "letter", crate::testing::author("u7"))
        .await
        .unwrap();
    bench.tree.overwrite(&old, &docx("from outside"));

    recover(&app).await;

    assert_eq!(shown_names(&bench).await, ["letter.docx"]);
    let document = bench.document().await.id;
    assert!(bench.ledger.knows_content(&document, &Digest::of(&docx("from outside"))).await.unwrap());
}

/// A document whose published file another program changed, and that is saved, or deleted, since.
async fn changed_outside_and(ends: &str) -> Workbench {
    let bench = Workbench::new().await;
    let app = bench.process();
    recover(&app).await;
    bench.tree.overwrite(&place(&bench.document().await), &docx("from outside"));
    if ends == "saved" {
        let key = bench.open(&app).await;
        deliver(&app, &bench.callback(&key, 2, &docx("edited"))).await;
    } else {
        let document = bench.document().await;
        crate::changing::delete(&app, &document.id, &crate::testing::author("u7")).await.unwrap();
    }
    bench
}

#[tokio::test]
async fn bytes_another_program_published_are_kept_whatever_fails_right_after_they_were_replaced() {
    use steps::{Aftermath, Faults, Moment};

    for ends in ["saved", "deleted"] {
        let faults = Arc::new(Faults::none());
        recover(&changed_outside_and(ends).await.process_with(&faults)).await;
        for moment in [Moment::Before, Moment::After] {
            for number in 1..=faults.calls().len() {
                let bench = changed_outside_and(ends).await;
                recover(&bench.process_with(&Arc::new(Faults::at_call(number, moment, Aftermath::Crashed))))
                    .await;

                recover(&bench.process()).await;

                let (id, outside) = (bench.document().await.id, Digest::of(&docx("from outside")));
                let call = faults.calls()[number - 1];
                assert!(
                    bench.ledger.knows_content(&id, &outside).await.unwrap(),
                    "{ends}, {call} failed {moment:?}"
                );
                // A copy beside what was saved, or another version in the history of what was deleted.
                let versions = bench.ledger.contents(&id).await.unwrap();
                let versions = versions.iter().filter(|content| content.blob.digest == outside).count();
                let times = versions + kept_reasons(&bench).await.len();
                assert_eq!(times, 1, "{ends}, {call} failed {moment:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_file_another_program_changed_or_removed_is_noticed_in_a_round() {
    let bench = Workbench::new().await;
    let app = bench.process();
    recover(&app).await;
    let place = place(&bench.document().await);
    bench.tree.overwrite(&place, &docx("from outside, and longer than what was there"));

    recover(&app).await;

    let outside = Digest::of(&docx("from outside, and longer than what was there"));
    assert_eq!(bench.document().await.head_digest, outside, "nobody edits: it is the next version");
    recover(&app).await;
    assert_eq!(bench.tree.shown(&place).await.unwrap().unwrap().0, outside);
    bench.tree.withdraw(&place, ".gone.bak").await.unwrap();
    recover(&app).await;
    assert_eq!(bench.tree.shown(&place).await.unwrap().unwrap().0, outside, "it is shown again");
}

#[tokio::test]
async fn a_forgotten_file_that_stays_is_counted_until_it_is_collected() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    bench.editor.put_forgotten(&key, docx("forgotten"));
    bench.editor.put_forgotten(&EditorKey::parse("another_12345_edit_1.k").unwrap(), docx("foreign"));
    bench.editor.says(&key, ServerKnowledge::UsersInside);

    recover(&app).await;
    assert_eq!((app.forgotten.counts(app.now()).waiting, app.forgotten.counts(app.now()).staying), (1, 0));
    bench.clock.pass(16 * 60);
    recover(&app).await;
    assert_eq!(app.forgotten.counts(app.now()).staying, 1, "somebody should look");
    bench.editor.says(&key, ServerKnowledge::NothingHeld);
    recover(&app).await;

    assert_eq!(app.forgotten.counts(app.now()).waiting, 0);
}
