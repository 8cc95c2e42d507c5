//! Companies, projects, documents and what they hold, on PostgreSQL.

use async_trait::async_trait;
use model::saves::ConflictReason;
use model::versions::Origin;
use model::{CompanyId, DocumentId, Label};
use serde_json::json;

use super::audit::{Act, Actor, anchor_company, append};
use super::contents::{self, NewContent, NewKept};
use super::rows::{
    CONTENT_COLUMNS, DOCUMENT_COLUMNS, KEPT_COLUMNS, Stored, all, asked, content, document, kept, ms,
};
use super::step::Step;
use super::{PostgresLedger, companies, keys, locks, searching};
use crate::documents::{
    Author, Company, CompanyChange, Content, Document, DocumentPage, Keeping, KeptCopy, KeptPage,
    NewDocument, Whose,
};
use crate::documents::{Project, ProjectRenaming, UnnamedBlob};
use crate::searching::{DocumentSearch, FoundDocuments};
use crate::{Documents, LedgerError, Result};

#[async_trait]
impl Documents for PostgresLedger {
    async fn create_company(&self, company: &Company, by: &Author) -> Result<()> {
        let step = self.write().await?;
        let done = companies::create(&step, company, by).await;
        step.end(done).await
    }

    async fn companies(&self) -> Result<Vec<Company>> {
        let step = self.glance().await?;
        let found = companies::list(&step).await;
        step.end(found).await
    }

    async fn company(&self, id: &CompanyId) -> Result<Option<Company>> {
        let step = self.glance().await?;
        let found = companies::find(&step, id).await;
        step.end(found).await
    }

    async fn change_company(&self, change: &CompanyChange) -> Result<Company> {
        let step = self.write().await?;
        let done = companies::change(&step, change).await;
        step.end(done).await
    }

    async fn create_project(&self, project: &Project, by: &Author) -> Result<()> {
        let step = self.write().await?;
        let done = companies::create_project(&step, project, by).await;
        step.end(done).await
    }

    async fn rename_project(&self, renaming: &ProjectRenaming) -> Result<Project> {
        let step = self.write().await?;
        let done = companies::rename_project(&step, renaming).await;
        step.end(done).await
    }

    async fn projects(&self, company: &CompanyId) -> Result<Vec<Project>> {
        let step = self.glance().await?;
        let found = companies::projects(&step, company).await;
        step.end(found).await
    }

    async fn create_document(&self, new: &NewDocument) -> Result<Document> {
        let step = self.write().await?;
        let done = create_document(&step, new).await;
        step.end(done).await
    }

    async fn document(&self, id: &DocumentId) -> Result<Option<Document>> {
        let step = self.glance().await?;
        let found = find(&step, id).await;
        step.end(found).await
    }

    async fn documents(&self, page: &DocumentPage) -> Result<Vec<Document>> {
        let step = self.glance().await?;
        let found = list(&step, page).await;
        step.end(found).await
    }

    async fn find_documents(&self, search: &DocumentSearch) -> Result<FoundDocuments> {
        let step = self.read().await?;
        let found = searching::find(&step, search).await;
        step.end(found).await
    }

    async fn contents(&self, id: &DocumentId) -> Result<Vec<Content>> {
        let query = format!(
            "SELECT {CONTENT_COLUMNS} WHERE c.document = $1 ORDER BY c.version DESC, c.checkpoint DESC"
        );
        let step = self.glance().await?;
        let found = step.query(&query, &[&id.as_str()]).await;
        step.end(found).await.and_then(|rows| all(&rows, content))
    }

    async fn content(&self, id: &DocumentId, label: Label) -> Result<Option<Content>> {
        let query = format!(
            "SELECT {CONTENT_COLUMNS} WHERE c.document = $1 AND c.version = $2 AND c.checkpoint = $3"
        );
        let step = self.glance().await?;
        let place = (Stored(label.version), Stored(label.checkpoint));
        let found = step.query_optional(&query, &[&id.as_str(), &place.0, &place.1]).await;
        step.end(found).await?.as_ref().map(content).transpose()
    }

    async fn kept_copies(&self, page: &KeptPage) -> Result<Vec<KeptCopy>> {
        let step = self.glance().await?;
        let found = list_kept(&step, page).await;
        step.end(found).await
    }

    async fn kept_copy(&self, number: u64) -> Result<Option<KeptCopy>> {
        let query = format!("SELECT {KEPT_COLUMNS} WHERE k.number = $1");
        let step = self.glance().await?;
        let found = step.query_optional(&query, &[&asked(number)]).await;
        step.end(found).await?.as_ref().map(kept).transpose()
    }

    async fn keep_unnamed(&self, found: &UnnamedBlob) -> Result<Option<u64>> {
        let step = self.write().await?;
        let done = keep_unnamed(&step, found).await;
        step.end(done).await
    }
}

