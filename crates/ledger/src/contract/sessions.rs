//! The contract about sessions.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "the names of checks are sentences; a broken contract must stop"
)]

use jiff::SignedDuration;
use model::opening::ServerKnowledge;
use model::saves::SaveKind;
use model::sessions::{SessionState, Unsaved};
use model::{DocumentId, EditorKey, Label};

use super::desk::Desk;
use crate::keys::Presence;
use crate::sessions::{Look, LookOutcome, SessionPage, SessionRecord};

async fn enter(desk: &Desk, key: &EditorKey, users: &[&str]) {
    let users: Vec<String> = users.iter().map(|user| (*user).to_owned()).collect();
    let presence = Presence { key: key.clone(), is_idle: users.is_empty(), users, at: desk.now() };
    desk.ledger.note_presence(&presence).await.unwrap();
}

async fn look(desk: &Desk, key: &EditorKey, server: ServerKnowledge) -> LookOutcome {
    let asked_at = desk.now();
    let quiet_after = SignedDuration::from_secs(10);
    let look = Look { key: key.clone(), server, asked_at, quiet_after, at: desk.now() };
    desk.ledger.note_look(&look).await.unwrap()
}

async fn of(desk: &Desk, document: &DocumentId) -> Vec<SessionRecord> {
    let page = SessionPage { document: Some(document.clone()), after: None, limit: 100 };
    desk.ledger.sessions(&page).await.unwrap()
}

async fn one(desk: &Desk, document: &DocumentId) -> SessionRecord {
    let mut found = of(desk, document).await;
    assert_eq!(found.len(), 1);
    found.remove(0)
}

fn ids(session: &SessionRecord) -> Vec<&str> {
    session.people.iter().map(|person| person.id.as_str()).collect()
}

async fn actions(desk: &Desk, document: &DocumentId) -> Vec<String> {
    let found = desk.ledger.audit(document.as_str(), 0, 1000).await.unwrap();
    found.into_iter().map(|(entry, _)| entry.action).collect()
}

pub async fn people_are_known_by_name_and_since_when(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;

    enter(desk, &key, &["u1"]).await;
    // The second tab of somebody makes no second person of them.
    enter(desk, &key, &["u1", "stranger", "u1"]).await;

    let session = one(desk, &document.id).await;
    assert_eq!((&session.key, session.base), (&key, Some(Label::FIRST)));
    assert_eq!(ids(&session), ["u1", "stranger"]);
    assert_eq!(session.people[0].name, "User u1", "as they were called when they opened");
    assert_eq!(session.people[1].name, "stranger");
    assert!(session.people[0].since < session.people[1].since);
    assert_eq!(session.people[0].last_seen_at, session.people[1].last_seen_at);
    assert_eq!(session.last_seen_at, Some(session.people[0].last_seen_at));
}

pub async fn somebody_who_comes_back_is_there_since_then(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;

    enter(desk, &key, &["u1", "u2"]).await;
    let before = one(desk, &document.id).await.people[0].since;
    enter(desk, &key, &["u2"]).await;
    enter(desk, &key, &["u2", "u1"]).await;

    let session = one(desk, &document.id).await;
    assert_eq!(ids(&session), ["u2", "u1"]);
    assert_eq!(session.people[0].since, before);
    assert!(session.people[1].since > before);
}

pub async fn a_session_says_how_it_stands(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    let stands = async || {
        let session = one(desk, &document.id).await;
        (session.state(), session.unsaved())
    };

    assert_eq!(stands().await, (SessionState::Waiting, Unsaved::No));
    enter(desk, &key, &["u1"]).await;
    assert_eq!(stands().await, (SessionState::Editing, Unsaved::Possible));
    enter(desk, &key, &[]).await;
    assert_eq!(stands().await, (SessionState::Idle, Unsaved::No), "closed without a change");
    enter(desk, &key, &["u1"]).await;
    let receipt = desk.receive(&desk.callback(&key, 2, "17")).await;
    assert_eq!(stands().await, (SessionState::Saving, Unsaved::Yes));
    desk.ledger.commit_save(&desk.prepared(&receipt, SaveKind::Final, b"edited")).await.unwrap();
    assert_eq!(of(desk, &document.id).await, [], "it is over");
    enter(desk, &key, &["u1"]).await;
    assert_eq!(stands().await, (SessionState::LeftBehind, Unsaved::Possible));
    desk.expect_consistent().await;
}

