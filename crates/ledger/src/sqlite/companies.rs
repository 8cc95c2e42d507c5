//! Companies, their limits and their projects, on SQLite.
//!
//! Guarantees: what a company has is counted by triggers along with the rows it counts, so a limit is judged by what is true
//! in the same transaction. Does not do: decide what fits; `model::quotas` does.

use jiff::Timestamp;
use model::quotas::{Quota, Usage};
use model::{CompanyId, DocumentId, ProjectId};
use rusqlite::{Connection, Row, params};
use serde_json::{Value, json};

use super::audit::{Actor, CompanyAct, append_company_act};
use super::facts::exists;
use super::rows::{get, id, ms, optional};
use crate::documents::{Author, Company, CompanyChange, Project, ProjectRenaming};
use crate::saves::Committed;
use crate::{LedgerError, Result};

pub(super) fn create(connection: &Connection, company: &Company, by: &Author) -> Result<()> {
    let inserted = connection.execute(
        "INSERT INTO companies (id, name, created_ms, documents_max, bytes_max) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT DO NOTHING",
        params![
            company.id.as_str(),
            company.name,
            ms(company.created_at),
            company.quota.documents,
            company.quota.bytes
        ],
    )?;
    created(inserted, || format!("company `{}`", company.id))?;
    let details = json!({ "name": company.name, "quota": quota_text(&company.quota) });
    note(connection, &company.id, (by, company.created_at), ("company-created", details))
}

pub(super) fn list(connection: &Connection) -> Result<Vec<Company>> {
    let mut query = connection.prepare_cached("SELECT * FROM companies ORDER BY id")?;
    Ok(query.query_map([], company)?.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn find(connection: &Connection, id: &CompanyId) -> Result<Option<Company>> {
    let mut query = connection.prepare_cached("SELECT * FROM companies WHERE id = ?1")?;
    optional(query.query_row([id.as_str()], company))
}

pub(super) fn change(connection: &Connection, change: &CompanyChange) -> Result<Company> {
    let mut company = existing(connection, &change.id)?;
    let who = (&change.by, change.at);
    if let Some(name) = change.name.as_ref().filter(|name| **name != company.name) {
        let details = json!({ "name": name, "before": company.name });
        note(connection, &change.id, who, ("company-renamed", details))?;
        company.name.clone_from(name);
    }
    if let Some(quota) = change.quota.filter(|quota| *quota != company.quota) {
        let details = json!({ "quota": quota_text(&quota), "before": quota_text(&company.quota) });
        note(connection, &change.id, who, ("quota-changed", details))?;
        company.quota = quota;
    }
    connection.execute(
        "UPDATE companies SET (name, documents_max, bytes_max) = (?2, ?3, ?4) WHERE id = ?1",
        params![company.id.as_str(), company.name, company.quota.documents, company.quota.bytes],
    )?;
    Ok(company)
}

fn existing(connection: &Connection, id: &CompanyId) -> Result<Company> {
    find(connection, id)?.ok_or_else(|| LedgerError::not_found(format!("company `{id}`")))
}

fn quota_text(quota: &Quota) -> Value {
    json!({ "documents": quota.documents, "bytes": quota.bytes })
}

/// Writes an act down in the company's chain.
fn note(
    connection: &Connection,
    company: &CompanyId,
    (by, at): (&Author, Timestamp),
    (action, details): (&str, Value),
) -> Result<()> {
    let (company, actor) = (Some(company), Actor::person(by));
    append_company_act(connection, &CompanyAct { company, at, actor, action, details })
}

fn company(row: &Row<'_>) -> rusqlite::Result<Company> {
    Ok(Company {
        id: id(row, "id", CompanyId::parse)?,
        name: row.get("name")?,
        created_at: get(row, "created_ms")?,
        quota: Quota { documents: row.get("documents_max")?, bytes: row.get("bytes_max")? },
        usage: Usage { documents: row.get("documents")?, bytes: row.get("head_bytes")? },
    })
}

/// Refuses a new document that would pass a limit.
pub(super) fn refuse_over_quota(connection: &Connection, company: &CompanyId, bytes: u64) -> Result<()> {
    let company = existing(connection, company)?;
    company.quota.rule_on_new_document(company.usage, bytes).map_err(LedgerError::OverQuota)
}

/// What was just committed, with the limit that its company is beyond now.
pub(super) fn with_quota(connection: &Connection, committed: Committed) -> Result<Committed> {
    let Some(document) =
        committed.document.as_ref().filter(|_| committed.is_new && committed.label.is_some())
    else {
        return Ok(committed);
    };
    let company = limited_company_of(connection, document)?;
    let over_quota = company.and_then(|company| company.quota.exceeded_by(company.usage));
    Ok(Committed { over_quota, ..committed })
}

/// Most companies have no limit: then nothing more is read.
fn limited_company_of(connection: &Connection, document: &DocumentId) -> Result<Option<Company>> {
    let mut query = connection.prepare_cached(
        "SELECT * FROM companies WHERE id = (SELECT company FROM documents WHERE id = ?1)
         AND (documents_max IS NOT NULL OR bytes_max IS NOT NULL)",
    )?;
    optional(query.query_row([document.as_str()], company))
}

pub(super) fn create_project(connection: &Connection, project: &Project, by: &Author) -> Result<()> {
    if !exists(connection, "SELECT 1 FROM companies WHERE id = ?1", params![project.company.as_str()])? {
        return Err(LedgerError::not_found(format!("company `{}`", project.company)));
    }
    let inserted = connection.execute(
        "INSERT INTO projects (company, id, name, created_ms) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
        params![project.company.as_str(), project.id.as_str(), project.name, ms(project.created_at)],
    )?;
    created(inserted, || format!("project `{}`", project.id))?;
    let details = json!({ "project": project.id.as_str(), "name": project.name });
    note(connection, &project.company, (by, project.created_at), ("project-created", details))
}

pub(super) fn projects(connection: &Connection, company: &CompanyId) -> Result<Vec<Project>> {
    let mut query = connection.prepare_cached("SELECT * FROM projects WHERE company = ?1 ORDER BY id")?;
    Ok(query.query_map([company.as_str()], project)?.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn rename_project(connection: &Connection, renaming: &ProjectRenaming) -> Result<Project> {
    let place = params![renaming.company.as_str(), renaming.id.as_str()];
    let mut query = connection.prepare_cached("SELECT * FROM projects WHERE company = ?1 AND id = ?2")?;
    let mut project = optional(query.query_row(place, project))?
        .ok_or_else(|| LedgerError::not_found(format!("project `{}`", renaming.id)))?;
    if project.name != renaming.name {
        let details =
            json!({ "project": renaming.id.as_str(), "name": renaming.name, "before": project.name });
        note(connection, &renaming.company, (&renaming.by, renaming.at), ("project-renamed", details))?;
        connection.execute(
            "UPDATE projects SET name = ?3 WHERE company = ?1 AND id = ?2",
            params![renaming.company.as_str(), renaming.id.as_str(), renaming.name],
        )?;
        project.name.clone_from(&renaming.name);
    }
    Ok(project)
}

fn created(inserted: usize, what: impl FnOnce() -> String) -> Result<()> {
    if inserted == 0 { Err(LedgerError::AlreadyExists { what: what() }) } else { Ok(()) }
}

fn project(row: &Row<'_>) -> rusqlite::Result<Project> {
    Ok(Project {
        company: id(row, "company", CompanyId::parse)?,
        id: id(row, "id", ProjectId::parse)?,
        name: row.get("name")?,
        created_at: get(row, "created_ms")?,
    })
}
