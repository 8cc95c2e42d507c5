//! Companies, projects, documents and what they hold, on SQLite.

use async_trait::async_trait;
use model::saves::ConflictReason;
use model::versions::Origin;
use model::{CompanyId, DocumentId, Label};
use rusqlite::{Connection, ToSql, params, params_from_iter};
use serde_json::json;

use super::audit::{Act, Actor, anchor_company, append};
use super::contents::{self, NewContent, NewKept};
use super::facts::exists;
use super::rows::{
    CONTENT_COLUMNS, DOCUMENT_COLUMNS, KEPT_COLUMNS, Stored, asked, content, document, kept, ms, optional,
};
use super::{SqliteLedger, companies, keys, searching};
use crate::documents::{
    Author, Company, CompanyChange, Content, Document, DocumentPage, Keeping, KeptCopy, KeptPage,
    NewDocument, Whose,
};
use crate::documents::{Project, ProjectRenaming, UnnamedBlob};
use crate::searching::{DocumentSearch, FoundDocuments};
use crate::{Documents, LedgerError, Result};

#[async_trait]
impl Documents for SqliteLedger {
    async fn create_company(&self, company: &Company, by: &Author) -> Result<()> {
        let (company, by) = (company.clone(), by.clone());
        self.write(move |connection, _| companies::create(connection, &company, &by)).await
    }

    async fn companies(&self) -> Result<Vec<Company>> {
        self.read(companies::list).await
    }

    async fn company(&self, id: &CompanyId) -> Result<Option<Company>> {
        let id = id.clone();
        self.read(move |connection| companies::find(connection, &id)).await
    }

    async fn change_company(&self, change: &CompanyChange) -> Result<Company> {
        let change = change.clone();
        self.write(move |connection, _| companies::change(connection, &change)).await
    }

    async fn create_project(&self, project: &Project, by: &Author) -> Result<()> {
        let (project, by) = (project.clone(), by.clone());
        self.write(move |connection, _| companies::create_project(connection, &project, &by)).await
    }

    async fn rename_project(&self, renaming: &ProjectRenaming) -> Result<Project> {
        let renaming = renaming.clone();
        self.write(move |connection, _| companies::rename_project(connection, &renaming)).await
    }

    async fn projects(&self, company: &CompanyId) -> Result<Vec<Project>> {
        let company = company.clone();
        self.read(move |connection| companies::projects(connection, &company)).await
    }

    async fn create_document(&self, new: &NewDocument) -> Result<Document> {
        let new = new.clone();
        self.write(move |connection, _| create_document(connection, &new)).await
    }

    async fn document(&self, id: &DocumentId) -> Result<Option<Document>> {
        let id = id.clone();
        self.read(move |connection| find(connection, &id)).await
    }

    async fn documents(&self, page: &DocumentPage) -> Result<Vec<Document>> {
        let page = page.clone();
        self.read(move |connection| list(connection, &page)).await
    }

    async fn find_documents(&self, search: &DocumentSearch) -> Result<FoundDocuments> {
        let search = search.clone();
        self.read(move |connection| searching::find(connection, &search)).await
    }

