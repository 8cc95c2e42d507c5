//! Changes past the editors, on SQLite: the rule is asked under the writer's lock, like an opening.

use async_trait::async_trait;
use jiff::Timestamp;
use model::{DocumentId, InboxNumber};
use rusqlite::{Connection, params};
use serde_json::json;

use super::SqliteLedger;
use super::audit::{Act, Actor, CompanyAct, anchor_document, append, append_company_act};
use super::contents::{self, NewContent};
use super::keys::{self, Asked, Sessions};
use super::rows::{Stored, asked, get, ms, optional};
use crate::adapting::first_outcome;
use crate::changes::{
    ChangeOutcome, ChangeRequest, ChangeSource, Changes, Download, EditorsInside, HeadChange, SaveNews,
};
use crate::documents::Author;
use crate::{LedgerError, Result, callback_text};

#[async_trait]
impl Changes for SqliteLedger {
    async fn put_version(&self, change: &HeadChange) -> Result<ChangeOutcome> {
        let change = change.clone();
        self.write(move |connection, _| put_version(connection, &change)).await
    }

    async fn delete_document(&self, request: &ChangeRequest) -> Result<ChangeOutcome> {
        let request = request.clone();
        self.write(move |connection, _| delete_document(connection, &request)).await
    }

    async fn undelete_document(&self, document: &DocumentId, who: &Author, at: Timestamp) -> Result<bool> {
        let (document, who) = (document.clone(), who.clone());
        self.write(move |connection, _| undelete_document(connection, &document, &who, at)).await
    }

    async fn dismiss_kept(&self, number: u64, who: &Author, at: Timestamp) -> Result<bool> {
        let who = who.clone();
        self.write(move |connection, _| {
            settle_kept(connection, number, &Settling { as_what: "dismissed", who: &who, at })
        })
        .await
    }

    async fn newest_save(&self, document: &DocumentId) -> Result<InboxNumber> {
        let document = document.clone();
        self.read(move |connection| {
            let query = "SELECT coalesce(max(number), 0) AS newest FROM inbox WHERE document = ?1";
            let mut query = connection.prepare_cached(query)?;
            Ok(query.query_row([document.as_str()], |row| get(row, "newest"))?)
        })
        .await
    }

    async fn saves_after(&self, document: &DocumentId, after: InboxNumber) -> Result<Vec<SaveNews>> {
        let document = document.clone();
        self.read(move |connection| saves_after(connection, &document, after)).await
    }

    async fn note_download(&self, download: &Download) -> Result<()> {
        let download = download.clone();
        self.write(move |connection, _| {
            let Download { document, label, who, freshness, at } = &download;
            let details = json!({ "label": label.to_string(), "freshness": freshness });
            append(
                connection,
                &Act { document, at: *at, actor: Actor::person(who), action: "downloaded", details },
            )
        })
        .await
    }
}

/// Whether the change may happen now; if not, what to do first.
fn first(connection: &Connection, request: &ChangeRequest) -> Result<(Sessions, Option<ChangeOutcome>)> {
    let asked = Asked {
        knowledge: request.knowledge.as_ref(),
        quiet_after: request.quiet_after,
        listening_since: None,
    };
    let sessions = keys::sessions_of(connection, &request.document, &asked)?;
    let outcome = first_outcome(&sessions);
    Ok((sessions, outcome))
}

/// Nobody opens anything under these keys any more.
fn end_sessions(connection: &Connection, sessions: &Sessions, why: &str, at: Timestamp) -> Result<()> {
    for record in sessions.live.iter().chain(&sessions.left) {
        keys::settle(connection, &record.key, why, at)?;
        keys::confirm(connection, &record.key, at)?;
    }
    Ok(())
}

fn put_version(connection: &Connection, change: &HeadChange) -> Result<ChangeOutcome> {
    let HeadChange { request, blob, from, .. } = change;
    let (sessions, first) = first(connection, request)?;
    let is_welcome = change.editors == EditorsInside::RetireTheirKey;
    let has_people = matches!(first, Some(ChangeOutcome::Edited(_)));
    match first {
        Some(ChangeOutcome::Edited(_)) if is_welcome => {}
        Some(outcome) => return Ok(outcome),
        None => {}
    }
    if change.expected_head.is_some_and(|expected| expected != sessions.facts.head) {
        return Ok(ChangeOutcome::HeadMoved(sessions.facts.head));
    }
    // Repeated after a crash, or asked for twice: it is there.
    if sessions.facts.head == blob.digest && sessions.head.is_version() {
        return Ok(ChangeOutcome::Done(sessions.head));
    }
    end_sessions(connection, &sessions, "changed past the editors", request.at)?;
    if let Some(live) = sessions.live.as_ref().filter(|_| has_people) {
        super::sessions::leave_inside(connection, &live.key, &live.users)?;
    }
    contents::name_blob(connection, blob, request.at)?;
    let label = contents::next_version(connection, &request.document)?;
    let new = NewContent::without_session(
        (&request.document, label),
        (from.origin(), blob),
        (&request.who, request.at),
    );
    contents::add_content(connection, &new)?;
    contents::move_head(connection, &request.document, label, request.at)?;
    if let ChangeSource::Kept(number) = from {
        let as_what = "used";
        settle_kept(connection, *number, &Settling { as_what, who: &request.who, at: request.at })?;
    }
    let (action, source) = match from {
        ChangeSource::Upload => ("content-replaced", None),
        ChangeSource::Content(label) => ("version-restored", Some(label.to_string())),
        ChangeSource::Kept(number) => ("kept-copy-used", Some(number.to_string())),
    };
    let details = json!({
        "label": label.to_string(),
        "from": source,
        "digest": blob.digest.to_string(),
        "sizeBytes": blob.size_bytes,
        "flags": blob.flags,
    });
    let document = &request.document;
    append(
        connection,
        &Act { document, at: request.at, actor: Actor::person(&request.who), action, details },
    )?;
    Ok(ChangeOutcome::Done(label))
}

