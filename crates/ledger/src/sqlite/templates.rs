//! Templates, on SQLite.

use async_trait::async_trait;
use model::{TemplateId, TemplateVersion};
use rusqlite::{Connection, Row, params};
use serde_json::json;

use super::SqliteLedger;
use super::audit::{Actor, CompanyAct, append_company_act};
use super::rows::{get, get_optional, id, ms, optional};
use crate::templates::{Added, NewTemplate, TEMPLATES_MAX, Template, TemplateEntry, TemplateRetirement};
use crate::{LedgerError, Result, Templates};

#[async_trait]
impl Templates for SqliteLedger {
    async fn add_template(&self, new: &NewTemplate) -> Result<Added> {
        let new = new.clone();
        self.write(move |connection, _| add(connection, &new)).await
    }

    async fn retire_template(&self, retirement: &TemplateRetirement) -> Result<bool> {
        let retirement = retirement.clone();
        self.write(move |connection, _| retire(connection, &retirement)).await
    }

    async fn template(&self, id: &TemplateId, version: &TemplateVersion) -> Result<Option<Template>> {
        let (id, version) = (id.clone(), version.clone());
        self.read(move |connection| find(connection, &id, &version)).await
    }

    async fn templates(&self, id: Option<&TemplateId>) -> Result<Vec<TemplateEntry>> {
        let id = id.map(ToString::to_string);
        self.read(move |connection| {
            let mut query = connection.prepare_cached(
                "SELECT id, version, title, added_by, added_ms, retired_ms FROM templates
                 WHERE ?1 IS NULL OR id = ?1 ORDER BY id LIMIT ?2",
            )?;
            let found = query.query_map(params![id, TEMPLATES_MAX], entry)?;
            let mut entries: Vec<TemplateEntry> = found.collect::<rusqlite::Result<_>>()?;
            entries.sort_by(|one, other| one.id.cmp(&other.id).then(other.version.cmp(&one.version)));
            Ok(entries)
        })
        .await
    }
}

fn add(connection: &Connection, new: &NewTemplate) -> Result<Added> {
    if let Some(there) = find(connection, &new.id, &new.version)? {
        return Ok(if there.text == new.text { Added::Same } else { Added::OtherText });
    }
    let count: u32 = connection.query_row("SELECT count(*) FROM templates", [], |row| row.get(0))?;
    if count >= TEMPLATES_MAX {
        return Err(LedgerError::TooMany { what: "versions of templates", limit: TEMPLATES_MAX });
    }
    connection.execute(
        "INSERT INTO templates (id, version, title, text, added_by, added_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![new.id.as_str(), new.version.to_string(), new.title, new.text, new.by.id, ms(new.at)],
    )?;
    let details = json!({
        "template": new.id.as_str(),
        "version": new.version.to_string(),
        "title": new.title,
        "digest": model::Digest::of(new.text.as_bytes()).to_string(),
    });
    let (actor, action) = (Actor::person(&new.by), "template-added");
    append_company_act(connection, &CompanyAct { company: None, at: new.at, actor, action, details })?;
    Ok(Added::New)
}

fn retire(connection: &Connection, retirement: &TemplateRetirement) -> Result<bool> {
    let TemplateRetirement { id, version, by, at } = retirement;
    let there = find(connection, id, version)?
        .ok_or_else(|| LedgerError::not_found(format!("version {version} of template `{id}`")))?;
    if there.entry.retired_at.is_some() {
        return Ok(false);
    }
    connection.execute(
        "UPDATE templates SET retired_ms = ?3 WHERE id = ?1 AND version = ?2",
        params![id.as_str(), version.to_string(), ms(*at)],
    )?;
    let details = json!({ "template": id.as_str(), "version": version.to_string() });
    let (actor, action) = (Actor::person(by), "template-retired");
    append_company_act(connection, &CompanyAct { company: None, at: *at, actor, action, details })?;
    Ok(true)
}

fn find(connection: &Connection, id: &TemplateId, version: &TemplateVersion) -> Result<Option<Template>> {
    let mut query = connection.prepare_cached("SELECT * FROM templates WHERE id = ?1 AND version = ?2")?;
    let found = query.query_row([id.as_str(), &version.to_string()], |row| {
        Ok(Template { entry: entry(row)?, text: row.get("text")? })
    });
    optional(found)
}

fn entry(row: &Row<'_>) -> rusqlite::Result<TemplateEntry> {
    Ok(TemplateEntry {
        id: id(row, "id", TemplateId::parse)?,
        version: id(row, "version", TemplateVersion::parse)?,
        title: row.get("title")?,
        added_by: row.get("added_by")?,
        added_at: get(row, "added_ms")?,
        retired_at: get_optional(row, "retired_ms")?,
    })
}
