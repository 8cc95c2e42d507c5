//! The part of the port about companies, projects, documents and their contents.

use async_trait::async_trait;
use jiff::Timestamp;
use model::callbacks::AsideReason;
use model::checking::Extent;
use model::names::FileName;
use model::quotas::{Quota, Usage};
use model::saves::ConflictReason;
use model::versions::Origin;
use model::{CompanyId, Digest, DocumentId, EditorKey, InboxNumber, Label, ProjectId};

use crate::Result;
use crate::searching::{DocumentSearch, FoundDocuments, walk};

/// Companies, projects, documents, and what each document holds.
#[async_trait]
pub trait Documents: Send + Sync {
    /// Adds a company.
    async fn create_company(&self, company: &Company, by: &Author) -> Result<()>;
    /// All companies, by id.
    async fn companies(&self) -> Result<Vec<Company>>;
    /// One company.
    async fn company(&self, id: &CompanyId) -> Result<Option<Company>>;
    /// Changes a company's name or limits.
    async fn change_company(&self, change: &CompanyChange) -> Result<Company>;
    /// Adds a project to a company.
    async fn create_project(&self, project: &Project, by: &Author) -> Result<()>;
    /// Changes a project's name.
    async fn rename_project(&self, renaming: &ProjectRenaming) -> Result<Project>;
    /// The projects of a company, by id.
    async fn projects(&self, company: &CompanyId) -> Result<Vec<Project>>;

    /// Adds a document with its first version: both, or neither. Refused if it would pass a limit of its company; the
    /// count is taken in the same step, so that two uploads cannot share the last place.
    async fn create_document(&self, new: &NewDocument) -> Result<Document>;
    /// One document.
    async fn document(&self, id: &DocumentId) -> Result<Option<Document>>;
    /// A page of a company's documents, by id.
    async fn documents(&self, page: &DocumentPage) -> Result<Vec<Document>>;
    /// Documents by what people know of them: a page, and how many there are. By default every document is looked at.
    async fn find_documents(&self, search: &DocumentSearch) -> Result<FoundDocuments> {
        walk(self, search).await
    }
    /// Every version and checkpoint of a document, newest first.
    async fn contents(&self, id: &DocumentId) -> Result<Vec<Content>>;
    /// One version or checkpoint.
    async fn content(&self, id: &DocumentId, label: Label) -> Result<Option<Content>>;
    /// What could not become the head: a page, newest first.
    async fn kept_copies(&self, page: &KeptPage) -> Result<Vec<KeptCopy>>;
    /// One kept copy.
    async fn kept_copy(&self, number: u64) -> Result<Option<KeptCopy>>;
    /// Keeps a blob that no row names: a conflict copy of its document, or an orphan. Already kept means nothing new.
    async fn keep_unnamed(&self, found: &UnnamedBlob) -> Result<Option<u64>>;
}

/// A customer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Company {
    /// Its id.
    pub id: CompanyId,
    /// What people call it.
    pub name: String,
    /// When it was added.
    pub created_at: Timestamp,
    /// How much it may keep.
    pub quota: Quota,
    /// How much it has, as it stands; a new one has nothing.
    pub usage: Usage,
}

impl Company {
    /// A company to be added, without limits.
    pub fn new(id: CompanyId, name: String, created_at: Timestamp) -> Self {
        Self { id, name, created_at, quota: Quota::default(), usage: Usage::default() }
    }
}

/// What shall be different about a company; what is not named stays.
#[derive(Debug, Clone)]
pub struct CompanyChange {
    /// Which one.
    pub id: CompanyId,
    /// Its new name.
    pub name: Option<String>,
    /// Its new limits. Smaller than what it has means that nothing can be added; nothing is removed.
    pub quota: Option<Quota>,
    /// Who wants it.
    pub by: Author,
    /// When.
    pub at: Timestamp,
}

