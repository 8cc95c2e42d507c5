//! Companies, their limits and their projects, on PostgreSQL.
//!
//! Guarantees: what a company has is counted by triggers along with the rows it counts. A limit is judged behind the lock of
//! the company, so that two uploads cannot share the last place. Does not do: decide what fits; `model::quotas` does.

use jiff::Timestamp;
use model::quotas::{Quota, Usage};
use model::{CompanyId, DocumentId, ProjectId};
use serde_json::{Value, json};
use tokio_postgres::Row;

use super::audit::{Actor, CompanyAct, append_company_act};
use super::locks;
use super::rows::{Stored, all, get, get_optional, id, ms, text};
use super::step::Step;
use crate::documents::{Author, Company, CompanyChange, Project, ProjectRenaming};
use crate::saves::Committed;
use crate::{LedgerError, Result};

const COLUMNS: &str = "c.id, c.name, c.created_ms, c.documents_max, c.bytes_max, u.documents, u.head_bytes
    FROM companies c CROSS JOIN LATERAL (SELECT coalesce(sum(o.documents), 0)::bigint AS documents,
    coalesce(sum(o.head_bytes), 0)::bigint AS head_bytes FROM company_usage o WHERE o.company = c.id) u";

pub(super) async fn create(step: &Step, company: &Company, by: &Author) -> Result<()> {
    let inserted = step
        .execute(
            "INSERT INTO companies (id, name, created_ms, documents_max, bytes_max) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT DO NOTHING",
            &[
                &company.id.as_str(),
                &text(&company.name),
                &ms(company.created_at),
                &company.quota.documents.map(Stored),
                &company.quota.bytes.map(Stored),
            ],
        )
        .await?;
    created(inserted, || format!("company `{}`", company.id))?;
    let details = json!({ "name": company.name, "quota": quota_text(&company.quota) });
    note(step, &company.id, (by, company.created_at), ("company-created", details)).await
}

pub(super) async fn list(step: &Step) -> Result<Vec<Company>> {
    let rows = step.query(&format!("SELECT {COLUMNS} ORDER BY c.id"), &[]).await?;
    all(&rows, company)
}

pub(super) async fn find(step: &Step, id: &CompanyId) -> Result<Option<Company>> {
    let row = step.query_optional(&format!("SELECT {COLUMNS} WHERE c.id = $1"), &[&id.as_str()]).await?;
    row.as_ref().map(company).transpose()
}

pub(super) async fn change(step: &Step, change: &CompanyChange) -> Result<Company> {
    let mut company = existing(step, &change.id).await?;
    let who = (&change.by, change.at);
    if let Some(name) = change.name.as_ref().filter(|name| **name != company.name) {
        let details = json!({ "name": name, "before": company.name });
        note(step, &change.id, who, ("company-renamed", details)).await?;
        company.name.clone_from(name);
    }
    if let Some(quota) = change.quota.filter(|quota| *quota != company.quota) {
        let details = json!({ "quota": quota_text(&quota), "before": quota_text(&company.quota) });
        note(step, &change.id, who, ("quota-changed", details)).await?;
        company.quota = quota;
    }
    let (documents, bytes) = (company.quota.documents.map(Stored), company.quota.bytes.map(Stored));
    step.execute(
        "UPDATE companies SET (name, documents_max, bytes_max) = ($2, $3, $4) WHERE id = $1",
        &[&company.id.as_str(), &text(&company.name), &documents, &bytes],
    )
    .await?;
    Ok(company)
}

/// Locked, as it stands from then on.
async fn existing(step: &Step, id: &CompanyId) -> Result<Company> {
    locks::company(step, id).await?;
    find(step, id).await?.ok_or_else(|| LedgerError::not_found(format!("company `{id}`")))
}

fn quota_text(quota: &Quota) -> Value {
    json!({ "documents": quota.documents, "bytes": quota.bytes })
}

/// Writes an act down in the company's chain.
async fn note(
    step: &Step,
    company: &CompanyId,
    (by, at): (&Author, Timestamp),
    (action, details): (&str, Value),
) -> Result<()> {
    let (company, actor) = (Some(company), Actor::person(by));
    append_company_act(step, &CompanyAct { company, at, actor, action, details }).await
}

