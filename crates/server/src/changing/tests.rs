//! Changes past the editors and downloads, with a Document Server of a few lines.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use ledger::Documents as _;
use ledger::changes::EditorsInside;
use ledger::documents::{Author, KeptPage, Whose};
use model::callbacks::{Answer, Callback};
use model::opening::ServerKnowledge;
use model::{Digest, Label};
use steps::{Aftermath, Faults, Moment};

use super::{ChangeError, Changer, Freshness, delete, download, replace, restore, undelete, use_kept};
use crate::app::App;
use crate::editors::ForceSave;
use crate::testing::{Workbench, author, deliver, docx, idle};

fn changer() -> Changer {
    Changer { who: author("u7"), expected_head: None, editors: EditorsInside::Refuse }
}

fn who() -> Author {
    author("u7")
}

async fn put(bench: &Workbench, app: &Arc<App>, bytes: Bytes) -> Result<Label, ChangeError> {
    let body = futures_util::stream::once(async move { Ok::<_, Infallible>(bytes) });
    replace(app, &bench.document().await, changer(), body).await
}

#[tokio::test]
async fn an_upload_replaces_the_head_and_the_unused_key() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;

    let label = put(&bench, &app, docx("uploaded")).await.unwrap();

    assert_eq!(
        (label, bench.document().await.head_digest),
        (Label::version(2), Digest::of(&docx("uploaded")))
    );
    assert_ne!(bench.open(&app).await, key);
    let damaged = put(&bench, &app, docx("torn").slice(..100)).await;
    assert!(matches!(damaged, Err(ChangeError::NotWhole { .. })), "{damaged:?}");
}

#[tokio::test]
async fn nothing_is_replaced_or_deleted_while_somebody_edits() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    bench.editor.says(&key, ServerKnowledge::UsersInside);
    let document = bench.document().await.id;

    let replaced = put(&bench, &app, docx("uploaded")).await;
    let deleted = delete(&app, &document, &who()).await;
    bench.editor.says(&key, ServerKnowledge::Away);
    let unknown = delete(&app, &document, &who()).await;

    assert!(matches!(replaced, Err(ChangeError::Edited { .. })), "{replaced:?}");
    assert!(matches!(deleted, Err(ChangeError::Edited { .. })), "{deleted:?}");
    assert!(matches!(unknown, Err(ChangeError::ServerAway)), "{unknown:?}");
    assert_eq!(bench.labels().await, ["1"]);
}

#[tokio::test]
async fn a_late_save_to_a_deleted_document_is_kept() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    let document = bench.document().await.id;
    delete(&app, &document, &who()).await.unwrap();
    assert!(bench.document().await.deleted_at.is_some());

    let late = deliver(&app, &bench.callback(&key, 2, &docx("typed meanwhile"))).await;

    assert_eq!(late, Some(Answer::Saved));
    let page = KeptPage { of: Whose::Document(document.clone()), before: None, limit: 10 };
    let kept = bench.ledger.kept_copies(&page).await.unwrap();
    assert_eq!(kept.len(), 1);
    assert!(undelete(&app, &document, &who()).await.unwrap());
    let used = use_kept(&app, &document, kept[0].number, changer()).await.unwrap();
    assert_eq!(
        (used, bench.document().await.head_digest),
        (Label::version(2), Digest::of(&docx("typed meanwhile")))
    );
}

#[tokio::test]
async fn an_earlier_version_comes_back_as_a_new_one_even_from_inside_the_editor() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    deliver(&app, &bench.callback(&key, 6, &docx("half way"))).await;
    bench.editor.says(&key, ServerKnowledge::UsersInside);
    let document = bench.document().await.id;
    let refused = restore(&app, &document, Label::FIRST, changer()).await;
    assert!(matches!(refused, Err(ChangeError::Edited { .. })), "{refused:?}");

    let from_inside = Changer { editors: EditorsInside::RetireTheirKey, ..changer() };
    let label = restore(&app, &document, Label::FIRST, from_inside).await.unwrap();

    assert_eq!((label, bench.document().await.head_digest), (Label::version(2), Digest::of(&docx("base"))));
    assert_eq!(bench.editor.state.lock().unwrap().force_saves.len(), 1, "what was typed is saved first");
    while bench.editor.state.lock().unwrap().dropped.is_empty() {
        tokio::task::yield_now().await;
    }
    deliver(&app, &bench.callback(&key, 2, &docx("half way and more"))).await;
    assert_eq!(bench.document().await.head_digest, Digest::of(&docx("base")), "kept, and not the head");
    assert!(matches!(
        restore(&app, &document, Label::version(9), changer()).await,
        Err(ChangeError::NotFound)
    ));
}

#[tokio::test]
async fn a_download_holds_what_was_typed_before_it() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let key = bench.open(&app).await;
    bench.editor.state.lock().unwrap().force_save = ForceSave::Begun;
    let document = bench.document().await;

    let downloading = tokio::spawn({
        let (app, document) = (Arc::clone(&app), document.clone());
        async move { download(&app, &document, &who()).await.unwrap() }
    });
    let word = loop {
        let asked = bench.editor.state.lock().unwrap().force_saves.first().map(|(_, word)| word.clone());
        if let Some(word) = asked {
            break word;
        }
        tokio::task::yield_now().await;
    };
    // A save of somebody else is not the answer.
    deliver(&app, &bench.callback(&key, 6, &docx("by the button"))).await;
    let ours = Callback { user_data: Some(word), ..bench.callback(&key, 6, &docx("all of it")) };
    deliver(&app, &ours).await;

    let downloaded = downloading.await.unwrap();
    assert_eq!(downloaded.freshness, Freshness::Saved);
    assert_eq!(downloaded.content.blob.digest, Digest::of(&docx("all of it")));
}

#[tokio::test]
async fn a_download_says_how_fresh_it_is() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let document = bench.document().await;
    let freshness = async || download(&app, &document, &who()).await.unwrap().freshness;
    assert_eq!(freshness().await, Freshness::Newest, "nobody has it open");

    bench.open(&app).await;
    assert_eq!(freshness().await, Freshness::Unchanged);
    bench.editor.state.lock().unwrap().force_save = ForceSave::NobodyThere;
    assert_eq!(freshness().await, Freshness::Newest);
    bench.editor.state.lock().unwrap().force_save = ForceSave::Begun;
    tokio::time::pause();
    assert_eq!(freshness().await, Freshness::NotSavedInTime, "accepted is no promise");

    let app = bench.process_with(&Arc::new(Faults::at_call(3, Moment::Before, Aftermath::GoesOn)));
    let away = download(&app, &document, &who()).await.unwrap();
    assert_eq!(away.freshness, Freshness::ServerAway);
    idle(&app).await;
}
