//! Opening against memory ports: which key somebody gets, and what its source serves.

use std::sync::Arc;
use std::time::Duration;

use ledger::{Documents as _, Keys as _};
use model::callbacks::Answer;
use model::opening::ServerKnowledge;
use model::operations::Rights;
use model::{Digest, DocumentId, EditorKey};
use tokio_util::sync::CancellationToken;

use super::{OpenError, StreamRefused, StreamTokens, configure, source};
use crate::app::App;
use crate::opening::source::{Readers, Streamed};
use crate::recovering;
use crate::testing::{Workbench, author, deliver, docx};

/// Opens, with the process following its signals as in the service.
async fn open(bench: &Workbench, app: &Arc<App>) -> Result<EditorKey, OpenError> {
    let stop = CancellationToken::new();
    let following = tokio::spawn(recovering::follow(Arc::clone(app), stop.clone()));
    let opened = configure(app, &bench.document().await, &author("u1"), Rights::EDIT).await;
    stop.cancel();
    following.await.unwrap();
    opened.map(|opened| opened.key)
}

#[tokio::test]
async fn somebody_who_opens_during_a_final_save_waits_and_gets_the_new_version() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    let callback = bench.callback(&key, 2, &docx("edited"));
    // Received and not finished: as if the download took long.
    bench.receive_only(&app, &callback).await;

    // The wish to open is asked first and finds the save open.
    let (opened, answer) = tokio::join!(open(&bench, &app), deliver(&app, &callback));

    assert_eq!(answer, Some(Answer::Saved));
    let opened = opened.unwrap();
    assert_ne!(opened, key);
    let record = bench.ledger.key(&opened).await.unwrap().unwrap();
    assert_eq!(record.base.unwrap().1, Digest::of(&docx("edited")));
}

#[tokio::test]
async fn a_final_save_that_does_not_end_is_told_and_no_key_is_given() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    let callback = bench.callback(&key, 2, &docx("edited"));
    bench.editor.forget_links();
    assert_eq!(deliver(&app, &callback).await, Some(Answer::TryAgain));

    let refused = open(&bench, &app).await;

    assert!(matches!(refused, Err(OpenError::BeingSaved)), "{refused:?}");
}

#[tokio::test]
async fn changes_stranded_on_the_server_come_back_under_the_same_key() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    deliver(&app, &bench.callback(&key, 6, &docx("half way"))).await;
    bench.editor.says(&key, ServerKnowledge::ChangesHeld);
    bench.clock.pass(11);

    assert_eq!(open(&bench, &app).await.unwrap(), key);
    bench.editor.says(&key, ServerKnowledge::UsersInside);
    assert_eq!(open(&bench, &app).await.unwrap(), key);
}

#[tokio::test]
async fn a_key_the_server_no_longer_knows_is_finished_and_replaced() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    deliver(&app, &bench.callback(&key, 6, &docx("half way"))).await;
    bench.editor.says(&key, ServerKnowledge::Unknown);
    bench.editor.put_forgotten(&key, docx("all of it"));

    let next = open(&bench, &app).await.unwrap();

    assert_ne!(next, key);
    assert_eq!(
        bench.document().await.head_digest,
        Digest::of(&docx("all of it")),
        "its forgotten file came first"
    );
    assert!(bench.editor.state.lock().unwrap().forgotten.is_empty());
}

#[tokio::test]
async fn a_session_that_was_forgotten_while_nobody_listened_is_collected_before_somebody_is_let_in() {
    let bench = Workbench::new().await;
    let key = bench.open(&bench.process()).await;
    // The server crashed, built what it held, and found nobody to bring it to: now it has the file and the changes in it.
    bench.editor.put_forgotten(&key, docx("all of it"));
    bench.editor.says(&key, ServerKnowledge::ChangesHeld);
    let app = bench.process();

    let refused = open(&bench, &app).await;
    bench.clock.pass(31);
    recovering::round(&app).await;
    bench.clock.pass(11);
    let opened = open(&bench, &app).await.unwrap();

    assert!(matches!(refused, Err(OpenError::BeingSaved)), "{refused:?}");
    assert_eq!(bench.document().await.head_digest, Digest::of(&docx("all of it")));
    assert!(
        bench.editor.state.lock().unwrap().forgotten.is_empty(),
        "opened on it, the changes would count twice"
    );
    assert_eq!(opened, key, "which still brings back what the server holds");
}

#[tokio::test]
async fn a_session_that_is_forgotten_while_somebody_is_being_let_in_is_collected_first() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    deliver(&app, &bench.callback(&key, 6, &docx("half way"))).await;
    bench.editor.says(&key, ServerKnowledge::ChangesHeld);
    bench.editor.put_forgotten_after_look(&key, docx("all of it"));
    bench.clock.pass(11);

    let refused = open(&bench, &app).await;
    bench.clock.pass(31);
    recovering::round(&app).await;
    bench.clock.pass(11);
    let opened = open(&bench, &app).await.unwrap();

    assert!(
        matches!(refused, Err(OpenError::BeingSaved)),
        "opened on it, the changes would count twice: {refused:?}"
    );
    assert!(bench.editor.state.lock().unwrap().forgotten.is_empty());
    assert_eq!(opened, key, "which still brings back what the server holds");
}