    async fn contents(&self, id: &DocumentId) -> Result<Vec<Content>> {
        let id = id.clone();
        self.read(move |connection| {
            let query = format!(
                "SELECT {CONTENT_COLUMNS} WHERE c.document = ?1 ORDER BY c.version DESC, c.checkpoint DESC"
            );
            let mut query = connection.prepare_cached(&query)?;
            Ok(query.query_map([id.as_str()], content)?.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    async fn content(&self, id: &DocumentId, label: Label) -> Result<Option<Content>> {
        let id = id.clone();
        self.read(move |connection| {
            let query = format!(
                "SELECT {CONTENT_COLUMNS} WHERE c.document = ?1 AND c.version = ?2 AND c.checkpoint = ?3"
            );
            let mut query = connection.prepare_cached(&query)?;
            optional(query.query_row(params![id.as_str(), label.version, label.checkpoint], content))
        })
        .await
    }

    async fn kept_copies(&self, page: &KeptPage) -> Result<Vec<KeptCopy>> {
        let page = page.clone();
        self.read(move |connection| list_kept(connection, &page)).await
    }

    async fn kept_copy(&self, number: u64) -> Result<Option<KeptCopy>> {
        self.read(move |connection| {
            let mut query =
                connection.prepare_cached(&format!("SELECT {KEPT_COLUMNS} WHERE k.number = ?1"))?;
            optional(query.query_row([asked(number)], kept))
        })
        .await
    }

    async fn keep_unnamed(&self, found: &UnnamedBlob) -> Result<Option<u64>> {
        let found = found.clone();
        self.write(move |connection, _| keep_unnamed(connection, &found)).await
    }
}

fn create_document(connection: &Connection, new: &NewDocument) -> Result<Document> {
    let place = params![new.company.as_str(), new.project.as_str()];
    if !exists(connection, "SELECT 1 FROM projects WHERE company = ?1 AND id = ?2", place)? {
        return Err(LedgerError::not_found(format!("project `{}`", new.project)));
    }
    // The id of a purged document stays taken: its keys and its audit chain are for ever.
    if exists(connection, "SELECT 1 FROM documents WHERE id = ?1", params![new.id.as_str()])? {
        return Err(LedgerError::AlreadyExists { what: format!("document `{}`", new.id) });
    }
    companies::refuse_over_quota(connection, &new.company, new.blob.size_bytes)?;
    contents::name_blob(connection, &new.blob, new.at)?;
    connection
        .prepare_cached(
            "INSERT INTO documents (id, company, project, name, created_ms, head_version, head_checkpoint, head_digest,
             head_moved_ms, last_version, owes_since_ms) VALUES (?1, ?2, ?3, ?4, ?5, 1, 0, ?6, ?5, 1, ?5)",
        )?
        .execute(params![
            new.id.as_str(),
            new.company.as_str(),
            new.project.as_str(),
            new.name.as_str(),
            ms(new.at),
            Stored(new.blob.digest)
        ])?;
    let content = NewContent::without_session(
        (&new.id, Label::FIRST),
        (Origin::Upload, &new.blob),
        (&new.author, new.at),
    );
    contents::add_content(connection, &content)?;
    let details =
        json!({ "label": "1", "digest": new.blob.digest.to_string(), "sizeBytes": new.blob.size_bytes });
    let actor = Actor::person(&new.author);
    append(connection, &Act { document: &new.id, at: new.at, actor, action: "document-uploaded", details })?;
    anchor_company(connection, &new.company, new.at)?;
    find(connection, &new.id)?.ok_or_else(|| LedgerError::damaged("a document that was just written is gone"))
}

pub(super) fn find(connection: &Connection, id: &DocumentId) -> Result<Option<Document>> {
    let mut query = connection
        .prepare_cached(&format!("SELECT {DOCUMENT_COLUMNS} WHERE d.id = ?1 AND d.purged_ms IS NULL"))?;
    optional(query.query_row([id.as_str()], document))
}

fn list(connection: &Connection, page: &DocumentPage) -> Result<Vec<Document>> {
    let deleted = if page.deleted { "IS NOT NULL" } else { "IS NULL" };
    let mut query = format!(
        "SELECT {DOCUMENT_COLUMNS} WHERE d.company = ?1 AND d.id > ?2 AND d.deleted_ms {deleted} AND d.purged_ms IS NULL"
    );
    let after = page.after.as_ref().map_or("", DocumentId::as_str);
    let mut values: Vec<&dyn ToSql> = Vec::new();
    let company = page.company.as_str();
    values.extend([&company as &dyn ToSql, &after]);
    let project = page.project.as_ref().map(model::ProjectId::as_str);
    if let Some(project) = &project {
        query.push_str(" AND d.project = ?3");
        values.push(project);
    }
    query.push_str(&format!(" ORDER BY d.id LIMIT {}", page.limit));
    let mut query = connection.prepare_cached(&query)?;
    Ok(query.query_map(params_from_iter(values), document)?.collect::<rusqlite::Result<_>>()?)
}

fn list_kept(connection: &Connection, page: &KeptPage) -> Result<Vec<KeptCopy>> {
    let (whose, document) = match &page.of {
        Whose::All => ("?1 IS NULL", None),
        Whose::Document(document) => ("k.document = ?1", Some(document.as_str())),
        Whose::Nobody => ("?1 IS NULL AND k.document IS NULL", None),
        Whose::Waiting => ("?1 IS NULL AND k.settled_ms IS NULL", None),
    };
    let mut query = connection.prepare_cached(&format!(
        "SELECT {KEPT_COLUMNS} WHERE {whose} AND (?2 IS NULL OR k.number < ?2) AND k.pruned_ms IS NULL
         ORDER BY k.number DESC LIMIT ?3"
    ))?;
    let values = params![document, page.before.map(asked), page.limit];
    Ok(query.query_map(values, kept)?.collect::<rusqlite::Result<_>>()?)
}

fn keep_unnamed(connection: &Connection, found: &UnnamedBlob) -> Result<Option<u64>> {
    let named = "SELECT 1 FROM blobs WHERE digest = ?1 AND removed_ms IS NULL";
    if exists(connection, named, params![Stored(found.blob.digest)])? {
        return Ok(None);
    }
    contents::name_blob(connection, &found.blob, found.at)?;
    if found.is_record_of_changes {
        contents::perhaps_unneeded(connection, &found.blob.digest, found.at)?;
        return Ok(None);
    }
    let document = match &found.document {
        Some(document) if keys::is_known_document(connection, document)? => Some(document),
        _ => None,
    };
    let keeping = match document {
        Some(_) => Keeping::Conflict(ConflictReason::Unnamed),
        None => Keeping::Orphan,
    };
    let number = contents::keep_copy(
        connection,
        &NewKept {
            document,
            keeping,
            blob: &found.blob,
            author: &Author::saveguard(),
            kept_at: found.at,
            key: found.key.as_ref(),
            inbox: None,
        },
    )?;
    if let Some(document) = document {
        let details = json!({ "kept": number, "digest": found.blob.digest.to_string() });
        append(
            connection,
            &Act { document, at: found.at, actor: Actor::SAVEGUARD, action: "blob-adopted", details },
        )?;
    }
    Ok(Some(number))
}
