//! The part of the port about share links and their guests.
//!
//! Guarantees: the token itself is never here, only its hash; a revoked link stays listed and revoked for ever. Admitting a guest, the
//! session they get and the revocation are steps that see each other: nobody is given a session of a link that is revoked, and
//! whoever was given one before is on the list of those who are asked to leave, also after a restart.
//! Does not do: ask anybody to leave (`recovering` does), check passwords, count misses.

use async_trait::async_trait;
use jiff::Timestamp;
use model::sharing::{Allows, DownloadSwitch};
use model::{Digest, DocumentId, EditorKey};

use crate::Result;
use crate::documents::Author;

/// Share links.
#[async_trait]
pub trait Shares: Send + Sync {
    /// Adds a link. Its document must exist.
    async fn create_share(&self, new: &NewShare) -> Result<Share>;
    /// The link with this hash, whether it counts or not.
    async fn share_by_hash(&self, hash: &Digest) -> Result<Option<Share>>;
    /// One link.
    async fn share(&self, number: u64) -> Result<Option<Share>>;
    /// A page of a document's links, oldest first, from the one after `after`.
    async fn shares(&self, document: &DocumentId, after: u64, limit: u32) -> Result<Vec<Share>>;
    /// Counts a use and gives it a guest; `None` if the link does not count at this time.
    async fn admit_guest(&self, visit: &Visit) -> Result<Option<Guest>>;
    /// One guest.
    async fn guest(&self, share: u64, number: u64) -> Result<Option<Guest>>;
    /// Notes the key a guest is about to be given; `false` if the link does not count any more: then they must not have it.
    async fn seat_guest(&self, session: &GuestSession, at: Timestamp) -> Result<bool>;
    /// Revokes a link and lists the guests who may be inside; `false` if it was revoked before.
    async fn revoke_share(&self, revocation: &ShareRevocation) -> Result<bool>;
    /// Guests who have to be asked to leave: now, and once more when their configuration has ended.
    async fn guests_to_drop(&self, now: Timestamp, limit: u32) -> Result<Vec<GuestSession>>;
    /// These were asked to leave.
    async fn note_dropped(&self, sessions: &[GuestSession], at: Timestamp) -> Result<()>;
    /// Which of these users are guests of revoked links.
    async fn unwelcome(&self, users: &[String]) -> Result<Vec<String>>;
    /// Writes down that somebody was refused, in the chain of the link's document. Whoever calls this sees to it that it stays
    /// seldom.
    async fn note_refused(&self, refused: &RefusedVisit) -> Result<()>;
}

/// A link to be added.
#[derive(Debug, Clone)]
pub struct NewShare {
    /// The SHA-256 of the token.
    pub hash: Digest,
    /// What it opens.
    pub document: DocumentId,
    /// What people call it; may be empty.
    pub label: String,
    /// What it allows.
    pub allows: Allows,
    /// Whether its guests may take the bytes away.
    pub download: DownloadSwitch,
    /// The hash of its password, if it has one.
    pub password: Option<String>,
    /// Until when it counts; for ever if not set.
    pub expires_at: Option<Timestamp>,
    /// Who made it.
    pub by: Author,
    /// When.
    pub at: Timestamp,
}

/// A link as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// Its number.
    pub number: u64,
    /// What it opens.
    pub document: DocumentId,
    /// What people call it; may be empty.
    pub label: String,
    /// What it allows.
    pub allows: Allows,
    /// Whether its guests may take the bytes away.
    pub download: DownloadSwitch,
    /// The hash of its password, if it has one.
    pub password: Option<String>,
    /// Who made it.
    pub created_by: String,
    /// When.
    pub created_at: Timestamp,
    /// Until when it counts; for ever if not set.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// How often it was used.
    pub uses: u64,
    /// When last.
    pub last_used_at: Option<Timestamp>,
}

impl Share {
    /// Whether it opens anything at this time.
    pub fn counts_at(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|expires_at| now < expires_at)
    }
}

/// Somebody comes through a link.
#[derive(Debug, Clone)]
pub struct Visit {
    /// Through which.
    pub share: u64,
    /// What they call themselves.
    pub said_name: Option<String>,
    /// From which address.
    pub from: String,
    /// When.
    pub at: Timestamp,
}

/// Somebody who came through a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guest {
    /// Through which.
    pub share: u64,
    /// Their number among its guests.
    pub number: u64,
    /// What they are called.
    pub name: String,
}

impl Guest {
    /// Their id in the editor, in histories and in the audit trail.
    pub fn id(&self) -> String {
        model::sharing::guest_id(self.share, self.number)
    }
}

/// A key that a guest was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestSession {
    /// Through which link they came.
    pub share: u64,
    /// Their number among its guests.
    pub guest: u64,
    /// The key.
    pub key: EditorKey,
    /// Until when their configuration opens it.
    pub until: Timestamp,
}

/// A link to be revoked.
#[derive(Debug, Clone)]
pub struct ShareRevocation {
    /// Which one.
    pub number: u64,
    /// Who wants it.
    pub by: Author,
    /// When.
    pub at: Timestamp,
}

/// Somebody was refused.
#[derive(Debug, Clone)]
pub struct RefusedVisit {
    /// At which link.
    pub share: u64,
    /// Why, in a word: `wrong-password`, `too-many-passwords`, `revoked`, `expired`.
    pub why: &'static str,
    /// From which address.
    pub from: String,
    /// When.
    pub at: Timestamp,
}