fn company(row: &Row) -> Result<Company> {
    Ok(Company {
        id: id(row, "id", CompanyId::parse)?,
        name: get(row, "name")?,
        created_at: get(row, "created_ms")?,
        quota: Quota {
            documents: get_optional(row, "documents_max")?,
            bytes: get_optional(row, "bytes_max")?,
        },
        usage: Usage { documents: get(row, "documents")?, bytes: get(row, "head_bytes")? },
    })
}

/// Refuses a new document that would pass a limit. The company is locked from then on.
pub(super) async fn refuse_over_quota(step: &Step, company: &CompanyId, bytes: u64) -> Result<()> {
    let company = existing(step, company).await?;
    company.quota.rule_on_new_document(company.usage, bytes).map_err(LedgerError::OverQuota)
}

/// What was just committed, with the limit that its company is beyond now.
pub(super) async fn with_quota(step: &Step, committed: Committed) -> Result<Committed> {
    let Some(document) =
        committed.document.as_ref().filter(|_| committed.is_new && committed.label.is_some())
    else {
        return Ok(committed);
    };
    let company = limited_company_of(step, document).await?;
    let over_quota = company.and_then(|company| company.quota.exceeded_by(company.usage));
    Ok(Committed { over_quota, ..committed })
}

/// Most companies have no limit: then nothing more is read.
async fn limited_company_of(step: &Step, document: &DocumentId) -> Result<Option<Company>> {
    let query = format!(
        "SELECT {COLUMNS} WHERE c.id = (SELECT company FROM documents WHERE id = $1)
         AND (c.documents_max IS NOT NULL OR c.bytes_max IS NOT NULL)"
    );
    step.query_optional(&query, &[&document.as_str()]).await?.as_ref().map(company).transpose()
}

pub(super) async fn create_project(step: &Step, project: &Project, by: &Author) -> Result<()> {
    if !locks::company(step, &project.company).await? {
        return Err(LedgerError::not_found(format!("company `{}`", project.company)));
    }
    let inserted = step
        .execute(
            "INSERT INTO projects (company, id, name, created_ms) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
            &[
                &project.company.as_str(),
                &project.id.as_str(),
                &text(&project.name),
                &ms(project.created_at),
            ],
        )
        .await?;
    created(inserted, || format!("project `{}`", project.id))?;
    let details = json!({ "project": project.id.as_str(), "name": project.name });
    note(step, &project.company, (by, project.created_at), ("project-created", details)).await
}

const PROJECT_COLUMNS: &str = "company, id, name, created_ms FROM projects";

pub(super) async fn projects(step: &Step, company: &CompanyId) -> Result<Vec<Project>> {
    let query = format!("SELECT {PROJECT_COLUMNS} WHERE company = $1 ORDER BY id");
    all(&step.query(&query, &[&company.as_str()]).await?, project)
}

pub(super) async fn rename_project(step: &Step, renaming: &ProjectRenaming) -> Result<Project> {
    locks::company(step, &renaming.company).await?;
    let query = format!("SELECT {PROJECT_COLUMNS} WHERE company = $1 AND id = $2");
    let found = step.query_optional(&query, &[&renaming.company.as_str(), &renaming.id.as_str()]).await?;
    let found = found.ok_or_else(|| LedgerError::not_found(format!("project `{}`", renaming.id)))?;
    let mut project = project(&found)?;
    if project.name != renaming.name {
        let details =
            json!({ "project": renaming.id.as_str(), "name": renaming.name, "before": project.name });
        note(step, &renaming.company, (&renaming.by, renaming.at), ("project-renamed", details)).await?;
        step.execute(
            "UPDATE projects SET name = $3 WHERE company = $1 AND id = $2",
            &[&renaming.company.as_str(), &renaming.id.as_str(), &text(&renaming.name)],
        )
        .await?;
        project.name.clone_from(&renaming.name);
    }
    Ok(project)
}

fn created(inserted: u64, what: impl FnOnce() -> String) -> Result<()> {
    if inserted == 0 { Err(LedgerError::AlreadyExists { what: what() }) } else { Ok(()) }
}

fn project(row: &Row) -> Result<Project> {
    Ok(Project {
        company: id(row, "company", CompanyId::parse)?,
        id: id(row, "id", ProjectId::parse)?,
        name: get(row, "name")?,
        created_at: get(row, "created_ms")?,
    })
}
