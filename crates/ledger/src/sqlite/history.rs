//! The history as people page through it, names, people and mentions, on SQLite.

use std::collections::BTreeSet;

use async_trait::async_trait;
use model::DocumentId;
use model::names::FileName;
use rusqlite::{Connection, Row, params};
use serde_json::{Value, json};

use super::audit::{Act, Actor, append};
use super::keys::{NewKey, insert_key};
use super::rows::{CONTENT_COLUMNS, asked, content, get, ms, names};
use super::{SqliteLedger, documents};
use crate::documents::{Author, Content, Document};
use crate::history::{ContentsPage, DocumentRenaming, Mention, NewMention, Person};
use crate::keys::ViewKey;
use crate::{History, LedgerError, Result};

/// People are looked for among so many of the newest acts of a company.
const ACTS_LOOKED_AT: u32 = 5000;
/// Contents of a document whose authors are looked for.
const CONTENTS_LOOKED_AT: u32 = 50;
/// Who acts in the audit trail and is nobody to be mentioned.
const NOBODY: &str = "'saveguard', 'saveguard-cli', 'document-server', 'published-tree', ''";

#[async_trait]
impl History for SqliteLedger {
    async fn contents_page(&self, page: &ContentsPage) -> Result<Vec<Content>> {
        let page = page.clone();
        self.read(move |connection| contents_page(connection, &page)).await
    }

    async fn rename_document(&self, renaming: &DocumentRenaming) -> Result<Option<Document>> {
        let renaming = renaming.clone();
        self.write(move |connection, _| rename_document(connection, &renaming)).await
    }

    async fn people(&self, document: &DocumentId, limit: u32) -> Result<Vec<Person>> {
        let document = document.clone();
        self.read(move |connection| {
            let mut people = people_of_document(connection, &document)?;
            people.extend(people_of_company(connection, &document, limit)?);
            let mut seen = BTreeSet::new();
            people.retain(|person| seen.insert(person.id.clone()));
            people.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
            Ok(people)
        })
        .await
    }

    async fn note_mention(&self, mention: &NewMention) -> Result<u64> {
        let mention = mention.clone();
        self.write(move |connection, _| note_mention(connection, &mention)).await
    }

