//! Companies, projects, documents and what they hold, on SQLite.

use async_trait::async_trait;
use model::saves::ConflictReason;
use model::versions::Origin;
use model::{CompanyId, DocumentId, Label};
use rusqlite::{Connection, Row, ToSql, params, params_from_iter};
use serde_json::json;

use super::audit::{Act, Actor, anchor_company, append};
use super::contents::{self, NewContent, NewKept};
use super::facts::exists;
use super::rows::{
    CONTENT_COLUMNS, DOCUMENT_COLUMNS, KEPT_COLUMNS, Stored, content, document, get, id, kept, ms, optional,
};
use super::{SqliteLedger, keys};
use crate::documents::{
    Author, Company, Content, Document, DocumentPage, Keeping, KeptCopy, KeptPage, NewDocument, Whose,
};
use crate::documents::{Project, UnnamedBlob};
use crate::{Documents, LedgerError, Result};

#[async_trait]
impl Documents for SqliteLedger {
    async fn create_company(&self, company: &Company) -> Result<()> {
        let company = company.clone();
        self.write(move |connection, _| {
            let inserted = connection.execute(
                "INSERT INTO companies (id, name, created_ms) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
                params![company.id.as_str(), company.name, ms(company.created_at)],
            )?;
            created(inserted, || format!("company `{}`", company.id))
        })
        .await
    }

    async fn companies(&self) -> Result<Vec<Company>> {
        self.read(|connection| {
            let mut query = connection.prepare_cached("SELECT * FROM companies ORDER BY id")?;
            Ok(query.query_map([], company)?.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    async fn create_project(&self, project: &Project) -> Result<()> {
        let project = project.clone();
        self.write(move |connection, _| create_project(connection, &project)).await
    }

    async fn projects(&self, company: &CompanyId) -> Result<Vec<Project>> {
        let company = company.clone();
        self.read(move |connection| {
            let mut query =
                connection.prepare_cached("SELECT * FROM projects WHERE company = ?1 ORDER BY id")?;
            Ok(query.query_map([company.as_str()], project)?.collect::<rusqlite::Result<_>>()?)
        })
        .await
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
            optional(query.query_row([number], kept))
        })
        .await
    }

    async fn keep_unnamed(&self, found: &UnnamedBlob) -> Result<Option<u64>> {
        let found = found.clone();
        self.write(move |connection, _| keep_unnamed(connection, &found)).await
    }
}

fn created(inserted: usize, what: impl FnOnce() -> String) -> Result<()> {
    if inserted == 0 { Err(LedgerError::AlreadyExists { what: what() }) } else { Ok(()) }
}

fn company(row: &Row<'_>) -> rusqlite::Result<Company> {
    Ok(Company {
        id: id(row, "id", CompanyId::parse)?,
        name: row.get("name")?,
        created_at: get(row, "created_ms")?,
    })
}

fn project(row: &Row<'_>) -> rusqlite::Result<Project> {
    Ok(Project {
        company: id(row, "company", CompanyId::parse)?,
        id: id(row, "id", model::ProjectId::parse)?,
        name: row.get("name")?,
        created_at: get(row, "created_ms")?,
    })
}

fn create_project(connection: &Connection, project: &Project) -> Result<()> {
    if !exists(connection, "SELECT 1 FROM companies WHERE id = ?1", params![project.company.as_str()])? {
        return Err(LedgerError::not_found(format!("company `{}`", project.company)));
    }
    let inserted = connection.execute(
        "INSERT INTO projects (company, id, name, created_ms) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
        params![project.company.as_str(), project.id.as_str(), project.name, ms(project.created_at)],
    )?;
    created(inserted, || format!("project `{}`", project.id))
}

fn create_document(connection: &Connection, new: &NewDocument) -> Result<Document> {
    let place = params![new.company.as_str(), new.project.as_str()];
    if !exists(connection, "SELECT 1 FROM projects WHERE company = ?1 AND id = ?2", place)? {
        return Err(LedgerError::not_found(format!("project `{}`", new.project)));
    }
    if keys::is_known_document(connection, &new.id)? {
        return Err(LedgerError::AlreadyExists { what: format!("document `{}`", new.id) });
    }
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
    contents::add_content(connection, &first_content(new))?;
    let details =
        json!({ "label": "1", "digest": new.blob.digest.to_string(), "sizeBytes": new.blob.size_bytes });
    let actor = Actor::person(&new.author);
    append(connection, &Act { document: &new.id, at: new.at, actor, action: "document-uploaded", details })?;
    anchor_company(connection, &new.company, new.at)?;
    find(connection, &new.id)?.ok_or_else(|| LedgerError::damaged("a document that was just written is gone"))
}

fn first_content(new: &NewDocument) -> NewContent<'_> {
    NewContent {
        document: &new.id,
        label: Label::FIRST,
        origin: Origin::Upload,
        blob: &new.blob,
        author: &new.author,
        committed_at: new.at,
        saved_at: None,
        session_start: None,
        key: None,
        inbox: None,
        is_filed_beside: false,
        history: None,
        server_version: None,
    }
}

fn find(connection: &Connection, id: &DocumentId) -> Result<Option<Document>> {
    let mut query = connection.prepare_cached(&format!("SELECT {DOCUMENT_COLUMNS} WHERE d.id = ?1"))?;
    optional(query.query_row([id.as_str()], document))
}

fn list(connection: &Connection, page: &DocumentPage) -> Result<Vec<Document>> {
    let deleted = if page.deleted { "IS NOT NULL" } else { "IS NULL" };
    let mut query =
        format!("SELECT {DOCUMENT_COLUMNS} WHERE d.company = ?1 AND d.id > ?2 AND d.deleted_ms {deleted}");
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
    };
    let mut query = connection.prepare_cached(&format!(
        "SELECT {KEPT_COLUMNS} WHERE {whose} AND (?2 IS NULL OR k.number < ?2)
         ORDER BY k.number DESC LIMIT ?3"
    ))?;
    let values = params![document, page.before, page.limit];
    Ok(query.query_map(values, kept)?.collect::<rusqlite::Result<_>>()?)
}

fn keep_unnamed(connection: &Connection, found: &UnnamedBlob) -> Result<Option<u64>> {
    if exists(connection, "SELECT 1 FROM blobs WHERE digest = ?1", params![Stored(found.blob.digest)])? {
        return Ok(None);
    }
    contents::name_blob(connection, &found.blob, found.at)?;
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