/// A project's new name.
#[derive(Debug, Clone)]
pub struct ProjectRenaming {
    /// The company it belongs to.
    pub company: CompanyId,
    /// Which one.
    pub id: ProjectId,
    /// Its new name.
    pub name: String,
    /// Who wants it.
    pub by: Author,
    /// When.
    pub at: Timestamp,
}

/// A folder of documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// The company it belongs to.
    pub company: CompanyId,
    /// Its id, unique in the company.
    pub id: ProjectId,
    /// What people call it.
    pub name: String,
    /// When it was added.
    pub created_at: Timestamp,
}

/// Who made a content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// The id the host application knows.
    pub id: String,
    /// The name shown to people.
    pub name: String,
    /// The address they called from, for the audit trail; empty if that is not known. Not kept with the content.
    pub from: String,
}

impl Author {
    /// Somebody, from wherever.
    pub fn new(id: impl Into<String>, name: impl Into<String>) -> Self {
        Self { id: id.into(), name: name.into(), from: String::new() }
    }

    /// The same, calling from an address.
    #[must_use]
    pub fn calling_from(self, from: impl Into<String>) -> Self {
        Self { from: from.into(), ..self }
    }

    /// Acts of the service itself.
    pub fn saveguard() -> Self {
        Self::new("saveguard", "Saveguard")
    }
}

/// A blob a row is about to name. It must be durable in the vault already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobFacts {
    /// The hash it lies under.
    pub digest: Digest,
    /// Its length.
    pub size_bytes: u64,
    /// What the bytes are, from the content: `docx`, `xlsx` …
    pub file_type: String,
    /// Findings of the office check that did not refuse it, comma-separated; empty if none.
    pub flags: String,
    /// How much it holds, if that was counted.
    pub extent: Option<Extent>,
    /// How often it had been removed before it was stored. If it was removed since, no row may name it: the bytes are not there.
    pub removals: u64,
}

impl BlobFacts {
    /// Bytes of which no more is known than what they are, and which never were removed.
    pub fn plain(digest: Digest, size_bytes: u64, file_type: &str) -> Self {
        let file_type = file_type.to_owned();
        Self { digest, size_bytes, file_type, flags: String::new(), extent: None, removals: 0 }
    }
}

/// A document to be added.
#[derive(Debug, Clone)]
pub struct NewDocument {
    /// Its id.
    pub id: DocumentId,
    /// Its place.
    pub company: CompanyId,
    /// Its place in the company.
    pub project: ProjectId,
    /// Its file name.
    pub name: FileName,
    /// Its first content.
    pub blob: BlobFacts,
    /// Who uploaded it.
    pub author: Author,
    /// When.
    pub at: Timestamp,
}

/// A document as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its id.
    pub id: DocumentId,
    /// Its place.
    pub company: CompanyId,
    /// Its place in the company.
    pub project: ProjectId,
    /// Its file name.
    pub name: FileName,
    /// When it was added.
    pub created_at: Timestamp,
    /// The newest version or checkpoint.
    pub head: Label,
    /// The head's bytes.
    pub head_digest: Digest,
    /// The head's length.
    pub head_size_bytes: u64,
    /// What the head's bytes are.
    pub head_file_type: String,
    /// When the head last moved.
    pub head_moved_at: Timestamp,
    /// The key whose save made the head, if one did.
    pub head_key: Option<EditorKey>,
    /// Who is editing, as the Document Server last said.
    pub editors: Vec<String>,
    /// When it was deleted, if it was.
    pub deleted_at: Option<Timestamp>,
}

/// Which documents to list.
#[derive(Debug, Clone)]
pub struct DocumentPage {
    /// Of this company.
    pub company: CompanyId,
    /// Of this project only.
    pub project: Option<ProjectId>,
    /// The deleted ones instead of those that are there.
    pub deleted: bool,
    /// After this id.
    pub after: Option<DocumentId>,
    /// At most so many.
    pub limit: u32,
}