fn delete_document(connection: &Connection, request: &ChangeRequest) -> Result<ChangeOutcome> {
    let (sessions, first) = first(connection, request)?;
    if let Some(outcome) = first {
        return Ok(outcome);
    }
    end_sessions(connection, &sessions, "document deleted", request.at)?;
    connection
        .prepare_cached(
            "UPDATE documents SET deleted_ms = ?2, deleted_by = ?3, owes_since_ms = coalesce(owes_since_ms, ?2) WHERE id = ?1",
        )?
        .execute(params![request.document.as_str(), ms(request.at), request.who.id])?;
    let details = json!({ "head": sessions.head.to_string() });
    let document = &request.document;
    append(
        connection,
        &Act {
            document,
            at: request.at,
            actor: Actor::person(&request.who),
            action: "document-deleted",
            details,
        },
    )?;
    anchor_document(connection, document, request.at)?;
    Ok(ChangeOutcome::Done(sessions.head))
}

fn undelete_document(
    connection: &Connection,
    document: &DocumentId,
    who: &Author,
    at: Timestamp,
) -> Result<bool> {
    let restored = connection
        .prepare_cached(
            "UPDATE documents SET deleted_ms = NULL, deleted_by = NULL, owes_since_ms = coalesce(owes_since_ms, ?2)
             WHERE id = ?1 AND deleted_ms IS NOT NULL AND purged_ms IS NULL",
        )?
        .execute(params![document.as_str(), ms(at)])?;
    if restored > 0 {
        let details = json!({});
        append(
            connection,
            &Act { document, at, actor: Actor::person(who), action: "deletion-taken-back", details },
        )?;
    }
    Ok(restored > 0)
}

/// What a person decided about a kept copy.
struct Settling<'a> {
    as_what: &'static str,
    who: &'a Author,
    at: Timestamp,
}

fn settle_kept(connection: &Connection, number: u64, settling: &Settling<'_>) -> Result<bool> {
    let settled = connection
        .prepare_cached(
            "UPDATE kept SET settled_ms = ?2, settled_as = ?3 WHERE number = ?1 AND settled_ms IS NULL RETURNING document",
        )?
        .query_row(params![asked(number), ms(settling.at), settling.as_what], |row| {
            row.get::<_, Option<Stored<DocumentId>>>(0)
        });
    let Some(document) = optional(settled)? else {
        return match exists_kept(connection, number)? {
            true => Ok(false),
            false => Err(LedgerError::not_found(format!("kept copy {number}"))),
        };
    };
    let (actor, at, action) = (Actor::person(settling.who), settling.at, "kept-copy-settled");
    let details = json!({ "kept": number, "as": settling.as_what });
    match &document {
        Some(document) => append(connection, &Act { document: &document.0, at, actor, action, details })?,
        // An orphan is the installation's.
        None => append_company_act(connection, &CompanyAct { company: None, at, actor, action, details })?,
    }
    Ok(true)
}

fn exists_kept(connection: &Connection, number: u64) -> Result<bool> {
    super::facts::exists(connection, "SELECT 1 FROM kept WHERE number = ?1", params![asked(number)])
}

fn saves_after(connection: &Connection, document: &DocumentId, after: InboxNumber) -> Result<Vec<SaveNews>> {
    let mut query = connection.prepare_cached(
        "SELECT number, status, callback, outcome IS NOT NULL AS is_finished FROM inbox
         WHERE document = ?1 AND number > ?2 ORDER BY number",
    )?;
    let rows = query.query_map(params![document.as_str(), Stored(after)], |row| {
        let news = SaveNews {
            number: get(row, "number")?,
            status: row.get("status")?,
            user_data: None,
            is_finished: row.get("is_finished")?,
        };
        Ok((news, row.get::<_, String>("callback")?))
    })?;
    rows.map(|row| {
        let (news, text) = row?;
        Ok(SaveNews { user_data: callback_text::read(&text)?.user_data, ..news })
    })
    .collect()
}
