//! The history as people page through it, names, people and mentions, on PostgreSQL.

use std::collections::BTreeSet;

use async_trait::async_trait;
use model::DocumentId;
use model::names::FileName;
use serde_json::{Value, json};
use tokio_postgres::Row;

use super::audit::{Act, Actor, append};
use super::keys::{NewKey, insert_key};
use super::locks::{self, Kind};
use super::rows::{CONTENT_COLUMNS, Stored, all, asked, content, get, get_optional, ms, names, text};
use super::step::Step;
use super::{PostgresLedger, documents};
use crate::documents::{Author, Content, Document};
use crate::history::{ContentsPage, DocumentRenaming, Mention, NewMention, Person};
use crate::keys::ViewKey;
use crate::{History, LedgerError, Result};

/// People are looked for among so many of the newest acts of a company.
const ACTS_LOOKED_AT: i64 = 5000;
/// Contents of a document whose authors are looked for.
const CONTENTS_LOOKED_AT: i64 = 50;
/// Who acts in the audit trail and is nobody to be mentioned.
const NOBODY: &str = "'saveguard', 'saveguard-cli', 'document-server', 'published-tree', ''";

#[async_trait]
impl History for PostgresLedger {
    async fn contents_page(&self, page: &ContentsPage) -> Result<Vec<Content>> {
        let step = self.read().await?;
        let done = contents_page(&step, page).await;
        step.end(done).await
    }

    async fn rename_document(&self, renaming: &DocumentRenaming) -> Result<Option<Document>> {
        let step = self.write().await?;
        let done = rename_document(&step, renaming).await;
        step.end(done).await
    }

    async fn people(&self, document: &DocumentId, limit: u32) -> Result<Vec<Person>> {
        let step = self.read().await?;
        let done = async {
            let mut people = people_of_document(&step, document).await?;
            people.extend(people_of_company(&step, document, limit).await?);
            let mut seen = BTreeSet::new();
            people.retain(|person| seen.insert(person.id.clone()));
            people.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
            Ok(people)
        };
        let done = done.await;
        step.end(done).await
    }

    async fn note_mention(&self, mention: &NewMention) -> Result<u64> {
        let step = self.write().await?;
        let done = note_mention(&step, mention).await;
        step.end(done).await
    }

    async fn mentions(&self, after: u64, limit: u32) -> Result<Vec<Mention>> {
        let step = self.read().await?;
        let done = async {
            let query = "SELECT number, document, author_id, author_name, emails, message, action_link, at_ms FROM mentions WHERE number > $1 ORDER BY number LIMIT $2";
            all(&step.query(query, &[&asked(after), &i64::from(limit)]).await?, mention)
        };
        let done = done.await;
        step.end(done).await
    }
}

async fn contents_page(step: &Step, page: &ContentsPage) -> Result<Vec<Content>> {
    let kind = if page.versions_only { "AND c.checkpoint = 0" } else { "" };
    let query = format!(
        "SELECT {CONTENT_COLUMNS} WHERE c.document = $1 AND (c.version, c.checkpoint) < ($2, $3) {kind}
         ORDER BY c.version DESC, c.checkpoint DESC LIMIT $4"
    );
    let (version, checkpoint) =
        page.before.map_or((i64::MAX, 0), |label| (i64::from(label.version), i64::from(label.checkpoint)));
    let rows =
        step.query(&query, &[&page.document.as_str(), &version, &checkpoint, &i64::from(page.limit)]).await?;
    all(&rows, content)
}

/// A view key is handed out with a link to its content: that is written down, so that the content stays while the link counts.
pub(super) async fn note_view_key(step: &Step, view: &ViewKey) -> Result<()> {
    locks::document(step, &view.document).await?;
    let base = Some((view.base, view.base_digest));
    // A view key never has a session that saves; were one to come, it must not touch the head.
    let new = NewKey { key: &view.key, document: &view.document, mode: "view", state: "retired", base };
    insert_key(step, &new, view.at).await?;
    let noted = step
        .execute(
            "UPDATE contents SET handed_out_ms = $4
             WHERE document = $1 AND version = $2 AND checkpoint = $3 AND pruned_ms IS NULL",
            &[
                &view.document.as_str(),
                &Stored(view.base.version),
                &Stored(view.base.checkpoint),
                &ms(view.at),
            ],
        )
        .await?;
    if noted == 0 {
        return Err(LedgerError::not_found(format!("content {} of document `{}`", view.base, view.document)));
    }
    Ok(())
}

