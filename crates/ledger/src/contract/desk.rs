//! The one place of the contract that knows the port's shapes: checks say `save(&key, 2, b"text")`.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a broken contract must stop the test that found it")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use jiff::{SignedDuration, Timestamp};
use model::callbacks::Callback;
use model::names::FileName;
use model::opening::ServerKnowledge;
use model::saves::{KeyStanding, SaveKind, SomeoneWaits};
use model::{CompanyId, Digest, DocumentId, EditorKey, Environment, Label, ProjectId};

use crate::documents::{Author, BlobFacts, Company, Document, NewDocument, Project};
use crate::keys::{KeyGrant, KeyRecord, Knowledge, OpenGrant, OpenRequest};
use crate::saves::{Arrival, Committed, PreparedSave, Receipt};
use crate::{Ledger, Result};

/// How long a key must be quiet in these checks.
const QUIET_AFTER: SignedDuration = SignedDuration::from_secs(10);

/// The environment a ledger under contract must issue keys for.
pub fn environment() -> Environment {
    Environment::parse("prod").unwrap()
}

/// A ledger with one company, one project and a clock that moves a second per act.
pub struct Desk {
    /// The ledger under contract.
    pub ledger: Arc<dyn Ledger>,
    second: AtomicI64,
    random: AtomicU64,
}

impl Desk {
    /// Prepares a fresh ledger.
    pub async fn new(ledger: Arc<dyn Ledger>) -> Self {
        let desk = Self { ledger, second: AtomicI64::new(0), random: AtomicU64::new(1) };
        let company = CompanyId::parse("acme").unwrap();
        let created_at = desk.now();
        let name = "Acme".to_owned();
        desk.ledger
            .create_company(&Company::new(company.clone(), name.clone(), created_at), &author("ops"))
            .await
            .unwrap();
        let id = ProjectId::parse("plans").unwrap();
        desk.ledger.create_project(&Project { company, id, name, created_at }, &author("ops")).await.unwrap();
        desk
    }

    /// A desk of another instance that works on the same ledger; its clock and its random numbers are its own.
    pub fn beside(ledger: Arc<dyn Ledger>) -> Self {
        Self { ledger, second: AtomicI64::new(0), random: AtomicU64::new(1_000_000) }
    }

    /// The same desk after its ledger was closed, or lost its process, and opened again.
    pub fn reopened(self, ledger: Arc<dyn Ledger>) -> Self {
        Self { ledger, ..self }
    }

    /// The next second.
    pub fn now(&self) -> Timestamp {
        let second = self.second.fetch_add(1, Ordering::Relaxed);
        Timestamp::from_second(1_794_770_000 + second).unwrap()
    }

    /// Lets time pass.
    pub fn pass(&self, seconds: i64) {
        self.second.fetch_add(seconds, Ordering::Relaxed);
    }

    /// A document to be created.
    pub fn new_document(&self, id: &str, bytes: &[u8]) -> NewDocument {
        NewDocument {
            id: DocumentId::parse(id).unwrap(),
            company: CompanyId::parse("acme").unwrap(),
            project: ProjectId::parse("plans").unwrap(),
            name: FileName::parse("report.docx").unwrap(),
            blob: blob(bytes),
            author: author("u0"),
            at: self.now(),
        }
    }

    /// A document with the content `base`.
    pub async fn document(&self, id: &str) -> Document {
        self.ledger.create_document(&self.new_document(id, b"base")).await.unwrap()
    }

    /// The document as it stands.
    pub async fn current(&self, id: &DocumentId) -> Document {
        self.ledger.document(id).await.unwrap().unwrap()
    }

    /// Asks for a key.
    pub async fn open(&self, document: &DocumentId, knowledge: Option<Knowledge>) -> OpenGrant {
        self.ledger.open_for_editing(&self.wish(document, knowledge)).await.unwrap()
    }

    /// Asks for a key of a document that may not be there.
    pub async fn try_to_open(&self, document: &DocumentId) -> Result<OpenGrant> {
        self.ledger.open_for_editing(&self.wish(document, None)).await
    }

    fn wish(&self, document: &DocumentId, knowledge: Option<Knowledge>) -> OpenRequest {
        let random = self.random.fetch_add(1, Ordering::Relaxed);
        OpenRequest {
            document: document.clone(),
            random,
            knowledge,
            user: author("u1"),
            quiet_after: QUIET_AFTER,
            listening_since: Timestamp::MIN,
            at: self.now(),
        }
    }

