//! Who waits for whom, and in which order: the one place to read before a step takes a lock.
//!
//! SQLite has one writer; here a step must say what it is alone with. Locks are taken in this order, so that no two steps
//! can wait for each other:
//!
//! 1. a new name (an unknown key, say), by [`name`],
//! 2. documents, in the order of their ids ([`document`]); a step that needs many takes those that are free (`SKIP LOCKED`),
//! 3. scopes of records and their summary logs ([`super::log_rows`]),
//! 4. blobs, by naming them,
//! 5. companies ([`company`]), for their limits and their audit chain,
//! 6. what companies use, by the triggers,
//! 7. the numbers of mentions, then chains of neither ([`chain`]): the installation, organisations, scopes,
//! 8. what others are told of one document or scope ([`stream`]).
//!
//! A new document is nobody else's before it is committed, so adding it after its company was locked breaks no order. The
//! locks are `FOR NO KEY UPDATE`: they exclude each other and every change, but not the foreign keys of other rows. Each
//! waits at most [`super::Options::wait_max`]; then the step is refused as busy. All of them end with the transaction.
//!
//! Should two steps wait for each other all the same, the server ends one of them after a second: `Busy`, nothing done.

use model::{CompanyId, DocumentId, EditorKey, InboxNumber};

use super::rows::Stored;
use super::step::Step;
use crate::{LedgerError, Result};

/// Names of advisory locks, so that a document and a key of the same name do not meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Something that has no row yet.
    Name,
    /// What others are told.
    Stream,
    /// Who is told.
    Webhooks,
    /// The numbers of mentions.
    Mentions,
}

impl Kind {
    const fn seed(self) -> i64 {
        match self {
            Self::Name => 0x53_47_01,
            Self::Stream => 0x53_47_02,
            Self::Webhooks => 0x53_47_03,
            Self::Mentions => 0x53_47_04,
        }
    }
}

/// Locks a document. False: there is none. One statement, as [`callback`]: `receive` reads right behind it.
pub(super) async fn document(step: &Step, id: &DocumentId) -> Result<bool> {
    step.exists("SELECT 1 FROM documents WHERE id = $1 FOR NO KEY UPDATE", &[&id.as_str()]).await
}

/// Locks a document that must be there.
pub(super) async fn known_document(step: &Step, id: &DocumentId) -> Result<()> {
    if document(step, id).await? { Ok(()) } else { Err(LedgerError::not_found(format!("document `{id}`"))) }
}

/// Locks the document of a key. None: nobody knows such a key.
pub(super) async fn document_of_key(step: &Step, key: &EditorKey) -> Result<Option<DocumentId>> {
    let query = "SELECT d.id FROM documents d WHERE d.id = (SELECT k.document FROM keys k WHERE k.key = $1)
                 FOR NO KEY UPDATE OF d";
    let row = step.query_optional(query, &[&key.as_str()]).await?;
    row.map(|row| super::rows::get(&row, "id")).transpose()
}

/// Locks the document of a callback, or the callback itself if it belongs to none. The document's lock must stay one statement:
/// `commit_save` sends what it reads right behind it, without waiting for its answer.
pub(super) async fn callback(step: &Step, number: InboxNumber) -> Result<()> {
    let query =
        "SELECT d.id FROM documents d WHERE d.id = (SELECT i.document FROM inbox i WHERE i.number = $1)
                 FOR NO KEY UPDATE OF d";
    if !step.exists(query, &[&Stored(number)]).await? {
        let query = "SELECT 1 FROM inbox WHERE number = $1 FOR NO KEY UPDATE";
        step.exists(query, &[&Stored(number)]).await?;
    }
    Ok(())
}

/// Locks a company. False: there is none.
pub(super) async fn company(step: &Step, id: &CompanyId) -> Result<bool> {
    step.exists("SELECT 1 FROM companies WHERE id = $1 FOR NO KEY UPDATE", &[&id.as_str()]).await
}

/// Locks the company of a document.
pub(super) async fn company_of(step: &Step, document: &DocumentId) -> Result<()> {
    let query = "SELECT 1 FROM companies c WHERE c.id = (SELECT d.company FROM documents d WHERE d.id = $1)
                 FOR NO KEY UPDATE OF c";
    step.query_one(query, &[&document.as_str()]).await.map(drop)
}

/// Locks the end of a chain that is in no row of a document or company, and says where it is: its length and last hash.
pub(super) async fn chain(step: &Step, chain: &str) -> Result<(u64, model::Digest)> {
    step.execute(
        "INSERT INTO chains (chain, sequence, hash) VALUES ($1, 0, $2) ON CONFLICT DO NOTHING",
        &[&chain, &Stored(model::audit::CHAIN_START)],
    )
    .await?;
    let query = "SELECT sequence, hash FROM chains WHERE chain = $1 FOR NO KEY UPDATE";
    let row = step.query_one(query, &[&chain]).await?;
    Ok((super::rows::get(&row, "sequence")?, super::rows::get(&row, "hash")?))
}

/// Locks a name that has no row yet.
pub(super) async fn name(step: &Step, name: &str) -> Result<()> {
    advisory(step, Kind::Name, name).await
}

/// Locks what others are told of one document or scope. Nothing else is locked after it.
pub(super) async fn stream(step: &Step, chain: &str) -> Result<()> {
    advisory(step, Kind::Stream, chain).await
}

pub(super) async fn advisory(step: &Step, kind: Kind, name: &str) -> Result<()> {
    let query = "SELECT pg_advisory_xact_lock(hashtextextended($1, $2))";
    step.query(query, &[&name, &kind.seed()]).await.map(drop)
}