async fn rename_document(step: &Step, renaming: &DocumentRenaming) -> Result<Option<Document>> {
    locks::document(step, &renaming.document).await?;
    let Some(document) =
        documents::find(step, &renaming.document).await?.filter(|found| found.deleted_at.is_none())
    else {
        return Ok(None);
    };
    if document.name == renaming.name {
        return Ok(Some(document));
    }
    // What the tree shows keeps its first name until the tree has followed.
    step.execute(
        "UPDATE documents SET shown_name = coalesce(shown_name, name), name = $2,
             owes_since_ms = coalesce(owes_since_ms, $3) WHERE id = $1",
        &[&renaming.document.as_str(), &renaming.name.as_str(), &ms(renaming.at)],
    )
    .await?;
    let details = json!({ "name": renaming.name.as_str(), "before": document.name.as_str() });
    let (document, actor) = (&renaming.document, Actor::person(&renaming.by));
    append(step, &Act { document, at: renaming.at, actor, action: "document-renamed", details }).await?;
    documents::find(step, &renaming.document).await
}

/// The tree shows the document under one name only. If that is not its name any more, it has to move on.
pub(super) async fn shown_under(step: &Step, document: &DocumentId, name: &FileName) -> Result<()> {
    step.execute(
        "UPDATE documents SET shown_name = nullif($2, name) WHERE id = $1",
        &[&document.as_str(), &name.as_str()],
    )
    .await?;
    Ok(())
}

/// Everybody who changed something in the newest contents, as the Document Server told it.
async fn people_of_document(step: &Step, document: &DocumentId) -> Result<Vec<Person>> {
    let query = "SELECT history FROM contents WHERE document = $1 AND history IS NOT NULL
                 ORDER BY version DESC, checkpoint DESC LIMIT $2";
    let mut people = Vec::new();
    for row in step.query(query, &[&document.as_str(), &CONTENTS_LOOKED_AT]).await? {
        let changes: Vec<Value> = serde_json::from_str(&get::<String>(&row, "history")?).unwrap_or_default();
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
async fn people_of_company(step: &Step, document: &DocumentId, limit: u32) -> Result<Vec<Person>> {
    let query = format!(
        "SELECT p.actor, coalesce((SELECT c.author_name FROM contents c JOIN documents d ON d.id = c.document
                WHERE left(c.author_id, 64) = left(p.actor, 64) AND c.author_id = p.actor AND d.company = p.company
                AND c.author_name <> '' ORDER BY c.committed_ms DESC LIMIT 1), p.actor) AS name
         FROM (SELECT n.company, n.actor, max(n.at_ms) AS last_ms FROM
                (SELECT a.company, a.actor, a.at_ms FROM audit a
                 WHERE a.company = (SELECT company FROM documents WHERE id = $1) ORDER BY a.at_ms DESC LIMIT $3) n
               WHERE n.actor NOT IN ({NOBODY}) AND n.actor NOT LIKE 'token:%' GROUP BY n.company, n.actor) p
         ORDER BY p.last_ms DESC, p.actor LIMIT $2"
    );
    let rows = step.query(&query, &[&document.as_str(), &i64::from(limit), &ACTS_LOOKED_AT]).await?;
    all(&rows, |row| Ok(Person { id: get(row, "actor")?, name: get(row, "name")? }))
}

/// Whoever tells people of mentions reads them by number. So numbers are taken one after the other: none appears behind one
/// that was read already.
async fn note_mention(step: &Step, mention: &NewMention) -> Result<u64> {
    let NewMention { document, by, emails, message, action_link, at } = mention;
    locks::known_document(step, document).await?;
    locks::advisory(step, Kind::Mentions, "").await?;
    let row = step
        .query_one(
            "INSERT INTO mentions (document, author_id, author_name, emails, message, action_link, at_ms)
             VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING number",
            &[
                &document.as_str(),
                &text(&by.id),
                &text(&by.name),
                &json!(emails).to_string(),
                &text(message),
                &action_link.as_deref().map(text),
                &ms(*at),
            ],
        )
        .await?;
    let number: u64 = get(&row, "number")?;
    // What was written stays with the mention: the trail tells that it was.
    let details = json!({ "mention": number, "people": emails.len() });
    let act = Act { document, at: *at, actor: Actor::person(by), action: "people-mentioned", details };
    append(step, &act).await?;
    Ok(number)
}

fn mention(row: &Row) -> Result<Mention> {
    Ok(Mention {
        number: get(row, "number")?,
        mention: NewMention {
            document: get(row, "document")?,
            by: Author::new(get::<String>(row, "author_id")?, get::<String>(row, "author_name")?),
            emails: names(&get::<String>(row, "emails")?),
            message: get(row, "message")?,
            action_link: get_optional(row, "action_link")?,
            at: get(row, "at_ms")?,
        },
    })
}
