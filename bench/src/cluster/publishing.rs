//! `publish_version`, the commit of a final save, through the port of the ledger: the most a ledger can carry.
//!
//! Each save is the first of a document of its own: it makes version 2, moves the head, retires the key, and appends to the
//! audit trail. Documents, keys and callbacks are put in before, so that the commit alone is measured. Their names and bytes
//! follow from their number, so that pgbench can do the same to others of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use jiff::{SignedDuration, Timestamp};
use ledger::Ledger;
use ledger::documents::{Author, BlobFacts, Company, NewDocument, Project};
use ledger::keys::{OpenGrant, OpenRequest};
use ledger::saves::{Arrival, PreparedSave};
use model::callbacks::Callback;
use model::names::FileName;
use model::saves::{SaveKind, SomeoneWaits};
use model::{CompanyId, Digest, DocumentId, EditorKey, Environment, InboxNumber, Label, ProjectId};
use tokio::task::JoinSet;

/// When everything happens; only order matters.
const AT_S: i64 = 1_794_770_000;
/// Size of what is saved: the ledger only writes the number down.
const SIZE_BYTES: u64 = 100_000;
/// Documents that are put in side by side.
const FURNISHED_AT_ONCE: u64 = 16;

pub(super) fn environment() -> Result<Environment> {
    Environment::parse("bench").context("an environment")
}

/// The id of a document of a set.
pub(super) fn document_id(set: char, number: u64) -> String {
    format!("{set}{number:07}")
}

/// What is saved into it: bytes that differ only in their end.
pub(super) fn digest(number: u64) -> Digest {
    let mut bytes = [0xbe; 32];
    bytes[24..].copy_from_slice(&number.to_be_bytes());
    Digest::new(bytes)
}

fn at() -> Result<Timestamp> {
    Ok(Timestamp::from_second(AT_S)?)
}

fn author() -> Author {
    Author::new("u1", "User One")
}

/// A company and a project.
pub(super) async fn furnish(ledger: &dyn Ledger) -> Result<()> {
    let (company, id) = (company()?, project()?);
    ledger.create_company(&Company::new(company.clone(), "Bench".to_owned(), at()?), &author()).await?;
    let project = Project { company, id, name: "Saves".to_owned(), created_at: at()? };
    Ok(ledger.create_project(&project, &author()).await?)
}

fn company() -> Result<CompanyId> {
    CompanyId::parse("bench").ok().context("a company")
}

fn project() -> Result<ProjectId> {
    ProjectId::parse("saves").ok().context("a project")
}

/// A set of documents with a received final save each.
pub(super) struct Saves {
    ledger: Arc<dyn Ledger>,
    set: char,
    /// The callbacks, by the number of the document.
    received: Vec<InboxNumber>,
    next: AtomicU64,
}

impl Saves {
    /// Puts them in: documents and keys side by side, callbacks in their order.
    pub(super) async fn prepare(ledger: Arc<dyn Ledger>, set: char, count: u64) -> Result<Self> {
        let mut opening = JoinSet::new();
        for lane in 0..FURNISHED_AT_ONCE {
            let ledger = Arc::clone(&ledger);
            opening.spawn(async move {
                let mut opened = Vec::new();
                for number in (lane..count).step_by(usize::try_from(FURNISHED_AT_ONCE)?) {
                    opened.push((number, open(&*ledger, &document_id(set, number)).await?));
                }
                anyhow::Ok(opened)
            });
        }
        let mut keys = Vec::new();
        while let Some(opened) = opening.join_next().await {
            keys.extend(opened??);
        }
        keys.sort_by_key(|(number, _)| *number);
        let mut received = Vec::new();
        for (_, key) in keys {
            received.push(receive(&*ledger, key).await?);
        }
        Ok(Self { ledger, set, received, next: AtomicU64::new(0) })
    }

    pub(super) fn first_received(&self) -> Option<InboxNumber> {
        self.received.first().copied()
    }

    /// The callbacks have numbers without a gap.
    pub(super) fn is_dense(&self) -> bool {
        self.received.windows(2).all(|pair| pair[1].0 == pair[0].0 + 1)
    }

    /// Commits the next ones, so many of them, so many at once; says how many there are in a second.
    pub(super) async fn publish(self: &Arc<Self>, count: u64, depth: usize) -> Result<f64> {
        let end = self.next.load(Ordering::Relaxed) + count;
        let began = Instant::now();
        let mut workers = JoinSet::new();
        for _ in 0..depth {
            let saves = Arc::clone(self);
            workers.spawn(async move {
                loop {
                    let number = saves.next.fetch_add(1, Ordering::Relaxed);
                    if number >= end {
                        return anyhow::Ok(());
                    }
                    saves.commit(&*saves.ledger, number).await?;
                }
            });
        }
        while let Some(done) = workers.join_next().await {
            done??;
        }
        self.next.store(end, Ordering::Relaxed);
        #[allow(clippy::cast_precision_loss, reason = "counts of saves are small")]
        Ok(count as f64 / began.elapsed().as_secs_f64())
    }

    /// Commits one of them.
    pub(super) async fn commit(&self, ledger: &dyn Ledger, number: u64) -> Result<()> {
        let index = usize::try_from(number)?;
        let save = PreparedSave {
            number: *self.received.get(index).context("there are not so many")?,
            kind: SaveKind::Final,
            blob: BlobFacts::plain(digest(number), SIZE_BYTES, "docx"),
            form: None,
            changes: None,
            opened_on: None,
            policy: Arc::default(),
            someone_waits: SomeoneWaits::Yes,
            at: at()?,
        };
        let committed = ledger.commit_save(&save).await?;
        let document = document_id(self.set, number);
        ensure!(committed.label == Some(Label::version(2)), "{document} became {committed:?}");
        Ok(())
    }
}

async fn open(ledger: &dyn Ledger, id: &str) -> Result<EditorKey> {
    let id = DocumentId::parse(id).ok().context("a document")?;
    let new = NewDocument {
        id: id.clone(),
        company: company()?,
        project: project()?,
        name: FileName::parse("bench.docx").ok().context("a name")?,
        blob: BlobFacts::plain(Digest::of(b"base"), SIZE_BYTES, "docx"),
        author: author(),
        at: at()?,
    };
    ledger.create_document(&new).await?;
    let wish = OpenRequest {
        document: id,
        // The same for all: a key is told apart by its document.
        random: 7,
        knowledge: None,
        user: author(),
        quiet_after: SignedDuration::from_secs(10),
        listening_since: Timestamp::MIN,
        at: at()?,
    };
    match ledger.open_for_editing(&wish).await? {
        OpenGrant::Granted(grant) => Ok(grant.key),
        other => bail!("a new document was not opened: {other:?}"),
    }
}

async fn receive(ledger: &dyn Ledger, key: EditorKey) -> Result<InboxNumber> {
    let callback = Callback {
        url: Some(format!("http://ds/cache/files/data/{key}_1/output.docx/output.docx?md5=x")),
        file_type: Some("docx".to_owned()),
        users: vec!["u1".to_owned()],
        author_name: Some("User One".to_owned()),
        last_save: Some(at()?),
        session_start: Some(at()?),
        ..Callback::bare(key, 2)
    };
    let arrival = Arrival {
        document: callback.key.parts().map(|parts| parts.document),
        callback,
        at: at()?,
        identity_window: SignedDuration::from_mins(15),
    };
    Ok(ledger.receive(&arrival).await?.number)
}
