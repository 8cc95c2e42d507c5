//! Templates, on PostgreSQL.

use async_trait::async_trait;
use model::{TemplateId, TemplateVersion};
use serde_json::json;
use tokio_postgres::Row;

use super::audit::{Actor, CompanyAct, append_company_act};
use super::rows::{all, get, get_optional, id, ms, text};
use super::step::Step;
use super::{PostgresLedger, locks};
use crate::templates::{Added, NewTemplate, TEMPLATES_MAX, Template, TemplateEntry, TemplateRetirement};
use crate::{LedgerError, Result, Templates};

/// Versions are added and retired one after the other: they are few, and counted.
const TEMPLATES: &str = "saveguard:templates";

#[async_trait]
impl Templates for PostgresLedger {
    async fn add_template(&self, new: &NewTemplate) -> Result<Added> {
        let step = self.write().await?;
        let done = add(&step, new).await;
        step.end(done).await
    }

    async fn retire_template(&self, retirement: &TemplateRetirement) -> Result<bool> {
        let step = self.write().await?;
        let done = retire(&step, retirement).await;
        step.end(done).await
    }

    async fn template(&self, id: &TemplateId, version: &TemplateVersion) -> Result<Option<Template>> {
        let step = self.glance().await?;
        let found = find(&step, id, version).await;
        step.end(found).await
    }

    async fn templates(&self, id: Option<&TemplateId>) -> Result<Vec<TemplateEntry>> {
        let step = self.glance().await?;
        let query = "SELECT id, version, title, added_by, added_ms, retired_ms FROM templates
                     WHERE $1::text IS NULL OR id = $1 ORDER BY id LIMIT $2";
        let (id, limit) = (id.map(TemplateId::as_str), i64::from(TEMPLATES_MAX));
        let found = step.query(query, &[&id, &limit]).await.and_then(|rows| all(&rows, entry));
        let mut entries = step.end(found).await?;
        entries.sort_by(|one, other| one.id.cmp(&other.id).then(other.version.cmp(&one.version)));
        Ok(entries)
    }
}

async fn add(step: &Step, new: &NewTemplate) -> Result<Added> {
    locks::name(step, TEMPLATES).await?;
    if let Some(there) = find(step, &new.id, &new.version).await? {
        return Ok(if there.text == text(&new.text) { Added::Same } else { Added::OtherText });
    }
    let row = step.query_one("SELECT count(*) AS count FROM templates", &[]).await?;
    if get::<u64>(&row, "count")? >= u64::from(TEMPLATES_MAX) {
        return Err(LedgerError::TooMany { what: "versions of templates", limit: TEMPLATES_MAX });
    }
    let version = new.version.to_string();
    step.execute(
        "INSERT INTO templates (id, version, title, text, added_by, added_ms) VALUES ($1, $2, $3, $4, $5, $6)",
        &[&new.id.as_str(), &version, &text(&new.title), &text(&new.text), &text(&new.by.id), &ms(new.at)],
    )
    .await?;
    let details = json!({
        "template": new.id.as_str(),
        "version": version,
        "title": new.title,
        "digest": model::Digest::of(new.text.as_bytes()).to_string(),
    });
    let (actor, action) = (Actor::person(&new.by), "template-added");
    append_company_act(step, &CompanyAct { company: None, at: new.at, actor, action, details }).await?;
    Ok(Added::New)
}

async fn retire(step: &Step, retirement: &TemplateRetirement) -> Result<bool> {
    let TemplateRetirement { id, version, by, at } = retirement;
    locks::name(step, TEMPLATES).await?;
    let there = find(step, id, version)
        .await?
        .ok_or_else(|| LedgerError::not_found(format!("version {version} of template `{id}`")))?;
    if there.entry.retired_at.is_some() {
        return Ok(false);
    }
    let update = "UPDATE templates SET retired_ms = $3 WHERE id = $1 AND version = $2 AND retired_ms IS NULL";
    step.execute(update, &[&id.as_str(), &version.to_string(), &ms(*at)]).await?;
    let details = json!({ "template": id.as_str(), "version": version.to_string() });
    let (actor, action) = (Actor::person(by), "template-retired");
    append_company_act(step, &CompanyAct { company: None, at: *at, actor, action, details }).await?;
    Ok(true)
}

async fn find(step: &Step, id: &TemplateId, version: &TemplateVersion) -> Result<Option<Template>> {
    let query = "SELECT id, version, title, text, added_by, added_ms, retired_ms FROM templates
                 WHERE id = $1 AND version = $2";
    let found = step.query_optional(query, &[&id.as_str(), &version.to_string()]).await?;
    found.map(|row| Ok(Template { entry: entry(&row)?, text: get(&row, "text")? })).transpose()
}

fn entry(row: &Row) -> Result<TemplateEntry> {
    Ok(TemplateEntry {
        id: id(row, "id", TemplateId::parse)?,
        version: id(row, "version", TemplateVersion::parse)?,
        title: get(row, "title")?,
        added_by: get(row, "added_by")?,
        added_at: get(row, "added_ms")?,
        retired_at: get_optional(row, "retired_ms")?,
    })
}
