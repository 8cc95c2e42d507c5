//! The contract about the history as people see it.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "the names of checks are sentences; a broken contract must stop"
)]

use model::Label;
use model::callbacks::Callback;
use model::names::FileName;
use model::saves::SaveKind;

use super::desk::{Desk, author, blob};
use crate::history::{ContentsPage, DocumentRenaming, NewMention};
use crate::saves::PreparedSave;

pub async fn pages_of_contents_join_without_gap_or_repeat(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    for text in ["one", "two", "three"] {
        desk.save(&key, 6, text.as_bytes()).await;
    }
    desk.save(&key, 2, b"four").await;
    let page = |versions_only, before, limit| ContentsPage {
        document: document.id.clone(),
        versions_only,
        before,
        limit,
    };

    let mut seen = Vec::new();
    let mut before = None;
    loop {
        let contents = desk.ledger.contents_page(&page(false, before, 2)).await.unwrap();
        let Some(last) = contents.last() else { break };
        before = Some(last.label);
        seen.extend(contents.iter().map(|content| content.label.to_string()));
    }

    assert_eq!(seen, ["2", "1.3", "1.2", "1.1", "1"]);
    let versions = desk.ledger.contents_page(&page(true, None, 10)).await.unwrap();
    assert_eq!(versions.iter().map(|content| content.label.to_string()).collect::<Vec<_>>(), ["2", "1"]);
}

pub async fn a_record_of_changes_is_kept_with_its_version_and_with_nothing_else(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    let receipt = desk.receive(&desk.callback(&key, 2, "17")).await;
    let save = PreparedSave {
        changes: Some(blob(b"changes")),
        ..desk.prepared(&receipt, SaveKind::Final, b"edited")
    };

    desk.ledger.commit_save(&save).await.unwrap();

    let content = desk.ledger.content(&document.id, Label::version(2)).await.unwrap().unwrap();
    assert_eq!(content.changes, Some((blob(b"changes").digest, 7)));
    assert!(desk.ledger.unneeded_blobs(desk.now(), 10).await.unwrap().is_empty());
    // What becomes no content needs no record: it may go.
    let next = desk.key(&document.id).await;
    desk.save(&next, 2, b"third").await;
    let late = desk.receive(&desk.callback(&key, 2, "18")).await;
    let late = PreparedSave {
        changes: Some(blob(b"more changes")),
        ..desk.prepared(&late, SaveKind::Final, b"too late")
    };
    assert!(desk.ledger.commit_save(&late).await.unwrap().kept.is_some());
    let unneeded = desk.ledger.unneeded_blobs(desk.now(), 10).await.unwrap();
    assert_eq!(unneeded.iter().map(|blob| blob.digest).collect::<Vec<_>>(), [blob(b"more changes").digest]);
    desk.expect_consistent().await;
}

pub async fn a_renamed_document_owes_its_publication_until_only_the_new_name_is_shown(desk: &Desk) {
    let document = desk.document("12345").await;
    desk.ledger.published(&document.id, Label::FIRST, desk.now()).await.unwrap();
    let rename = async |name: &str| {
        let (document, name) = (document.id.clone(), FileName::parse(name).unwrap());
        let renaming = DocumentRenaming { document, name, by: author("u7"), at: desk.now() };
        desk.ledger.rename_document(&renaming).await.unwrap().map(|document| document.name.to_string())
    };
    let acts = async || desk.ledger.audit("12345", 0, 100).await.unwrap().len();
    let before = acts().await;

    assert_eq!(rename("report.docx").await.as_deref(), Some("report.docx"));
    assert_eq!((desk.ledger.owed_publication(&document.id).await.unwrap(), acts().await), (None, before));
    assert_eq!(rename("letter.docx").await.as_deref(), Some("letter.docx"));
    assert_eq!(rename("poem.docx").await.as_deref(), Some("poem.docx"));

    let owed = desk.ledger.owed_publication(&document.id).await.unwrap().unwrap();
    assert_eq!((owed.name.as_str(), owed.old_name.as_ref().unwrap().as_str()), ("poem.docx", "report.docx"));
    assert_eq!(acts().await, before + 2);
    // It was shown under its second name when the third one came.
    let shown = |name: &str| FileName::parse(name).unwrap();
    desk.ledger.shown_under(&document.id, &shown("letter.docx")).await.unwrap();
    desk.ledger.published(&document.id, Label::FIRST, desk.now()).await.unwrap();
    let owed = desk.ledger.owed_publication(&document.id).await.unwrap().unwrap();
    assert_eq!(owed.old_name.as_ref().unwrap().as_str(), "letter.docx");
    desk.ledger.shown_under(&document.id, &owed.name).await.unwrap();
    desk.ledger.published(&document.id, Label::FIRST, desk.now()).await.unwrap();
    assert_eq!(desk.ledger.owed_publication(&document.id).await.unwrap(), None);
    desk.expect_consistent().await;
}

pub async fn people_are_known_by_what_they_did_in_their_company(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    let changes = r#"[{"user":{"id":"u5","name":"Eve"}},{"user":{"id":"u1","name":"User One"}}]"#;
    let callback = Callback { history: Some(changes.to_owned()), ..desk.callback(&key, 2, "17") };
    let receipt = desk.receive(&callback).await;
    desk.ledger.commit_save(&desk.prepared(&receipt, SaveKind::Final, b"edited")).await.unwrap();
    let other = desk.document("other").await;

    let people = desk.ledger.people(&document.id, 10).await.unwrap();

    let known: Vec<_> = people.iter().map(|person| (person.id.as_str(), person.name.as_str())).collect();
    assert_eq!(known, [("u1", "User One"), ("u5", "Eve"), ("u0", "User u0"), ("ops", "ops")]);
    assert_eq!(desk.ledger.people(&document.id, 1).await.unwrap().len(), 1);
    let of_other = desk.ledger.people(&other.id, 10).await.unwrap();
    assert!(
        !of_other.iter().any(|person| person.id == "u5"),
        "who only worked on another document: {of_other:?}"
    );
}

pub async fn mentions_are_written_down_once_and_handed_out_in_order(desk: &Desk) {
    let document = desk.document("12345").await;
    let mention = |message: &str| NewMention {
        document: document.id.clone(),
        by: author("u7"),
        emails: vec!["ann@example.org".to_owned(), "ben@example.org".to_owned()],
        message: message.to_owned(),
        action_link: Some("{\"action\":{}}".to_owned()),
        at: desk.now(),
    };

    let first = desk.ledger.note_mention(&mention("Look here.")).await.unwrap();
    let second = desk.ledger.note_mention(&mention("And here.")).await.unwrap();

    let all = desk.ledger.mentions(0, 10).await.unwrap();
    assert_eq!(all.iter().map(|each| each.number).collect::<Vec<_>>(), [first, second]);
    assert_eq!((all[0].mention.message.as_str(), all[0].mention.emails.len()), ("Look here.", 2));
    let later = desk.ledger.mentions(first, 10).await.unwrap();
    assert_eq!(later.len(), 1);
    let acts = desk.ledger.audit("12345", 0, 100).await.unwrap();
    let told: Vec<_> = acts.iter().filter(|(entry, _)| entry.action == "people-mentioned").collect();
    assert!(
        told.len() == 2 && !told[0].0.details.contains("Look"),
        "the trail does not repeat what was written"
    );
    desk.expect_consistent().await;
}