/// A version or checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// Its number.
    pub label: Label,
    /// How it came.
    pub origin: Origin,
    /// Its bytes.
    pub blob: BlobFacts,
    /// Who made the last change in it.
    pub author: Author,
    /// When it was committed, by our clock.
    pub committed_at: Timestamp,
    /// When its last change was made, by the Document Server's clock.
    pub saved_at: Option<Timestamp>,
    /// The key it was saved under.
    pub key: Option<EditorKey>,
    /// The callback it came with.
    pub inbox: Option<InboxNumber>,
    /// Whether it arrived late and was filed beside a newer one without moving the head.
    pub is_filed_beside: bool,
    /// The Document Server's list of who changed what, as sent.
    pub history: Option<String>,
    /// Version of the server that wrote it.
    pub server_version: Option<String>,
    /// The server's record of the changes themselves, if it was kept: its hash and length.
    pub changes: Option<(Digest, u64)>,
    /// When its bytes were let go, if they were.
    pub pruned_at: Option<Timestamp>,
}

/// Why something is kept outside the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeping {
    /// A good content that may not become the head by itself.
    Conflict(ConflictReason),
    /// A damaged or failed save.
    Quarantine(AsideReason),
    /// Bytes whose document cannot be told.
    Orphan,
}

impl Keeping {
    /// The word for the kind: `conflict`, `quarantine`, `orphan`.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Conflict(_) => "conflict",
            Self::Quarantine(_) => "quarantine",
            Self::Orphan => "orphan",
        }
    }

    /// The word for the reason.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Conflict(reason) => reason.as_str(),
            Self::Quarantine(reason) => reason.as_str(),
            Self::Orphan => "unknown-document",
        }
    }

    /// Reads both words back.
    pub fn parse(kind: &str, reason: &str) -> Option<Self> {
        match kind {
            "conflict" => ConflictReason::parse(reason).map(Self::Conflict),
            "quarantine" => AsideReason::parse(reason).map(Self::Quarantine),
            "orphan" => Some(Self::Orphan),
            _ => None,
        }
    }
}

/// Bytes that could not become the head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptCopy {
    /// Its number.
    pub number: u64,
    /// Whose it is; unknown for an orphan.
    pub document: Option<DocumentId>,
    /// Why it is kept.
    pub keeping: Keeping,
    /// The bytes.
    pub blob: BlobFacts,
    /// The key it came under.
    pub key: Option<EditorKey>,
    /// The callback it came with.
    pub inbox: Option<InboxNumber>,
    /// Who made the last change in it.
    pub author: Author,
    /// When it was kept.
    pub kept_at: Timestamp,
    /// When a person settled it, and as what: `used` or `dismissed`.
    pub settled: Option<(Timestamp, String)>,
    /// When its bytes were let go, if they were.
    pub pruned_at: Option<Timestamp>,
}

/// Whose kept copies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    /// Of everybody, and of nobody.
    All,
    /// Of this document.
    Document(DocumentId),
    /// Of no document: the orphans.
    Nobody,
    /// Of everybody and of nobody, as long as they wait for a person.
    Waiting,
}

/// Which kept copies to list.
#[derive(Debug, Clone)]
pub struct KeptPage {
    /// Whose they are.
    pub of: Whose,
    /// Older than this number.
    pub before: Option<u64>,
    /// At most so many.
    pub limit: u32,
}

/// A blob found in the vault without a row that names it.
#[derive(Debug, Clone)]
pub struct UnnamedBlob {
    /// The bytes.
    pub blob: BlobFacts,
    /// The document its sidecar names.
    pub document: Option<DocumentId>,
    /// The key its sidecar names.
    pub key: Option<EditorKey>,
    /// Whether it can only be the record of changes of some save: then it is not kept, only named until it may go.
    pub is_record_of_changes: bool,
    /// When it was found.
    pub at: Timestamp,
}