    async fn mentions(&self, after: u64, limit: u32) -> Result<Vec<Mention>> {
        self.read(move |connection| {
            let query = "SELECT * FROM mentions WHERE number > ?1 ORDER BY number LIMIT ?2";
            let mut query = connection.prepare_cached(query)?;
            Ok(query.query_map(params![asked(after), limit], mention)?.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }
}

fn contents_page(connection: &Connection, page: &ContentsPage) -> Result<Vec<Content>> {
    let kind = if page.versions_only { "AND c.checkpoint = 0" } else { "" };
    let query = format!(
        "SELECT {CONTENT_COLUMNS} WHERE c.document = ?1 AND (c.version, c.checkpoint) < (?2, ?3) {kind}
         ORDER BY c.version DESC, c.checkpoint DESC LIMIT ?4"
    );
    let (version, checkpoint) =
        page.before.map_or((i64::MAX, 0), |label| (i64::from(label.version), i64::from(label.checkpoint)));
    let values = params![page.document.as_str(), version, checkpoint, page.limit];
    Ok(connection.prepare_cached(&query)?.query_map(values, content)?.collect::<rusqlite::Result<_>>()?)
}

/// A view key is handed out with a link to its content: that is written down, so that the content stays while the link counts.
pub(super) fn note_view_key(connection: &Connection, view: &ViewKey) -> Result<()> {
    let base = Some((view.base, view.base_digest));
    // A view key never has a session that saves; were one to come, it must not touch the head.
    let new = NewKey { key: &view.key, document: &view.document, mode: "view", state: "retired", base };
    insert_key(connection, &new, view.at)?;
    let noted = connection
        .prepare_cached(
            "UPDATE contents SET handed_out_ms = ?4
             WHERE document = ?1 AND version = ?2 AND checkpoint = ?3 AND pruned_ms IS NULL",
        )?
        .execute(params![view.document.as_str(), view.base.version, view.base.checkpoint, ms(view.at)])?;
    if noted == 0 {
        return Err(LedgerError::not_found(format!("content {} of document `{}`", view.base, view.document)));
    }
    Ok(())
}

fn rename_document(connection: &Connection, renaming: &DocumentRenaming) -> Result<Option<Document>> {
    let Some(document) =
        documents::find(connection, &renaming.document)?.filter(|found| found.deleted_at.is_none())
    else {
        return Ok(None);
    };
    if document.name == renaming.name {
        return Ok(Some(document));
    }
    // What the tree shows keeps its first name until the tree has followed.
    connection
        .prepare_cached(
            "UPDATE documents SET shown_name = coalesce(shown_name, name), name = ?2,
             owes_since_ms = coalesce(owes_since_ms, ?3) WHERE id = ?1",
        )?
        .execute(params![renaming.document.as_str(), renaming.name.as_str(), ms(renaming.at)])?;
    let details = json!({ "name": renaming.name.as_str(), "before": document.name.as_str() });
    let (document, actor) = (&renaming.document, Actor::person(&renaming.by));
    append(connection, &Act { document, at: renaming.at, actor, action: "document-renamed", details })?;
    documents::find(connection, &renaming.document)
}

/// The tree shows the document under one name only. If that is not its name any more, it has to move on.
pub(super) fn shown_under(connection: &Connection, document: &DocumentId, name: &FileName) -> Result<()> {
    connection
        .prepare_cached("UPDATE documents SET shown_name = nullif(?2, name) WHERE id = ?1")?
        .execute(params![document.as_str(), name.as_str()])?;
    Ok(())
}

/// Everybody who changed something in the newest contents, as the Document Server told it.
fn people_of_document(connection: &Connection, document: &DocumentId) -> Result<Vec<Person>> {
    let mut query = connection.prepare_cached(
        "SELECT history FROM contents WHERE document = ?1 AND history IS NOT NULL
         ORDER BY version DESC, checkpoint DESC LIMIT ?2",
    )?;
    let histories =
        query.query_map(params![document.as_str(), CONTENTS_LOOKED_AT], |row| row.get::<_, String>(0))?;
    let mut people = Vec::new();
    for history in histories {
        let changes: Vec<Value> = serde_json::from_str(&history?).unwrap_or_default();
        people.extend(changes.iter().rev().filter_map(|change| {
            let text =
                |name: &str| change["user"][name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
            let id = text("id")?;
            Some(Person { name: text("name").unwrap_or_else(|| id.clone()), id })
        }));
    }
    Ok(people)
}

/// The newest acts are a range of an index; their actors' names stand with what they saved.
fn people_of_company(connection: &Connection, document: &DocumentId, limit: u32) -> Result<Vec<Person>> {
    let company: String = connection
        .prepare_cached("SELECT company FROM documents WHERE id = ?1")?
        .query_row([document.as_str()], |row| row.get(0))?;
    let mut query = connection.prepare_cached(&format!(
        "SELECT actor, coalesce((SELECT c.author_name FROM contents c JOIN documents d ON d.id = c.document
                WHERE c.author_id = actor AND d.company = ?1 AND c.author_name <> '' ORDER BY c.committed_ms DESC LIMIT 1), actor) AS name
         FROM (SELECT actor, max(at_ms) AS last_ms FROM
                (SELECT actor, at_ms FROM audit WHERE company = ?1 ORDER BY at_ms DESC LIMIT {ACTS_LOOKED_AT})
               WHERE actor NOT IN ({NOBODY}) AND actor NOT LIKE 'token:%' GROUP BY actor)
         ORDER BY last_ms DESC, actor LIMIT ?2"
    ))?;
    let rows = query.query_map(params![company, limit], |row| {
        Ok(Person { id: row.get("actor")?, name: row.get("name")? })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn note_mention(connection: &Connection, mention: &NewMention) -> Result<u64> {
    let NewMention { document, by, emails, message, action_link, at } = mention;
    connection
        .prepare_cached(
            "INSERT INTO mentions (document, author_id, author_name, emails, message, action_link, at_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            document.as_str(),
            by.id,
            by.name,
            json!(emails).to_string(),
            message,
            action_link,
            ms(*at)
        ])?;
    let number = u64::try_from(connection.last_insert_rowid()).map_err(LedgerError::damaged)?;
    // What was written stays with the mention: the trail tells that it was.
    let details = json!({ "mention": number, "people": emails.len() });
    append(
        connection,
        &Act { document, at: *at, actor: Actor::person(by), action: "people-mentioned", details },
    )?;
    Ok(number)
}

fn mention(row: &Row<'_>) -> rusqlite::Result<Mention> {
    Ok(Mention {
        number: row.get("number")?,
        mention: NewMention {
            document: get(row, "document")?,
            by: Author::new(row.get::<_, String>("author_id")?, row.get::<_, String>("author_name")?),
            emails: names(&row.get::<_, String>("emails")?),
            message: row.get("message")?,
            action_link: row.get("action_link")?,
            at: get(row, "at_ms")?,
        },
    })
}