async fn create_document(step: &Step, new: &NewDocument) -> Result<Document> {
    let place = "SELECT 1 FROM projects WHERE company = $1 AND id = $2";
    if !step.exists(place, &[&new.company.as_str(), &new.project.as_str()]).await? {
        return Err(LedgerError::not_found(format!("project `{}`", new.project)));
    }
    // The id of a purged document stays taken: its keys and its audit chain are for ever.
    let taken = || LedgerError::AlreadyExists { what: format!("document `{}`", new.id) };
    if step.exists("SELECT 1 FROM documents WHERE id = $1", &[&new.id.as_str()]).await? {
        return Err(taken());
    }
    contents::name_blob(step, &new.blob, new.at).await?;
    companies::refuse_over_quota(step, &new.company, new.blob.size_bytes).await?;
    let inserted = step
        .execute(
            "INSERT INTO documents (id, company, project, name, created_ms, head_version, head_checkpoint, head_digest,
             head_moved_ms, last_version, owes_since_ms) VALUES ($1, $2, $3, $4, $5, 1, 0, $6, $5, 1, $5)
             ON CONFLICT DO NOTHING",
            &[
                &new.id.as_str(),
                &new.company.as_str(),
                &new.project.as_str(),
                &new.name.as_str(),
                &ms(new.at),
                &Stored(new.blob.digest),
            ],
        )
        .await?;
    if inserted == 0 {
        return Err(taken());
    }
    let content = NewContent::without_session(
        (&new.id, Label::FIRST),
        (Origin::Upload, &new.blob),
        (&new.author, new.at),
    );
    contents::add_content(step, &content).await?;
    let details =
        json!({ "label": "1", "digest": new.blob.digest.to_string(), "sizeBytes": new.blob.size_bytes });
    let actor = Actor::person(&new.author);
    append(step, &Act { document: &new.id, at: new.at, actor, action: "document-uploaded", details }).await?;
    anchor_company(step, &new.company, new.at).await?;
    find(step, &new.id).await?.ok_or_else(|| LedgerError::damaged("a document that was just written is gone"))
}

pub(super) async fn find(step: &Step, id: &DocumentId) -> Result<Option<Document>> {
    let query = format!("SELECT {DOCUMENT_COLUMNS} WHERE d.id = $1 AND d.purged_ms IS NULL");
    step.query_optional(&query, &[&id.as_str()]).await?.as_ref().map(document).transpose()
}

async fn list(step: &Step, page: &DocumentPage) -> Result<Vec<Document>> {
    let deleted = if page.deleted { "IS NOT NULL" } else { "IS NULL" };
    let query = format!(
        "SELECT {DOCUMENT_COLUMNS} WHERE d.company = $1 AND d.id > $2 AND d.deleted_ms {deleted} AND d.purged_ms IS NULL
         AND ($3::text IS NULL OR d.project = $3) ORDER BY d.id LIMIT $4"
    );
    let after = page.after.as_ref().map_or("", DocumentId::as_str);
    let project = page.project.as_ref().map(model::ProjectId::as_str);
    let rows =
        step.query(&query, &[&page.company.as_str(), &after, &project, &i64::from(page.limit)]).await?;
    all(&rows, document)
}

async fn list_kept(step: &Step, page: &KeptPage) -> Result<Vec<KeptCopy>> {
    let (whose, document) = match &page.of {
        Whose::All => ("$1::text IS NULL", None),
        Whose::Document(document) => ("k.document = $1", Some(document.as_str())),
        Whose::Nobody => ("$1::text IS NULL AND k.document IS NULL", None),
        Whose::Waiting => ("$1::text IS NULL AND k.settled_ms IS NULL", None),
    };
    let query = format!(
        "SELECT {KEPT_COLUMNS} WHERE {whose} AND ($2::bigint IS NULL OR k.number < $2) AND k.pruned_ms IS NULL
         ORDER BY k.number DESC LIMIT $3"
    );
    let rows = step.query(&query, &[&document, &page.before.map(asked), &i64::from(page.limit)]).await?;
    all(&rows, kept)
}

async fn keep_unnamed(step: &Step, found: &UnnamedBlob) -> Result<Option<u64>> {
    // Two who find it at once: the second waits here, and then finds it named.
    locks::name(step, &found.blob.digest.to_string()).await?;
    let document = match &found.document {
        Some(document)
            if locks::document(step, document).await? && keys::is_known_document(step, document).await? =>
        {
            Some(document)
        }
        _ => None,
    };
    // Whoever names it at this moment is waited for.
    let insert =
        "INSERT INTO blobs (digest, size_bytes, named_ms) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
    let values = (Stored(found.blob.digest), Stored(found.blob.size_bytes), ms(found.at));
    let is_new = step.execute(insert, &[&values.0, &values.1, &values.2]).await? > 0;
    let named = "SELECT 1 FROM blobs WHERE digest = $1 AND removed_ms IS NULL";
    if !is_new && step.exists(named, &[&values.0]).await? {
        return Ok(None);
    }
    contents::name_blob(step, &found.blob, found.at).await?;
    if found.is_record_of_changes {
        contents::perhaps_unneeded(step, &[found.blob.digest], found.at).await?;
        return Ok(None);
    }
    let keeping = match document {
        Some(_) => Keeping::Conflict(ConflictReason::Unnamed),
        None => Keeping::Orphan,
    };
    let number = contents::keep_copy(
        step,
        &NewKept {
            document,
            keeping,
            blob: &found.blob,
            author: &Author::saveguard(),
            kept_at: found.at,
            key: found.key.as_ref(),
            inbox: None,
        },
    )
    .await?;
    if let Some(document) = document {
        let details = json!({ "kept": number, "digest": found.blob.digest.to_string() });
        let act = Act { document, at: found.at, actor: Actor::SAVEGUARD, action: "blob-adopted", details };
        append(step, &act).await?;
    }
    Ok(Some(number))
}