pub async fn a_silent_session_is_closed_when_the_server_says_so_and_its_key_stays(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    enter(desk, &key, &["u1", "u2"]).await;
    desk.pass(900);

    let closed = look(desk, &key, ServerKnowledge::NothingHeld).await;
    let again = look(desk, &key, ServerKnowledge::Unknown).await;

    assert_eq!((closed, again), (LookOutcome::Closed { people: 2 }, LookOutcome::Closed { people: 0 }));
    let session = one(desk, &document.id).await;
    assert_eq!((session.state(), session.unsaved()), (SessionState::Idle, Unsaved::No));
    assert!(session.people.is_empty() && session.looked_at.is_some());
    assert_eq!(desk.current(&document.id).await.editors, Vec::<String>::new());
    let told = actions(desk, &document.id).await;
    assert_eq!(told.iter().filter(|action| *action == "session-closed").count(), 1);
    assert_eq!(desk.key(&document.id).await, key, "the key is handed out again while its base is the head");
    desk.expect_consistent().await;
}

pub async fn a_server_that_is_away_or_sees_somebody_ends_nothing(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    enter(desk, &key, &["u1"]).await;
    desk.pass(100_000);

    for server in [ServerKnowledge::Away, ServerKnowledge::UsersInside] {
        assert_eq!(look(desk, &key, server).await, LookOutcome::GoesOn);
        let session = one(desk, &document.id).await;
        assert_eq!((session.state(), ids(&session)), (SessionState::Editing, vec!["u1"]), "{server:?}");
    }
}

pub async fn changes_without_anybody_inside_are_told_once(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    enter(desk, &key, &["u1"]).await;

    let at_once = look(desk, &key, ServerKnowledge::ChangesHeld).await;
    assert_eq!(at_once, LookOutcome::GoesOn, "they may be on their way to us");
    desk.pass(900);
    let first = look(desk, &key, ServerKnowledge::ChangesHeld).await;
    let second = look(desk, &key, ServerKnowledge::ChangesHeld).await;

    assert_eq!(first, LookOutcome::Stranded { is_news: true });
    assert_eq!(second, LookOutcome::Stranded { is_news: false });
    let session = one(desk, &document.id).await;
    assert_eq!((session.state(), session.unsaved()), (SessionState::Stranded, Unsaved::Yes));
    enter(desk, &key, &["u2"]).await;
    assert_eq!(one(desk, &document.id).await.state(), SessionState::Editing, "somebody brings them back");
}

pub async fn an_answer_older_than_the_last_word_changes_nothing(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    enter(desk, &key, &["u1"]).await;
    desk.pass(900);
    let asked_at = desk.now();
    enter(desk, &key, &["u1", "u2"]).await;

    let quiet_after = SignedDuration::from_secs(10);
    let (server, at) = (ServerKnowledge::NothingHeld, desk.now());
    let look = Look { key, server, asked_at, quiet_after, at };
    assert_eq!(desk.ledger.note_look(&look).await.unwrap(), LookOutcome::GoesOn);

    assert_eq!(ids(&one(desk, &document.id).await), ["u1", "u2"]);
}

pub async fn sessions_are_listed_page_by_page(desk: &Desk) {
    for id in ["a", "b", "c"] {
        let document = desk.document(id).await;
        let key = desk.key(&document.id).await;
        enter(desk, &key, &["u1"]).await;
    }
    let page = async |after: Option<EditorKey>| {
        desk.ledger.sessions(&SessionPage { document: None, after, limit: 2 }).await.unwrap()
    };

    let first = page(None).await;
    let second = page(first.last().map(|session| session.key.clone())).await;

    let documents = |page: &[SessionRecord]| -> Vec<String> {
        page.iter().map(|session| session.document.to_string()).collect()
    };
    assert_eq!((documents(&first), documents(&second)), (vec!["a".into(), "b".into()], vec!["c".into()]));
}

pub async fn whoever_was_named_under_a_key_stays_named_whatever_comes(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    assert!(desk.ledger.named_under(&key).await.unwrap().is_empty(), "handed out, and nobody came");
    enter(desk, &key, &["u1", "u2"]).await;
    let first = desk.ledger.named_under(&key).await.unwrap();
    assert_eq!(first.keys().collect::<Vec<_>>(), ["u1", "u2"]);

    desk.save(&key, 2, b"edited").await;
    assert_eq!(desk.ledger.named_under(&key).await.unwrap(), first, "a final save empties the session");
    enter(desk, &key, &["u2"]).await;

    let now = desk.ledger.named_under(&key).await.unwrap();
    assert_eq!(now.get("u1"), first.get("u1"));
    assert!(now.get("u2") > first.get("u2"));
    let unknown = EditorKey::parse("test_12345_edit_99.k").unwrap();
    assert!(desk.ledger.named_under(&unknown).await.unwrap().is_empty());
}