/// A session whose final save was built damaged: refused here, forgotten there, and the server holds its changes.
async fn damaged_and_forgotten(bench: &Workbench, app: &Arc<App>) -> EditorKey {
    let key = bench.open(app).await;
    let torn = docx("all of it").slice(..100);
    assert_eq!(deliver(app, &bench.callback(&key, 2, &torn)).await, Some(Answer::NotSaved));
    bench.editor.put_forgotten(&key, torn);
    bench.editor.says(&key, ServerKnowledge::ChangesHeld);
    key
}

#[tokio::test]
async fn nobody_is_let_into_a_session_whose_damaged_file_was_forgotten_a_moment_ago() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = damaged_and_forgotten(&bench, &app).await;
    // Asked before it heard our answer, the server still had the session; then the file is its forgotten one.
    bench.editor.says_on_fetch(&key, ServerKnowledge::Unknown);
    bench.clock.pass(31);

    assert_ne!(open(&bench, &app).await.unwrap(), key, "whatever is typed on it could never be built");
}

#[tokio::test]
async fn nobody_is_let_in_while_a_damaged_forgotten_file_lies_beside_stranded_changes() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = damaged_and_forgotten(&bench, &app).await;

    let refused = open(&bench, &app).await;

    assert!(matches!(refused, Err(OpenError::DamagedThere)), "{refused:?}");
    assert_eq!(bench.editor.state.lock().unwrap().forgotten.len(), 1, "it may be whole on the server");
    // A person has looked at it and taken it away.
    bench.editor.state.lock().unwrap().forgotten.clear();
    bench.clock.pass(11);
    assert_eq!(open(&bench, &app).await.unwrap(), key, "and the changes come back");
}

#[tokio::test]
async fn without_the_servers_word_no_key_is_given() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    deliver(&app, &bench.callback(&key, 6, &docx("half way"))).await;
    bench.editor.says(&key, ServerKnowledge::Away);

    assert!(matches!(open(&bench, &app).await, Err(OpenError::ServerAway)));
}

fn token(app: &App, key: &EditorKey, label: &str) -> String {
    let streamed = Streamed {
        document: DocumentId::parse("12345").unwrap(),
        key: key.clone(),
        label: model::Label::parse(label).unwrap(),
        readers: Readers::Anybody,
    };
    StreamTokens::new(&app.config).issue(&streamed, app.now(), Duration::from_secs(60))
}

async fn served(app: &App, token: &str) -> Result<Digest, OpenError> {
    let document = DocumentId::parse("12345").unwrap();
    source(app, &document, token, Readers::Anybody).await.map(|content| content.blob.digest)
}

#[tokio::test]
async fn a_source_is_the_base_until_the_key_is_spent() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    let token = token(&app, &key, "1");
    let base = Digest::of(&docx("base"));

    assert_eq!(served(&app, &token).await.unwrap(), base);
    deliver(&app, &bench.callback(&key, 6, &docx("checkpoint"))).await;
    assert_eq!(
        served(&app, &token).await.unwrap(),
        base,
        "changes replayed on the saved file would count twice"
    );
    deliver(&app, &bench.callback(&key, 2, &docx("edited"))).await;

    let refused = served(&app, &token).await;
    assert!(matches!(refused, Err(OpenError::Stream(StreamRefused::Spent))), "{refused:?}");
}

#[tokio::test]
async fn a_base_fetched_after_a_save_betrays_a_lost_session() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    deliver(&app, &bench.callback(&key, 6, &docx("checkpoint"))).await;

    served(&app, &token(&app, &key, "1")).await.unwrap();
    let answer = deliver(&app, &bench.callback(&key, 2, &docx("began again"))).await;

    assert_eq!(answer, Some(Answer::Saved));
    assert_eq!(
        bench.document().await.head_digest,
        Digest::of(&docx("checkpoint")),
        "what was saved is not erased"
    );
    let page = ledger::documents::KeptPage { of: ledger::documents::Whose::All, before: None, limit: 10 };
    let kept = bench.ledger.kept_copies(&page).await.unwrap();
    assert_eq!(kept[0].keeping.reason(), "session-began-again");
}

#[tokio::test]
async fn viewers_share_a_key_that_changes_with_the_content() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let view =
        async || configure(&app, &bench.document().await, &author("v"), Rights::VIEW).await.unwrap().key;

    let (first, second) = (view().await, view().await);
    let key = bench.open(&app).await;
    deliver(&app, &bench.callback(&key, 6, &docx("checkpoint"))).await;

    assert_eq!(first, second);
    assert_ne!(view().await, first, "a checkpoint is never served stale");
}