    /// What the server says about a key just now.
    pub fn said(&self, asked: &KeyRecord, server: ServerKnowledge) -> Knowledge {
        let (key, saves_received, asked_at) = (asked.key.clone(), asked.saves_received, self.now());
        Knowledge { key, saves_received, server, asked_at }
    }

    /// Asks for a key and expects one. Asked about a key that was saved, the server holds nothing.
    pub async fn key(&self, document: &DocumentId) -> EditorKey {
        self.grant(document).await.key
    }

    /// The same, with the content to start from.
    pub async fn grant(&self, document: &DocumentId) -> KeyGrant {
        match self.open(document, None).await {
            OpenGrant::AskServer(asked)
                if asked.standing == KeyStanding::Retired || asked.saves_received == 0 =>
            {
                granted(self.open(document, Some(self.said(&asked, ServerKnowledge::NothingHeld))).await)
            }
            grant => granted(grant),
        }
    }

    /// A callback with content at a path.
    pub fn callback(&self, key: &EditorKey, status: u8, path: &str) -> Callback {
        Callback {
            url: Some(format!("http://ds/cache/files/data/{key}_{path}/output.docx?md5={}", self.now())),
            file_type: Some("docx".to_owned()),
            users: vec!["u1".to_owned()],
            author_name: Some("User One".to_owned()),
            last_save: Some(self.now()),
            session_start: Timestamp::from_second(1_794_770_000).ok(),
            ..Callback::bare(key.clone(), status)
        }
    }

    /// Delivers a callback.
    pub async fn receive(&self, callback: &Callback) -> Receipt {
        let arrival = Arrival {
            document: callback.key.parts().map(|parts| parts.document),
            callback: callback.clone(),
            at: self.now(),
            identity_window: SignedDuration::from_mins(15),
        };
        self.ledger.receive(&arrival).await.unwrap()
    }

    /// What is committed for a receipt.
    pub fn prepared(&self, receipt: &Receipt, kind: SaveKind, bytes: &[u8]) -> PreparedSave {
        PreparedSave {
            number: receipt.number,
            kind,
            blob: blob(bytes),
            form: None,
            changes: None,
            opened_on: None,
            policy: Arc::default(),
            someone_waits: SomeoneWaits::Yes,
            at: self.now(),
        }
    }

    /// A whole save: delivered, stored, committed, answered.
    pub async fn save(&self, key: &EditorKey, status: u8, bytes: &[u8]) -> Committed {
        let receipt = self.receive(&self.callback(key, status, &Digest::of(bytes).short(4))).await;
        let kind = if status == 2 { SaveKind::Final } else { SaveKind::Checkpoint };
        self.ledger.commit_save(&self.prepared(&receipt, kind, bytes)).await.unwrap()
    }

    /// A final save that is committed although nobody waits for the answer.
    pub async fn save_unheard(&self, key: &EditorKey, bytes: &[u8]) -> Receipt {
        let receipt = self.receive(&self.callback(key, 2, &Digest::of(bytes).short(4))).await;
        let prepared = PreparedSave {
            someone_waits: SomeoneWaits::No,
            ..self.prepared(&receipt, SaveKind::Final, bytes)
        };
        self.ledger.commit_save(&prepared).await.unwrap();
        receipt
    }

    /// The labels of a document's contents, newest first.
    pub async fn labels(&self, document: &DocumentId) -> Vec<String> {
        let contents = self.ledger.contents(document).await.unwrap();
        contents.iter().map(|content| content.label.to_string()).collect()
    }

    /// Asserts what the head is.
    pub async fn expect_head(&self, document: &DocumentId, label: &str, bytes: &[u8]) {
        let current = self.current(document).await;
        assert_eq!((current.head, current.head_digest), (Label::parse(label).unwrap(), Digest::of(bytes)));
    }

    /// Asserts that no row contradicts another.
    pub async fn expect_consistent(&self) {
        assert_eq!(self.ledger.inconsistencies().await.unwrap(), []);
    }
}

/// A person.
pub(super) fn author(id: &str) -> Author {
    Author::new(id, format!("User {id}"))
}

/// Bytes as the ledger sees them.
pub(super) fn blob(bytes: &[u8]) -> BlobFacts {
    BlobFacts::plain(Digest::of(bytes), bytes.len() as u64, "docx")
}

/// The key that was granted.
pub(super) fn granted(grant: OpenGrant) -> KeyGrant {
    match grant {
        OpenGrant::Granted(grant) => grant,
        other => panic!("expected a key, got {other:?}"),
    }
}
